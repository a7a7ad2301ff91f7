"""Fine-tuning of sentence encoders."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.data.rows import start_of
from albert_tf.data.similarity import (
    SimilarityExample,
    belonging_together,
    columns_there,
    read_embedded,
    read_similarity,
    scores_of,
)
from albert_tf.data.tables import discover_labels, encode_labels
from albert_tf.errors import InputError
from albert_tf.inference.runner import Prepared
from albert_tf.inference.similarity import text_numbers
from albert_tf.tasks.similarity import AlbertTextEmbedder
from albert_tf.training.task_runs import SimilarityRun
from albert_tf.training.tasks.finetune_task import TrainingRows

_NEEDED = {
    "cosine": "a number for each pair",
    "contrastive": "pairs that belong together, without labels (or --positive-label)",
    "softmax": "a label for each pair",
}


class FinetuneSimilarity:
    """Pairs or triples → `AlbertTextEmbedder`; see `FinetuneTask`.

    A validation file need not be of the training file's kind: with scores it gives correlations, without them retrieval,
    and named columns that it does not have are those of the training file (`columns_there`).
    With --loss vectors the training file is plain text.
    """

    model_class = AlbertTextEmbedder
    metric = "spearman"

    def read(self, run: SimilarityRun, path: str, report: Callable[[str], None]) -> list[SimilarityExample]:
        if path == run.train and run.vectors is not None:
            return read_embedded(path, run.vectors)
        asked = {role: getattr(run, role) for role in ("text_column", "pair_column", "label_column", "negative_column")}
        examples = read_similarity(path, **(asked if path == run.train else columns_there(path, asked)))
        if run.positive_label is not None and (path == run.train or {e.label for e in examples} & {run.positive_label}):
            kept = belonging_together(examples, run.positive_label, run.negative_label, path)
            report(f"{path}: {len(kept)} of {len(examples)} pairs belong together")
            examples = kept
        if path == run.valid:
            _check_best_metric(run, examples, path)
        return examples

    def head_settings(self, run: SimilarityRun, examples: Sequence[SimilarityExample]) -> dict[str, Any]:
        labels, projection = None, {} if run.projection_dim is None else {"projection_dim": run.projection_dim}
        if run.loss == "vectors":
            projection = {"projection_dim": _vector_length(run, examples)}
        elif run.loss != "contrastive" and any(example.negative is not None for example in examples):
            raise InputError(f"{run.train}: has triples, which --loss contrastive takes; {run.loss} takes pairs")
        elif (run.loss == "contrastive") != all(example.label is None for example in examples):
            found = "none" if run.loss != "contrastive" else f"labels such as {examples[0].label!r}"
            raise InputError(f"{run.train}: --loss {run.loss} needs {_NEEDED[run.loss]}; found {found}")
        if run.loss == "softmax":
            labels = discover_labels(examples, run.label_file, source=run.train)
        if run.loss == "cosine":
            _check_scores(examples, run)
        return {
            "pooling": run.pooling,
            "normalize": not run.raw_embeddings,
            "objective": run.loss,
            "max_score": run.max_score,
            "scale": run.scale,
            "labels": labels,
        } | projection

    def training_rows(
        self, model: AlbertTextEmbedder, examples: Sequence[SimilarityExample], prepared: Prepared, source: str
    ) -> TrainingRows:
        if vectors := [example.vector for example in examples if example.vector is not None]:
            return TrainingRows(prepared.rows, {"vector": np.stack(vectors)})
        numbers = text_numbers(prepared)
        rows = numbers.shape[1]
        if model.objective == "contrastive" or all(example.label is None for example in examples):
            if (numbers[:, 0] == numbers[:, 1]).all():
                raise InputError(f"{source}: expected pairs of two different texts, found none")
            if rows == 3 and (same := np.flatnonzero(numbers[:, 2] == numbers[:, 1])).size:
                first = start_of(examples[same[0]].text)
                raise InputError(f"{source}, row {same[0] + 1} ({first}): the second and the third text are the same")
            return TrainingRows(prepared.rows, {"texts": numbers}, rows)
        if model.labels and not {example.label for example in examples}.isdisjoint(model.labels):
            return TrainingRows(prepared.rows, {"label": encode_labels(examples, model.labels, source)}, rows)
        return TrainingRows(prepared.rows, {"value": scores_of(examples, source)}, rows)

    def describe(self, model: AlbertTextEmbedder) -> str:
        return f"{model.pooling} pooling, {model.objective} loss"

    def write(self, folder: Path, model: AlbertTextEmbedder, metrics: dict[str, Any]) -> None:
        pass


def _vector_length(run: SimilarityRun, examples: Sequence[SimilarityExample]) -> int:
    """The length of the vectors to learn, which has to be that of the embeddings."""
    length = next(len(example.vector) for example in examples if example.vector is not None)
    if run.projection_dim not in (None, length):
        raise InputError(
            f"--projection-dim {run.projection_dim}: the vectors in {run.vectors} have the length {length}, and embeddings "
            "have to be as long; leave it out"
        )
    return length


def _check_scores(examples: Sequence[SimilarityExample], run: SimilarityRun) -> None:
    """Raises InputError unless the scores are numbers on the scale that the run names."""
    scores = scores_of(examples, run.train) or []
    highest = max(scores)
    if highest > run.max_score or min(scores) < -run.max_score or highest <= run.max_score / 4:
        raise InputError(
            f"{run.train}: has scores from {min(scores):g} to {highest:g}; give as --max-score (now {run.max_score:g}) the "
            "score of two texts that mean the same, which becomes the cosine 1"
        )


def _check_best_metric(run: SimilarityRun, examples: Sequence[SimilarityExample], path: str) -> None:
    """Raises InputError where validation on these examples does not give the figure that picks the weights."""
    scored = scores_of(examples, path) is not None
    figures = SimilarityRun.correlations if scored else SimilarityRun.retrieval
    if run.best_metric not in figures:
        raise InputError(
            f"{path}: {'has scores' if scored else 'has no scores'}, so --best-metric must be one of {', '.join(figures)}; "
            f"got {run.best_metric}"
        )
