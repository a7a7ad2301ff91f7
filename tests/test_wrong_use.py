"""Wrong arguments and odd environments that a user may come with: an InputError, or one line, never a traceback."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

from albert_tf import AlbertBackbone, AlbertConfig, AlbertTextClassifier, AlbertTokenizer, InputError
from albert_tf.data.schema import TextExample, is_label
from albert_tf.data.tables import discover_labels
from albert_tf.evaluation.report import plot_confusion_matrix
from albert_tf.files import checked_path, read_json
from export.runtime import TFLiteRunner
from export.tflite import export_tflite

NO_PATHS: list[Any] = [None, 5, b"run", ["run"], ""]
FIELDS = {"vocabulary_size": 50, "hidden_dim": 8, "intermediate_dim": 16, "num_layers": 2, "num_heads": 2}


@pytest.mark.parametrize("path", NO_PATHS)
@pytest.mark.parametrize(
    "read",
    [AlbertTokenizer.from_pretrained, AlbertTextClassifier.from_pretrained, TFLiteRunner, AlbertConfig.from_json],
    ids=["tokenizer", "classifier", "runner", "config"],
)
def test_what_is_no_path_is_refused(read: Any, path: Any) -> None:
    with pytest.raises(InputError):
        read(path)


def test_a_path_is_a_string_or_a_path() -> None:
    assert checked_path("a", "x") == checked_path(Path("a"), "x") == Path("a")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"vocabulary_size": ' + "1" * 9_000 + "}", "{", ""])
def test_json_beyond_the_reader_is_an_input_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"c\.json"):
        read_json(path)
    with pytest.raises(InputError, match=r"c\.json"):
        AlbertConfig.from_json(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [("num_layers", 10**9), ("num_layers", 20_000), ("vocabulary_size", 10**12), ("initializer_range", 10**400)],
)
def test_absurd_sizes_are_refused_at_once(field: str, value: int) -> None:
    with pytest.raises(InputError, match=field):
        AlbertConfig(**FIELDS | {field: value})


def test_numpy_numbers_are_numbers() -> None:
    config = AlbertConfig(**FIELDS | {"hidden_dim": np.int64(8)}, hidden_dropout=np.float32(0.5))
    assert config == AlbertConfig(**FIELDS, hidden_dropout=0.5)
    assert type(config.hidden_dim) is int


@pytest.mark.parametrize("label", ["a\tb", "a\nb", "\x1b[31m", "a\u2028b", "a\x00", " a", "", "\ud800"])
def test_labels_that_cannot_be_printed_are_refused(label: str) -> None:
    assert not is_label(label)
    with pytest.raises(InputError):
        discover_labels([TextExample("x", label=label), TextExample("y", label="b")])
    with pytest.raises(InputError, match="labels"):
        AlbertTextClassifier(AlbertBackbone(AlbertConfig(**FIELDS)), labels=[label, "b"])


def test_labels_of_any_script_are_labels() -> None:
    assert all(map(is_label, ["yes", "very good", "好", "نعم", "👍🏽", "0", "a–b"]))


def test_the_picture_of_many_labels_stays_small(tmp_path: Path) -> None:
    """At 0.2 inches a label, 1,000 labels once took more memory than the machine had."""
    plot_confusion_matrix(np.eye(1000, dtype=int), [f"label {n}" for n in range(1000)], tmp_path / "m.png")
    width, height = np.frombuffer((tmp_path / "m.png").read_bytes()[16:24], ">u4")
    assert width < 5000 and height < 5000


@pytest.mark.parametrize(
    "arguments", [{"backbone": None}, {"tokenizer": "tok"}, {"classifier_dropout": "x"}, {"classifier_dropout": 1.5}]
)
def test_wrong_parts_of_a_classifier(arguments: dict[str, Any]) -> None:
    parts = {"backbone": AlbertBackbone(AlbertConfig(**FIELDS)), "labels": ["a", "b"]} | arguments
    with pytest.raises(InputError, match=next(iter(arguments))):
        AlbertTextClassifier(**parts)


def test_a_backbone_needs_a_config() -> None:
    for wrong in (None, FIELDS):
        with pytest.raises(InputError, match="config"):
            AlbertBackbone(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'dropout'"):  # Keras takes any, and says nothing
        AlbertBackbone(AlbertConfig(**FIELDS), dropout=0.5)  # type: ignore[call-arg]


@pytest.mark.parametrize("task", [None, "run", 5])
def test_only_a_task_is_exported(tmp_path: Path, task: Any) -> None:
    with pytest.raises(InputError, match="from_pretrained"):
        export_tflite(task, tmp_path / "m.tflite")


@pytest.mark.parametrize(
    ("token_ids", "segment_ids"),
    [([-1], [0]), ([10**9], [0]), ([2, 3], [0]), ([2.5, 3], [0, 0]), ([2, 3], [0, 9]), (["a"], [0])],
)
def test_the_runner_checks_ids(finished_tflite: Path, token_ids: list[Any], segment_ids: list[Any]) -> None:
    with pytest.raises(InputError, match="_ids"):
        TFLiteRunner(finished_tflite).run(token_ids, segment_ids)


def test_absurd_threads_are_refused(finished_tflite: Path) -> None:
    for threads in (257, 10**12):
        with pytest.raises(InputError, match="threads"):
            TFLiteRunner(finished_tflite, threads=threads)


def albert_tf(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "albert_tf.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, cwd=ROOT, **options)


def one_line_error(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 2 and len(lines) == 1 and lines[0].startswith("albert-tf: error:"), done
    return lines[0]


def test_a_closed_output_is_no_error() -> None:
    command = f"{sys.executable} -m albert_tf.cli.main params albert_base_v2 >&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, b"")


def test_texts_must_be_there_and_be_utf8(finished_tflite: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    assert "found none" in one_line_error(albert_tf("predict", finished_tflite, "--file", tmp_path / "empty.txt"))
    assert "found none" in one_line_error(albert_tf("predict", finished_tflite, input=b""))
    bad = [sys.executable, "-m", "albert_tf.cli.main", "predict", str(finished_tflite), "--text", b"a\xffb"]
    assert "UTF-8" in one_line_error(subprocess.run(bad, capture_output=True, check=False, cwd=ROOT))


def test_two_outputs_are_two_files(finished_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.tflite"
    assert "--out and --json" in one_line_error(
        albert_tf("export", "tflite", finished_run, "--out", out, "--json", out)
    )
    assert not out.exists()
