"""Megabytes of text per second through the tokenizers, one thread each, beside plain sentencepiece.

    python benchmarks/tokenizer.py --data DATA --json tokenizer.json

DATA is a folder with corpora_en/wiki_vital.txt (36,344 lines, 4.9 MB) and albert_vocab_en/30k-clean.model. Plain
sentencepiece segments the lines as they are, without ALBERT's text rules; all others apply them. Sides that are given the
lines one by one are compared with sentencepiece one by one, the others with sentencepiece on lists. transformers takes part
where it is installed. In a turn every side passes over all lines, in parts which the sides have one after the other, as
other work on the machine slows neighbours in time alike; the ratio is the median over the turns. Time is the processor's,
of all threads of the process. "first pass" is a new tokenizer, which knows no word yet; the others have seen the lines.
About two minutes.
"""

import gc
import importlib.util
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

# Before the libraries that read them are loaded.
os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "TOKENIZERS_PARALLELISM": "false"}

import common
import sentencepiece
import tensorflow as tf

from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary

PLAIN = "sentencepiece, no rules"
ONE_BY_ONE = "one by one"
PLAIN_ONE_BY_ONE = f"{PLAIN}, {ONE_BY_ONE}"
PART = 4096  # lines
Side = Callable[[list[str]], object]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--turns", type=int, default=7, help="turns of each side (default 7)")
    args = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    model = args.data / "albert_vocab_en/30k-clean.model"
    text = (args.data / "corpora_en/wiki_vital.txt").read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if line]
    megabytes = sum(len(line.encode()) for line in lines) / 1e6
    makers = python_sides(model) | graph_sides(model) | transformers_side(model)
    seconds: dict[str, list[float]] = {name: [] for name in makers}
    for turn in range(args.turns + 1):
        passed = one_turn({name: make() for name, make in makers.items()}, lines)
        for name in makers if turn else ():  # the first traces and fills memories
            seconds[name].append(passed[name])
    ratios = {
        side: statistics.median(plain / own for plain, own in zip(seconds[beside(side)], values, strict=True))
        for side, values in seconds.items()
    }
    rows = [
        {
            "tokenizer": side,
            "MB/s": f"{megabytes / statistics.median(values):.1f}",
            "against sentencepiece": f"{ratios[side]:.2f}×",
        }
        for side, values in seconds.items()
    ]
    figures = {"megabytes": megabytes, "seconds": seconds, "median_ratio": ratios}
    common.show(f"{len(lines)} lines, {megabytes:.1f} MB, one thread", rows, figures, args.json)


def beside(side: str) -> str:
    """What a side is compared with: plain sentencepiece, which is given lists or texts one by one, as the side is."""
    return PLAIN_ONE_BY_ONE if ONE_BY_ONE in side else PLAIN


def one_turn(sides: dict[str, Side], lines: list[str]) -> dict[str, float]:
    """The seconds that each side takes for all lines, in parts of which each side has its own in turn."""
    gc.collect()
    gc.freeze()  # what all these libraries hold would make the collector slow for everyone
    seconds = dict.fromkeys(sides, 0.0)
    for start in range(0, len(lines), PART):
        part = lines[start : start + PART]
        for name, encode in sides.items():
            started = time.process_time()
            encode(part)
            seconds[name] += time.process_time() - started
    return seconds


def python_sides(model: Path) -> dict[str, Callable[[], Side]]:
    """What is measured of sentencepiece and of ours; each is called for the side of a turn."""
    plain = sentencepiece.SentencePieceProcessor(model_file=str(model))
    seen = SentencePieceVocabulary.load(model)
    return {
        PLAIN: lambda: lambda lines: plain.encode(lines, num_threads=1),
        PLAIN_ONE_BY_ONE: lambda: one_by_one(plain.encode),
        "albert-tf": lambda: seen.encode_batch,
        "albert-tf, first pass": lambda: SentencePieceVocabulary.load(model).encode_batch,
        f"albert-tf, {ONE_BY_ONE}": lambda: one_by_one(seen.encode),
        f"albert-tf, {ONE_BY_ONE}, first pass": lambda: one_by_one(SentencePieceVocabulary.load(model).encode),
        f"albert-tf, {ONE_BY_ONE}, with offsets": lambda: one_by_one(seen.encode_with_offsets),
    }


def graph_sides(model: Path) -> dict[str, Callable[[], Side]]:
    """Ours in the graph, with batches of different sizes."""
    vocabulary = SentencePieceVocabulary.load(model)
    signature = [tf.TensorSpec([None], tf.string)]
    encode = tf.function(vocabulary.graph_encoder(), input_signature=signature)
    with_offsets = tf.function(vocabulary.graph_offset_encoder(), input_signature=signature)
    sides = {
        f"albert-tf graph, batches of {size}": lambda size=size: in_batches(encode, size) for size in (64, 512, 4096)
    }
    return sides | {"albert-tf graph, batches of 512, with offsets": lambda: in_batches(with_offsets, 512)}


def transformers_side(model: Path) -> dict[str, Callable[[], Side]]:
    """transformers' tokenizer of the same model, if it is installed."""
    if importlib.util.find_spec("transformers") is None:
        return {}
    import transformers

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "spiece.model").write_bytes(model.read_bytes())
        (Path(folder) / "config.json").write_text(json.dumps({"model_type": "albert"}))
        tokenizer = transformers.AlbertTokenizer.from_pretrained(folder)
    return {"transformers": lambda: lambda lines: tokenizer(lines, add_special_tokens=False)["input_ids"]}


def one_by_one(encode: Callable[[str], object]) -> Side:
    return lambda lines: [encode(line) for line in lines]


def in_batches(encode: Callable[[tf.Tensor], object], size: int) -> Side:
    return lambda lines: [encode(tf.constant(lines[start : start + size])) for start in range(0, len(lines), size)]


if __name__ == "__main__":
    main()
