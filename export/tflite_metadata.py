"""TFLite Model Metadata: what MediaPipe Tasks and Task Library read in a file to know its tensors, labels and tokenizer.

It is a flatbuffer of its own (metadata_schema.fbs of MediaPipe and TFLite Support), stored as a buffer of the model; the
files that it names stand in the zip archive behind the model (`export.metadata`). It is written here with the
`flatbuffers` package alone: MediaPipe 1.2's own writer cannot be imported, TFLite Support's needs NumPy 1.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import flatbuffers

from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS

# The two names by which MediaPipe and TFLite Support know the metadata: of the buffer, and of its layout.
BUFFER_NAME = "TFLITE_METADATA"
IDENTIFIER = b"M001"
# The oldest reader that knows tokenizers among the process units of an input.
MIN_PARSER_VERSION = "1.1.0"
# Ours → theirs; they take an input for what its name says.
INPUT_NAMES = {TOKEN_IDS: "ids", SEGMENT_IDS: "segment_ids", PADDING_MASK: "mask"}
_INPUT_DESCRIPTIONS = {
    TOKEN_IDS: "token ids",
    SEGMENT_IDS: "0 for the first text, 1 for the second",
    PADDING_MASK: "1 for tokens, 0 for padding",
}
LABELS_FILE = "labels.txt"
# A SentencePiece model whose own normalisation carries the text rules, for runtimes that have none.
DEVICE_VOCABULARY = "device.spm"

# Fields of each table by their place in the schema. A union is two fields: which table it is, and the table.
_FIELDS = {
    "ModelMetadata": {"name": 0, "description": 1, "subgraph_metadata": 3, "min_parser_version": 7},
    "SubGraphMetadata": {"input_tensor_metadata": 2, "output_tensor_metadata": 3, "input_process_units": 5},
    "TensorMetadata": {"name": 0, "description": 1, "content": 3, "associated_files": 6},
    "Content": {"content_properties_type": 0, "content_properties": 1},
    "FeatureProperties": {},
    "ProcessUnit": {"options_type": 0, "options": 1},
    "BertTokenizerOptions": {"vocab_file": 0},
    "SentencePieceTokenizerOptions": {"sentencePiece_model": 0},
    "AssociatedFile": {"name": 0, "description": 1, "type": 2},
}
# Values of the schema's enums and unions.
_FEATURE_PROPERTIES = 1
_BERT_TOKENIZER, _SENTENCEPIECE_TOKENIZER = 4, 5
_AXIS_LABELS, _VOCABULARY = 2, 5

_DATA_ALIGNMENT = 16  # of a buffer's data, as the schema of TFLite models asks


@dataclasses.dataclass(frozen=True)
class _Table:
    """A table of the schema: its kind and its fields, each a string, a byte, a table or a list of tables."""

    kind: str
    fields: dict[str, Any]

    def write(self, builder: Any) -> int:
        """Writes the table and all below it; returns its place."""
        values = {name: _write_value(builder, value) for name, value in self.fields.items()}
        slots = _FIELDS[self.kind]
        builder.StartObject(max(slots.values(), default=-1) + 1)
        for name, value in values.items():
            if isinstance(self.fields[name], int):
                builder.PrependUint8Slot(slots[name], value, 0)
            else:
                builder.PrependUOffsetTRelativeSlot(slots[name], value, 0)
        return int(builder.EndObject())


def _write_value(builder: Any, value: Any) -> int:
    if isinstance(value, str):
        return int(builder.CreateString(value))
    if isinstance(value, _Table):
        return value.write(builder)
    if isinstance(value, list):
        places = [table.write(builder) for table in value]
        builder.StartVector(4, len(places), 4)
        for place in reversed(places):
            builder.PrependUOffsetTRelative(place)
        return int(builder.EndVector())
    return int(value)


@dataclasses.dataclass(frozen=True)
class Output:
    """What the metadata says of an output.

    Attributes:
        name: theirs.
        labels: whether it has a value for each label of `LABELS_FILE`.
    """

    name: str
    description: str
    labels: bool = False


@dataclasses.dataclass(frozen=True)
class Description:
    """What the metadata says of a model.

    Attributes:
        name, description: for people.
        outputs: by our names.
        tokenizer_kind: "sentencepiece" or "wordpiece".
        tokenizer_file: the associated file with the SentencePiece model or the list of word pieces.
    """

    name: str
    description: str
    outputs: Mapping[str, Output]
    tokenizer_kind: str
    tokenizer_file: str


def model_metadata(described: Description, inputs: list[str], outputs: list[str]) -> bytes:
    """The metadata of a model of token ids, segment ids and mask.

    Args:
        described: what it says.
        inputs, outputs: our names, in the model's order.
    """
    vocabulary = [_file(described.tokenizer_file, "vocabulary of the tokenizer", _VOCABULARY)]
    if described.tokenizer_kind == "sentencepiece":
        unit = (_SENTENCEPIECE_TOKENIZER, _Table("SentencePieceTokenizerOptions", {"sentencePiece_model": vocabulary}))
    else:
        unit = (_BERT_TOKENIZER, _Table("BertTokenizerOptions", {"vocab_file": vocabulary}))
    subgraph = {
        "input_tensor_metadata": [_tensor(INPUT_NAMES[name], _INPUT_DESCRIPTIONS[name]) for name in inputs],
        "output_tensor_metadata": [_output(described.outputs[name]) for name in outputs],
        "input_process_units": [_Table("ProcessUnit", {"options_type": unit[0], "options": unit[1]})],
    }
    model = {
        "name": described.name,
        "description": described.description,
        "subgraph_metadata": [_Table("SubGraphMetadata", subgraph)],
        "min_parser_version": MIN_PARSER_VERSION,
    }
    builder = flatbuffers.Builder()
    builder.Finish(_Table("ModelMetadata", model).write(builder), IDENTIFIER)
    return bytes(builder.Output())


def _output(output: Output) -> _Table:
    if not output.labels:
        return _tensor(output.name, output.description)
    labels = [_file(LABELS_FILE, f"one label a line, in the order of {output.name}", _AXIS_LABELS)]
    return _tensor(output.name, output.description, associated_files=labels)


def _tensor(name: str, description: str, **fields: Any) -> _Table:
    content = {"content_properties_type": _FEATURE_PROPERTIES, "content_properties": _Table("FeatureProperties", {})}
    return _Table(
        "TensorMetadata", {"name": name, "description": description, "content": _Table("Content", content), **fields}
    )


def _file(name: str, description: str, kind: int) -> _Table:
    return _Table("AssociatedFile", {"name": name, "description": description, "type": kind})


def add_metadata(model: bytes, described: Description) -> bytes:
    """The model with `model_metadata` in it; the same input gives the same bytes.

    Args:
        model: a bare TFLite model, with our three inputs by name in its first signature.
        described: what the metadata says.
    """
    from ai_edge_litert import schema_py_generated as schema

    content = schema.ModelT.InitFromPackedBuf(bytearray(model))
    graph, signature = content.subgraphs[0], content.signatureDefs[0]
    names = [
        {tensor.tensorIndex: tensor.name.decode() for tensor in ends} for ends in (signature.inputs, signature.outputs)
    ]
    inputs = [names[0][index] for index in graph.inputs]
    metadata = model_metadata(described, inputs, [names[1][index] for index in graph.outputs])
    content.buffers = [*content.buffers, schema.BufferT(data=_as_array(metadata))]
    content.metadata = [*(content.metadata or []), schema.MetadataT(BUFFER_NAME, len(content.buffers) - 1)]
    return packed(content, len(model) + len(metadata))


def packed(content: Any, about: int) -> bytes:
    """The flatbuffer of a model.

    Args:
        content: a ModelT of the schema's generated code.
        about: how many bytes it may take, a guess.
    """
    from ai_edge_litert import schema_py_generated as schema

    class AlignedBuffer(schema.BufferT):
        """Writes its data where runtimes may map it as it is; the generated code forgets the alignment."""

        def Pack(self, builder: Any) -> Any:  # noqa: N802  # the generated code's name
            if self.data is not None:
                builder.Prep(_DATA_ALIGNMENT, len(self.data))
            return super().Pack(builder)

    content.buffers = [AlignedBuffer(buffer.data, buffer.offset, buffer.size) for buffer in content.buffers]
    builder = flatbuffers.Builder(about + 4096)
    builder.Finish(content.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _as_array(data: bytes) -> Any:
    import numpy as np

    return np.frombuffer(data, np.uint8)
