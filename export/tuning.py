"""`albert-tf tune-device`: candidates of one model on a labelled file, and the best that keeps the bounds, as a file."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import EVALUATIONS
from albert_tf.inference.depth import EXITS, DepthChoice
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.inference.runner import Prepared
from albert_tf.tasks.base import AlbertTask
from albert_tf.training.task_runs import RUNS
from export.measurement import measure
from export.recorded import Recorded
from export.runtime import TFLiteRunner
from export.tflite import export_tflite
from export.tuning_candidates import (
    TUNED_RECIPES,
    PlannedFile,
    Shape,
    planned_files,
    reference_candidate,
    single_file,
)
from export.tuning_choice import PREFERENCES, Bounds, Candidate, Figures, by_preference, in_words, nothing_fits
from export.tuning_turns import Ran, Turn, run_in_turns
from export.validation import CHECK_TEXTS, ExportError, ExportReport


@dataclasses.dataclass(frozen=True)
class TuneRequest:
    """What is tried, and what is wanted.

    Attributes:
        examples: labelled, for accuracy and latency.
        source: what to call them.
        bounds: what the file must keep.
        prefer: of `PREFERENCES`.
        metric: the figure that counts; None for the task's own. More of it must be better.
        recipes: how weights are stored.
        passes: how many are tried; None for all that there can be.
        exit_rules: of a model with early exits; None for its own.
    """

    examples: Sequence[Any]
    source: str
    bounds: Bounds
    prefer: str = PREFERENCES[0]
    metric: str | None = None
    recipes: Sequence[str] = TUNED_RECIPES
    passes: Sequence[int] | None = None
    exit_rules: Sequence[str] | None = None


@dataclasses.dataclass(frozen=True)
class OpenFile:
    """A file of candidates, ready to run."""

    path: Path
    runner: TFLiteRunner
    memory_bytes: int
    report: ExportReport


@dataclasses.dataclass(frozen=True)
class Tried:
    """What was found of the candidates.

    Attributes:
        metric: the name of `Figures.value`.
        reference: the plain dynamic_int8 file, all passes.
        figures: of all candidates that were run, the reference first.
        left_out: names of the others → why.
        prepared: the rows of the examples.
        reference_file: the file of `reference`.
    """

    metric: str
    reference: Figures
    figures: list[Figures]
    left_out: dict[str, str]
    prepared: Prepared
    reference_file: OpenFile


@dataclasses.dataclass(frozen=True)
class Chosen:
    """The file that is taken.

    Attributes:
        path: where it lies.
        figures: of this very file, taken in turns with the reference.
        report: of its export, with metrics on the examples.
    """

    path: Path
    figures: Figures
    report: ExportReport


def tuned_metrics(task: str) -> tuple[str, ...]:
    """The figures of a task that can be tuned for: those of which more is better, the task's own first."""
    known = next(run.metrics for run, _ in RUNS if run.task == task)
    return tuple(name for name in known if not name.endswith(("loss", "error")))


def try_candidates(
    variants: Mapping[Shape, AlbertTask], request: TuneRequest, folder: Path, *, report: Callable[[str], None] = print
) -> Tried:
    """Exports and runs the candidates.

    Args:
        variants: the model as it is, then narrower ones, by heads and columns; for a task that has figures.
        request: what is tried.
        folder: an empty one, for the files.
        report: receives lines of progress.

    Raises:
        InputError: a request that does not go with the model, or examples that it cannot answer.
        ExportError: the reference cannot be made at all.
    """
    task = next(iter(variants.values()))
    _check(request, task)
    plans = list(planned_files(variants, recipes=request.recipes, passes=request.passes, exit_rules=request.exit_rules))
    prepared = pipeline_of(task).prepare(request.examples)
    longest = max(len(token_ids) for token_ids, _ in prepared.rows)
    reference = reference_candidate(task)
    report(f"reference: {reference.name}")
    first = open_file(single_file(task, reference), folder / "reference.tflite", longest, force=True)
    if first.report.failed:
        report(f"note: the reference itself would not be written: {first.report.failed}")
    turns, candidates = [Turn(first.runner, DepthChoice())], [(reference, first)]
    left_out: dict[str, str] = {}
    for number, plan in enumerate(plans, start=1):
        file, reason = _within_size(plan, folder / f"{number}.tflite", longest, request.bounds.max_size, report)
        for candidate, choice in plan.served:
            if file is None:
                left_out[candidate.name] = reason
            else:
                turns.append(Turn(file.runner, choice))
                candidates.append((candidate, file))
    report(f"{len(turns)} candidates take turns on {len(request.examples):,} examples of {request.source}")
    ran = run_in_turns(turns, prepared.rows)
    metric, figures = _all_figures(candidates, ran, prepared, request)
    return Tried(metric, figures[0], figures, left_out, prepared, first)


