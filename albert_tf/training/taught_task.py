"""A task's files as a teacher's: rows with or without labels, varied rows, and what the teacher makes of them."""

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.data.batching import sorted_batches
from albert_tf.data.masking import MaskingRules
from albert_tf.data.multi_label import MultiLabelExample, read_multi_label
from albert_tf.data.similarity import SimilarityExample
from albert_tf.data.tables import encode_labels, read_examples, read_labels
from albert_tf.data.teacher_outputs import TeacherOutputs, read_teacher_outputs
from albert_tf.data.word_vectors import WORDS, WordVectors, read_word_vectors, words_of_tokens
from albert_tf.errors import InputError
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.inference.runner import Prepared
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.distillation import LABELLED, TEACHER_OUTPUTS
from albert_tf.tokenization.packing import Packed, pad_batch
from albert_tf.training.augmentation import same_tokenizer, variations
from albert_tf.training.distill_runs import Distillation
from albert_tf.training.tasks.classification import class_weights
from albert_tf.training.tasks.fill_mask import masked_anew, read_lines
from albert_tf.training.tasks.finetune_task import FinetuneTask, TrainingRows

_ONE_VECTOR = ("classification", "multi-label", "regression", "similarity")  # is what the model puts out for an example
_MAY_LACK_LABELS = ("classification", "multi-label", "regression")
_TABLES = (".tsv", ".csv", ".jsonl")
_BATCH_SIZE = 32


