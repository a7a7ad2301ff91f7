"""Runs an exported file from text to answer, on the ai-edge-litert interpreter alone: no TensorFlow."""

import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.data.schema import Prediction
from albert_tf.errors import InputError
from albert_tf.files import checked_path
from albert_tf.tokenization.packing import pad_batch
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.metadata import check_model, read_files, read_settings
from export.quiet import without_native_notes

TOKENIZER_FILES = ("tokenizer.json", "vocabulary.spm", "vocab.txt")
OUTPUT = "probabilities"
# Far above any processor that runs these files; the native runtime ends the process at absurd numbers.
MOST_THREADS = 256


class TFLiteRunner:
    """A classifier in one file. Several threads may use one runner; it answers them one after the other.

    `TFLiteRunner("model.tflite")(["some text"])` gives one `Prediction` for each text.

    Args:
        path: a file written by `export.export_tflite`.
        threads: CPU threads of the interpreter.

    Attributes:
        settings: what albert_tf.json in the file says: recipe, form, length, config.
        labels: the labels, in the order of the probabilities.
        tokenizer: the file's own.
        length: the number of tokens that the file takes, or None for any.

    Raises:
        InputError: the file cannot be read, is damaged, or is not one of ours.
    """

    def __init__(self, path: str | Path, *, threads: int = 1) -> None:
        if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= MOST_THREADS:
            raise InputError(f"threads: expected a whole number from 1 to {MOST_THREADS}, got {threads!r}")
        path = checked_path(path, "path")
        files = read_files(path)
        self.path = Path(path)
        self.settings = read_settings(files, path)
        check_model(path, self.settings)
        self.labels: Sequence[str] = read_labels(self.settings, path)
        self.length: int | None = self.settings["length"]
        self.tokenizer = open_tokenizer(files, self.settings, path)
        self._model = open_model(path, threads, outputs=len(self.labels))
        self._one_at_a_time = threading.Lock()  # neither the interpreter nor the tokenizer is made for more

    def __call__(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[Prediction]:
        """The label of each text, or of each pair of texts.

        Raises:
            InputError: not a list of strings, or `pairs` of another length.
        """
        rows = self.predict_probabilities(texts, pairs)
        return [Prediction.from_probabilities(row, self.labels) for row in rows]

    def predict_probabilities(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> np.ndarray:
        """float32 (texts, labels)."""
        with self._one_at_a_time:
            encoded = self.tokenizer.encode_batch(texts, pairs)
        rows = np.zeros((len(encoded), len(self.labels)), np.float32)
        # Shortest first: the interpreter allocates anew only when the length changes.
        for index in sorted(range(len(encoded)), key=lambda i: len(encoded[i][0])):
            rows[index] = self.run(*encoded[index])[0]
        return rows

    def run(self, token_ids: list[int], segment_ids: list[int]) -> np.ndarray:
        """The probabilities (1, labels) of one encoded text, padded where the file's length is fixed."""
        limit = self.tokenizer.max_length if self.length is None else self.length
        if not 1 <= len(token_ids) <= limit:
            raise InputError(f"{self.path}: takes 1 to {limit} tokens, got {len(token_ids)}")
        self._check_ids(token_ids, segment_ids)
        batch = pad_batch([(token_ids, segment_ids)], self.tokenizer.vocabulary.pad_id, length=self.length)
        with self._one_at_a_time:
            return self._model(**batch)[OUTPUT]

    def _check_ids(self, token_ids: list[int], segment_ids: list[int]) -> None:
        """The native runtime reads any row it is told to; a wrong one gives a wrong answer or ends the run."""
        if len(token_ids) != len(segment_ids):
            raise InputError(f"segment_ids: expected {len(token_ids)}, one for each token, got {len(segment_ids)}")
        limits = (("token_ids", token_ids, "vocabulary_size"), ("segment_ids", segment_ids, "num_segments"))
        for name, values, field in limits:
            rows = self.settings["config"][field]
            if any(not isinstance(v, (int, np.integer)) or not 0 <= v < rows for v in values):
                raise InputError(f"{name}: expected whole numbers from 0 to {rows - 1}")


def read_labels(settings: dict[str, Any], path: str | Path) -> tuple[str, ...]:
    """The labels in the settings of the file `path`, in the order of the model's outputs."""
    labels = settings["settings"].get("labels")
    if settings["task"] != "classification" or not isinstance(labels, list) or not labels:
        raise InputError(f"{path}: expected a text classifier with labels, found the task {settings['task']!r}")
    return tuple(map(str, labels))


def open_tokenizer(files: dict[str, bytes], settings: dict[str, Any], path: str | Path) -> AlbertTokenizer:
    """The tokenizer among `files`, those of the file `path`, cut to what its model takes."""
    with tempfile.TemporaryDirectory() as folder:
        for name in TOKENIZER_FILES:
            if name in files:
                (Path(folder) / name).write_bytes(files[name])
        try:
            tokenizer = AlbertTokenizer.from_pretrained(folder)
            config = AlbertConfig.from_dict(settings["config"])
        except InputError as error:
            raise InputError(f"{path}: its tokenizer or config cannot be used: {error}") from error
    if tokenizer.vocabulary.size != config.vocabulary_size:
        raise InputError(
            f"{path}: its tokenizer has {tokenizer.vocabulary.size} pieces, its model {config.vocabulary_size} words"
        )
    limits = (tokenizer.max_length, config.max_sequence_length, settings["length"] or tokenizer.max_length)
    tokenizer.max_length = min(limits)
    return tokenizer


def open_model(path: str | Path, threads: int, *, outputs: int) -> Any:
    """The model in `path`, ready to be called with its inputs by name; it must give `outputs` numbers."""
    from ai_edge_litert.interpreter import Interpreter

    try:
        with without_native_notes():
            interpreter = Interpreter(str(path), num_threads=threads)
            interpreter.allocate_tensors()
            signature = interpreter.get_signature_runner()
    except (ValueError, RuntimeError) as error:
        reason = (str(error).splitlines() or ["no reason given"])[0]
        raise InputError(f"{path}: the runtime cannot load it ({reason})") from error
    found = {name: details["shape"].tolist() for name, details in signature.get_output_details().items()}
    if found.get(OUTPUT) != [1, outputs]:
        raise InputError(f"{path}: has {outputs} labels, but its model's outputs are {found}")
    return signature
