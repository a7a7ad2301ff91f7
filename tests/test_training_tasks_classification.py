"""Fine-tuning of classifiers: class weights, label smoothing, GLUE's folders, and temperature from evaluate to predict."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import albert_tf, assert_refused
from scipy.special import log_softmax
from sklearn.utils.class_weight import compute_class_weight
from tiny_data import TinyFiles, read_json, run_quietly, separable_rows, tiny_run, write_table
from tiny_exports import BASE, new_classifier

from albert_tf.data.schema import TextExample
from albert_tf.errors import InputError
from albert_tf.training.task_runs import ClassificationRun
from albert_tf.training.tasks.classification import FinetuneClassification, class_weights

LABELS = ("a", "b", "c")


def test_balanced_weights_are_those_of_scikit_learn() -> None:
    ids = [0] * 7 + [1] * 2 + [2]
    expected = compute_class_weight("balanced", classes=np.arange(3), y=ids)
    assert class_weights("balanced", ids, LABELS) == pytest.approx(expected.tolist())
    assert class_weights(None, ids, LABELS) is None
    assert class_weights("1, 2.5,3", ids, LABELS) == [1.0, 2.5, 3.0]


@pytest.mark.parametrize("asked", ["1,2", "1,2,0", "1,2,x", "1,2,inf", "even", ""])
def test_weights_that_are_none(asked: str) -> None:
    with pytest.raises(InputError, match=r"--class-weights: expected balanced, or 3 numbers above 0 .* a, b, c; got"):
        class_weights(asked, [0, 1, 2], LABELS)
    with pytest.raises(InputError, match="--class-weights balanced: the label 'b' has no example"):
        class_weights("balanced", [0, 2], LABELS)


def test_a_run_begins_without_the_temperature_of_its_source(tmp_path: Path) -> None:
    """It was fitted to other weights than those to come."""
    from albert_tf.tasks.classification import AlbertTextClassifier

    plain = new_classifier()
    source = AlbertTextClassifier(plain.backbone, plain.tokenizer, labels=LABELS, temperature=2.0)
    source.save_pretrained(tmp_path / "source")
    assert AlbertTextClassifier.from_pretrained(tmp_path / "source").temperature == 2.0
    run = ClassificationRun(train="t.tsv", out="run", source="x")
    settings = FinetuneClassification().head_settings(run, [TextExample("t", None, label) for label in LABELS])
    begun = AlbertTextClassifier.from_pretrained(tmp_path / "source", **settings)
    assert begun.temperature == 1.0 and not begun.head_is_new


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weights", [None, (0.5, 1.0, 4.0)])
def test_loss_is_that_of_numpy(smoothing: float, weights: tuple[float, ...] | None) -> None:
    from albert_tf.tasks.classification import AlbertTextClassifier

    plain = new_classifier()
    task = AlbertTextClassifier(
        plain.backbone, plain.tokenizer, labels=LABELS, class_weights=weights, label_smoothing=smoothing
    )
    logits = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32) * 3
    true = np.array([0, 1, 2, 2, 1, 0])
    wanted = np.eye(3)[true] * (1 - smoothing) + smoothing / 3
    expected = -(wanted * log_softmax(logits.astype(np.float64), axis=1)).sum(axis=1)
    expected = expected * (1.0 if weights is None else np.array(weights)[true])
    np.testing.assert_allclose(task.training_losses({"label": true}, logits), expected, rtol=1e-5)
    copy = AlbertTextClassifier.from_config(task.get_config())
    assert copy.settings() == task.settings()
    assert ("class_weights" in task.settings(), "label_smoothing" in task.settings()) == (bool(weights), smoothing > 0)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"class_weights": (1.0, 2.0)}, "class_weights: expected a number for each of 3 labels"),
        ({"class_weights": (1.0, 2.0, -1.0)}, "class_weights: expected a number of at least"),
        ({"class_weights": "123"}, "class_weights: expected a number for each of 3 labels"),
        ({"label_smoothing": 1.0}, "label_smoothing: expected a number of at least 0.0 and below 1.0, got 1.0"),
        ({"label_smoothing": "0.1"}, "label_smoothing: expected a number"),
        ({"temperature": 0.0}, "temperature: expected a number of at least"),
        ({"temperature": True}, "temperature: expected a number of at least"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], expected: str) -> None:
    from albert_tf.tasks.classification import AlbertTextClassifier

    with pytest.raises(InputError, match=expected):
        AlbertTextClassifier(new_classifier().backbone, labels=LABELS, **settings)


def test_a_run_with_weights_and_smoothing(tiny_files: TinyFiles, tmp_path: Path) -> None:
    """The settings arrive at the model, are saved with it, and do not stay for a run without them."""
    run = tiny_run(tiny_files, tmp_path / "run", epochs=0.5, class_weights="1,3", label_smoothing=0.2)
    run_quietly(run)
    settings = read_json(tmp_path / "run" / "task.json")["settings"]
    assert (settings["class_weights"], settings["label_smoothing"]) == ([1.0, 3.0], 0.2)
    examples = [TextExample("a", None, "cold"), TextExample("b", None, "warm")]
    again = FinetuneClassification().head_settings(tiny_run(tiny_files, tmp_path / "x"), examples)
    assert (again["class_weights"], again["label_smoothing"]) == (None, 0.0)


def test_a_folder_of_glue(tiny_files: TinyFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder gives training and validation, the task its figure; evaluate and predict take the folder too."""
    folder = tmp_path / "CoLA"
    folder.mkdir()
    for name, seed in (("train.tsv", 0), ("dev.tsv", 1)):
        rows = [f"gj04\t{int(label == 'warm')}\t\t{text}\n" for text, label in separable_rows(16, seed)]
        (folder / name).write_text("".join(rows))
    rows = [("7", "ice and snow"), ("9", "the fire of summer"), ("8", 'a "quoted fire')]
    write_table(folder / "test.tsv", rows, ("index", "sentence"))
    run = tiny_run(tiny_files, tmp_path / "run", train=str(folder), valid=None, glue="cola", epochs=4.0)
    assert (run.best_metric, run.valid) == ("matthews_correlation", str(folder / "dev.tsv"))
    summary = run_quietly(run)
    command = albert_tf(capsys)
    done = command("evaluate", tmp_path / "run", "--glue", "CoLA", "--data", folder, "--json", tmp_path / "m.json")
    metrics = read_json(tmp_path / "m.json")
    assert done.code == 0 and next(iter(metrics)) == "matthews_correlation"
    assert metrics["matthews_correlation"] == pytest.approx(summary["valid"]["matthews_correlation"])
    done = command("predict", tmp_path / "run", "--glue", "CoLA", "--file", folder)
    lines = [line.split("\t") for line in done.out.splitlines()]
    assert lines[0] == ["index", "prediction"]
    assert [line[0] for line in lines[1:]] == ["7", "9", "8"] and lines[1][1] in "01"
    texts = [word for _, text in rows for word in ("--text", text)]
    plain = [line.split("\t")[0] for line in command("predict", tmp_path / "run", *texts).out.splitlines()]
    assert [line[1] for line in lines[1:]] == plain
    done = command("predict", tmp_path / "run", "--glue", "RTE", "--file", folder / "dev.tsv")
    assert_refused(done, "the model's labels are 0, 1, those of RTE entailment, not_entailment")
    assert_refused(command("predict", tmp_path / "run", "--glue", "CoLA"), "--glue goes with --file")


