"""The one exception that means "the input is wrong, not the program"."""

import re

_LONGEST = 3000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class InputError(ValueError):
    """Bad input from the user: a file, a flag, a field.

    The message says what was expected, what came and what to do. The command line prints it on one line and exits
    with code 2; every other exception is a bug and keeps its traceback.

    A message quotes what it found, which may be anything: control characters are written as escapes, and a long message
    loses its middle.
    """

    def __init__(self, message: str) -> None:
        if len(message) > _LONGEST:
            half = _LONGEST // 2
            message = f"{message[:half]} … {message[-half:]}"
        super().__init__(_CONTROL.sub(lambda found: ascii(found[0])[1:-1], message))


class CheckError(Exception):
    """A check found a product of the program not good enough; the command line exits with code 1."""
