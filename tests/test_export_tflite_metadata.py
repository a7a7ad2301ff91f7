"""The metadata of files for MediaPipe and Task Library: what stands in it, and that the model beside it is as without."""

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tflite_graph import read_graph
from tiny_exports import FIXED_LENGTH, exported

from export.metadata import read_files, read_settings
from export.tflite_metadata import Description, Output, add_metadata, model_metadata

THEIR_NAMES = {"token_ids": "ids", "segment_ids": "segment_ids", "padding_mask": "mask"}
LABELLED = {"probabilities": Output("probability", "of each label", labels=True)}
CLASSIFIER = Description("a name", "what it does", LABELLED, "sentencepiece", "v.spm")


class Table:
    """A table of a flatbuffer, read by the places of its fields in metadata_schema.fbs."""

    def __init__(self, data: bytes, place: int) -> None:
        self._table = flatbuffers.table.Table(bytearray(data), place)

    def _place(self, field: int) -> int:
        offset = self._table.Offset(4 + 2 * field)
        assert offset, f"field {field} is absent"
        return self._table.Pos + offset

    def string(self, field: int) -> str:
        return self._table.String(self._place(field)).decode()

    def byte(self, field: int) -> int:
        return self._table.Get(flatbuffers.number_types.Uint8Flags, self._place(field))

    def table(self, field: int) -> "Table":
        return Table(self._table.Bytes, self._table.Indirect(self._place(field)))

    def tables(self, field: int) -> list["Table"]:
        vector = self._place(field) - self._table.Pos
        start, count = self._table.Vector(vector), self._table.VectorLen(vector)
        return [Table(self._table.Bytes, self._table.Indirect(start + 4 * i)) for i in range(count)]


def root(metadata: bytes) -> Table:
    assert metadata[4:8] == b"M001"
    return Table(metadata, int.from_bytes(metadata[:4], "little"))


def bare_model(form: str = "unrolled", length: int | None = None) -> bytes:
    path = exported("all", "float32", form, length)
    return path.read_bytes()[: read_settings(read_files(path), path)["model_bytes"]]


def as_values(value):
    """An object of the generated code as plain values."""
    if isinstance(value, list):
        return [as_values(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.tobytes()
    return {n: as_values(v) for n, v in vars(value).items()} if hasattr(value, "__dict__") else value


def parsed(model: bytes) -> dict:
    return as_values(schema.ModelT.InitFromPackedBuf(bytearray(model)))


@pytest.mark.parametrize(
    ("kind", "unit_type"), [("wordpiece", 4), ("sentencepiece", 5)]
)  # their places in ProcessUnitOptions
def test_what_stands_in_it(kind, unit_type):
    names = ["segment_ids", "token_ids", "padding_mask"]
    described = Description("a name", "what it does", LABELLED, kind, "the vocabulary")
    model = root(model_metadata(described, names, ["probabilities"]))
    assert (model.string(0), model.string(1)) == ("a name", "what it does")
    assert model.string(7) == "1.1.0"
    [subgraph] = model.tables(3)
    assert [tensor.string(0) for tensor in subgraph.tables(2)] == ["segment_ids", "ids", "mask"]
    [output] = subgraph.tables(3)
    assert output.string(0) == "probability"
    [labels] = output.tables(6)
    assert (labels.string(0), labels.byte(2)) == ("labels.txt", 2)  # TENSOR_AXIS_LABELS
    for tensor in [*subgraph.tables(2), output]:
        assert tensor.table(3).byte(0) == 1  # FeatureProperties
    [unit] = subgraph.tables(5)
    assert unit.byte(0) == unit_type
    [vocabulary] = unit.table(1).tables(0)
    assert (vocabulary.string(0), vocabulary.byte(2)) == ("the vocabulary", 5)  # VOCABULARY


def test_outputs_in_the_models_order():
    outputs = {"start_logits": Output("start_logits", "starts"), "end_logits": Output("end_logits", "ends")}
    described = Description("a name", "what it does", outputs, "sentencepiece", "the vocabulary")
    model = root(
        model_metadata(described, ["token_ids", "segment_ids", "padding_mask"], ["end_logits", "start_logits"])
    )
    [subgraph] = model.tables(3)
    assert [(t.string(0), t.string(1)) for t in subgraph.tables(3)] == [
        ("end_logits", "ends"),
        ("start_logits", "starts"),
    ]
    with pytest.raises(AssertionError, match="field 6 is absent"):
        subgraph.tables(3)[0].tables(6)


@pytest.mark.parametrize("form", ["loop", "unrolled"])
@pytest.mark.parametrize("length", [None, FIXED_LENGTH])
def test_the_model_is_the_same(length, form):
    before = bare_model(form, length)
    after = add_metadata(before, CLASSIFIER)
    assert after == add_metadata(before, CLASSIFIER)
    assert after[4:8] == b"TFL3"
    assert 0 < len(after) - len(before) < 2500
    old, new = parsed(before), parsed(after)
    entry, buffer = new["metadata"].pop(), new["buffers"].pop()
    assert new == old
    assert (entry["name"], entry["buffer"]) == (b"TFLITE_METADATA", len(old["buffers"]))
    [subgraph] = root(buffer["data"]).tables(3)
    # The order of the tensors is the graph's.
    graph_names = [t.name.removeprefix("serving_default_").partition(":")[0] for t in read_graph(after)[0].inputs]
    assert [t.string(0) for t in subgraph.tables(2)] == [THEIR_NAMES[name] for name in graph_names]


def test_weights_are_aligned():
    after = add_metadata(bare_model(), CLASSIFIER)
    model = schema.Model.GetRootAs(bytearray(after), 0)
    tables = [model.Buffers(i)._tab for i in range(model.BuffersLength())]
    starts = [table.Vector(table.Offset(4)) for table in tables if table.Offset(4)]
    assert len(starts) > 20
    assert {start % 16 for start in starts} == {0}
