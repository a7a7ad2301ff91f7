"""Every task trained from scratch on real data, its figure beside an independent scorer's on the same predictions.

    python benchmarks/real_tasks.py --data DATA --json real_tasks.json

The models are small (two layers of width 128) and start from random weights, so the figures are modest: the questions are
whether training finds what the data hold, and whether the figures are right. Weights are the last ones, picked by nothing;
where a data set has no second file, a part of the first is held back. The independent figure starts again from the files:
right answers are read by Python's own csv and json, not by albert_tf, and scored by scikit-learn, SciPy, seqeval or the
functions of the official SQuAD script. A difference above 1e-6 fails.

Figures that are in the JSON file already are kept: an interrupted run goes on. `--tasks NAME,NAME` runs some.
Needs `pip install -e ".[garden,peers]"`, and about fifteen minutes on two cores.
"""

import csv
import dataclasses
import io
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import common

LIMIT = 1e-6
SHAPE = {"hidden_dim": 128, "intermediate_dim": 512, "num_layers": 2, "num_heads": 4, "hidden_dropout": 0.1}
ENGLISH, CHINESE = "albert_vocab_en/30k-clean.model", "albert_vocab_zh/vocab.txt"


@dataclasses.dataclass(frozen=True)
class Files:
    train: Path
    test: Path
    valid: Path | None = None


@dataclasses.dataclass(frozen=True)
class Scoring:
    """How answers are compared with right answers.

    Attributes:
        figure: by its name in our metrics.
        answer: what of one of our answers is scored.
        score: right answers and answers → the independent figure.
        constant: right answers of the training file and the test file → the figure of the best constant answer.
    """

    figure: str
    answer: Callable[[Any], Any]
    score: Callable[[Any, list[Any]], float]
    constant: Callable[[Any, Any], float]


@dataclasses.dataclass(frozen=True)
class Task:
    """One row.

    Attributes:
        task: as on the command line.
        files: the data folder and a folder for parts of files → the files.
        truth: a file → its right answers, read without albert_tf.
        scoring: how these are compared with ours.
        settings: of the run.
        tokenizer: the vocabulary in the data folder.
    """

    task: str
    files: Callable[[Path, Path], Files]
    truth: Callable[[Path], Any]
    scoring: Scoring
    settings: dict[str, Any]
    tokenizer: str = ENGLISH


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--tasks", default=",".join(TASKS), help=f"rows, of {', '.join(TASKS)} (default all)")
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    known = args.json is not None and args.json.exists()
    figures: dict[str, Any] = json.loads(args.json.read_text(encoding="utf-8")) if known else {}
    for name in args.tasks.split(","):
        if name in figures:
            continue
        with tempfile.TemporaryDirectory() as folder:
            figures[name] = measured(TASKS[name], args.data, Path(folder))
        print(f"{name}: {figures[name]}", flush=True)
        if args.json is not None:
            args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    rows = [row(*item) for item in figures.items()]
    common.show("trained from scratch, 2 layers × 128", rows, figures, args.json)
    wrong = [name for name, found in figures.items() if abs(found["ours"] - found["independent"]) > LIMIT]
    raise SystemExit(f"the independent scorer says otherwise: {', '.join(wrong)}" if wrong else 0)


def row(name: str, found: dict[str, Any]) -> dict[str, str]:
    return {
        "data": name,
        "task": found["task"],
        "train / test": f"{found['train_examples']:,} / {found['test_examples']:,}",
        "CPU s": f"{found['cpu_seconds']:.0f}",
        "figure": found["figure"],
        **{side: f"{found[side]:.3f}" for side in ("constant", "ours", "independent")},
        "difference": f"{abs(found['ours'] - found['independent']):.0e}",
    }


