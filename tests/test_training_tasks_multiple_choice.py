"""Multiple choice from a RACE file to a run folder and a `.tflite` file; the loss against NumPy."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_vocabularies import sentencepiece_vocabulary
from tiny_data import WORDS, TinyFiles, run_quietly, separable_rows, tiny_task_run
from tiny_models import randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.cli.main import main
from albert_tf.config import AlbertConfig
from albert_tf.data.choices import read_choices
from albert_tf.data.pipeline import training_dataset
from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import evaluate
from albert_tf.inference.multiple_choice import MultipleChoicePipeline
from albert_tf.inference.runner import Prepared
from albert_tf.tasks.multiple_choice import AlbertMultipleChoice
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from albert_tf.training.task_runs import MultipleChoiceRun
from albert_tf.training.tasks.multiple_choice import FinetuneMultipleChoice
from export.runtime import TFLiteRunner
from export.tflite import export_tflite

CONFIG = AlbertConfig(140, 16, 32, 2, 2, embedding_dim=8, max_sequence_length=24)


@pytest.fixture(scope="module")
def model() -> AlbertMultipleChoice:
    result = AlbertMultipleChoice(AlbertBackbone(CONFIG), AlbertTokenizer(sentencepiece_vocabulary(), max_length=24))
    randomize(result)
    return result


def race_file(path: Path, count: int) -> Path:
    """Which of two or three texts is the warm one?"""
    texts: dict[str, list[str]] = {label: [] for label in WORDS}
    for text, label in separable_rows(4 * count):
        texts[label].append(text)
    options, answers = [], []
    for i in range(count):
        cold = [texts["cold"].pop() for _ in range(1 + i % 2)]
        place = i % (len(cold) + 1)
        options.append([*cold[:place], texts["warm"].pop(), *cold[place:]])
        answers.append("ABC"[place])
    content = {"article": "", "questions": ["warm: _"] * count, "options": options, "answers": answers}
    path.write_text(json.dumps(content))
    return path


def test_the_loss_is_over_the_options_there_are(model: AlbertMultipleChoice, tmp_path: Path) -> None:
    examples = read_choices(race_file(tmp_path / "race.json", 4))
    pipeline = MultipleChoicePipeline(model)
    rows = FinetuneMultipleChoice().training_rows(model, examples, pipeline.prepare(examples), "race.json")
    assert rows.rows_per_example == 3 and rows.targets["options"].tolist() == [[1, 1, 0], [1, 1, 1]] * 2
    dataset = training_dataset(
        rows.rows, rows.targets, batch_size=4, pad_id=0, seed=0, rows_per_example=rows.rows_per_example
    )
    inputs, targets = next(iter(dataset))
    assert inputs["token_ids"].shape[0] == 12 and targets["options"].shape == (4, 3)
    model.compile("sgd")
    expected = evaluate(model, examples, source="race")
    found = model.evaluate(dataset.take(1), verbose=0, return_dict=True)
    assert found["loss"] == pytest.approx(expected["loss"], rel=1e-4)
    assert found["accuracy"] == expected["accuracy"]


def choice_run(files: TinyFiles, out: Path, train: Path, **changes: Any) -> MultipleChoiceRun:
    run: MultipleChoiceRun = tiny_task_run(MultipleChoiceRun, files, out, train, **changes)
    return run


def test_from_a_file_to_a_file(tiny_files: TinyFiles, tmp_path: Path) -> None:
    train = race_file(tmp_path / "race.json", 32)
    summary = run_quietly(choice_run(tiny_files, tmp_path / "run", train, epochs=10.0))
    assert summary["valid"]["accuracy"] > 0.75  # the most frequent place: 0.44
    trained, examples = AlbertMultipleChoice.from_pretrained(tmp_path / "run"), read_choices(train)
    assert evaluate(trained, examples, source="train")["accuracy"] == summary["valid"]["accuracy"]
    export_tflite(trained, tmp_path / "m.tflite", recipe="float32")
    on_file = evaluate(TFLiteRunner(tmp_path / "m.tflite"), examples, source="train")
    assert on_file == pytest.approx(evaluate(trained, examples, source="train"), abs=1e-4)


def test_a_question_without_an_answer(model: AlbertMultipleChoice, tmp_path: Path) -> None:
    examples = [dataclasses.replace(e, answer=None) for e in read_choices(race_file(tmp_path / "race.json", 2))]
    with pytest.raises(InputError, match=r"race.json: question 1 has no answer; training needs one"):
        FinetuneMultipleChoice().training_rows(model, examples, Prepared([([2], [0])] * 5, [2, 3]), "race.json")
    with pytest.raises(InputError, match="question 1 has no answer to compare with"):
        evaluate(model, examples, source="race.json")


def test_round_trip(model: AlbertMultipleChoice, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "model")
    restored = AlbertMultipleChoice.from_pretrained(tmp_path / "model")
    assert not restored.head_is_new
    question: Any = (["who?"], [["the mill", "the river"]])
    assert MultipleChoicePipeline(restored)(*question) == MultipleChoicePipeline(model)(*question)
    assert np.asarray(restored.multiple_choice.kernel).shape == (16, 1)


def test_the_commands_take_it(model: AlbertMultipleChoice, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.save_pretrained(tmp_path / "run")
    data, run, file = race_file(tmp_path / "race.json", 4), str(tmp_path / "run"), str(tmp_path / "m.tflite")
    assert main(["export", "tflite", run, "--out", file, "--recipe", "float32"]) == 0
    for path in (run, file):
        assert main(["evaluate", path, "--data", str(data), "--json", f"{path}.json"]) == 0
    figures = [json.loads(Path(f"{path}.json").read_text()) for path in (run, file)]
    assert figures[0] == pytest.approx(figures[1], abs=1e-4) and figures[0]["examples"] == 4
    capsys.readouterr()
    assert main(["predict", file, "--text", "who?"]) == 2
    assert "--text: this model takes JSON objects" in capsys.readouterr().err
