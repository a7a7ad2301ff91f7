"""Figures, tables and JSON files of a run."""

import io
import itertools
import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from rich.console import Console

from albert_tf.errors import InputError
from albert_tf.evaluation.report import metrics_table, plot_confusion_matrix, plot_history, save_figure, write_json

EPOCHS = [
    {
        "epoch": n,
        "loss": 1 / n,
        "valid_loss": 1.1 / n,
        "accuracy": 1 - 0.5 / n,
        "valid_accuracy": 0.5,
        "learning_rate": 1e-5,
    }
    for n in (1, 2, 3)
]


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are saved, for looking at what stands in them."""
    figures: list[Figure] = []
    save = Figure.savefig

    def savefig(figure, *args, **options):
        figures.append(figure)
        return save(figure, *args, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return figures


def width_of(path: Path) -> int:
    """In pixels."""
    with Image.open(path) as image:
        return image.width


def test_history_shows_both_curves_in_each_panel(tmp_path: Path, drawn: list[Figure]) -> None:
    plot_history(EPOCHS, tmp_path / "history.png")
    loss, accuracy, rate = drawn[0].axes
    assert [axes.get_title() for axes in drawn[0].axes] == ["loss", "accuracy", "learning rate"]
    assert {line.get_label(): list(line.get_ydata()) for line in loss.get_lines()} == {
        "training": [1.0, 1 / 2, 1 / 3],
        "validation": [1.1, 1.1 / 2, 1.1 / 3],
    }
    assert [list(line.get_xdata()) for line in accuracy.get_lines()] == [[1, 2, 3]] * 2
    assert list(rate.get_lines()[0].get_ydata()) == [1e-5] * 3
    assert width_of(tmp_path / "history.png") > 3 * 400


def test_history_of_one_epoch_without_validation_or_with_gaps(tmp_path: Path, drawn: list[Figure]) -> None:
    plot_history([{"loss": 0.5}], tmp_path / "one.png")
    assert len(drawn[0].axes) == 1
    assert list(drawn[0].axes[0].get_lines()[0].get_xdata()) == [1]
    plot_history([{"loss": 0.5}, {"loss": math.nan, "valid_loss": 2.0}], tmp_path / "gaps.png")
    assert np.isnan(drawn[1].axes[0].get_lines()[1].get_ydata()[0])
    plot_history([{"loss": 0.5, "valid_pearson": 0.9}], tmp_path / "regression.png", metric="pearson")
    assert [axes.get_title() for axes in drawn[2].axes] == ["loss", "pearson"]
    assert drawn[2].axes[0].get_xlabel() == "epoch"
    plot_history([{"loss": 0.5, "step": 40.0}, {"loss": 0.4, "step": 80.0}], tmp_path / "steps.png")
    assert drawn[3].axes[0].get_xlabel() == "step"
    assert list(drawn[3].axes[0].get_lines()[0].get_xdata()) == [40, 80]
    with pytest.raises(InputError, match="'loss' per epoch"):
        plot_history([], tmp_path / "none.png")


@pytest.mark.parametrize("size", [1, 2, 25, 26, 100])
def test_confusion_matrix_of_any_size(tmp_path: Path, drawn: list[Figure], size: int) -> None:
    counts = np.arange(size * size).reshape(size, size)
    plot_confusion_matrix(counts.tolist(), [f"label number {n}" for n in range(size)], tmp_path / "matrix.png")
    axes = drawn[0].axes[0]
    texts = [text.get_text() for text in axes.texts]
    assert texts == ([f"{n:,}" for n in range(size * size)] if size <= 25 else [])
    FigureCanvasAgg(drawn[0]).draw()
    boxes = [label.get_window_extent() for label in axes.get_xticklabels() + axes.get_yticklabels()]
    assert len(boxes) == 2 * size
    assert all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= drawn[0].bbox.x1 for box in boxes)  # none is cut off
    for group in (boxes[:size], boxes[size:]):
        assert not any(one.overlaps(other) for one, other in itertools.pairwise(group))
    assert width_of(tmp_path / "matrix.png") < 5000


def test_odd_labels_are_drawn_as_they_are(tmp_path: Path, drawn: list[Figure]) -> None:
    labels = ["$x^", "a\nb\0c", "עברית", "", "x" * 60, "_b"]
    plot_confusion_matrix(np.eye(6), labels, tmp_path / "matrix.png")
    shown = [text.get_text() for text in drawn[0].axes[0].get_xticklabels()]
    assert shown == ["$x^", "a b c", "עברית", "", "x" * 23 + "…", "_b"]


def test_a_matrix_that_does_not_fit_its_labels(tmp_path: Path) -> None:
    for matrix, labels in (([[1, 2], [3, 4]], ["a"]), ([[1, 2]], ["a", "b"]), ([], [])):
        with pytest.raises(InputError, match="as many as labels"):
            plot_confusion_matrix(matrix, labels, tmp_path / "matrix.png")


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_suffix_decides_the_format(tmp_path: Path, suffix: str, start: bytes) -> None:
    path = tmp_path / f"figure.{suffix}"
    save_figure(Figure(), path)
    assert path.read_bytes().startswith(start)
    with pytest.raises(InputError, match="exists already"):
        save_figure(Figure(), path)
    save_figure(Figure(), path, overwrite=True)
    with pytest.raises(InputError, match=r"ends in \.png, \.svg, \.pdf"):
        save_figure(Figure(), tmp_path / "figure.jpg")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_drawing_leaves_pyplot_alone(tmp_path: Path) -> None:
    from matplotlib import pyplot

    plot_history(EPOCHS, tmp_path / "history.png")
    plot_confusion_matrix(np.eye(2), ["a", "b"], tmp_path / "matrix.png")
    assert pyplot.get_fignums() == []


def test_metrics_table_holds_every_number() -> None:
    metrics = {
        "accuracy": 0.98765,
        "examples": 1234,
        "loss": math.nan,
        "support": {"[bold]a": 1000, "中": 234},
        "confusion_matrix": [[1, 2], [3, 4]],
        "model": "m[1]",
    }
    console = Console(file=io.StringIO(), width=60)
    console.print(metrics_table(metrics, "Evaluation [of] it"))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if line.startswith("│")]
    assert cells == [
        ["accuracy", "0.9877"],
        ["examples", "1,234"],
        ["loss", "nan"],
        ["support: [bold]a", "1,000"],
        ["support: 中", "234"],
        ["model", "m[1]"],
    ]
    assert lines[0].strip() == "Evaluation [of] it"


def test_json_is_valid_whatever_the_numbers(tmp_path: Path) -> None:
    content = {
        "nan": math.nan,
        "infinities": (math.inf, -math.inf, np.float32("nan")),
        "array": np.array([[1.5, np.nan]]),
        "numbers": [np.int64(3), np.float32(0.5), np.bool_(True), 7, None],
        "path": tmp_path,
        "标签": "正面",
    }
    path = tmp_path / "new" / "report.json"
    write_json(path, content)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    assert json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse) == {
        "nan": None,
        "infinities": [None, None, None],
        "array": [[1.5, None]],
        "numbers": [3, 0.5, True, 7, None],
        "path": str(tmp_path),
        "标签": "正面",
    }
    assert "标签" in path.read_text(encoding="utf-8")
    with pytest.raises(InputError, match="exists already"):
        write_json(path, {})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()}, overwrite=True)
    assert json.loads(path.read_text(encoding="utf-8"))["path"] == str(tmp_path)  # still the old one
    write_json(path, [], overwrite=True)
    assert path.read_text(encoding="utf-8") == "[]\n"
