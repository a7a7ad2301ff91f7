"""Requests that TensorFlow Serving runs when it loads a model, so that the first user does not wait for it.

The file `assets.extra/tf_serving_warmup_requests` is a TFRecord of PredictionLog messages (tensorflow_serving/apis, the
files prediction_log.proto, predict.proto and model.proto). Five fields of them are needed; they are written here in the
wire format of protocol buffers, as tensorflow-serving-api is too much to depend on for that.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from albert_tf.data.tfrecord import write_records

FILE_NAME = "tf_serving_warmup_requests"
# Numbers of fields.
_PREDICT_LOG = 6  # of PredictionLog
_REQUEST = 1  # of PredictLog
_MODEL_SPEC, _INPUTS = 1, 2  # of PredictRequest
_NAME, _SIGNATURE_NAME = 1, 3  # of ModelSpec
_KEY, _VALUE = 1, 2  # of an entry of a map


def write_warmup(path: Path, requests: Mapping[str, Mapping[str, Any]], *, model: str) -> None:
    """Writes the file.

    Args:
        path: the file.
        requests: signature → its inputs by name, as NumPy arrays or tensors.
        model: the name that the model is served under.
    """
    records = [prediction_log(model, signature, inputs) for signature, inputs in requests.items()]
    write_records(path, records, compressed=False)


def prediction_log(model: str, signature: str, inputs: Mapping[str, Any]) -> bytes:
    """A PredictionLog with one request."""
    import tensorflow as tf

    request = _field(_MODEL_SPEC, _field(_NAME, model.encode()) + _field(_SIGNATURE_NAME, signature.encode()))
    for name, tensor in inputs.items():
        proto = tf.make_tensor_proto(tensor).SerializeToString()
        request += _field(_INPUTS, _field(_KEY, name.encode()) + _field(_VALUE, proto))
    return _field(_PREDICT_LOG, _field(_REQUEST, request))


def _field(number: int, content: bytes) -> bytes:
    """A field that holds a string or a message: its number and wire type, its length, its content."""
    size, length = len(content), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((number << 3 | 2,)) + length + bytes((size,)) + content
