"""The files that the page offers: what each is, which runtime of a browser takes it, and its answers here."""

import hashlib
import json
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.files import resolved
from albert_tf.inference.depth import PLAIN
from export.metadata import read_files
from export.runtime import TFLiteRunner
from export.runtime_rules import Verdict, verdicts
from export.tflite_file import open_file
from export.tflite_metadata import DEVICE_VOCABULARY
from export.web.answers import ASKING, Fields, Json, prepared_form

# Tasks that MediaPipe has a class for, and what its verdict is called.
MEDIAPIPE_CLASSES = {
    "classification": "TextClassifier",
    "multi-label": "TextClassifier",
    "similarity": "TextEmbedder",
}
MOST_PIECES = 1024  # that an answer shows
# Settings of the head that the page's decoders read.
_DECODER_SETTINGS = (
    *("head", "doc_stride", "max_question_length", "max_answer_length", "n_best", "start_beams", "end_beams"),
    *("no_answer_threshold", "threshold", "top_k"),
)
_making = threading.Lock()
_made: dict[tuple[bytes, str], bytes] = {}


class ServedModel:
    """A file, opened once. Many threads may ask it.

    Args:
        name: what the page calls it: a number, so that no path comes from outside.
        path: the file.
        threads: CPU threads of the interpreter.

    Raises:
        InputError: the file cannot be used.
    """

    def __init__(self, name: str, path: Path, *, threads: int = 1) -> None:
        self.name, self.path = name, path
        self.runner = TFLiteRunner(path, threads=threads)
        if self.runner.task not in ASKING:
            raise InputError(f"{path}: expected a model for {', '.join(ASKING)}; this one is for {self.runner.task}")
        self.asking = ASKING[self.runner.task]
        self.bytes = path.stat().st_size
        self._verdicts = verdicts(open_file(path), None, "")

    def description(self) -> Json:
        """What the page is told."""
        settings, vocabulary = self.runner.settings, self.runner.tokenizer.vocabulary
        runtime, why = self.browser_runtime()
        own = self.runner.task_settings
        return {
            "id": self.name,
            "name": self.path.name,
            "task": self.runner.task,
            "recipe": settings.get("recipe", {}).get("name"),
            "form": settings.get("form"),
            "lengths": list(self.runner.lengths),
            "bytes": self.bytes,
            "labels": list(own.get("labels") or ()),
            "settings": self._decoder_settings(),
            "tokenizer": vocabulary.kind,
            "max_length": self.runner.tokenizer.max_length,
            "ids": {
                "pad": vocabulary.pad_id,
                "unk": vocabulary.unk_id,
                "cls": vocabulary.cls_id,
                "sep": vocabulary.sep_id,
                "mask": vocabulary.mask_id,
            },
            "takes": {"needs": self.asking.needs, "may": self.asking.may, "sign": self.asking.sign},
            "runtime": runtime,
            "why_not_in_browser": why,
        }

    def _decoder_settings(self) -> Json:
        own: dict[str, Any] = {}
        for source in (getattr(self.runner.pipeline, "settings", None), self.runner.pipeline):
            own |= {name: getattr(source, name) for name in _DECODER_SETTINGS if hasattr(source, name)}
        return own

    def browser_runtime(self) -> tuple[str | None, str]:
        """The runtime of a browser that takes the file, "mediapipe" or "litert"; or None, and why none does."""
        task = self.runner.task
        class_name = MEDIAPIPE_CLASSES.get(task)
        if class_name is not None and self._verdict(class_name).takes == "yes":
            return "mediapipe", ""
        if self.runner.adaptive != PLAIN:
            return None, "the page cannot choose a depth; export the file with --adaptive none"
        litert = self._verdict("LiteRT for the web")
        if litert.takes != "yes":
            return None, f"{litert.runtime} does not take it: {'; '.join(litert.reasons)}"
        if self.runner.tokenizer.vocabulary.kind != "sentencepiece":
            return None, "the page has a tokenizer for SentencePiece only, this vocabulary is WordPiece"
        return "litert", ""

    def _verdict(self, runtime: str) -> Verdict:
        return next(verdict for verdict in self._verdicts if runtime in verdict.runtime)

    def answer(self, asked: Fields) -> Json:
        """The answer to a request, with the tokens that the model was given and the time it took.

        Raises:
            InputError: the request is not one for this task, or the model fails on it.
        """
        example = self.asking.read(asked)
        start = time.perf_counter()
        prepared = self.runner.pipeline.prepare([prepared_form(example)])
        (found,) = self.runner.pipeline.answer(prepared)
        milliseconds = 1000 * (time.perf_counter() - start)
        rows = [list(token_ids) for token_ids, _ in prepared.rows]
        return {
            "answer": self.asking.fields(example, found),
            "tokens": self._tokens(rows),
            "milliseconds": milliseconds,
            "runtime": "ai-edge-litert on the server",
        }

    def tokens(self, asked: Fields) -> Json:
        """The tokens alone, for runtimes that do not tell theirs."""
        prepared = self.runner.pipeline.prepare([prepared_form(self.asking.read(asked))])
        return self._tokens([list(token_ids) for token_ids, _ in prepared.rows])

    def _tokens(self, rows: Sequence[list[int]]) -> Json:
        shown, left = [], MOST_PIECES
        for row in rows:
            if left <= 0:
                break
            shown.append(self.runner.tokenizer.pieces(row[:left]))
            left -= len(row)
        return {"rows": shown, "count": sum(map(len, rows)), "parts": len(rows)}

    def pieces(self) -> list[str]:
        """The vocabulary's entries by id."""
        return self.runner.tokenizer.pieces(range(self.runner.tokenizer.vocabulary.size))

    def device_vocabulary(self) -> bytes:
        """The SentencePiece model that carries the text rules: of the file, or made of its vocabulary.

        Raises:
            InputError: the vocabulary is a WordPiece one.
        """
        if self.runner.tokenizer.vocabulary.kind != "sentencepiece":
            raise InputError(f"{self.path.name}: has a WordPiece vocabulary, no SentencePiece model")
        carried = read_files(self.path).get(DEVICE_VOCABULARY)
        return device_model_of(self.runner.tokenizer.vocabulary) if carried is None else carried