class TaughtTask:
    """See `FinetuneTask`; only the training file is treated otherwise than in fine-tuning.

    Args:
        run: the settings.
        inner: the task's fine-tuning.
        teacher: the model; None for recorded outputs.
        report: receives lines of progress.

    Attributes:
        runs_in_steps: whether the teacher runs in the training steps.
        any_labelled, all_labelled: what is known of the training rows once they are made.
        words: what the teacher makes of each word; None where it is not learned.
    """

    def __init__(
        self, run: Distillation, inner: FinetuneTask, teacher: AlbertTask | None, report: Callable[[str], None]
    ) -> None:
        self.run, self.inner, self.teacher, self.report = run, inner, teacher, report
        self.model_class = inner.model_class
        self.metric = inner.metric if run.soft_weight or run.hard else "hidden_loss"
        learns_outputs = teacher is not None and run.soft_weight > 0
        is_vector = run.task == "similarity" or (run.task in _ONE_VECTOR and not run.looks_inside)
        self.runs_before = learns_outputs and is_vector
        self.runs_in_steps = teacher is not None and (run.looks_inside or (learns_outputs and not self.runs_before))
        self.any_labelled = self.all_labelled = True
        self.words: WordVectors | None = None
        self._recorded: TeacherOutputs | None = None
        self._is_made = False

    def read(self, run: Any, path: str, report: Callable[[str], None]) -> list[Any]:
        if path != run.train:
            return self.inner.read(run, path, report)
        examples = self._read_training(path, report)
        if run.teacher_outputs is not None and run.task != "similarity":
            texts = [example.text for example in examples]
            self._recorded = read_teacher_outputs(run.teacher_outputs, task=run.task, texts=texts, train=path)
        if getattr(run, "teacher_words", None) is not None:
            self.words = read_word_vectors(run.teacher_words, path)
        return examples

    def head_settings(self, run: Any, examples: Sequence[Any]) -> dict[str, Any]:
        if run.task in ("classification", "multi-label", "tagging"):
            return self._labelled_settings(run, examples)
        if run.task == "similarity" and self.teacher is not None:
            return _embedding_settings(run, self.teacher)
        settings = self.inner.head_settings(run, examples)
        if run.task == "question-answering" and self.teacher is not None:
            head = self.teacher.settings()["head"]
            if settings["head"] != head:
                raise InputError(f"--head {settings['head']}: the teacher's head is {head}; give --head {head}")
        return settings

    def training_rows(self, model: Any, examples: Sequence[Any], prepared: Prepared, source: str) -> TrainingRows:
        if source != self.run.train or self._is_made:
            return self.inner.training_rows(model, examples, prepared, source)
        self._is_made = True
        rows = self._own_rows(model, examples, prepared, source)
        if self.run.augment:
            rows = self._augmented(model, rows)
        targets = dict(rows.targets)
        if self._recorded is not None:
            labels = getattr(model, "labels", ("value",))
            targets[TEACHER_OUTPUTS] = self._recorded.in_order(labels, str(self.run.teacher_outputs))
        if self.teacher is not None and self.runs_before:
            name = "vector" if self.run.task == "similarity" else TEACHER_OUTPUTS
            targets[name] = outputs_of_rows(self.teacher, self._teacher_rows(model, examples, rows))
            self.report(f"{len(targets[name]):,} rows answered by the teacher")
        remade = None
        if self.run.task == "fill-mask":
            rules = MaskingRules(rate=self.run.masked_share)  # type: ignore[attr-defined]
            remade = masked_anew(model.required_tokenizer.vocabulary, rules, self.run.seed)
        made_by = "" if self.teacher is None else weights_digest(self.teacher)
        if self.words is not None:
            encode = model.required_tokenizer.encode_with_offsets
            targets[WORDS] = [words_of_tokens(example.text, encode(example.text)) for example in examples]
            remade, made_by = self.words.targets, self.words.checksum
        return TrainingRows(rows.rows, targets, rows.rows_per_example, remade, made_by)

    def describe(self, model: Any) -> str:
        return self.inner.describe(model)

    def write(self, folder: Path, model: Any, metrics: dict[str, Any]) -> None:
        self.inner.write(folder, model, metrics)

    def _read_training(self, path: str, report: Callable[[str], None]) -> list[Any]:
        """The examples; for some tasks from plain text too, or from a table without labels."""
        run: Any = self.run
        if run.task == "similarity" and self.teacher is not None:
            return [SimilarityExample(example.text) for example in read_lines(path)]
        if run.task not in _MAY_LACK_LABELS or getattr(run, "glue", None) is not None:
            return self.inner.read(run, path, report)
        columns = {role: getattr(run, role) for role in ("text_column", "pair_column", "label_column")}
        if Path(path).suffix.lower() not in _TABLES and not any(columns.values()):
            lines = read_lines(path)
            return [MultiLabelExample(line.text) for line in lines] if run.task == "multi-label" else list(lines)
        if run.task == "multi-label":
            options = {"label_separator": run.label_separator, "labels_required": False}
            return list(read_multi_label(path, **columns, **options))
        return list(read_examples(path, **columns, labels_required=False))

    def _labelled_settings(self, run: Any, examples: Sequence[Any]) -> dict[str, Any]:
        """Settings of a head whose labels are the teacher's."""
        labels: Any = None if self.teacher is None else self.teacher.settings()["labels"]
        if labels is None and self._recorded is not None and self._recorded.labels is not None:
            labels = list(self._recorded.labels)
        label_file = getattr(run, "label_file", None)
        if label_file is not None:
            wanted = read_labels(label_file)
            if labels is not None and wanted != labels:
                raise InputError(
                    f"{label_file}: has the labels {', '.join(wanted)}; the teacher's are {', '.join(labels)}"
                )
            labels = wanted
        if labels is None:
            return self.inner.head_settings(run, examples)
        settings = {"labels": labels, "classifier_dropout": run.classifier_dropout}
        if run.task == "multi-label":
            settings["threshold"] = run.threshold
        if run.task == "classification":
            known = [example for example in examples if example.label is not None]
            ids = encode_labels(known, labels, run.train)
            settings["class_weights"] = class_weights(run.class_weights, ids, labels)
            settings |= {"label_smoothing": run.label_smoothing, "temperature": 1.0}
            if run.best_metric == "f1" and len(labels) != 2:
                raise InputError(f"--best-metric f1 is that of two labels, there are {len(labels)}; choose macro_f1")
        return settings

    def _own_rows(self, model: Any, examples: Sequence[Any], prepared: Prepared, source: str) -> TrainingRows:
        """The task's rows; rows without a label have any, and 0 as `LABELLED`."""
        if self.run.task == "similarity" and self.teacher is not None:
            return TrainingRows(prepared.rows, {})
        if self.run.task not in _MAY_LACK_LABELS:
            return self.inner.training_rows(model, examples, prepared, source)
        name = "labels" if self.run.task == "multi-label" else "label"
        labelled = np.array([getattr(example, name) is not None for example in examples])
        anything = {"classification": lambda: model.labels[0], "multi-label": tuple, "regression": lambda: "0"}
        filled = [
            example if known else dataclasses.replace(example, **{name: anything[self.run.task]()})
            for example, known in zip(examples, labelled, strict=True)
        ]
        rows = self.inner.training_rows(model, filled, prepared, source)
        self.any_labelled, self.all_labelled = bool(labelled.any()), bool(labelled.all())
        if self.all_labelled:
            return rows
        if self.run.hard_weight and not self.any_labelled:
            raise InputError(f"--hard-weight {self.run.hard_weight:g}: no text of {source} has a label; leave it out")
        self.report(
            f"{labelled.sum():,} of {len(labelled):,} texts have labels; the others are taught by the teacher alone"
        )
        return dataclasses.replace(rows, targets=rows.targets | {LABELLED: labelled.astype(np.float32)})

    def _augmented(self, model: Any, rows: TrainingRows) -> TrainingRows:
        """Each row with its variations behind it; these have no label of their own."""
        varied = variations(self.run, model.required_tokenizer, self.teacher, rows.rows)
        every: list[Packed] = []
        for row, copies in zip(rows.rows, varied, strict=True):
            every += [row, *copies]
        times = 1 + self.run.augment
        targets = {name: _repeated(values, times) for name, values in rows.targets.items()}
        is_own = np.tile(np.arange(times) == 0, len(rows.rows)).astype(np.float32)
        targets[LABELLED] = np.asarray(targets.get(LABELLED, 1.0), np.float32) * is_own
        self.all_labelled = False
        self.report(f"{len(every):,} rows with their variations")
        return TrainingRows(every, targets)

    def _teacher_rows(self, model: Any, examples: Sequence[Any], rows: TrainingRows) -> list[Packed]:
        """The rows as the teacher reads them: of another vocabulary, its own."""
        teacher: Any = self.teacher
        own, other = model.required_tokenizer, teacher.required_tokenizer
        if same_tokenizer(own, other) and own.max_length <= teacher.backbone.config.max_sequence_length:
            return rows.rows
        if self.run.augment:
            raise InputError(
                f"--augment: {self.run.teacher} has another vocabulary, or is for shorter texts, than the student, whose "
                "rows are varied; leave it out"
            )
        return pipeline_of(teacher).prepare(examples).rows


