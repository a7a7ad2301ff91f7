"""albert-tf launch: several local workers of one training."""

import argparse
from typing import Any

from albert_tf.errors import InputError

COMMANDS = ("pretrain", "finetune", "distill")


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "launch",
        help="run pretrain, finetune or distill in several workers on this machine",
        description="Run a training in several workers on this machine. All are started together; when one dies, all are "
        "stopped and started again, and the run goes on from its last saved state. For workers on several machines set "
        "TF_CONFIG on each, or use Slurm, and give the command itself with --strategy multiworker.",
        epilog="example: albert-tf launch --workers 2 -- pretrain --data data --from-scratch albert_tiny_en --out runs/tiny",
    )
    parser.add_argument("--workers", type=int, required=True, metavar="N", help="processes")
    parser.add_argument(
        "--start-timeout", type=float, default=300.0, metavar="N", help="seconds for all to join (default 300)"
    )
    parser.add_argument(
        "--restarts", type=int, default=3, metavar="N", help="times all are started again after one died (default 3)"
    )
    parser.add_argument(
        "training", nargs=argparse.REMAINDER, metavar="-- COMMAND …", help="pretrain …, finetune … or distill …"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from albert_tf.training.launch import LaunchConfig, launch

    command = args.training[1:] if args.training[:1] == ["--"] else args.training
    if not command or command[0] not in COMMANDS:
        raise InputError(
            f"expected -- and then {' or '.join(COMMANDS)} with its options, got {' '.join(command) or 'nothing'}"
        )
    if any(part == "--strategy" or part.startswith("--strategy=") for part in command):
        raise InputError("launch sets --strategy multiworker by itself; leave it out of the command")
    launch(LaunchConfig(args.workers, args.start_timeout, args.restarts), [*command, "--strategy", "multiworker"])
    return 0
