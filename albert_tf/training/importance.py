"""How much each attention head and feed-forward column of a fine-tuned task matters to its loss."""

from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.conversion.pruning import Importance
from albert_tf.data.batching import num_batches
from albert_tf.data.pipeline import training_dataset
from albert_tf.data.schema import TOKEN_IDS
from albert_tf.errors import InputError
from albert_tf.tasks.base import AlbertTask
from albert_tf.training.tasks.finetune_task import TrainingRows


def gradient_importance(task: AlbertTask, rows: TrainingRows, *, batch_size: int = 32) -> Importance:
    """Σ |∂L/∂ξ| over examples and passes, where ξ is a mask on what a head gives or on a column's activation, and L the
    task's loss of one example, without dropout: Michel et al., 2019, section 4.1, of heads. Of columns it is the
    first-order Taylor criterion of Molchanov et al., 2017, |activation · gradient|, since that product is ∂L/∂ξ.

    A shared block has one ξ, with a gradient from each pass through it. Their absolute values are added, so a head that
    helps in one pass and hurts in another counts as one that matters.

    Args:
        task: a trained model.
        rows: labelled rows, as for its fine-tuning.
        batch_size: examples that are gone through together.

    Raises:
        InputError: the rows lack what the model's loss asks for, or the loss is no finite number.
    """
    config = task.backbone.config
    examples = len(rows.rows) // rows.rows_per_example
    batches = training_dataset(
        rows.rows,
        rows.targets,
        batch_size=batch_size,
        pad_id=task.required_tokenizer.vocabulary.pad_id,
        seed=0,
        rows_per_example=rows.rows_per_example,
    )
    run = tf.function(
        lambda x, y: _sums(task, x, y, rows.rows_per_example),
        input_signature=list(batches.element_spec),
        autograph=False,
    )
    steps = len(config.block_schedule)
    totals = [np.zeros((steps, config.num_heads)), np.zeros((steps, config.intermediate_dim))]
    for x, y in batches.take(num_batches(examples, batch_size)):
        totals = [total + np.asarray(found) for total, found in zip(totals, run(x, y), strict=True)]
    if not all(np.isfinite(total).all() for total in totals):
        raise InputError("the gradients of the model's loss are NaN or infinite: its weights are damaged")
    attention, feed_forward = config.num_blocks
    heads = [np.zeros(config.num_heads) for _ in range(attention)]
    columns = [np.zeros(config.intermediate_dim) for _ in range(feed_forward)]
    for number, (attention_index, feed_forward_index) in enumerate(config.block_schedule):
        heads[attention_index] += totals[0][number]
        columns[feed_forward_index] += totals[1][number]
    return Importance(tuple(heads), tuple(columns))


def _sums(task: AlbertTask, x: Any, y: Any, rows_per_example: int) -> list[Any]:
    """Of a batch, Σ |∂L/∂ξ| over its examples: (steps, N) and (steps, I)."""
    config, encoder = task.backbone.config, task.backbone.encoder
    steps, rows = len(config.block_schedule), tf.shape(x[TOKEN_IDS])[0]
    masks = [tf.ones((steps, rows, width)) for width in (config.num_heads, config.intermediate_dim)]
    encoder.masks = lambda number: (masks[0][number], masks[1][number])
    try:
        with tf.GradientTape() as tape:
            tape.watch(masks)
            losses = task.losses_of(dict(y), task.training_outputs(x, training=False))
    except KeyError as error:
        raise InputError(
            f"the model's loss asks for {error.args[0]!r}, which the labelled file does not give; expected a file as for "
            "its fine-tuning"
        ) from error
    finally:
        encoder.masks = None
    # A row's mask touches its example's loss alone, so this is each example's own gradient. (Not of losses that compare
    # examples, such as contrastive ones: there it is the gradient of the batch's loss.)
    gradients = tape.gradient(losses, masks)
    own = [tf.reshape(g, (steps, -1, rows_per_example, g.shape[-1])) for g in gradients]
    return [tf.reduce_sum(tf.abs(tf.reduce_sum(g, axis=2)), axis=1) for g in own]
