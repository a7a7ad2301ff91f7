"""The one exception that means "the input is wrong, not the program"."""


class InputError(ValueError):
    """Bad input from the user: a file, a flag, a field.

    The message says what was expected, what came and what to do. The command line prints it on one line and exits
    with code 2; every other exception is a bug and keeps its traceback.
    """


class CheckError(Exception):
    """A check found a product of the program not good enough; the command line exits with code 1."""
