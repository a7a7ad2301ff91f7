"""Models whose bytes cannot be, and the table of versions against the runtime."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from conftest import ROOT
from fuzz_tflite import keras_model
from tflite_changes import changed, packed

from albert_tf.errors import InputError
from export.flatbuffer import Contents, DamagedError
from export.gpu_rules import SUPPORTED
from export.inspection import inspect_file
from export.operator_support import LITERT, RUNTIMES, newest_version
from export.tflite_model import read_model


@pytest.fixture(scope="module")
def foreign(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("foreign") / "dense.tflite"
    path.write_bytes(keras_model())
    return path


def set_to(place, value):
    """A change of a parsed model: `place` is called with its first graph and returns an object and an attribute."""

    def change(content):
        target, name = place(content)
        setattr(target, name, value)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_to(lambda m: (m, "version"), 4), "expected version 3 of the schema, found 4"),
        (set_to(lambda m: (m, "subgraphs"), []), "it has no graph"),
        (set_to(lambda m: (m.subgraphs[0], "inputs"), [99]), "it refers to the tensor 99, and has"),
        (set_to(lambda m: (m.subgraphs[0], "outputs"), [-1]), "it refers to the tensor -1, and has"),
        (
            set_to(lambda m: (m.subgraphs[0].operators[0], "opcodeIndex"), 7),
            "it refers to the operator code 7, and has",
        ),
        (set_to(lambda m: (m.subgraphs[0].operators[0], "inputs"), [-2]), "it refers to the tensor -2, and has"),
        (set_to(lambda m: (m.subgraphs[0].tensors[0], "buffer"), 1000), "it refers to the buffer 1000, and has"),
        (set_to(lambda m: (m.subgraphs[0].tensors[0], "type"), 77), "a tensor of the type 77"),
        (set_to(lambda m: (m.subgraphs[0].tensors[0], "shape"), [-5, 8]), r"a tensor of the shape \(-5, 8\)"),
        (set_to(lambda m: (m.subgraphs[0].tensors[0], "shapeSignature"), [1]), r"shape signature \(1,\)"),
        (set_to(lambda m: (m.signatureDefs[0], "subgraphIndex"), 3), "it refers to the subgraph 3, and has 1"),
        (set_to(lambda m: (m.metadata[0], "buffer"), 1000), "it refers to the buffer 1000, and has"),
        (set_to(lambda m: (m.buffers[1], "offset"), 1 << 40), "bytes from byte 1,099,511,627,776 on"),
    ],
)
def test_numbers_that_name_nothing(foreign, tmp_path, change, message):
    with pytest.raises(InputError, match=f"changed.tflite: damaged: .*{message}"):
        inspect_file(changed(tmp_path, foreign.read_bytes(), change))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a TFLite file, got an empty one"),
        (b"TFL3", "expected a TFLite file, got something else"),
        (b"PK\x03\x04" + bytes(100), "expected a TFLite file, got something else"),
        (b"\x10\0\0\0TFL3", "damaged: it refers to byte 16, and has 8"),
        (b"\xff\xff\xff\xffTFL3" + bytes(64), "damaged: it refers to byte 4,294,967,295"),
        # A table that is its own list of fields, with every field at itself.
        (b"\x08\0\0\0TFL3" + bytes(64), "expected version 3 of the schema, found 0"),
    ],
)
def test_what_is_no_model(tmp_path, content, message):
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        inspect_file(path)


def test_a_million_ways_to_one_table():
    """A list may name one table again and again; what would take hours or all memory is refused in seconds."""
    count, start = 3_000_000, 32
    table = start + 4 * count
    # The root at byte 16 has its fields' places at 8, and one field: the list.
    head = np.array([16, int.from_bytes(b"TFL3", "little"), 0x00080006, 0x0004, 8, 4, count - 1], np.uint32)
    data = bytearray(head.tobytes())
    data[24:28] = (4).to_bytes(4, "little")
    data = data[:20] + (4).to_bytes(4, "little") + count.to_bytes(4, "little")
    offsets = table - (28 + 4 * np.arange(count, dtype=np.int64))
    data += offsets.astype(np.uint32).tobytes() + bytes(table - 28 - 4 * count)
    data += (table - 8).to_bytes(4, "little")
    root = Contents(data).root(b"TFL3")
    assert root.count(0, 4) == count
    with pytest.raises(DamagedError, match="more parts than any model"):
        root.tables(0)


def one_operator(code, version) -> bytes:
    """A model that names one operator and has none."""
    content = schema.ModelT()
    content.version = 3
    content.operatorCodes = [
        schema.OperatorCodeT(builtinCode=code, deprecatedBuiltinCode=min(code, 127), version=version)
    ]
    tensor = schema.TensorT(shape=[1], type=schema.TensorType.FLOAT32, buffer=0, name=b"x")
    content.subgraphs = [schema.SubGraphT(tensors=[tensor], inputs=[0], outputs=[0], operators=[])]
    content.buffers = [schema.BufferT()]
    return packed(content)


def test_the_table_of_versions_is_that_of_the_runtime():
    codes = {name: code for name, code in vars(schema.BuiltinOperator).items() if isinstance(code, int)}
    known = {name: newest_version(name, LITERT) for name in codes}
    assert sum(version > 0 for version in known.values()) > 150
    for name, newest in known.items():
        if newest:
            Interpreter(model_content=one_operator(codes[name], newest))
        if name not in ("CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"):
            with pytest.raises(ValueError, match=f"builtin opcode '{name}' version '{newest + 1}'"):
                Interpreter(model_content=one_operator(codes[name], newest + 1))
    assert [newest_version("FULLY_CONNECTED", runtime) for runtime in RUNTIMES] == [14, 17, 10]
    assert newest_version("NONE SUCH", LITERT) == 0
    assert codes.keys() >= SUPPORTED


def test_names_that_are_no_text(foreign, tmp_path):
    def change(content):
        content.subgraphs[0].tensors[0].name = b"\xff\xfe"
        content.description = b"\x1b[31m"

    path = changed(tmp_path, foreign.read_bytes(), change)
    assert read_model(path.read_bytes()).subgraphs[0].tensors[0].name == "\ufffd\ufffd"
    assert inspect_file(path).description == "\x1b[31m"


def test_what_is_no_file(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*none\.tflite: No such file"):
        inspect_file(tmp_path / "none.tflite")
    with pytest.raises(InputError, match=r"expected a \.tflite file, got a folder"):
        inspect_file(tmp_path)
    with pytest.raises(InputError, match="path: expected a path, got None"):
        inspect_file(None)


def test_no_tensorflow(foreign):
    code = (
        "import sys; from export.inspection import inspect_file; inspect_file(sys.argv[1])\n"
        "print([m for m in ('tensorflow', 'keras', 'jax', 'torch') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(foreign)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("[]\n", "")
