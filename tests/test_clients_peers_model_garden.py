"""TF Model Garden, run live: its AlbertEncoder and heads give what our model gives on their checkpoints, and back."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_data import VOCABULARY_SIZE, separable_rows
from tiny_models import TINY

from albert_tf.config import AlbertConfig
from albert_tf.conversion.assign import assign
from albert_tf.conversion.checkpoint import Checkpoint
from albert_tf.conversion.model_garden import read_model_garden, write_model_garden
from albert_tf.parameters import backbone_weight_shapes, pretraining_head_weight_shapes
from albert_tf.presets import load_checkpoint
from albert_tf.tokenization.training import train_sentencepiece

pytestmark = pytest.mark.clients

# Times the largest value, where that is above 1.
TOLERANCE = 2e-5
SHAPES = {
    "base": AlbertConfig.from_name("albert_base_v2"),
    "large": dataclasses.replace(AlbertConfig.from_name("albert_large_v2"), num_layers=3),
    "xlarge": dataclasses.replace(AlbertConfig.from_name("albert_xlarge_v2"), num_layers=2),
    "xxlarge": dataclasses.replace(AlbertConfig.from_name("albert_xxlarge_v2"), num_layers=2),
}


def random_weights(config: AlbertConfig, *, heads: bool = False, std: float = 0.05) -> dict[str, np.ndarray]:
    """Of the encoder, and with `heads` of both pretraining heads; far from what an initialiser gives."""
    shapes = backbone_weight_shapes(config) | (pretraining_head_weight_shapes(config) if heads else {})
    random = np.random.default_rng(0)
    noise = {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    return {name: 1 + 0.1 * value if name.endswith("gamma") else std * value for name, value in noise.items()}


def batch_of(config: AlbertConfig, lengths: tuple[int, ...]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    shape = (len(lengths), max(lengths))
    mask = (np.arange(shape[1]) < np.array(lengths)[:, None]).astype(np.int32)
    ids = random.integers(1, config.vocabulary_size, shape, np.int32) * mask
    return {"token_ids": ids, "segment_ids": random.integers(0, 2, shape, np.int32) * mask, "padding_mask": mask}


def their_batch(batch: dict[str, np.ndarray]) -> dict[str, Any]:
    names = {"input_word_ids": "token_ids", "input_mask": "padding_mask", "input_type_ids": "segment_ids"}
    return {theirs: batch[ours] for theirs, ours in names.items()}


def their_encoder(config: AlbertConfig, activation: Any = None) -> Any:
    from official.modeling import tf_utils
    from official.nlp.modeling import networks

    names = {"gelu_tanh": "gelu", "relu": "relu"}
    return networks.AlbertEncoder(
        vocab_size=config.vocabulary_size,
        embedding_width=config.embedding_dim,
        hidden_size=config.hidden_dim,
        num_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        max_sequence_length=config.max_sequence_length,
        type_vocab_size=config.num_segments,
        intermediate_size=config.intermediate_dim,
        activation=activation or tf_utils.get_activation(names[config.activation]),
        dict_outputs=True,
    )


def randomized(model: Any, std: float = 0.3) -> Any:
    """Gives every variable of theirs its own random value."""
    random = np.random.default_rng(2)
    for variable in model.variables:
        mean = 1.0 if "gamma" in variable.name else 0.0
        variable.assign(mean + std * random.standard_normal(variable.shape))
    return model


def our_encoder(checkpoint: Checkpoint) -> Any:
    from albert_tf.backbone import AlbertBackbone

    backbone = AlbertBackbone(checkpoint.config, all_layers=True)
    backbone.load_named_weights(checkpoint.backbone_weights, source="test")
    return backbone


def agree(ours: Any, theirs: Any, mask: np.ndarray | None = None) -> None:
    """Wherever `mask` says that there is a token, or everywhere."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    if mask is not None:
        ours, theirs = ours[mask == 1], theirs[mask == 1]
    assert np.std(theirs) > 1e-3
    assert np.abs(ours - theirs).max() <= TOLERANCE * max(1.0, float(np.abs(theirs).max()))


