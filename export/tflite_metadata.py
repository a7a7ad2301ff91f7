"""TFLite Model Metadata: what MediaPipe Tasks reads in a file to know its tensors, labels and tokenizer.

It is a flatbuffer of its own (metadata_schema.fbs of MediaPipe and TFLite Support), stored as a buffer of the model; the
files that it names stand in the zip archive behind the model (`export.metadata`). It is written here with the
`flatbuffers` package alone: MediaPipe 1.2's own writer cannot be imported, TFLite Support's needs NumPy 1.
"""

import dataclasses
from typing import Any

import flatbuffers

from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from albert_tf.errors import InputError

# The two names by which MediaPipe and TFLite Support know the metadata: of the buffer, and of its layout.
BUFFER_NAME = "TFLITE_METADATA"
IDENTIFIER = b"M001"
# The oldest reader that knows tokenizers among the process units of an input.
MIN_PARSER_VERSION = "1.1.0"
# Ours → MediaPipe's; it takes an input for what its name says.
INPUT_NAMES = {TOKEN_IDS: "ids", SEGMENT_IDS: "segment_ids", PADDING_MASK: "mask"}
# TFLite Task Library's BertNLClassifier looks for this name; MediaPipe takes any.
OUTPUT_NAME = "probability"
LABELS_FILE = "labels.txt"

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


def text_classifier_metadata(inputs: list[str], *, tokenizer_kind: str, tokenizer_file: str) -> bytes:
    """The metadata of a text classifier with one output, the labels' probabilities.

    Args:
        inputs: our names of the model's inputs, in the model's order.
        tokenizer_kind: "sentencepiece" or "wordpiece".
        tokenizer_file: the associated file with the SentencePiece model or the list of word pieces.
    """
    vocabulary = [_file(tokenizer_file, "vocabulary of the tokenizer", _VOCABULARY)]
    if tokenizer_kind == "sentencepiece":
        unit = (_SENTENCEPIECE_TOKENIZER, _Table("SentencePieceTokenizerOptions", {"sentencePiece_model": vocabulary}))
    else:
        unit = (_BERT_TOKENIZER, _Table("BertTokenizerOptions", {"vocab_file": vocabulary}))
    descriptions = {
        TOKEN_IDS: "token ids",
        SEGMENT_IDS: "0 for the first text, 1 for the second",
        PADDING_MASK: "1 for tokens, 0 for padding",
    }
    labels = [_file(LABELS_FILE, "one label a line, in the order of the probabilities", _AXIS_LABELS)]
    subgraph = {
        "input_tensor_metadata": [_tensor(INPUT_NAMES[name], descriptions[name]) for name in inputs],
        "output_tensor_metadata": [_tensor(OUTPUT_NAME, "of each label", associated_files=labels)],
        "input_process_units": [_Table("ProcessUnit", {"options_type": unit[0], "options": unit[1]})],
    }
    model = {
        "name": "ALBERT text classifier",
        "description": "Gives one label to a text.",
        "subgraph_metadata": [_Table("SubGraphMetadata", subgraph)],
        "min_parser_version": MIN_PARSER_VERSION,
    }
    builder = flatbuffers.Builder()
    builder.Finish(_Table("ModelMetadata", model).write(builder), IDENTIFIER)
    return bytes(builder.Output())


def _tensor(name: str, description: str, **fields: Any) -> _Table:
    content = {"content_properties_type": _FEATURE_PROPERTIES, "content_properties": _Table("FeatureProperties", {})}
    return _Table(
        "TensorMetadata", {"name": name, "description": description, "content": _Table("Content", content), **fields}
    )


def _file(name: str, description: str, kind: int) -> _Table:
    return _Table("AssociatedFile", {"name": name, "description": description, "type": kind})


def add_text_classifier_metadata(model: bytes, *, tokenizer_kind: str, tokenizer_file: str) -> bytes:
    """The model with `text_classifier_metadata` in it; the same input gives the same bytes.

    Args:
        model: a bare TFLite model of one subgraph, with our three inputs by name in its signature.
        tokenizer_kind, tokenizer_file: as for `text_classifier_metadata`.

    Raises:
        InputError: several subgraphs, which MediaPipe refuses.
    """
    from ai_edge_litert import schema_py_generated as schema

    content = schema.ModelT.InitFromPackedBuf(bytearray(model))
    if len(content.subgraphs) != 1:
        raise InputError(
            f"MediaPipe takes files with one subgraph, this one has {len(content.subgraphs)}; export with form unrolled"
        )
    names = {tensor.tensorIndex: tensor.name.decode() for tensor in content.signatureDefs[0].inputs}
    inputs = [names[index] for index in content.subgraphs[0].inputs]
    metadata = text_classifier_metadata(inputs, tokenizer_kind=tokenizer_kind, tokenizer_file=tokenizer_file)
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
