"""The encoder that comes with the package: found by its name, whole, and one that has learned something."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import albert_tf
from safetensors.numpy import load_file

from albert_tf.bundled import BUNDLED, bundled_model
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.presets import load_checkpoint
from albert_tf.tasks.similarity import AlbertTextEmbedder
from albert_tf.tasks.trained import load_task
from albert_tf.tokenization.tokenizer import AlbertTokenizer

NAME = "albert_tiny_en"
MOST_BYTES = 10_000_000


@pytest.fixture(scope="module")
def embedder() -> AlbertTextEmbedder:
    return AlbertTextEmbedder.from_pretrained(NAME)


def cosine(embedder: AlbertTextEmbedder, first: str, second: str) -> float:
    one, other = embedder.embed([first, second])
    return float(one @ other)


def test_it_is_found_by_its_name_and_a_path_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bundled_model(NAME) == bundled_model("albert-tiny-en") and bundled_model("albert-base-v2") is None
    checkpoint = load_checkpoint("albert-tiny-en")
    assert checkpoint.config == AlbertConfig.from_name(NAME)
    assert AlbertTokenizer.from_pretrained(NAME).vocabulary.size == checkpoint.config.vocabulary_size
    assert load_task(NAME).task == load_task(Path(NAME)).task == "similarity"
    monkeypatch.chdir(tmp_path)
    (tmp_path / NAME).mkdir()
    assert bundled_model(NAME) is None and bundled_model(Path(NAME)) is None
    with pytest.raises(InputError, match=NAME):
        load_checkpoint(NAME)


def test_commands_take_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = albert_tf(capsys)
    done = command("predict", NAME, "--text", "the film was great", "--pair", "a wonderful movie")
    assert done.code == 0 and float(done.out.split()[0]) > 0.5, done.err
    done = command("export", "tflite", NAME, "--out", tmp_path / "embedder.tflite")
    assert done.code == 0, done.err
    assert command("predict", tmp_path / "embedder.tflite", "--text", "hello").code == 0
    assert "no such file or folder" in command("predict", "albert_tiny_fr", "--text", "bonjour").err


@pytest.mark.parametrize("name", BUNDLED)
def test_its_files_are_small_and_whole(name: str) -> None:
    folder = bundled_model(name)
    assert folder is not None
    files = {path.name for path in folder.iterdir()}
    assert files == {"config.json", "task.json", "tokenizer.json", "vocabulary.spm", "weights.safetensors", "README.md"}
    assert sum(path.stat().st_size for path in folder.iterdir()) <= MOST_BYTES
    weights = load_file(folder / "weights.safetensors")
    assert {str(weight.dtype) for weight in weights.values()} == {"float16"}
    digest = hashlib.sha256((folder / "weights.safetensors").read_bytes()).hexdigest()
    assert f"sha256 {digest}" in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("A man is playing a guitar.", "Someone makes music on an instrument.", "The stock market fell on Monday."),
        ("a dull, lifeless film", "the movie is boring", "the recipe needs two eggs"),
        ("How do I reset my password?", "I forgot my login and cannot get in", "What is the tallest mountain?"),
        ("The doctor examined the patient.", "A physician saw a sick person.", "The carpenter built a table."),
        ("set an alarm for six", "wake me up early tomorrow", "play some jazz"),
    ],
)
def test_texts_of_like_meaning_are_nearer(embedder: AlbertTextEmbedder, text: str, near: str, far: str) -> None:
    assert cosine(embedder, text, near) > cosine(embedder, text, far) + 0.1


def test_words_order_and_context_count(embedder: AlbertTextEmbedder) -> None:
    assert cosine(embedder, "he sat on the bank of the river", "the shore of the stream") > cosine(
        embedder, "he sat on the bank of the river", "money in a savings account"
    )


def test_embeddings_equal_those_of_the_float16_weights_read_by_hand(embedder: AlbertTextEmbedder) -> None:
    folder = bundled_model(NAME)
    assert folder is not None
    stored = load_file(folder / "weights.safetensors")
    own: dict[str, Any] = embedder.named_weights()
    assert stored.keys() == own.keys()
    for name, weight in stored.items():
        np.testing.assert_array_equal(np.asarray(own[name]), weight.astype(np.float32), err_msg=name)
    assert json.loads((folder / "task.json").read_text(encoding="utf-8"))["settings"]["normalize"] is True
