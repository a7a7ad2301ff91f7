"""Runs an exported file from text to answer, on the ai-edge-litert interpreter alone: no TensorFlow."""

import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.files import checked_path
from albert_tf.inference.depth import ADAPTIVE, DEPTH, EXITS, PLAIN, DepthChoice
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.inference.runner import Outputs
from albert_tf.tokenization.packing import Packed
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.metadata import check_model, read_files, read_settings
from export.signatures import Length, OpenedModel, recorded_length

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
        length: the number of tokens that the file takes, several such numbers, or None for any. Of several, each row takes
            the least that it fits into.
        adaptive: what of the depth can be chosen: "none", "passes" or "exits".
        depth: what was chosen with `choose_depth`.

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
        self.length: Length = recorded_length(self.settings)
        self.adaptive: str = self.settings.get("adaptive", PLAIN)
        if self.adaptive not in ADAPTIVE:
            raise InputError(f"{path}: adaptive: expected one of {', '.join(ADAPTIVE)}; got {self.adaptive!r}")
        self.depth = DepthChoice()
        self.tokenizer = open_tokenizer(files, self.settings, path)
        # With the defaults of what it leaves out.
        self.settings["config"] = AlbertConfig.from_dict(self.settings["config"]).to_dict()
        try:
            self.pipeline = pipeline_of(self)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        self._outputs = self.pipeline.outputs(self.settings["config"])
        if self.adaptive == EXITS:
            self._outputs |= {DEPTH: ()}
        self._model = OpenedModel(path, self.length, threads, self.adaptive)
        self._model.check(self._outputs)
        self._one_at_a_time = threading.Lock()  # the interpreter is not made for more

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Answers what the task's pipeline is given."""
        return self.pipeline(*args, **kwargs)

    def choose_depth(self, choice: DepthChoice) -> None:
        """Sets how deep the model goes from now on, as far as the file leaves it open.

        Raises:
            InputError: the file does not leave it open, or has fewer passes.
        """
        choice.check(self.settings["config"]["num_layers"], self.adaptive)
        self.depth = choice

    @property
    def task_settings(self) -> dict[str, Any]:
        """The head's settings, such as its labels."""
        settings: dict[str, Any] = self.settings["settings"]
        return settings

    @property
    def lengths(self) -> tuple[int, ...]:
        """The fixed lengths of the file; none where it takes any."""
        if self.length is None:
            return ()
        return self.length if isinstance(self.length, tuple) else (self.length,)

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
        limit = max(self.lengths, default=self.tokenizer.max_length)
        if not 1 <= len(token_ids) <= limit:
            raise InputError(f"{self.path}: takes 1 to {limit} tokens, got {len(token_ids)}")
        self._check_ids(token_ids, segment_ids)
        with self._one_at_a_time:
            try:
                arrays = self._model.run(token_ids, segment_ids, self.tokenizer.vocabulary.pad_id, self.depth)
            except (ValueError, RuntimeError) as error:
                reason = (str(error).splitlines() or ["no reason given"])[0]
                raise InputError(
                    f"{self.path}: the runtime fails on a row of {len(token_ids)} tokens ({reason})"
                ) from error
        outputs = {
            name: arrays[name][0, : len(token_ids)] if shape[:1] == (None,) else arrays[name][0]
            for name, shape in self._outputs.items()
        }
        for name, shape in self._outputs.items():
            if shape[:1] == (None,) and len(outputs[name]) < len(token_ids):
                raise InputError(
                    f"{self.path}: takes {len(outputs[name])} tokens, while its settings say {limit}; export the file again"
                )
        return outputs

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
    length = recorded_length(settings)
    longest = tokenizer.max_length if length is None else max(length) if isinstance(length, tuple) else length
    tokenizer.max_length = min(tokenizer.max_length, config.max_sequence_length, longest)
    return tokenizer
