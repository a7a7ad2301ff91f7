"""albert-tf pretrain-data: text files → a folder of examples for pretraining."""

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from albert_tf.data.masking import MaskingRules
    from albert_tf.data.pretraining_manifest import Manifest, PretrainingDataSettings
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_DESCRIPTION = """\
Turns plain text into examples for `albert-tf pretrain`: pairs of consecutive texts as token ids, in compressed
TFRecord files, with a manifest of settings and counts. Masks are drawn, and texts swapped, in training, anew in every
epoch.

Text: UTF-8, a sentence a line and a blank line between documents (--paragraphs: a paragraph a line); .gz, .xz and .bz2
are unpacked. Memory does not grow with it, and every core works. Given again after an interruption, the same command
goes on where it was. The examples do not depend on the number of processes.

example:
  albert-tf pretrain-data wiki.txt.xz books.txt.gz --tokenizer vocabulary --max-length 128 --out data/wiki
"""


def add_parser(subparsers: "Subparsers") -> None:
    """Adds the command to those of `albert-tf`."""
    parser = subparsers.add_parser(
        "pretrain-data",
        help="turn plain text into examples for pretraining",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("inputs", nargs="+", metavar="TEXT", help="text file")
    add(
        "--tokenizer", required=True, metavar="PATH", help="vocabulary: *.model, *.spm, vocab.txt, or a folder with one"
    )
    add("--out", required=True, metavar="FOLDER", help="folder to create")
    add("--paragraphs", action="store_true", help="a line is a paragraph, to be split into sentences")
    add("--max-length", type=int, default=512, metavar="N", help="tokens of the longest example (default 512)")
    add(
        "--short-probability",
        type=float,
        default=0.1,
        metavar="P",
        help="share of the documents cut into shorter examples, of a random length (default 0.1)",
    )
    add(
        "--duplicates",
        type=int,
        default=1,
        metavar="N",
        help="use each document N times, with other borders between the texts (default 1)",
    )
    add(
        "--held-out",
        type=float,
        default=0.01,
        metavar="P",
        help="share of the documents kept from training, to validate on (default 0.01)",
    )
    add("--chinese-words", action="store_true", help="mask whole Chinese words, as jieba finds them (extra: chinese)")
    add("--nsp", action="store_true", help="BERT's next-sentence task instead of sentence order, to compare")
    add("--seed", type=int, default=0, metavar="N", help="of everything random (default 0)")
    add("--workers", type=int, metavar="N", help="processes (default: one for each core)")
    add("--shard-megabytes", type=float, default=4.0, metavar="N", help="text of one file of examples (default 4)")
    _add_other_systems(parser)
    add(
        "--beam",
        metavar="FLAGS",
        help="run as an Apache Beam pipeline (extra: beam) with these options of it, all in one word, as in "
        '--beam="--runner=FlinkRunner --flink_master=host:8081"; TEXT may then be patterns and, like FOLDER, anywhere that '
        "Beam reads (gs://, s3://, hdfs://)",
    )
    add("--overwrite", action="store_true", help="replace FOLDER; forget an interrupted call")
    add("--json", type=Path, metavar="FILE", help="write the totals here too")
    parser.set_defaults(run=run)


def _add_other_systems(parser: argparse.ArgumentParser) -> None:
    fixed = parser.add_argument_group(
        "examples for other systems",
        "files that run_pretraining.py of google-research/albert and TF Model Garden read; albert-tf pretrain does not",
    )
    fixed.add_argument("--static-masks", action="store_true", help="mask now, and write the published features, padded")
    fixed.add_argument("--masked-share", type=float, metavar="P", help="share of the tokens masked (default 0.15)")
    fixed.add_argument("--max-ngram", type=int, metavar="N", help="words masked in a row at most (default 3)")
    fixed.add_argument(
        "--max-predictions",
        type=int,
        metavar="N",
        help="masked tokens of an example at most (default: --masked-share of --max-length)",
    )


def run(args: argparse.Namespace) -> int:
    """Makes the folder and prints what is in it.

    Returns:
        The exit code, 0.

    Raises:
        InputError: an option or a file that cannot be used.
    """
    from rich.console import Console

    from albert_tf.data.pretraining_manifest import PretrainingDataSettings
    from albert_tf.evaluation.report import write_json
    from albert_tf.files import refuse_existing
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

    if args.json is not None:
        refuse_existing(args.json, overwrite=args.overwrite, file=True)
    settings = PretrainingDataSettings(
        inputs=tuple(args.inputs),
        max_length=args.max_length,
        short_probability=args.short_probability,
        paragraphs=args.paragraphs,
        next_sentence=args.nsp,
        chinese_words=args.chinese_words,
        duplicates=args.duplicates,
        held_out=args.held_out,
        static_masks=_static_masks(args),
        shard_megabytes=args.shard_megabytes,
        seed=args.seed,
    )
    tokenizer = AlbertTokenizer.from_pretrained(args.tokenizer)
    console = Console()
    if args.beam is None:
        manifest = _make_here(settings, tokenizer, args, console)
    else:
        manifest = _make_with_beam(settings, tokenizer, args)
    _print_totals(console, manifest)
    console.print(f"written: {args.out}", markup=False, highlight=False, soft_wrap=True)
    if args.json is not None:
        write_json(args.json, _totals(manifest), overwrite=args.overwrite)
    return 0


def _make_here(
    settings: "PretrainingDataSettings", tokenizer: "AlbertTokenizer", args: argparse.Namespace, console: "Console"
) -> "Manifest":
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from albert_tf.data.pretraining_making import make_pretraining_data

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading", total=None)

        def progress(shards: int, size: int) -> None:
            bar.update(task, description=f"{size / 1e6:,.0f} MB of text, {shards} shards")

        return make_pretraining_data(
            settings, tokenizer, args.out, workers=args.workers, overwrite=args.overwrite, progress=progress
        )


def _make_with_beam(
    settings: "PretrainingDataSettings", tokenizer: "AlbertTokenizer", args: argparse.Namespace
) -> "Manifest":
    from albert_tf.errors import InputError

    if args.workers is not None:
        raise InputError("--workers: Beam's own options say how many, as in --beam=--direct_num_workers=4")
    try:
        from albert_tf.data.pretraining_beam import run_pretraining_pipeline
    except ModuleNotFoundError as error:
        if error.name != "apache_beam":
            raise
        raise InputError(
            '--beam: expected the package apache-beam; install it: pip install "albert-tf[beam]"'
        ) from error
    return run_pretraining_pipeline(settings, tokenizer, args.out, shlex.split(args.beam), overwrite=args.overwrite)


def _static_masks(args: argparse.Namespace) -> "MaskingRules | None":
    from albert_tf.data.masking import MaskingRules
    from albert_tf.errors import InputError

    given = {"rate": args.masked_share, "max_ngram": args.max_ngram, "max_predictions": args.max_predictions}
    given = {name: value for name, value in given.items() if value is not None}
    if not args.static_masks:
        if given:
            raise InputError(
                "--masked-share, --max-ngram and --max-predictions go with --static-masks; otherwise masks are drawn in "
                "training"
            )
        return None
    return MaskingRules(**given)


def _totals(manifest: "Manifest") -> dict[str, dict[str, int]]:
    from albert_tf.data.pretraining_manifest import HELD_OUT, TRAIN

    return {split: manifest.totals(split) for split in (TRAIN, HELD_OUT)}


def _print_totals(console: "Console", manifest: "Manifest") -> None:
    from rich.table import Table

    totals = _totals(manifest)
    table = Table("", *totals, title="examples for pretraining")
    for column in table.columns[1:]:
        column.justify = "right"
    for name in next(iter(totals.values())):
        table.add_row(name.replace("_", " "), *(f"{counts[name]:,}" for counts in totals.values()))
    console.print(table)
