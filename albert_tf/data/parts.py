"""One batch as the parts of the replicas that train on it together."""

from collections.abc import Iterator, Sequence

import numpy as np

Arrays = dict[str, np.ndarray]


def replica_parts(
    inputs: Arrays, targets: Arrays, shares: Sequence[str], own: range, replicas: int
) -> Iterator[tuple[Arrays, Arrays]]:
    """The parts of the replicas `own`, in turn.

    All have as many examples, ⌈B / `replicas`⌉; where there are too few, the first example of the batch fills up, with
    no share in the loss.

    Args:
        inputs: arrays of (B · rows of an example, …).
        targets: arrays of (B, …).
        shares: the targets that say how much an example adds to the loss of the whole batch.
        own: numbers of replicas.
        replicas: of all workers together.
    """
    examples = len(targets[shares[0]])
    size = -(-examples // replicas)
    for replica in own:
        chosen = np.arange(replica * size, (replica + 1) * size)
        filling = chosen >= examples
        chosen[filling] = 0
        rows = {name: _chosen(array, examples, chosen) for name, array in inputs.items()}
        wanted = {name: _chosen(array, examples, chosen) for name, array in targets.items()}
        for name in shares:
            wanted[name] = np.where(filling, np.float32(0), wanted[name])
        yield rows, wanted


def _chosen(array: np.ndarray, examples: int, chosen: np.ndarray) -> np.ndarray:
    """The rows of the chosen examples, of which each has equally many."""
    by_example = array.reshape(examples, len(array) // examples, *array.shape[1:])[chosen]
    return by_example.reshape(-1, *array.shape[1:])
