"""The command `albert-tf`: one file a subcommand, each with `add_parser(subparsers)` and `run(args) -> exit code`."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import albert_tf
from albert_tf.cli import (
    convert,
    demo,
    distill,
    evaluate,
    export,
    finetune,
    inspect,
    launch,
    params,
    predict,
    pretrain,
    pretrain_data,
    prune,
    tokenizer_check,
    train_vocab,
    tune_device,
    web,
)
from albert_tf.cli.guard import runs_tflite, watched
from albert_tf.cli.outputs import refuse_clashes, with_place
from albert_tf.errors import CheckError, InputError

COMMANDS = (
    demo,
    params,
    convert,
    train_vocab,
    tokenizer_check,
    pretrain_data,
    pretrain,
    finetune,
    distill,
    launch,
    evaluate,
    predict,
    prune,
    tune_device,
    export,
    inspect,
    web,
)


class Parser(argparse.ArgumentParser):
    """Wrong use gives one line, like every other error, not the usage of twenty options before it."""

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        sys.stdout.flush()  # the help, while a reader that has gone is no error
        super().exit(status, message)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"albert-tf: error: {message} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="albert-tf",
        description="ALBERT for TensorFlow and Keras 3: fine-tune on text, export small TFLite files, run them.",
        epilog="exit codes: 0 done, 1 a check failed, 2 wrong use or bad input",
    )
    parser.add_argument("--version", action="version", version=f"albert-tf {albert_tf.__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None, *, apart: bool = False) -> int:
    """Runs one command and returns its exit code; errors of the user become one line on stderr.

    Args:
        argv: the words of the command line; None for this process's own.
        apart: run a `.tflite` file in a process of its own, as a damaged one can end it; see `albert_tf.cli.guard`.
    """
    # Before TensorFlow is first loaded: its start-up notes are not for the user of a command.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # A closed stream is None: what would be written there is not wanted.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a text may hold what the terminal's encoding does not
    args = argparse.Namespace()
    try:
        args = build_parser().parse_args(argv)
        refuse_clashes(args)
        if apart and runs_tflite(args) and (ended := watched(args.model)) is not None:
            return ended
        code = int(args.run(args))
        sys.stdout.flush()  # here, where a reader that has gone is no error
        return code
    except InputError as error:
        return _fail(error, 2)
    except CheckError as error:
        return _fail(error, 1)
    except BrokenPipeError:
        return _without_reader()
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # so rich ends the program
            return _without_reader()
        raise
    except OSError as error:
        return _fail(with_place(error, args), 2)
    except KeyboardInterrupt:
        print("albert-tf: interrupted", file=sys.stderr)
        return 130


def run() -> None:
    """The console script."""
    sys.exit(main(apart=True))


def _without_reader() -> int:
    """As in `albert-tf params | head -1`: what is still to be flushed at exit must not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _fail(error: Exception | str, code: int) -> int:
    message = " ".join(str(error).split())
    print(f"albert-tf: error: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    run()
