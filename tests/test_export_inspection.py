"""What `inspect_file` says of files, against the schema's own reader and the runtime; and of files that are wrong."""

import copy
import json
import stat
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from fuzz_tflite import keras_model
from tflite_changes import changed, parsed
from tflite_graph import read_graph, weights
from tiny_exports import FIXED_LENGTH, LABELS, classifier, exported, new_classifier

from export import trial
from export.inspection import inspect_file
from export.metadata import SETTINGS_FILE, append_files, model_record, read_files, read_settings

RECIPES = ("float32", "float16", "dynamic_int8")
FORMS = ("loop", "unrolled")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("foreign") / "dense.tflite"
    path.write_bytes(keras_model())
    return path


@pytest.fixture(scope="module")
def mediapipe(tmp_path_factory) -> Path:
    from export.tflite import export_tflite

    path = tmp_path_factory.mktemp("mediapipe") / "m.tflite"
    export_tflite(new_classifier(scale=0.3), path, recipe="float32", runtime="mediapipe")
    return path


def parts(path):
    """The bare model and the files behind it."""
    files = read_files(path)
    return path.read_bytes()[: read_settings(files, path)["model_bytes"]], files


def signed(model, files, **changes):
    """A file whose settings belong to the model."""
    settings = json.loads(files[SETTINGS_FILE]) | model_record(model) | changes
    return append_files(model, files | {SETTINGS_FILE: json.dumps(settings).encode()})


def takes(found):
    return {verdict.runtime: verdict.takes for verdict in found.runtimes}


def verdict(found, part):
    [match] = [verdict for verdict in found.runtimes if part in verdict.runtime]
    return match


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length", [None, FIXED_LENGTH])
def test_against_the_schemas_reader(recipe, form, length):
    path = exported("all", recipe, form, length)
    found, graphs = inspect_file(path), read_graph(path)
    assert found.problems == ()
    assert len(found.subgraphs) == len(graphs) == (3 if form == "loop" else 1)
    for mine, graph in zip(found.subgraphs, graphs, strict=True):
        counts: Counter[str] = Counter()
        for operator in mine.operators:
            counts[operator.name] += operator.count
        assert counts == Counter(graph.names())
        assert [(end.name, end.shape) for end in mine.inputs] == [(t.name, t.shape_signature) for t in graph.inputs]
        assert mine.tensors == len(graph.tensors)
    stored = weights(graphs)
    by_type: Counter[str] = Counter()
    for row in found.stored:
        by_type[row.type.upper()] += row.bytes
    assert by_type == sum((Counter({t.type: t.stored_bytes}) for t in stored.values()), Counter())
    assert sum(row.share for row in found.stored) == pytest.approx(1)
    uses = Counter(t.buffer for graph in graphs for t in graph.tensors if t.stored_bytes)
    assert found.shared_buffers == sum(count > 1 for count in uses.values())
    assert found.duplicates == ()
    assert (found.parameters, found.parameters_from) == (classifier().count_params(), "albert_tf.json")
    [signature] = found.signatures
    assert {(end.name, end.type, end.shape) for end in signature.inputs} == {
        (name, "int32", (1, length or -1)) for name in ("token_ids", "segment_ids", "padding_mask")
    }
    assert [end.name for end in signature.outputs] == ["probabilities"]
    assert found.files == {name: len(content) for name, content in read_files(path).items()}


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


def test_a_loop_of_fixed_length_on_a_gpu():
    # Its body is open in the sizes that the loop carries.
    assert "sizes that are open" in verdict(inspect_file(exported("all", "float32", "loop", 16)), "GPU").reasons[0]


def test_a_model_of_somebody_else(foreign):
    found = inspect_file(foreign)
    assert (found.settings, found.metadata, found.files, found.problems) == (None, None, {}, ())
    assert (found.parameters, found.parameters_from) == (8 * 4 + 4 + 4 * 2 + 2, "stored values")
    assert found.model_bytes == found.size_bytes == foreign.stat().st_size
    assert found.subgraphs[0].inputs[0].shape == (-1, 8)  # so Keras exports a batch of one
    assert takes(found)["LiteRT 2.3.0"] == "yes"
    reasons = verdict(found, "TextClassifier").reasons
    assert reasons == ("inputs of the type float32: expected int32 for all, or string for all",)
    assert "an input of open size" in verdict(found, "GPU").reasons[0]
    model = parsed(foreign.read_bytes())
    [recorded] = [m.buffer for m in model.metadata if m.name == b"min_runtime_version"]
    assert found.min_runtime_version == bytes(model.buffers[recorded].data).rstrip(b"\0").decode()


