"""Object checkpoints: following attributes, and what is none."""

import numpy as np
import pytest
from garden_writer import trackable
from tf1_writer import save_folder

from albert_tf.conversion.object_graph import ObjectGraph, is_object_checkpoint
from albert_tf.errors import InputError


@pytest.fixture
def graph(tmp_path):
    shared = {"kernel": np.ones((2, 3), np.float32)}
    trackable({"a": {"b/c": shared, "list": {"0": shared}}, "d": shared}).save(str(tmp_path / "ckpt"))
    return ObjectGraph(tmp_path / "ckpt-1")


def test_every_way_leads_to_the_same_object(graph):
    found = graph.follow(0, "d")
    assert found == graph.follow(0, "a/list/0")
    assert graph.called("0") == graph.called("b/c") == [found]
    assert graph.having("kernel") == [found]
    key = graph.key(0, "d/kernel")
    assert key is not None and key == graph.key(0, "a/list/0/kernel")
    np.testing.assert_array_equal(graph.reader.stored(key).read(), np.ones((2, 3)))


def test_ways_that_end(graph):
    assert graph.follow(0, "a/x/0") is None
    assert graph.key(0, "a") is None and graph.key(0, "a/x") is None
    assert graph.having("kernel", "bias") == [] and graph.called("kernels") == []


def test_the_shortest_way_back(graph):
    assert graph.path_to(0) == ()
    assert graph.path_to(graph.follow(0, "d/kernel")) == ("d", "kernel")
    assert graph.path_to(graph.follow(0, "a/list")) == ("a", "list")


def test_a_graph_that_ends_in_zero_bytes_is_read_whole(tmp_path):
    """Its last field is a number or a text; NumPy's strings would drop zeros there."""
    import tensorflow as tf
    from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

    graph = TrackableObjectGraph()
    graph.nodes.add().children.add(local_name="a\0\0", node_id=1)
    graph.nodes.add().attributes.add(name="VARIABLE_VALUE", checkpoint_key="v").full_name = "x\0\0"
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "m"),
        tensor_names=["_CHECKPOINTABLE_OBJECT_GRAPH", "v"],
        shape_and_slices=["", ""],
        tensors=[tf.constant(graph.SerializeToString()), tf.zeros(2)],
    )
    assert ObjectGraph(tmp_path / "m").key(0, "a\0\0") == "v"


def test_a_graph_that_is_damaged(tmp_path):
    import tensorflow as tf
    from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

    far = TrackableObjectGraph()
    far.nodes.add().children.add(local_name="a", node_id=5)
    before = TrackableObjectGraph()
    before.nodes.add().children.add(local_name="a", node_id=-2)
    graphs = {"text": b"\xffno message", "far": far.SerializeToString(), "before": before.SerializeToString()}
    for name, contents in graphs.items():
        tf.raw_ops.SaveV2(
            prefix=str(tmp_path / name),
            tensor_names=["_CHECKPOINTABLE_OBJECT_GRAPH"],
            shape_and_slices=[""],
            tensors=[tf.constant(contents)],
        )
        with pytest.raises(InputError, match="the object graph is damaged"):
            ObjectGraph(tmp_path / name)


def test_a_tf1_checkpoint_is_none(tmp_path):
    prefix = save_folder(tmp_path) / "model.ckpt-best"
    assert not is_object_checkpoint(prefix.with_name("model.ckpt-best.index"))
    assert not is_object_checkpoint(tmp_path / "absent.index")
    with pytest.raises(InputError, match="this one has no object graph"):
        ObjectGraph(prefix)


def test_an_object_checkpoint_is_one(graph, tmp_path):
    assert is_object_checkpoint(tmp_path / "ckpt-1.index")
