"""Figures of how far outputs are apart, against ones computed by hand."""

import numpy as np
import pytest
from tiny_tasks import tiny_task

from albert_tf.inference.pipelines import pipeline_of
from export.comparison import compare, distance, spread


def probabilities(*rows):
    return [{"probabilities": np.array(row, np.float32)} for row in rows]


def test_figures_by_hand():
    keras, file = probabilities([0.9, 0.1], [0.4, 0.6]), probabilities([0.7, 0.3], [0.55, 0.45])
    found = compare(file, keras, pipeline_of(tiny_task("classification")), None, clear_margin=0.3)
    assert found.rows == 2
    assert found.max_difference == pytest.approx(0.2) and found.mean_difference == pytest.approx(0.175)
    assert found.distance == pytest.approx(0.175)
    cosines = [np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b) for a, b in (([9, 1], [7, 3]), ([4, 6], [11, 9]))]
    assert found.cosine == pytest.approx(np.mean(cosines))
    assert found.agreement == 0.5 and found.clear_ones_agree  # the model prefers the other one by 0.2 alone
    assert not compare(file, keras, pipeline_of(tiny_task("classification")), None, clear_margin=0.1).clear_ones_agree


def test_places_that_can_be_no_answer_are_left_out_of_the_cosine():
    keras = [{"start_logits": np.array([1.0, 0.0, -1e9]), "end_logits": np.array([0.0, 1.0, -1e9])}]
    file = [{"start_logits": np.array([0.0, 1.0, -1e9]), "end_logits": np.array([0.0, 2.0, -1e9])}]
    found = compare(file, keras, pipeline_of(tiny_task("question-answering")), None, clear_margin=9)
    assert found.cosine == pytest.approx(0.5)  # 0 of the starts, 1 of the ends
    assert found.agreement == 0


def test_decisions_of_questions_with_options():
    pipeline = pipeline_of(tiny_task("multiple-choice"))
    keras = [{"score": np.array([value], np.float32)} for value in (3.0, 0.0, 0.0, 1.0, 1.1)]
    file = [{"score": np.array([value], np.float32)} for value in (2.0, 1.0, 0.0, 1.2, 1.0)]
    found = compare(file, keras, pipeline, [3, 2], clear_margin=0.2)
    assert found.agreement == 0.5 and found.clear_ones_agree
    assert not compare(file[::-1], keras, pipeline, [3, 2], clear_margin=0.2).clear_ones_agree


def test_numbers_and_embeddings_decide_nothing():
    rows = [{"value": np.array([0.5])}, {"value": np.array([0.0])}]
    found = compare(rows, rows, pipeline_of(tiny_task("regression")), None, clear_margin=0.2)
    assert (found.agreement, found.clear_ones_agree, found.cosine) == (None, True, 1.0)


def test_distances_by_what_the_output_is():
    even, sure = np.full((2, 1000), 1e-3), np.zeros((2, 1000))
    sure[:, 0] = 1
    assert spread("token_probabilities", [even]) == 1
    # In the mean over a vocabulary, a distribution that has nothing to do with the other looks near.
    assert np.abs(even - sure).mean() < 0.01 < 0.99 < distance([even], [sure], 1.0)
    logits = np.array([0.0, 10.0, -10.0, -1e9])
    assert spread("start_logits", [logits]) == pytest.approx(np.std([0, 10, -10]))
    assert distance([logits + 1], [logits], spread("start_logits", [logits])) == pytest.approx(1 / np.std([0, 10, -10]))
    assert spread("value", [np.array([0.25])]) == 0.25


def test_what_float32_can_hardly_tell_apart_counts_as_equal():
    """A regressor that says nearly the same to all texts: its spread is not much more than float32's last place."""
    keras = np.array([2.6, 2.6001, 2.5999], np.float32)
    file = np.nextafter(np.nextafter(keras, 9), 9)  # two units in the last place
    apart = spread("value", [keras])
    assert np.abs(file - keras).mean() / apart > 1e-3  # a hundred times what the recipe float32 allows
    assert distance([file], [keras], apart) == 0
    wrong = keras + np.float32(1e-4)
    assert distance([wrong], [keras], apart) == pytest.approx(1e-4 / apart, rel=0.01)
    assert np.isnan(distance([keras * np.nan], [keras], apart))
    masked = np.array([1.0, -1e9], np.float32)  # no number's size
    assert distance([masked + np.float32([1e-4, 0])], [masked], 1.0) == pytest.approx(1e-4, rel=0.01)


def test_any_low_score_will_do_where_there_can_be_no_answer():
    keras = np.array([1.0, -9.0, -1e9], np.float32)
    assert distance([np.array([1.0, -9.0, -65504.0])], [keras], 1.0) == 0  # as float16 has it
    assert distance([np.array([1.5, -9.0, -57.0])], [keras], 1.0) == 0.25  # and integers, which need their range
    assert distance([np.array([1.0, -9.0, -8.0])], [keras], 1.0) > 1e8  # it could be taken for an answer
    rows = [[{"start_logits": row, "end_logits": row}] for row in (np.array([1.0, -9.0, -57.0]), keras)]
    found = compare(*rows, pipeline_of(tiny_task("question-answering")), None, clear_margin=0.2)
    assert (found.max_difference, found.mean_difference, found.distance) == (0, 0, 0)


def test_vectors_of_length_1_are_as_far_as_the_angle_between_them():
    keras = np.eye(4, dtype=np.float32)[:2]
    file = np.array(
        [[0.0, 1.0, 0.0, 0.0], [0.0, np.cos(0.1), np.sin(0.1), 0.0]], np.float32
    )  # a quarter of a turn, 0.1
    found = distance(list(-file), list(-keras), spread=0.3)
    np.testing.assert_allclose(found, (np.pi / 2 + 0.1) / np.pi / 2, rtol=1e-5)
