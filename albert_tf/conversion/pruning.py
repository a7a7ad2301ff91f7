"""Structured pruning: attention heads and feed-forward columns are cut out of an encoder's matrices, which get narrower.

A shared block is one set of weights, so what it loses is lost in every pass that goes through it.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.conversion.checkpoint import Weights
from albert_tf.errors import InputError

Indices = tuple[tuple[int, ...], ...]  # of each block


@dataclasses.dataclass(frozen=True)
class Kept:
    """What stays: numbers from 0, rising.

    Attributes:
        heads: of each attention block; as many in each, since a config has one number of heads.
        columns: of each feed-forward block, alike.
    """

    heads: Indices
    columns: Indices

    @classmethod
    def all_of(cls, config: AlbertConfig) -> "Kept":
        """Everything there is."""
        attention, feed_forward = config.num_blocks
        return cls(
            (tuple(range(config.num_heads)),) * attention, (tuple(range(config.intermediate_dim)),) * feed_forward
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Heads and columns that a block keeps."""
        return len(self.heads[0]), len(self.columns[0])


@dataclasses.dataclass(frozen=True)
class Importance:
    """How much each head and column matters: the larger, the more. Comparable within a block.

    Attributes:
        heads: (N,) of each attention block.
        columns: (I,) of each feed-forward block.
    """

    heads: tuple[np.ndarray, ...]
    columns: tuple[np.ndarray, ...]

    def best(self, heads: int, columns: int) -> Kept:
        """The most important ones of each block; of equal ones the first."""
        return Kept(
            tuple(_largest(values, heads) for values in self.heads),
            tuple(_largest(values, columns) for values in self.columns),
        )


def magnitudes(config: AlbertConfig, weights: Weights) -> Importance:
    """The L2 norm of all weights that would be cut out with a head or column (Li et al., 2017, section 3.1, of filters):
    an importance that needs no data."""
    attention, feed_forward = config.num_blocks
    heads = [
        _squares(weights, f"encoder/attention_{i}", ("query", "key", "value")).reshape(config.num_heads, -1).sum(1)
        for i in range(attention)
    ]
    columns = [_squares(weights, f"encoder/feed_forward_{i}", ("intermediate",)) for i in range(feed_forward)]
    return Importance(tuple(map(np.sqrt, heads)), tuple(map(np.sqrt, columns)))


def cut(config: AlbertConfig, weights: Weights, kept: Kept) -> tuple[AlbertConfig, Weights]:
    """The config and the weights without what is not kept. The outputs are those of the whole encoder with the contexts of
    the heads, and the activations of the columns, set to zero.

    Args:
        config: of the weights.
        weights: our names; heads on the encoder stay as they are.
        kept: at least one head and one column of each block.

    Raises:
        InputError: another number of blocks, heads that are not there, or not as many of each block.
    """
    _check(kept.heads, config.num_blocks[0], config.num_heads, "heads", "attention block")
    _check(kept.columns, config.num_blocks[1], config.intermediate_dim, "columns", "feed-forward block")
    found = dict(weights)
    for index, heads in enumerate(kept.heads):
        places = np.arange(config.heads_dim).reshape(config.num_heads, -1)[list(heads)].ravel()
        block = f"encoder/attention_{index}"
        _narrow(found, block, ("query", "key", "value"), places)
    for index, columns in enumerate(kept.columns):
        _narrow(found, f"encoder/feed_forward_{index}", ("intermediate",), np.array(columns))
    num_heads, intermediate_dim = kept.shape
    narrower = dataclasses.replace(
        config, num_heads=num_heads, attention_dim=num_heads * config.head_dim, intermediate_dim=intermediate_dim
    )
    return narrower, found


def _narrow(weights: Weights, block: str, inner: Sequence[str], places: np.ndarray) -> None:
    """Keeps these outputs of the block's inner dense layers, and these inputs of its output layer."""
    for name in inner:
        for part in ("kernel", "bias"):
            weights[f"{block}/{name}/{part}"] = np.ascontiguousarray(weights[f"{block}/{name}/{part}"][..., places])
    weights[f"{block}/output/kernel"] = np.ascontiguousarray(weights[f"{block}/output/kernel"][places])


def _squares(weights: Weights, block: str, inner: Sequence[str]) -> np.ndarray:
    """The sum of squares of the weights that go with each output of the block's inner dense layers."""
    sums = np.square(weights[f"{block}/output/kernel"].astype(np.float64)).sum(1)
    for name in inner:
        sums = sums + np.square(weights[f"{block}/{name}/kernel"].astype(np.float64)).sum(0)
        sums = sums + np.square(weights[f"{block}/{name}/bias"].astype(np.float64))
    return sums


def _largest(values: np.ndarray, count: int) -> tuple[int, ...]:
    order = np.argsort(-values, kind="stable")[:count]
    return tuple(sorted(order.tolist()))


def _check(kept: Indices, blocks: int, there: int, what: str, block: str) -> None:
    if len(kept) != blocks:
        raise InputError(f"{what} to keep: expected those of {blocks} {block}s, got those of {len(kept)}")
    for index, numbers in enumerate(kept):
        if not numbers or sorted(set(numbers)) != list(numbers) or numbers[0] < 0 or numbers[-1] >= there:
            raise InputError(
                f"{what} to keep of {block} {index}: expected at least one of 0 to {there - 1}, each once, rising; got "
                f"{', '.join(map(str, numbers)) or 'none'}"
            )
    if len({len(numbers) for numbers in kept}) > 1:
        raise InputError(
            f"{what} to keep: expected as many of each {block}, as a config has one number of them; got "
            f"{', '.join(str(len(numbers)) for numbers in kept)}"
        )
