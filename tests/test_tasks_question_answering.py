"""`albert_tf.tasks.question_answering`: both heads and their losses against NumPy, other systems' heads, saving."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tf1_writer
from references import numpy_albert, numpy_answer_head
from small_vocabularies import sentencepiece_vocabulary
from tiny_models import randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.conversion.huggingface import write_huggingface
from albert_tf.errors import InputError
from albert_tf.inference.question_answering import QuestionAnsweringPipeline
from albert_tf.layers.answer_head import answer_positions
from albert_tf.tasks.question_answering import AlbertQuestionAnswerer
from albert_tf.tasks.trained import load_task
from albert_tf.tokenization.tokenizer import AlbertTokenizer

CONFIG = AlbertConfig(140, 16, 32, 2, 2, embedding_dim=8, max_sequence_length=32)
QUESTIONS = ["the mill", "the old river?", "", "a"]
PASSAGES = ["the river by the old mill", "a mill", "the river", ""]
# float32 against float64: measured at most 3e-6.
TOLERANCE = 1e-5
EXCLUDED = -1e8  # anything below is a logit of a position that cannot be


def answerer(head: str, **settings: Any) -> AlbertQuestionAnswerer:
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=32)
    model = AlbertQuestionAnswerer(AlbertBackbone(CONFIG, pooler=False), tokenizer, head=head, **settings)
    randomize(model)
    return model


@pytest.fixture(scope="module")
def span() -> AlbertQuestionAnswerer:
    return answerer("span")


@pytest.fixture(scope="module")
def squad2() -> AlbertQuestionAnswerer:
    return answerer("squad2", start_beams=3)


def batch_of(model: AlbertQuestionAnswerer) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Inputs; what the encoder makes of them, by NumPy; and 1 where no answer can be (`p_mask` of run_squad)."""
    inputs = model.required_tokenizer(QUESTIONS, PASSAGES)
    weights = {name: np.asarray(variable, np.float64) for name, variable in model.named_weights().items()}
    encoded = numpy_albert.encode(weights, CONFIG, **inputs)["sequence_output"]
    excluded = np.ones(inputs["token_ids"].shape)
    for row, (segments, mask) in enumerate(zip(inputs["segment_ids"], inputs["padding_mask"], strict=True)):
        last = mask.sum() - 1
        for place in range(last):
            excluded[row, place] = not (place == 0 or segments[place] == 1)
    return inputs, encoded, excluded


def answers_in(excluded: np.ndarray) -> dict[str, np.ndarray]:
    """The second to the third token of the passage in turn with no answer."""
    starts, ends = np.zeros(len(excluded), int), np.zeros(len(excluded), int)
    for row in range(0, len(excluded), 2):
        starts[row], ends[row] = np.flatnonzero(excluded[row] == 0)[2:4]
    return {"start": starts, "end": ends, "unanswerable": (starts == 0).astype(float)}


def head_weights(model: AlbertQuestionAnswerer) -> dict[str, np.ndarray]:
    mark = "question_answering/"
    weights = {name: np.asarray(v, np.float64) for name, v in model.named_weights().items() if name.startswith(mark)}
    return {name.removeprefix(mark): value for name, value in weights.items()}


