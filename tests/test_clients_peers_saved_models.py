"""SavedModels of the TF Model Garden, run live: what they say of themselves, and that ours gives what they give."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from garden_models import agree, encoders_agree, our_encoder, randomized, their_batch, their_encoder
from peer_models import batch_of
from tiny_data import VOCABULARY_SIZE, separable_rows
from tiny_models import TINY

from albert_tf.conversion.assign import assign
from albert_tf.conversion.model_garden import read_model_garden
from albert_tf.evaluation.parity import check_differences, compare_with_framework
from albert_tf.presets import load_checkpoint
from albert_tf.tokenization.training import train_sentencepiece

pytestmark = pytest.mark.clients


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
    batch, positions = batch_of(shape, 12), np.array([[3, 11], [0, 4], [0, 0]], np.int32)
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
    compared = compare_with_framework(checkpoint)
    assert compared[-1].output == "masked_lm_logits"
    check_differences(compared, "x")


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
    batch = batch_of(config, 12)
    encoders_agree(our_encoder(checkpoint), encoder(their_batch(batch)), batch)
