"""Fine-tuning a regressor from a table to a run folder and a `.tflite` file."""

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_data import TinyFiles, read_json, run_quietly, separable_rows, tiny_task_run, write_table

from albert_tf.cli.main import main
from albert_tf.data.tables import read_examples
from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import evaluate
from albert_tf.tasks.regression import AlbertTextRegressor
from albert_tf.training.task_runs import RegressionRun
from export.runtime import TFLiteRunner
from export.tflite import export_tflite

VALUES = {"cold": "-1.5", "warm": "1"}


def regression_run(files: TinyFiles, out: Path, train: Path, **changes: object) -> RegressionRun:
    run: RegressionRun = tiny_task_run(RegressionRun, files, out, train, **changes)
    return run


def test_from_a_table_to_a_file(tiny_files: TinyFiles, tmp_path: Path) -> None:
    rows = [(text, VALUES[label]) for text, label in separable_rows(48)]
    train = write_table(tmp_path / "train.tsv", rows, ("text", "score"))
    summary = run_quietly(regression_run(tiny_files, tmp_path / "run", train))
    history = read_json(tmp_path / "run" / "history.json")
    assert summary["valid"]["spearman"] > 0.7 and history[-1]["valid_loss"] < 1.2  # of a constant: 1.56
    assert summary["valid"]["spearman"] == max(figures["valid_spearman"] for figures in history)
    model, examples = AlbertTextRegressor.from_pretrained(tmp_path / "run"), read_examples(train)
    assert evaluate(model, examples, source="train")["loss"] == pytest.approx(summary["valid"]["loss"], rel=1e-4)
    export_tflite(model, tmp_path / "m.tflite", recipe="float32")
    runner = TFLiteRunner(tmp_path / "m.tflite")
    texts = [example.text for example in examples]
    np.testing.assert_allclose(runner(texts), model.predict_values(texts), rtol=0, atol=1e-5)


def test_a_label_that_is_no_number(tiny_files: TinyFiles, tmp_path: Path) -> None:
    for bad in ("warm", "nan", "1,5"):
        train = write_table(tmp_path / "train.tsv", [("the snow", "1.5"), ("the sun", bad)], ("text", "score"))
        with pytest.raises(InputError, match=rf"train.tsv, row 2 \('the sun'\): expected a number .*, got '{bad}'"):
            run_quietly(regression_run(tiny_files, tmp_path / "run", train))


def test_the_commands_take_it(tiny_files: TinyFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(text, VALUES[label]) for text, label in separable_rows(16)]
    train = write_table(tmp_path / "train.tsv", rows, ("text", "score"))
    run_quietly(regression_run(tiny_files, tmp_path / "run", train, epochs=1.0))
    run, file = str(tmp_path / "run"), str(tmp_path / "m.tflite")
    assert main(["export", "tflite", run, "--out", file, "--recipe", "float32"]) == 0
    for model in (run, file):
        assert main(["evaluate", model, "--data", str(train), "--json", f"{model}.json"]) == 0
    assert read_json(tmp_path / "run.json") == pytest.approx(read_json(tmp_path / "m.tflite.json"), abs=1e-4)
    capsys.readouterr()
    assert main(["predict", file, "--text", "the  snow"]) == 0
    value, text = capsys.readouterr().out.rstrip("\n").split("\t")
    assert float(value) == pytest.approx(TFLiteRunner(file)(["the  snow"])[0], abs=1e-4) and text == "the snow"
    assert main(["predict", run, "--text", "the snow", "--jsonl"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == {"text", "value"}
