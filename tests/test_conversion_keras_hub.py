"""KerasHub presets: every variable lands where it belongs, comes back bit for bit, and what does not fit is told."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from keras_hub_writer import CONFIG, save, save_object, variables, write_h5
from peer_models import GROUPED, assert_same_weights, random_weights
from small_vocabularies import sentencepiece_vocabulary, wordpiece_vocabulary
from tiny_models import TINY

from albert_tf.config import AlbertConfig
from albert_tf.conversion.keras_hub import read_keras_hub, write_keras_hub
from albert_tf.errors import InputError
from albert_tf.presets import load_checkpoint, load_tokenizer
from albert_tf.tokenization.tokenizer import AlbertTokenizer

GROUPS = CONFIG | {"num_groups": 2, "num_inner_repetitions": 2}
QUERY = "layers/transformer_encoder/_self_attention_layer/query_dense/vars"


def same_block(weights: dict[str, np.ndarray], values: dict[str, np.ndarray], n: int) -> None:
    layer = f"layers/transformer_encoder_{n}" if n else "layers/transformer_encoder"
    pairs = {
        f"encoder/attention_{n}/query": f"{layer}/_self_attention_layer/query_dense",
        f"encoder/attention_{n}/key": f"{layer}/_self_attention_layer/key_dense",
        f"encoder/attention_{n}/value": f"{layer}/_self_attention_layer/value_dense",
        f"encoder/attention_{n}/output": f"{layer}/_self_attention_layer/output_dense",
        f"encoder/feed_forward_{n}/intermediate": f"{layer}/_feedforward_intermediate_dense",
        f"encoder/feed_forward_{n}/output": f"{layer}/_feedforward_output_dense",
    }
    for ours, theirs in pairs.items():
        for index, part in enumerate(("kernel", "bias")):
            flat = values[f"{theirs}/vars/{index}"].reshape(weights[f"{ours}/{part}"].shape)
            np.testing.assert_array_equal(weights[f"{ours}/{part}"], flat, ours)
    norms = {"attention": "_self_attention_layer_norm", "feed_forward": "_feedforward_layer_norm"}
    for ours, theirs in norms.items():
        for index, part in enumerate(("gamma", "beta")):
            expected = values[f"{layer}/{theirs}/vars/{index}"]
            np.testing.assert_array_equal(weights[f"encoder/{ours}_{n}/layer_norm/{part}"], expected)


@pytest.mark.parametrize("config", [CONFIG, GROUPS], ids=["shared", "groups"])
def test_every_variable_lands_where_it_belongs(tmp_path: Path, config: dict[str, Any]) -> None:
    values = variables(config)
    read = read_keras_hub(save(tmp_path, values, config))
    for n in range(config["num_groups"] * config["num_inner_repetitions"]):
        same_block(read.weights, values, n)
    places = {
        "embeddings/word_embedding/embeddings": "reversible_embedding/vars/0",
        "embeddings/segment_embedding/embeddings": "embedding/vars/0",
        "embeddings/position_embedding/embeddings": "position_embedding/vars/0",
        "embeddings/layer_norm/gamma": "layer_normalization/vars/0",
        "embeddings/layer_norm/beta": "layer_normalization/vars/1",
        "embeddings/projection/kernel": "dense/vars/0",
        "embeddings/projection/bias": "dense/vars/1",
        "pooler/kernel": "dense_1/vars/0",
        "pooler/bias": "dense_1/vars/1",
    }
    for ours, theirs in places.items():
        np.testing.assert_array_equal(read.weights[ours], values[f"layers/{theirs}"], ours)
    assert len(read.weights) == len(values) and (read.form, read.head) == ("keras-hub preset", "none")
    groups = {name: config[name] for name in ("num_groups", "num_inner_repetitions")}
    assert read.config == AlbertConfig(11, 6, 10, 4, 2, embedding_dim=4, max_sequence_length=7, **groups)


def test_layers_are_found_by_their_names(tmp_path: Path) -> None:
    """The number in a group's name is of the order of the layers in the model, which need not be that of the groups."""
    values = variables(GROUPS)
    expected = read_keras_hub(save(tmp_path / "plain", values, GROUPS))
    turned = {  # of transformer_encoder, _1, _2, _3 the last two swapped, and both dense layers
        path.replace("coder_2/", "coder_@/").replace("coder_3/", "coder_2/").replace("coder_@/", "coder_3/"): value
        for path, value in values.items()
    }
    turned = {
        path.replace("/dense/vars", "/@/vars").replace("/dense_1/", "/dense/").replace("/@/", "/dense_1/"): value
        for path, value in turned.items()
    }
    names = {"transformer_encoder_3": "group_1_inner_layer_0", "transformer_encoder_2": "group_1_inner_layer_1"}
    names |= {"dense_1": "embedding_projection", "dense": "pooled_dense"}
    folder = save(tmp_path / "named", turned, GROUPS)
    write_h5(folder / "model.weights.h5", turned, names)
    assert_same_weights(read_keras_hub(folder).weights, expected.weights)


