"""Teachers with random weights, saved as folders, and runs of their students."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from tiny_data import TinyFiles, run_quietly, tiny_run
from tiny_models import randomize

from albert_tf.config import AlbertConfig
from albert_tf.training.distill_runs import DistillClassificationRun

TEACHER_SHAPE = AlbertConfig(
    vocabulary_size=50,
    hidden_dim=16,
    intermediate_dim=24,
    num_layers=3,
    num_heads=2,
    embedding_dim=8,
    max_sequence_length=32,
)


def save_teacher(folder: Path, name: str, files: TinyFiles, *, seed: int = 0, **settings: Any) -> Path:
    """A model of the task called `name`, on the vocabulary of `files`; of classification, of labels cold and warm."""
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.tasks.trained import TASKS
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

    if name == "classification":
        settings = {"labels": ["cold", "warm"]} | settings
    shape = dataclasses.replace(TEACHER_SHAPE, **settings.pop("shape", {}))
    backbone = AlbertBackbone(shape, pooler=TASKS[name].uses_pooler)
    tokenizer = AlbertTokenizer.from_pretrained(files.vocabulary, max_length=shape.max_sequence_length)
    teacher = TASKS[name](backbone, tokenizer, **settings)
    randomize(teacher, seed, scale=0.4)
    teacher.save_pretrained(folder)
    return folder


def trained_teacher(folder: Path, files: TinyFiles) -> Path:
    """A classifier of three passes that `tiny_run` has trained."""
    shape = json.loads(files.shape.read_text(encoding="utf-8")) | {"num_layers": 3}
    (folder / "shape.json").write_text(json.dumps(shape), encoding="utf-8")
    run_quietly(tiny_run(files, folder / "teacher", from_scratch=str(folder / "shape.json"), valid=None, epochs=5.0))
    return folder / "teacher"


def student_run(files: TinyFiles, teacher: Path, out: Path, **changes: Any) -> DistillClassificationRun:
    """Two passes of the teacher's three, learned by its answers."""
    fields: dict[str, Any] = {
        "train": str(files.train),
        "teacher": str(teacher),
        "out": str(out),
        "layers": 2,
        "epochs": 2.0,
        "batch_size": 8,
        "learning_rate": 3e-3,
        "max_length": 32,
    }
    return DistillClassificationRun(**fields | changes)


def distill_quietly(run: Any, **kwargs: Any) -> dict[str, Any]:
    """`distill` without lines of progress."""
    from albert_tf.training.distill import distill

    return distill(run, **{"report": lambda line: None} | kwargs)


def begun(run: Any, report: Any = lambda line: None) -> tuple[Any, Any, Any]:
    """The training, the student and its rows, as they are before the first step."""
    from albert_tf.training.distill import DistillationTraining

    training = DistillationTraining(run, report)
    examples = training.task.read(run, run.train, report)
    model = training.build(run, training.task.head_settings(run, examples) | run.exit_settings)
    return training, model, training.task.training_rows(model, examples, training.prepare(model, examples), run.train)
