"""Reads TFLite Model Metadata, the tables that `export.tflite_metadata` writes, of files by anyone."""

import dataclasses
from typing import Any

from export.flatbuffer import Contents, Table
from export.tflite_metadata import IDENTIFIER

# Values of the schema's enum and union.
_FILE_TYPES = (
    "unknown", "descriptions", "axis labels", "value labels", "axis score calibration", "vocabulary", "ScaNN index",
)  # fmt: skip
_UNITS = ("", "normalization", "score calibration", "score thresholding", "BERT tokenizer", "SentencePiece tokenizer",
          "regex tokenizer")  # fmt: skip
# The fields with files, of each unit that has some.
_UNIT_FILES = {"BERT tokenizer": (0,), "SentencePiece tokenizer": (0, 1), "regex tokenizer": (1,)}


@dataclasses.dataclass(frozen=True)
class NamedFile:
    """A file of the archive behind the model, and what it is for."""

    name: str
    type: str


@dataclasses.dataclass(frozen=True)
class ProcessUnit:
    """What a runtime is to do before or after the model, with the files that it needs."""

    kind: str
    files: tuple[NamedFile, ...]


@dataclasses.dataclass(frozen=True)
class TensorMetadata:
    name: str
    description: str
    files: tuple[NamedFile, ...]
    process_units: tuple[ProcessUnit, ...]


@dataclasses.dataclass(frozen=True)
class ModelMetadata:
    """Attributes:
    graphs: how many graphs it describes; what follows is of the first.
    """

    name: str
    description: str
    version: str
    author: str
    license: str
    min_parser_version: str
    graphs: int
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]
    input_process_units: tuple[ProcessUnit, ...]
    output_process_units: tuple[ProcessUnit, ...]

    def named_files(self) -> tuple[NamedFile, ...]:
        """Every file that it names."""
        tensors = (*self.inputs, *self.outputs)
        units = [*self.input_process_units, *self.output_process_units]
        units += [unit for tensor in tensors for unit in tensor.process_units]
        parts = [tensor.files for tensor in tensors] + [unit.files for unit in units]
        return tuple(file for files in parts for file in files)


def read_metadata(data: Any) -> ModelMetadata:
    """The metadata in a buffer of a model.

    Raises:
        DamagedError: it cannot be read.
    """
    root = Contents(data).root(IDENTIFIER)
    graphs = root.tables(3)
    first = graphs[0] if graphs else None
    inputs, outputs = ([] if first is None else first.tables(field) for field in (2, 3))
    before, after = ([] if first is None else first.tables(field) for field in (5, 6))
    name, description, version, author, permission, parser = (root.text(field) or "" for field in (0, 1, 2, 4, 5, 7))
    return ModelMetadata(
        name=name,
        description=description,
        version=version,
        author=author,
        license=permission,
        min_parser_version=parser,
        graphs=len(graphs),
        inputs=tuple(map(_tensor, inputs)),
        outputs=tuple(map(_tensor, outputs)),
        input_process_units=tuple(map(_unit, before)),
        output_process_units=tuple(map(_unit, after)),
    )


def _tensor(table: Table) -> TensorMetadata:
    units = tuple(_unit(unit) for unit in table.tables(4))
    return TensorMetadata(table.text(0) or "", table.text(1) or "", _files(table, 6), units)


def _unit(table: Table) -> ProcessUnit:
    number, options = table.number(0, "B"), table.table(1)
    kind = _UNITS[number] if 0 < number < len(_UNITS) else f"unit {number}"
    fields = () if options is None else _UNIT_FILES.get(kind, ())
    return ProcessUnit(kind, tuple(file for field in fields if options for file in _files(options, field)))


def _files(table: Table, field: int) -> tuple[NamedFile, ...]:
    files = []
    for entry in table.tables(field):
        number = entry.number(2, "b")
        kind = _FILE_TYPES[number] if 0 <= number < len(_FILE_TYPES) else f"type {number}"
        files.append(NamedFile(entry.text(0) or "", kind))
    return tuple(files)