def test_files_of_old_keras(tmp_path: Path) -> None:
    values = variables()
    expected = read_keras_hub(save(tmp_path / "new", values))
    old = {path.replace("layers/", "_layer_checkpoint_dependencies/", 1): value for path, value in values.items()}
    assert_same_weights(read_keras_hub(save(tmp_path / "old", old)).weights, expected.weights)


def test_state_beside_the_weights_is_left_behind(tmp_path: Path) -> None:
    values = variables()
    state = {
        "layers/dropout/seed_generator/vars/0": np.zeros(2, np.uint32),
        "layers/transformer_encoder/_self_attention_dropout/seed_generator/vars/0": np.zeros(2, np.uint32),
        "optimizer/vars/0": np.int64(3),
    }
    expected = read_keras_hub(save(tmp_path / "plain", values))
    assert_same_weights(read_keras_hub(save(tmp_path / "state", values | state)).weights, expected.weights)


def test_half_precision(tmp_path: Path) -> None:
    import ml_dtypes

    values = variables()
    halves = {path: value.astype(np.float16) for path, value in values.items()}
    read = read_keras_hub(save(tmp_path / "half", halves)).weights
    assert {weight.dtype for weight in read.values()} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(read["pooler/bias"], halves["layers/dense_1/vars/1"].astype(np.float32))
    folder = save(tmp_path / "bfloat16")
    with h5py.File(folder / "model.weights.h5", "r+") as file:
        del file["layers/dense_1/vars/1"]
        expected = values["layers/dense_1/vars/1"].astype(ml_dtypes.bfloat16)
        file["layers/dense_1/vars/1"] = expected.view("V2")
        file["layers/dense_1/vars/1"].attrs["dtype"] = "bfloat16"
    np.testing.assert_array_equal(read_keras_hub(folder).weights["pooler/bias"], expected.astype(np.float32))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers/dense/vars/1": None}, r"names of KerasHub: .* 1 missing: embedding_projection/1 \(6,\)"),
        ({"layers/dense_2/vars/0": np.zeros(3)}, r"1 not in the model: dense_2/0 \(3,\)"),
        ({"extra/vars/0": np.zeros(3)}, r"1 not in the model: extra/0 \(3,\)"),
        ({"stray": np.zeros(3)}, r"1 not in the model: /stray \(3,\)"),
        ({f"{QUERY}/0": np.zeros((6, 6), np.float32)}, r"query_dense/0 is \(6, 6\), expected \(6, 2, 3\)"),
        ({f"{QUERY}/1": np.full((2, 3), np.inf, np.float32)}, r"attention_0/query/bias: 6 of 6 values are NaN or inf"),
        ({f"{QUERY}/2": np.zeros((1, 2, 3), np.float32)}, r"1 not in the model: .*query_dense/2"),
    ],
)
def test_variables_that_do_not_fit(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    values = {path: value for path, value in (variables() | change).items() if value is not None}
    with pytest.raises(InputError, match=message):
        read_keras_hub(save(tmp_path, values))


def test_damaged_files(tmp_path: Path) -> None:
    folder = save(tmp_path)
    path = folder / "model.weights.h5"
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(InputError, match=r"cannot read .*model\.weights\.h5: .*damaged"):
        read_keras_hub(folder)
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(InputError, match="only a Git LFS pointer"):
        read_keras_hub(folder)
    path.unlink()
    with pytest.raises(InputError, match=r"cannot read .*model\.weights\.h5: No such file"):
        read_keras_hub(folder)


def test_a_file_cannot_point_to_other_files(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(24))
    folder = save(tmp_path / "preset")
    with h5py.File(folder / "model.weights.h5", "r+") as file:
        del file["layers/dense/vars/1"]
        file.create_dataset("layers/dense/vars/1", (6,), np.float32, external=[(tmp_path / "secret", 0, 24)])
    with pytest.raises(InputError, match=r"layers/dense/vars/1 points to another file"):
        read_keras_hub(folder)
    save(tmp_path / "other")
    with h5py.File(folder / "model.weights.h5", "r+") as file:
        del file["layers/dense/vars/1"]
        file["layers/dense/vars/1"] = h5py.ExternalLink(tmp_path / "other" / "model.weights.h5", "layers/dense/vars/1")
    with pytest.raises(InputError, match="1 missing: embedding_projection/1"):
        read_keras_hub(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"new_field": 1}, r"AlbertBackbone with unknown fields \['new_field'\]"),
        ({"hidden_dim": None}, r"missing fields \['hidden_dim'\]"),
        ({"num_heads": 4}, "hidden_dim: expected a multiple of num_heads"),
        ({"dtype": {"class_name": "QuantizedDTypePolicy", "config": {"mode": "int8"}}}, "quantised weights"),
        ({"dtype": "int8"}, "quantised weights"),
    ],
)
def test_configs_that_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=rf"config\.json: .*{message}"):
        read_keras_hub(save(tmp_path, **changes))


