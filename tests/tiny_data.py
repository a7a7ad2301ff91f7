"""Labelled texts that a tiny model learns in seconds, the files around them, and the run that learns them."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.training.task_runs import ClassificationRun

WORDS = {"cold": "ice snow frost winter freezing blue", "warm": "fire sun summer lava heat red"}
FILLERS = "the a very day and it is in of this"
VOCABULARY_SIZE = 50


@dataclasses.dataclass(frozen=True)
class TinyFiles:
    """What a run reads; see `write_files`."""

    train: Path
    dev: Path
    vocabulary: Path
    shape: Path


def separable_rows(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """(text, label) of 3 to 14 words; a third of a text's words are its label's own. Labels take turns."""
    random = np.random.default_rng(seed)
    rows = []
    for index in range(count):
        label = list(WORDS)[index % len(WORDS)]
        own, fillers = WORDS[label].split(), FILLERS.split()
        words = [str(random.choice(own if random.random() < 0.33 else fillers)) for _ in range(random.integers(2, 14))]
        words.insert(int(random.integers(len(words))), str(random.choice(own)))
        rows.append((" ".join(words), label))
    return rows


def pair_rows(count: int, seed: int = 0) -> list[tuple[str, str, str]]:
    """(text, second text, label): "same" where both are of one label, else "other"."""
    first, second = separable_rows(count, seed), separable_rows(count, seed + 1000)
    random = np.random.default_rng(seed)
    second = [second[i] for i in random.permutation(count)]
    return [(a, b, "same" if x == y else "other") for (a, x), (b, y) in zip(first, second, strict=True)]


def write_table(path: Path, rows: list[Any], header: tuple[str, ...] = ("text", "label")) -> Path:
    """A .tsv file."""
    path.write_text("".join("\t".join(row) + "\n" for row in [header, *rows]), encoding="utf-8")
    return path


def write_files(folder: Path) -> TinyFiles:
    """Training and validation file, a SentencePiece vocabulary, and the shape of the smallest model that learns them."""
    from albert_tf.tokenization.training import train_sentencepiece

    train, dev = separable_rows(64), separable_rows(24, seed=1)
    train_sentencepiece([text for text, _ in train], VOCABULARY_SIZE).save(folder)
    shape = {
        "vocabulary_size": 1,  # a run takes the vocabulary's
        "embedding_dim": 16,
        "hidden_dim": 32,
        "intermediate_dim": 64,
        "num_layers": 1,
        "num_heads": 2,
        "max_sequence_length": 32,
        "initializer_range": 0.1,
    }
    (folder / "shape.json").write_text(json.dumps(shape), encoding="utf-8")
    return TinyFiles(
        write_table(folder / "train.tsv", train),
        write_table(folder / "dev.tsv", dev),
        folder / "vocabulary.spm",
        folder / "shape.json",
    )


def tiny_run(files: TinyFiles, out: Path, **changes: Any) -> ClassificationRun:
    """Six rounds that end above 0.9 accuracy, with dropout, so that a resumed run needs its random state."""
    fields: dict[str, Any] = {
        "train": str(files.train),
        "valid": str(files.dev),
        "out": str(out),
        "from_scratch": str(files.shape),
        "tokenizer": str(files.vocabulary),
        "epochs": 6.0,
        "batch_size": 8,
        "learning_rate": 5e-3,
        "hidden_dropout": 0.05,
        "max_length": 32,
    }
    return ClassificationRun(**fields | changes)


def tiny_task_run(run_class: type[Any], files: TinyFiles, out: Path, train: Path, **changes: Any) -> Any:
    """`tiny_run` of another task, validated on its training file: the settings that both have, the task's own figure."""
    fields = dataclasses.asdict(tiny_run(files, out, train=str(train), valid=str(train)))
    shared = {field.name for field in dataclasses.fields(run_class)} - {"best_metric"}
    return run_class(**{name: value for name, value in fields.items() if name in shared} | changes)


def flags(run: ClassificationRun) -> list[str]:
    """The command line that says `run`."""
    words = ["finetune", "classification"]
    for field in dataclasses.fields(run):
        value = getattr(run, field.name)
        if value is True:
            words.append(ClassificationRun.flag_name(field.name))
        elif value is not None and value is not False:
            words += [ClassificationRun.flag_name(field.name), str(value)]
    return words


def run_quietly(
    run: ClassificationRun, report: Callable[[str], None] = lambda line: None, **kwargs: Any
) -> dict[str, Any]:
    """`finetune` without lines of progress."""
    from albert_tf.training.finetune import finetune

    return finetune(run, report=report, **kwargs)


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


class PulledPlug(BaseException):
    """What no code of ours catches."""


def pull_plug(real: Callable[..., Any], call: int) -> Callable[..., Any]:
    """`real`, until its call number `call`."""
    calls = []

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            raise PulledPlug
        return real(*args, **kwargs)

    return wrapped
