"""How deep a task's model goes: the number of passes chosen when it runs, and exits where the answer is settled.

Training for exits is PABEE's (Zhou et al., "BERT Loses Patience", 2020, section 3.3): the head answers after every pass,
and the losses of all depths count by their depth.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import tensorflow as tf
from keras import ops

from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from albert_tf.errors import InputError
from albert_tf.inference.depth import DEPTH, EXITS, PASSES, DepthChoice, ExitSettings
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.layers.passes import run_passes
from albert_tf.tasks.accumulation import AccumulatingModel
from albert_tf.tasks.exit_rules import Choice, largest_entropy, least_confidence, same_choices


class DepthModel(AccumulatingModel):
    """Base of `AlbertTask`.

    Attributes:
        exit_rules: those of `ExitSettings` that the task knows; none for a task that cannot exit early.
        exits: when the model's own answer is settled; None for a model that makes all passes. Fixed when it is made.
        depth: what was chosen with `choose_depth`.
    """

    exit_rules: ClassVar[tuple[str, ...]] = ()
    exits: ExitSettings | None = None
    depth: DepthChoice = DepthChoice()
    backbone: Any

    # The two methods that raise NotImplementedError are a subclass's to write; not abstract for the reason that `AlbertTask`
    # has.
    def head_outputs(self, sequence_output: Any, inputs: dict[str, Any], depth: int | None, training: bool) -> Any:
        """What the model itself puts out, from the vectors (B, S, H) after pass number `depth`, from 0; None: the last.

        Args:
            inputs: those of the model.

        A task with `exit_rules` takes `depth` in `device_outputs` too; for others it is None.
        """
        raise NotImplementedError

    def choices(self, outputs: dict[str, Any], segment_ids: Any, padding_mask: Any) -> list[Choice]:
        """What is chosen by the device outputs of a pass; of a task whose only output is the probabilities of labels."""
        (probabilities,) = outputs.values()
        return [Choice(probabilities)]

    def change(self, outputs: dict[str, Any], before: dict[str, Any]) -> Any:
        """How far the device outputs of a pass are from those of the pass before, (B,); of a task with "tolerance"."""
        raise NotImplementedError

    def choose_depth(self, choice: DepthChoice) -> None:
        """Sets how deep `run_rows`, and so every pipeline on this model, goes from now on.

        Raises:
            InputError: more passes than there are, or a patience or threshold for a model without exits.
        """
        choice.check(self.backbone.config.num_layers, PASSES if self.exits is None else EXITS)
        self.depth = choice

    @property
    def saved_exits(self) -> dict[str, Any] | None:
        """`exits` as JSON has them."""
        return None if self.exits is None else dataclasses.asdict(self.exits)

    @property
    def is_adaptive(self) -> bool:
        """Whether the passes that `run_rows` makes are not simply all of them."""
        return self.exits is not None or self.depth.num_passes is not None

    def outputs_at_depth(
        self, inputs: dict[str, Any], num_passes: Any = 0, patience: Any = None, threshold: Any = None
    ) -> dict[str, Any]:
        """The device outputs after as many passes as asked for, or after fewer where the answer is settled.

        Each row of a batch exits by itself: what comes later leaves its answer as it was.

        Args:
            inputs: `token_ids`, `segment_ids`, `padding_mask`, int32 (B, S).
            num_passes: int32 scalar, at most so many; all where it is below 1.
            patience: int32 scalar; the model's own where it is below 1. None: no exits.
            threshold: float32 scalar; the model's own where it is below 0.

        Returns:
            The device outputs by name; with exits also `depth`, int32 (B,), the passes made.
        """
        token_ids, segment_ids, padding_mask = (inputs[name] for name in (TOKEN_IDS, SEGMENT_IDS, PADDING_MASK))
        encoder, layers = self.backbone.encoder, self.backbone.config.num_layers
        num_passes = ops.cast(num_passes, "int32")
        num_passes = ops.where(num_passes < 1, layers, ops.minimum(num_passes, layers))
        x = self.backbone.embeddings(token_ids, segment_ids)
        if patience is None or self.exits is None:
            x, _ = run_passes(encoder, x, padding_mask, num_passes)
            return self._answer(x, segment_ids, padding_mask, num_passes - 1)
        patience = ops.where(patience < 1, self.exits.patience, patience)
        threshold = ops.where(threshold < 0.0, self.exits.threshold, threshold)
        shapes = pipeline_of(self).outputs(self.backbone.config.to_dict())
        rows, length, is_batch = ops.shape(x)[0], ops.shape(x)[1], x.shape[0] != 1

        def choices(outputs: dict[str, Any]) -> list[Choice]:
            return self.choices(outputs, segment_ids, padding_mask)

        def after_pass(index: Any, before: Any, after: Any, state: list[Any]) -> tuple[Any, list[Any]]:
            settled_passes, depths, *last = state
            found = self._answer(after, segment_ids, padding_mask, index)
            settled = self._is_settled(found, dict(zip(shapes, last, strict=True)), choices, index, threshold)
            new = [ops.where(settled, settled_passes + 1, 0), depths + 1, *(found[name] for name in shapes)]
            if not is_batch:  # of one row alone the loop ends with its exit
                return after, new
            runs = settled_passes < patience
            return _chosen(runs, after, before), [_chosen(runs, a, b) for a, b in zip(new, state, strict=True)]

        _, (_, depths, *last) = run_passes(
            encoder,
            x,
            padding_mask,
            num_passes,
            state=[ops.zeros((rows,), "int32")] * 2
            + [
                ops.zeros((rows, *(length if size is None else size for size in shape)), "float32")
                for shape in shapes.values()
            ],
            after_pass=after_pass,
            goes_on=lambda state: ops.any(state[0] < patience),
        )
        return dict(zip(shapes, last, strict=True)) | {DEPTH: depths}

    def training_outputs(self, x: Any, training: bool = True) -> Any:
        """Of a model with exits a list, what it puts out after each pass."""
        if self.exits is None:
            return super().training_outputs(x, training)
        return self.outputs_of(self.states(x, training=training), x, training=training)

    def states(self, x: dict[str, Any], *, training: bool) -> list[Any]:
        """The embeddings and the vectors after each step of `config.block_schedule`, each (B, S, H), from the inputs."""
        embedded = self.backbone.embeddings(x[TOKEN_IDS], x[SEGMENT_IDS], training=training)
        return [embedded, *self.backbone.encoder(embedded, x[PADDING_MASK], training=training)]

    def outputs_of(self, states: Sequence[Any], x: dict[str, Any], *, training: bool) -> Any:
        """What the model puts out, from its `states`; of a model with exits a list, what it does after each pass."""
        if self.exits is None:
            return self.head_outputs(states[-1], x, None, training)
        inner = self.backbone.config.num_inner_repetitions
        return [self.head_outputs(one, x, depth, training) for depth, one in enumerate(states[inner::inner])]

    def infer_batch(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The device outputs of a batch of int32 (B, S), as deep as chosen."""
        if not self.is_adaptive:
            outputs: dict[str, Any] = self._infer(batch)
            return outputs
        choice = self.depth
        outputs = self._infer_at_depth(
            batch,
            tf.constant(choice.num_passes or 0),
            tf.constant(choice.patience or 0),
            tf.constant(-1.0 if choice.threshold is None else choice.threshold),
        )
        return outputs

    @functools.cached_property
    def _infer(self) -> Callable[[Any], Any]:
        """`device_outputs` without dropout, as one graph for all batch sizes and lengths (`predict` traces several)."""

        def infer(batch: dict[str, Any]) -> dict[str, Any]:
            sequence_output = self.backbone(batch, training=False)["sequence_output"]
            return self.row_outputs(sequence_output, batch[SEGMENT_IDS], batch[PADDING_MASK])

        return tf.function(infer).get_concrete_function(_inputs())

    @functools.cached_property
    def _infer_at_depth(self) -> Callable[..., Any]:
        """`outputs_at_depth`, as one such graph."""
        numbers = [tf.TensorSpec((), kind) for kind in (tf.int32, tf.int32, tf.float32)]
        return tf.function(self.outputs_at_depth).get_concrete_function(_inputs(), *numbers)

    def _answer(self, x: Any, segment_ids: Any, padding_mask: Any, depth: Any) -> dict[str, Any]:
        if self.exits is None:
            return self.row_outputs(x, segment_ids, padding_mask)
        return self.row_outputs(x, segment_ids, padding_mask, depth)

    def _is_settled(
        self,
        outputs: dict[str, Any],
        before: dict[str, Any],
        choices: Callable[[dict[str, Any]], list[Choice]],
        index: Any,
        threshold: Any,
    ) -> Any:
        """Whether a pass is a settled one, bool (B,)."""
        rule = self.exits.rule if self.exits is not None else ""
        if rule == "tolerance":
            return ops.logical_and(index > 0, self.change(outputs, before) < threshold)
        if rule == "confidence":
            return least_confidence(choices(outputs)) > threshold
        if rule == "entropy":
            return largest_entropy(choices(outputs)) < threshold
        return ops.logical_and(index > 0, same_choices(choices(outputs), choices(before)))


