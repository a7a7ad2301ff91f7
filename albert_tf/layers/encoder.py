"""The encoder: a loop over `AlbertConfig.block_schedule`. Parameter sharing is this loop and nothing else."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers.attention import AttentionBlock, FeedForwardBlock
from albert_tf.layers.configured import ConfiguredLayer
from albert_tf.layers.rows import unflattened

# Added to the attention scores of padding positions, as in google-research/albert (create_attention_mask).
PADDING_BIAS = -10000.0


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertEncoder(ConfiguredLayer):
    """`num_layers` passes through few blocks (paper section 3.1, cross-layer parameter sharing).

    Args:
        config: `config.block_schedule` names the attention and feed-forward block of every step.
        rematerialize: keep only each block's input for the backward pass and compute its inside again there. Sharing
            saves weights, not activations: at long sequences they are most of the training memory.

    Attributes:
        drawn_depth: in training, gives the number of layers to run, int32 scalar, from 1: the others are passed over, and
            every depth learns to be the last (LayerDrop of the top layers: Fan et al., 2020, section 3.2, trains for it by
            single layers). None: all of them.
        masks: outside training, gives for the number of a step the masks of its heads and of its feed-forward columns, as
            its blocks take them. None: nothing is masked.
    """

    drawn_depth: Callable[[], Any] | None = None
    masks: Callable[[int], tuple[Any, Any]] | None = None

    def __init__(self, config: AlbertConfig, *, rematerialize: bool = False, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.rematerialize = rematerialize
        attention_blocks, feed_forward_blocks = config.num_blocks
        self.attention_blocks = [
            AttentionBlock(config, dtype=self.dtype_policy, name=f"attention_{i}") for i in range(attention_blocks)
        ]
        self.feed_forward_blocks = [
            FeedForwardBlock(config, dtype=self.dtype_policy, name=f"feed_forward_{i}")
            for i in range(feed_forward_blocks)
        ]

    def build(self, input_shape: Any = None) -> None:
        for block in (*self.attention_blocks, *self.feed_forward_blocks):
            block.build((None, None, self.config.hidden_dim))
        self.built = True

    def call(self, x: Any, padding_mask: Any, training: bool | None = None) -> list[Any]:
        """(B, S, H) and the mask (B, S) → the output of every step, each (B, S, H); the last is the encoder's."""
        bias = attention_bias(padding_mask)
        depth = self.drawn_depth() if training and self.drawn_depth is not None else None
        outputs = []
        for step in range(len(self.config.block_schedule)):
            if depth is None:
                x = self._step(step, x, bias, training)
            else:
                is_run = step // self.config.num_inner_repetitions < depth
                x = ops.cond(is_run, lambda x=x, step=step: self._step(step, x, bias, training), lambda x=x: x)
            outputs.append(x)
        return outputs

    def _step(self, step: int, x: Any, bias: Any, training: bool | None) -> Any:
        """One step of the schedule, (B, S, H) → (B, S, H)."""
        attention_index, feed_forward_index = self.config.block_schedule[step]
        attention, feed_forward = self.attention_blocks[attention_index], self.feed_forward_blocks[feed_forward_index]
        if self.rematerialize and training:
            x = _recomputed(attention, x, bias, *attention.seeds(training))
            return _recomputed(feed_forward, x, *feed_forward.seeds(training))
        if self.masks is not None and not training:
            head_mask, column_mask = self.masks(step)
            return feed_forward(attention(x, bias, head_mask, step=step), column_mask, step=step)
        x = attention(x, bias, training=training, step=step)
        return feed_forward(x, training=training, step=step)

    def compute_output_shape(self, x_shape: Any, padding_mask_shape: Any) -> list[Any]:
        return [x_shape] * len(self.config.block_schedule)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"rematerialize": self.rematerialize}


def _recomputed(block: AttentionBlock | FeedForwardBlock, x: Any, *constants: Any) -> Any:
    """`block.forward(x, *constants)`, to be run again in the backward pass; gradients go to `x` and to the weights only.

    The layer norm apart, so that what it is given is kept: no gradient needs the block's last matrix multiplication then,
    more than a third of its work, and a graph leaves it out the second time.
    """
    rows = keras.remat(lambda x: block.summed(x, *constants))(x)
    return unflattened(keras.remat(lambda rows: block.norm(rows))(rows), x, block.config.hidden_dim)


def attention_bias(padding_mask: Any, value: float = PADDING_BIAS) -> Any:
    """Mask (B, S) of ones and zeros → float32 bias (B, 1, 1, S): 0 for a token, `value` for padding."""
    return ((1.0 - ops.cast(padding_mask, "float32")) * value)[:, None, None, :]
