"""albert-tf tokenizer-check: does a tokenizer give the same ids in Python, in a TensorFlow graph and on devices?"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from albert_tf.tokenization.comparison import Comparison

_DESCRIPTION = """\
Encodes every line of a file in Python, in a TensorFlow graph and as MediaPipe Tasks does on a device (ASCII in lower
case, then the file of save_device_model), and counts the lines and ids that are not those of Python. Exit code 1 when
too many lines differ. In an example, only the pieces around the first difference of a line are shown.
"""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "tokenizer-check",
        help="compare a tokenizer's ids in Python, in a graph and on devices",
        description=_DESCRIPTION,
        epilog="example: albert-tf tokenizer-check runs/sst2 --text-file reviews.txt",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "tokenizer", type=Path, metavar="TOKENIZER", help="run folder, tokenizer's folder or vocabulary file"
    )
    parser.add_argument("--text-file", type=Path, required=True, metavar="FILE", help="texts, one a line")
    parser.add_argument("--cased", action="store_true", help="of a bare vocabulary file: keep capitals")
    parser.add_argument("--keep-accents", action="store_true", help="of a bare SentencePiece file: keep accents")
    parser.add_argument("--quotes", action="store_true", help="of a bare SentencePiece file: turn `` and '' into \"")
    parser.add_argument(
        "--max-different", type=float, default=0.1, metavar="PERCENT", help="of the lines (default: 0.1)"
    )
    parser.add_argument("--examples", type=int, default=5, metavar="N", help="differences to show (default: 5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument("--overwrite", action="store_true", help="replace the file of --json")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from albert_tf.data.text_files import text_lines
    from albert_tf.errors import InputError
    from albert_tf.evaluation.report import write_json
    from albert_tf.files import refuse_existing
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

    if not 0 <= args.max_different <= 100:
        raise InputError(f"--max-different: expected 0 to 100 percent, got {args.max_different:g}")
    if args.examples < 0:
        raise InputError(f"--examples: expected a whole number of at least 0, got {args.examples}")
    if args.json is not None:
        refuse_existing(args.json, overwrite=args.overwrite, file=True)
    options = {"lower": False} if args.cased else {}
    options |= {name: True for name in ("keep_accents", "quotes") if getattr(args, name)}
    tokenizer = AlbertTokenizer.from_pretrained(args.tokenizer, **options)
    lines = list(text_lines(args.text_file))
    if not any(line.strip() for line in lines):
        raise InputError(f"{args.text_file}: expected texts, one a line; the file has none")

    from albert_tf.tokenization.comparison import compare_forms

    comparison = compare_forms(tokenizer.vocabulary, lines, examples=args.examples)
    _print(comparison)
    if args.json is not None:
        write_json(args.json, comparison.as_dict(), overwrite=args.overwrite)
    _fail_above(comparison, args.max_different)
    return 0


def _print(comparison: "Comparison") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{comparison.lines:,} lines, {comparison.ids:,} ids", title_justify="left")
    for name in ("against Python", "different lines", "%", "different ids", "%"):
        table.add_column(name, justify="left" if name == "against Python" else "right")
    for form, found in comparison.differences.items():
        lines, ids = comparison.share_of_lines(form), comparison.share_of_ids(form)
        table.add_row(form, f"{found.lines:,}", f"{lines:.3%}"[:-1], f"{found.ids:,}", f"{ids:.4%}"[:-1])
    Console().print(table)
    for form, found in comparison.differences.items():
        for example in found.examples:
            print(f"line {example.line}")
            print(f"  Python  {' '.join(example.python)}")
            print(f"  {form:7} {' '.join(example.other)}")


def _fail_above(comparison: "Comparison", percent: float) -> None:
    from albert_tf.errors import CheckError

    failed = {form: comparison.share_of_lines(form) for form in comparison.differences}
    failed = {form: share for form, share in failed.items() if 100 * share > percent}
    if failed:
        found = ", ".join(f"{form} {share:.3%}" for form, share in failed.items())
        raise CheckError(f"lines with other ids than in Python: {found}; at most {percent:g}% may differ")
