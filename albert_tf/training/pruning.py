"""Pruning of a checkpoint: what to keep, what the task's figures are without the rest, and the narrower checkpoint."""

import dataclasses
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.conversion.checkpoint import Checkpoint
from albert_tf.conversion.pruning import Importance, Indices, Kept, cut, magnitudes
from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import EVALUATIONS
from albert_tf.evaluation.html_charts import spread
from albert_tf.evaluation.pruning_report import pruning_page
from albert_tf.evaluation.report import write_json
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.parameters import multiply_adds
from albert_tf.presets import TASK_FILE, load_tokenizer, save_preset
from albert_tf.tasks.base import AlbertTask
from albert_tf.training.finetune import TASKS
from albert_tf.training.finetune_rounds import Examples
from albert_tf.training.importance import gradient_importance
from albert_tf.training.run_folder import METRICS_FILE, REPORT_FILE
from albert_tf.training.task_runs import RUNS

CRITERIA = ("gradient", "magnitude")
PRUNING_FILE = "pruning.json"
USUAL_TOKENS = 128.0  # of a text, where there is none to count


@dataclasses.dataclass(frozen=True)
class PruneRequest:
    """What is to be pruned, and how it is decided.

    Attributes:
        heads: how many heads each attention block keeps, or which share of them; None: all.
        columns: how many columns each feed-forward block keeps, or which share of them; None: all.
        keep_heads: the heads that each attention block keeps, instead of the most important ones.
        criterion: of `CRITERIA`.
        data: labelled examples and their file, for "gradient".
        valid: labelled examples and their file, for the task's figures before, after and in between.
        most_examples: of `data` no more are gone through, evenly taken.
        keep_shares: the shares of heads and of columns whose combinations are tried on `valid`.
        each_head: also try the removal of every single head.
    """

    heads: int | float | None = None
    columns: int | float | None = None
    keep_heads: Indices | None = None
    criterion: str = "gradient"
    data: tuple[list[Any], str] | None = None
    valid: tuple[list[Any], str] | None = None
    most_examples: int = 2000
    keep_shares: tuple[float, ...] = (1.0,)
    each_head: bool = False


def prune(
    checkpoint: Checkpoint,
    request: PruneRequest,
    *,
    stored_bytes: Callable[[str, Sequence[int]], float],
    report: Callable[[str], None] = print,
) -> tuple[Checkpoint, dict[str, Any]]:
    """The narrower checkpoint, and the record of what was removed.

    Args:
        checkpoint: a task's for "gradient" and for figures; any other for "magnitude".
        request: what is to be done.
        stored_bytes: bytes that a weight of this name and shape takes in a device file.
        report: receives lines of progress.

    Raises:
        InputError: there is less than is to be kept, or nothing would be removed; or a file or a checkpoint that the
            criterion or the figures cannot use.
    """
    config = checkpoint.config
    shape = wanted_shape(config, request)
    data = _prepared(checkpoint, request.data, most=request.most_examples)
    valid = _prepared(checkpoint, request.valid)
    importance = _importance(checkpoint, request.criterion, data, report)
    kept = importance.best(*shape)
    if request.keep_heads is not None:
        kept = dataclasses.replace(kept, heads=request.keep_heads)
    pruned = narrowed(checkpoint, kept)
    texts = valid or data
    tokens = USUAL_TOKENS if texts is None else float(np.mean([len(ids) for ids, _ in texts.prepared.rows]))

    def figures(found: Checkpoint) -> dict[str, Any]:
        return shape_figures(found, tokens, stored_bytes)

    record: dict[str, Any] = {
        "source": checkpoint.source,
        "importance": request.criterion,
        "data": None if data is None else data.source,
        "examples": None if data is None else len(data.examples),
        "tokens": tokens,
        "before": figures(checkpoint),
        "after": figures(pruned),
        "attention": _blocks(kept.heads, importance.heads),
        "feed_forward": _blocks(kept.columns, importance.columns),
    }
    if valid is not None:
        record |= _validated(checkpoint, request, importance, kept, valid, figures, report)
    return pruned, record


