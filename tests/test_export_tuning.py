"""`export.tuning`: what is found of each candidate, and that the file taken is the candidate without being told."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tiny_exports import LABELS
from tiny_tasks import EXAMPLES, new_task, tiny_task

from albert_tf.data.schema import TextExample
from albert_tf.data.squad import Answer, QuestionExample
from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import evaluate
from albert_tf.inference.depth import ExitSettings
from export.runtime import TFLiteRunner
from export.tuning import Tried, TuneRequest, make_chosen, try_candidates, tuned_metrics
from export.tuning_candidates import shape_of
from export.tuning_choice import Bounds, TuningError

WORDS = (
    "the old mill",
    "by the river",
    "the great wheel turns and turns",
    "they say so",
    "a",
    "12 people of the river",
)
ROWS = [TextExample(text, None, LABELS[number % 3]) for number, text in enumerate(WORDS)]
NO_BOUNDS = Bounds(max_drop=None)


@pytest.fixture(scope="module")
def early() -> Any:
    """A classifier with random weights of three passes that stops early."""
    return new_task("classification", labels=list(LABELS), exits=ExitSettings("confidence", threshold=0.6))


@pytest.fixture(scope="module")
def request_() -> TuneRequest:
    return TuneRequest(ROWS, "rows", NO_BOUNDS, recipes=("dynamic_int8",), passes=(1, 3))


@pytest.fixture(scope="module")
def tried(early: Any, request_: TuneRequest, tmp_path_factory: pytest.TempPathFactory) -> Tried:
    lines: list[str] = []
    found = try_candidates(variants(early), request_, tmp_path_factory.mktemp("files"), report=lines.append)
    assert lines[-1] == "8 candidates take turns on 6 examples of rows"
    return found


def variants(task: Any) -> dict[tuple[int, int], Any]:
    return {shape_of(task.backbone.config): task}


def preferring(tried: Tried, name: str, **changes: Any) -> Tried:
    """As if the candidate of this name were much the fastest."""
    figures = [
        dataclasses.replace(one, latency_ratio=1e-6, **changes) if one.candidate.name == name else one
        for one in tried.figures
    ]
    return dataclasses.replace(tried, figures=figures)


def test_figures_of_candidates(early: Any, tried: Tried) -> None:
    names = [one.candidate.name for one in tried.figures]
    exits = [f"dynamic_int8, confidence {x:g}" for x in (0.6, 0.7, 0.8, 0.9, 0.95, 0.98)]
    assert names == ["dynamic_int8, all passes", "dynamic_int8, 1 pass", *exits]
    assert tried.metric == "accuracy" and tried.left_out == {}
    whole = tried.figures[0]
    assert whole is tried.reference and (whole.points_lost, whole.latency_ratio, whole.mean_passes) == (0.0, 1.0, 3.0)
    for one in tried.figures:
        assert one.points_lost == pytest.approx(100 * (whole.value - one.value))
        assert one.latency_ratio == pytest.approx(one.latency_ms / whole.latency_ms)
        assert one.size_bytes > 0
    # The deeper the threshold asks for, the more passes.
    passes = [one.mean_passes for one in tried.figures[2:]]
    assert passes == sorted(passes) and passes[0] < 3.0
    assert tried.figures[1].mean_passes == 1.0


@pytest.mark.parametrize("name", ["dynamic_int8, 1 pass", "dynamic_int8, confidence 0.8"])
def test_the_file_taken_is_the_candidate_without_being_told(
    early: Any, request_: TuneRequest, tried: Tried, tmp_path: Path, name: str
) -> None:
    chosen = make_chosen(variants(early), request_, preferring(tried, name), tmp_path)
    (wanted,) = (one for one in tried.figures if one.candidate.name == name)
    assert chosen.figures.candidate == wanted.candidate
    runner = TFLiteRunner(chosen.path)
    assert evaluate(runner, ROWS, source="rows")["accuracy"] == chosen.figures.value == wanted.value
    assert chosen.figures.mean_passes == wanted.mean_passes
    assert chosen.figures.size_bytes == chosen.path.stat().st_size == chosen.report.size_bytes
    assert chosen.report.metrics["accuracy"].file == wanted.value
    assert chosen.report.device is not None
    config, adaptive = runner.settings["config"], runner.adaptive
    assert (config["num_layers"], adaptive) == ((1, "none") if name.endswith("pass") else (3, "exits"))
    if adaptive == "exits":
        assert runner.settings["settings"]["exits"]["threshold"] == 0.8


def test_a_file_that_misses_a_bound_after_all_is_not_taken(
    early: Any, request_: TuneRequest, tried: Tried, tmp_path: Path
) -> None:
    # As if the file of exits had been measured as half as large as it is.
    half = tried.reference.size_bytes // 2
    wrong = preferring(tried, "dynamic_int8, confidence 0.8", size_bytes=half)
    lines: list[str] = []
    strict = dataclasses.replace(request_, bounds=Bounds(max_size=half + 10))
    with pytest.raises(TuningError, match=r"nothing is written; nearest: dynamic_int8, 1 pass \(size "):
        make_chosen(variants(early), strict, wrong, tmp_path, report=lines.append)
    assert len(lines) == 1 and "confidence 0.8: not taken, as its own file has size" in lines[0]


def test_what_cannot_be_small_enough_is_not_made(early: Any, request_: TuneRequest, tmp_path: Path) -> None:
    small = dataclasses.replace(request_, bounds=Bounds(max_size=1000), recipes=("float32", "int4"), passes=(1,))
    found = try_candidates(variants(early), small, tmp_path, report=lambda line: None)
    assert [one.candidate.name for one in found.figures] == ["dynamic_int8, all passes"]
    assert len(found.left_out) == 14 and all(
        reason.startswith("at least ") and reason.endswith(" bytes, at most 1,000 wanted")
        for reason in found.left_out.values()
    )
    assert [path.name for path in tmp_path.iterdir()] == ["reference.tflite"]


def test_points_of_questions_are_those_of_their_figures(tmp_path: Path) -> None:
    task = tiny_task("question-answering")
    # Any answer has some words of these.
    passages = [f"the old mill by the river turns the great wheel {n} times" for n in range(6)]
    examples = [QuestionExample(f"{n}", text, "where is it", (Answer(text, 0),)) for n, text in enumerate(passages)]
    request = TuneRequest(examples, "questions", NO_BOUNDS, recipes=("float32",), passes=(2, 3))
    lines: list[str] = []
    found = try_candidates(variants(task), request, tmp_path, report=lines.append)
    runner = found.reference_file.runner
    # Random weights are hard to round; what is only compared with may be as it is.
    assert lines[1].startswith("note: the reference itself would not be written")
    assert found.reference.value == pytest.approx(evaluate(runner, examples, source="questions")["f1"])
    for one in found.figures[1:]:
        assert one.points_lost == pytest.approx(found.reference.value - one.value)
    assert max(abs(one.points_lost) for one in found.figures) > 0


def test_figures_of_which_more_is_better() -> None:
    assert tuned_metrics("regression") == ("spearman", "pearson")
    assert tuned_metrics("classification")[0] == "accuracy"
    assert "loss" not in {name for task in EXAMPLES for name in tuned_metrics(task)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"examples": []}, "rows: expected at least one labelled example"),
        ({"metric": "loss"}, "--metric: expected one of accuracy, f1, macro_f1, matthews_correlation"),
        ({"prefer": "luck"}, "expected one of latency, accuracy, size; got 'luck'"),
        ({"recipes": ["int8"]}, "--recipes: expected some of"),
    ],
)
def test_requests_that_cannot_be_met(
    early: Any, request_: TuneRequest, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        try_candidates(variants(early), dataclasses.replace(request_, **changes), tmp_path)
    assert list(tmp_path.iterdir()) == []
