"""SavedModels as files: the graph, and the vocabulary of a preprocessing model. Nothing in them is run."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from albert_tf.conversion.archive import keep_until_exit
from albert_tf.conversion.tf1_files import vocabulary_in
from albert_tf.errors import InputError
from albert_tf.files import refuse_special

FILE_NAME = "saved_model.pb"


def read_saved_model(folder: Path) -> Any:
    """The first MetaGraphDef of a SavedModel.

    Raises:
        InputError: no such file, or a damaged one.
    """
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    path = folder / FILE_NAME
    refuse_special(path)
    try:
        return SavedModel.FromString(path.read_bytes()).meta_graphs[0]
    except (DecodeError, IndexError, OSError) as error:
        raise InputError(f"{path}: damaged or not a SavedModel: {error}; copy the folder again") from error


def saved_model_vocabulary(folder: Path) -> Path:
    """The vocabulary file of a SavedModel: among its assets, or a copy of the one that a SentencePiece operation holds.

    The copy, as of `tensorflow/albert_en_preprocess`, is removed when the process ends.

    Raises:
        InputError: none, or several.
    """
    if (asset := vocabulary_in(folder)) is not None:
        return asset
    models = {node.attr["model"].s for node in _nodes(read_saved_model(folder)) if node.op == "SentencepieceOp"}
    if len(models) != 1:
        raise InputError(
            f"{folder}: expected a SavedModel with one vocabulary, among its assets or in a SentencePiece operation; found "
            f"{len(models) or 'none'}"
        )
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "vocabulary.model"
        path.write_bytes(models.pop())
        return keep_until_exit(path)


def _nodes(graph: Any) -> Iterator[Any]:
    yield from graph.graph_def.node
    for function in graph.graph_def.library.function:
        yield from function.node_def