def test_a_file_for_mediapipe(mediapipe):
    found = inspect_file(mediapipe)
    assert found.problems == () and found.metadata is not None
    assert {tensor.name for tensor in found.metadata.inputs} == {"ids", "segment_ids", "mask"}
    assert [tensor.name for tensor in found.metadata.outputs] == ["probability"]
    [unit] = found.metadata.input_process_units
    assert (unit.kind, [file.name for file in unit.files]) == ("SentencePiece tokenizer", ["device.spm"])
    for part in ("LiteRT 2", "TextClassifier", "TextEmbedder", "BertNLClassifier"):
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
def test_wrong_metadata(mediapipe, tmp_path, old, new, reason):
    model, files = parts(mediapipe)
    start = model.index(b"M001")
    path = tmp_path / "m.tflite"
    path.write_bytes(signed(model[:start] + model[start:].replace(old, new), files))
    found = verdict(inspect_file(path), "TextClassifier")
    assert found.takes == "no" and any(reason in given for given in found.reasons)


def test_metadata_that_cannot_be_read(mediapipe, tmp_path):
    model, files = parts(mediapipe)
    start = model.index(b"M001") - 4
    path = tmp_path / "m.tflite"
    path.write_bytes(signed(model[:start] + b"\xff\xff\xff\x7f" + model[start + 4 :], files))
    found = inspect_file(path)
    assert found.metadata is None and verdict(found, "TextClassifier").takes == "no"
    [problem] = found.problems
    assert problem.startswith("its metadata cannot be read: it refers to byte ")


def test_packed_files_are_not_for_mediapipe(mediapipe, tmp_path):
    model, files = parts(mediapipe)
    path = tmp_path / "m.tflite"
    path.write_bytes(model)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    assert any("compressed archive" in reason for reason in verdict(inspect_file(path), "TextClassifier").reasons)


def test_labels_and_lengths_that_do_not_fit(mediapipe, tmp_path):
    model, files = parts(mediapipe)
    path = tmp_path / "m.tflite"
    config = json.loads(files[SETTINGS_FILE])["config"]
    changes = {"settings": {"labels": [*LABELS, "more"]}, "length": 600}
    path.write_bytes(signed(model, files | {"labels.txt": b"one\ntwo\n"}, **changes))
    assert inspect_file(path).problems == (
        "albert_tf.json has 4 labels, the output has 3 values for each",
        "labels.txt has 2 labels, the output has 3 values for each",
        f"albert_tf.json: a length of 600 tokens, and a config of at most {config['max_sequence_length']}",
    )


def test_a_changed_model_and_a_lost_archive(tmp_path):
    whole = exported("all", "float32", "loop").read_bytes()
    model, _ = parts(exported("all", "float32", "loop"))
    largest = max(weights(read_graph(model)).values(), key=lambda tensor: tensor.stored_bytes)
    data = parsed(model).buffers[largest.buffer].data.tobytes()
    place = whole.index(data) + len(data) // 2
    path = tmp_path / "m.tflite"
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    assert inspect_file(path).problems[0].startswith("damaged: the model's sha256 differs")
    path.write_bytes(whole[:-30])
    assert (
        "the archive of tokenizer, labels and other files behind the model is damaged" in inspect_file(path).problems[0]
    )


def test_weights_stored_twice(foreign, tmp_path):
    def change(content):
        size = 2048
        for name in (b"first", b"second"):
            content.buffers.append(schema.BufferT(data=np.arange(size, dtype=np.uint8)))
            tensor = schema.TensorT(
                shape=[size], type=schema.TensorType.UINT8, buffer=len(content.buffers) - 1, name=name
            )
            content.subgraphs[0].tensors.append(tensor)

    assert inspect_file(changed(tmp_path, foreign.read_bytes(), change)).duplicates == ({"copies": 2, "bytes": 2048},)


def test_quantisation(foreign, tmp_path):
    kinds = {row.quantization for row in inspect_file(exported("all", "dynamic_int8", "loop")).stored}
    assert {"none", "per channel"} <= kinds

    def change(content):
        content.buffers.append(schema.BufferT(data=np.zeros(33, np.uint8)))
        details = schema.BlockwiseQuantizationT(scales=0, zeroPoints=0, blockSize=32)
        quantization = schema.QuantizationParametersT(
            detailsType=schema.QuantizationDetails.BlockwiseQuantization, details=details
        )
        tensor = schema.TensorT(
            shape=[5, 13], type=schema.TensorType.INT4, buffer=len(content.buffers) - 1, name=b"int4"
        )
        tensor.quantization = quantization
        content.subgraphs[0].tensors.append(tensor)

    found = inspect_file(changed(tmp_path, foreign.read_bytes(), change))
    [row] = [row for row in found.stored if row.type == "int4"]
    assert (row.quantization, row.bytes, row.tensors) == ("blockwise, 32 values", 33, 1)
    assert found.parameters == 46 + 65
    assert not any("wrong size" in problem for problem in found.problems)


