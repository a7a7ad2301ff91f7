"""Runs an exported file from text to answer, on the ai-edge-litert interpreter alone: no TensorFlow."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.data.schema import Prediction
from albert_tf.errors import InputError
from albert_tf.tokenization.packing import pad_batch
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.metadata import read_files, read_settings

TOKENIZER_FILES = ("tokenizer.json", "vocabulary.spm", "vocab.txt")


class TFLiteRunner:
    """A classifier in one file.

    `TFLiteRunner("model.tflite")(["some text"])` gives one `Prediction` for each text.

    Args:
        path: a file written by `export.export_tflite`.
        threads: CPU threads of the interpreter.

    Attributes:
        settings: what albert_tf.json in the file says: recipe, form, length, config.
        labels: the labels, in the order of the probabilities.
        tokenizer: the file's own.

    Raises:
        InputError: the file cannot be read, is damaged, or is not one of ours.
    """

    def __init__(self, path: str | Path, *, threads: int = 1) -> None:
        files = read_files(path)
        self.path = Path(path)
        self.settings = read_settings(files, path)
        self.labels: Sequence[str] = tuple(self.settings["settings"]["labels"])
        self.tokenizer = _tokenizer(files, path)
        self.length: int | None = self.settings["length"]
        if self.length is not None:
            self.tokenizer.max_length = min(self.tokenizer.max_length, self.length)
        self._signature = _signature(path, threads)

    def __call__(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[Prediction]:
        """The label of each text, or of each pair of texts.

        Raises:
            InputError: not a list of strings, or `pairs` of another length.
        """
        rows = self.predict_probabilities(texts, pairs)
        return [Prediction.from_probabilities(row, self.labels) for row in rows]

    def predict_probabilities(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> np.ndarray:
        """float32 (texts, labels)."""
        encoded = self.tokenizer.encode_batch(texts, pairs)
        rows = np.zeros((len(encoded), len(self.labels)), np.float32)
        # Shortest first: the interpreter allocates anew only when the length changes.
        for index in sorted(range(len(encoded)), key=lambda i: len(encoded[i][0])):
            rows[index] = self.run(*encoded[index])[0]
        return rows

    def run(self, token_ids: list[int], segment_ids: list[int]) -> np.ndarray:
        """The probabilities (1, labels) of one encoded text, padded where the file's length is fixed."""
        if self.length is not None and len(token_ids) > self.length:
            raise InputError(f"{self.path}: takes {self.length} tokens, got {len(token_ids)}")
        batch = pad_batch([(token_ids, segment_ids)], self.tokenizer.vocabulary.pad_id, length=self.length)
        return self._signature(**batch)["probabilities"]


def _tokenizer(files: dict[str, bytes], path: str | Path) -> AlbertTokenizer:
    with tempfile.TemporaryDirectory() as folder:
        for name in TOKENIZER_FILES:
            if name in files:
                (Path(folder) / name).write_bytes(files[name])
        try:
            tokenizer = AlbertTokenizer.from_pretrained(folder)
        except InputError as error:
            raise InputError(f"{path}: its tokenizer cannot be used: {error}") from error
    return tokenizer


def _signature(path: str | Path, threads: int) -> Any:
    from ai_edge_litert.interpreter import Interpreter

    try:
        return Interpreter(str(path), num_threads=threads).get_signature_runner()
    except (ValueError, RuntimeError) as error:
        raise InputError(f"{path}: the runtime cannot load it ({str(error).splitlines()[0]})") from error