def outputs_of_rows(model: AlbertTask, rows: Sequence[Packed]) -> np.ndarray:
    """What a model puts out for each row, float32 (rows, D), of a task with one vector a row."""
    kinds = {name: tf.TensorSpec((None, None), tf.int32) for name in model.backbone.input}
    run = tf.function(lambda batch: model(batch, training=False), input_signature=[kinds])
    pad_id = model.required_tokenizer.vocabulary.pad_id
    found: list[Any] = [None] * len(rows)
    for chosen in sorted_batches([len(token_ids) for token_ids, _ in rows], _BATCH_SIZE):
        outputs = np.asarray(run(pad_batch([rows[i] for i in chosen], pad_id)), np.float32)
        for index, row in zip(chosen.tolist(), outputs, strict=True):
            found[index] = row
    return np.stack(found)


def weights_digest(model: AlbertTask) -> str:
    """A checksum of a model's weights."""
    digest = hashlib.sha256()
    for name, variable in sorted(model.named_weights().items()):
        digest.update(name.encode() + np.asarray(variable).tobytes())
    return digest.hexdigest()


def _embedding_settings(run: Any, teacher: Any) -> dict[str, Any]:
    """Settings of a student whose embeddings are as long as the teacher's."""
    length = teacher.embedding_dim
    if run.projection_dim not in (None, length):
        raise InputError(
            f"--projection-dim {run.projection_dim}: the teacher's embeddings have the length {length}, and the student's "
            "have to be as long; leave it out"
        )
    keeps_head = run.source == run.teacher and run.hidden_dim in (None, teacher.backbone.config.hidden_dim)
    return {
        "pooling": run.pooling,
        "normalize": not run.raw_embeddings,
        "projection_dim": teacher.projection_dim if keeps_head else length,
        "objective": run.loss,
        "max_score": run.max_score,
        "scale": run.scale,
    }


def _repeated(values: Any, times: int) -> Any:
    if isinstance(values, np.ndarray):
        return np.repeat(values, times, axis=0)
    return [value for value in values for _ in range(times)]
