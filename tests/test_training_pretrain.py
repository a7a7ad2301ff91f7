"""`albert_tf.training.pretrain`: it learns, resumes to the bit, and says what is wrong before it starts."""

import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from pretraining_texts import documents, tokenizer, write_documents
from safetensors.numpy import load_file
from tiny_data import PulledPlug, pull_plug, read_json
from tiny_pretraining import MAX_LENGTH, SHAPE, make_data, tiny_run

from albert_tf.data.pretraining_making import make_pretraining_data
from albert_tf.data.pretraining_manifest import PretrainingDataSettings
from albert_tf.errors import InputError
from albert_tf.presets import load_checkpoint
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tasks.pretraining import AlbertPretrainer
from albert_tf.tasks.similarity import AlbertTextEmbedder
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from albert_tf.tokenization.training import train_sentencepiece
from albert_tf.training import pretrain
from albert_tf.training.pretrain_config import PretrainConfig


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("pretraining"))


@pytest.fixture(scope="module")
def shape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shape") / "shape.json"
    path.write_text(json.dumps(SHAPE))
    return path


def run_quietly(
    run: PretrainConfig, report: Callable[[str], None] = lambda line: None, **kwargs: Any
) -> dict[str, Any]:
    return pretrain.pretrain(run, report=report, **kwargs)


