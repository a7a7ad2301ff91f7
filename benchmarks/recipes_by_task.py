"""Every recipe in every form for every task: how the file's answers compare with those of the trained Keras model.

    python benchmarks/recipes_by_task.py --data DATA --json recipes_by_task.json

The models are tiny (four passes of width 64) and see a few hundred batches of real data: enough for answers that are no
accident, which is what agreement is about. Each file is compared on examples that were not trained on, as `albert-tf
export --examples` compares it; the report's figures are the columns. Recipes of integer activations are calibrated on
other examples. "refused": the file is not written without --force. About twenty minutes on two cores. `--tasks NAME,NAME`
and `--recipes NAME,NAME` run some.
"""

import dataclasses
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import common

SHAPE = {"hidden_dim": 64, "intermediate_dim": 128, "embedding_dim": 32, "num_layers": 4, "num_heads": 4}
ENGLISH, CHINESE = "albert_vocab_en/30k-clean.model", "albert_vocab_zh/vocab.txt"
RUN = {"learning_rate": 1e-3, "batch_size": 32, "max_length": 64}
STEPS = 200
EXAMPLES = 48
CALIBRATION_TEXTS = 100
LENGTH = 64
FORMS = ("loop", "unrolled")


@dataclasses.dataclass(frozen=True)
class Row:
    """A task on its data.

    Attributes:
        task: as on the command line.
        files: the data folder and a folder for files → what is trained on, and what is compared on.
        settings: of the run.
        tokenizer: the vocabulary in the data folder.
    """

    task: str
    files: Callable[[Path, Path], tuple[Path, Path]]
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    tokenizer: str = ENGLISH


def main() -> None:
    from export.quantization import RECIPES

    parser = common.parser(__doc__)
    parser.add_argument("--tasks", default=",".join(ROWS), help=f"of {', '.join(ROWS)} (default: all)")
    parser.add_argument("--recipes", default=",".join(RECIPES), help="default: all")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"updates of each model (default {STEPS})")
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    figures = []
    for name in args.tasks.split(","):
        with tempfile.TemporaryDirectory() as folder:
            task, examples, texts = trained(ROWS[name], args.data, Path(folder), args.steps)
            for recipe in args.recipes.split(","):
                for form in FORMS if RECIPES[recipe].activation_bits is None else FORMS[1:]:
                    path = Path(folder) / "m.tflite"
                    found = compared(task, examples, texts, path, recipe, form)
                    figures.append({"task": name, "recipe": recipe, "form": form, **found})
                    print(json.dumps(figures[-1]), flush=True)
    common.show(f"{args.steps} steps, {EXAMPLES} examples", [shown(row) for row in figures], figures, args.json)


