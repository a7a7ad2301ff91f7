"""Files that must not be written: each way in which an export can go wrong."""

import dataclasses
import re

import numpy as np
import pytest
from small_vocabularies import LINES
from tiny_exports import BASE, MAX_LENGTH, classifier, exported, keras_probabilities, new_classifier, wide_classifier
from tiny_tasks import EXAMPLES, tiny_task

import export.tflite
from albert_tf.cli.main import main
from albert_tf.data.schema import TextExample
from albert_tf.errors import CheckError, InputError
from albert_tf.evaluation.evaluate import evaluate
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from albert_tf.tokenization.training import train_sentencepiece
from albert_tf.training.task_runs import RUNS
from export.associated_files import associated_files
from export.device_graph import convert
from export.metadata import append_files, read_files, read_settings
from export.model_size import size_limits
from export.quantization import RECIPES
from export.runtime import TFLiteRunner
from export.tflite import export_tflite
from export.validation import CHECK_TEXTS, ExportError, check_export

FLOAT32 = RECIPES["float32"]


def model_of(path):
    """The bare model of an exported file."""
    return path.read_bytes()[: read_settings(read_files(path), path)["model_bytes"]]


def check(model, task, *, files_of=None, recipe=FLOAT32, **arguments):
    files = associated_files(files_of or task, model, recipe, form="loop", length=None)
    return check_export(append_files(model, files), model_bytes=len(model), task=task, recipe=recipe, **arguments)


def test_a_right_file_and_its_figures():
    task, model = classifier(), model_of(exported("all", "dynamic_int8"))
    report = check(model, task, recipe=RECIPES["dynamic_int8"], texts=LINES)
    runner = TFLiteRunner(exported("all", "dynamic_int8"))
    expected = np.stack([keras_probabilities(task, *example) for example in task.encode(LINES)])
    differences = np.abs(runner.pipeline.predict_probabilities(LINES) - expected)
    assert report.comparison.rows == len(LINES)
    assert report.comparison.max_difference == pytest.approx(differences.max(), abs=1e-6)
    assert report.comparison.mean_difference == pytest.approx(differences.mean(), abs=1e-6)
    assert 0 < report.comparison.mean_difference < report.comparison.max_difference < 0.02
    assert report.comparison.agreement == np.mean(
        runner.pipeline.predict_probabilities(LINES).argmax(1) == expected.argmax(1)
    )
    assert check(model, task, recipe=RECIPES["dynamic_int8"]).comparison.rows == len(CHECK_TEXTS)


def test_missing_weights():
    small = model_of(exported("all", "float32"))
    with pytest.raises(ExportError, match=r"1,2\d\d,\d{3} parameters as float32 should take 4,.* weights are missing"):
        # The model of 12,931 parameters in the place of one with 1.2 million. Labels fit, or the runner would refuse.
        task = wide_classifier()
        files = associated_files(task, small, FLOAT32, form="loop", length=None)
        settings = files["albert_tf.json"].replace(b'"a",\n      "b"', b'"a",\n      "b",\n      "c"')
        assert settings != files["albert_tf.json"]
        content = append_files(small, files | {"albert_tf.json": settings})
        check_export(content, model_bytes=len(small), task=task, recipe=FLOAT32)


@pytest.mark.parametrize("recipe", [name for name, recipe in RECIPES.items() if recipe.activation_bits is None])
def test_a_file_twice_too_large(tmp_path, recipe):
    task = wide_classifier()
    export_tflite(task, tmp_path / "m.tflite", recipe=recipe)
    model = model_of(tmp_path / "m.tflite")
    assert check(model, task, recipe=RECIPES[recipe]).comparison.agreement == 1
    with pytest.raises(ExportError, match="weights are missing from it or stored more than once"):
        check(model + bytes(len(model)), task, recipe=RECIPES[recipe])


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("length", [None, 16])
def test_size_limits_say_once(recipe, length):
    task, chosen = wide_classifier(), RECIPES[recipe]
    for form in ("loop", "unrolled"):
        lowest, highest = size_limits(task, chosen, form=form, length=length)
        expected = chosen.weight_bytes * task.count_params()
        # Where kinds of weights differ in size, the most is further from the least.
        widest = 1.3 if chosen.weight_bytes > 1 or recipe in ("dynamic_int8", "weight_only_int8") else 2.6
        assert 0.95 * expected < lowest < expected < highest < widest * expected


def test_other_answers():
    with pytest.raises(
        ExportError, match=r"answers differ from the Keras model's: mean difference 0\.\d+ \(at most 1e-05"
    ):
        check(model_of(exported("all", "float32")), new_classifier(seed=1))


def with_labels_moved(task):
    moved = new_classifier()
    moved.set_weights(task.get_weights())
    for variable in (moved.classifier.kernel, moved.classifier.bias):
        variable.assign(np.asarray(variable)[..., [1, 2, 0]])
    return moved


