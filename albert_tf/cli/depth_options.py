"""Options of `predict`, `evaluate` and `export` on how many passes a model makes."""

import argparse
from typing import TYPE_CHECKING, Any

from albert_tf.inference.depth import ADAPTIVE, RULES, DepthChoice, ExitSettings

if TYPE_CHECKING:
    from albert_tf.tasks.base import AlbertTask


def add_depth_options(parser: argparse.ArgumentParser) -> None:
    """What chooses the depth of a model that is run."""
    parser.add_argument(
        "--passes",
        type=int,
        metavar="N",
        help="make at most N passes through the encoder; a .tflite file takes it where it was exported with --adaptive",
    )
    _add_exit_numbers(parser, "of a model that exits early, in place of its own: ")


def choose_depth(args: argparse.Namespace, runner: Any) -> None:
    """Tells a Keras task or a file what was asked for.

    Raises:
        InputError: it cannot do so.
    """
    runner.choose_depth(DepthChoice(args.passes, args.exit_patience, args.exit_threshold))


def add_adaptive_options(parser: argparse.ArgumentParser) -> None:
    """What an exported model leaves open."""
    parser.add_argument(
        "--adaptive",
        choices=ADAPTIVE,
        help="what of the depth is chosen at run time: passes, by the input num_passes; exits, that and when to stop early, "
        "by exit_patience and exit_threshold; none (default: exits for a model with early exits, else none)",
    )
    parser.add_argument(
        "--exit-rule", choices=tuple(RULES), help="when to stop early, in place of the model's own rule"
    )
    _add_exit_numbers(parser, "in place of the model's own: ")


def exported_exits(args: argparse.Namespace, task: "AlbertTask") -> ExitSettings | None:
    """The exits asked for; None where nothing was asked.

    Raises:
        InputError: numbers for a model without early exits, or exits beside --adaptive that has none.
    """
    from albert_tf.errors import InputError

    given = (args.exit_rule, args.exit_patience, args.exit_threshold)
    if given == (None, None, None):
        return None
    if args.adaptive not in (None, "exits"):
        raise InputError(
            f"--exit-rule, --exit-patience and --exit-threshold go with --adaptive exits, not {args.adaptive}"
        )
    own = task.exits
    rule = args.exit_rule or (own.rule if own is not None else None)
    if rule is None:
        raise InputError("--exit-patience and --exit-threshold: this model has no early exits; give --exit-rule too")
    heads = "shared" if own is None else own.heads
    if own is None or own.rule != rule:  # numbers of another rule say nothing of this one
        return ExitSettings(rule, args.exit_patience, args.exit_threshold, heads)
    patience = own.patience if args.exit_patience is None else args.exit_patience
    threshold = own.threshold if args.exit_threshold is None else args.exit_threshold
    return ExitSettings(rule, patience, threshold, heads)


def _add_exit_numbers(parser: argparse.ArgumentParser, whose: str) -> None:
    parser.add_argument("--exit-patience", type=int, metavar="N", help=f"{whose}settled passes in a row that end a run")
    parser.add_argument(
        "--exit-threshold",
        type=float,
        metavar="X",
        help=f"{whose}confidence above, entropy or change below which a pass is settled",
    )
