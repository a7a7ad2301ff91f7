"""Size, memory and latency of TFLite files: every recipe, loop against unrolled, any length against 128 tokens.

    python benchmarks/device_files.py --data DATA --json device_files.json

DATA is a folder with glue_canonical/SST-2/dev.tsv and albert_vocab_en/30k-clean.model. The weights are random: size,
memory and speed do not depend on them. Every file is measured in processes of its own, one thread: on sentences of
median length, and on rows of 16, 32, 64 and 128 tokens. Memory and load are the model's; the tokenizer, which is the same
in every file, is in the figures of --json. About ten minutes on two cores.
"""

import dataclasses
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import common

from albert_tf import AlbertBackbone, AlbertConfig, AlbertTextClassifier, AlbertTokenizer
from albert_tf.data.tables import read_examples
from export.measurement import measure
from export.quantization import RECIPES
from export.tflite import export_tflite

LONG = 128
LENGTHS = (16, 32, 64, LONG)
CALIBRATION_TEXTS = 20


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--config", default="albert_base_v2", help="model size (default albert_base_v2)")
    parser.add_argument("--texts", type=int, default=30, help="SST-2 dev sentences to run (default 30)")
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), help="recipes to measure (default: all)")
    args = parser.parse_args()
    tokenizer = AlbertTokenizer.from_pretrained(args.data / "albert_vocab_en/30k-clean.model", max_length=LONG)
    task = AlbertTextClassifier(AlbertBackbone(AlbertConfig.from_name(args.config)), tokenizer, labels=["0", "1"])
    texts = [example.text for example in read_examples(args.data / "glue_canonical/SST-2/dev.tsv")]
    sentences, calibration = median_texts(texts, task, args.texts), texts[:CALIBRATION_TEXTS]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, form, length in variants(args.recipes):
            path = Path(folder) / f"{name}-{form}-{length}.tflite"
            options: dict[str, Any] = {"recipe": name, "form": form, "length": length}
            if RECIPES[name].activation_bits is not None:
                options["calibration"] = calibration
            # Random weights make answers that a recipe may not keep; agreement is looked at on trained ones.
            report = export_tflite(task, path, measure=False, force=True, **options)
            rows.append(figures(path, sentences, LENGTHS if length is None else (length,)))
            rows[-1] |= dataclasses.asdict(report) | {"length": length or "any"}
            print(shown(rows[-1]), flush=True)
    mean = rows[0]["sentences"]["mean_tokens"]
    title = f"{args.config}, 1 thread; SST-2 dev sentences of {mean:.0f} tokens"
    common.show(title, [shown(row) for row in rows], rows, args.json)


def variants(recipes: Sequence[str]) -> list[tuple[str, str, int | None]]:
    """Recipe, form and length of every file; recipes of integer activations have one form, and no open length."""
    found: list[tuple[str, str, int | None]] = []
    for name in recipes:
        integers = RECIPES[name].activation_bits is not None
        for form in ("unrolled",) if integers else ("loop", "unrolled"):
            found += [(name, form, length) for length in ((LONG,) if integers else (None, LONG))]
    return found


def figures(path: Path, sentences: list[str], lengths: Sequence[int]) -> dict[str, Any]:
    """On the sentences, and on texts of every length."""
    long_texts = [" ".join(sentences)] * 3  # cut to the length of the model's input
    return {
        "sentences": dataclasses.asdict(measure(path, sentences, repeats=1)),
        "long": dataclasses.asdict(measure(path, long_texts, repeats=1, lengths=lengths)),
    }


def median_texts(texts: list[str], task: AlbertTextClassifier, count: int) -> list[str]:
    """The `count` texts whose token counts are nearest to the median of all."""
    lengths = [len(token_ids) for token_ids, _ in task.encode(texts)]
    middle = statistics.median(lengths)
    nearest = sorted(range(len(texts)), key=lambda i: abs(lengths[i] - middle))[:count]
    return [texts[i] for i in sorted(nearest)]


def shown(row: dict[str, Any]) -> dict[str, str]:
    sentences, long = row["sentences"], row["long"]
    return {
        "recipe": row["recipe"],
        "form": row["form"],
        "length": str(row["length"]),
        "MB": f"{row['model_bytes'] / 1e6:.2f}",
        "B/param": f"{row['bytes_per_parameter']:.3f}",
        "load ms": f"{long['load_ms'] - long['tokenizer_load_ms']:.0f}",
        f"memory MB, {LONG}": f"{(long['memory_growth_bytes'] - long['tokenizer_growth_bytes']) / 1e6:.0f}",
        **{f"ms, {n}": f"{long['latencies_ms'][n]:.1f}" if n in long["latencies_ms"] else "" for n in LENGTHS},
        "ms, sentence": f"{sentences['median_latency_ms']:.1f}",
    }


if __name__ == "__main__":
    main()
