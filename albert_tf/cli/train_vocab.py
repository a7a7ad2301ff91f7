"""albert-tf train-vocab: text files → a tokenizer's folder."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_DESCRIPTION = """\
Learns a SentencePiece vocabulary from UTF-8 text files, a sentence or a paragraph a line (.gz, .xz and .bz2 are
unpacked), with ALBERT's settings, and writes it with its text rules as a tokenizer's folder. The same files and
options give the same bytes.
"""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "train-vocab",
        help="learn a vocabulary from text, for a new language or a smaller model",
        description=_DESCRIPTION,
        epilog="example: albert-tf train-vocab wiki.txt.xz novels.txt --size 8000 --sample 200000 --out vocab8k",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("text", type=Path, nargs="+", metavar="TEXT", help="file to learn from")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="tokenizer to write")
    parser.add_argument("--size", type=int, required=True, metavar="N", help="number of ids; ALBERT has 30,000")
    parser.add_argument(
        "--sample",
        type=int,
        metavar="N",
        help="learn from N lines drawn from each TEXT, the same ones every time; default: from all",
    )
    parser.add_argument("--cased", action="store_true", help="keep capitals; default: lower case, as ALBERT")
    parser.add_argument("--keep-accents", action="store_true", help="keep accents and compatibility characters (é, ﬁ)")
    parser.add_argument("--quotes", action="store_true", help="turn `` and '' into \"")
    parser.add_argument(
        "--symbol", action="append", default=[], metavar="WORD", help="a piece that is never split; may be repeated"
    )
    parser.add_argument("--max-length", type=int, default=512, help="tokens of the longest input (default: 512)")
    parser.add_argument("--overwrite", action="store_true", help="replace the tokenizer in FOLDER")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from albert_tf.errors import InputError
    from albert_tf.files import refuse_existing
    from albert_tf.tokenization import tokenizer
    from albert_tf.tokenization.sentencepiece import FILE_NAME
    from albert_tf.tokenization.training import train_sentencepiece

    if args.sample is not None and args.sample < 1:
        raise InputError(f"--sample: expected a whole number above 0, got {args.sample}")
    if args.max_length < 3:  # before the training, not after it
        raise InputError(f"--max-length: expected at least 3, got {args.max_length}")
    for name in (tokenizer.FILE_NAME, FILE_NAME):
        refuse_existing(args.out / name, overwrite=args.overwrite, file=True)
    vocabulary = train_sentencepiece(
        _lines(args.text, args.sample),
        args.size,
        lower=not args.cased,
        keep_accents=args.keep_accents,
        quotes=args.quotes,
        symbols=args.symbol,
    )
    tokenizer.AlbertTokenizer(vocabulary, args.max_length).save(args.out, overwrite=args.overwrite)
    print(f"written: {args.out}")
    return 0


def _lines(paths: Sequence[Path], sample: int | None) -> Iterator[str]:
    from albert_tf.data.text_files import sampled_lines, text_lines

    for path in paths:
        yield from text_lines(path) if sample is None else sampled_lines(path, sample)
