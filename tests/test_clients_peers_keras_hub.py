"""KerasHub, run live: its ALBERT gives what our model gives on the presets that it saves, and the reverse."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peer_models import GROUPED, LENGTHS, SHAPES, assert_same_weights, batch_of, largest_difference, random_weights
from small_vocabularies import sentencepiece_vocabulary
from tiny_models import TINY

from albert_tf.config import AlbertConfig
from albert_tf.conversion.keras_hub import read_keras_hub, write_keras_hub
from albert_tf.errors import InputError
from albert_tf.presets import load_checkpoint, load_tokenizer
from albert_tf.tokenization.tokenizer import AlbertTokenizer

pytestmark = pytest.mark.clients

# float32 on both sides; measured at most 7.2e-6.
TOLERANCE = 2e-5
FIELDS = ("vocabulary_size", "num_layers", "num_heads", "embedding_dim", "hidden_dim", "intermediate_dim")
FIELDS += ("num_groups", "num_inner_repetitions", "max_sequence_length", "num_segments")


def their_backbone(config: AlbertConfig, **more: Any) -> Any:
    import keras_hub

    fields = {name: getattr(config, name) for name in FIELDS}
    return randomized(keras_hub.models.AlbertBackbone(**fields, dropout=config.hidden_dropout, **more))


def randomized(model: Any) -> Any:
    """Weights far from the initialiser's, of a size that keeps the sums over a layer's width alike."""
    random = np.random.default_rng(0)
    width = getattr(model, "backbone", model).hidden_dim
    for variable in model.weights:
        noise = random.standard_normal(variable.shape, np.float32)
        variable.assign(1 + 0.1 * noise if variable.name == "gamma" else noise * width**-0.5)
    return model


def our_backbone(folder: Path) -> Any:
    from albert_tf.backbone import AlbertBackbone

    return AlbertBackbone.from_pretrained(folder, all_layers=True)


def assert_same_outputs(folder: Path, theirs: Any, lengths: tuple[int, ...]) -> AlbertConfig:
    """Every layer and both outputs of the backbone of a folder against the one that was saved there."""
    import keras

    ours = our_backbone(folder)
    # Their layers are called several times each; the model returns every call's output.
    steps = [
        node.outputs[0]
        for group in theirs.transformer_layers
        for call in range(theirs.num_layers // theirs.num_groups)
        for node in [layer._inbound_nodes[call] for layer in group]
    ]
    every_layer = keras.Model(theirs.input, {**theirs.output, "layers": steps})
    for length in lengths:
        batch = batch_of(ours.config, length)
        got, expected = ours(batch), every_layer(batch)
        differences = {
            name: largest_difference(got[name], expected[name]) for name in ("sequence_output", "pooled_output")
        }
        for index, (layer, their_layer) in enumerate(zip(got["layer_outputs"], expected["layers"], strict=True)):
            differences[f"layer {index}"] = largest_difference(layer, their_layer)
        assert max(differences.values()) <= TOLERANCE, (length, differences)
    return ours.config


@pytest.mark.parametrize("size", SHAPES)
def test_the_four_sizes(tmp_path: Path, size: str) -> None:
    theirs = their_backbone(SHAPES[size])
    theirs.save_to_preset(str(tmp_path))
    assert assert_same_outputs(tmp_path, theirs, LENGTHS) == SHAPES[size]


@pytest.mark.parametrize(
    "config",
    [
        GROUPED,
        dataclasses.replace(TINY, hidden_dropout=0.1, attention_dropout=0.1),
        dataclasses.replace(TINY, num_groups=3),
    ],
    ids=["groups", "dropout", "a group for each layer"],
)
def test_groups_and_dropout(tmp_path: Path, config: AlbertConfig) -> None:
    theirs = their_backbone(config)
    theirs.save_to_preset(str(tmp_path))
    assert assert_same_outputs(tmp_path, theirs, (1, 12)) == config


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_read_as_the_same_numbers(tmp_path: Path, dtype: str) -> None:
    theirs = their_backbone(TINY, dtype=dtype)
    theirs.save_to_preset(str(tmp_path))
    weights = read_keras_hub(tmp_path).weights
    assert {weight.dtype for weight in weights.values()} == {np.dtype(np.float32)}
    table = np.asarray(theirs.token_embedding.embeddings).astype(np.float32)
    np.testing.assert_array_equal(weights["embeddings/word_embedding/embeddings"], table)
    query = np.asarray(theirs.transformer_layers[0][0]._self_attention_layer.query_dense.kernel).astype(np.float32)
    np.testing.assert_array_equal(weights["encoder/attention_0/query/kernel"], query.reshape(16, 16))


def test_quantised_presets_are_refused(tmp_path: Path) -> None:
    theirs = their_backbone(TINY)
    theirs.quantize("int8")
    theirs.save_to_preset(str(tmp_path))
    with pytest.raises(InputError, match="quantised weights"):
        read_keras_hub(tmp_path)


# === Heads ===


def test_a_classifier(tmp_path: Path) -> None:
    import keras_hub

    from albert_tf.tasks.classification import AlbertTextClassifier

    vocabulary = sentencepiece_vocabulary()
    config = dataclasses.replace(TINY, vocabulary_size=vocabulary.size)
    tokenizer = keras_hub.models.AlbertTokenizer(vocabulary.model)
    preprocessor = keras_hub.models.AlbertTextClassifierPreprocessor(tokenizer, sequence_length=12)
    theirs = randomized(
        keras_hub.models.AlbertTextClassifier(their_backbone(config), 3, preprocessor=preprocessor, dropout=0.2)
    )
    theirs.save_to_preset(str(tmp_path / "theirs"))
    ours = AlbertTextClassifier.from_pretrained(tmp_path / "theirs")
    assert (ours.labels, ours.classifier_dropout) == (("LABEL_0", "LABEL_1", "LABEL_2"), 0.2)
    batch = batch_of(config, 12)
    assert largest_difference(ours(batch), theirs(batch)) <= TOLERANCE
    named = AlbertTextClassifier.from_pretrained(tmp_path / "theirs", labels=["a", "b", "c"])
    assert not named.head_is_new and named.labels == ("a", "b", "c")

    checkpoint = load_checkpoint(tmp_path / "theirs")
    notes = write_keras_hub(
        tmp_path / "ours",
        checkpoint.config,
        checkpoint.weights,
        load_tokenizer(checkpoint),
        task={"task": "classification", "settings": {"labels": ["a", "b", "c"], "classifier_dropout": 0.2}},
    )
    assert len(notes) == 2 and "labels' names are left out" in notes[0] and "neither lower-cases" in notes[1]
    back = keras_hub.models.AlbertTextClassifier.from_preset(str(tmp_path / "ours"))
    assert (back.dropout, back.preprocessor.sequence_length) == (0.2, 12)
    np.testing.assert_array_equal(np.asarray(back(batch)), np.asarray(theirs(batch)))
    texts = ["the old mill by the river", "nobody knows why"]
    np.testing.assert_array_equal(back.predict(texts, verbose=0), theirs.predict(texts, verbose=0))


def test_a_masked_word_head(tmp_path: Path) -> None:
    import keras_hub

    from albert_tf.backbone import AlbertBackbone
    from albert_tf.layers.heads import MaskedLMHead

    theirs = randomized(keras_hub.models.AlbertMaskedLM(their_backbone(TINY)))
    theirs.save_to_preset(str(tmp_path / "theirs"))
    checkpoint = read_keras_hub(tmp_path / "theirs")
    assert checkpoint.head == "masked_lm" and checkpoint.config.masked_lm_layer_norm_epsilon == 1e-5
    backbone, head = AlbertBackbone(checkpoint.config), MaskedLMHead(checkpoint.config, name="masked_lm")
    backbone.load_named_weights(checkpoint.backbone_weights, source="theirs")
    head.build()
    for variable in head.weights:
        variable.assign(checkpoint.weights[variable.path])
    batch, positions = batch_of(TINY, 12), np.array([[0, 11], [3, 4], [1, 1]])
    table = backbone.embeddings.word_embedding.embeddings
    ours = head(backbone(batch)["sequence_output"], positions, table)
    expected = theirs({**batch, "mask_positions": positions})
    assert largest_difference(ours, expected) <= TOLERANCE
    assert write_keras_hub(tmp_path / "ours", checkpoint.config, checkpoint.weights, None) == []
    back = keras_hub.models.AlbertMaskedLM.from_preset(str(tmp_path / "ours"))
    np.testing.assert_array_equal(np.asarray(back({**batch, "mask_positions": positions})), np.asarray(expected))
    assert_same_weights(read_keras_hub(tmp_path / "ours").weights, checkpoint.weights)


# === There and back ===


@pytest.mark.parametrize(
    "change",
    [{}, {"sharing": "none"}, {"embedding_dim": 16}, {"num_groups": 3, "num_inner_repetitions": 2}],
    ids=str,
)
def test_ours_to_theirs_and_back(tmp_path: Path, change: dict[str, Any]) -> None:
    import keras_hub

    config = dataclasses.replace(TINY, **change)
    weights = random_weights(config)
    assert write_keras_hub(tmp_path / "ours", config, weights, None) == []
    assert_same_weights(read_keras_hub(tmp_path / "ours").weights, weights)
    theirs = keras_hub.models.AlbertBackbone.from_preset(str(tmp_path / "ours"))
    assert_same_outputs(tmp_path / "ours", theirs, (1, 12))
    theirs.save_to_preset(str(tmp_path / "theirs"))
    assert_same_weights(read_keras_hub(tmp_path / "theirs").weights, weights)
    again = keras_hub.models.AlbertBackbone.from_preset(str(tmp_path / "theirs"))
    for ours, expected in zip(theirs.weights, again.weights, strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(expected))


def test_the_tokenizer(tmp_path: Path) -> None:
    import keras_hub

    vocabulary = sentencepiece_vocabulary()
    config = dataclasses.replace(TINY, vocabulary_size=vocabulary.size)
    write_keras_hub(tmp_path / "ours", config, random_weights(config), AlbertTokenizer(vocabulary, max_length=12))
    theirs = keras_hub.models.AlbertTokenizer.from_preset(str(tmp_path / "ours"))
    ours = load_tokenizer(load_checkpoint(tmp_path / "ours"))
    assert ours is not None and ours.max_length == 12
    for text in ("the old mill by the river", "nobody knows why"):
        assert list(np.asarray(theirs(text))) == ours.vocabulary.encode(text)


def test_a_model_in_kaggles_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "models" / "keras" / "albert" / "keras" / "albert_base_en_uncased"
    weights = random_weights(TINY)
    write_keras_hub(place / "5", TINY, weights, None)
    (place / "5.complete").touch()
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path))
    for name in ("kaggle://keras/albert/keras/albert_base_en_uncased/5", "albert_base_en_uncased"):
        assert_same_weights(load_checkpoint(name).weights, weights)


def test_a_keras_file_of_theirs_is_told(tmp_path: Path) -> None:
    """`save` instead of `save_to_preset`."""
    their_backbone(TINY).save(tmp_path / "theirs.keras")
    with pytest.raises(InputError, match=r"of the class 'keras_hub>AlbertBackbone', not one of .* save_to_preset"):
        load_checkpoint(tmp_path / "theirs.keras")