def test_the_span_head_and_its_loss(span: AlbertQuestionAnswerer) -> None:
    inputs, encoded, _ = batch_of(span)
    weights = head_weights(span)
    expected = encoded @ weights["kernel"] + weights["bias"]
    found, real = np.asarray(span(inputs)), inputs["padding_mask"].astype(bool)
    np.testing.assert_allclose(found[real], expected[real], rtol=0, atol=TOLERANCE)
    rows = span.run_rows(span.encode(QUESTIONS, PASSAGES))
    for row, outputs in enumerate(rows):
        own = expected[row, real[row]]
        np.testing.assert_allclose(outputs["start_logits"], own[:, 0], rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(outputs["end_logits"], own[:, 1], rtol=0, atol=TOLERANCE)
    targets = {"start": np.array([6, 0, 3, 0]), "end": np.array([7, 0, 4, 0]), "unanswerable": np.zeros(4)}
    losses = [
        -np.mean([numpy_answer_head.log_softmax(expected[row, real[row], k])[targets[name][row]] for k, name in pair])
        for row, pair in enumerate([list(enumerate(("start", "end")))] * 4)
    ]
    np.testing.assert_allclose(span.training_losses(targets, span(inputs)), losses, rtol=1e-5)


def test_the_head_of_squad_2_and_its_loss(squad2: AlbertQuestionAnswerer) -> None:
    inputs, encoded, excluded = batch_of(squad2)
    weights = head_weights(squad2)
    targets = answers_in(excluded)
    expected = [
        numpy_answer_head.loss(weights, encoded[row], excluded[row], tuple(t[row] for t in targets.values()))
        for row in range(4)
    ]
    assert targets["start"].tolist() != [0] * 4 and max(expected) < 20
    np.testing.assert_allclose(squad2.training_losses(targets, squad2(inputs)), expected, rtol=1e-5)


def test_the_beams_of_squad_2(squad2: AlbertQuestionAnswerer) -> None:
    """The last row has one position where a start can be, and three starts are asked for."""
    inputs, encoded, excluded = batch_of(squad2)
    weights = head_weights(squad2)
    for row, outputs in enumerate(squad2.run_rows(squad2.encode(QUESTIONS, PASSAGES))):
        size = int(inputs["padding_mask"][row].sum())
        starts = numpy_answer_head.start_log_probs(weights, encoded[row], excluded[row])
        assert outputs["start_log_probs"].shape == (size,) and outputs["end_log_probs"].shape == (size, 3)
        assert_same(outputs["start_log_probs"], starts[:size])
        best = [place for place in np.argsort(-starts, kind="stable")[:3] if starts[place] > EXCLUDED]
        assert len(best) == (1 if row == 3 else 3)
        for k, start in enumerate(best):
            ends = numpy_answer_head.end_log_probs(weights, encoded[row], excluded[row], int(start))
            assert_same(outputs["end_log_probs"][:, k], ends[:size])
        logit = numpy_answer_head.no_answer_logit(weights, encoded[row], excluded[row])
        np.testing.assert_allclose(outputs["no_answer_logit"], [logit], rtol=0, atol=TOLERANCE)


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    possible = expected > EXCLUDED
    np.testing.assert_array_equal(found > EXCLUDED, possible)
    np.testing.assert_allclose(found[possible], expected[possible], rtol=0, atol=TOLERANCE)


def test_where_an_answer_can_be() -> None:
    segments = np.array([[0, 0, 0, 1, 1, 1, 0], [0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]])
    mask = np.array([[1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1]])
    expected = [[1, 0, 0, 1, 1, 0, 0], [1, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0]]
    np.testing.assert_array_equal(answer_positions(segments, mask), expected)


def test_dropout_is_in_the_class_for_no_answer_alone(squad2: AlbertQuestionAnswerer) -> None:
    model = answerer("squad2", classifier_dropout=0.5)
    inputs = model.required_tokenizer(QUESTIONS, PASSAGES)
    still, moved = model(inputs, training=False), model(inputs, training=True)
    assert np.abs(still["no_answer_logit"] - moved["no_answer_logit"]).max() > 1e-3
    np.testing.assert_array_equal(still["start_logits"], moved["start_logits"])


@pytest.mark.parametrize("head", ["span", "squad2"])
def test_mixed_precision(head: str) -> None:
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=32)
    mixed = AlbertQuestionAnswerer(
        AlbertBackbone(CONFIG, pooler=False, dtype="mixed_bfloat16"), tokenizer, head=head, start_beams=3
    )
    exact = answerer(head, start_beams=3)
    for name, variable in mixed.named_weights().items():
        variable.assign(exact.named_weights()[name])
    inputs, _, excluded = batch_of(exact)
    targets = answers_in(excluded)
    ours = mixed.training_losses(targets, mixed(inputs))
    assert keras.backend.standardize_dtype(ours.dtype) == "float32"
    np.testing.assert_allclose(ours, exact.training_losses(targets, exact(inputs)), rtol=0.1, atol=0.1)
    assert QuestionAnsweringPipeline(mixed)(["the mill"], ["the old mill"])[0].spans


@pytest.mark.parametrize("head", ["span", "squad2"])
def test_round_trips(head: str, tmp_path: Path) -> None:
    model = answerer(head, doc_stride=7, n_best=4, no_answer_threshold=-1.5, language="chinese")
    model.save_pretrained(tmp_path / "model")
    model.save(tmp_path / "model.keras")
    expected = QuestionAnsweringPipeline(model)(["the mill"], ["the river by the old mill, " * 3])
    loaded = [load_task(tmp_path / "model"), keras.saving.load_model(tmp_path / "model.keras")]
    for restored in loaded:
        assert isinstance(restored, AlbertQuestionAnswerer) and restored.answering == model.answering
        assert QuestionAnsweringPipeline(restored)(["the mill"], ["the river by the old mill, " * 3]) == expected
    assert not loaded[0].head_is_new
    other = AlbertQuestionAnswerer.from_pretrained(tmp_path / "model", head="span" if head == "squad2" else "squad2")
    assert other.head_is_new and other.answering.doc_stride == 7


