"""Question answering from a SQuAD file to a run folder: targets, threshold, interruption, and what is wrong in files."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from small_vocabularies import LINES, sentencepiece_vocabulary
from tiny_data import PulledPlug, TinyFiles, pull_plug, read_json, run_quietly
from tiny_models import randomize
from tiny_questions import question_run, questions, write_questions

from albert_tf.backbone import AlbertBackbone
from albert_tf.cli.main import main
from albert_tf.config import AlbertConfig
from albert_tf.data.squad import Answer, QuestionExample, read_and_report, read_questions
from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import evaluate
from albert_tf.evaluation.squad_metrics import squad_metrics
from albert_tf.inference.question_answering import AnswerSettings, QuestionAnsweringPipeline
from albert_tf.tasks.question_answering import AlbertQuestionAnswerer
from albert_tf.tasks.trained import load_task
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from albert_tf.training import finetune_rounds
from albert_tf.training.task_runs import QuestionAnsweringRun
from albert_tf.training.tasks.question_answering import FinetuneQuestionAnswering, language_of
from export.runtime import TFLiteRunner
from export.tflite import export_tflite

CONFIG = AlbertConfig(140, 16, 32, 2, 2, embedding_dim=8, max_sequence_length=40)
PASSAGE = " ".join(LINES[:4])


@pytest.fixture(scope="module")
def model() -> AlbertQuestionAnswerer:
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=40)
    result = AlbertQuestionAnswerer(AlbertBackbone(CONFIG, pooler=False), tokenizer, doc_stride=11)
    randomize(result)
    return result


@pytest.mark.parametrize("text", ["The old mill", "1999", "12,000 people", "Café prices", "“naïve”", "s at w"])
def test_targets_are_the_tokens_of_the_answer(model: AlbertQuestionAnswerer, text: str) -> None:
    """Every row that holds the whole answer has it as its target; the others have the first token."""
    task, pipeline = FinetuneQuestionAnswering(), QuestionAnsweringPipeline(model)
    start = PASSAGE.index(text)
    examples = [QuestionExample("1", PASSAGE, "What?", (Answer(text, start), Answer("mill", 8)))]
    prepared = pipeline.prepare(examples)
    rows = task.training_rows(model, examples, prepared, "train.json")
    windows = model.required_tokenizer.encode_windows("What?", PASSAGE, doc_stride=11)
    assert len(rows.rows) == len(windows) > 3
    targets = zip(windows, rows.targets["start"], rows.targets["end"], rows.targets["unanswerable"], strict=True)
    held = 0
    for window, first, last, unanswerable in targets:
        spans = window.offsets[window.text_start : window.text_end]
        whole = spans[0][0] <= start and start + len(text) <= spans[-1][1]
        assert unanswerable == (not whole) and rows.targets["unanswerable"].dtype == np.float32
        if not whole:
            assert (first, last) == (0, 0)
            continue
        held += 1
        assert window.text_start <= first <= last < window.text_end
        # No token less would do, and the first and last token each have a part of the answer.
        assert window.offsets[first][0] <= start < window.offsets[first][1]
        assert window.offsets[last][0] < start + len(text) <= window.offsets[last][1]
    assert 0 < held < len(windows)


def test_questions_without_an_answer_point_to_the_first_token(model: AlbertQuestionAnswerer) -> None:
    answered = QuestionExample("3", "The old mill", "What?", (Answer("mill", 8),))
    examples = [QuestionExample("1", PASSAGE, "What?"), QuestionExample("2", "", "What?"), answered]
    prepared = QuestionAnsweringPipeline(model).prepare(examples)
    rows = FinetuneQuestionAnswering().training_rows(model, examples, prepared, "train.json")
    start, end, unanswerable = (rows.targets[name][:-1] for name in ("start", "end", "unanswerable"))
    assert not start.any() and not end.any() and unanswerable.all()
    assert rows.targets["start"][-1] > 0 and not rows.targets["unanswerable"][-1]


@pytest.fixture(scope="module")
def run_folder(tiny_files: TinyFiles, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    run_quietly(question_run(tiny_files, folder, folder / "run", head="squad2"))
    return folder


def test_from_a_file_to_a_run_folder(run_folder: Path) -> None:
    figures = read_json(run_folder / "run" / "metrics.json")["valid"]
    trained = load_task(run_folder / "run")
    assert isinstance(trained, AlbertQuestionAnswerer)
    assert trained.answering.head == "squad2" and trained.required_tokenizer.max_length == 28
    assert trained.answering.no_answer_threshold == figures["no_answer_threshold"] != 0.0
    # No answer to any question: 1 in 6.
    assert figures["f1"] > 50 and figures["answerable_f1"] > 50 and figures["unanswerable_f1"] > 20
    assert figures["f1"] == figures["best_f1"]
    dev = read_questions(run_folder / "dev.json")
    again = evaluate(trained, dev, source="dev")
    assert {name: again[name] for name in figures} == figures
    answers = QuestionAnsweringPipeline(trained)([e.question for e in dev], [e.context for e in dev])
    own = squad_metrics(dev, {e.identifier: a.text for e, a in zip(dev, answers, strict=True)})
    assert (own["f1"], own["exact_match"]) == (figures["f1"], figures["exact_match"])
    withheld = [answer for answer in answers if answer.text == ""]
    assert 0 < len(withheld) < len(answers)
    for example, answer in zip(dev, answers, strict=True):
        above = answer.no_answer_score > figures["no_answer_threshold"]
        assert above == (answer.text == "") and (answer.start is None) == above
        if not above:
            assert example.context[answer.start : answer.end] == answer.text


def test_evaluate_and_predict(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, dev, out = str(run_folder / "run"), run_folder / "dev.json", run_folder / "figures.json"
    figures = read_json(run_folder / "run" / "metrics.json")["valid"]
    assert main(["evaluate", run, "--data", str(dev), "--json", str(out)]) == 0
    assert read_json(out)["f1"] == figures["f1"] and read_json(out)["at_best_threshold"]["f1"] == figures["f1"]
    command = ["evaluate", run, "--data", str(dev), "--json", str(out), "--overwrite", "--no-answer-threshold", "-1000"]
    assert main(command) == 0
    assert read_json(out)["unanswerable_f1"] == 100 and read_json(out)["answerable_f1"] == 0
    capsys.readouterr()

    examples = read_questions(dev)[:6]
    expected = QuestionAnsweringPipeline(load_task(run))([e.question for e in examples], [e.context for e in examples])
    asked = [{"id": e.identifier, "question": e.question, "context": e.context} for e in examples]
    file = run_folder / "asked.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in asked), encoding="utf-8")
    assert main(["predict", run, "--file", str(file), "--jsonl"]) == 0
    for line, record, answer in zip(capsys.readouterr().out.splitlines(), asked, expected, strict=True):
        place = {"answer": answer.text, "start": answer.start, "end": answer.end}
        scores = {
            "score": pytest.approx(answer.score),
            "no_answer_score": pytest.approx(answer.no_answer_score, abs=1e-5),
        }
        assert json.loads(line) == record | place | scores

    passage = run_folder / "passage.txt"
    passage.write_text(examples[2].context, encoding="utf-8")
    about = ["predict", run, "--context-file", str(passage)]
    assert main([*about, "--question", examples[2].question, "--question", examples[3].question]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[::2] for line in lines] == [
        [a.text, e.question] for a, e in zip(expected[2:4], examples[2:4], strict=True)
    ]


@pytest.mark.parametrize("length", [None, 28])
def test_the_same_answers_from_a_file(run_folder: Path, length: int | None) -> None:
    trained, path = load_task(run_folder / "run"), run_folder / f"{length}.tflite"
    export_tflite(trained, path, recipe="float32", length=length)
    examples = read_questions(run_folder / "dev.json")
    asked = [e.question for e in examples], [e.context for e in examples]
    expected = QuestionAnsweringPipeline(trained)(*asked)
    for found, answer in zip(TFLiteRunner(path)(*asked), expected, strict=True):
        assert (found.text, found.start, found.end) == (answer.text, answer.start, answer.end)
        assert found.score == pytest.approx(answer.score, abs=1e-4)
        assert found.no_answer_score == pytest.approx(answer.no_answer_score, abs=1e-3)


def test_the_span_head_in_a_file(model: AlbertQuestionAnswerer, tmp_path: Path) -> None:
    export_tflite(model, tmp_path / "span.tflite", recipe="float32")
    (expected,) = QuestionAnsweringPipeline(model)(["Who came?"], [PASSAGE])
    (found,) = TFLiteRunner(tmp_path / "span.tflite")(["Who came?"], [PASSAGE])
    assert [span.text for span in found.spans[:5]] == [span.text for span in expected.spans[:5]]
    assert found.no_answer_score == pytest.approx(expected.no_answer_score, abs=1e-4)


def test_wrong_use_of_predict(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, passage, file = str(run_folder / "run"), run_folder / "mill.txt", run_folder / "wrong.jsonl"
    passage.write_text("the mill", encoding="utf-8")
    file.write_text('{"question": "what?", "context": "a"}\n{"question": "what?"}\n', encoding="utf-8")
    for words, message in (
        (["--question", "what?"], '--question number 1: expected an object with a "question" and a "context"'),
        (["--context-file", str(passage), "--question", " "], "expected a question, found a blank one"),
        (["--file", str(file)], "line 2: expected an object .*'context' is missing"),
        (["--context-file", str(passage), "--file", str(file)], 'line 1: a question with a "context" of its own'),
        (["--context-file", str(passage) + "x", "--question", "what?"], "cannot read .*mill.txtx"),
        (
            ["--unconstrained", "--question", "what?"],
            "--unconstrained is for tagging; this model is for question-answering",
        ),
        (
            ["--no-answer-threshold", "nan", "--question", "a"],
            "no_answer_threshold: expected a number or none, got nan",
        ),
    ):
        assert main(["predict", run, *words]) == 2
        assert re.search(message, capsys.readouterr().err), message


def test_an_interrupted_run_ends_as_if_it_had_not_been(
    tiny_files: TinyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time between best weights and state; the threshold is found again."""
    changes: dict[str, Any] = {"epochs": 3.0, "head": "squad2", "hidden_dropout": 0.1}
    whole = question_run(tiny_files, tmp_path, tmp_path / "whole", **changes)
    run_quietly(whole)
    parts = dataclasses.replace(whole, out=str(tmp_path / "parts"))
    for call, after in ((2, None), (2, "going on after round 1 of 3")):
        monkeypatch.setattr(finetune_rounds, "save_state", pull_plug(finetune_rounds.save_state, call))
        lines: list[str] = []
        with pytest.raises(PulledPlug):
            run_quietly(parts, report=lines.append)
        monkeypatch.undo()
        assert after is None or after in lines
    run_quietly(parts)
    for name, value in load_file(tmp_path / "whole" / "weights.safetensors").items():
        np.testing.assert_array_equal(load_file(tmp_path / "parts" / "weights.safetensors")[name], value, err_msg=name)
    for name in ("metrics.json", "task.json"):
        assert read_json(tmp_path / "parts" / name) == read_json(tmp_path / "whole" / name)