def test_presets_of_other_models_and_forms(tmp_path: Path) -> None:
    folder = save(tmp_path, dtype="mixed_bfloat16", num_groups=None, dropout=0.1)
    assert read_keras_hub(folder).config.attention_dropout == 0.1
    (folder / "model.weights.json").touch()
    with pytest.raises(InputError, match=r"weights in shards \(model\.weights\.json\); save the preset with max_shard"):
        read_keras_hub(folder)
    (folder / "model.weights.json").unlink()
    save_object(folder / "config.json", "BertBackbone", CONFIG)
    with pytest.raises(InputError, match="a preset of BertBackbone; albert-tf reads those of AlbertBackbone only"):
        read_keras_hub(folder)
    for text, message in (("{", "not JSON"), ('{"model_type": "albert"}', "expected an object that Keras saved")):
        (folder / "config.json").write_text(text)
        with pytest.raises(InputError, match=message):
            read_keras_hub(folder)


# === Heads ===


def save_classifier(folder: Path, **changes: Any) -> dict[str, np.ndarray]:
    head = {
        "layers/dense/vars/0": np.random.default_rng(1).standard_normal((6, 3)).astype(np.float32),
        "layers/dense/vars/1": np.arange(3, dtype=np.float32),
    }
    config = {"backbone": {}, "preprocessor": None, "num_classes": 3, "activation": "linear", "dropout": 0.2}
    save_object(save(folder) / "task.json", changes.pop("class_name", "AlbertTextClassifier"), config | changes)
    write_h5(folder / "task.weights.h5", head | {"optimizer/vars/0": np.int64(1)}, {"dense": "logits"})
    return head


@pytest.mark.parametrize("changes", [{}, {"class_name": "AlbertClassifier"}, {"activation": "softmax"}], ids=str)
def test_a_classifier(tmp_path: Path, changes: dict[str, Any]) -> None:
    head = save_classifier(tmp_path, **changes)
    read = read_keras_hub(tmp_path)
    np.testing.assert_array_equal(read.weights["classifier/kernel"], head["layers/dense/vars/0"])
    np.testing.assert_array_equal(read.weights["classifier/bias"], head["layers/dense/vars/1"])
    settings = {"labels": ["LABEL_0", "LABEL_1", "LABEL_2"], "classifier_dropout": 0.2}
    assert read.task == {"task": "classification", "settings": settings}
    assert read.config.masked_lm_layer_norm_epsilon is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class_name": "AlbertTagger"}, "a head of AlbertTagger; albert-tf knows AlbertTextClassifier"),
        ({"activation": "sigmoid"}, "activation = 'sigmoid': albert-tf's classifier ends in a softmax"),
        ({"num_classes": None}, "expected num_classes, at least 1, and dropout in .* got None"),
        ({"num_classes": 4}, r"logits/0 is \(6, 3\), expected \(6, 4\)"),
    ],
)
def test_heads_that_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    save_classifier(tmp_path, **changes)
    with pytest.raises(InputError, match=message):
        read_keras_hub(tmp_path)


def test_a_head_that_was_never_saved_is_none(tmp_path: Path) -> None:
    save_classifier(tmp_path)
    (tmp_path / "task.weights.h5").unlink()
    assert read_keras_hub(tmp_path).head == "none"


# === Out ===


@pytest.mark.parametrize(
    "config",
    [
        TINY,
        GROUPED,
        dataclasses.replace(TINY, sharing="none"),
        dataclasses.replace(TINY, embedding_dim=16),
        dataclasses.replace(TINY, hidden_dropout=0.1, attention_dropout=0.1),
    ],
    ids=["shared", "groups", "nothing shared", "equal widths", "dropout"],
)
def test_what_is_written_comes_back_bit_for_bit(tmp_path: Path, config: AlbertConfig) -> None:
    weights = random_weights(config)
    assert write_keras_hub(tmp_path / "out", config, weights, None) == []
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"config.json", "model.weights.h5"}
    read = read_keras_hub(tmp_path / "out")
    assert_same_weights(read.weights, weights)
    as_groups = {"sharing": "all", "num_groups": 3} if config.sharing == "none" else {}
    assert read.config == dataclasses.replace(config, **as_groups)


