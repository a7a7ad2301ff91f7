"""TensorFlow 2 object checkpoints: the variables are found by following attributes from object to object.

The file has a name for each variable too, but that is only the shortest of the ways that lead to it.
"""

from collections import deque
from pathlib import Path

from albert_tf.conversion.tf1_files import Reader
from albert_tf.errors import InputError

GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VARIABLE = "VARIABLE_VALUE"


def is_object_checkpoint(index: Path) -> bool:
    """Whether an .index file is that of an object checkpoint. TensorFlow is not loaded: the names stand in it as text."""
    return index.is_file() and GRAPH.encode() in index.read_bytes()


class ObjectGraph:
    """The objects of one checkpoint, numbered; 0 is the one that was saved.

    Attributes:
        reader: of the checkpoint's variables.
        children: for each object, attribute → object.
        keys: for each object that is a variable, its name in the file.

    Raises:
        InputError: files missing or damaged, or a checkpoint without objects.
    """

    def __init__(self, prefix: Path) -> None:
        from google.protobuf.message import DecodeError
        from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

        self.reader = Reader(prefix)
        if GRAPH not in self.reader.shapes:
            raise InputError(f"{prefix}: expected a TensorFlow 2 object checkpoint; this one has no object graph")
        try:
            nodes = TrackableObjectGraph.FromString(self.reader.value(GRAPH).tobytes()).nodes
        except DecodeError as error:
            raise InputError(f"{prefix}: the object graph is damaged: copy the checkpoint again") from error
        self.children: list[dict[str, int]] = [{c.local_name: c.node_id for c in node.children} for node in nodes]
        self.keys: dict[int, str] = {
            number: attribute.checkpoint_key
            for number, node in enumerate(nodes)
            for attribute in node.attributes
            if attribute.name == _VARIABLE
        }
        if any(not 0 <= child < len(nodes) for children in self.children for child in children.values()):
            raise InputError(f"{prefix}: the object graph is damaged: copy the checkpoint again")

    def follow(self, node: int, path: str) -> int | None:
        """The object that the attributes in `path`, separated by slashes, lead to; None if one is not there."""
        for name in path.split("/"):
            child = self.children[node].get(name)
            if child is None:
                return None
            node = child
        return node

    def key(self, node: int, path: str) -> str | None:
        """The name in the file of the variable at `path`; None if there is none."""
        found = self.follow(node, path)
        return None if found is None else self.keys.get(found)

    def having(self, *names: str) -> list[int]:
        """The objects that have all these attributes."""
        return [node for node, children in enumerate(self.children) if children.keys() >= set(names)]

    def called(self, name: str) -> list[int]:
        """The objects that are some object's attribute `name`."""
        return sorted({children[name] for children in self.children if name in children})

    def path_to(self, node: int) -> tuple[str, ...]:
        """The shortest way from the saved object; an attribute's own name may hold slashes."""
        ways: dict[int, tuple[str, ...]] = {0: ()}
        waiting = deque(ways)
        while waiting and node not in ways:
            at = waiting.popleft()
            for name, child in self.children[at].items():
                if child not in ways:
                    ways[child] = (*ways[at], name)
                    waiting.append(child)
        return ways[node]
