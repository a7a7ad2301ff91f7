"""Keeps the notes of TensorFlow's and LiteRT's native code out of the user's terminal, and nothing else."""

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator

# Native code writes these to file descriptor 2 whatever TF_CPP_MIN_LOG_LEVEL says; no setting turns them off.
_NOTES = (
    b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    b"mlir_graph_optimization_pass.cc",
    b"tf_tfl_flatbuffer_helpers.cc",
    b"INFO: Created TensorFlow Lite XNNPACK delegate for CPU.",
)
_STDERR = 2
_only_one = threading.RLock()  # two redirections that overlap would leave standard error in a file


@contextlib.contextmanager
def without_native_notes() -> Iterator[None]:
    """Holds back what the process writes to standard error inside the block, and prints it afterwards without notes.

    Everything is printed when the block raises.
    """
    with _only_one, tempfile.TemporaryFile() as held:
        if sys.stderr is not None:
            sys.stderr.flush()
        try:
            terminal = os.dup(_STDERR)
        except OSError:  # closed: there is nothing to keep clean
            yield
            return
        os.dup2(held.fileno(), _STDERR)
        notes: tuple[bytes, ...] = ()
        try:
            yield
            notes = _NOTES
        finally:
            if sys.stderr is not None:
                sys.stderr.flush()
            os.dup2(terminal, _STDERR)
            os.close(terminal)
            held.seek(0)
            for line in held:
                if not any(note in line for note in notes):
                    os.write(_STDERR, line)
