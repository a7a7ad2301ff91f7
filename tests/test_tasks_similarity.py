"""`albert_tf.tasks.similarity`: pooling and the three losses against NumPy, written from the formulas; saving."""

import dataclasses
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from references import numpy_albert
from small_vocabularies import sentencepiece_vocabulary
from tiny_models import example_inputs, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.tasks.similarity import AlbertTextEmbedder
from albert_tf.tokenization.tokenizer import AlbertTokenizer

# float32 against float64: measured at most 1e-6.
TOLERANCE = 5e-6
CONFIG = AlbertConfig(140, 16, 32, 2, 2, embedding_dim=8, max_sequence_length=24)
TEXTS = ["the mill", "the river by the old mill", "", "people came to see the great wheel"]


def encoder(**settings: Any) -> AlbertTextEmbedder:
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=24)
    model = AlbertTextEmbedder(AlbertBackbone(CONFIG, pooler=False), tokenizer, **settings)
    randomize(model)
    return model


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_pooling_against_numpy(pooling: str) -> None:
    model, inputs = encoder(pooling=pooling), example_inputs()
    weights = {name: np.asarray(variable, np.float64) for name, variable in model.named_weights().items()}
    encoded = numpy_albert.encode(weights, CONFIG, **inputs)["sequence_output"]
    rows = [row[:length] for row, length in zip(encoded, inputs["padding_mask"].sum(-1), strict=True)]
    expected = np.stack([row[0] if pooling == "cls" else row.mean(axis=0) for row in rows])
    assert np.ptp(expected, axis=0).min() > 0.01
    np.testing.assert_allclose(model(inputs), expected, rtol=0, atol=TOLERANCE)


