"""Is a TFLite file the model it was made from? Asked of every file before it is written."""

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from albert_tf.errors import CheckError, InputError
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.inference.runner import Outputs
from albert_tf.tasks.base import AlbertTask
from export.quantization import Recipe
from export.runtime import TFLiteRunner

# What a model holds beside its weights: the graph, some of it for each block that is written out, and quantisation
# scales. The converter may also merge equal vectors, such as biases of zeros.
TOLERATED_SHARE = 0.03
GRAPH_BYTES = 40_000
GRAPH_BYTES_PER_STEP = 14_000
# Scores below are those of positions that can be no answer.
MASKED = -1e3

# Lengths from one word to a paragraph, more than one script.
CHECK_TEXTS = (
    "yes",
    "turn the light off in the kitchen, please",
    "a gripping, beautifully shot film that never finds its feet in the second half",
    "I paid $9,000 for it in 2019 and it broke within a week!",
    "明天下午三点提醒我开会",
    "Där är någonting konstigt med det här, sade hon.",
    "what time does the last train to the airport leave on Sundays?",
    "The plot is thin, the songs are worse, and yet by the end of its two long hours the whole cinema was on its feet, "
    "clapping along with the children on the screen and not a little ashamed of it. Nobody could say afterwards what "
    "had happened: the film has no story to speak of, one good joke, and a dog.",
)


class ExportError(CheckError):
    """An exported file that is not fit to be written; the message says which check it failed."""


@dataclasses.dataclass(frozen=True)
class ExportReport:
    """Figures of one exported file.

    Attributes:
        size_bytes: the whole file.
        model_bytes: without the associated files.
        bytes_per_parameter: of the model.
        texts: how many texts were compared.
        max_difference, mean_difference: absolute, of outputs against the Keras model.
        distance: of the outputs in the mean, as `distance` has it: what the recipe's limit is for.
        agreement: share of texts with the same decision.
        failed: why the file should not have been written; empty unless it was forced.
    """

    size_bytes: int
    model_bytes: int
    bytes_per_parameter: float
    texts: int
    max_difference: float
    mean_difference: float
    distance: float
    agreement: float
    failed: str = ""


def check_export(
    content: bytes,
    *,
    model_bytes: int,
    task: AlbertTask,
    recipe: Recipe,
    texts: Sequence[str] | None = None,
    force: bool = False,
) -> ExportReport:
    """Compares the file with the task it was made from.

    Args:
        content: the whole file.
        model_bytes: length of the model in it, before the associated files.
        task: the float32 Keras task.
        recipe: how the file's weights are stored.
        texts: what to compare on; None for built-in sentences.
        force: report answers that differ too much instead of raising.

    Raises:
        ExportError: the file cannot be run, its size does not fit the parameters, its tokenizer is another one, an output
            is not finite, or the answers differ too much.
        InputError: `texts` is empty or holds something other than strings.
    """
    texts = list(CHECK_TEXTS if texts is None else texts)
    if not texts:
        raise InputError("texts: expected at least one text to compare the file and the model on")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(content)
        try:
            runner = TFLiteRunner(path)
        except InputError as error:
            raise ExportError(f"the file cannot be run: {str(error).removeprefix(f'{path}: ')}") from error
        _check_size(model_bytes, task, recipe, form=runner.settings["form"], length=runner.length)
        pairs = texts[::-1] if task.takes_pairs else None
        encoded = task.required_tokenizer.encode_batch(texts, pairs, length=runner.tokenizer.max_length)
        if runner.tokenizer.encode_batch(texts, pairs) != encoded:
            raise ExportError("the file's tokenizer gives other ids than the model's: it is not the same tokenizer")
        from_file = runner.run_rows(encoded)
    sizes = {"size_bytes": len(content), "model_bytes": model_bytes}
    report = _compare(from_file, task.run_rows(encoded), texts, task, recipe, sizes)
    if report.failed and not force:
        raise ExportError(report.failed)
    return report


def _check_size(model_bytes: int, task: AlbertTask, recipe: Recipe, *, form: str, length: int | None) -> None:
    lowest, highest = size_limits(task, recipe, form=form, length=length)
    if not lowest <= model_bytes <= highest:
        raise ExportError(
            f"{task.count_params():,} parameters as {recipe.name} should take {lowest:,} to {highest:,} bytes, the model "
            f"has {model_bytes:,}: weights are missing from it or stored more than once"
        )


