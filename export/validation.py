"""Is a TFLite file the model it was made from, and what does it cost? Asked of every file before it is written."""

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.data.choices import ChoiceExample
from albert_tf.data.schema import TOKEN_IDS
from albert_tf.errors import CheckError, InputError
from albert_tf.evaluation.evaluate import EVALUATIONS
from albert_tf.evaluation.remembering import RememberingRunner
from albert_tf.inference.depth import EXITS
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.inference.runner import Outputs, Prepared
from albert_tf.tasks.base import AlbertTask
from albert_tf.training.task_runs import RUNS
from export.adaptive import DepthReport, depth_report, every_pass, without_depth
from export.comparison import Comparison, MetricPair, compare
from export.inspection import OperatorCount, duplicates, float_operators, operator_counts
from export.measurement import Measurement, measure
from export.model_size import size_limits, tokenizer_bytes
from export.quantization import Recipe
from export.runtime import TFLiteRunner
from export.signatures import Length
from export.tflite_model import Model, read_model

# How much of its metric a file may lose on labelled examples, beside one example's share.
MOST_LOST = 0.02
# Latency is measured on rows of these lengths, as far as the file takes them.
MEASURED_LENGTHS = (16, 32, 64, 128)
MEASURED_TEXTS = 8
# What a tokenizer in the graph may read in another way: docs/tokenizer.md.
LEAST_SAME_IDS = 0.9
_OPTIONS = 3  # of a question that is made of texts

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
        recipe, form, length: how it was made.
        parameters: of the Keras model.
        size_bytes: the whole file.
        model_bytes: without the associated files.
        tokenizer_bytes: of the model, what a tokenizer in the graph takes.
        bytes_per_parameter: of the model without it.
        repeated_bytes: what equal weights take that are stored more than once.
        operators: of all graphs together.
        float_operators: those that compute in floats in a file that computes in integers; None in another one.
        finite_outputs: whether every output was a finite number.
        comparison: of the outputs with the Keras model's.
        largest_distance: what the recipe allows of `comparison.distance`.
        same_ids: share of the texts to which the signature for strings gives the tokenizer's ids; None without one.
        metrics: on labelled examples, by name; the first is the task's own. Empty without examples.
        device: memory, load and latency on this machine, where they were measured.
        depth: of a file with early exits, how deep it goes.
        failed: why the file should not have been written; empty unless it was forced.
    """

    recipe: str
    form: str
    length: Length
    parameters: int
    size_bytes: int
    model_bytes: int
    tokenizer_bytes: int
    bytes_per_parameter: float
    repeated_bytes: int
    operators: tuple[OperatorCount, ...]
    float_operators: dict[str, int] | None
    finite_outputs: bool
    comparison: Comparison
    largest_distance: float
    same_ids: float | None
    metrics: dict[str, MetricPair]
    device: Measurement | None
    depth: DepthReport | None = None
    failed: str = ""


def check_export(
    content: bytes,
    *,
    model_bytes: int,
    task: AlbertTask,
    recipe: Recipe,
    texts: Sequence[str] | None = None,
    examples: Sequence[Any] | None = None,
    source: str = "examples",
    force: bool = False,
    measured: bool = False,
) -> ExportReport:
    """Compares the file with the task it was made from.

    Args:
        content: the whole file.
        model_bytes: length of the model in it, before the associated files.
        task: the float32 Keras task.
        recipe: how the file's weights are stored.
        texts: what to compare on; None for built-in sentences.
        examples: the task's examples with their answers, to compare on instead; metrics are taken on them.
        source: what to call the examples in an error message.
        force: report answers that differ too much instead of raising.
        measured: also load and run the file in a process of its own, for `ExportReport.device`.

    Raises:
        ExportError: the file cannot be run, its size does not fit the parameters, its tokenizer is another one, an output
            is not finite, or the answers differ too much.
        InputError: nothing to compare on, or examples that this task has no figures for.
    """
    check_examples(task, texts, examples)
    texts = list(CHECK_TEXTS if texts is None else texts)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(content)
        try:
            runner = TFLiteRunner(path)
        except InputError as error:
            raise ExportError(f"the file cannot be run: {str(error).removeprefix(f'{path}: ')}") from error
        model = read_model(content)
        _check_size(model_bytes - tokenizer_bytes(model), task, recipe, runner)
        rows = task.required_tokenizer.encode_batch(texts, length=runner.tokenizer.max_length)
        if runner.tokenizer.encode_batch(texts) != rows:
            raise ExportError("the file's tokenizer gives other ids than the model's: it is not the same tokenizer")
        comparison, metrics, depth = _compared(runner, task, texts, examples, source, recipe)
        same_ids = _check_text_input(path, runner, texts, recipe) if runner.settings.get("text_input") else None
        device = _measured(path, runner, texts) if measured else None
    report = _report(
        model,
        runner,
        task,
        recipe,
        size_bytes=len(content),
        model_bytes=model_bytes,
        comparison=comparison,
        metrics=metrics,
        same_ids=same_ids,
        device=device,
        depth=depth,
    )
    report = dataclasses.replace(report, failed=_failed(report, recipe, task, len(examples or ())))
    if report.failed and not force:
        more_bits = "" if recipe.weight_bytes == 4 else "a recipe with more bits may keep the answers, and "
        raise ExportError(f"{report.failed}; {more_bits}force (--force) writes the file all the same")
    return report


def check_examples(task: AlbertTask, texts: Sequence[str] | None, examples: Sequence[Any] | None) -> None:
    """What can be said about the texts and examples before there is a file.

    Raises:
        InputError: both, none of one kind, or examples for a task without figures.
    """
    if texts is not None and not len(texts):
        raise InputError("texts: expected at least one text to compare the file and the model on")
    if examples is None:
        return
    if texts is not None:
        raise InputError("texts and examples: expected one of the two to compare the file and the model on, got both")
    if not len(examples):
        raise InputError("examples: expected at least one example to compare the file and the model on")
    if task.task not in EVALUATIONS:
        raise InputError(
            f"examples: no figures are taken of models for {task.task}; expected one for {', '.join(EVALUATIONS)}"
        )


def _check_size(model_bytes: int, task: AlbertTask, recipe: Recipe, runner: TFLiteRunner) -> None:
    settings = runner.settings
    text_input = bool(settings.get("text_input"))
    lowest, highest = size_limits(task, recipe, form=settings["form"], length=runner.length, text_input=text_input)
    if not lowest <= model_bytes <= highest:
        raise ExportError(
            f"{task.count_params():,} parameters as {recipe.name} should take {lowest:,} to {highest:,} bytes, the model "
            f"has {model_bytes:,}: weights are missing from it or stored more than once"
        )


def _check_text_input(path: Path, runner: TFLiteRunner, texts: list[str], recipe: Recipe) -> float:
    """Compares the signature for strings with that for ids; the share of texts that get the tokenizer's ids."""
    from export.text_input import run_texts

    try:
        from_texts = run_texts(path, texts)
    except (ValueError, RuntimeError) as error:
        raise ExportError(f"the signature for strings cannot be run: {str(error).splitlines()[0]}") from error
    rows = [(ids.tolist(), [0] * len(ids)) for ids in (outputs.pop(TOKEN_IDS) for outputs in from_texts)]
    found = compare(from_texts, runner.run_rows(rows), runner.pipeline, None, recipe.clear_margin)
    same = float(np.mean([a == b for a, b in zip(rows, runner.tokenizer.encode_batch(texts), strict=True)]))
    if not found.distance <= recipe.max_mean_difference or same < LEAST_SAME_IDS:
        raise ExportError(
            f"the signature for strings gives other answers than that for ids: mean difference {found.distance:.2g}, the "
            f"tokenizer's ids for {same:.0%} of {len(texts)} texts"
        )
    return same


