"""TF Model Garden, run live: its AlbertEncoder and heads give what our model gives on their checkpoints, and back."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from garden_models import agree, encoders_agree, our_encoder, randomized, save, their_batch, their_encoder
from peer_models import LENGTHS, SHAPES, assert_same_weights, batch_of, random_weights
from tiny_models import TINY

from albert_tf.config import AlbertConfig
from albert_tf.conversion.assign import assign
from albert_tf.conversion.checkpoint import Checkpoint
from albert_tf.conversion.model_garden import read_model_garden, write_model_garden

pytestmark = pytest.mark.clients

# === The encoder, in both directions ===


@pytest.mark.parametrize("size", SHAPES)
def test_published_shapes(size: str, tmp_path: Path) -> None:
    """Ours → their checkpoint → their encoder, and read back: outputs equal, weights bit for bit."""
    import tensorflow as tf

    config = SHAPES[size]
    weights = random_weights(config)
    write_model_garden(tmp_path / "out", config, weights, None)
    back = read_model_garden(tmp_path / "out")
    assert back.config == config
    assert_same_weights(back.weights, weights)
    encoder = their_encoder(config)
    status = tf.train.Checkpoint(encoder=encoder).restore(tf.train.latest_checkpoint(str(tmp_path / "out")))
    status.assert_consumed().assert_existing_objects_matched()
    backbone = our_encoder(back)
    for length in LENGTHS if size == "base" else LENGTHS[:-1]:
        batch = batch_of(config, length)
        encoders_agree(backbone, encoder(their_batch(batch)), batch)


@pytest.mark.parametrize("activation", ["gelu_tanh", "relu", "gelu_erf"])
@pytest.mark.parametrize("embedding_dim", [8, 16])
def test_tiny_shapes(activation: str, embedding_dim: int, tmp_path: Path) -> None:
    """Theirs → checkpoint → ours → checkpoint → theirs, with and without a projection."""
    import tensorflow as tf
    import tf_keras

    config = dataclasses.replace(TINY, activation=activation, embedding_dim=embedding_dim, num_segments=16)
    function = tf_keras.activations.gelu if activation == "gelu_erf" else None
    encoder = randomized(their_encoder(config, function))
    # A name or file of the published kind has two segments, their constructor by default sixteen.
    checkpoint = read_model_garden(
        save(tmp_path / "theirs", model=encoder), config=dataclasses.replace(config, num_segments=2)
    )
    assert checkpoint.config == config
    for length in (12, 1):
        batch = batch_of(config, length)
        encoders_agree(our_encoder(checkpoint), encoder(their_batch(batch)), batch)
    write_model_garden(tmp_path / "out", checkpoint.config, checkpoint.weights, None)
    for name in ("encoder", "model"):
        other = their_encoder(config, function)
        status = tf.train.Checkpoint(**{name: other}).restore(tf.train.latest_checkpoint(str(tmp_path / "out")))
        status.assert_consumed().assert_existing_objects_matched()
        assert len(other.variables) == 25 - 2 * (embedding_dim == 16)
        for variable, original in zip(other.variables, encoder.variables, strict=True):
            np.testing.assert_array_equal(variable, original)


def test_every_length(tmp_path: Path) -> None:
    config = dataclasses.replace(TINY, max_sequence_length=512)
    encoder = randomized(their_encoder(config))
    backbone = our_encoder(read_model_garden(save(tmp_path, encoder=encoder), config=config))
    for length in (512, 511, 300, 128, 65, 64, 7, 2, 1):
        batch = batch_of(config, length)
        encoders_agree(backbone, encoder(their_batch(batch)), batch)


# === Models with heads ===


def their_pretrainer(config: AlbertConfig) -> Any:
    from official.modeling import tf_utils
    from official.nlp.modeling import layers, models

    head = layers.ClassificationHead(inner_dim=config.hidden_dim, num_classes=2, name="next_sentence")
    model = models.BertPretrainerV2(
        their_encoder(config), mlm_activation=tf_utils.get_activation("gelu"), classification_heads=[head]
    )
    model({tensor.name: tensor for tensor in model.inputs})
    return model


def our_pretrainer(checkpoint: Checkpoint) -> Any:
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.tasks.pretraining import AlbertPretrainer

    model = AlbertPretrainer(AlbertBackbone(checkpoint.config))
    assign(model.weights, checkpoint.weights, source="test")
    return model


def pretrainers_agree(ours: Any, theirs: Any, config: AlbertConfig) -> None:
    batch, positions = batch_of(config, 12), np.array([[3, 11], [0, 4], [0, 0]], np.int32)
    outputs = theirs(their_batch(batch) | {"masked_lm_positions": positions})
    logits = ours(batch | {"masked_positions": positions})
    agree(logits["masked_lm_logits"], outputs["mlm_logits"])
    agree(logits["sentence_order_logits"], outputs["next_sentence"])


def test_a_pretrainer_and_back(tmp_path: Path) -> None:
    import tensorflow as tf

    theirs = randomized(their_pretrainer(TINY))
    checkpoint = read_model_garden(save(tmp_path / "theirs", model=theirs, **theirs.checkpoint_items), config=TINY)
    assert checkpoint.head == "pretraining"
    pretrainers_agree(our_pretrainer(checkpoint), theirs, TINY)
    write_model_garden(tmp_path / "out", checkpoint.config, checkpoint.weights, None)
    again = their_pretrainer(TINY)
    objects = tf.train.Checkpoint(model=again, **again.checkpoint_items)
    objects.restore(tf.train.latest_checkpoint(str(tmp_path / "out"))).assert_consumed()
    pretrainers_agree(our_pretrainer(checkpoint), again, TINY)
    encoder = their_encoder(TINY)
    status = tf.train.Checkpoint(encoder=encoder).restore(tf.train.latest_checkpoint(str(tmp_path / "out")))
    status.assert_existing_objects_matched()
    batch = batch_of(TINY, 12)
    encoders_agree(our_encoder(checkpoint), encoder(their_batch(batch)), batch)


@pytest.mark.parametrize("kind", ["classifier", "classifier with pooler", "tokens", "spans"])
def test_task_models_and_back(kind: str, tmp_path: Path) -> None:
    import tensorflow as tf
    from official.nlp.modeling import models

    def build() -> Any:
        encoder = their_encoder(TINY)
        if kind == "tokens":
            return models.BertTokenClassifier(encoder, 3, output="logits")
        if kind == "spans":
            return models.BertSpanLabeler(encoder)
        return models.BertClassifier(encoder, 3, use_encoder_pooler=kind == "classifier")

    theirs = randomized(build())
    checkpoint = read_model_garden(save(tmp_path / "theirs", model=theirs), config=TINY)
    batch = batch_of(TINY, 12)
    outputs = our_encoder(checkpoint)(batch)
    name = checkpoint.head
    features = outputs["pooled_output" if name == "classifier" else "sequence_output"]
    logits = np.asarray(features) @ checkpoint.weights[f"{name}/kernel"] + checkpoint.weights[f"{name}/bias"]

    def their_logits(model: Any) -> np.ndarray:
        found = model(their_batch(batch))
        if kind == "spans":
            return np.stack(found, axis=-1)
        return np.asarray(found["logits"] if kind == "tokens" else found)

    mask = None if name == "classifier" else batch["padding_mask"]
    agree(logits, their_logits(theirs), mask)
    write_model_garden(tmp_path / "out", checkpoint.config, checkpoint.weights, None)
    if kind == "classifier with pooler":
        return  # it is written with the encoder's own pooler
    again = build()
    objects = tf.train.Checkpoint(model=again, encoder=again._network)
    objects.restore(tf.train.latest_checkpoint(str(tmp_path / "out"))).assert_consumed()
    agree(logits, their_logits(again), mask)


# === Trained checkpoints ===


@pytest.mark.parametrize("optimizer", ["legacy", "new"])
def test_what_a_training_saves_beside_the_weights_is_left_behind(optimizer: str, tmp_path: Path) -> None:
    import tensorflow as tf
    import tf_keras
    from official.nlp.modeling import models

    encoder = their_encoder(TINY)
    model = models.BertClassifier(encoder, 3)
    adam = tf_keras.optimizers.legacy.Adam() if optimizer == "legacy" else tf_keras.optimizers.Adam()
    model.compile(adam, tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(their_batch(batch_of(TINY, 12)), np.array([0, 2, 1]), verbose=0)
    step = tf.Variable(1, dtype=tf.int64)
    trained = save(tmp_path / "trainer", model=model, optimizer=adam, global_step=step, **model.checkpoint_items)
    model.save_weights(str(tmp_path / "fit" / "ckpt"), save_format="tf")
    for source in (trained, tmp_path / "fit"):
        checkpoint = read_model_garden(source, config=TINY)
        assert checkpoint.head == "classifier"
        batch = batch_of(TINY, 12)
        encoders_agree(our_encoder(checkpoint), encoder(their_batch(batch)), batch)


def test_a_params_yaml_beside_the_checkpoint(tmp_path: Path) -> None:
    from official.modeling import hyperparams
    from official.nlp.configs import bert, encoders

    fields = {"vocab_size": 60, "embedding_width": 8, "hidden_size": 16, "num_layers": 3, "num_attention_heads": 2}
    fields |= {"max_position_embeddings": 12, "intermediate_size": 24, "type_vocab_size": 2}
    config = encoders.EncoderConfig(type="albert", albert=encoders.AlbertEncoderConfig(**fields))
    encoder = randomized(encoders.build_encoder(config))
    save(tmp_path, encoder=encoder)

    class Params(hyperparams.Config):
        pass

    params = Params({"task": {"model": bert.PretrainerConfig(encoder=config).as_dict()}})
    hyperparams.save_params_dict_to_yaml(params, str(tmp_path / "params.yaml"))
    checkpoint = read_model_garden(tmp_path)
    assert checkpoint.config == TINY
    batch = batch_of(TINY, 12)
    encoders_agree(our_encoder(checkpoint), encoder(their_batch(batch)), batch)


def test_bert_is_told_apart(tmp_path: Path) -> None:
    from official.nlp.modeling import networks

    from albert_tf.errors import InputError

    bert = networks.BertEncoderV2(vocab_size=60, hidden_size=16, num_layers=2, num_attention_heads=2, inner_dim=24)
    bert(bert.inputs)
    with pytest.raises(InputError, match="found 2 of them: BERT"):
        read_model_garden(save(tmp_path, model=bert), config=TINY)