def measured(task: Task, data: Path, folder: Path) -> dict[str, Any]:
    from albert_tf.config import AlbertConfig
    from albert_tf.evaluation.evaluate import EVALUATIONS
    from albert_tf.evaluation.remembering import RememberingRunner
    from albert_tf.inference.pipelines import pipeline_of
    from albert_tf.tasks.trained import load_task
    from albert_tf.training import finetune as finetuning
    from albert_tf.training.task_runs import RUNS

    files = task.files(data, folder)
    run_class = next(run for run, _ in RUNS if run.task == task.task)
    config = folder / "config.json"
    AlbertConfig(vocabulary_size=1, **SHAPE).to_json(config)  # type: ignore[arg-type]
    run = run_class.of(
        train=str(files.train),
        valid=str(files.valid) if files.valid else None,
        from_scratch=str(config),
        tokenizer=str(data / task.tokenizer),
        out=str(folder / "run"),
        **task.settings,
    )
    started = time.process_time()
    summary = finetuning.finetune(run)
    cpu_seconds = time.process_time() - started
    runner = RememberingRunner(load_task(run.out))
    pipeline = pipeline_of(runner)
    if run.task == "question-answering" and files.valid is None:
        pipeline.no_answer_threshold = None
    examples = finetuning.TASKS[run.task].read(run, str(files.test), print)
    prepared = pipeline.prepare(examples)
    ours = EVALUATIONS[run.task](pipeline, examples, prepared, str(files.test))
    truth = task.truth(files.test)
    scoring = task.scoring
    answers = [scoring.answer(answer) for answer in pipeline.answer(prepared)]
    return {
        "task": task.task,
        "train_examples": summary["train_examples"],
        "test_examples": len(examples),
        "parameters": summary["parameters"],
        "cpu_seconds": cpu_seconds,
        "figure": scoring.figure,
        "constant": float(scoring.constant(task.truth(files.train), truth)),
        "ours": ours[scoring.figure],
        "independent": float(scoring.score(truth, answers)),
        "metrics": {name: value for name, value in ours.items() if isinstance(value, (int, float))},
    }


# === Files ===


def two_files(train: str, test: str) -> Callable[[Path, Path], Files]:
    return lambda data, _: Files(data / train, data / test)


def one_in_eight(name: str, records: Callable[[str], list[str]]) -> Callable[[Path, Path], Files]:
    """Held back: every eighth record."""

    def split(data: Path, folder: Path) -> Files:
        found = records((data / name).read_text(encoding="utf-8"))
        parts = {"train": [text for number, text in enumerate(found) if number % 8], "test": found[::8]}
        paths = {part: (folder / part).with_suffix(Path(name).suffix) for part in parts}
        for part, kept in parts.items():
            paths[part].write_text("\n".join(kept) + "\n", encoding="utf-8")
        return Files(**paths)

    return split


def csv_records(text: str) -> list[str]:
    """Quoted anew: a record may be of several lines."""
    rows = csv.reader(io.StringIO(text, newline=""))
    return [",".join('"' + cell.replace('"', '""') + '"' for cell in cells) for cells in rows]


def texts_apart(name: str, every: int, **parts: set[int]) -> Callable[[Path, Path], Files]:
    """Parts of the list "data" of a JSON file, whose elements are a text with its questions: no text is in two parts.

    Which of `every` texts belong to a part is its set of numbers.
    """

    def split(data: Path, folder: Path) -> Files:
        texts = texts_in(data / name)
        for part, numbers in parts.items():
            kept = [text for number, text in enumerate(texts) if number % every in numbers]
            (folder / f"{part}.json").write_text(json.dumps({"data": kept}), encoding="utf-8")
        return Files(**{part: folder / f"{part}.json" for part in parts})

    return split


# === Right answers and figures ===


def table_column(column: str | int) -> Callable[[Path], list[str]]:
    """A column by its name in the first line, or by its number in a table that has none."""

    def read(path: Path) -> list[str]:
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        if isinstance(column, int):
            return [cells[column] for cells in rows]
        return [cells[rows[0].index(column)] for cells in rows[1:]]

    return read


def arc_letters(path: Path) -> list[str]:
    """Of the questions whose right option is there: in a hundred of this file there is none."""
    rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))
    return [cells[-1] for cells in rows if cells[-1] in list("ABCD") and cells[1 + "ABCD".index(cells[-1])].strip()]


def similarity_scores(path: Path) -> list[float]:
    return [float(score) for score in table_column("score")(path)]


def texts_in(path: Path) -> list[dict[str, Any]]:
    return list(json.loads(path.read_text(encoding="utf-8"))["data"])


def letters(path: Path) -> list[str]:
    return [answer for text in texts_in(path) for answer in text["answers"]]


def word_labels(path: Path) -> list[list[str]]:
    """In IOB2: this file has S- for entities of one character."""
    texts = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [[label.replace("S-", "B-") for label in text["label"]] for text in texts]


def accuracy(truth: Sequence[str], answers: Sequence[str]) -> float:
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(truth, answers))


def matthews(truth: Sequence[str], answers: Sequence[str]) -> float:
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(truth, answers))


def spearman(truth: Sequence[float], answers: Sequence[float]) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(truth, answers).statistic)