def _compared(
    file: TFLiteRunner,
    task: AlbertTask,
    texts: list[str],
    examples: Sequence[Any] | None,
    source: str,
    recipe: Recipe,
) -> tuple[Comparison, dict[str, MetricPair], DepthReport | None]:
    """The comparison of outputs, metrics where there are examples, and depths where there are early exits.

    Outputs are compared after all passes: an exit one pass sooner is another answer, though as good a one. Metrics are
    those of the file as it will be used. No row is run twice in the same way.
    """
    exits = file.adaptive == EXITS
    runners = RememberingRunner(file), RememberingRunner(task)
    pipelines = [pipeline_of(runner) for runner in runners]
    prepared = _rows_of_texts(file, task, texts) if examples is None else pipelines[0].prepare(examples)
    with every_pass(file if exits else None, task if task.exits is not None else None):
        from_file, from_keras = (runner.run_rows(prepared.rows) for runner in runners)
    _check_finite(from_file, prepared)
    outputs = without_depth(from_file), without_depth(from_keras)
    comparison = compare(*outputs, pipelines[1], prepared.context, recipe.clear_margin)
    depth = None
    if exits:
        for runner in runners:
            runner.forget()
        from_file, from_keras = (runner.run_rows(prepared.rows) for runner in runners)
        depth = depth_report(from_file, from_keras, task.backbone.config.num_layers)
    if examples is None:
        return comparison, {}, depth
    # A file of fixed length may cut what the model reads whole: its metrics are to tell.
    whole = pipelines[1].prepare(examples)
    if whole.rows == prepared.rows:
        whole = prepared
    evaluate = EVALUATIONS[task.task]
    with every_pass(task if task.exits is not None and not exits else None):
        figures = [
            evaluate(pipeline, examples, rows, source)
            for pipeline, rows in zip(pipelines, (prepared, whole), strict=True)
        ]
    return comparison, _metric_pairs(task, *figures), depth


