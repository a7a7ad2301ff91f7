"""Size, memory and latency of TFLite files: loop against unrolled, dynamic length against a length fixed at 128.

    python benchmarks/device_files.py --data DATA --json device_files.json

DATA is a folder with glue_canonical/SST-2/dev.tsv and albert_vocab_en/30k-clean.model. The weights are random: size,
memory and speed do not depend on them. Every file is measured in processes of its own, one thread: on sentences of
median length, and on texts of 128 tokens. Memory and load are the model's; the tokenizer, which is the same in every
file, is in the figures of --json. About four minutes on two cores.
"""

import dataclasses
import statistics
import tempfile
from pathlib import Path
from typing import Any

import common

from albert_tf import AlbertBackbone, AlbertConfig, AlbertTextClassifier, AlbertTokenizer
from albert_tf.data.tables import read_examples
from export.measurement import measure
from export.tflite import export_tflite

LONG = 128
VARIANTS = [
    (recipe, form, length)
    for recipe in ("float32", "float16", "dynamic_int8")
    for form in ("loop", "unrolled")
    for length in (None, LONG)
]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--config", default="albert_base_v2", help="model size (default albert_base_v2)")
    parser.add_argument("--texts", type=int, default=30, help="SST-2 dev sentences to run (default 30)")
    args = parser.parse_args()
    tokenizer = AlbertTokenizer.from_pretrained(args.data / "albert_vocab_en/30k-clean.model", max_length=LONG)
    task = AlbertTextClassifier(AlbertBackbone(AlbertConfig.from_name(args.config)), tokenizer, labels=["0", "1"])
    texts = median_texts(
        [example.text for example in read_examples(args.data / "glue_canonical/SST-2/dev.tsv")], task, args.texts
    )
    long_texts = [" ".join(texts)] * 10  # cut to the length of the model's input
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for recipe, form, length in VARIANTS:
            path = Path(folder) / f"{recipe}-{form}-{length}.tflite"
            report = export_tflite(task, path, recipe=recipe, form=form, length=length, measure=False)
            figures: dict[str, Any] = dataclasses.asdict(report) | {"length": length or "any"}
            figures |= {"sentences": dataclasses.asdict(measure(path, texts, repeats=1))}
            figures |= {"long": dataclasses.asdict(measure(path, long_texts, repeats=1))}
            rows.append(figures)
    mean = rows[0]["sentences"]["mean_tokens"]
    title = f"{args.config}, 1 thread; SST-2 dev sentences of {mean:.0f} tokens, texts of {LONG}"
    common.show(title, [shown(row) for row in rows], rows, args.json)


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
        f"ms, {LONG}": f"{long['median_latency_ms']:.1f}",
        "ms, sentence": f"{sentences['median_latency_ms']:.1f}",
    }


if __name__ == "__main__":
    main()