def test_another_decision_counts_where_the_model_is_clear(tmp_path):
    lenient = dataclasses.replace(FLOAT32, max_mean_difference=1.0)  # the differences alone would pass
    clear, unclear = new_classifier(), new_classifier()
    for task, bias in ((clear, [2.0, 0.0, 0.0]), (unclear, [0.1, 0.0, 0.0])):
        task.classifier.kernel.assign(np.asarray(task.classifier.kernel) * 0.02)
        task.classifier.bias.assign(bias)
    for task, name in ((clear, "clear"), (unclear, "unclear")):
        export_tflite(task, tmp_path / name, recipe="float32")
    with pytest.raises(ExportError, match="same decision on 0% of 8 rows"):
        check(model_of(tmp_path / "clear"), with_labels_moved(clear), recipe=lenient)
    report = check(model_of(tmp_path / "unclear"), with_labels_moved(unclear), recipe=lenient)
    assert report.comparison.agreement == 0


def test_nan(tmp_path):
    task = new_classifier()
    task.classifier.bias.assign([0.0, np.nan, 0.0])
    with pytest.raises(ExportError, match="not finite numbers, first for row 1 of 8"):
        export_tflite(task, tmp_path / "m.tflite")
    assert list(tmp_path.iterdir()) == []


def test_infinity(tmp_path):
    task = new_classifier()
    task.classifier.kernel.assign(np.full((BASE.hidden_dim, 3), 3e38, np.float32))
    with pytest.raises(ExportError, match="not finite numbers"):
        export_tflite(task, tmp_path / "m.tflite", recipe="float32")


def test_labels_that_do_not_fit():
    task = new_classifier()
    task.labels = ("no", "yes")
    with pytest.raises(
        ExportError, match=r"outputs \{'probabilities': \(2,\)\} .* model has \{'probabilities': \[1, 3\]\}"
    ):
        check(model_of(exported("all", "float32")), task)


def test_another_tokenizer():
    model, task, other = model_of(exported("all", "float32")), classifier(), new_classifier()
    other.tokenizer = AlbertTokenizer(train_sentencepiece(LINES * 20, 120), MAX_LENGTH)
    with pytest.raises(ExportError, match="its tokenizer has 120 pieces, its model 140 words"):
        check(model, task, files_of=other)
    other.tokenizer = AlbertTokenizer(SentencePieceVocabulary(task.tokenizer.vocabulary.model, lower=False), MAX_LENGTH)
    with pytest.raises(ExportError, match="tokenizer gives other ids than the model's"):
        check(model, task, files_of=other)


def test_a_model_that_cannot_be_run():
    with pytest.raises(ExportError, match="cannot be run: the runtime cannot load it"):
        check(b"\x1c\x00\x00\x00TFL3" + bytes(60_000), classifier())


def test_no_texts():
    with pytest.raises(InputError, match="texts: expected at least one"):
        check(model_of(exported("all", "float32")), classifier(), texts=[])


def _convert_with_lost_weights(task, recipe, *, length, **_):
    """tensorflow#98964: the weights stay variables that nothing fills, and the converter does not mind."""
    import tensorflow as tf

    names = ("token_ids", "segment_ids", "padding_mask")

    class Served(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec((1, length), tf.int32, name) for name in names])
        def serve(self, token_ids, segment_ids, padding_mask):
            x = task.backbone.encoder(task.backbone.embeddings(token_ids, segment_ids), padding_mask)[-1]
            return task.device_outputs(x, padding_mask)

    served = Served()
    function = served.serve.get_concrete_function()
    return tf.lite.TFLiteConverter.from_concrete_functions([function], served).convert()


def test_the_converters_silent_trap(tmp_path, monkeypatch):
    monkeypatch.setattr(export.tflite, "convert", _convert_with_lost_weights)
    kept = tmp_path / "m.tflite"
    kept.write_bytes(b"what was there")
    with pytest.raises(ExportError):
        export_tflite(new_classifier(), kept, recipe="float32", form="unrolled", overwrite=True)
    assert kept.read_bytes() == b"what was there"
    assert list(tmp_path.iterdir()) == [kept]


def test_the_command_ends_with_1(tmp_path, capfd):
    task = new_classifier()
    task.classifier.kernel.assign(np.full((BASE.hidden_dim, 3), 3e38, np.float32))  # finite, but no sum of it is
    task.save_pretrained(tmp_path / "run")
    code = main(["export", "tflite", str(tmp_path / "run"), "--out", str(tmp_path / "m.tflite")])
    lines = capfd.readouterr().err.splitlines()
    assert code == 1
    assert re.fullmatch(r"albert-tf: error: the file gives outputs that are not finite numbers, .*", lines[-1])
    assert len(lines) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert issubclass(ExportError, CheckError)


def test_forced(tmp_path):
    model = model_of(exported("all", "float32"))
    report = check(model, new_classifier(seed=1), force=True)
    assert "answers differ" in report.failed and report.comparison.distance > FLOAT32.max_mean_difference
    with pytest.raises(ExportError, match="not finite"):  # what no limit is about cannot be forced
        task = new_classifier()
        task.classifier.bias.assign([0.0, np.nan, 0.0])
        export_tflite(task, tmp_path / "m.tflite", force=True)