def test_a_run_without_questions_that_have_no_answer(tiny_files: TinyFiles, tmp_path: Path) -> None:
    content = questions(16)
    for paragraph in content["data"][0]["paragraphs"]:
        paragraph["qas"] = [question for question in paragraph["qas"] if question["answers"]]
    train = write_questions(tmp_path / "answerable.json", content)
    run = question_run(
        tiny_files, tmp_path, tmp_path / "run", train=str(train), valid=str(train), epochs=1.0, max_answer_length=3
    )
    figures = run_quietly(run)["valid"]
    assert "no_answer_threshold" not in figures and "best_f1" not in figures and figures["examples"] == 26
    answering = load_task(tmp_path / "run").settings()
    assert answering["no_answer_threshold"] is None and answering["max_answer_length"] == 3
    assert answering["language"] == "english"


def test_answers_that_stand_elsewhere_and_answers_that_are_nowhere(tmp_path: Path) -> None:
    content = questions(4)
    asked = [question for paragraph in content["data"][0]["paragraphs"] for question in paragraph["qas"]]
    right = [dict(question["answers"][0]) for question in asked[:1]]
    asked[0]["answers"][0]["answer_start"] += 1
    asked[2]["answers"][0]["text"] = "nowhere"
    path = write_questions(tmp_path / "train.json", content)
    run = QuestionAnsweringRun(train=str(path), out="run", source="x")
    lines: list[str] = []
    with pytest.raises(
        InputError, match=r"train.json, article 1, paragraph 2, question 1 .*'nowhere' is not in the pass"
    ):
        FinetuneQuestionAnswering().read(run, str(path), lines.append)
    assert lines == []
    run = dataclasses.replace(run, leave_out_unusable=True)
    examples = FinetuneQuestionAnswering().read(run, str(path), lines.append)
    assert len(examples) == 7 and examples[0].answers == (Answer(right[0]["text"], right[0]["answer_start"]),)
    moved, left_out = lines
    assert moved.startswith(f"{path}: 1 answers stand elsewhere than the file says, the first: {path}, article 1, ")
    assert left_out.startswith(f"{path}: 1 questions left out, the first: ")
    lines.clear()
    assert len(read_and_report(write_questions(tmp_path / "good.json", questions(4)), lines.append)) == 8
    assert lines == []