def trained(row: Row, data: Path, folder: Path, steps: int) -> tuple[Any, Sequence[Any] | None, list[Any]]:
    """The model, what its files are compared on (None where texts are), and other texts and pairs."""
    from albert_tf.config import AlbertConfig
    from albert_tf.tasks.trained import load_task
    from albert_tf.training import finetune as finetuning
    from albert_tf.training.task_runs import RUNS

    config = folder / "config.json"
    AlbertConfig(vocabulary_size=1, **SHAPE).to_json(config)  # type: ignore[arg-type]
    if row.task == "fill-mask":
        lines = (data / "corpora_en/wiki_vital.txt").read_text(encoding="utf-8").splitlines()
        texts = [line for line in lines if line.strip()][: CALIBRATION_TEXTS + EXAMPLES]
        return pretrained(data, folder, config, steps), None, texts
    run_class = next(run for run, _ in RUNS if run.task == row.task)
    train, test = row.files(data, folder)
    run = run_class.of(
        train=str(train),
        from_scratch=str(config),
        tokenizer=str(data / row.tokenizer),
        out=str(folder / "run"),
        **RUN | {"steps": steps} | row.settings,
    )
    finetuning.finetune(run, report=lambda line: None)
    examples = finetuning.TASKS[row.task].read(run, str(test), lambda line: None)
    apart = max(2, len(examples) // EXAMPLES)
    others = examples[1 :: max(2, len(examples) // CALIBRATION_TEXTS)][:CALIBRATION_TEXTS]
    return load_task(run.out), examples[::apart][:EXAMPLES], [text_of(example) for example in others]


def text_of(example: Any) -> str | tuple[str, str]:
    """The text of an example, or the two of a row."""
    from albert_tf.data.similarity import SimilarityExample

    if hasattr(example, "words"):
        return " ".join(example.words)
    if hasattr(example, "options"):
        return example.context, f"{example.question} {example.options[0]}"
    if hasattr(example, "question"):
        return example.question, example.context
    in_one_row = example.pair is not None and not isinstance(example, SimilarityExample)
    return (example.text, example.pair) if in_one_row else example.text


def pretrained(data: Path, folder: Path, config: Path, steps: int) -> Any:
    from albert_tf.tasks.trained import load_task

    text, made = data / "corpora_en/wiki_vital.txt", folder / "data"
    common.albert_tf("pretrain-data", text, "--tokenizer", data / ENGLISH, "--max-length", LENGTH, "--out", made)
    settings = ("--optimizer", "adamw", "--learning-rate", 1e-3, "--batch-size", 32, "--steps", steps)
    common.albert_tf("pretrain", "--data", made, "--from-scratch", config, "--out", folder / "run", *settings)
    return load_task(folder / "run")


def compared(
    task: Any, examples: Sequence[Any] | None, texts: list[Any], path: Path, recipe: str, form: str
) -> dict[str, Any]:
    from export.quantization import RECIPES
    from export.tflite import export_tflite

    in_integers = RECIPES[recipe].activation_bits is not None
    report = export_tflite(
        task,
        path,
        recipe=recipe,
        form=form,
        length=task.required_tokenizer.max_length if in_integers else None,
        calibration=texts[:CALIBRATION_TEXTS] if in_integers else None,
        examples=examples,
        texts=texts[-EXAMPLES:] if examples is None else None,
        measure=False,
        force=True,
        overwrite=True,
    )
    metric = next(iter(report.metrics.items()), None)
    return {
        "bytes_per_parameter": report.bytes_per_parameter,
        "mean_difference": report.comparison.mean_difference,
        "distance": report.comparison.distance,
        "cosine": report.comparison.cosine,
        "agreement": report.comparison.agreement,
        "metric": metric and metric[0],
        "keras": metric and metric[1].keras,
        "file": metric and metric[1].file,
        "failed": report.failed,
    }


def shown(row: dict[str, Any]) -> dict[str, str]:
    agreement = row["agreement"]
    return {
        "task": row["task"],
        "recipe": row["recipe"],
        "form": row["form"],
        "distance": f"{row['distance']:.1e}",
        "cosine": f"{row['cosine']:.5f}",
        "same decision": "" if agreement is None else f"{agreement:.3f}",
        "metric": row["metric"] or "",
        "Keras": "" if row["keras"] is None else f"{row['keras']:.4g}",
        "file": "" if row["file"] is None else f"{row['file']:.4g}",
        "refused": "yes" if row["failed"] else "",
    }


# === Files ===


def two_files(train: str, test: str) -> Callable[[Path, Path], tuple[Path, Path]]:
    return lambda data, _: (data / train, data / test)


def tagged_lines(data: Path, folder: Path) -> tuple[Path, Path]:
    """Held back: every eighth line."""
    lines = (data / "msra_ner/dev.json").read_text(encoding="utf-8").splitlines()
    return parts(folder, ".json", lines)


def kinds_of_entities(data: Path, folder: Path) -> tuple[Path, Path]:
    """Which kinds of names a text has: labels of the text, made of those of its characters."""
    records = map(json.loads, (data / "msra_ner/dev.json").read_text(encoding="utf-8").splitlines())
    rows = [
        {"text": "".join(record["text"]), "labels": sorted({tag[2:] for tag in record["label"] if tag != "O"})}
        for record in records
    ]
    return parts(folder, ".jsonl", [json.dumps(row) for row in rows])


def parts(folder: Path, suffix: str, lines: list[str]) -> tuple[Path, Path]:
    train, test = (folder / f"{name}{suffix}" for name in ("train", "test"))
    train.write_text("".join(f"{line}\n" for k, line in enumerate(lines) if k % 8), encoding="utf-8")
    test.write_text("".join(f"{line}\n" for line in lines[::8]), encoding="utf-8")
    return train, test


def passages(name: str) -> Callable[[Path, Path], tuple[Path, Path]]:
    """Held back: every fourth passage with its questions."""

    def split(data: Path, folder: Path) -> tuple[Path, Path]:
        found = json.loads((data / name).read_text(encoding="utf-8"))["data"]
        train, test = folder / "train.json", folder / "test.json"
        train.write_text(json.dumps({"data": [text for k, text in enumerate(found) if k % 4]}), encoding="utf-8")
        test.write_text(json.dumps({"data": found[::4]}), encoding="utf-8")
        return train, test

    return split


SQUAD = passages("squad2/cs224n_dev-v2.0.json")
STS_B = two_files("glue_canonical/STS-B/train.tsv", "glue_canonical/STS-B/dev.tsv")
SST_2 = two_files("glue_canonical/SST-2/train_first20000.tsv", "glue_canonical/SST-2/dev.tsv")
ROWS = {
    "classification": Row("classification", SST_2),
    "multi-label": Row("multi-label", kinds_of_entities, tokenizer=CHINESE),
    "regression": Row("regression", STS_B, {"glue": "STS-B"}),
    "similarity": Row("similarity", STS_B),
    "tagging": Row("tagging", tagged_lines, tokenizer=CHINESE),
    "questions-span": Row("question-answering", SQUAD, {"head": "span", "max_length": 192}),
    "questions-squad2": Row("question-answering", SQUAD, {"head": "squad2", "max_length": 192}),
    "multiple-choice": Row("multiple-choice", passages("expmrc/expmrc-c3-dev.json"), {"batch_size": 8}, CHINESE),
    "fill-mask": Row("fill-mask", SST_2),
}


if __name__ == "__main__":
    main()
