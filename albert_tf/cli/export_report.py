"""The report on an exported file, as tables for the terminal."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from albert_tf.cli.inspect import table

if TYPE_CHECKING:
    from rich.table import Table

    from export.validation import ExportReport


def report_tables(report: "ExportReport", path: str) -> "Iterator[Table]":
    """What was found, the operators, and what the file costs on this machine."""
    yield table(f"{path} against the Keras model", ("what", "value"), _answers(report))
    if report.metrics:
        rows = [
            (name.replace("_", " "), f"{pair.keras:.4f}", f"{pair.file:.4f}", f"{pair.difference:+.4f}")
            for name, pair in report.metrics.items()
        ]
        yield table("on the examples", ("metric", "Keras", "file", "difference"), rows)
    counts = [(o.name, f"{o.version}", o.types, f"{o.count}") for o in report.operators]
    yield table("operators", ("operator", "version", "types", "count"), counts)
    if report.device is not None:
        yield table("on this machine", ("what", "value"), _device(report))


def _answers(report: "ExportReport") -> list[tuple[str, str]]:
    found = report.comparison
    length = report.length
    shown = "any" if length is None else ", ".join(map(str, length)) if isinstance(length, tuple) else str(length)
    rows = [
        ("recipe, form", f"{report.recipe}, {report.form}"),
        ("length in tokens", shown),
        ("parameters", f"{report.parameters:,}"),
        ("size", f"{report.size_bytes:,} bytes, {report.model_bytes:,} of them the model"),
        ("bytes per parameter", f"{report.bytes_per_parameter:.3f}"),
        ("weights stored more than once", f"{report.repeated_bytes:,} bytes" if report.repeated_bytes else "none"),
        ("rows compared", f"{found.rows:,}"),
        ("outputs are finite numbers", "yes" if report.finite_outputs else "no"),
        ("largest, mean difference", f"{found.max_difference:.2g}, {found.mean_difference:.2g}"),
        ("mean distance", f"{found.distance:.2g} (allowed: {report.largest_distance:.2g})"),
        ("mean cosine", f"{found.cosine:.5f}"),
    ]
    if report.same_ids is not None:
        rows += [
            ("tokenizer in the graph", f"{report.tokenizer_bytes:,} bytes"),
            ("texts with the tokenizer's ids", f"{report.same_ids:.2%}"),
        ]
    if found.agreement is not None:
        rows.append(("same decision", f"{found.agreement:.2%}"))
    if report.depth is not None:
        depth = report.depth
        rows += [
            (
                "mean depth",
                f"{depth.file_mean_depth:.2f} of {depth.num_passes} passes, Keras {depth.keras_mean_depth:.2f}",
            ),
            ("same depth", f"{depth.same_depth:.2%}"),
        ]
    if report.float_operators is not None:
        counted = ", ".join(f"{count} × {name}" for name, count in report.float_operators.items())
        rows.append(("float operators among integers", counted or "none"))
    return rows


def _device(report: "ExportReport") -> list[tuple[str, str]]:
    device = report.device
    if device is None:
        return []
    model_growth = device.memory_growth_bytes - device.tokenizer_growth_bytes
    return [
        ("load", f"{device.load_ms:.1f} ms, {device.tokenizer_load_ms:.1f} of them the tokenizer"),
        ("memory growth", f"{device.memory_growth_bytes / 1e6:.1f} MB, {model_growth / 1e6:.1f} of them the model"),
        *((f"latency, {tokens} tokens", f"{ms:.2f} ms") for tokens, ms in device.latencies_ms.items()),
        (f"latency, texts of {device.mean_tokens:.0f} tokens", f"{device.median_latency_ms:.2f} ms"),
        ("threads", f"{device.threads}"),
    ]
