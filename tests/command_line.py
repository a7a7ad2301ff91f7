"""Runs `albert-tf` in this process."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from albert_tf.cli.main import main


@dataclasses.dataclass(frozen=True)
class Done:
    """What a command left."""

    code: int
    out: str
    err: str


def albert_tf(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """A function from the command's words to what it left."""

    def run(*words: Any) -> Done:
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as ended:  # argparse
            code = int(ended.code or 0)
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return run


def assert_refused(done: Done, *expected: str) -> None:
    """Exit code 2 and one line on standard error that says all of `expected`; nothing on standard output."""
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("albert-tf: error: ") and done.err.count("\n") == 1 and done.err.endswith("\n")
    for part in expected:
        assert part in done.err
