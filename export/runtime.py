"""Runs an exported file from text to answer, on the ai-edge-litert interpreter alone: no TensorFlow."""

import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from albert_tf.errors import InputError
from albert_tf.files import checked_path
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.inference.runner import Outputs
from albert_tf.tokenization.packing import Packed, pad_batch
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.metadata import check_model, read_files, read_settings
from export.quiet import without_native_notes

TOKENIZER_FILES = ("tokenizer.json", "vocabulary.spm", "vocab.txt")
# Far above any processor that runs these files; the native runtime ends the process at absurd numbers.
MOST_THREADS = 256


class TFLiteRunner:
    """A task in one file. Several threads may use one runner; it answers them one after the other.

    `TFLiteRunner("model.tflite")(["some text"])` gives one answer for each text: see the task's pipeline in
    `albert_tf.inference` for what goes in and comes out.

    Args:
        path: a file written by `export.export_tflite`.
        threads: CPU threads of the interpreter.

    Attributes:
        settings: what albert_tf.json in the file says: recipe, form, length, config.
        task: the name of the task.
        pipeline: the task's pipeline on this file.
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
        self.task: str = self.settings["task"]
        self.length: int | None = self.settings["length"]
        self.tokenizer = open_tokenizer(files, self.settings, path)
        try:
            self.pipeline = pipeline_of(self)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        self._outputs = self.pipeline.outputs(self.settings["config"])
        self._model = open_model(path, threads)
        check_inputs(self._model, self.length, path)
        check_outputs(self._model, self._outputs, self.length, path)
        self._one_at_a_time = threading.Lock()  # the interpreter is not made for more

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Answers what the task's pipeline is given."""
        return self.pipeline(*args, **kwargs)

    @property
    def task_settings(self) -> dict[str, Any]:
        """The head's settings, such as its labels."""
        settings: dict[str, Any] = self.settings["settings"]
        return settings

    @property
    def required_tokenizer(self) -> AlbertTokenizer:
        """The file's own tokenizer."""
        return self.tokenizer

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        """What the model puts out for each row of token ids and segment ids, in order."""
        results: list[Any] = [None] * len(rows)
        # Shortest first: the interpreter allocates anew only when the length changes.
        for index in sorted(range(len(rows)), key=lambda i: len(rows[i][0])):
            results[index] = self.run(*rows[index])
        return results

    def run(self, token_ids: list[int], segment_ids: list[int]) -> Outputs:
        """What the model puts out for one row, which is padded where the file's length is fixed."""
        limit = self.tokenizer.max_length if self.length is None else self.length
        if not 1 <= len(token_ids) <= limit:
            raise InputError(f"{self.path}: takes 1 to {limit} tokens, got {len(token_ids)}")
        self._check_ids(token_ids, segment_ids)
        batch = pad_batch([(token_ids, segment_ids)], self.tokenizer.vocabulary.pad_id, length=self.length)
        with self._one_at_a_time:
            try:
                arrays = self._model(**batch)
            except (ValueError, RuntimeError) as error:
                reason = (str(error).splitlines() or ["no reason given"])[0]
                raise InputError(
                    f"{self.path}: the runtime fails on a row of {len(token_ids)} tokens ({reason})"
                ) from error
        return {
            name: arrays[name][0, : len(token_ids)] if shape[:1] == (None,) else arrays[name][0]
            for name, shape in self._outputs.items()
        }

    def _check_ids(self, token_ids: list[int], segment_ids: list[int]) -> None:
        """The native runtime reads any row it is told to; a wrong one gives a wrong answer or ends the run."""
        if len(token_ids) != len(segment_ids):
            raise InputError(f"segment_ids: expected {len(token_ids)}, one for each token, got {len(segment_ids)}")
        limits = (("token_ids", token_ids, "vocabulary_size"), ("segment_ids", segment_ids, "num_segments"))
        for name, values, field in limits:
            rows = self.settings["config"][field]
            if any(not isinstance(v, (int, np.integer)) or not 0 <= v < rows for v in values):
                raise InputError(f"{name}: expected whole numbers from 0 to {rows - 1}")


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


def open_model(path: str | Path, threads: int) -> Any:
    """The model in `path`, ready to be called with its inputs by name."""
    from ai_edge_litert.interpreter import Interpreter

    try:
        with without_native_notes():
            interpreter = Interpreter(str(path), num_threads=threads)
            interpreter.allocate_tensors()
            return interpreter.get_signature_runner()
    except (ValueError, RuntimeError) as error:
        reason = (str(error).splitlines() or ["no reason given"])[0]
        raise InputError(f"{path}: the runtime cannot load it ({reason})") from error


def check_inputs(model: Any, length: int | None, path: str | Path) -> None:
    """Compares what an opened model takes with what its settings promise: one row of each input, int32.

    Args:
        model: of `open_model`.
        length: of every row, or None for any.
        path: of the file, for the message.
    """
    inputs = model.get_input_details()
    found = {name: (details["shape_signature"].tolist(), details["dtype"]) for name, details in inputs.items()}
    wanted = [1, -1 if length is None else length]
    fits = found.keys() == {TOKEN_IDS, SEGMENT_IDS, PADDING_MASK} and all(
        shape == wanted and kind is np.int32 for shape, kind in found.values()
    )
    if not fits:
        shown = {name: (shape, kind.__name__) for name, (shape, kind) in found.items()}
        raise InputError(
            f"{path}: its settings ask for inputs of int32 {wanted} called {TOKEN_IDS}, {SEGMENT_IDS} and {PADDING_MASK}, "
            f"its model has {shown}"
        )


def check_outputs(model: Any, outputs: dict[str, tuple[int | None, ...]], length: int | None, path: str | Path) -> None:
    """Compares what an opened model puts out with what its settings promise.

    Args:
        model: of `open_model`.
        outputs: name → shape of one row; None stands for the row's length.
        length: of every row, or None for any.
        path: of the file, for the message.
    """
    found = {name: details["shape_signature"].tolist() for name, details in model.get_output_details().items()}
    # The converter leaves open (-1) what it does not work out: the batch of one, at times the length.
    lengths = (-1,) if length is None else (-1, length)
    fits = found.keys() == outputs.keys() and all(
        len(sizes) == 1 + len(shape)
        and all(size in lengths if n is None else size == n for size, n in zip(sizes[1:], shape, strict=True))
        for sizes, shape in zip(found.values(), (outputs[name] for name in found), strict=True)
    )
    if not fits:
        raise InputError(f"{path}: its settings ask for the outputs {outputs} for each row, its model has {found}")
