"""Candidates for masks in the graph, against the pipeline's."""

import dataclasses
import random
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from small_vocabularies import LINES, fuzzed_texts, sentencepiece_vocabulary, wordpiece_vocabulary
from tiny_exports import BASE, MAX_LENGTH
from tiny_models import randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.inference.fill_mask import MASK
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.tasks.fill_mask import AlbertMaskedLM
from albert_tf.tokenization.rules import to_utf8
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.served_masks import ServedMaskedLM


def with_masks(text: str, seed: int) -> str:
    """The text with one to five masks anywhere in it, also inside words."""
    places = random.Random(seed)
    for _ in range(places.randint(1, 5)):
        place = places.randint(0, len(text))
        text = text[:place] + MASK + text[place:]
    return text


@pytest.mark.parametrize("vocabulary", [sentencepiece_vocabulary, wordpiece_vocabulary], ids=["spm", "wordpiece"])
def test_as_the_pipeline(vocabulary: Any) -> None:
    config = dataclasses.replace(BASE, vocabulary_size=vocabulary().size, num_layers=1)
    task = AlbertMaskedLM(AlbertBackbone(config), AlbertTokenizer(vocabulary(), max_length=MAX_LENGTH))
    randomize(task, scale=0.4)
    texts = [MASK, MASK * 40, f"▁{MASK}▁the", f"{MASK}the {MASK} the{MASK}", "the mill " * 30 + MASK]
    texts += [with_masks(text, seed) for seed, text in enumerate([*LINES, *fuzzed_texts(120, 36)])]
    texts = [text for text in texts if MASK in text]  # a mask may have gone into another one
    answer = tf.function(ServedMaskedLM(task).signatures()["serving_default"].answer, autograph=False)
    found = {name: tensor.numpy() for name, tensor in answer(tf.constant([to_utf8(t) for t in texts])).items()}
    different = 0
    for number, expected in enumerate(pipeline_of(task)(texts)):
        row = {name: values[number] for name, values in found.items()}
        for place, mask in enumerate(expected.masks):
            np.testing.assert_allclose(row["probabilities"][place], [c.probability for c in mask], atol=1e-5)
            pieces = [piece.decode() for piece in row["pieces"][place]]
            same = row["token_ids"][place].tolist() == [c.token_id for c in mask]
            assert same == (pieces == [c.piece for c in mask])
            different += not same  # of nearly the same probability
        assert not row["probabilities"][len(expected.masks) :].any()
    assert different <= 2
