"""`albert-tf predict` with [MASK] on what `albert-tf pretrain` leaves and on a `.tflite` file."""

import json
from pathlib import Path

import pytest
from command_line import albert_tf, assert_refused
from small_vocabularies import sentencepiece_vocabulary
from tiny_models import randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import evaluate
from albert_tf.tasks.fill_mask import AlbertMaskedLM
from albert_tf.tasks.pretraining import AlbertPretrainer
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.tflite import export_tflite

CONFIG = AlbertConfig(140, 16, 32, 2, 2, embedding_dim=8, max_sequence_length=24)
TEXT = "the old [MASK] by the [MASK]!"


@pytest.fixture(params=["folder", "tflite"], scope="module")
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretrained")
    pretrainer = AlbertPretrainer(AlbertBackbone(CONFIG))
    randomize(pretrainer)
    pretrainer.save_pretrained(folder / "run", AlbertTokenizer(sentencepiece_vocabulary(), max_length=24))
    if request.param == "folder":
        return folder / "run"
    export_tflite(AlbertMaskedLM.from_pretrained(folder / "run"), folder / "run.tflite", recipe="float32")
    return folder / "run.tflite"


def test_text(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = albert_tf(capsys)("predict", model, "--text", TEXT, "--text", "[MASK]", "--top-k", "3")
    assert done.code == 0
    first, second, end = done.out.split("\n\n")
    rows = [line.split("\t") for line in first.splitlines()]
    assert [row[0] for row in rows] == ["1"] * 3 + ["2"] * 3 and end == ""
    assert float(rows[0][2]) >= float(rows[1][2]) >= float(rows[2][2]) > 0
    assert all(row[3].count("[MASK]") == 1 for row in rows)
    assert [line.split("\t")[0] for line in second.splitlines()] == ["1"] * 3


def test_jsonl(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "texts.jsonl").write_text(json.dumps({"id": 7, "text": TEXT}))
    done = albert_tf(capsys)("predict", model, "--file", tmp_path / "texts.jsonl", "--jsonl")
    line = json.loads(done.out)
    assert (line["id"], line["text"], [len(mask) for mask in line["masks"]]) == (7, TEXT, [5, 5])
    assert "[MASK]" not in line["filled"] and line["filled"].startswith("the old")
    assert line["masks"][0][0].keys() == {"piece", "token_id", "probability", "text"}


def test_wrong_use(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = albert_tf(capsys)
    assert_refused(
        command("predict", model, "--text", "the mill"), "--text number 1: expected [MASK] in the text, found"
    )
    (tmp_path / "texts.txt").write_text("[MASK]\nthe mill\n")
    assert_refused(command("predict", model, "--file", tmp_path / "texts.txt"), "line 2: expected [MASK] in the text")
    for top_k in ("0", "141"):
        words = ("predict", model, "--text", "[MASK]", "--top-k", top_k)
        assert_refused(command(*words), "top_k: expected a whole number from 1 to 140")
    assert_refused(command("evaluate", model, "--data", tmp_path / "texts.txt"), "this one is for fill-mask")


def test_no_figures_are_taken() -> None:
    model = AlbertMaskedLM(AlbertBackbone(CONFIG), AlbertTokenizer(sentencepiece_vocabulary()))
    with pytest.raises(
        InputError, match="no figures are taken of models for fill-mask; expected one for classification"
    ):
        evaluate(model, ["[MASK]"], source="x")
