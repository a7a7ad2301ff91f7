"""albert-tf predict: text → label, from a run folder or a `.tflite` file."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.files import read_text

CHUNK = 1024


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "predict",
        help="label texts with a run folder or a .tflite file",
        description="Label texts. Prints one line a text: label, probability, text, with tabs between.",
        epilog='example: albert-tf predict sst2.tflite --text "a gripping, beautifully shot film"',
    )
    parser.add_argument("model", type=Path, help="run folder or .tflite file")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--text", action="append", help="a text (may be repeated)")
    source.add_argument("--file", type=Path, help="file with one text a line; default: standard input")
    parser.add_argument("--pair", action="append", help="the second text of each --text, for models of text pairs")
    parser.add_argument("--jsonl", action="store_true", help="print JSON lines with every label's probability")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads for a .tflite file (default 1)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from albert_tf.cli.models import open_classifier
    from albert_tf.data.schema import Prediction

    if args.pair is not None and len(args.pair) != len(args.text or ()):
        raise InputError(f"expected one --pair for each --text, got {len(args.pair)} and {len(args.text or ())}")
    if args.threads < 1:
        raise InputError(f"--threads: expected at least 1, got {args.threads}")
    model = open_classifier(args.model, threads=args.threads)
    for texts in _chunks(args):
        for text, row in zip(texts, model.predict_probabilities(texts, args.pair), strict=True):
            answer = Prediction.from_probabilities(row, model.labels)
            if args.jsonl:
                fields = {"text": text, "label": answer.label, "probabilities": answer.probabilities}
                print(json.dumps(fields, ensure_ascii=False))
            else:
                print(answer.label, f"{answer.score:.4f}", " ".join(text.split()), sep="\t")
    return 0


def _chunks(args: argparse.Namespace) -> Iterator[list[str]]:
    if args.text is not None:
        yield args.text
        return
    if args.file is not None:
        lines: Any = read_text(args.file).splitlines()
    else:
        lines = (raw.decode("utf-8", errors="replace").rstrip("\r\n") for raw in sys.stdin.buffer)
    chunk: list[str] = []
    for line in lines:
        chunk.append(line)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
