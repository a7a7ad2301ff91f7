"""The vocabulary of a SavedModel: a file among its assets, or the one that an operation of its graph holds."""

import pytest

from albert_tf.conversion.saved_model import read_saved_model, saved_model_vocabulary
from albert_tf.errors import InputError


def save_graph(folder, *models, in_function=False):
    """A SavedModel with a SentencePiece operation for each model."""
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    saved = SavedModel()
    graph = saved.meta_graphs.add().graph_def
    nodes = graph.library.function.add().node_def if in_function else graph.node
    for index, model in enumerate(models):
        node = nodes.add(name=f"tokenizer_{index}", op="SentencepieceOp")
        node.attr["model"].s = model
    folder.mkdir(exist_ok=True)
    (folder / "saved_model.pb").write_bytes(saved.SerializeToString())
    return folder


@pytest.mark.parametrize("name", ["30k-clean.model", "vocabulary.spm", "vocab.txt"])
def test_an_asset(name, tmp_path):
    save_graph(tmp_path, b"another")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / name).write_bytes(b"model")
    assert saved_model_vocabulary(tmp_path) == tmp_path / "assets" / name


@pytest.mark.parametrize("in_function", [False, True])
def test_an_operation(in_function, tmp_path):
    path = saved_model_vocabulary(save_graph(tmp_path, b"pieces\0\0", b"pieces\0\0", in_function=in_function))
    assert path.suffix == ".model" and path.read_bytes() == b"pieces\0\0"
    assert tmp_path not in path.parents


@pytest.mark.parametrize(("models", "found"), [((), "none"), ((b"one", b"two"), "2")])
def test_none_or_several(models, found, tmp_path):
    with pytest.raises(InputError, match=f"expected a SavedModel with one vocabulary.*found {found}"):
        saved_model_vocabulary(save_graph(tmp_path, *models))


@pytest.mark.parametrize("contents", [b"", b"\xff\xff no graph"])
def test_a_damaged_graph(contents, tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(contents)
    with pytest.raises(InputError, match="damaged or not a SavedModel"):
        read_saved_model(tmp_path)