def pruned_shapes(
    checkpoint: Checkpoint,
    shares: Sequence[float],
    data: tuple[list[Any], str],
    *,
    most_examples: int,
    report: Callable[[str], None] = print,
) -> Iterator[tuple[tuple[int, int], Checkpoint]]:
    """For every combination of shares of heads and of columns, the numbers that are kept and the narrower checkpoint; the
    most important ones are kept, by gradients on labelled examples.

    Args:
        checkpoint: a task's.
        shares: above 0, at most 1; where both are 1, nothing is removed, and nothing is given.
        data: labelled examples and their file.
        most_examples: of them no more are gone through, evenly taken.
        report: receives lines of progress.
    """
    config = checkpoint.config
    importance = _importance(checkpoint, "gradient", _prepared(checkpoint, data, most_examples), report)
    for heads in _grid(shares, config.num_heads):
        for columns in _grid(shares, config.intermediate_dim):
            if (heads, columns) != (config.num_heads, config.intermediate_dim):
                yield (heads, columns), narrowed(checkpoint, importance.best(heads, columns))


def wanted_shape(config: AlbertConfig, request: PruneRequest) -> tuple[int, int]:
    """How many heads and columns a block keeps.

    Raises:
        InputError: not fewer than there are, or none.
    """
    heads = _count(request.heads, config.num_heads, "--heads")
    if request.keep_heads is not None:
        heads = len(request.keep_heads[0])
    return heads, _count(request.columns, config.intermediate_dim, "--intermediate-dim")


def narrowed(checkpoint: Checkpoint, kept: Kept) -> Checkpoint:
    """The checkpoint without what is not kept."""
    config, weights = cut(checkpoint.config, checkpoint.weights, kept)
    return dataclasses.replace(checkpoint, config=config, weights=weights)


def shape_figures(
    checkpoint: Checkpoint, tokens: float, stored_bytes: Callable[[str, Sequence[int]], float]
) -> dict[str, Any]:
    """How large the model is, and how much it computes for each token of a text of `tokens`."""
    config = checkpoint.config
    return {
        "heads": config.num_heads,
        "columns": config.intermediate_dim,
        "parameters": sum(weight.size for weight in checkpoint.weights.values()),
        "int8_bytes": round(sum(stored_bytes(name, weight.shape) for name, weight in checkpoint.weights.items())),
        "multiply_adds_per_token": round(multiply_adds(config, tokens)),
    }


