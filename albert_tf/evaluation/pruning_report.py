"""What `albert-tf prune` shows: terminal tables and a page, from the record in pruning.json."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from albert_tf.evaluation.html_report import html_page
from albert_tf.evaluation.html_text import number, table

if TYPE_CHECKING:
    from rich.table import Table

Record = Mapping[str, Any]

_MEGABYTE = 1e6
_SHAPE = ("heads", "columns", "parameters", "int8_bytes", "multiply_adds_per_token")


def pruning_tables(record: Record) -> list["Table"]:
    """The heads with their importance, the model before and after, and the sensitivity where it was measured."""
    tables = [
        _table(
            f"Attention heads of {len(record['attention'])} block(s), importance by {record['importance']}",
            _head_headers(record),
            _head_rows(record),
        ),
        _table(f"Model, multiply-adds at {record['tokens']:.0f} tokens", *_before_after(record)),
    ]
    if "sensitivity" in record:
        title = f"{record['valid_data']}, {record['valid_examples']:,} examples, without training after pruning"
        tables.append(_table(title, _sensitivity_headers(record), _sensitivity_rows(record)))
    return tables


def pruning_page(record: Record, name: str) -> str:
    """The same tables as a page, with the record's numbers of what was removed."""
    parts = [
        ("Model", lambda: _html("Before and after", *_before_after(record))),
        ("Heads", lambda: _html("Attention heads", _head_headers(record), _head_rows(record))),
    ]
    if "sensitivity" in record:
        parts.append(
            (
                "Sensitivity",
                lambda: _html(
                    "Each combination, without training after pruning",
                    _sensitivity_headers(record),
                    _sensitivity_rows(record),
                ),
            )
        )
    told = [
        f"Pruned from {record['source']}; importance by {record['importance']}"
        + (f", {record['examples']:,} examples of {record['data']}." if record["data"] else ".")
    ]
    return html_page(f"Pruning: {name}", told, parts, lambda line: None)


def _head_headers(record: Record) -> list[str]:
    more = [f"{_words(record['metric'])} without it"] if "without_head" in record else []
    return ["block", "head", "importance", "", *more]


def _head_rows(record: Record) -> list[list[Any]]:
    rows = []
    for block, found in enumerate(record["attention"]):
        for head, importance in enumerate(found["importance"]):
            more = [record["without_head"][block][head]] if "without_head" in record else []
            rows.append([block, head, importance, "kept" if head in found["kept"] else "removed", *more])
    return rows


def _before_after(record: Record) -> tuple[list[str], list[list[Any]]]:
    before, after = record["before"], record["after"]
    rows = [[_words(name), before[name], after[name], f"{after[name] / before[name]:.3f}"] for name in _SHAPE]
    if "metric" in record:
        metric = record["metric"]
        rows.append([_words(metric), record["valid_before"][metric], record["valid"][metric], ""])
    return ["", "before", "after", "ratio"], rows


def _sensitivity_headers(record: Record) -> list[str]:
    return ["heads", "columns", "parameters", "int8 MB", "multiply-adds", _words(record["metric"]), "change"]


def _sensitivity_rows(record: Record) -> list[list[Any]]:
    metric = record["metric"]
    whole = record["valid_before"][metric]
    return [
        [
            *(row[name] for name in ("heads", "columns", "parameters")),
            f"{row['int8_bytes'] / _MEGABYTE:.2f}",
            row["multiply_adds_per_token"],
            row[metric],
            f"{row[metric] - whole:+.4f}",
        ]
        for row in record["sensitivity"]
    ]


def _words(name: str) -> str:
    return name.replace("_", " ")


def _html(caption: str, headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    return table(caption, headers, [[number(cell) for cell in row] for row in rows], style="figures")


def _table(title: str, headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    made = Table(title=Text(title), title_justify="left")
    for header in headers:
        made.add_column(Text(header), justify="right")
    for row in rows:
        made.add_row(*(Text(_shown(cell)) for cell in row))
    return made


def _shown(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:.4f}" if abs(cell) < 100 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
