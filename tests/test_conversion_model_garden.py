"""TF Model Garden checkpoints: every variable arrives under our name wherever it stands, and goes back there."""

import dataclasses
import math
import shutil

import numpy as np
import pytest
from garden_writer import (
    CONFIG,
    RECORDED,
    RECORDED_MASKED_LM,
    RECORDED_WITHOUT_PROJECTION,
    arrays,
    dense,
    objects,
    save,
)

from albert_tf.conversion.detect import MODEL_GARDEN, detect
from albert_tf.conversion.model_garden import read_model_garden
from albert_tf.conversion.tf1_files import Reader
from albert_tf.errors import InputError
from albert_tf.parameters import backbone_weight_shapes
from albert_tf.presets import load_checkpoint

NARROW = dataclasses.replace(CONFIG, embedding_dim=12)


def encoder():
    """The variables by their way, and the tree of them."""
    values = arrays(RECORDED)
    return values, objects(values)


def masked_lm(encoder_tree):
    """The variables by their way, and the object, tied to the encoder's word table."""
    values = arrays(RECORDED_MASKED_LM, seed=1)
    return values, objects(values) | {"embedding_table": encoder_tree["layer_with_weights-0"]["embeddings"]}


def same(weights, values, recorded):
    for way, (ours, shape) in recorded.items():
        assert values[way].shape == shape
        np.testing.assert_array_equal(weights[ours].ravel(), values[way].ravel(), ours)


# === In: the encoder ===


@pytest.mark.parametrize("way", [(), ("model",), ("encoder",), ("encoder", "encoder_network"), ("a", "b/c", "0")])
def test_every_variable_arrives_wherever_the_encoder_stands(way, tmp_path):
    values, tree = encoder()
    for name in reversed(way):
        tree = {name: tree}
    checkpoint = read_model_garden(save(tmp_path, tree))
    assert checkpoint.config == CONFIG
    assert checkpoint.form == MODEL_GARDEN and checkpoint.head == "none"
    assert {name: weight.shape for name, weight in checkpoint.weights.items()} == backbone_weight_shapes(CONFIG)
    same(checkpoint.weights, values, RECORDED)


def test_without_a_projection(tmp_path):
    values = arrays(RECORDED_WITHOUT_PROJECTION)
    checkpoint = read_model_garden(save(tmp_path, {"model": objects(values)}, NARROW))
    assert checkpoint.config == NARROW
    assert len(checkpoint.weights) == len(RECORDED) - 2
    same(checkpoint.weights, values, RECORDED_WITHOUT_PROJECTION)


def test_heads_are_columns_of_our_kernels_in_order(tmp_path):
    values, tree = encoder()
    weights = read_model_garden(save(tmp_path, tree)).weights
    query = values["layer_with_weights-5/_attention_layer/_query_dense/kernel"]
    np.testing.assert_array_equal(weights["encoder/attention_0/query/kernel"][:, 4:8], query[:, 1])
    output = values["layer_with_weights-5/_attention_layer/_output_dense/kernel"]
    np.testing.assert_array_equal(weights["encoder/attention_0/output/kernel"][4:8], output[1])


@pytest.mark.parametrize("given", ["", "ckpt-1", "ckpt-1.index", "ckpt-1.data-00000-of-00001"])
def test_what_can_be_given(given, tmp_path):
    values, tree = encoder()
    save(tmp_path / "trained", {"model": tree})
    assert detect(tmp_path / "trained" / given) == MODEL_GARDEN
    same(load_checkpoint(tmp_path / "trained" / given).weights, values, RECORDED)


def test_of_several_checkpoints_the_latest_or_the_one_named(tmp_path):
    first, second = arrays(RECORDED), arrays(RECORDED, seed=1)
    save(tmp_path / "other", objects(second))
    save(tmp_path / "trained", objects(first))
    for path in (tmp_path / "other").glob("ckpt-1.*"):
        shutil.copy(path, tmp_path / "trained" / path.name.replace("ckpt-1", "ckpt-2"))
    same(read_model_garden(tmp_path / "trained").weights, first, RECORDED)  # what the file `checkpoint` says
    same(read_model_garden(tmp_path / "trained" / "ckpt-2").weights, second, RECORDED)


