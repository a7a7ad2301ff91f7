"""Pretraining examples from plain text, side by side with create_pretraining_data of the TF Model Garden, on one core.

    python benchmarks/pretraining_data.py --data DATA --json pretraining_data.json

DATA is a folder with corpora_en/novels_train.txt.xz and albert_vocab_en/30k-clean.model. Both sides make the same: with
that vocabulary examples of 128 tokens, of whole words up to three in a row 15 % masked, at most 19, as the TFRecords that
run_pretraining.py reads; every document once, and (the Garden's default) ten times with other masks. Each measurement is
a process of its own, begins with empty caches, and counts processor seconds after the imports. The Garden's task is next
sentences, which uses some sentences twice, so both tokens and text are compared. A longer text shows how memory grows.

Needs `pip install -e ".[garden]"`. Takes about four minutes on an idle core.
"""

import argparse
import json
import lzma
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common

LENGTH, PREDICTIONS = 128, 19
GARDEN, OURS = "Model Garden", "albert-tf"
LEAST = 10  # times as fast, with ten masks for each document


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument(
        "--megabytes", type=float, default=4, help="of text; the longer one has four times as much (default 4)"
    )
    parser.add_argument(
        "--measure", nargs=4, metavar=("SIDE", "TEXT", "VOCABULARY", "DUPLICATES"), help=argparse.SUPPRESS
    )
    args = parser.parse_args()
    if args.measure:
        side, text, vocabulary, duplicates = args.measure
        print(json.dumps(measured(side, Path(text), Path(vocabulary), int(duplicates))))
        return
    vocabulary = args.data / "albert_vocab_en/30k-clean.model"
    with tempfile.TemporaryDirectory() as folder:
        short, long = Path(folder) / "short.txt", Path(folder) / "long.txt"
        for path, megabytes in ((short, args.megabytes), (long, 4 * args.megabytes)):
            write_text(args.data / "corpora_en/novels_train.txt.xz", path, megabytes)
        runs = [(short, 1), (long, 1), (short, 10)]
        rows = [
            in_fresh_process(side, text, vocabulary, duplicates) for text, duplicates in runs for side in (GARDEN, OURS)
        ]
    for garden, ours in zip(rows[::2], rows[1::2], strict=True):
        for unit in ("tokens", "text_bytes"):
            ours[f"{unit}_ratio"] = ours[unit] / ours["seconds"] / (garden[unit] / garden["seconds"])
    title = f"examples of {LENGTH} tokens with masks, one core"
    common.show(title, [shown(row) for row in rows], rows, args.json)
    ratio = rows[-1]["tokens_ratio"]
    sys.exit(f"{ratio:.1f} times as fast as the Model Garden, under {LEAST}" if ratio < LEAST else 0)


def write_text(corpus: Path, path: Path, megabytes: float) -> None:
    """The beginning of the corpus."""
    size = 0
    with lzma.open(corpus, "rt", encoding="utf-8") as lines, path.open("w", encoding="utf-8") as text:
        for line in lines:
            text.write(line)
            size += len(line)
            if size >= megabytes * 1e6:
                return


def in_fresh_process(side: str, text: Path, vocabulary: Path, duplicates: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--data", ".", "--measure", side, text, vocabulary, str(duplicates)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def measured(side: str, text: Path, vocabulary: Path, duplicates: int) -> dict[str, Any]:
    make = garden_maker(vocabulary, duplicates) if side == GARDEN else our_maker(vocabulary, duplicates)
    before = peak_bytes()
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        counts = make(text, Path(folder))
        seconds = time.process_time() - started
    figures = {"side": side, "text_bytes": text.stat().st_size, "duplicates": duplicates, "seconds": seconds}
    return figures | counts | {"memory_growth_bytes": peak_bytes() - before}


def our_maker(vocabulary: Path, duplicates: int) -> Any:
    from albert_tf.data.masking import MaskingRules
    from albert_tf.data.pretraining_making import make_pretraining_data
    from albert_tf.data.pretraining_manifest import TRAIN, PretrainingDataSettings
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

    tokenizer = AlbertTokenizer.from_pretrained(vocabulary)

    def make(text: Path, folder: Path) -> dict[str, Any]:
        settings = PretrainingDataSettings(
            (str(text),),
            max_length=LENGTH,
            held_out=0.0,
            duplicates=duplicates,
            static_masks=MaskingRules(max_predictions=PREDICTIONS),
            shard_megabytes=1.0,
        )
        totals = make_pretraining_data(settings, tokenizer, folder / "data", workers=1).totals(TRAIN)
        return {"tokens": totals["tokens"], "examples": totals["examples"]}

    return make


def garden_maker(vocabulary: Path, duplicates: int) -> Any:
    from official.nlp.data import create_pretraining_data
    from official.nlp.tools import tokenization

    tokenizer = tokenization.FullSentencePieceTokenizer(str(vocabulary))
    process = create_pretraining_data.get_processor_text_fn(True, True)

    def make(text: Path, folder: Path) -> dict[str, Any]:
        instances = create_pretraining_data.create_training_instances(
            [str(text)],
            tokenizer,
            process,
            LENGTH,
            duplicates,
            0.1,
            0.15,
            PREDICTIONS,
            random.Random(0),
            do_whole_word_mask=True,
            max_ngram_size=3,
        )
        path = str(folder / "examples.tfrecord")
        create_pretraining_data.write_instance_to_example_files(
            instances, tokenizer, LENGTH, PREDICTIONS, [path], False, False
        )
        return {
            "tokens": sum(len(instance.tokens) for instance in instances),
            "examples": len(instances),
        }

    return make


def peak_bytes() -> int:
    """The most memory that this process has had (Linux)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def shown(row: dict[str, Any]) -> dict[str, str]:
    return {
        "side": row["side"],
        "text MB": f"{row['text_bytes'] / 1e6:.1f}",
        "duplicates": str(row["duplicates"]),
        "seconds": f"{row['seconds']:.1f}",
        "tokens/s": f"{row['tokens'] / row['seconds']:,.0f}",
        "times": f"{row['tokens_ratio']:.1f}" if "tokens_ratio" in row else "",
        "text kB/s": f"{row['text_bytes'] / 1e3 / row['seconds']:,.0f}",
        "times the text": f"{row['text_bytes_ratio']:.1f}" if "text_bytes_ratio" in row else "",
        "memory MB": f"{row['memory_growth_bytes'] / 1e6:.0f}",
    }


if __name__ == "__main__":
    main()
