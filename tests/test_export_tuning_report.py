"""`export.tuning_report`: the table, the charts and the record of candidates."""

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from albert_tf.errors import InputError
from albert_tf.evaluation.report import write_json
from albert_tf.inference.depth import ExitSettings
from export.tuning import Chosen, Tried, TuneRequest
from export.tuning_choice import Bounds, Candidate, Figures
from export.tuning_report import on_front, plot_tried, tried_table, tuning_record


@dataclasses.dataclass(frozen=True)
class Report:
    """In the place of an export's report."""

    size_bytes: int


def figures(name: str, value: float, ratio: float, size: int, memory: int, exits: Any = None) -> Figures:
    candidate = Candidate(name, (4, 64), "int4", 3, exits)
    return Figures(candidate, value, 100 * (0.9 - value), 2 * ratio, ratio, 2.5, size, memory)


REFERENCE = figures("dynamic_int8, all passes", 0.9, 1.0, 8_000_000, 20_000_000)
FAST = figures("int4, confidence 0.9", 0.895, 0.5, 4_000_000, 10_000_000, ExitSettings("confidence", threshold=0.9))
BAD = figures("float32, 1 pass", 0.5, 0.6, 30_000_000, 90_000_000)
ALL = [REFERENCE, FAST, BAD]
LEFT_OUT = {"float16, 1 pass": "at least 16 bytes, at most 6 wanted"}
TRIED = Tried("macro_f1", REFERENCE, ALL, LEFT_OUT, None, None)  # type: ignore[arg-type]
REQUEST = TuneRequest([1, 2, 3], "dev.tsv", Bounds(max_size=6_000_000, max_latency_ratio=0.5))
CHOSEN = Chosen(Path("chosen.tflite"), FAST, Report(4_000_000))  # type: ignore[arg-type]


def test_the_table_marks_the_front_and_what_misses_a_bound() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(tried_table(TRIED, REQUEST))
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert lines[1].split() == ["candidate", "macro", "f1", "lost", "ms", "ratio", "passes", "MB", "memory"]
    assert [line.split() for line in lines[2:]] == [
        ["*", "dynamic_int8,", "all", "passes", "0.9000", "+0.00", "2.00", "1.000!", "2.50", "8.00!", "20.0"],
        ["*", "int4,", "confidence", "0.9", "0.8950", "+0.50", "1.00", "0.500", "2.50", "4.00", "10.0"],
        ["float32,", "1", "pass", "0.5000", "+40.00!", "1.20", "0.600!", "2.50", "30.00!", "90.0"],
    ]
    assert on_front(ALL) == [True, True, False]


def test_the_record_has_everything_for_json(tmp_path: Path) -> None:
    write_json(tmp_path / "record.json", tuning_record(TRIED, REQUEST, CHOSEN))
    record = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))
    assert record["bounds"] == {"max_size": 6_000_000, "max_latency_ratio": 0.5, "max_drop": 1.0}
    said = [record[name] for name in ("data", "examples", "metric", "prefer")]
    assert said == ["dev.tsv", 3, "macro_f1", "latency"]
    assert [one["pareto"] for one in record["candidates"]] == [True, True, False]
    assert record["candidates"][0]["misses"] == [
        "size 8,000,000 bytes, at most 6,000,000",
        "latency ratio 1.000, at most 0.5",
    ]
    assert record["chosen"]["candidate"]["exits"] == dataclasses.asdict(ExitSettings("confidence", threshold=0.9))
    assert (record["left_out"], record["export"]) == (LEFT_OUT, {"size_bytes": 4_000_000})


def test_the_charts_name_reference_and_choice(tmp_path: Path) -> None:
    path = tmp_path / "charts.svg"
    with pytest.MonkeyPatch.context() as patch:
        import matplotlib

        patch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
        plot_tried(TRIED, CHOSEN, path)
    drawn = path.read_text(encoding="utf-8")
    shown = ("latency, ratio to the reference", "size, MB", "memory, MB", "chosen: int4, confidence 0.9")
    for text in (*shown, "reference: dynamic_int8, all passes", "Pareto front", "candidates"):
        assert f">{text}</text>" in drawn
    assert drawn.count(">macro f1</text>") == 3
    with pytest.raises(InputError, match="exists"):
        plot_tried(TRIED, CHOSEN, path)