def device_model_of(vocabulary: Any) -> bytes:
    """`device_model`, which takes seconds, made once for all files with the same vocabulary."""
    from albert_tf.tokenization.device_model import device_model

    key = (hashlib.sha256(vocabulary.model).digest(), json.dumps(vocabulary.options(), sort_keys=True))
    with _making:
        if key not in _made:
            _made[key] = device_model(vocabulary)
        return _made[key]


def open_models(paths: Sequence[Path], *, threads: int = 1) -> Mapping[str, ServedModel]:
    """The files by the names that the page knows them by.

    Raises:
        InputError: one cannot be used, or is given twice.
    """
    files = list(map(resolved, paths))
    if again := [path for path, file in zip(paths, files, strict=True) if files.count(file) > 1]:
        raise InputError(f"--tflite: {again[0]} is given twice")
    return {str(number): ServedModel(str(number), path, threads=threads) for number, path in enumerate(paths, start=1)}


def prepare_vocabularies(models: Iterable[ServedModel]) -> None:
    """Makes what the page's tokenizer will ask for, in a thread of its own, while a person still looks at the page."""
    wanted = [model for model in models if model.browser_runtime()[0] == "litert"]
    threading.Thread(target=lambda: [model.device_vocabulary() for model in wanted], daemon=True).start()


def files_here(folder: Path) -> list[Path]:
    """The `.tflite` files in a folder, in its android_demo_assets/, and in the folders of that.

    Raises:
        InputError: there are none.
    """
    assets = folder / "android_demo_assets"
    found = [*sorted(folder.glob("*.tflite")), *sorted(assets.glob("*.tflite")), *sorted(assets.glob("*/*.tflite"))]
    if not found:
        raise InputError(
            f"no .tflite file in {folder} nor in its android_demo_assets: give some with --tflite FILE…, as albert-tf "
            "export tflite writes them"
        )
    return found