def test_temperature_from_evaluate_to_predict(
    tiny_files: TinyFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fitted on one file, saved in the run folder, in predictions and exports; labels stay as they were."""
    from albert_tf.tasks.classification import AlbertTextClassifier
    from export.runtime import TFLiteRunner
    from export.tflite import export_tflite

    model = new_classifier(BASE, scale=0.5)
    model.save_pretrained(tmp_path / "run")
    texts = ["the people", "turning by", "the people turning", "by the people", "turning people by the"] * 6
    random = np.random.default_rng(3)
    rows = [(text, str(random.choice(model.labels))) for text in texts]
    data = write_table(tmp_path / "dev.tsv", rows)
    command = albert_tf(capsys)
    before = model.predict_probabilities(texts)
    plain = command("evaluate", tmp_path / "run", "--data", data, "--calibration", "--json", tmp_path / "a.json")
    assert plain.code == 0 and "expected calibration error" in plain.out
    export_tflite(model, tmp_path / "m.tflite", recipe="float32")
    refused = command("evaluate", tmp_path / "m.tflite", "--data", data, "--fit-temperature")
    assert_refused(refused, "--fit-temperature: expected the folder of a run, got")

    done = command("evaluate", tmp_path / "run", "--data", data, "--fit-temperature", "--json", tmp_path / "b.json")
    assert done.code == 0, done.err
    first, second = read_json(tmp_path / "a.json"), read_json(tmp_path / "b.json")
    assert second["expected_calibration_error_before"] == pytest.approx(first["expected_calibration_error"])
    assert second["loss"] < first["loss"] and second["accuracy"] == first["accuracy"]
    saved = AlbertTextClassifier.from_pretrained(tmp_path / "run")
    assert saved.temperature == pytest.approx(second["temperature"]) and saved.temperature > 1
    after = saved.predict_probabilities(texts)
    logits = np.log(before.astype(np.float64)) / saved.temperature
    np.testing.assert_allclose(after, np.exp(log_softmax(logits, axis=1)), atol=1e-5)
    export_tflite(saved, tmp_path / "t.tflite", recipe="float32")
    answers = TFLiteRunner(tmp_path / "t.tflite")(texts[:5])
    np.testing.assert_allclose([list(a.probabilities.values()) for a in answers], after[:5], atol=1e-4)

    again = command("evaluate", tmp_path / "run", "--data", data, "--fit-temperature")
    assert_refused(again, "has the temperature", "pass --overwrite to replace it")
    command("evaluate", tmp_path / "run", "--data", data, "--fit-temperature", "--overwrite")
    task = json.loads((tmp_path / "run" / "task.json").read_text())
    assert task["settings"]["temperature"] == pytest.approx(saved.temperature, rel=1e-3)
