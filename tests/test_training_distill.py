"""`albert_tf.training.distill`: a student learns, repeats what it learned when it was interrupted, and is a run like any."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from tiny_data import PulledPlug, TinyFiles, pull_plug, read_json
from tiny_teachers import distill_quietly, save_teacher, student_run, trained_teacher

from albert_tf.data.tables import read_examples
from albert_tf.errors import InputError
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tasks.similarity import AlbertTextEmbedder
from albert_tf.training import finetune_rounds
from albert_tf.training.distill_runs import DistillClassificationRun, DistillSimilarityRun
from albert_tf.training.run_page import command_line

# A narrower student, with everything that has a state: projections, dropout.
NARROW: dict[str, Any] = {
    "hidden_dim": 16,
    "hidden_weight": 1.0,
    "attention_weight": 0.1,
    "hard_weight": 0.0,
    "hidden_dropout": 0.05,
    "epochs": 5.0,
    "learning_rate": 7e-3,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("distilled")


@pytest.fixture(scope="module")
def teacher(folder: Path, tiny_files: TinyFiles) -> Path:
    return trained_teacher(folder, tiny_files)


@pytest.fixture(scope="module")
def narrow(folder: Path, teacher: Path, tiny_files: TinyFiles) -> Path:
    run = student_run(tiny_files, teacher, folder / "narrow", valid=str(tiny_files.dev), best_metric="loss", **NARROW)
    distill_quietly(run)
    return folder / "narrow"


def answers(model: Path, file: Path) -> list[str]:
    texts = [example.text for example in read_examples(file)]
    return [answer.label for answer in AlbertTextClassifier.from_pretrained(model).classify(texts)]


def same_weights(first: Path, second: Path) -> None:
    ours, theirs = (load_file(path / "weights.safetensors") for path in (first, second))
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)


def test_a_student_learns_its_teachers_answers(narrow: Path, teacher: Path, tiny_files: TinyFiles) -> None:
    history = read_json(narrow / "history.json")
    for name in ("loss", "soft_loss", "hidden_loss", "attention_loss"):
        assert history[-1][name] < 0.8 * history[0][name], name
    assert "hard_loss" not in history[0]
    wanted, found = answers(teacher, tiny_files.train), answers(narrow, tiny_files.train)
    assert np.mean([a == b for a, b in zip(wanted, found, strict=True)]) > 0.8


def test_the_run_folder_is_one_like_any_other(narrow: Path, teacher: Path, tiny_files: TinyFiles) -> None:
    names = {path.name for path in narrow.iterdir()}
    assert {"config.json", "task.json", "labels.txt", "metrics.json", "report.html", "run.json"} <= names
    assert not narrow.with_name("narrow.training").exists()
    config = read_json(narrow / "config.json")
    assert (config["num_layers"], config["hidden_dim"], config["intermediate_dim"]) == (2, 16, 64)
    assert all("projection" not in n or n.startswith("embeddings/") for n in load_file(narrow / "weights.safetensors"))
    summary = read_json(narrow / "metrics.json")
    assert summary["teacher"].keys() >= {"accuracy", "loss", "agreement"}
    wanted, found = answers(teacher, tiny_files.dev), answers(narrow, tiny_files.dev)
    share = np.mean([a == b for a, b in zip(wanted, found, strict=True)])
    assert summary["teacher"]["agreement"] == pytest.approx(share)
    run = DistillClassificationRun.read(narrow / "run.json")
    words = command_line(run, [run.command, run.task])
    assert words.startswith("albert-tf distill classification ") and "--from" not in words
    assert words in (narrow / "report.html").read_text(encoding="utf-8").replace("&#x27;", "'")


def test_an_interrupted_run_ends_with_the_same_weights(
    narrow: Path, teacher: Path, tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = dataclasses.replace(DistillClassificationRun.read(narrow / "run.json"), out=str(tmp_path / "again"))
    with monkeypatch.context() as patch, pytest.raises(PulledPlug):
        patch.setattr(finetune_rounds, "save_state", pull_plug(finetune_rounds.save_state, 3))
        distill_quietly(run)
    lines: list[str] = []
    distill_quietly(run, report=lines.append)
    assert "going on after round 2 of 5" in lines
    same_weights(narrow, tmp_path / "again")


def test_a_changed_teacher_is_noticed(tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = save_teacher(tmp_path / "teacher", "classification", tiny_files, seed=1)
    run = student_run(tiny_files, own, tmp_path / "run")
    with monkeypatch.context() as patch, pytest.raises(PulledPlug):
        patch.setattr(finetune_rounds, "save_state", pull_plug(finetune_rounds.save_state, 2))
        distill_quietly(run)
    save_teacher(tmp_path / "other", "classification", tiny_files, seed=2)
    (own / "weights.safetensors").write_bytes((tmp_path / "other" / "weights.safetensors").read_bytes())
    with pytest.raises(InputError, match="or a teacher, has changed"):
        distill_quietly(run)


def test_embeddings_of_plain_text(tiny_files: TinyFiles, tmp_path: Path) -> None:
    teacher = save_teacher(tmp_path / "teacher", "similarity", tiny_files, projection_dim=6)
    texts = [example.text for example in read_examples(tiny_files.train)]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    fields = {
        "train": str(tmp_path / "texts.txt"),
        "teacher": str(teacher),
        "layers": 1,
        "epochs": 6.0,
        "batch_size": 16,
    }
    distill_quietly(DistillSimilarityRun(out=str(tmp_path / "run"), learning_rate=3e-3, **fields))
    student = AlbertTextEmbedder.from_pretrained(tmp_path / "run")
    wanted = AlbertTextEmbedder.from_pretrained(teacher).embed(texts)
    before = AlbertTextEmbedder.from_pretrained(teacher, config_changes={"num_layers": 1}).embed(texts)
    assert student.projection_dim == 6 and student.objective == "vectors"
    assert (student.embed(texts) * wanted).sum(axis=1).mean() > (before * wanted).sum(axis=1).mean() + 0.05


def test_words_of_a_teacher_of_another_vocabulary(tiny_files: TinyFiles, tmp_path: Path) -> None:
    texts = [example.text for example in read_examples(tiny_files.train)]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    known = {word: number for number, word in enumerate(sorted({word for text in texts for word in text.split()}))}
    words = [word for text in texts for word in text.split()]
    table = np.random.default_rng(0).standard_normal((len(known), 12)) + 3.0
    np.save(tmp_path / "words.npy", np.stack([table[known[word]] for word in words]).astype(np.float16))
    np.save(
        tmp_path / "texts.npy", np.stack([table[[known[word] for word in text.split()]].mean(axis=0) for text in texts])
    )
    fields: dict[str, Any] = {
        "train": str(tmp_path / "texts.txt"),
        "teacher_outputs": str(tmp_path / "texts.npy"),
        "teacher_words": str(tmp_path / "words.npy"),
        "from_scratch": str(tiny_files.shape),
        "tokenizer": str(tiny_files.vocabulary),
        "epochs": 12.0,
        "batch_size": 16,
        "learning_rate": 7e-3,
        "max_length": 24,  # texts are cut, and with them their words
    }
    run = DistillSimilarityRun(out=str(tmp_path / "run"), **fields)
    distill_quietly(run)
    history = read_json(tmp_path / "run" / "history.json")
    assert history[-1]["word_loss"] < 0.6 * history[0]["word_loss"]
    assert "--teacher-words" in command_line(run, [run.command, run.task])
    names = load_file(tmp_path / "run" / "weights.safetensors").keys()
    assert not any("word_projection" in name for name in names)