def test_the_file_is_laid_out_as_kerashub_does(tmp_path: Path) -> None:
    read = read_keras_hub(save(tmp_path / "theirs", variables(GROUPS), GROUPS))
    write_keras_hub(tmp_path / "ours", read.config, read.weights, None)
    held: dict[str, np.ndarray] = {}
    with h5py.File(tmp_path / "ours" / "model.weights.h5") as file:
        file.visititems(lambda path, item: held.update({path: item[...]}) if isinstance(item, h5py.Dataset) else None)
        assert file["layers/transformer_encoder_2/vars"].attrs["name"] == "group_1_inner_layer_0"
    assert_same_weights(held, variables(GROUPS))
    written = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert (written["class_name"], written["registered_name"]) == ("AlbertBackbone", "keras_hub>AlbertBackbone")
    assert written["config"] == {field: value for field, value in GROUPS.items() if field != "name"}


def test_the_tokenizer_comes_back_with_the_rules_of_the_original(tmp_path: Path) -> None:
    vocabulary = sentencepiece_vocabulary()
    config = dataclasses.replace(TINY, vocabulary_size=vocabulary.size)
    notes = write_keras_hub(tmp_path / "out", config, random_weights(config), AlbertTokenizer(vocabulary))
    assert notes == ["KerasHub's AlbertTokenizer neither lower-cases the text nor takes a comma off a digit"]
    assert (tmp_path / "out" / "assets" / "tokenizer" / "vocabulary.spm").read_bytes() == vocabulary.model
    tokenizer = load_tokenizer(load_checkpoint(tmp_path / "out"))
    assert tokenizer is not None and tokenizer.max_length == TINY.max_sequence_length
    assert tokenizer.vocabulary.options() == {"lower": True, "keep_accents": False, "quotes": False}


def test_what_has_no_place_there_is_told(tmp_path: Path) -> None:
    words = wordpiece_vocabulary()
    config = dataclasses.replace(TINY, vocabulary_size=words.size)
    weights = random_weights(config, heads=True)
    notes = write_keras_hub(tmp_path / "out", config, weights, AlbertTokenizer(words))
    assert notes == [
        "the head sentence_order is left out: KerasHub has none of its kind",
        "the head masked_lm is left out: KerasHub's has a layer norm with epsilon 1e-05",
        "the tokenizer is left out: KerasHub's AlbertTokenizer has SentencePiece models only",
    ]
    assert read_keras_hub(tmp_path / "out").head == "none"
    theirs = dataclasses.replace(config, masked_lm_layer_norm_epsilon=1e-5)
    assert write_keras_hub(tmp_path / "words", theirs, weights, None) == notes[:1]
    read = read_keras_hub(tmp_path / "words")
    assert read.config == theirs
    assert_same_weights(read.weights, {n: w for n, w in weights.items() if not n.startswith("sentence_order")})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation": "gelu_erf"}, "has activation=gelu_tanh only; this model has gelu_erf"),
        ({"activation": "relu"}, "has activation=gelu_tanh only"),
        ({"layer_norm_epsilon": 1e-6}, "has layer_norm_epsilon=1e-12 only"),
        ({"hidden_dropout": 0.1}, "one dropout rate; this model has hidden_dropout=0.1 and attention_dropout=0.0"),
        ({"num_groups": 2}, "wants num_layers to be a multiple of num_groups; got 3 and 2"),
        ({"sharing": "ffn"}, 'KerasHub shares a whole layer or nothing; it has no form for sharing="ffn"'),
        ({"factorization": "words"}, 'no form for factorization="words"'),
    ],
)
def test_architectures_without_a_form(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    config = dataclasses.replace(TINY, **change)
    with pytest.raises(InputError, match=message):
        write_keras_hub(tmp_path / "out", config, random_weights(config), None)
    assert not (tmp_path / "out").exists()


def test_a_pooler_is_needed_and_other_folders_are_not_replaced(tmp_path: Path) -> None:
    weights = random_weights(TINY)
    with pytest.raises(InputError, match="KerasHub's AlbertBackbone has a pooler; this checkpoint has none"):
        write_keras_hub(tmp_path / "out", TINY, {n: w for n, w in weights.items() if not n.startswith("pool")}, None)
    write_keras_hub(tmp_path / "out", TINY, weights, None)
    with pytest.raises(InputError, match="exists already"):
        write_keras_hub(tmp_path / "out", TINY, weights, None)
    write_keras_hub(tmp_path / "out", TINY, weights, None, overwrite=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").touch()
    with pytest.raises(InputError, match="is not a KerasHub preset"):
        write_keras_hub(tmp_path / "other", TINY, weights, None, overwrite=True)
