"""The files of GLUE (Wang et al., 2018), in the layouts in which they are spread; see `GLUE_TASKS`.

None of them is quoted: a `"` is part of a text. Which file a folder has for what, its columns, labels and figures are those
of the tasks' pages at gluebenchmark.com and of the published download script.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from albert_tf.data.columns import Column, listed, position_of
from albert_tf.data.rows import split_lines, start_of
from albert_tf.data.schema import TextExample
from albert_tf.data.tables import read_examples
from albert_tf.errors import InputError
from albert_tf.files import read_text

_MRPC_TRAIN, _MRPC_TEST, _MRPC_DEV_IDS = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "dev_ids.tsv"


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """One task.

    Attributes:
        name: as GLUE writes it.
        texts: the columns of the text and of its pair.
        label: the column of the label.
        labels: all of them; none where the label is a number.
        metrics: the task's own figures, the first of them picks the best weights.
        files: the names that the file for training, for validation and for the test may have, the usual one first.
        columns: of files without header, where there are such.
        test_texts: the columns of the texts in the file for the test, where they are called otherwise.
    """

    name: str
    texts: tuple[str, ...]
    label: str = "label"
    labels: tuple[str, ...] = ("0", "1")
    metrics: tuple[str, ...] = ("accuracy",)
    files: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] = (("train.tsv",), ("dev.tsv",), ("test.tsv",))
    columns: tuple[str, ...] = ()
    test_texts: tuple[str, ...] = ()

    @property
    def handed_in(self) -> str:
        """The name that GLUE's server wants for the file of predictions."""
        return "MNLI-m.tsv" if self.name == "MNLI" else f"{self.name}.tsv"


_PAIR = ("sentence1", "sentence2")
_ENTAILMENT = ("entailment", "not_entailment")
_THREE = ("contradiction", "entailment", "neutral")
_MATTHEWS = ("matthews_correlation",)
_COLA = GlueTask("CoLA", ("sentence",), metrics=_MATTHEWS, columns=("source", "label", "mark", "sentence"))
_MRPC_FILES = (("train.tsv", _MRPC_TRAIN), ("dev.tsv", _MRPC_DEV_IDS), ("test.tsv", _MRPC_TEST))


