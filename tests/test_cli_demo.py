"""`albert-tf demo`: the main job on bundled texts, shortened here; and the texts themselves."""

import unicodedata
from collections import Counter
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from command_line import albert_tf, assert_refused
from sklearn.metrics import accuracy_score
from tiny_data import read_json

from albert_tf.cli import demo
from albert_tf.data.schema import TextExample
from albert_tf.data.tables import discover_labels, read_examples
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.runtime import TFLiteRunner

DATA = Path(str(resources.files("albert_tf") / "assets" / "demo"))


def texts(name: str, part: str) -> list[TextExample]:
    return read_examples(DATA / f"{name}_{part}.tsv")


def test_it_trains_exports_runs_and_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "TRAINING", demo.TRAINING | {"epochs": 1.0})
    command, out = albert_tf(capsys), tmp_path / "demo"
    done = command("demo", "--set", "spam", "--out", out, "--json", tmp_path / "demo.json")
    assert done.code == 0, done.err
    assert sorted(path.name for path in out.iterdir()) == ["spam", "spam.tflite"]
    (figures,) = read_json(tmp_path / "demo.json").values()
    assert figures.keys() == {
        *("accuracy_float32", "accuracy_int8", "parameters", "file_bytes", "model_bytes", "device"),
    }
    assert figures["accuracy_float32"] == read_json(out / "spam" / "metrics.json")["valid"]["accuracy"]
    examples, runner = texts("spam", "dev"), TFLiteRunner(out / "spam.tflite")
    labels = [answer.label for answer in runner([example.text for example in examples])]
    assert figures["accuracy_int8"] == accuracy_score([example.label for example in examples], labels)
    assert (
        figures["file_bytes"] == (out / "spam.tflite").stat().st_size > figures["model_bytes"] > figures["parameters"]
    )
    device = figures["device"]
    assert device["load_ms"] > 0 and device["median_latency_ms"] > 0 and device["threads"] == 1
    lengths = [len(token_ids) for token_ids, _ in runner.tokenizer.encode_batch([e.text for e in examples])]
    assert device["mean_tokens"] == pytest.approx(np.mean(lengths))
    printed = " ".join(done.out.split())
    for told in (
        f"{figures['accuracy_int8']:.1%}",
        "memory growth",
        f"{figures['parameters']:,}",
        "what the file says",
    ):
        assert told in printed
    for text in demo.EXAMPLES["spam"]:
        assert text.split()[0] in done.out
    assert_refused(command("demo", "--set", "spam", "--out", out), "demo exists already; pass --overwrite")


def test_what_exists_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = albert_tf(capsys)
    assert_refused(command("demo", "--out", tmp_path), f"{tmp_path} exists already")
    done = command("demo", "--out", tmp_path / "new", "--json", tmp_path, "--overwrite")
    assert_refused(done, "is a folder, so no file is written in its place")
    assert_refused(command("demo", "--set", "poems"), "invalid choice: 'poems'")
    assert list(tmp_path.iterdir()) == []


# === The texts ===


def test_there_are_enough_texts() -> None:
    assert set(demo.SETS) == demo.EXAMPLES.keys()
    assert {path.name for path in DATA.glob("*.tsv")} == {
        f"{name}_{part}.tsv" for name in demo.SETS for part in ("train", "dev")
    }
    sizes = {name: len(texts(name, "train")) + len(texts(name, "dev")) for name in demo.SETS}
    assert sizes["commands"] > 500 and sizes["spam"] > 300


@pytest.mark.parametrize("name", demo.SETS)
def test_no_text_is_in_both_parts_or_comes_twice(name: str) -> None:
    """Compared as the tokenizer sees them: without case and accents; and an example is in neither part."""

    def plain(text: str) -> str:
        return " ".join(unicodedata.normalize("NFKD", text).casefold().split())

    parts = [*(plain(e.text) for e in texts(name, "train")), *(plain(e.text) for e in texts(name, "dev"))]
    assert [text for text, count in Counter([*parts, *map(plain, demo.EXAMPLES[name])]).items() if count > 1] == []


@pytest.mark.parametrize("name", demo.SETS)
def test_labels_are_in_both_parts_and_about_equal(name: str) -> None:
    train, dev = texts(name, "train"), texts(name, "dev")
    assert discover_labels(train) == discover_labels(dev)
    for part in (train, dev):
        counts = Counter(example.label for example in part)
        assert max(counts.values()) <= 1.5 * min(counts.values())


@pytest.mark.parametrize("name", demo.SETS)
def test_texts_are_clean_and_in_words_that_the_encoder_knows(name: str) -> None:
    everything = [example.text for part in ("train", "dev") for example in texts(name, part)]
    for text in everything:
        assert text == text.strip() and text.isprintable() and 2 <= len(text) <= 200, text
    vocabulary = AlbertTokenizer.from_pretrained(demo.ENCODER).vocabulary
    for text in (*everything, *demo.EXAMPLES[name]):
        words = " ".join(word for word in text.split() if any(character.isalnum() for character in word))
        assert vocabulary.unk_id not in vocabulary.encode(words), text  # of emoji it knows none
