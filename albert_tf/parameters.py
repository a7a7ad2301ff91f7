"""The name and shape of every weight of a config, and the parameter counts that follow, without building a model."""

import dataclasses
import math

from albert_tf.config import AlbertConfig

Shapes = dict[str, tuple[int, ...]]

# The first path segment of a weight's name → the row of a parameter table.
PARTS = ("word_table", "position_and_segment", "projection", "attention", "feed_forward", "pooler", "heads")


def backbone_weight_shapes(config: AlbertConfig, *, pooler: bool = True) -> Shapes:
    """Name → shape of the encoder's weights. The names are the paths of the built model's Keras variables."""
    embedding_dim, summed_dim, hidden_dim = config.embedding_dim, config.summed_dim, config.hidden_dim
    shapes: Shapes = {
        "embeddings/word_embedding/embeddings": (config.vocabulary_size, embedding_dim),
        "embeddings/segment_embedding/embeddings": (config.num_segments, summed_dim),
        "embeddings/position_embedding/embeddings": (config.max_sequence_length, summed_dim),
        **_layer_norm("embeddings/layer_norm", summed_dim),
    }
    if config.factorization == "words":
        shapes["embeddings/projection/kernel"] = (embedding_dim, hidden_dim)
    elif config.has_projection:
        shapes |= _dense("embeddings/projection", embedding_dim, hidden_dim)
    attention_blocks, feed_forward_blocks = config.num_blocks
    for index in range(attention_blocks):
        for name in ("query", "key", "value"):
            shapes |= _dense(f"encoder/attention_{index}/{name}", hidden_dim, config.heads_dim)
        shapes |= _dense(f"encoder/attention_{index}/output", config.heads_dim, hidden_dim)
        shapes |= _layer_norm(f"encoder/attention_{index}/layer_norm", hidden_dim)
    for index in range(feed_forward_blocks):
        shapes |= _dense(f"encoder/feed_forward_{index}/intermediate", hidden_dim, config.intermediate_dim)
        shapes |= _dense(f"encoder/feed_forward_{index}/output", config.intermediate_dim, hidden_dim)
        shapes |= _layer_norm(f"encoder/feed_forward_{index}/layer_norm", hidden_dim)
    if pooler:
        shapes |= _dense("pooler", hidden_dim, hidden_dim)
    return shapes


def pretraining_head_weight_shapes(config: AlbertConfig) -> Shapes:
    """Name → shape of the masked-word head and the sentence-order head.

    The masked-word head's output matrix is the word table itself (with factorization="words" times the projection), so
    of it only the bias counts.
    """
    return {
        **_dense("masked_lm/transform", config.hidden_dim, config.summed_dim),
        **_layer_norm("masked_lm/layer_norm", config.summed_dim),
        "masked_lm/output_bias": (config.vocabulary_size,),
        **_dense("sentence_order", config.hidden_dim, 2),
    }


@dataclasses.dataclass(frozen=True)
class ParameterCounts:
    """Parameters of each part of a model; `parts` has the keys `PARTS`."""

    parts: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    @property
    def embedding(self) -> int:
        """Everything before the first encoder layer: the three tables, their layer norm and the projection."""
        return self.parts["word_table"] + self.parts["position_and_segment"] + self.parts["projection"]

    @property
    def encoder(self) -> int:
        """The weights of all encoder layers together: one layer's where all of them share."""
        return self.parts["attention"] + self.parts["feed_forward"]


def count_parameters(config: AlbertConfig, *, pooler: bool = True, heads: bool = False) -> ParameterCounts:
    """Exact counts by part; `heads` adds the two pretraining heads. Equal to the built model's (tested)."""
    parts = dict.fromkeys(PARTS, 0)
    for name, shape in backbone_weight_shapes(config, pooler=pooler).items():
        parts[_part(name)] += math.prod(shape)
    if heads:
        parts["heads"] = sum(math.prod(shape) for shape in pretraining_head_weight_shapes(config).values())
    return ParameterCounts(parts)


def multiply_adds(config: AlbertConfig, length: float) -> float:
    """Multiplications with an addition that the encoder makes for each token of a text of `length` tokens, by the matrix
    multiplications alone. A shared block counts each time it runs; the pooler and heads, once a text, do not."""
    attention = 4 * config.hidden_dim * config.heads_dim + 2 * length * config.heads_dim
    feed_forward = 2 * config.hidden_dim * config.intermediate_dim
    projection = config.embedding_dim * config.hidden_dim if config.has_projection else 0
    return len(config.block_schedule) * (attention + feed_forward) + projection


def bert_counterpart(config: AlbertConfig) -> AlbertConfig:
    """The same encoder as BERT would build it: tables as wide as the encoder, no layer sharing anything."""
    return dataclasses.replace(
        config, embedding_dim=config.hidden_dim, factorization="embeddings", sharing="none", num_groups=1
    )


def _part(name: str) -> str:
    if name.startswith("embeddings/word_embedding"):
        return "word_table"
    if name.startswith("embeddings/projection"):
        return "projection"
    if name.startswith("embeddings/"):
        return "position_and_segment"
    if name.startswith("encoder/attention"):
        return "attention"
    return "feed_forward" if name.startswith("encoder/") else "pooler"


def _dense(name: str, inputs: int, outputs: int) -> Shapes:
    return {f"{name}/kernel": (inputs, outputs), f"{name}/bias": (outputs,)}


def _layer_norm(name: str, width: int) -> Shapes:
    return {f"{name}/gamma": (width,), f"{name}/beta": (width,)}
