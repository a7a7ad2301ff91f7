"""Changes TFLite models with the generated code of the schema."""

import flatbuffers
from ai_edge_litert import schema_py_generated as schema


def parsed(model):
    return schema.ModelT.InitFromPackedBuf(bytearray(model))


def packed(content) -> bytes:
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(content.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def changed(tmp_path, model, change):
    """A bare model after `change` of its parsed content, as a file."""
    content = parsed(model)
    change(content)
    path = tmp_path / "changed.tflite"
    path.write_bytes(packed(content))
    return path
