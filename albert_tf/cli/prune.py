"""albert-tf prune: a run folder or checkpoint → a narrower one."""

import argparse
import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tf.cli.evaluate_tasks import READERS
from albert_tf.cli.task_options import DATA_OPTIONS, add_options, given_options
from albert_tf.errors import InputError

if TYPE_CHECKING:
    from albert_tf.config import AlbertConfig
    from albert_tf.conversion.checkpoint import Checkpoint
    from albert_tf.conversion.pruning import Indices

_SHARES = (1.0, 0.75, 0.5, 0.25)


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "prune",
        help="cut attention heads and feed-forward columns out of a model",
        description="Cut the attention heads and feed-forward columns that matter least out of the encoder's blocks: a "
        "smaller and faster model. A shared block loses them in every pass. The result is a checkpoint like any other; "
        "finetune --from it trains on what is left.",
        epilog="example: albert-tf prune runs/sst2 --heads 6 --intermediate-dim 0.5 --data train.tsv --valid dev.tsv "
        "--out runs/sst2_pruned",
    )
    parser.add_argument("model", metavar="RUN", help="run folder, .keras file or checkpoint")
    parser.add_argument("--out", type=Path, help="folder to create; without it nothing is written: only tables")
    parser.add_argument(
        "--heads",
        type=_number_or_share,
        metavar="N",
        help="attention heads that a block keeps: a number, or a share: 0.5",
    )
    parser.add_argument(
        "--keep-heads",
        nargs="+",
        metavar="HEADS",
        help="the heads to keep, numbered from 0: 0,3,5; of several attention blocks each with its number: 0:1,2 1:0,3",
    )
    parser.add_argument(
        "--intermediate-dim",
        type=_number_or_share,
        metavar="N",
        help="columns that a feed-forward block keeps: a number, or a share: 0.5",
    )
    parser.add_argument(
        "--importance",
        choices=("gradient", "magnitude"),
        default="gradient",
        help="what is kept: gradient (default), that on which the loss on --data depends most (Michel et al., 2019); "
        "magnitude, that with the largest weights, which needs no data and takes any checkpoint",
    )
    parser.add_argument("--data", metavar="FILE", help="labelled file for gradients, such as the training file")
    parser.add_argument(
        "--examples", type=int, default=2000, metavar="N", help="most examples of --data, evenly taken (default 2000)"
    )
    parser.add_argument(
        "--valid", metavar="FILE", help="labelled file for metrics before and after, and for the sensitivity table"
    )
    parser.add_argument(
        "--keep-shares",
        type=shares,
        metavar="S,S,…",
        help="the sensitivity table has every combination of these shares of heads and of columns (default 1,0.75,0.5,0.25)",
    )
    parser.add_argument("--each-head", action="store_true", help="also the metric without each single head")
    add_options(parser, DATA_OPTIONS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write tables, importance and numbers here")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT and the --json file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    _check(args)
    from rich.console import Console

    from albert_tf.evaluation.pruning_report import pruning_tables
    from albert_tf.evaluation.report import write_json
    from albert_tf.files import refuse_existing, refuse_other_folder
    from albert_tf.presets import WEIGHTS_FILE, load_checkpoint
    from albert_tf.training.pruning import PruneRequest, prune, wanted_shape, write_pruned
    from export.quantization import recipe_by_name

    if args.out is not None:
        refuse_other_folder(args.out, WEIGHTS_FILE, "a preset", overwrite=args.overwrite)
    if args.json is not None:
        refuse_existing(args.json, overwrite=args.overwrite, file=True)
    console = Console()
    # Paths may hold what rich would take for markup.
    say = functools.partial(console.print, markup=False, highlight=False, soft_wrap=True)
    checkpoint = load_checkpoint(args.model)
    request = PruneRequest(
        heads=args.heads,
        columns=args.intermediate_dim,
        keep_heads=_kept_heads(args.keep_heads, checkpoint.config),
        criterion=args.importance,
        most_examples=args.examples,
        keep_shares=args.keep_shares or _SHARES,
        each_head=args.each_head,
    )
    wanted_shape(checkpoint.config, request)  # before the files are read
    request = dataclasses.replace(request, **_labelled(args, checkpoint, say))
    stored_bytes = recipe_by_name("dynamic_int8").stored_bytes
    pruned, record = prune(checkpoint, request, stored_bytes=stored_bytes, report=say)
    for table in pruning_tables(record):
        console.print(table)
    if args.out is not None:
        write_pruned(pruned, record, args.out, overwrite=args.overwrite)
        say(f"written: {args.out}")
    if args.json is not None:
        write_json(args.json, record, overwrite=args.overwrite)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuses options that do not go together, before anything is loaded."""
    if args.heads is not None and args.keep_heads is not None:
        raise InputError("--heads and --keep-heads: both say which heads are kept; give one of them")
    if args.out is not None and (args.heads, args.keep_heads, args.intermediate_dim) == (None, None, None):
        raise InputError("--out: nothing would be removed; give --heads, --keep-heads or --intermediate-dim")
    if args.data is None and args.importance == "gradient":
        raise InputError(
            "--importance gradient needs labelled texts: give --data FILE, or --importance magnitude, which needs none"
        )
    if args.data is not None and args.importance == "magnitude":
        raise InputError("--data: --importance magnitude looks at the weights alone; leave it out")
    if args.valid is None and (args.each_head or args.keep_shares is not None):
        raise InputError("--each-head and --keep-shares go with --valid FILE, which metrics are taken on")
    if args.examples < 1:
        raise InputError(f"--examples: expected at least 1, got {args.examples}")


def _labelled(args: argparse.Namespace, checkpoint: "Checkpoint", say: Callable[[str], None]) -> dict[str, Any]:
    """The examples of --data and --valid, with their file."""
    task = None if checkpoint.task is None else checkpoint.task["task"]
    given = {name: path for name in ("data", "valid") if (path := getattr(args, name)) is not None}
    if task not in READERS:
        if given:
            held = "no fine-tuned model" if task is None else f"a model for {task}"
            raise InputError(
                f"{args.model}: holds {held}; --data and --valid take models for {', '.join(READERS)}. Without them, "
                "--importance magnitude takes any checkpoint"
            )
        return {}
    options = given_options(args, DATA_OPTIONS, task)
    if options and not given:
        raise InputError(f"--{next(iter(options)).replace('_', '-')}: says how --data and --valid are read; give one")
    return {name: (READERS[task](path, say, **options), path) for name, path in given.items()}


def _kept_heads(words: list[str] | None, config: "AlbertConfig") -> "Indices | None":
    """The heads of each attention block, from "0,3,5", or of several blocks "0:1,2" and so on."""
    if words is None:
        return None
    blocks = config.num_blocks[0]
    found: dict[int, tuple[int, ...]] = {}
    for word in words:
        block, colon, heads = word.rpartition(":")
        try:
            index = int(block) if colon else 0
            numbers = tuple(sorted(int(number) for number in heads.split(",")))
        except ValueError as error:
            raise InputError(f"--keep-heads: expected numbers such as 0,3,5 or 1:0,3,5; got {word!r}") from error
        if not 0 <= index < blocks:
            raise InputError(f"--keep-heads {word}: no attention block {index}; there are {blocks}, numbered from 0")
        if index in found:
            raise InputError(f"--keep-heads {word}: attention block {index} is given twice")
        found[index] = numbers
    if missing := [str(index) for index in range(blocks) if index not in found]:
        raise InputError(
            f"--keep-heads: expected the heads of each of {blocks} attention blocks, as in 0:1,2 1:0,3; none of block "
            f"{', '.join(missing)}"
        )
    kept = tuple(found[index] for index in range(blocks))
    for index, numbers in enumerate(kept):
        if len(set(numbers)) < len(numbers) or numbers[0] < 0 or numbers[-1] >= config.num_heads:
            raise InputError(
                f"--keep-heads: attention block {index} has the heads 0 to {config.num_heads - 1}; expected some of them, "
                f"each once, got {','.join(map(str, numbers))}"
            )
    if len(set(map(len, kept))) > 1:
        raise InputError("--keep-heads: expected as many heads of each block, as a config has one number of heads")
    if len(kept[0]) == config.num_heads:
        raise InputError(f"--keep-heads: keeps all {config.num_heads} heads; name fewer, or leave it out")
    return kept


def _number_or_share(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(
            f"expected a whole number, or a share between 0 and 1 such as 0.5; got {text!r}"
        )
    return share


def shares(text: str) -> tuple[float, ...]:
    """Shares of what is kept, from "1,0.75,0.5"."""
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 < share <= 1 for share in found):
        raise argparse.ArgumentTypeError(f"expected shares above 0 and at most 1, with commas between; got {text!r}")
    return found