def write_pruned(checkpoint: Checkpoint, record: Mapping[str, Any], out: str | Path, *, overwrite: bool) -> None:
    """Writes the checkpoint as a preset folder, whole, with the record as pruning.json and as a page; of a task also what
    its runs have beside the model."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_json(folder / PRUNING_FILE, record)
        (folder / REPORT_FILE).write_text(pruning_page(record, Path(out).name), encoding="utf-8")
        if checkpoint.task is not None:
            (folder / TASK_FILE).write_text(
                json.dumps(checkpoint.task, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
            )
        if "valid" in record:
            write_json(folder / METRICS_FILE, {"parameters": record["after"]["parameters"], "valid": record["valid"]})
        if checkpoint.task is not None and checkpoint.task["task"] in TASKS:
            TASKS[_task_of(checkpoint)].write(folder, model_of(checkpoint), record.get("valid", {}))
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
    tokenizer = load_tokenizer(checkpoint)
    save_preset(out, checkpoint.config, checkpoint.weights, tokenizer, extra_files=files, overwrite=overwrite)


def _count(asked: int | float | None, there: int, flag: str) -> int:
    if asked is None:
        return there
    count = asked if isinstance(asked, int) else max(1, round(asked * there)) if 0 < asked < 1 else 0
    if not 1 <= count < there:
        raise InputError(
            f"{flag}: expected 1 to {there - 1}, of {there} there are, or a share such as 0.5; got {asked}"
        )
    return count


def _task_of(checkpoint: Checkpoint) -> str:
    task = None if checkpoint.task is None else checkpoint.task["task"]
    if task not in TASKS:
        held = "no fine-tuned model" if task is None else f"a model for {task}"
        raise InputError(
            f"{checkpoint.source}: holds {held}; labelled files go with models for {', '.join(TASKS)}. Without a file, "
            "--importance magnitude takes any checkpoint"
        )
    return task


def model_of(checkpoint: Checkpoint) -> AlbertTask:
    """The fine-tuned model in a checkpoint, which keeps its weights."""
    copied = dataclasses.replace(checkpoint, weights=dict(checkpoint.weights))  # a model takes the weights out of it
    return TASKS[_task_of(checkpoint)].model_class.from_checkpoint(copied)


def _prepared(checkpoint: Checkpoint, given: tuple[list[Any], str] | None, most: int | None = None) -> Examples | None:
    """The examples, of many some, ready for the model."""
    if given is None:
        return None
    examples, source = given
    if most is not None:
        examples = [examples[place] for place in spread(len(examples), most)]
    return Examples(examples, pipeline_of(model_of(checkpoint)).prepare(examples), source)


def _importance(
    checkpoint: Checkpoint, criterion: str, data: Examples | None, report: Callable[[str], None]
) -> Importance:
    if criterion == "magnitude":
        return magnitudes(checkpoint.config, checkpoint.weights)
    if data is None:
        raise InputError(
            "--importance gradient needs labelled texts: give --data FILE, or --importance magnitude, which needs none"
        )
    model, task = model_of(checkpoint), TASKS[_task_of(checkpoint)]
    report(f"gradients of {len(data.examples):,} examples of {data.source}")
    return gradient_importance(model, task.training_rows(model, data.examples, data.prepared, data.source))


def _validated(
    checkpoint: Checkpoint,
    request: PruneRequest,
    importance: Importance,
    kept: Kept,
    valid: Examples,
    figures: Callable[[Checkpoint], dict[str, Any]],
    report: Callable[[str], None],
) -> dict[str, Any]:
    """The parts of the record that are taken on the validation file."""
    task = _task_of(checkpoint)

    def metrics(found: Checkpoint) -> dict[str, Any]:
        return EVALUATIONS[task](pipeline_of(model_of(found)), valid.examples, valid.prepared, valid.source)

    before = metrics(checkpoint)
    (known,) = (run.metrics for run, _ in RUNS if run.task == task)
    metric = next(name for name in known if name in before)
    config = checkpoint.config
    trials = {kept.shape: kept}
    for heads in _grid(request.keep_shares, config.num_heads):
        for columns in _grid(request.keep_shares, config.intermediate_dim):
            trials.setdefault((heads, columns), importance.best(heads, columns))
    rows, valid_figures = [], before
    for shape, trial in sorted(trials.items(), reverse=True):
        whole = trial == Kept.all_of(config)
        found = checkpoint if whole else narrowed(checkpoint, trial)
        measured = before if whole else metrics(found)
        if shape == kept.shape:
            valid_figures = measured
        rows.append(figures(found) | {metric: measured[metric]})
        report(f"{shape[0]} heads, {shape[1]:,} columns: {metric.replace('_', ' ')} {measured[metric]:.4f}")
    result = {"valid_data": valid.source, "valid_examples": len(valid.examples), "metric": metric}
    result |= {"valid_before": before, "valid": valid_figures, "sensitivity": rows}
    if request.each_head:
        result["without_head"] = [
            [metrics(_without_head(checkpoint, block, head))[metric] for head in range(config.num_heads)]
            for block in range(config.num_blocks[0])
        ]
    return result


def _grid(shares: Sequence[float], there: int) -> list[int]:
    return sorted({there, *(max(1, round(share * there)) for share in shares)}, reverse=True)


def _without_head(checkpoint: Checkpoint, block: int, head: int) -> Checkpoint:
    """One head's outputs go nowhere. (It is not cut out: a config has one number of heads for all blocks.)"""
    name, width = f"encoder/attention_{block}/output/kernel", checkpoint.config.head_dim
    kernel = checkpoint.weights[name].copy()
    kernel[head * width : (head + 1) * width] = 0.0
    return dataclasses.replace(checkpoint, weights=checkpoint.weights | {name: kernel})


def _blocks(kept: Indices, importance: Sequence[np.ndarray]) -> list[dict[str, Any]]:
    return [
        {
            "kept": list(numbers),
            "removed": sorted(set(range(len(values))) - set(numbers)),
            "importance": [float(value) for value in values],
        }
        for numbers, values in zip(kept, importance, strict=True)
    ]
