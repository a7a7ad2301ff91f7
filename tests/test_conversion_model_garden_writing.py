"""TF Model Garden checkpoints that we write: exactly the Garden's variables, and what has no place there is refused."""

import dataclasses

import numpy as np
import pytest
from garden_writer import CONFIG, RECORDED, dense, objects, trackable

from albert_tf.config import AlbertConfig
from albert_tf.conversion.model_garden import read_model_garden, write_model_garden
from albert_tf.errors import InputError
from albert_tf.parameters import backbone_weight_shapes, pretraining_head_weight_shapes
from albert_tf.presets import load_checkpoint
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from albert_tf.tokenization.training import train_sentencepiece

RANDOM = np.random.default_rng(6)
NARROW = dataclasses.replace(CONFIG, embedding_dim=12)


def random_weights(config=CONFIG, *heads):
    shapes = backbone_weight_shapes(config)
    shapes |= {n: s for n, s in pretraining_head_weight_shapes(config).items() if n.startswith(heads or "none")}
    return {name: RANDOM.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def written(folder):
    """Name → value, as TensorFlow lists them."""
    import tensorflow as tf

    reader = tf.train.load_checkpoint(str(folder))
    suffix = "/.ATTRIBUTES/VARIABLE_VALUE"
    names = [name for name in reader.get_variable_to_shape_map() if name.endswith(suffix)]
    return {name.removesuffix(suffix): reader.get_tensor(name) for name in names}


def test_the_file_has_exactly_the_variables_of_the_encoder(tmp_path):
    weights = random_weights()
    assert write_model_garden(tmp_path / "out", CONFIG, weights, None) == []
    found = written(tmp_path / "out")
    assert found.keys() == {f"encoder/{way}" for way in RECORDED} | {"save_counter"}
    for way, (ours, shape) in RECORDED.items():
        assert found[f"encoder/{way}"].shape == shape
        np.testing.assert_array_equal(found[f"encoder/{way}"].ravel(), weights[ours].ravel())
    assert AlbertConfig.from_json(tmp_path / "out" / "albert_config.json") == CONFIG
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "albert_config.json",
        "checkpoint",
        "ckpt-1.data-00000-of-00001",
        "ckpt-1.index",
    ]


@pytest.mark.parametrize("name", ["encoder", "model"])
def test_an_encoder_is_restored_by_either_name(name, tmp_path):
    import tensorflow as tf

    weights = random_weights()
    write_model_garden(tmp_path / "out", CONFIG, weights, None)
    zeros = objects({way: np.zeros(shape, np.float32) for way, (_, shape) in RECORDED.items()})
    target = trackable({name: zeros})
    status = target.restore(tf.train.latest_checkpoint(str(tmp_path / "out")))
    status.assert_consumed().assert_existing_objects_matched()
    restored = getattr(getattr(target, name), "layer_with_weights-6").kernel
    np.testing.assert_array_equal(restored, weights["pooler/kernel"])


@pytest.mark.parametrize("heads", [(), ("masked_lm",), ("sentence_order",), ("masked_lm", "sentence_order")])
@pytest.mark.parametrize("config", [CONFIG, NARROW, dataclasses.replace(CONFIG, activation="gelu_erf", num_segments=3)])
def test_there_and_back_bit_for_bit(config, heads, tmp_path, caplog):
    weights = random_weights(config, *heads)
    notes = write_model_garden(tmp_path / "out", config, weights, None)
    assert ("activation=tf_keras.activations.gelu" in " ".join(notes)) == (config.activation == "gelu_erf")
    back = load_checkpoint(tmp_path / "out")
    assert back.config == config and not caplog.records
    assert back.weights.keys() == weights.keys()
    for name, weight in weights.items():
        assert back.weights[name].tobytes() == weight.tobytes(), name


@pytest.mark.parametrize(
    ("name", "labels"), [("classifier", 4), ("token_classification", 4), ("question_answering", 2)]
)
def test_task_heads_there_and_back(name, labels, tmp_path):
    weights = random_weights() | {f"{name}/{part}": value for part, value in dense(12, labels).items()}
    names = ["a", "b", "c", "d"]
    notes = write_model_garden(
        tmp_path / "out", CONFIG, weights, None, task={"task": "x", "settings": {"labels": names}}
    )
    assert "a, b, c, d" in notes[0]
    back = read_model_garden(tmp_path / "out")
    assert back.head == name
    assert all(back.weights[key].tobytes() == weight.tobytes() for key, weight in weights.items())


def test_the_vocabulary_goes_along(tmp_path):
    lines = [
        "fire sun summer lava heat red",
        "ice snow frost winter freezing blue",
        "the a very day and it is in of this",
    ]
    tokenizer = AlbertTokenizer(train_sentencepiece(lines, 40))
    write_model_garden(tmp_path / "out", CONFIG, random_weights(), tokenizer)
    back = load_checkpoint(tmp_path / "out")
    assert back.tokenizer_path == tmp_path / "out" / "vocabulary.spm"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sharing": "ffn"}, "sharing='ffn'"),
        ({"num_groups": 3}, "num_groups=3"),
        ({"num_inner_repetitions": 2}, "num_inner_repetitions=2"),
        ({"factorization": "words"}, "factorization='words'"),
        ({"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon=1e-06"),
        ({"masked_lm_layer_norm_epsilon": 1e-5}, "masked_lm_layer_norm_epsilon=1e-05"),
        ({"num_heads": 1, "attention_dim": 8}, "attention_dim=8"),
    ],
)
def test_an_architecture_that_the_garden_has_not(changes, message, tmp_path):
    config = dataclasses.replace(CONFIG, **changes)
    with pytest.raises(InputError, match=f"has no form for .*{message}"):
        write_model_garden(tmp_path / "out", config, random_weights(config), None)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda weights: [weights.pop(f"pooler/{part}") for part in ("kernel", "bias")],
            "missing pooler/bias, pooler/k",
        ),
        (
            lambda weights: weights.update({"multiple_choice/kernel": np.zeros((12, 1), np.float32)}),
            "for multiple_choice/k",
        ),
        (
            lambda weights: [
                weights.update({f"{head}/{part}": value for part, value in dense(12, 2).items()})
                for head in ("classifier", "sentence_order")
            ],
            "heads classifier, sentence_order",
        ),
    ],
)
def test_a_head_that_the_garden_has_not(change, message, tmp_path):
    weights = random_weights()
    change(weights)
    with pytest.raises(InputError, match=message):
        write_model_garden(tmp_path / "out", CONFIG, weights, None)


def test_only_a_checkpoint_is_replaced_and_only_when_asked(tmp_path):
    write_model_garden(tmp_path / "out", CONFIG, random_weights(), None)
    weights = random_weights()
    with pytest.raises(InputError, match="exists already"):
        write_model_garden(tmp_path / "out", CONFIG, weights, None)
    write_model_garden(tmp_path / "out", CONFIG, weights, None, overwrite=True)
    np.testing.assert_array_equal(read_model_garden(tmp_path / "out").weights["pooler/bias"], weights["pooler/bias"])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.doc").touch()
    with pytest.raises(InputError, match="is not a Model Garden checkpoint"):
        write_model_garden(tmp_path / "mine", CONFIG, weights, None, overwrite=True)
    assert (tmp_path / "mine" / "thesis.doc").exists()
