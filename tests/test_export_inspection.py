"""What `inspect_file` says of files, against the schema's own reader and the runtime; and of files that are wrong."""

import copy
import json
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from conftest import ROOT
from fuzz_tflite import keras_model
from inspected_files import for_mediapipe, parts, signed, takes, verdict
from tflite_changes import changed, parsed
from tflite_graph import read_graph, weights
from tiny_exports import FIXED_LENGTH, LABELS, classifier, exported
from tiny_tasks import new_task

from export import trial
from export.inspection import inspect_file
from export.measurement import measure
from export.metadata import SETTINGS_FILE, read_files

RECIPES = ("float32", "float16", "dynamic_int8")
FORMS = ("loop", "unrolled")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("foreign") / "dense.tflite"
    path.write_bytes(keras_model())
    return path


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


def test_metadata_that_cannot_be_read(tmp_path):
    model, files = parts(for_mediapipe())
    start = model.index(b"M001") - 4
    path = tmp_path / "m.tflite"
    path.write_bytes(signed(model[:start] + b"\xff\xff\xff\x7f" + model[start + 4 :], files))
    found = inspect_file(path)
    assert found.metadata is None and verdict(found, "TextClassifier").takes == "no"
    [problem] = found.problems
    assert problem.startswith("its metadata cannot be read: it refers to byte ")


def test_labels_and_lengths_that_do_not_fit(tmp_path):
    model, files = parts(for_mediapipe())
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

    def overwriting(content):
        graph = content.subgraphs[0]
        first, second = graph.operators[:2]
        graph.tensors[first.outputs[0]].buffer = graph.tensors[second.inputs[1]].buffer

    for change, message in (
        (overwriting, "operators that write to 1 constants"),
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


def test_modules_of_the_users_folder_are_not_run(foreign, tmp_path, monkeypatch):
    for name in ("export", "random"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('run')")
    monkeypatch.chdir(tmp_path)
    assert trial.why_not_loaded(foreign) is None
    assert measure(exported(), ["a"], repeats=1).median_latency_ms > 0


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux alone")
def test_a_limit_of_memory_that_is_there_already(foreign):
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, 2 * ({trial.MOST_MEMORY // 2},))"
    asked = f"from export import trial; print(trial.why_not_loaded({str(foreign)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", f"{limited}; {asked}"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "None", done.stdout


def test_an_embedder_has_no_values_for_its_labels(tmp_path):
    from export.tflite import export_tflite

    task = new_task("similarity", objective="softmax", labels=["same", "other"])
    export_tflite(task, tmp_path / "m.tflite", recipe="float32", measure=False)
    found = inspect_file(tmp_path / "m.tflite")
    assert (found.problems, found.settings["settings"]["labels"]) == ((), ["same", "other"])
