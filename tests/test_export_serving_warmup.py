"""The warm-up file, read with messages made from the published .proto files of TensorFlow Serving."""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorflow.core.framework import tensor_pb2

from export.serving_warmup import prediction_log, write_warmup

TYPE = descriptor_pb2.FieldDescriptorProto
# Message → its fields: name, number, type (of messages their name). Only those that a request has.
SCHEMA: dict[str, list[tuple[str, int, Any]]] = {
    "ModelSpec": [("name", 1, TYPE.TYPE_STRING), ("signature_name", 3, TYPE.TYPE_STRING)],
    "PredictRequest": [("model_spec", 1, ".test.ModelSpec"), ("inputs", 2, ".test.PredictRequest.InputsEntry")],
    "PredictLog": [("request", 1, ".test.PredictRequest")],
    "PredictionLog": [("predict_log", 6, ".test.PredictLog")],
}
ENTRY = [("key", 1, TYPE.TYPE_STRING), ("value", 2, ".tensorflow.TensorProto")]


def add_fields(message: Any, fields: list[tuple[str, int, Any]]) -> None:
    for name, number, kind in fields:
        field = message.field.add(name=name, number=number, label=TYPE.LABEL_OPTIONAL)
        if isinstance(kind, str):
            field.type, field.type_name = TYPE.TYPE_MESSAGE, kind
            if kind.endswith("Entry"):
                field.label = TYPE.LABEL_REPEATED
        else:
            field.type = kind


def prediction_log_class() -> Any:
    pool = descriptor_pool.Default()
    file = descriptor_pb2.FileDescriptorProto(name="warmup_test.proto", package="test", syntax="proto3")
    file.dependency.append(tensor_pb2.DESCRIPTOR.name)
    for name, fields in SCHEMA.items():
        message = file.message_type.add(name=name)
        add_fields(message, fields)
        if name == "PredictRequest":
            entry = message.nested_type.add(name="InputsEntry")
            entry.options.map_entry = True
            add_fields(entry, ENTRY)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("test.PredictionLog"))


def test_the_file(tmp_path: Path) -> None:
    texts, ids = np.array([b"a\0", "明天 ".encode() * 100], object), np.arange(6, dtype=np.int32).reshape(2, 3)
    requests = {"serving_default": {"texts": texts}, "tokens": {"token_ids": ids, "padding_mask": np.ones_like(ids)}}
    write_warmup(tmp_path / "requests", requests, model="films")
    parsed, message_class = [], prediction_log_class()
    for record in tf.data.TFRecordDataset(str(tmp_path / "requests")):
        log = message_class.FromString(record.numpy())
        request = log.predict_log.request
        inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
        parsed.append((request.model_spec.name, request.model_spec.signature_name, inputs))
        assert log.ByteSize() == len(record.numpy())  # nothing is unknown
    assert [(name, signature, sorted(inputs)) for name, signature, inputs in parsed] == [
        ("films", "serving_default", ["texts"]),
        ("films", "tokens", ["padding_mask", "token_ids"]),
    ]
    assert parsed[0][2]["texts"].tolist() == texts.tolist()
    np.testing.assert_array_equal(parsed[1][2]["token_ids"], ids)
    assert parsed[1][2]["token_ids"].dtype == np.int32


def test_the_same_bytes_again() -> None:
    inputs = {"texts": np.array([b"a"], object)}
    assert prediction_log("m", "s", inputs) == prediction_log("m", "s", inputs)
