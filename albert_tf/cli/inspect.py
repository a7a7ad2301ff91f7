"""albert-tf inspect: what a `.tflite` file holds, and which runtimes take it."""

import argparse
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tf.errors import CheckError

if TYPE_CHECKING:
    from export.inspection import End, Inspection

_LONGEST = 120  # characters of one entry


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "inspect",
        help="what a .tflite file holds and which runtimes take it",
        description="Reads any .tflite file, also of other makers: signatures, graphs, operators with their versions, how "
        "weights are stored, metadata, files behind the model, and which runtimes take it and why not. Nothing of the file "
        "is run but in a process of its own. Exit code 1: something in it is wrong; 2: it cannot be read.",
        epilog="example: albert-tf inspect sst2.tflite",
    )
    parser.add_argument("file", type=Path, help=".tflite file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all of it here too")
    parser.add_argument("--overwrite", action="store_true", help="replace the --json file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from albert_tf.evaluation.report import write_json
    from albert_tf.files import refuse_existing
    from export.inspection import inspect_file

    if args.json is not None:
        refuse_existing(args.json, overwrite=args.overwrite, file=True)
    found = inspect_file(args.file)
    _print(args.file, found)
    if args.json is not None:
        write_json(args.json, dataclasses.asdict(found), overwrite=args.overwrite)
    if found.problems:
        raise CheckError(f"{args.file}: {'; '.join(map(_shown, found.problems))}")
    return 0


def _print(path: Path, found: "Inspection") -> None:
    from rich.console import Console

    console = Console()
    parts: list[tuple[str, tuple[str, ...], Sequence[tuple[str, ...]]]] = [
        (f"{path}", ("what", "value"), _summary(found)),
        ("signatures", ("name", "inputs", "outputs"), _signatures(found)),
        ("operators", ("operator", "version", "types", "count", "graph"), _operators(found)),
        ("constants", ("type", "quantisation", "tensors", "bytes", "share"), _constants(found)),
        ("metadata", ("what", "value"), _metadata(found)),
        ("albert-tf", ("setting", "value"), _settings(found)),
        ("files behind the model", ("file", "bytes"), [(n, f"{size:,}") for n, size in found.files.items()]),
        (
            "runtimes",
            ("runtime", "takes it", "why"),
            [(v.runtime, v.takes, "\n".join(v.reasons)) for v in found.runtimes],
        ),
    ]
    for title, columns, rows in parts:
        if rows:
            console.print(table(title, columns, rows))


def table(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Any:
    """A terminal table of what a file says; what would steer the terminal is shown as escapes."""
    from rich.table import Table
    from rich.text import Text

    result = Table(title=Text(_shown(title)), title_justify="left")
    for column in columns:
        result.add_column(
            column, justify="right" if column in ("version", "count", "tensors", "bytes", "share") else "left"
        )
    for row in rows:
        result.add_row(*(Text("\n".join(_shown(line) for line in entry.split("\n"))) for entry in row))
    return result


def _summary(found: "Inspection") -> list[tuple[str, str]]:
    rows = [
        ("size", f"{found.size_bytes:,} bytes"),
        ("model", f"{found.model_bytes:,} bytes"),
        ("parameters", f"{found.parameters:,} (from {found.parameters_from})"),
        ("bytes per parameter", f"{found.bytes_per_parameter:.3f}"),
        ("graphs", f"{len(found.subgraphs)}"),
        (
            "oldest runtime",
            f"TensorFlow Lite {found.min_runtime_version}" if found.min_runtime_version else "not recorded",
        ),
        ("description", found.description or "none"),
        ("buffers of several tensors", f"{found.shared_buffers}"),
        ("weights stored more than once", _duplicates(found)),
    ]
    if found.float_operators is not None:
        counted = ", ".join(f"{count} × {name}" for name, count in found.float_operators.items())
        rows.append(("float operators among integers", counted or "none"))
    return rows


def _duplicates(found: "Inspection") -> str:
    wasted = sum((group["copies"] - 1) * group["bytes"] for group in found.duplicates)
    return f"{len(found.duplicates)}, {wasted:,} bytes too many" if found.duplicates else "none"


def _signatures(found: "Inspection") -> list[tuple[str, str, str]]:
    rows = [(entry.key, _ends(entry.inputs), _ends(entry.outputs)) for entry in found.signatures]
    return rows or [("(none)", _ends(found.subgraphs[0].inputs), _ends(found.subgraphs[0].outputs))]


def _ends(ends: tuple["End", ...]) -> str:
    return "\n".join(_one_end(end) for end in ends)


def _one_end(end: "End") -> str:
    sizes = ", ".join("any" if size < 0 else str(size) for size in end.shape)
    scale = end.quantization.scale if end.quantization is not None else None
    quantization = (
        "" if scale is None or end.quantization is None else f" × {scale:.4g}, zero {end.quantization.zero_point}"
    )
    return f"{end.name} {end.type} [{sizes}]{quantization}"


def _operators(found: "Inspection") -> list[tuple[str, ...]]:
    several = len(found.subgraphs) > 1
    return [
        (
            operator.name,
            f"{operator.version}",
            operator.types,
            f"{operator.count}",
            f"{number} {graph.name}" if several else graph.name,
        )
        for number, graph in enumerate(found.subgraphs)
        for operator in graph.operators
    ]


def _constants(found: "Inspection") -> list[tuple[str, ...]]:
    return [
        (row.type, row.quantization, f"{row.tensors}", f"{row.bytes:,}", f"{row.share:.1%}") for row in found.stored
    ]


def _metadata(found: "Inspection") -> list[tuple[str, str]]:
    if found.metadata is None:
        return []
    metadata = found.metadata
    names = ("name", "description", "version", "author", "license", "min_parser_version")
    rows = [(name.replace("_", " "), value) for name in names if (value := getattr(metadata, name))]
    for what, tensors in (("input", metadata.inputs), ("output", metadata.outputs)):
        for tensor in tensors:
            files = "".join(f"\n{file.name} ({file.type})" for file in tensor.files)
            rows.append((f"{what} {tensor.name}", f"{tensor.description}{files}"))
            rows += [(f"{what} {tensor.name}: {unit.kind}", _files(unit)) for unit in tensor.process_units]
    for what, units in (("before", metadata.input_process_units), ("after", metadata.output_process_units)):
        rows += [(f"{what} the model: {unit.kind}", _files(unit)) for unit in units]
    return rows


def _files(unit: Any) -> str:
    return ", ".join(file.name for file in unit.files)


def _settings(found: "Inspection") -> list[tuple[str, str]]:
    """Of albert_tf.json what is no list."""
    rows = []
    for name, value in (found.settings or {}).items():
        entries = value.items() if isinstance(value, Mapping) else [("", value)]
        rows += [(f"{name} {key}".strip(), str(entry)) for key, entry in entries]
    return rows


def _shown(text: str) -> str:
    """What a file says, without what would steer the terminal, and cut."""
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