@pytest.fixture(scope="module")
def finished(data: Path, shape: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `tiny_run`; no test changes it."""
    out = tmp_path_factory.mktemp("runs") / "finished"
    run_quietly(tiny_run(data, shape, out))
    return out


def test_rounds_are_shortened_to_the_steps_asked_for(data: Path, shape: Path, tmp_path: Path) -> None:
    for steps, expected in ((3, [3]), (5, [3, 5])):
        out = tmp_path / str(steps)
        run_quietly(tiny_run(data, shape, out, steps=steps, round_steps=4))
        assert [figures["step"] for figures in read_json(out / "history.json")] == expected


def test_it_learns_what_the_text_has(finished: Path) -> None:
    history = read_json(finished / "history.json")
    assert [figures["step"] for figures in history] == [10, 20, 30]
    assert history[0]["masked_lm_loss"] > 2 and history[-1]["valid_masked_lm_loss"] < 0.5
    assert history[-1]["valid_masked_lm_accuracy"] > 0.95
    for figures in history:
        assert all(math.isfinite(value) for value in figures.values())
        assert figures["loss"] == pytest.approx(figures["masked_lm_loss"] + figures["sentence_order_loss"], rel=0.05)
        assert 0 < figures["flop_utilisation"] < 1 and figures["tokens_per_second"] > 0


def test_the_run_folder_is_a_checkpoint_with_both_heads(finished: Path) -> None:
    preset = {"config.json", "weights.safetensors", "tokenizer.json", "vocabulary.spm"}
    figures = {"run.json", "metrics.json", "history.json", "curves.png", "report.html", "tensorboard"}
    assert {path.name for path in finished.iterdir()} == preset | figures
    assert not finished.with_name("finished.training").exists()
    model = AlbertPretrainer.from_pretrained(finished)
    assert model.backbone.config.vocabulary_size == tokenizer().vocabulary.size
    classifier = AlbertTextClassifier.from_pretrained(finished, labels=["a", "b"])
    assert classifier.head_is_new
    np.testing.assert_array_equal(
        classifier.named_weights()["embeddings/word_embedding/embeddings"],
        load_file(finished / "weights.safetensors")["embeddings/word_embedding/embeddings"],
    )


def assert_same_run(first: Path, second: Path) -> None:
    """The same weights and figures, to the bit."""
    ours, theirs = load_file(first / "weights.safetensors"), load_file(second / "weights.safetensors")
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)
    timed = ("seconds", "examples_per_second", "tokens_per_second", "flop_utilisation")
    for mine, other in zip(*(read_json(folder / "history.json") for folder in (first, second)), strict=True):
        assert {k: v for k, v in mine.items() if k not in timed} == {k: v for k, v in other.items() if k not in timed}


KILLED_AT_STEP_15 = """
import os, signal, sys
from albert_tf.cli.main import main
from albert_tf.training.rounds import Rounds
after_step = Rounds.on_train_batch_end
def dying(self, batch, logs=None):
    after_step(self, batch, logs)
    if int(self.model.optimizer.iterations) == 15:
        os.kill(os.getpid(), signal.SIGKILL)
Rounds.on_train_batch_end = dying
sys.exit(main(sys.argv[1:]))
"""


def test_a_run_interrupted_anywhere_ends_as_if_it_had_not_been(
    finished: Path, data: Path, shape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 in the second round; then before the state of a round is written."""
    run = tiny_run(data, shape, tmp_path / "run")
    flags = ["pretrain"]
    for field in dataclasses.fields(run):
        value = getattr(run, field.name)
        if value is not None and value is not False:
            flags += [run.flag_name(field.name), str(value)]
    command = [sys.executable, "-c", KILLED_AT_STEP_15, *flags]
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert AlbertPretrainer.from_pretrained(tmp_path / "run.training" / "latest").count_params() > 0

    lines: list[str] = []
    monkeypatch.setattr(pretrain, "save_state", pull_plug(pretrain.save_state, 1))
    with pytest.raises(PulledPlug):
        run_quietly(run, report=lines.append)
    monkeypatch.undo()
    run_quietly(run, report=lines.append)
    assert [line for line in lines if line.startswith("going on")] == ["going on after round 1 of 3"] * 2
    assert_same_run(tmp_path / "run", finished)


def test_lamb_and_mixed_precision(data: Path, shape: Path, tmp_path: Path) -> None:
    changes = {
        "optimizer": "lamb",
        "learning_rate": 0.02,
        "precision": "mixed_bfloat16",
        "steps": 40,
        "rematerialize": True,
    }
    run_quietly(tiny_run(data, shape, tmp_path / "run", **changes))
    history = read_json(tmp_path / "run" / "history.json")
    assert history[0]["masked_lm_loss"] > 1 and history[-1]["valid_masked_lm_accuracy"] > 0.95
    assert {w.dtype.name for w in load_file(tmp_path / "run" / "weights.safetensors").values()} == {"float32"}


def test_going_on_from_a_checkpoint(finished: Path, data: Path, shape: Path, tmp_path: Path) -> None:
    """With other text of the same vocabulary: the loss starts where it was, not anew."""
    changes = {"from_scratch": None, "source": str(finished), "steps": 4, "round_steps": 4, "learning_rate": 1e-4}
    run_quietly(tiny_run(data, shape, tmp_path / "run", **changes))
    before, after = (read_json(folder / "history.json") for folder in (finished, tmp_path / "run"))
    assert after[0]["masked_lm_loss"] < 0.5 < 2 < before[0]["masked_lm_loss"]


# === What cannot be used ===


def test_going_on_from_an_encoder_with_another_head(finished: Path, data: Path, shape: Path, tmp_path: Path) -> None:
    embedder = AlbertTextEmbedder.from_pretrained(finished, projection_dim=4)
    embedder.save_pretrained(tmp_path / "embedder")
    said: list[str] = []
    run = tiny_run(data, shape, tmp_path / "run", from_scratch=None, source=str(tmp_path / "embedder"), steps=1)
    run_quietly(run, said.append)
    assert said[0].endswith("embedder: has no pooler, no masked_lm, no sentence_order: begun anew")
    before, after = (load_checkpoint(folder).weights for folder in (finished, tmp_path / "run"))
    assert before.keys() == after.keys()
    word_table = "embeddings/word_embedding/embeddings"
    np.testing.assert_allclose(after[word_table], before[word_table], rtol=0, atol=0.02)  # one step of at most 0.01


def test_a_head_with_a_weight_missing_is_not_a_new_one(finished: Path, data: Path, shape: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(finished)
    del checkpoint.weights["masked_lm/output_bias"]
    with pytest.raises(InputError, match="1 missing: masked_lm/output_bias"):
        AlbertPretrainer.from_checkpoint(checkpoint, new_heads=True)


def test_other_settings_or_data_do_not_go_on_with_a_run(
    data: Path, shape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = make_data(tmp_path / "text")
    run = tiny_run(own, shape, tmp_path / "run", steps=4, round_steps=2)
    monkeypatch.setattr(pretrain, "save_state", pull_plug(pretrain.save_state, 2))
    with pytest.raises(PulledPlug):
        run_quietly(run)
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"with other settings \(--seed 0 → 5\)"):
        run_quietly(dataclasses.replace(run, seed=5))
    settings = PretrainingDataSettings((str(tmp_path / "text" / "text.txt"),), max_length=MAX_LENGTH, seed=3)
    make_pretraining_data(settings, tokenizer(), own, workers=1, overwrite=True)
    with pytest.raises(InputError, match="other data than the interrupted run's"):
        run_quietly(run)


def test_data_that_does_not_fit_the_model(finished: Path, data: Path, shape: Path, tmp_path: Path) -> None:
    long = make_data(tmp_path / "long", max_length=64)
    with pytest.raises(
        InputError, match="up to 64 tokens, the model 48 positions; make the data anew with --max-length 48"
    ):
        run_quietly(tiny_run(long, shape, tmp_path / "run"))
    text = write_documents(tmp_path / "text.txt", documents(40))
    other = AlbertTokenizer(train_sentencepiece([line for document in documents(40) for line in document], 60))
    make_pretraining_data(PretrainingDataSettings((str(text),), max_length=40), other, tmp_path / "other", workers=1)
    with pytest.raises(InputError, match="made with another vocabulary than that of"):
        run_quietly(tiny_run(tmp_path / "other", shape, tmp_path / "run", from_scratch=None, source=str(finished)))
    with pytest.raises(InputError, match="fewer than a batch of 4096"):
        run_quietly(tiny_run(data, shape, tmp_path / "run", batch_size=4096))
    with pytest.raises(InputError, match="finished exists already"):
        run_quietly(tiny_run(data, shape, finished))
    with pytest.raises(InputError, match="absent"):
        run_quietly(tiny_run(tmp_path / "absent", shape, tmp_path / "run"))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"source": "x"}, "give either --from CHECKPOINT, or --from-scratch"),
        ({"from_scratch": None}, "give either --from CHECKPOINT, or --from-scratch"),
        ({"steps": 0}, "--steps: expected a number at least 1, got 0"),
        ({"masked_share": 0.0}, "--masked-share: expected a number above 0"),
        ({"masked_share": 0.95}, "--masked-share: expected a number at least 0.0 and below 0.9"),
        ({"learning_rate": math.nan}, "--learning-rate: expected a number above 0.0, got nan"),
        ({"optimizer": "sgd"}, "--optimizer: expected one of lamb, adamw; got 'sgd'"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_used(changes: dict[str, Any], expected: str) -> None:
    fields: dict[str, Any] = {"data": "data", "out": "out", "from_scratch": "albert_tiny_en"}
    with pytest.raises(InputError, match=expected):
        PretrainConfig(**fields | changes)


def test_a_loss_that_is_no_number(data: Path, shape: Path, tmp_path: Path) -> None:
    run = tiny_run(data, shape, tmp_path / "run", learning_rate=1e38, warmup=0.0, clip_norm=0.0)
    with pytest.raises(InputError, match=r"start again \(--overwrite\) with a lower --learning-rate"):
        run_quietly(run)
    assert not (tmp_path / "run").exists()