def test_embeddings_are_the_models_own_of_length_1_or_not() -> None:
    model = encoder()
    raw = np.stack([np.asarray(model(model.required_tokenizer([text])))[0] for text in TEXTS])
    embeddings = model.embed(TEXTS)
    assert embeddings.dtype == np.float32 and embeddings.shape == (4, 16)
    expected = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    np.testing.assert_allclose(embeddings, expected, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(encoder(normalize=False).embed(TEXTS), raw, rtol=0, atol=TOLERANCE)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def vectors_of(examples: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """What the model puts out, (examples · rows, H) in float32, and the same as (examples, rows, H) in float64."""
    flat = np.random.default_rng(3).standard_normal((examples * rows, 16)).astype(np.float32)
    return flat, flat.astype(np.float64).reshape(examples, rows, 16)


def test_the_cosine_loss() -> None:
    flat, vectors = vectors_of(5, 2)
    scores = np.float32([0.0, 1.5, 2.0, 4.0, 5.0])
    cosines = (unit(vectors[:, 0]) * unit(vectors[:, 1])).sum(-1)
    found = encoder().training_losses({"value": scores}, flat)
    np.testing.assert_allclose(found, (cosines - scores / 5) ** 2, rtol=1e-5, atol=1e-7)
    found = encoder(max_score=10).training_losses({"value": scores}, flat)
    np.testing.assert_allclose(found, (cosines - scores / 10) ** 2, rtol=1e-5, atol=1e-7)


def contrastive_reference(vectors: np.ndarray, texts: np.ndarray, scale: float) -> list[float]:
    """Henderson et al., 2017, section 4.4, text by text: −log of the own positive's share among what may be wrong."""
    losses = []
    for own, (anchor, positive, *_) in enumerate(texts):
        logits, candidates = [], []
        for other in range(len(texts)):
            for row in range(1, texts.shape[1]):
                text = texts[other, row]
                is_own = (other, row) == (own, 1)
                right = text in (anchor, positive) or (row == 1 and texts[other, 0] == anchor)
                if is_own or not right:
                    logits.append(scale * unit(vectors[own, 0]) @ unit(vectors[other, row]))
                    candidates.append(is_own)
        values = np.array(logits)
        losses.append(np.log(np.exp(values - values.max()).sum()) + values.max() - values[candidates.index(True)])
    return losses


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize("repeated", [False, True])
def test_the_contrastive_loss(rows: int, repeated: bool) -> None:
    flat, vectors = vectors_of(6, rows)
    texts = np.arange(6 * rows, dtype=np.int32).reshape(6, rows)
    if repeated:
        texts[3, 1] = texts[0, 1]  # the same positive twice
        texts[4, 0] = texts[1, 0]  # the same anchor twice, with another positive
        texts[5, 1] = texts[2, 0]  # a positive that is another row's anchor
        texts[2, rows - 1] = texts[0, 1]  # with triples: another row's hard negative that is a positive here
    found = encoder(objective="contrastive").training_losses({"texts": texts}, flat)
    np.testing.assert_allclose(found, contrastive_reference(vectors, texts, 20.0), rtol=1e-4, atol=1e-5)
    found = encoder(objective="contrastive", scale=5.0).training_losses({"texts": texts}, flat)
    np.testing.assert_allclose(found, contrastive_reference(vectors, texts, 5.0), rtol=1e-4, atol=1e-5)


def test_a_repeated_positive_is_no_negative() -> None:
    """Two equal rows: nothing is left to tell apart, so the loss is 0 and not log 2."""
    flat = np.tile(np.random.default_rng(0).standard_normal((2, 16)).astype(np.float32), (2, 1))
    model = encoder(objective="contrastive")
    equal, different = (
        model.training_losses({"texts": np.int32(texts)}, flat) for texts in ([[0, 1]] * 2, [[0, 1], [2, 3]])
    )
    np.testing.assert_allclose(equal, [0, 0], atol=1e-6)
    np.testing.assert_allclose(different, [np.log(2)] * 2, rtol=1e-5)


def test_the_vectors_loss() -> None:
    flat, vectors = vectors_of(5, 1)
    wanted = np.random.default_rng(4).standard_normal((5, 16)).astype(np.float32) * 3
    expected = 1 - (unit(vectors[:, 0]) * unit(wanted.astype(np.float64))).sum(-1)
    found = encoder(objective="vectors").training_losses({"vector": wanted}, flat)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_projection() -> None:
    model, plain = encoder(projection_dim=5, normalize=False), encoder(normalize=False)
    weights = {name: np.asarray(variable, np.float64) for name, variable in model.named_weights().items()}
    assert model.named_weights().keys() - plain.named_weights().keys() == {
        "sentence_projection/kernel",
        "sentence_projection/bias",
    }
    for name, variable in plain.named_weights().items():
        variable.assign(weights[name])
    expected = plain.embed(TEXTS) @ weights["sentence_projection/kernel"] + weights["sentence_projection/bias"]
    np.testing.assert_allclose(model.embed(TEXTS), expected, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(model(model.required_tokenizer(TEXTS)), expected, rtol=0, atol=TOLERANCE)
    with pytest.raises(InputError, match="projection_dim: expected a whole number from 1, or None; got 0"):
        encoder(projection_dim=0)


def test_the_softmax_loss() -> None:
    model = encoder(objective="softmax", labels=["no", "maybe", "yes"])
    weights = {name: np.asarray(variable, np.float64) for name, variable in model.named_weights().items()}
    flat, vectors = vectors_of(4, 2)
    first, second = vectors[:, 0], vectors[:, 1]
    features = np.concatenate([first, second, np.abs(first - second)], axis=-1)
    logits = features @ weights["pair_classifier/kernel"] + weights["pair_classifier/bias"]
    labels = np.array([2, 0, 1, 1])
    expected = np.log(np.exp(logits).sum(-1)) - logits[np.arange(4), labels]
    np.testing.assert_allclose(model.training_losses({"label": labels}, flat), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "targets", "rows"),
    [
        ({}, {"value": np.float32([5, 0])}, 2),
        ({"objective": "contrastive"}, {"texts": np.int32([[0, 1, 2], [3, 4, 5]])}, 3),
        ({"objective": "softmax", "labels": ["no", "yes"]}, {"label": np.int32([0, 1])}, 2),
        ({"objective": "vectors", "projection_dim": 3}, {"vector": np.float32([[1, 2, 0], [0, 1, 3]])}, 1),
        ({"projection_dim": 5}, {"value": np.float32([5, 0])}, 2),
    ],
    ids=["cosine", "contrastive", "softmax", "vectors", "cosine, projection"],
)
def test_training_changes_every_weight(settings: dict[str, Any], targets: dict[str, Any], rows: int) -> None:
    model = encoder(**settings)
    before = {name: np.asarray(variable).copy() for name, variable in model.named_weights().items()}
    inputs = model.required_tokenizer([TEXTS[i % 4] for i in range(2 * rows)])
    model.compile(keras.optimizers.SGD(0.1), jit_compile=False)
    model.train_on_batch(inputs, targets | {"scale": np.float32([0.5, 0.5])})
    after = model.named_weights()
    assert [name for name in before if np.array_equal(before[name], after[name]) and "key/bias" not in name] == []


def test_round_trip(tmp_path: Path) -> None:
    settings = {"pooling": "cls", "normalize": False, "objective": "softmax", "scale": 7.0, "labels": ["a", "b"]}
    model = encoder(**settings)
    model.save_pretrained(tmp_path / "model")
    restored = AlbertTextEmbedder.from_pretrained(tmp_path / "model")
    assert not restored.head_is_new
    assert restored.settings() == settings | {"max_score": 5.0, "projection_dim": None}
    np.testing.assert_array_equal(restored.embed(TEXTS), model.embed(TEXTS))
    np.testing.assert_array_equal(
        restored.named_weights()["pair_classifier/kernel"], model.named_weights()["pair_classifier/kernel"]
    )
    # From NLI to STS, as in Sentence-BERT: the encoder goes on, the classifier goes.
    sts = AlbertTextEmbedder.from_pretrained(tmp_path / "model", objective="cosine", labels=None)
    assert sts.head_is_new and "pair_classifier/kernel" not in sts.named_weights()
    np.testing.assert_array_equal(sts.embed(TEXTS), model.embed(TEXTS))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.embed(TEXTS), model.embed(TEXTS))


def test_a_projection_goes_on_with_another_loss(tmp_path: Path) -> None:
    model = encoder(objective="vectors", projection_dim=5)
    model.save_pretrained(tmp_path / "model")
    restored = AlbertTextEmbedder.from_pretrained(tmp_path / "model", objective="cosine")
    assert not restored.head_is_new and restored.embedding_dim == 5
    np.testing.assert_array_equal(restored.embed(TEXTS), model.embed(TEXTS))
    other = AlbertTextEmbedder.from_pretrained(tmp_path / "model", objective="cosine", projection_dim=6)
    assert other.head_is_new and other.embed(TEXTS).shape == (4, 6)


def test_from_a_backbone_with_pooler(tmp_path: Path) -> None:
    """A pooler is left aside: nothing trains it, and a device file would carry it for nothing."""
    from albert_tf.presets import save_preset

    backbone = AlbertBackbone(CONFIG)
    weights = randomize(backbone)
    save_preset(tmp_path / "encoder", CONFIG, weights, AlbertTokenizer(sentencepiece_vocabulary()))
    model = AlbertTextEmbedder.from_pretrained(tmp_path / "encoder", pooling="mean")
    assert model.named_weights().keys() == weights.keys() - {"pooler/kernel", "pooler/bias"}
    ids = model.required_tokenizer(TEXTS[:1])
    np.testing.assert_allclose(
        np.asarray(model(ids))[0], np.asarray(backbone(ids)["sequence_output"])[0].mean(axis=0), atol=TOLERANCE
    )


def test_mixed_precision_pools_in_float32() -> None:
    backbone = AlbertBackbone(dataclasses.replace(CONFIG), pooler=False, dtype="mixed_bfloat16")
    model = AlbertTextEmbedder(backbone, AlbertTokenizer(sentencepiece_vocabulary(), 24))
    assert model(model.required_tokenizer(TEXTS)).dtype == "float32"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"pooling": "max"}, "pooling: expected one of mean, cls; got 'max'"),
        ({"objective": "triplet"}, "objective: expected one of cosine, contrastive, softmax, vectors; got 'triplet'"),
        ({"scale": 0}, "scale: expected a number above 0, got 0"),
        ({"max_score": "5"}, "max_score: expected a number above 0, got '5'"),
        ({"labels": ["a", "b"]}, "labels: are for the objective softmax, not for cosine"),
        ({"objective": "softmax"}, "labels: expected their names, two or more"),
    ],
    ids=str,
)
def test_wrong_settings(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        AlbertTextEmbedder(AlbertBackbone(CONFIG, pooler=False), **settings)
    with pytest.raises(InputError, match="expected an AlbertBackbone, got str"):
        AlbertTextEmbedder("backbone")