def test_whose_rules_compare_answers(tmp_path: Path) -> None:
    chinese = QuestionExample("1", "这座古老的水车从1807年开始转动。", "何时?", (Answer("1807年", 8),))
    english = QuestionExample("2", "The mill of 水车.", "Where?", (Answer("mill", 4),))
    assert [language_of([chinese]), language_of([english]), language_of([chinese, english])] == [
        "chinese",
        "english",
        "english",
    ]
    task = FinetuneQuestionAnswering()
    run = QuestionAnsweringRun(train="train.json", out="run", source="x")
    assert task.head_settings(run, [chinese])["language"] == "chinese"
    assert task.head_settings(dataclasses.replace(run, language="english"), [chinese])["language"] == "english"


def test_what_cannot_be_trained_on(model: AlbertQuestionAnswerer) -> None:
    task = FinetuneQuestionAnswering()
    run = QuestionAnsweringRun(train="train.json", out="run", source="x")
    with pytest.raises(InputError, match=r"train\.json: expected questions with answers, found none"):
        unanswered = [QuestionExample("1", "a", "b")]
        task.training_rows(model, unanswered, QuestionAnsweringPipeline(model).prepare(unanswered), "train.json")
    examples = [QuestionExample("q7", "the mill\u200b", "What?", (Answer("\u200b", 8),))]
    prepared = QuestionAnsweringPipeline(model).prepare(examples)
    with pytest.raises(InputError, match=r"train\.json: question q7: the tokenizer leaves nothing of the answer"):
        task.training_rows(model, examples, prepared, "train.json")
    with pytest.raises(InputError, match="dev: no question has an answer to compare with"):
        evaluate(model, [QuestionExample("1", "a", "b")], source="dev")
    with pytest.raises(InputError, match="expected questions with different ids, got 2 with 1"):
        evaluate(model, [QuestionExample("1", "a mill", "b", (Answer("a", 0),))] * 2, source="dev")
    for name in ("doc_stride", "max_question_length", "n_best"):
        with pytest.raises(InputError, match=f"--{name.replace('_', '-')}: expected a number at least 1, got 0"):
            dataclasses.replace(run, **{name: 0})


def test_settings_of_answers_are_called_as_their_options() -> None:
    """Messages name the former; who types reads them as the latter."""
    chosen = {field.name for field in dataclasses.fields(QuestionAnsweringRun)}
    found_on_the_validation = {"no_answer_threshold"}
    assert {field.name for field in dataclasses.fields(AnswerSettings)} - chosen == found_on_the_validation


def test_the_defaults_are_the_published_ones() -> None:
    run = QuestionAnsweringRun(train="train.json", out="run", source="x")
    assert (run.max_length, run.doc_stride, run.max_question_length, run.max_answer_length) == (384, 128, 64, 30)
    assert (run.n_best, run.start_beams, run.end_beams, run.epochs, run.batch_size) == (20, 5, 5, 2.0, 48)
    assert json.loads(run.to_json())["head"] == "span"
