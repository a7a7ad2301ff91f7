"""What the ALBERT paper says of pretraining, asked again at tiny size: sentence order, sharing, width of the embeddings.

    python benchmarks/pretraining_claims.py --data DATA --work FOLDER --json pretraining_claims.json

Eight models are pretrained on the same texts (the beginning of corpora_en/novels_train.txt.xz), in the same way, with the
product's own commands; one thing is changed at a time. Figures are those of held-out documents.

- Paper, table 5: a model trained on sentence order also tells next sentences from others to a degree; one trained on next
  sentences cannot tell the order. Each model is asked both. Its answers are taken as they are: nothing is trained for the
  other question. For both, 1 means "not as it should be".
- Table 4: sharing weights costs little for its size.
- Table 3: with all weights shared, wide embeddings cost parameters and bring little.

FOLDER keeps vocabulary, data and runs: an interrupted call goes on. Takes about an hour on two idle cores.
"""

import argparse
import dataclasses
import json
import lzma
import os
from pathlib import Path
from typing import Any

import common

LENGTH, BATCH = 64, 32
VOCABULARY = 8000
SHAPE = {"hidden_dim": 128, "intermediate_dim": 512, "num_layers": 4, "num_heads": 4, "embedding_dim": 64}
ORDER, NEXT = "sentence order", "next sentences"


@dataclasses.dataclass(frozen=True)
class Variant:
    """One model.

    Attributes:
        part: the table that it is in.
        name: its row.
        changes: fields of the config that differ from `SHAPE`.
        data: what its texts are paired for.
    """

    part: str
    name: str
    changes: dict[str, Any]
    data: str = ORDER


BASE = Variant("base", "ALBERT", {})
VARIANTS = (
    BASE,
    Variant("objective", "next sentences", {}, NEXT),
    *(Variant("sharing", mode, {"sharing": mode}) for mode in ("attention", "ffn", "none")),
    *(Variant("embedding width", f"E = {width}", {"embedding_dim": width}) for width in (16, 32, 128)),
)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument(
        "--work", type=Path, default=Path("runs/pretraining_claims"), help="folder for vocabulary, data and runs"
    )
    parser.add_argument("--megabytes", type=float, default=40, help="of text (default 40)")
    parser.add_argument("--steps", type=int, default=4000, help=f"updates of {BATCH} texts each (default 4000)")
    parser.add_argument("--precision", default="mixed_bfloat16", help="of pretrain (default mixed_bfloat16)")
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    folders = prepared(args)
    figures = [{"part": v.part, "name": v.name, **measured(v, folders, args)} for v in VARIANTS]
    base = figures[0]
    tables = {
        "objective": ("paper, table 5", [base | {"name": ORDER}, *of_part(figures, "objective")]),
        "sharing": ("paper, table 4", [base | {"name": "all"}, *of_part(figures, "sharing")]),
        "embedding width": ("paper, table 3", with_base(figures, base)),
    }
    for part, (where, rows) in tables.items():
        common.show(f"{part} ({where}); {args.steps:,} steps", [shown(part, row) for row in rows], figures, args.json)


def of_part(figures: list[dict[str, Any]], part: str) -> list[dict[str, Any]]:
    return [figure for figure in figures if figure["part"] == part]


def with_base(figures: list[dict[str, Any]], base: dict[str, Any]) -> list[dict[str, Any]]:
    """Embedding widths in their order."""
    rows = [*of_part(figures, "embedding width"), base | {"name": f"E = {SHAPE['embedding_dim']}"}]
    return sorted(rows, key=lambda row: int(row["name"].split()[-1]))


def prepared(args: argparse.Namespace) -> dict[str, Path]:
    """The data folder for each of the two questions."""
    args.work.mkdir(parents=True, exist_ok=True)
    text, vocabulary = args.work / "text.txt", args.work / "vocabulary"
    if not text.exists():
        with lzma.open(args.data / "corpora_en/novels_train.txt.xz") as file:
            content = file.read(round(1e6 * args.megabytes))
        text.write_bytes(content[: content.rindex(b"\n") + 1])
    if not vocabulary.exists():
        common.albert_tf("train-vocab", text, "--size", VOCABULARY, "--sample", 100_000, "--out", vocabulary)
    folders = {ORDER: args.work / "order", NEXT: args.work / "next"}
    for question, folder in folders.items():
        if not folder.exists():
            more = ["--nsp"] if question == NEXT else []
            common.albert_tf(
                *("pretrain-data", text, "--tokenizer", vocabulary, "--max-length", LENGTH),
                *("--held-out", 0.02, "--out", folder, *more),
            )
    return folders


def measured(variant: Variant, folders: dict[str, Path], args: argparse.Namespace) -> dict[str, Any]:
    """Pretrains the variant unless that is done, and asks it both questions."""
    from albert_tf.config import AlbertConfig

    out = args.work / variant.name.replace(" ", "")
    if not out.exists():
        shape = args.work / f"{out.name}.json"
        config = AlbertConfig(vocabulary_size=VOCABULARY, **SHAPE | variant.changes)
        config.to_json(shape, overwrite=True)
        common.albert_tf(
            *("pretrain", "--data", folders[variant.data], "--from-scratch", shape, "--out", out),
            *("--steps", args.steps, "--batch-size", BATCH, "--optimizer", "adamw", "--learning-rate", 1e-3),
            *("--warmup", 0.05, "--precision", args.precision),
        )
    summary = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    found = {question: asked(out, folder) for question, folder in folders.items()}
    return {
        "parameters": summary["parameters"],
        "masked_lm_loss": found[ORDER]["masked_lm_loss"],
        "masked_lm_accuracy": found[ORDER]["masked_lm_accuracy"],
        **{question: found[question]["sentence_order_accuracy"] for question in folders},
    }


def asked(run: Path, folder: Path) -> dict[str, float]:
    """The figures of a pretrained model on the held-out texts of a data folder."""
    from albert_tf.data.batching import num_batches
    from albert_tf.data.masking import MaskingRules
    from albert_tf.data.pretraining_data import PretrainingData
    from albert_tf.tasks.pretraining import AlbertPretrainer
    from albert_tf.training.pretrain import pretraining_dataset

    model, data = AlbertPretrainer.from_pretrained(run), PretrainingData(folder)
    model.compile()
    held_out = pretraining_dataset(lambda: data.held_out_batches(BATCH, MaskingRules(), seed=0))
    steps = num_batches(data.num_held_out, BATCH)
    return {name: float(x) for name, x in model.evaluate(held_out, steps=steps, verbose=0, return_dict=True).items()}


def shown(part: str, row: dict[str, Any]) -> dict[str, str]:
    return {
        part: row["name"],
        "parameters": f"{row['parameters']:,}",
        "masked words, loss": f"{row['masked_lm_loss']:.3f}",
        "accuracy %": f"{100 * row['masked_lm_accuracy']:.1f}",
        **{f"{question} %": f"{100 * row[question]:.1f}" for question in (ORDER, NEXT)},
    }


if __name__ == "__main__":
    main()
