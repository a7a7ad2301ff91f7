"""`albert_tf.evaluation.pruning_report`: every figure of the record is shown, and what comes from outside is no markup."""

import io
from typing import Any

from pages import Page
from rich.console import Console

from albert_tf.evaluation.pruning_report import pruning_page, pruning_tables

SHAPES: dict[str, Any] = {
    "before": {"heads": 4, "columns": 64, "parameters": 9000, "int8_bytes": 2_500_000, "multiply_adds_per_token": 8000},
    "after": {"heads": 2, "columns": 32, "parameters": 6000, "int8_bytes": 1_250_000, "multiply_adds_per_token": 4000},
}
RECORD: dict[str, Any] = {
    "source": "<b>runs</b>",
    "importance": "gradient",
    "data": "train[bold].tsv",
    "examples": 1234,
    "tokens": 31.6,
    **SHAPES,
    "attention": [{"kept": [1, 3], "removed": [0, 2], "importance": [0.125, 7.5, 0.25, 3.0]}],
    "feed_forward": [{"kept": list(range(32)), "removed": list(range(32, 64)), "importance": [1.0] * 64}],
}
VALIDATED = RECORD | {
    "valid_data": "dev.tsv",
    "valid_examples": 99,
    "metric": "macro_f1",
    "valid_before": {"macro_f1": 0.75},
    "valid": {"macro_f1": 0.625},
    "sensitivity": [SHAPES["before"] | {"macro_f1": 0.75}, SHAPES["after"] | {"macro_f1": 0.625}],
    "without_head": [[0.71, 0.52, 0.73, 0.64]],
}


def printed(record: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=160)
    for table in pruning_tables(record):
        console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_tables() -> None:
    text = printed(VALIDATED)
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line]
    assert ["0", "1", "7.5000", "kept", "0.5200"] in rows and ["0", "2", "0.2500", "removed", "0.7300"] in rows
    assert ["multiply adds per token", "8,000", "4,000", "0.500"] in rows
    assert ["macro f1", "0.7500", "0.6250", ""] in rows
    assert ["2", "32", "6,000", "1.25", "4,000", "0.6250", "-0.1250"] in rows
    assert "dev.tsv, 99 examples, without training after pruning" in text and "at 32 tokens" in text


def test_without_figures_there_is_no_sensitivity() -> None:
    text = printed(RECORD)
    assert "kept" in text and "without training" not in text and "macro" not in text
    assert "Sensitivity" not in pruning_page(RECORD, "out")


def test_page() -> None:
    html = pruning_page(VALIDATED, "out<i>")
    page = Page(html)
    assert page.sections == ["Model", "Heads", "Sensitivity"]
    assert "<runs>" not in html and "<i>" not in html and "<b>runs</b>" in page.text
    assert "1,234 examples of train[bold].tsv" in page.text
    assert page.tables["Attention heads"][1][-1] == 0.52
    assert [row[5] for row in page.tables["Each combination, without training after pruning"]] == [0.75, 0.625]