def google_folder(folder: Path, head: dict[str, np.ndarray]) -> Path:
    vocabulary = sentencepiece_vocabulary()
    config = tf1_writer.PUBLISHED | {"vocab_size": vocabulary.size, "max_position_embeddings": 32}
    tf1_writer.save_folder(folder, config, tf1_writer.encoder(config) | head)
    vocabulary.save(folder)
    (folder / "vocabulary.spm").rename(folder / "30k-clean.model")
    return folder


def test_a_fine_tuned_head_of_google_for_squad_1(tmp_path: Path) -> None:
    kernel = np.random.default_rng(3).standard_normal((2, 6)).astype(np.float32)
    model = load_task(google_folder(tmp_path / "google", tf1_writer.squad_1(kernel)))
    assert isinstance(model, AlbertQuestionAnswerer) and not model.head_is_new
    assert model.answering.head == "span" and model.answering.no_answer_threshold is None
    inputs = model.required_tokenizer(QUESTIONS, PASSAGES)
    encoded = np.asarray(model.backbone(inputs)["sequence_output"], np.float64)
    real = inputs["padding_mask"].astype(bool)
    expected = encoded @ kernel.T.astype(np.float64) + [1, 2]
    np.testing.assert_allclose(np.asarray(model(inputs))[real], expected[real], rtol=0, atol=TOLERANCE)


def test_a_fine_tuned_head_of_google_for_squad_2(tmp_path: Path) -> None:
    values = tf1_writer.squad_2(6)
    model = load_task(google_folder(tmp_path / "google", values))
    assert isinstance(model, AlbertQuestionAnswerer) and not model.head_is_new
    assert model.answering.head == "squad2" and model.answering.no_answer_threshold == 0.0
    weights = {ours: values[theirs].astype(np.float64) for ours, theirs in tf1_writer.SQUAD_2_NAMES.items()}
    row = model.encode(QUESTIONS[:1], PASSAGES[:1])[0]
    inputs = model.required_tokenizer(QUESTIONS[:1], PASSAGES[:1])
    tokens = np.asarray(model.backbone(inputs)["sequence_output"], np.float64)[0]
    excluded = np.array([place != 0 and s == 0 for place, s in enumerate(row[1])], float)
    excluded[-1] = 1
    (outputs,) = model.run_rows([row])
    starts = numpy_answer_head.start_log_probs(weights, tokens, excluded)
    assert_same(outputs["start_log_probs"], starts)
    assert_same(
        outputs["end_log_probs"][:, 1],
        numpy_answer_head.end_log_probs(weights, tokens, excluded, int(np.argsort(-starts)[1])),
    )
    logit = numpy_answer_head.no_answer_logit(weights, tokens, excluded)
    np.testing.assert_allclose(outputs["no_answer_logit"], [logit], rtol=1e-5)


def test_a_head_of_transformers(span: AlbertQuestionAnswerer, tmp_path: Path) -> None:
    weights = {name: np.asarray(variable) for name, variable in span.named_weights().items()}
    write_huggingface(tmp_path / "theirs", CONFIG, weights, span.required_tokenizer)
    restored = load_task(tmp_path / "theirs")
    assert isinstance(restored, AlbertQuestionAnswerer) and not restored.head_is_new
    inputs = span.required_tokenizer(QUESTIONS, PASSAGES)
    np.testing.assert_array_equal(restored(inputs), span(inputs))


def test_the_threshold_of_a_validation_is_kept() -> None:
    model = answerer("span")
    assert model.adopt({"f1": 50.0}) == {"f1": 50.0} and model.answering.no_answer_threshold is None
    figures = {"f1": 50.0, "examples": 3, "at_best_threshold": {"f1": 70.0, "no_answer_threshold": 1.5}}
    assert model.adopt(figures) == {"f1": 70.0, "examples": 3, "no_answer_threshold": 1.5}
    assert model.settings()["no_answer_threshold"] == 1.5


def test_wrong_use(squad2: AlbertQuestionAnswerer) -> None:
    with pytest.raises(InputError, match="expected an AlbertBackbone, got str"):
        AlbertQuestionAnswerer("backbone")
    with pytest.raises(InputError, match=r"classifier_dropout: expected a rate in \[0, 1\), got 1.0"):
        AlbertQuestionAnswerer(AlbertBackbone(CONFIG), classifier_dropout=1.0)
    with pytest.raises(InputError, match="head: expected one of span, squad2; got 'crf'"):
        AlbertQuestionAnswerer(AlbertBackbone(CONFIG), head="crf")
    with pytest.raises(InputError, match="which tokens are of the passage: call row_outputs"):
        squad2.device_outputs(None, None)
