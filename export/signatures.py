"""The model in a file, opened by ai-edge-litert: one graph for any length, or one for each of several lengths."""

from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from albert_tf.errors import InputError
from albert_tf.inference.depth import PLAIN, DepthChoice
from albert_tf.tokenization.packing import pad_batch
from export.quiet import without_native_notes

SIGNATURE = "serving_default"
Length = int | tuple[int, ...] | None  # of a file: fixed, several fixed ones, any


def signature_names(length: Length) -> dict[str, int | None]:
    """The signatures that a file has: name → its length, None for any."""
    if isinstance(length, tuple):
        return {f"length_{tokens}": tokens for tokens in sorted(length)}
    return {SIGNATURE: length}


def recorded_length(settings: dict[str, Any]) -> Length:
    """The length in a file's settings; JSON has no tuples."""
    length = settings["length"]
    return tuple(length) if isinstance(length, list) else length


class OpenedModel:
    """A model that is ready to run.

    Args:
        path: a TFLite file.
        length: what its settings say.
        threads: CPU threads.
        adaptive: what of the depth its settings leave open.

    Raises:
        InputError: the runtime does not load it, or its signatures are others.
    """

    def __init__(self, path: str | Path, length: Length, threads: int, adaptive: str = PLAIN) -> None:
        from ai_edge_litert.interpreter import Interpreter

        names = signature_names(length)
        try:
            with without_native_notes():
                interpreter = Interpreter(str(path), num_threads=threads)
                interpreter.allocate_tensors()
                self._runners = {tokens: interpreter.get_signature_runner(name) for name, tokens in names.items()}
        except (ValueError, RuntimeError) as error:
            reason = (str(error).splitlines() or ["no reason given"])[0]
            raise InputError(f"{path}: the runtime cannot load it ({reason})") from error
        self._path, self._adaptive = path, adaptive

    def signature(self, tokens: int) -> tuple[int | None, Any]:
        """The shortest signature that takes so many tokens, and its length."""
        fitting = [(length, runner) for length, runner in self._runners.items() if length is None or length >= tokens]
        if not fitting:
            raise InputError(f"{self._path}: takes at most {max(filter(None, self._runners))} tokens, got {tokens}")
        return fitting[0]  # they are in the order of their lengths

    def run(
        self, token_ids: list[int], segment_ids: list[int], pad_id: int, depth: DepthChoice | None = None
    ) -> dict[str, np.ndarray]:
        """The outputs by name, of a batch of this one row, padded where the length is fixed."""
        length, runner = self.signature(len(token_ids))
        inputs = dict(pad_batch([(token_ids, segment_ids)], pad_id, length=length))
        outputs: dict[str, np.ndarray] = runner(**inputs, **(depth or DepthChoice()).inputs(self._adaptive))
        return outputs

    def check(self, outputs: dict[str, tuple[int | None, ...]]) -> None:
        """Compares every signature with what the settings of the file promise.

        Args:
            outputs: name → shape of one row; None stands for the row's length.

        Raises:
            InputError: an input or output is another one.
        """
        for length, runner in self._runners.items():
            self._check_inputs(runner, length)
            self._check_outputs(runner, outputs, length)

    def _check_inputs(self, runner: Any, length: int | None) -> None:
        """One row of each input, int32, and one value of each that chooses the depth."""
        inputs = runner.get_input_details()
        found = {name: (details["shape_signature"].tolist(), details["dtype"]) for name, details in inputs.items()}
        wanted = [1, -1 if length is None else length]
        depth = {name: ([1], value.dtype.type) for name, value in DepthChoice().inputs(self._adaptive).items()}
        if found != {name: (wanted, np.int32) for name in (TOKEN_IDS, SEGMENT_IDS, PADDING_MASK)} | depth:
            shown = {name: (shape, kind.__name__) for name, (shape, kind) in found.items()}
            others = "".join(f", {kind.__name__} {shape} called {name}" for name, (shape, kind) in depth.items())
            raise InputError(
                f"{self._path}: its settings ask for inputs of int32 {wanted} called {TOKEN_IDS}, {SEGMENT_IDS} and "
                f"{PADDING_MASK}{others}, its model has {shown}"
            )

    def _check_outputs(self, runner: Any, outputs: dict[str, tuple[int | None, ...]], length: int | None) -> None:
        found = {name: details["shape_signature"].tolist() for name, details in runner.get_output_details().items()}
        # The converter leaves open (-1) what it does not work out: the batch of one, at times the length.
        lengths = (-1,) if length is None else (-1, length)
        fits = found.keys() == outputs.keys() and all(
            len(sizes) == 1 + len(shape)
            and all(size in lengths if n is None else size == n for size, n in zip(sizes[1:], shape, strict=True))
            for sizes, shape in zip(found.values(), (outputs[name] for name in found), strict=True)
        )
        if not fits:
            raise InputError(
                f"{self._path}: its settings ask for the outputs {outputs} for each row, its model has {found}"
            )