def converted(tmp_path, function, **options) -> Path:
    """A function of eight floats as a file; `options` are attributes of the converter."""
    import tensorflow as tf

    made = tf.function(function, [tf.TensorSpec((1, 8), tf.float32)])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([made.get_concrete_function()])
    for name, value in options.items():
        setattr(converter, name, value)
    path = tmp_path / "converted.tflite"
    path.write_bytes(converter.convert())
    return path


def test_floats_among_integers(tmp_path):
    import tensorflow as tf

    weight = tf.constant(np.random.default_rng(0).normal(size=(8, 8)), tf.float32)
    samples = [[np.full((1, 8), value, np.float32)] for value in (-1, 0, 1)]
    path = converted(
        tmp_path,
        lambda x: tf.sin(x @ weight),
        optimizations=[tf.lite.Optimize.DEFAULT],
        representative_dataset=lambda: iter(samples),
    )
    assert sorted(read_graph(path)[0].names()) == ["DEQUANTIZE", "FULLY_CONNECTED", "QUANTIZE", "SIN"]
    assert inspect_file(path).float_operators == {"DEQUANTIZE": 1, "SIN": 1}
    assert inspect_file(exported("all", "dynamic_int8", "loop")).float_operators is None


def test_custom_operators(tmp_path):
    import tensorflow as tf

    found = inspect_file(converted(tmp_path, tf.math.erf, allow_custom_ops=True))
    # An application links them itself: the file is not damaged.
    assert found.problems == () and takes(found)["LiteRT 2.3.0"] == "no"
    assert verdict(found, "LiteRT 2").reasons[0].endswith("Erf")
    assert [operator.name for operator in found.subgraphs[0].operators] == ["custom Erf"]


def test_the_gpu_takes_all_of_a_small_function(tmp_path):
    import tensorflow as tf

    found = inspect_file(converted(tmp_path, lambda x: tf.tanh(x) * 2.0))
    assert (verdict(found, "GPU").takes, verdict(found, "GPU").reasons) == ("yes", ())
    assert verdict(inspect_file(converted(tmp_path, lambda x: tf.cast(x, tf.int32) + 1)), "GPU").reasons == (
        "1 of 2 operators by its published rules, the others on the CPU",
        "1 × ADD: int32 values",
    )


def test_lost_weights(foreign, tmp_path):
    def nan(content):
        largest = max((b for b in content.buffers if b.data is not None), key=lambda b: len(b.data))
        largest.data = np.full(len(largest.data) // 4, np.nan, np.float32).view(np.uint8)

    def short(content):
        largest = max((b for b in content.buffers if b.data is not None), key=lambda b: len(b.data))
        largest.data = largest.data[:-4]

    def unbound(content):
        content.operatorCodes.append(schema.OperatorCodeT(builtinCode=schema.BuiltinOperator.READ_VARIABLE))
        content.operatorCodes[-1].deprecatedBuiltinCode = 127
        content.operatorCodes[-1].version = 1
        operator = copy.deepcopy(content.subgraphs[0].operators[0])
        operator.opcodeIndex = len(content.operatorCodes) - 1
        operator.builtinOptions, operator.builtinOptionsType = None, 0
        content.subgraphs[0].operators.append(operator)

    for change, message in (
        (nan, "values that are not a number in 1 constants"),
        (short, "1 constants of a wrong size"),
        (unbound, "it reads variables that nothing assigns"),
    ):
        problems = inspect_file(changed(tmp_path, foreign.read_bytes(), change)).problems
        assert any(message in problem for problem in problems), (message, problems)


def test_an_operator_that_is_too_new(foreign, tmp_path):
    def change(content):
        content.operatorCodes[0].version = 99

    found = inspect_file(changed(tmp_path, foreign.read_bytes(), change))
    assert takes(found)["LiteRT 2.3.0"] == "no" and found.problems == ()
    assert "FULLY_CONNECTED version 99: it knows versions to 14" in verdict(found, "the web").reasons


def test_a_runtime_that_ends_its_process(foreign, tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -SEGV $$\n")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(trial.sys, "executable", str(python))
    assert inspect_file(foreign).problems == ("the runtime does not load it: the runtime ends the process (SIGSEGV)",)
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(trial, "TIMEOUT_SECONDS", 0.2)
    assert trial.why_not_loaded(foreign) == "not loaded after 0.2 seconds"