def _mnli_files(part: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    return ("train.tsv",), (f"dev_{part}.tsv",), (f"test_{part}.tsv",)


GLUE_TASKS: dict[str, GlueTask] = {
    task.name: task
    for task in (
        _COLA,
        GlueTask("SST-2", ("sentence",)),
        GlueTask("MRPC", ("#1 String", "#2 String"), "Quality", metrics=("f1", "accuracy"), files=_MRPC_FILES),
        GlueTask("QQP", ("question1", "question2"), "is_duplicate", metrics=("f1", "accuracy")),
        GlueTask("STS-B", _PAIR, "score", (), ("pearson", "spearman")),
        GlueTask("MNLI", _PAIR, "gold_label", _THREE, files=_mnli_files("matched")),
        GlueTask("MNLI-mm", _PAIR, "gold_label", _THREE, files=_mnli_files("mismatched")),
        GlueTask("QNLI", ("question", "sentence"), labels=_ENTAILMENT),
        GlueTask("RTE", _PAIR, labels=_ENTAILMENT),
        GlueTask("WNLI", _PAIR),
        GlueTask(
            "AX",
            ("Premise", "Hypothesis"),
            "Label",
            _THREE,
            _MATTHEWS,
            ((), ("diagnostic-full.tsv",), ("AX.tsv", "diagnostic.tsv", "test.tsv")),
            test_texts=_PAIR,
        ),
    )
}
SPLITS = ("train", "dev", "test")
SCORES = (0.0, 5.0)  # the lowest and highest of STS-B


def glue_task(name: str) -> GlueTask:
    """The task called `name`, without regard to case and hyphens: "sst2" is SST-2.

    Raises:
        InputError: there is none.
    """
    plain = {_plain(task): task for task in GLUE_TASKS}
    if _plain(name) not in plain:
        raise InputError(f"--glue: expected one of {', '.join(GLUE_TASKS)}; got {name!r}")
    return GLUE_TASKS[plain[_plain(name)]]


def glue_file(path: str | Path, task: GlueTask, split: str) -> Path:
    """The file of the task for "train", "dev" or "test" in a folder of GLUE; a path that is no folder is the file.

    Raises:
        InputError: the folder has none.
    """
    path = Path(path)
    if not path.is_dir():
        return path
    names = task.files[SPLITS.index(split)]
    if not names:
        raise InputError(f"--glue {task.name}: GLUE has no file for {split} of it; it is a test for models of MNLI")
    found = next((path / name for name in names if (path / name).is_file()), None)
    if found is None:
        wanted = " or ".join(names)
        raise InputError(f"{path}: expected the folder of GLUE's {task.name} with {wanted}; give the file itself")
    return found


def run_settings(
    name: str, train: str, valid: str | None, *, task: str, columns: tuple[Column | None, ...]
) -> dict[str, str]:
    """What the task of GLUE called `name` decides of a run: its files, and the figure that picks the best weights.

    Args:
        name: of the task of GLUE.
        train, valid: files or folders; without `valid`, that of the folder is taken.
        task: what is trained.
        columns: those that were asked for.

    Raises:
        InputError: an unknown task of GLUE, one for another kind of model, a folder without the files, or columns.
    """
    glue = glue_task(name)
    if (kind := "classification" if glue.labels else "regression") != task:
        raise InputError(f"--glue {glue.name} is for finetune {kind}")
    if any(column is not None for column in columns):
        raise InputError("--glue says which columns there are; leave out --text-column, --pair-column, --label-column")
    settings = {"glue": glue.name, "train": str(glue_file(train, glue, "train")), "best_metric": glue.metrics[0]}
    if valid is not None or Path(train).is_dir():
        settings["valid"] = str(glue_file(valid or train, glue, "dev"))
    return settings


def refuse_folders(train: str, valid: str | None) -> None:
    """Raises InputError where one of the two is a folder, which only --glue makes sense of."""
    for name, path in (("train", train), ("valid", valid)):
        if path is not None and Path(path).is_dir():
            raise InputError(f"--{name}: {path} is a folder; give a file, or for a folder of GLUE --glue TASK")


def read_labelled(
    path: str | Path,
    report: Callable[[str], None] = print,
    *,
    glue: str | None = None,
    **columns: Any,
) -> list[TextExample]:
    """The examples in a table, or in a file or folder of a task of GLUE; of a folder those for validation.

    Args:
        path: the file, with `glue` also the folder.
        report: receives a line on rows that are left out.
        glue: the name of the task.
        **columns: as `read_examples` takes them; GLUE's files have their own.

    Raises:
        InputError: see `read_examples` and `read_glue`.
    """
    if glue is None:
        return read_examples(path, **columns)
    if given := [name for name, column in columns.items() if column is not None]:
        raise InputError(f"--{given[0].replace('_', '-')}: --glue says which columns there are; give one of the two")
    task = glue_task(glue)
    return read_glue(glue_file(path, task, "dev"), task, report)


def read_glue(path: str | Path, task: GlueTask, report: Callable[[str], None] = print) -> list[TextExample]:
    """The examples in a file of the task, with their labels.

    MRPC as Microsoft spreads it is one file for training and validation: `msr_paraphrase_train.txt` without the pairs in
    `dev_ids.tsv` beside it, and `dev_ids.tsv` for these pairs.

    Args:
        path: the file.
        task: whose columns and labels are expected.
        report: receives a line on rows that are left out: some of QQP's have lost their columns.

    Raises:
        InputError: not such a file, or a label that the task does not have.
    """
    path = Path(path)
    dev_ids = _pairs_of_ids(path.with_name(_MRPC_DEV_IDS)) if task.name == "MRPC" else None
    train = path.with_name(_MRPC_TRAIN) if path.name == _MRPC_DEV_IDS and task.name == "MRPC" else path
    names, rows = _rows(train, task, report)
    if dev_ids is not None and train.name == _MRPC_TRAIN:
        first, second = (_column(name, names, train) for name in ("#1 ID", "#2 ID"))
        rows = [(n, f) for n, f in rows if ((f[first], f[second]) in dev_ids) == (path.name == _MRPC_DEV_IDS)]
    elif train.name == _MRPC_TRAIN and report is not None:
        report(f"{train}: no {_MRPC_DEV_IDS} beside it, so the pairs for validation are among these for training")
    columns = [_column(name, names, path) for name in (*task.texts, task.label)]
    examples = []
    for number, fields in rows:
        *texts, label = (fields[column] for column in columns)
        label = label.strip()
        if task.labels and label not in task.labels:
            raise InputError(
                f"{train}, line {number} ({start_of(texts[0])}): expected one of the labels {listed(task.labels)} of "
                f"{task.name}, got {label!r}"
            )
        examples.append(TextExample(texts[0], texts[1] if len(texts) > 1 else None, label))
    if not examples:
        raise InputError(f"{path}: expected rows of {task.name}, found none")
    return examples


def read_glue_test(path: str | Path, task: GlueTask) -> tuple[list[str], list[TextExample]]:
    """The index and the texts of each row of a file of the task; a label in it is not looked at.

    Raises:
        InputError: not such a file, or an index that stands twice.
    """
    path = Path(path)
    names, rows = _rows(path, task, None)
    found = [[position_of(name, names, path) for name in texts] for texts in (task.texts, task.test_texts)]
    columns = next((own for own in found if own and None not in own), None)
    if columns is None:
        columns = [_column(name, names, path) for name in task.test_texts or task.texts]
    index = next((at for name in ("index", "id") if (at := position_of(name, names, path)) is not None), None)
    lines: dict[str, int] = {}
    examples = []
    for row, (number, fields) in enumerate(rows):
        name = str(row) if index is None else fields[index].strip()
        if name in lines:
            raise InputError(f"{path}, line {number}: the index {name!r} stands on line {lines[name]} already")
        lines[name] = number
        texts = [fields[column] for column in columns if column is not None]
        examples.append(TextExample(texts[0], texts[1] if len(texts) > 1 else None))
    if not examples:
        raise InputError(f"{path}: expected rows of {task.name}, found none")
    return list(lines), examples


def _rows(
    path: Path, task: GlueTask, report: Callable[[str], None] | None
) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The columns' names, and the rows with their lines. With `report`, rows that have lost columns are left out where the
    published file has such."""
    lines = split_lines(read_text(path))
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise InputError(f"{path}: the file is empty; expected rows of {task.name}")
    rows = [(number, line.split("\t")) for number, line in enumerate(lines, start=1)]
    # Of files without header, the one for the test has one.
    if task.columns and position_of(task.texts[0], rows[0][1], path) is None:
        names = list(task.columns)
    else:
        names = rows.pop(0)[1]
    even, left_out = [], []
    for number, fields in rows:
        if len(fields) == len(names):
            even.append((number, fields))
        elif task.name == "QQP" and len(fields) < len(names) and report is not None:
            left_out.append(number)
        else:
            hint = "a tab inside a text?" if len(fields) > len(names) else "a line break inside a text?"
            raise InputError(
                f"{path}, line {number}: expected the {len(names)} fields {listed(names)}, got {len(fields)} ({hint})"
            )
    if left_out and report is not None:
        report(f"{path}: {len(left_out)} rows left out that lack columns, the first on line {left_out[0]}")
    return names, even


def _pairs_of_ids(path: Path) -> set[tuple[str, str]] | None:
    """The pairs in MRPC's `dev_ids.tsv`; None where there is no such file."""
    if not path.is_file():
        return None
    pairs = set()
    for number, line in enumerate(split_lines(read_text(path)), start=1):
        ids = line.split()
        if len(ids) != 2:
            raise InputError(f"{path}, line {number}: expected two ids of a pair, got {start_of(line)}")
        pairs.add((ids[0], ids[1]))
    return pairs


def _column(name: str, names: list[str], path: Path) -> int:
    position = position_of(name, names, path)
    if position is None:
        raise InputError(f"{path}: expected a column {name!r}, found {listed(names)}; is it another task's file?")
    return position


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").casefold()
