"""Which objects of a TF Model Garden checkpoint are the encoder and its heads, and when that cannot be told."""

import numpy as np
import pytest
from garden_writer import CONFIG, RECORDED, RECORDED_MASKED_LM, arrays, dense, objects, trackable

from albert_tf.conversion.model_garden_tables import encoder_table, find_parts
from albert_tf.conversion.object_graph import ObjectGraph
from albert_tf.errors import InputError
from albert_tf.parameters import backbone_weight_shapes


def encoder():
    return objects(arrays(RECORDED))


def graph_of(tree, folder):
    trackable(tree).save(str(folder / "ckpt"))
    return ObjectGraph(folder / "ckpt-1")


def test_every_weight_of_the_encoder_has_its_place():
    assert encoder_table(True).keys() == backbone_weight_shapes(CONFIG).keys()
    assert {variable.path for variable in encoder_table(True).values()} == RECORDED.keys()


def test_an_encoder_alone(tmp_path):
    graph = graph_of({"x": {"y": encoder()}}, tmp_path)
    parts = find_parts(graph)
    assert list(parts) == ["encoder"]
    assert graph.path_to(parts["encoder"].node) == ("x", "y")


def test_one_encoder_under_many_names_is_one(tmp_path):
    tree = encoder()
    head = {"out_proj": dense(12, 2)}
    model = {"layer_with_weights-0": tree, "layer_with_weights-1": head, "_network": tree, "classifier": head}
    parts = find_parts(graph_of({"encoder": tree, "model": model, "_network": tree}, tmp_path))
    assert list(parts) == ["encoder", "head"]
    assert list(parts["head"].table) == ["classifier/kernel", "classifier/bias"]


def test_bert_and_several_models_are_told(tmp_path):
    layers = {f"layer_with_weights-{n}": encoder()["layer_with_weights-5"] for n in range(4, 7)}
    with pytest.raises(InputError, match="found 3 of them: BERT, or several models"):
        find_parts(graph_of({"model": layers}, tmp_path / "bert"))
    with pytest.raises(InputError, match="found 2 of them"):
        find_parts(graph_of({"student": encoder(), "teacher": encoder()}, tmp_path / "two"))


def test_another_model_is_told(tmp_path):
    with pytest.raises(InputError, match="with one layer that is used again and again; found none"):
        find_parts(graph_of({"model": {"layer_with_weights-0": dense(3, 3)}}, tmp_path / "other"))
    block = encoder()["layer_with_weights-5"]
    with pytest.raises(InputError, match="the shared layer is in no AlbertEncoder"):
        find_parts(graph_of({"model": {"block": block}}, tmp_path / "block"))


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ({"a": {"out_proj": dense(12, 2)}, "b": {"out_proj": dense(12, 3)}}, "2 of head"),
        ({"classifier": dense(12, 3), "b": {"out_proj": dense(12, 3)}}, "2 of head"),
        ({"a.pooler_dense": dense(12, 12), "b": {"out_proj": dense(12, 3), "dense": dense(12, 12)}}, "2 of pooler"),
    ],
)
def test_two_heads_of_a_kind(heads, message, tmp_path):
    with pytest.raises(InputError, match=f"expected one encoder and one head of a kind, found {message}"):
        find_parts(graph_of({"encoder": encoder(), **heads}, tmp_path))


def test_a_masked_word_head_that_is_not_tied(tmp_path):
    tree = encoder()
    head = objects(arrays(RECORDED_MASKED_LM))
    tied = head | {"embedding_table": tree["layer_with_weights-0"]["embeddings"]}
    assert list(find_parts(graph_of({"encoder": tree, "masked_lm": tied}, tmp_path / "tied"))) == [
        "encoder",
        "masked_lm",
    ]
    own = head | {"embedding_table": np.zeros((40, 8), np.float32)}
    with pytest.raises(InputError, match="a word table of its own"):
        find_parts(graph_of({"encoder": tree, "masked_lm": own}, tmp_path / "own"))


def test_the_head_of_a_pretrainer_is_for_sentence_order(tmp_path):
    heads = {"0": {"out_proj": dense(12, 2), "dense": dense(12, 12)}}
    parts = find_parts(graph_of({"encoder_network": encoder(), "classification_heads": heads}, tmp_path))
    assert list(parts) == ["encoder", "head", "pooler"]
    assert list(parts["head"].table) == ["sentence_order/kernel", "sentence_order/bias"]