def size_limits(task: AlbertTask, recipe: Recipe, *, form: str, length: int | None) -> tuple[int, int]:
    """The fewest and the most bytes that a model with every weight, once, can take."""
    config = task.backbone.config
    # Of the position table the converter keeps the rows that a fixed length uses.
    dropped = 0 if length is None else (config.max_sequence_length - length) * config.summed_dim
    lowest = recipe.weight_bytes * (task.count_params() - dropped)
    highest = sum(
        recipe.stored_bytes(path, weight.shape) * (2 if path in task.stored_twice else 1)
        for path, weight in task.named_weights().items()
    )
    steps = len(config.block_schedule if form == "unrolled" else set(config.block_schedule))
    return (
        round((1 - TOLERATED_SHARE) * lowest),
        round((1 + TOLERATED_SHARE) * highest) + GRAPH_BYTES + GRAPH_BYTES_PER_STEP * steps,
    )


def _compare(
    from_file: Sequence[Outputs],
    from_keras: Sequence[Outputs],
    texts: Sequence[str],
    task: AlbertTask,
    recipe: Recipe,
    sizes: dict[str, int],
) -> ExportReport:
    for text, outputs in zip(texts, from_file, strict=True):
        if not all(np.isfinite(array).all() for array in outputs.values()):
            raise ExportError(f"the file gives outputs that are not finite numbers, first for {text!r}")
    differences = np.concatenate(
        [
            np.abs(file[name] - keras[name]).ravel()
            for file, keras in zip(from_file, from_keras, strict=True)
            for name in keras
        ]
    )
    names = list(from_keras[0])
    spreads = {name: spread(name, [outputs[name] for outputs in from_keras]) for name in names}
    pipeline = pipeline_of(task)
    clear = recipe.clear_margin * max(spreads.values())
    wanted = [pipeline.decision(outputs) for outputs in from_keras]
    agrees = [pipeline.decision(file)[0] == decision for file, (decision, _) in zip(from_file, wanted, strict=True)]
    clear_ones_agree = all(same for same, (_, margin) in zip(agrees, wanted, strict=True) if margin > clear)
    report = ExportReport(
        size_bytes=sizes["size_bytes"],
        model_bytes=sizes["model_bytes"],
        bytes_per_parameter=sizes["model_bytes"] / task.count_params(),
        texts=len(texts),
        max_difference=float(differences.max()),
        mean_difference=float(differences.mean()),
        distance=max(
            distance([o[name] for o in from_file], [o[name] for o in from_keras], spreads[name]) for name in names
        ),
        agreement=float(np.mean(agrees)),
    )
    # Written so that a NaN fails it too.
    if report.distance <= recipe.max_mean_difference and clear_ones_agree:
        return report
    failed = (
        f"the file's answers differ from the Keras model's: mean difference {report.distance:.2g} (at most "
        f"{recipe.max_mean_difference:.2g} for {recipe.name}), same decision on {report.agreement:.0%} of "
        f"{len(texts)} texts"
    )
    return dataclasses.replace(report, failed=failed)


def spread(name: str, rows: Sequence[np.ndarray]) -> float:
    """What a difference of the output `name` is measured by: 1 for probabilities, else how far the values lie apart."""
    if name.endswith("probabilities"):
        return 1.0
    values = np.concatenate([np.asarray(row, np.float64).ravel() for row in rows])
    values = values[values > MASKED]
    # Of one value alone, its size: there is nothing to compare it with.
    return float(values.std() or np.abs(values).max()) or 1.0


def distance(from_file: Sequence[np.ndarray], from_keras: Sequence[np.ndarray], spread: float) -> float:
    """The mean distance of one output of all rows: of distributions the total variation, of numbers |a - b| / spread.

    A mean over the pieces of a vocabulary would be small however wrong the distribution is.
    """
    total, count = 0.0, 0
    for file, keras in zip(from_file, from_keras, strict=True):
        differences = np.abs(np.asarray(file, np.float64) - keras)
        is_distribution = keras.ndim > 0 and keras.min() >= 0 and np.allclose(keras.sum(-1), 1, atol=1e-3)
        if is_distribution and keras.shape[-1] > 1:
            differences = differences.sum(-1) / 2
        total, count = total + float(differences.sum()) / spread, count + differences.size
    return total / count