def depth_weighted(losses: Sequence[Any]) -> Any:
    """Σ d · loss_d / Σ d over the depths d = 1, 2, …, each loss (B,): PABEE, equation 6."""
    weights = range(1, len(losses) + 1)
    total = sum(weight * loss for weight, loss in zip(weights, losses, strict=True))
    return total / sum(weights)


def at_depth(values: Any, size: int, depth: Any) -> Any:
    """Of heads side by side, (…, depths · size), that of one depth, (…, size): of the last where `depth` is None."""
    if values.shape[-1] == size:
        return values
    if depth is None:
        return values[..., -size:]
    if isinstance(depth, int):
        return values[..., depth * size : (depth + 1) * size]
    apart = (*ops.shape(values)[:-1], values.shape[-1] // size, size)
    return ops.take(ops.reshape(values, apart), depth, axis=-2)


def exit_settings(exits: ExitSettings | dict[str, Any] | None, model: type[DepthModel]) -> ExitSettings | None:
    """Checked settings of the exits of a task's model."""
    if exits is not None and not model.exit_rules:
        raise InputError("exits: this task has no early exits; leave them out")
    return ExitSettings.of(exits, model.exit_rules)


def _chosen(where: Any, values: Any, others: Any) -> Any:
    """Rows of `values` where `where` (B,) is true, of `others` elsewhere."""
    return ops.where(ops.reshape(where, (-1, *[1] * (len(values.shape) - 1))), values, others)


def _inputs() -> dict[str, tf.TensorSpec]:
    return {name: tf.TensorSpec((None, None), tf.int32) for name in (TOKEN_IDS, SEGMENT_IDS, PADDING_MASK)}
