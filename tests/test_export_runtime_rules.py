"""Which runtimes take a file, as `inspect_file` says it. Tests of clients ask the runtimes themselves."""

import zipfile

import pytest
from ai_edge_litert import schema_py_generated as schema
from inspected_files import for_mediapipe, parts, signed, takes, verdict
from tflite_changes import changed
from tiny_exports import FIXED_LENGTH, exported
from tiny_tasks import tiny_task

from export.inspection import inspect_file
from export.tflite import export_tflite

RECIPES = ("float32", "float16", "dynamic_int8")


@pytest.mark.parametrize("recipe", RECIPES)
def test_which_runtimes_take_which_form(recipe):
    loop, fixed = (inspect_file(exported("all", recipe, *how)) for how in (("loop", None), ("unrolled", FIXED_LENGTH)))
    assert set(takes(loop).values()) == {"yes", "no"} and takes(loop)["LiteRT 2.3.0"] == "yes"
    assert verdict(loop, "TextClassifier").reasons[0].startswith("3 subgraphs: it takes one")
    assert "open size" in verdict(loop, "the web").reasons[0]
    assert verdict(loop, "GPU").takes == "no" and "fixed shapes only" in verdict(loop, "GPU").reasons[0]
    assert verdict(fixed, "the web").takes == "yes"
    assert verdict(fixed, "TextClassifier").reasons == ("no metadata: it needs the names of tensors and the tokenizer",)
    assert verdict(fixed, "GPU").takes == "partly"
    assert any("int32 values" in reason for reason in verdict(fixed, "GPU").reasons)
    old = [reason for reason in verdict(fixed, "BertNLClassifier").reasons if "FULLY_CONNECTED" in reason]
    assert old == (["FULLY_CONNECTED version 12: it knows versions to 10"] if recipe == "dynamic_int8" else [])


@pytest.mark.parametrize("task", ["tagging", "question-answering"])
def test_outputs_for_each_token_on_the_web(task, tmp_path):
    path = tmp_path / "m.tflite"
    export_tflite(tiny_task(task), path, recipe="float32", length=(8, 16), measure=False)
    found = inspect_file(path)
    assert verdict(found, "the web").takes == "yes"
    sizes = [[end.shape for end in signature.outputs] for signature in found.signatures]
    assert sorted({shape[:2] for shapes in sizes for shape in shapes}) == [(1, 8), (1, 16)]


def test_an_output_of_open_size_on_the_web(tmp_path):
    def open_output(model):
        graph = model.subgraphs[0]
        graph.tensors[graph.outputs[0]].shapeSignature = [1, -1]

    found = inspect_file(changed(tmp_path, exported("all", "float32", "loop", 16).read_bytes(), open_output))
    assert "an output of open size" in verdict(found, "the web").reasons[0]


def test_a_loop_of_fixed_length_on_a_gpu():
    found = verdict(inspect_file(exported("all", "float32", "loop", 16)), "GPU")
    assert found.takes == "partly" and "in other subgraphs, such as the body of a loop" in found.reasons[1]


def test_a_file_for_mediapipe():
    found = inspect_file(for_mediapipe())
    assert found.problems == () and found.metadata is not None
    assert {tensor.name for tensor in found.metadata.inputs} == {"ids", "segment_ids", "mask"}
    assert [tensor.name for tensor in found.metadata.outputs] == ["probability"]
    [unit] = found.metadata.input_process_units
    assert (unit.kind, [file.name for file in unit.files]) == ("SentencePiece tokenizer", ["device.spm"])
    for part in ("LiteRT 2", "TextClassifier", "1.2.3 TextEmbedder", "BertNLClassifier", "0.4.4 TextEmbedder"):
        assert verdict(found, part).takes == "yes", verdict(found, part)
    answerer = verdict(found, "BertQuestionAnswerer")
    assert answerer.reasons == ("inputs of any tokens: expected 384", "1 output: expected end_logits, start_logits")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"segment_ids\0", b"segment_idz\0", "inputs called ids, mask, segment_idz in the metadata"),
        (b"device.spm\0", b"device.smp\0", "device.smp: named in the metadata, not in the file"),
    ],
)
def test_wrong_metadata(tmp_path, old, new, reason):
    model, files = parts(for_mediapipe())
    start = model.index(b"M001")
    path = tmp_path / "m.tflite"
    path.write_bytes(signed(model[:start] + model[start:].replace(old, new), files))
    found = verdict(inspect_file(path), "TextClassifier")
    assert found.takes == "no" and any(reason in given for given in found.reasons)


def test_packed_files_are_not_for_mediapipe(tmp_path):
    model, files = parts(for_mediapipe())
    path = tmp_path / "m.tflite"
    path.write_bytes(model)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    assert any("compressed archive" in reason for reason in verdict(inspect_file(path), "TextClassifier").reasons)


def _other_first_input(content):
    content.subgraphs[0].inputs[0] = 40


def _four_bits(content):
    content.subgraphs[0].tensors[30].type = schema.TensorType.INT4


def _integer_roots(content):
    graph = content.subgraphs[0]
    codes = [code.builtinCode for code in content.operatorCodes]
    [root, *_] = (o for o in graph.operators if codes[o.opcodeIndex] == schema.BuiltinOperator.RSQRT)
    graph.tensors[root.inputs[0]].type = schema.TensorType.INT16


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_other_first_input, "inputs of open size that are not the graph's first tensors"),
        (_four_bits, "tensors of 4 bits: it knows none"),
        (_integer_roots, "RSQRT of int16"),
    ],
)
def test_what_task_library_does_not_take(tmp_path, change, reason):
    model, files = parts(for_mediapipe())
    path = changed(tmp_path, model, change)
    path.write_bytes(signed(path.read_bytes(), files))
    found = inspect_file(path)
    for part in ("BertNLClassifier", "0.4.4 TextEmbedder"):
        assert any(reason in given for given in verdict(found, part).reasons)
    for part in ("1.2.3 TextClassifier", "1.2.3 TextEmbedder"):
        assert not any(reason in given for given in verdict(found, part).reasons)