def _rows_of_texts(file: TFLiteRunner, task: AlbertTask, texts: list[str]) -> Prepared:
    """Rows for any task: texts alone, pairs where every row is one, questions with options where rows are options."""
    if task.task == "multiple-choice":
        around = [[texts[(i + k) % len(texts)] for k in range(_OPTIONS + 1)] for i in range(len(texts))]
        return file.pipeline.prepare([ChoiceExample(context, "", tuple(options)) for context, *options in around])
    return Prepared(file.tokenizer.encode_batch(texts, texts[::-1] if task.takes_pairs else None))


def _check_finite(outputs: Sequence[Outputs], prepared: Prepared) -> None:
    for number, row in enumerate(outputs, start=1):
        if not all(np.isfinite(array).all() for array in row.values()):
            raise ExportError(
                f"the file gives outputs that are not finite numbers, first for row {number} of {len(prepared.rows)}"
            )


def _metric_pairs(task: AlbertTask, file: dict[str, Any], keras: dict[str, Any]) -> dict[str, MetricPair]:
    """The flat figures that both have, those that pick the best weights of a training first."""
    own = next(run.metrics for run, _ in RUNS if run.task == task.task)
    names = [*own, *(name for name in file if name not in own and name != "examples")]
    both = [(n, file.get(n), keras.get(n)) for n in names]
    return {
        name: MetricPair(float(k), float(f), float(f) - float(k))
        for name, f, k in both
        if isinstance(f, (int, float)) and isinstance(k, (int, float))
    }


def _measured(path: Path, runner: TFLiteRunner, texts: list[str]) -> Measurement:
    lengths = runner.lengths or [n for n in MEASURED_LENGTHS if n <= runner.tokenizer.max_length]
    try:
        return measure(path, texts[:MEASURED_TEXTS], repeats=1, lengths=lengths or [runner.tokenizer.max_length])
    except InputError as error:
        raise ExportError(f"the file cannot be measured: {str(error).removeprefix(f'{path}: ')}") from error


def _report(
    model: Model, runner: TFLiteRunner, task: AlbertTask, recipe: Recipe, *, model_bytes: int, **found: Any
) -> ExportReport:
    """What the model itself says, beside what was `found` by running it."""
    in_graph = tokenizer_bytes(model)
    return ExportReport(
        recipe=recipe.name,
        form=runner.settings["form"],
        length=runner.length,
        parameters=task.count_params(),
        model_bytes=model_bytes,
        tokenizer_bytes=in_graph,
        bytes_per_parameter=(model_bytes - in_graph) / task.count_params(),
        repeated_bytes=sum((group["copies"] - 1) * group["bytes"] for group in duplicates(model)),
        operators=operator_counts(model.subgraphs),
        float_operators=float_operators(model),
        finite_outputs=True,  # or there is no report
        largest_distance=recipe.max_mean_difference,
        **found,
    )


def _failed(report: ExportReport, recipe: Recipe, task: AlbertTask, examples: int) -> str:
    """Why the file is not to be written; empty where nothing speaks against it."""
    reasons, found = [], report.comparison
    # Written so that a NaN fails it too.
    if not (found.distance <= recipe.max_mean_difference and found.clear_ones_agree):
        decisions = "" if found.agreement is None else f", same decision on {found.agreement:.0%} of {found.rows} rows"
        reasons.append(
            f"the file's answers differ from the Keras model's: mean difference {found.distance:.2g} (at most "
            f"{recipe.max_mean_difference:.2g} for {recipe.name}){decisions}"
        )
    if report.metrics:
        name, pair = next(iter(report.metrics.items()))
        whole = 100.0 if task.task == "question-answering" else 1.0  # its figures are in percent
        allowed = whole * (MOST_LOST + 1 / examples)
        if not -pair.difference <= allowed:
            reasons.append(
                f"{name} on the examples is {pair.file:.4g}, the Keras model's {pair.keras:.4g}: lower by more than "
                f"{allowed:.2g}"
            )
    return "; ".join(reasons)