def encoders_agree(backbone: Any, outputs: dict[str, Any], batch: dict[str, np.ndarray]) -> None:
    ours, mask = backbone(batch), batch["padding_mask"]
    assert len(outputs["encoder_outputs"]) == len(ours["layer_outputs"])
    for layer, theirs in zip(ours["layer_outputs"], outputs["encoder_outputs"], strict=True):
        agree(layer, theirs, mask)
    agree(ours["sequence_output"], outputs["sequence_output"], mask)
    agree(ours["pooled_output"], outputs["pooled_output"])


def save(folder: Path, **objects: Any) -> Path:
    import tensorflow as tf

    tf.train.Checkpoint(**objects).save(str(folder / "ckpt"))
    return folder


# === The encoder, in both directions ===


@pytest.mark.parametrize("size", SHAPES)
def test_published_shapes(size: str, tmp_path: Path) -> None:
    """Ours → their checkpoint → their encoder, and read back: outputs equal, weights bit for bit."""
    import tensorflow as tf

    config = SHAPES[size]
    weights = random_weights(config, std=0.05 if config.hidden_dim <= 1024 else 0.02)
    write_model_garden(tmp_path / "out", config, weights, None)
    back = read_model_garden(tmp_path / "out")
    assert back.config == config
    assert back.weights.keys() == weights.keys()
    assert all(np.array_equal(back.weights[name], weights[name]) for name in weights)
    encoder = their_encoder(config)
    status = tf.train.Checkpoint(encoder=encoder).restore(tf.train.latest_checkpoint(str(tmp_path / "out")))
    status.assert_consumed().assert_existing_objects_matched()
    batch = batch_of(config, (512, 100, 17, 1) if size == "base" else (64, 17, 1))
    encoders_agree(our_encoder(back), encoder(their_batch(batch)), batch)


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
    for lengths in ((12, 5, 1), (1, 1)):
        batch = batch_of(config, lengths)
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
    for longest in (512, 511, 300, 128, 65, 64, 7, 2, 1):
        batch = batch_of(config, (longest, max(1, longest // 3), 1))
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
    batch, positions = batch_of(config, (12, 5, 1)), np.array([[3, 11], [0, 4], [0, 0]], np.int32)
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
    batch = batch_of(TINY, (12, 5, 1))
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
    batch = batch_of(TINY, (12, 5, 1))
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


# === SavedModels ===


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """What TF-Hub's albert_en_*/3 are: an encoder with `mlm` and the vocabulary, by the Garden's own exporter."""
    import tensorflow as tf
    from official.modeling import tf_utils
    from official.nlp.configs import encoders
    from official.nlp.modeling import models
    from official.nlp.tools import export_tfhub_lib

    folder = tmp_path_factory.mktemp("hub")
    train_sentencepiece([text for text, _ in separable_rows(64)], VOCABULARY_SIZE).save(folder)
    fields = {
        "vocab_size": VOCABULARY_SIZE,
        "embedding_width": 8,
        "hidden_size": 16,
        "num_layers": 3,
        "num_attention_heads": 2,
        "max_position_embeddings": 12,
        "intermediate_size": 24,
        "hidden_activation": "relu",
        "dropout_rate": 0.1,
    }
    config = encoders.EncoderConfig(type="albert", albert=encoders.AlbertEncoderConfig(**fields))
    pretrainer = models.BertPretrainerV2(encoders.build_encoder(config), mlm_activation=tf_utils.get_activation("relu"))
    pretrainer({tensor.name: tensor for tensor in pretrainer.inputs})
    checkpoint = tf.train.Checkpoint(**randomized(pretrainer).checkpoint_items).save(str(folder / "trained" / "ckpt"))
    export_tfhub_lib.export_model(
        str(folder / "albert_en_tiny"),
        encoder_config=config,
        model_checkpoint_path=checkpoint,
        with_mlm=True,
        sp_model_file=str(folder / "vocabulary.spm"),
    )
    return folder / "albert_en_tiny", tf.saved_model.load(str(folder / "albert_en_tiny"))


def test_tf_hub_form(hub: tuple[Path, Any]) -> None:
    folder, loaded = hub
    checkpoint = load_checkpoint(folder)
    shape = dataclasses.replace(TINY, vocabulary_size=VOCABULARY_SIZE)
    assert checkpoint.config == dataclasses.replace(shape, activation="relu", hidden_dropout=0.1)
    assert checkpoint.tokenizer_path is not None and checkpoint.tokenizer_path.parent == folder / "assets"
    batch, positions = batch_of(shape, (12, 5, 1)), np.array([[3, 11], [0, 4], [0, 0]], np.int32)
    backbone = our_encoder(checkpoint)
    encoders_agree(backbone, loaded(their_batch(batch)), batch)
    outputs = loaded.mlm(their_batch(batch) | {"masked_lm_positions": positions})
    head = {name: weight for name, weight in checkpoint.weights.items() if name.startswith("masked_lm/")}
    from albert_tf.layers.heads import MaskedLMHead

    layer = MaskedLMHead(checkpoint.config, name="masked_lm")
    layer.build()
    assign({variable.path: variable for variable in layer.weights}, head, source="test")
    table = backbone.embeddings.word_embedding.embeddings
    agree(layer(backbone(batch)["sequence_output"], positions, table), outputs["mlm_logits"])


def test_its_preprocessing_model_has_the_vocabulary(hub: tuple[Path, Any], tmp_path: Path) -> None:
    from official.nlp.tools import export_tfhub_lib

    folder, _ = hub
    (vocabulary,) = (folder / "assets").iterdir()
    export_tfhub_lib.export_preprocessing(
        str(tmp_path / "preprocess"),
        sp_model_file=str(vocabulary),
        do_lower_case=True,
        tokenize_with_offsets=False,
        default_seq_length=12,
    )
    (tmp_path / "preprocess" / "assets").rmdir()  # empty: the vocabulary is in the graph
    taken = load_checkpoint(folder, tokenizer=tmp_path / "preprocess").tokenizer_path
    assert taken is not None and taken.parent != folder / "assets"
    assert taken.read_bytes() == vocabulary.read_bytes()


@pytest.mark.parametrize("how", ["keras", "tensorflow"])
@pytest.mark.parametrize("activation", ["gelu_tanh", "relu", "gelu_erf"])
def test_saved_models_say_depth_and_activation(how: str, activation: str, tmp_path: Path) -> None:
    """Keras writes the constructor's arguments beside the graph; without Keras only the graph tells."""
    import tensorflow as tf
    import tf_keras

    config = dataclasses.replace(TINY, activation=activation, num_layers=4, num_segments=16)
    encoder = randomized(their_encoder(config, tf_keras.activations.gelu if activation == "gelu_erf" else None))
    if how == "keras":
        encoder.save(str(tmp_path / "saved"), save_format="tf")
        config = dataclasses.replace(config, hidden_dropout=0.1, attention_dropout=0.1)
    else:
        tf.saved_model.save(encoder, str(tmp_path / "saved"))
    checkpoint = read_model_garden(tmp_path / "saved")
    assert checkpoint.config == config
    batch = batch_of(config, (12, 5, 1))
    encoders_agree(our_encoder(checkpoint), encoder(their_batch(batch)), batch)


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
    model.fit(their_batch(batch_of(TINY, (12, 5))), np.array([0, 2]), verbose=0)
    step = tf.Variable(1, dtype=tf.int64)
    trained = save(tmp_path / "trainer", model=model, optimizer=adam, global_step=step, **model.checkpoint_items)
    model.save_weights(str(tmp_path / "fit" / "ckpt"), save_format="tf")
    for source in (trained, tmp_path / "fit"):
        checkpoint = read_model_garden(source, config=TINY)
        assert checkpoint.head == "classifier"
        batch = batch_of(TINY, (12, 5, 1))
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
    batch = batch_of(TINY, (12, 5, 1))
    encoders_agree(our_encoder(checkpoint), encoder(their_batch(batch)), batch)


def test_bert_is_told_apart(tmp_path: Path) -> None:
    from official.nlp.modeling import networks

    from albert_tf.errors import InputError

    bert = networks.BertEncoderV2(vocab_size=60, hidden_size=16, num_layers=2, num_attention_heads=2, inner_dim=24)
    bert(bert.inputs)
    with pytest.raises(InputError, match="found 2 of them: BERT"):
        read_model_garden(save(tmp_path, model=bert), config=TINY)
