"""Question answering beside other systems, run live: rows, targets and answers of TF Model Garden's run_squad for
SentencePiece, and the head of transformers."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from peer_models import batch_of, largest_difference
from small_vocabularies import sentencepiece_vocabulary
from test_clients_peers_transformers import TOLERANCE, their_model, their_outputs

from albert_tf.config import AlbertConfig
from albert_tf.data.squad import read_questions
from albert_tf.inference.question_answering import Asked, QuestionAnsweringPipeline
from albert_tf.inference.runner import Outputs
from albert_tf.tasks.question_answering import AlbertQuestionAnswerer
from albert_tf.tasks.trained import load_task
from albert_tf.tokenization.packing import Packed
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from albert_tf.training.tasks.question_answering import FinetuneQuestionAnswering

pytestmark = pytest.mark.clients

LENGTH, STRIDE, QUESTION_LENGTH, ANSWER_LENGTH, N_BEST = 96, 32, 16, 8, 12
THRESHOLD = -9.0  # withholds some of the answers to random outputs


@pytest.fixture(scope="module")
def questions(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A question of every eighth passage, in turn the first and the last, with one right answer at most."""
    content = json.loads((shared_data / "squad2" / "cs224n_dev-v2.0.json").read_text(encoding="utf-8"))
    passages = [paragraph for article in content["data"] for paragraph in article["paragraphs"]][::8]
    for number, paragraph in enumerate(passages):
        paragraph["qas"] = paragraph["qas"][:1] if number % 2 else paragraph["qas"][-1:]
        for question in paragraph["qas"]:
            question["answers"] = question["answers"][:1]
    path = tmp_path_factory.mktemp("questions") / "questions.json"
    path.write_text(json.dumps({"version": "v2.0", "data": [{"title": "t", "paragraphs": passages}]}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def features(questions: Path, shared_data: Path) -> tuple[list[Any], list[Any]]:
    """Their examples and rows."""
    from official.nlp.data import squad_lib_sp
    from official.nlp.tools.tokenization import FullSentencePieceTokenizer

    examples = squad_lib_sp.read_squad_examples(str(questions), is_training=True, version_2_with_negative=True)
    rows: list[Any] = []
    squad_lib_sp.convert_examples_to_features(
        examples=examples,
        tokenizer=FullSentencePieceTokenizer(str(shared_data / "albert_vocab_en" / "30k-clean.model")),
        max_seq_length=LENGTH,
        doc_stride=STRIDE,
        max_query_length=QUESTION_LENGTH,
        is_training=True,
        output_fn=lambda feature, is_padding=False: rows.append(feature),
        do_lower_case=True,
    )
    return examples, rows


class Guesser:
    """A model of random outputs, which are the same for the same row."""

    task = "question-answering"

    def __init__(self, shared_data: Path) -> None:
        self.required_tokenizer = AlbertTokenizer.from_pretrained(
            shared_data / "albert_vocab_en" / "30k-clean.model", max_length=LENGTH
        )
        self.task_settings = {
            "doc_stride": STRIDE,
            "max_question_length": QUESTION_LENGTH,
            "max_answer_length": ANSWER_LENGTH,
            "n_best": N_BEST,
            "no_answer_threshold": THRESHOLD,
        }

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        return [self.outputs_of(ids) for ids, _ in rows]

    def outputs_of(self, ids: Sequence[int]) -> Outputs:
        values = np.random.default_rng(list(ids)).normal(0, 2, (2, len(ids)))
        return {"start_logits": values[0], "end_logits": values[1]}


def test_rows_and_targets(questions: Path, features: tuple[list[Any], list[Any]], shared_data: Path) -> None:
    examples = read_questions(questions)
    guesser = Guesser(shared_data)
    prepared = QuestionAnsweringPipeline(guesser).prepare(examples)
    rows = FinetuneQuestionAnswering().training_rows(guesser, examples, prepared, "questions.json")  # type: ignore[arg-type]
    _, theirs = features
    assert len(rows.rows) == len(theirs) > len(examples) > 70
    for (ids, segments), feature in zip(rows.rows, theirs, strict=True):
        assert feature.input_ids[: len(ids)] == ids and not any(feature.input_mask[len(ids) :])
        assert feature.segment_ids[: len(ids)] == segments
    assert rows.targets["unanswerable"].tolist() == [float(feature.is_impossible) for feature in theirs]
    assert rows.targets["start"].tolist() == [feature.start_position for feature in theirs]
    assert rows.targets["end"].tolist() == [feature.end_position for feature in theirs]
    assert np.count_nonzero(rows.targets["start"]) > 40


def test_answers(questions: Path, features: tuple[list[Any], list[Any]], shared_data: Path) -> None:
    from official.nlp.data import squad_lib_sp

    examples = read_questions(questions)
    guesser = Guesser(shared_data)
    pipeline = QuestionAnsweringPipeline(guesser)
    prepared = pipeline.prepare(examples)
    ours = pipeline.answer(prepared)
    their_examples, their_rows = features
    index = [number for number, asked in enumerate(prepared.context) for _ in asked.bounds]
    results = []
    for number, feature in zip(index, their_rows, strict=True):
        feature.example_index = number
        outputs = guesser.outputs_of(feature.input_ids[: sum(feature.input_mask)])
        logits = {name: values.tolist() for name, values in outputs.items()}
        results.append(SimpleNamespace(unique_id=feature.unique_id, **logits))
    predictions, best, differences = squad_lib_sp.postprocess_output(
        their_examples,
        their_rows,
        results,
        n_best_size=N_BEST,
        max_answer_length=ANSWER_LENGTH,
        do_lower_case=True,
        version_2_with_negative=True,
        null_score_diff_threshold=THRESHOLD,
    )
    for example, answer in zip(examples, ours, strict=True):
        name = example.identifier
        assert answer.text == predictions[name]
        assert answer.no_answer_score == pytest.approx(differences[name], abs=1e-9)
        theirs = [entry for entry in best[name] if entry["text"]]
        assert [span.text for span in answer.spans][: len(theirs)] == [entry["text"] for entry in theirs]
        total = sum(entry["probability"] for entry in theirs[: len(answer.spans)])
        if len(theirs) == len(answer.spans):
            assert answer.spans[0].score == pytest.approx(theirs[0]["probability"] / total)
    assert 0 < sum(answer.text == "" for answer in ours) < len(ours)
    assert isinstance(prepared.context[0], Asked)


def test_the_head_of_transformers(tmp_path: Path) -> None:
    vocabulary = sentencepiece_vocabulary()
    config = AlbertConfig(vocabulary.size, 16, 32, 3, 2, embedding_dim=8, max_sequence_length=24)
    theirs = their_model("AlbertForQuestionAnswering", config)
    theirs.save_pretrained(tmp_path)
    vocabulary.save(tmp_path)
    (tmp_path / "vocabulary.spm").rename(tmp_path / "spiece.model")
    model = load_task(tmp_path)
    assert isinstance(model, AlbertQuestionAnswerer) and not model.head_is_new
    batch = batch_of(config, 20)
    expected = their_outputs(theirs, batch)
    real = batch["padding_mask"].astype(bool)
    logits = np.asarray(model(batch))
    for column, name in enumerate(("start_logits", "end_logits")):
        assert largest_difference(logits[..., column][real], expected[name][real]) <= TOLERANCE