def make_chosen(
    variants: Mapping[Shape, AlbertTask],
    request: TuneRequest,
    tried: Tried,
    folder: Path,
    *,
    report: Callable[[str], None] = print,
) -> Chosen:
    """The preferred candidate as a file that needs no inputs to be it; where that misses a bound after all, the next.

    Args:
        variants, request, folder: as for `try_candidates`, which gave `tried`.
        tried: what was found.
        report: receives lines of progress.

    Raises:
        TuningError: no candidate keeps the bounds.
    """
    bounds = request.bounds
    missed = [one for one in tried.figures if bounds.excesses(one)]
    left_out = dict(tried.left_out)
    longest = max(len(token_ids) for token_ids, _ in tried.prepared.rows)
    for number, wanted in enumerate(by_preference(tried.figures, bounds, request.prefer), start=1):
        candidate = wanted.candidate
        plan = single_file(variants[candidate.shape], candidate)
        path = folder / f"chosen{number}.tflite"
        try:
            file = open_file(plan, path, longest, checked_on=request)
        except ExportError as error:
            left_out[candidate.name] = str(error)
            report(f"{candidate.name}: not taken: {error}")
            continue
        turns = [Turn(tried.reference_file.runner, DepthChoice()), Turn(file.runner, DepthChoice())]
        ran = run_in_turns(turns, tried.prepared.rows)
        both = [(tried.reference.candidate, tried.reference_file), (candidate, file)]
        _, (_, figures) = _all_figures(both, ran, tried.prepared, request)
        if not (excesses := bounds.excesses(figures)):
            return Chosen(path, figures, file.report)
        missed.append(figures)
        report(f"{candidate.name}: not taken, as its own file has {in_words(excesses)}")
    raise nothing_fits(missed, bounds, left_out)


def open_file(
    plan: PlannedFile, path: Path, longest: int, *, force: bool = False, checked_on: TuneRequest | None = None
) -> OpenFile:
    """Exports a file, takes its memory on a row of `longest` tokens, and opens it.

    Args:
        plan: what it is.
        path: where it goes.
        longest: tokens of the longest row of the examples.
        force: of a file that is only compared with: also where `export_tflite` would not write it.
        checked_on: of a file that is to be kept, what has the examples for its report.

    Raises:
        ExportError: the file is not one that `export_tflite` writes.
    """
    report = export_tflite(
        plan.model(),
        path,
        recipe=plan.recipe,
        adaptive=plan.adaptive,
        exits=plan.exits if plan.adaptive == EXITS else None,
        examples=None if checked_on is None else checked_on.examples,
        source="examples" if checked_on is None else checked_on.source,
        measure=checked_on is not None,
        force=force,
    )
    found = measure(path, CHECK_TEXTS[:1], repeats=1, lengths=[longest])
    return OpenFile(path, TFLiteRunner(path), found.memory_growth_bytes - found.tokenizer_growth_bytes, report)


def _check(request: TuneRequest, task: AlbertTask) -> None:
    if not request.examples:
        raise InputError(f"{request.source}: expected at least one labelled example")
    if task.task not in EVALUATIONS:
        raise InputError(f"expected a model for {', '.join(EVALUATIONS)}; this one is for {task.task}")
    known = tuned_metrics(task.task)
    if request.metric is not None and request.metric not in known:
        raise InputError(f"--metric: expected one of {', '.join(known)} for {task.task}; got {request.metric}")
    if request.prefer not in PREFERENCES:
        raise InputError(f"prefer: expected one of {', '.join(PREFERENCES)}; got {request.prefer!r}")


def _within_size(
    plan: PlannedFile, path: Path, longest: int, max_size: int | None, report: Callable[[str], None]
) -> tuple[OpenFile | None, str]:
    """The file, or why there is none: it would be too large, which is looked at before it is made, or is not fit."""
    names = "; ".join(candidate.name for candidate, _ in plan.served)
    if max_size is not None and (least := plan.least_bytes()) > max_size:
        return None, f"at least {least:,} bytes, at most {max_size:,} wanted"
    report(f"export: {names}")
    try:
        return open_file(plan, path, longest), ""
    except ExportError as error:
        report(f"left out: {error}")
        return None, str(error)


def _all_figures(
    candidates: Sequence[tuple[Candidate, OpenFile]], ran: Sequence[Ran], prepared: Prepared, request: TuneRequest
) -> tuple[str, list[Figures]]:
    """The name of the metric, and the figures of each, in comparison with the first."""
    task = candidates[0][1].runner.task
    # Figures of question answering are in percent, others in shares of 1.
    points = 1.0 if task == "question-answering" else 100.0
    found, metric, examples = [], request.metric, len(request.examples)
    for (_, file), one in zip(candidates, ran, strict=True):
        pipeline = pipeline_of(Recorded(file.runner, one.outputs))
        metrics = EVALUATIONS[task](pipeline, request.examples, prepared, request.source)
        metric = metric or next(name for name in tuned_metrics(task) if name in metrics)
        if metric not in metrics:
            raise InputError(f"--metric: {request.source} gives no {metric}; leave it out")
        found.append(float(metrics[metric]))
    return metric or "", [
        Figures(
            candidate,
            value=value,
            points_lost=points * (found[0] - value),
            latency_ms=1e3 * one.seconds / examples,
            latency_ratio=one.seconds / ran[0].seconds,
            mean_passes=one.mean_passes(candidate.num_passes),
            size_bytes=file.path.stat().st_size,
            memory_bytes=file.memory_bytes,
        )
        for (candidate, file), one, value in zip(candidates, ran, found, strict=True)
    ]