def test_every_variable_is_read_once_the_largest_first(tmp_path, monkeypatch):
    """So there is never a second copy of a large one."""
    tree = encoder()[1]
    pooler = tree["layer_with_weights-6"] | {"kernel": tree["layer_with_weights-6"]["kernel"] + 1}
    heads = {"0": {"dense": pooler, "out_proj": dense(12, 2)}}
    save(tmp_path, {"model": {"encoder_network": tree, "classification_heads": heads}})
    read, value = [], Reader.value
    monkeypatch.setattr(Reader, "value", lambda self, name: read.append((name, self.shapes[name])) or value(self, name))
    weights = read_model_garden(tmp_path).weights
    assert sorted(name for name, _ in read) == sorted(Reader(tmp_path / "ckpt-1").shapes)
    sizes = [math.prod(shape) for _, shape in read[1 : len(weights) + 1]]
    assert sizes == sorted(sizes, reverse=True)


def test_a_vocabulary_beside_the_checkpoint(tmp_path):
    save(tmp_path, encoder()[1])
    (tmp_path / "30k-clean.model").write_bytes(b"model")
    assert read_model_garden(tmp_path).tokenizer_path == tmp_path / "30k-clean.model"
    (tmp_path / "vocab.txt").write_text("a")
    with pytest.raises(InputError, match="expected one vocabulary file"):
        read_model_garden(tmp_path)


@pytest.mark.parametrize("lower", [True, False])
def test_whether_text_is_lower_cased_is_read(lower, tmp_path):
    """The TF-Hub form of a model with a WordPiece vocabulary has it beside the encoder."""
    save(tmp_path, {"layer_with_weights-0": encoder()[1], "do_lower_case": np.array(lower)})
    assert read_model_garden(tmp_path).tokenizer_options == {"lower": lower}


def test_what_a_training_keeps_is_left_behind(tmp_path):
    tree = encoder()[1]
    slots = {"0": {"m": dense(3, 3)}, "_variables": dense(2, 2)}
    metrics = {"metrics": {"0": {"total": np.float32([1])}}}
    trained = {
        "model": tree | {"keras_api": metrics, "optimizer": slots},
        "optimizer": slots,
        "global_step": np.int64([7]),
    }
    assert len(read_model_garden(save(tmp_path, trained)).weights) == len(RECORDED)


# === In: heads ===


def test_a_pretrainer(tmp_path, caplog):
    values, tree = encoder()
    head_values, head = masked_lm(tree)
    sentence = {"dense": dense(12, 12), "out_proj": dense(12, 2)}
    model = {"encoder_network": tree, "masked_lm": head, "classification_heads": {"0": sentence}}
    items = {"encoder": tree, "masked_lm": head, "next_sentence.pooler_dense": sentence["dense"]}
    checkpoint = read_model_garden(save(tmp_path, {"model": model} | items))
    assert checkpoint.head == "pretraining"
    same(checkpoint.weights, head_values, RECORDED_MASKED_LM)
    np.testing.assert_array_equal(checkpoint.weights["sentence_order/kernel"], sentence["out_proj"]["kernel"])
    np.testing.assert_array_equal(checkpoint.weights["pooler/kernel"], sentence["dense"]["kernel"])
    np.testing.assert_array_equal(checkpoint.weights["pooler/bias"], sentence["dense"]["bias"])
    assert "the pooler is the head's own" in caplog.text
    encoder_alone = {way: value for way, value in values.items() if "weights-6" not in way}
    same(checkpoint.weights, encoder_alone, {way: RECORDED[way] for way in encoder_alone})


def test_a_copy_of_the_pooler_in_the_head_is_not_told(tmp_path, caplog):
    tree = encoder()[1]
    pooler = {name: value.copy() for name, value in tree["layer_with_weights-6"].items()}
    read_model_garden(save(tmp_path, {"encoder": tree, "next_sentence.pooler_dense": pooler}))
    assert not caplog.records


@pytest.mark.parametrize("own_pooler", [False, True])
def test_a_classifier(own_pooler, tmp_path):
    values, tree = encoder()
    head = {"out_proj": dense(12, 3)} | ({"dense": dense(12, 12)} if own_pooler else {})
    model = {"layer_with_weights-0": tree, "layer_with_weights-1": head, "_network": tree, "classifier": head}
    checkpoint = read_model_garden(save(tmp_path, {"model": model, "encoder": tree}))
    assert checkpoint.head == "classifier"
    np.testing.assert_array_equal(checkpoint.weights["classifier/kernel"], head["out_proj"]["kernel"])
    np.testing.assert_array_equal(checkpoint.weights["classifier/bias"], head["out_proj"]["bias"])
    pooler = head["dense"]["kernel"] if own_pooler else values["layer_with_weights-6/kernel"]
    np.testing.assert_array_equal(checkpoint.weights["pooler/kernel"], pooler)