def entity_f1(truth: Sequence[Sequence[str]], answers: Sequence[Sequence[str]]) -> float:
    from seqeval.metrics import f1_score

    return float(f1_score(truth, answers))


def official_f1(truth: list[dict[str, Any]], answers: Sequence[str]) -> float:
    from official.nlp.tools.squad_evaluate_v2_0 import evaluate

    return float(evaluate(truth, dict(zip(question_ids(truth), answers, strict=True)))["f1"])


def question_ids(articles: list[dict[str, Any]]) -> list[str]:
    return [question["id"] for article in articles for part in article["paragraphs"] for question in part["qas"]]


def most_frequent(train: Sequence[str], test: Sequence[str]) -> float:
    return accuracy(test, [Counter(train).most_common(1)[0][0]] * len(test))


def never_an_answer(train: Any, test: list[dict[str, Any]]) -> float:
    return official_f1(test, [""] * len(question_ids(test)))


# === Tasks ===


def glue(name: str, task: str, truth: Callable[[Path], Any], scoring: Scoring, **settings: Any) -> Task:
    train = "train_first20000" if name == "SST-2" else "train"
    files = two_files(f"glue_canonical/{name}/{train}.tsv", f"glue_canonical/{name}/dev.tsv")
    named = {} if task == "similarity" else {"glue": name}
    return Task(task, files, truth, scoring, RUN | named | settings)


def squad(head: str, **parts: set[int]) -> Task:
    files = texts_apart("squad2/cs224n_dev-v2.0.json", 4, **parts)
    settings = {"epochs": 1.0, "max_length": 192, "head": head}
    return Task("question-answering", files, texts_in, ANSWERS, RUN | settings)


RUN = {"learning_rate": 1e-3, "batch_size": 32, "max_length": 128}
ACCURACY = Scoring("accuracy", lambda answer: answer.label, accuracy, most_frequent)
RIGHT_LETTER = Scoring("accuracy", lambda answer: answer.letter, accuracy, most_frequent)
MATTHEWS = Scoring("matthews_correlation", lambda answer: answer.label, matthews, lambda train, test: 0.0)
SPEARMAN = Scoring("spearman", float, spearman, lambda train, test: 0.0)
ENTITIES = Scoring("f1", lambda answer: list(answer.labels), entity_f1, lambda train, test: 0.0)
ANSWERS = Scoring("f1", lambda answer: answer.text, official_f1, never_an_answer)
TASKS: dict[str, Task] = {
    "SST-2": glue("SST-2", "classification", table_column("label"), ACCURACY, epochs=3.0, batch_size=64),
    "CoLA": glue("CoLA", "classification", table_column(1), MATTHEWS, epochs=6.0),
    "RTE": glue("RTE", "classification", table_column("label"), ACCURACY, epochs=4.0),
    "ChnSentiCorp": Task(
        "classification",
        two_files("chnsenticorp/train.tsv", "chnsenticorp/dev.tsv"),
        table_column(1),
        ACCURACY,
        RUN | {"text_column": "0", "label_column": "1", "epochs": 3.0},
        CHINESE,
    ),
    "STS-B": glue("STS-B", "similarity", similarity_scores, SPEARMAN, epochs=4.0),
    "STS-B numbers": glue("STS-B", "regression", similarity_scores, SPEARMAN, epochs=4.0),
    "MSRA": Task(
        "tagging",
        one_in_eight("msra_ner/dev.json", str.splitlines),
        word_labels,
        ENTITIES,
        RUN | {"epochs": 6.0},
        CHINESE,
    ),
    "ARC-easy": Task(
        "multiple-choice",
        one_in_eight("arc/arc_easy_dev.csv", csv_records),
        arc_letters,
        RIGHT_LETTER,
        RUN | {"epochs": 2.0, "batch_size": 16, "leave_out_unusable": True},
    ),
    "C3": Task(
        "multiple-choice",
        texts_apart("expmrc/expmrc-c3-dev.json", 3, train={1, 2}, test={0}),
        letters,
        RIGHT_LETTER,
        RUN | {"epochs": 2.0, "batch_size": 8, "max_length": 192},
        CHINESE,
    ),
    "SQuAD 2.0": squad("squad2", train={2, 3}, test={0}, valid={1}),
    "SQuAD 2.0 spans": squad("span", train={2, 3}, test={0}),  # without a threshold: always an answer
}


if __name__ == "__main__":
    main()