@pytest.mark.parametrize("name", [*EXAMPLES, "fill-mask"])
def test_every_task_without_examples(name, tmp_path):
    report = export_tflite(tiny_task(name), tmp_path / "m.tflite", recipe="float32", measure=False)
    found = report.comparison
    assert found.rows == (3 if name == "multiple-choice" else 1) * len(CHECK_TEXTS)
    assert found.agreement == (None if name in ("regression", "similarity") else 1.0)
    assert found.cosine == pytest.approx(1) and found.distance < 1e-5
    assert (report.metrics, report.device, report.failed) == ({}, None, "")


@pytest.mark.parametrize("name", EXAMPLES)
def test_metrics_of_both_on_labelled_examples(name):
    task, examples = tiny_task(name), EXAMPLES[name][1]
    model = convert(task, FLOAT32, form="loop", length=None)
    report = check(model, task, examples=examples)
    expected = evaluate(task, examples, source="examples")
    own = next(run.metrics for run, _ in RUNS if run.task == name)
    assert next(iter(report.metrics)) in own
    for metric, pair in report.metrics.items():
        assert pair.keras == pytest.approx(expected[metric], nan_ok=True)
        assert pair.difference == pytest.approx(pair.file - pair.keras, nan_ok=True)
        assert pair.file == pytest.approx(pair.keras, abs=1e-3, nan_ok=True)
    # Rows are those of the task: parts of passages, options, both texts of a pair.
    assert report.comparison.rows == len(pipeline_of(task).prepare(examples).rows)


def test_a_file_that_loses_too_much_of_its_metric():
    texts = [*LINES, *CHECK_TEXTS]
    lenient = dataclasses.replace(FLOAT32, max_mean_difference=1.0, clear_margin=2.0)
    task, moved = classifier(), with_labels_moved(classifier())
    examples = [
        TextExample(text, None, answer.label) for text, answer in zip(texts, pipeline_of(moved)(texts), strict=True)
    ]
    model = model_of(exported("all", "float32"))
    with pytest.raises(
        ExportError, match=r"accuracy on the examples is 0\S*, the Keras model's 1: lower by more than 0\.08"
    ):
        check(model, moved, files_of=task, recipe=lenient, examples=examples)
    report = check(model, moved, files_of=task, recipe=lenient, examples=examples, force=True)
    assert report.metrics["accuracy"].keras == 1 and "lower by more" in report.failed
    assert report.metrics["accuracy"].difference == report.metrics["accuracy"].file - 1 < -0.08


def test_a_fixed_length_is_told_in_the_metrics():
    """What a short file does not see costs it; the comparison of outputs is of the rows that it sees."""
    text = "the mill " * 6 + "river"
    task = new_classifier(seed=3)
    [long] = task.encode([text])
    label = task.labels[int(keras_probabilities(task, *long).argmax())]
    model = convert(task, FLOAT32, form="loop", length=8)
    files = associated_files(task, model, FLOAT32, form="loop", length=8)
    report = check_export(
        append_files(model, files),
        model_bytes=len(model),
        task=task,
        recipe=FLOAT32,
        examples=[TextExample(text, None, label)],
    )
    assert report.comparison.distance < 1e-5 and report.length == 8
    assert report.metrics["accuracy"].keras == 1.0
    cut = task.required_tokenizer.encode_batch([text], length=8)[0]
    assert report.metrics["accuracy"].file == float(label == task.labels[int(keras_probabilities(task, *cut).argmax())])
    assert len(long[0]) > 8


def test_what_the_graph_holds_and_costs(tmp_path):
    report = export_tflite(classifier(), tmp_path / "m.tflite", recipe="dynamic_int8")
    dense = [count for count in report.operators if count.name == "FULLY_CONNECTED"]
    assert {count.types for count in dense} >= {"float32, int8 → float32"}
    assert sum(count.count for count in dense) == 6 + 3  # the block once, in the loop
    assert report.float_operators is None and report.repeated_bytes == 0 and report.finite_outputs
    assert report.device.latencies_ms.keys() == {16}  # of 16, 32, 64 and 128 those that the model takes
    assert report.device.memory_growth_bytes > 0 < report.device.load_ms
    assert (report.recipe, report.form, report.length) == ("dynamic_int8", "loop", None)


def test_examples_that_cannot_be_used(tmp_path):
    example = TextExample("a", None, "no")
    for arguments, message in (
        ({"examples": [example], "texts": ["a"]}, "expected one of the two"),
        ({"examples": []}, "expected at least one example"),
        ({"examples": [TextExample("a", None, "maybe")]}, "examples.*'maybe'"),
        ({"examples": [TextExample("a")]}, "examples"),
    ):
        with pytest.raises(InputError, match=message):
            export_tflite(classifier(), tmp_path / "m.tflite", **arguments)
    with pytest.raises(InputError, match="no figures are taken of models for fill-mask"):
        export_tflite(tiny_task("fill-mask"), tmp_path / "m.tflite", examples=["the [MASK]"])
    assert list(tmp_path.iterdir()) == []