def test_a_tagger_and_a_span_labeler(tmp_path):
    tree, head = encoder()[1], dense(12, 5)
    tagger = save(tmp_path / "tags", {"model": {"layer_with_weights-0": tree, "classifier": head}})
    np.testing.assert_array_equal(read_model_garden(tagger).weights["token_classification/kernel"], head["kernel"])
    head = dense(12, 2)
    labeler = {"layer_with_weights-0": tree, "span_labeling": {"layer_with_weights-0": head}}
    weights = read_model_garden(save(tmp_path / "spans", {"model": labeler})).weights
    np.testing.assert_array_equal(weights["question_answering/bias"], head["bias"])


# === In: what is wrong ===


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (lambda tree: tree["layer_with_weights-3"].pop("beta"), ["1 missing: layer_with_weights-3/beta (our embedd"]),
        (lambda tree: tree.update(extra=dense(4, 4)), ["2 unknown: ", "extra/bias", "extra/kernel", "(4, 4)"]),
        (
            lambda tree: tree["layer_with_weights-6"].update(dense(12, 13)),
            ["2 of another shape", "layer_with_weights-6/kernel", "is (12, 13), expected (12, 12)"],
        ),
        (
            lambda tree: tree["layer_with_weights-2"].update(embeddings=np.zeros((2, 8, 1), np.float32)),
            ["1 of another shape", "is (2, 8, 1), expected ('T', 'E')"],
        ),
        (lambda tree: tree["layer_with_weights-6"].update(kernel=np.zeros((12, 12), np.int32)), ["floating-point"]),
        (
            lambda tree: tree["layer_with_weights-6"].update(kernel=np.full((12, 12), np.nan, np.float32)),
            ["pooler/kernel", "NaN"],
        ),
    ],
)
def test_what_does_not_fit_is_named(change, messages, tmp_path):
    tree = encoder()[1]
    change(tree)
    with pytest.raises(InputError) as error:
        read_model_garden(save(tmp_path, {"model": tree}))
    for message in messages:
        assert message in str(error.value)


def test_one_variable_in_two_places(tmp_path):
    """A file that says so of query and key was made by hand."""
    tree = encoder()[1]
    attention = tree["layer_with_weights-5"]["_attention_layer"]
    attention["_key_dense"] = attention["_query_dense"]
    with pytest.raises(InputError, match="is the variable of two places, encoder/attention_0/key/kernel and another"):
        read_model_garden(save(tmp_path, {"model": tree}))


def test_heads_that_do_not_make_the_width(tmp_path):
    tree = encoder()[1]
    attention = tree["layer_with_weights-5"]["_attention_layer"]
    for name in ("_query_dense", "_key_dense", "_value_dense"):
        attention[name] = {"kernel": np.zeros((12, 3, 5), np.float32), "bias": np.zeros((3, 5), np.float32)}
    attention["_output_dense"]["kernel"] = np.zeros((3, 5, 12), np.float32)
    with pytest.raises(InputError, match="3 heads of 5 do not make the width 12"):
        read_model_garden(save(tmp_path, {"model": tree}))


@pytest.mark.parametrize("damage", ["cut", "flipped", "no data", "index"])
def test_damaged_files(damage, tmp_path):
    save(tmp_path, {"model": encoder()[1]})
    data, index = tmp_path / "ckpt-1.data-00000-of-00001", tmp_path / "ckpt-1.index"
    contents = data.read_bytes()
    if damage == "cut":
        data.write_bytes(contents[: len(contents) // 2])
    elif damage == "flipped":
        place = contents.index(arrays(RECORDED)["layer_with_weights-6/kernel"].tobytes())
        data.write_bytes(contents[:place] + bytes([contents[place] ^ 1]) + contents[place + 1 :])
    elif damage == "no data":
        data.unlink()
    else:
        index.write_bytes(index.read_bytes()[:100])
    with pytest.raises(InputError, match=r"damaged|there is none"):
        read_model_garden(tmp_path)
