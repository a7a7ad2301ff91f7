"""The encoder's passes as a loop that may end before the last: how many is known when it runs, not before."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from keras import ops

from albert_tf.layers.encoder import AlbertEncoder, attention_bias

# (index, x before, x after, state) → x and the state to go on with.
AfterPass = Callable[[Any, Any, Any, list[Any]], tuple[Any, list[Any]]]


def run_passes(
    encoder: AlbertEncoder,
    x: Any,
    padding_mask: Any,
    num_passes: Any,
    *,
    state: Sequence[Any] = (),
    after_pass: AfterPass = lambda index, before, after, state: (after, state),
    goes_on: Callable[[list[Any]], Any] = lambda state: True,
) -> tuple[Any, list[Any]]:
    """Passes through the encoder until there are enough: one loop for each run of layers with the same weights.

    Args:
        encoder: its blocks are run as at inference.
        x: embeddings (B, S, H).
        padding_mask: int (B, S).
        num_passes: int32 scalar, at most the layers of the encoder.
        state: tensors that keep their shapes, carried from pass to pass.
        after_pass: gets the number of the pass, from 0, the vectors before and after it, and the state.
        goes_on: whether there is to be another pass, bool scalar.

    Returns:
        The vectors after the last pass, (B, S, H), and the state.
    """
    config, bias = encoder.config, attention_bias(padding_mask)
    index, done, current = ops.convert_to_tensor(0, "int32"), 0, [*state]
    for layer, count in loop_plan(config.block_schedule, config.num_inner_repetitions):
        done += count

        def one_pass(index: Any, x: Any, *state: Any, layer: tuple[tuple[int, int], ...] = layer) -> tuple[Any, ...]:
            after = x
            for attention, feed_forward in layer:
                after = encoder.attention_blocks[attention](after, bias)
                after = encoder.feed_forward_blocks[feed_forward](after)
            after, new_state = after_pass(index, x, after, [*state])
            return index + 1, after, *new_state

        def is_due(index: Any, x: Any, *state: Any, end: int = done) -> Any:
            return ops.logical_and(index < ops.minimum(num_passes, end), goes_on([*state]))

        index, x, *current = ops.while_loop(is_due, one_pass, (index, x, *current))
    return x, current


def loop_plan(
    schedule: Sequence[tuple[int, int]], steps_per_layer: int
) -> list[tuple[tuple[tuple[int, int], ...], int]]:
    """Runs of consecutive layers with the same weights: (the layer's steps, how many times)."""
    layers = [tuple(schedule[i : i + steps_per_layer]) for i in range(0, len(schedule), steps_per_layer)]
    return [(layer, len(list(run))) for layer, run in groupby(layers)]
