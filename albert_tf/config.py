"""The shape of an ALBERT model: `AlbertConfig`, and the published shapes by name in `CONFIGS`.

Nothing here needs TensorFlow. `block_schedule` says which layer uses which weights: sharing is defined there.
"""

import dataclasses
import json
import math
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.files import checked_path, read_json, written_whole
from albert_tf.published_config import fields_from_published, published_fields

FACTORIZATIONS = ("embeddings", "words")
_LARGEST, _MOST_STEPS = 100_000_000, 10_000  # more than any model has
SHARING_MODES = ("all", "attention", "ffn", "none")
ACTIVATIONS = ("gelu_tanh", "gelu_erf", "relu", "linear")


@dataclasses.dataclass(frozen=True)
class AlbertConfig:
    """The architecture of one ALBERT encoder (Lan et al., ICLR 2020, section 3).

    Attributes:
        vocabulary_size: rows of the word table, V.
        embedding_dim: width of the word table, E.
        factorization: what is E wide, until a dense layer projects it to H (factorised embedding, section 3.1).
            "embeddings", as published: all three tables; their normalised sum is projected, and where E = H there is
            no projection, as in BERT. "words", as in brightmart/albert_zh: the word table alone; its rows are
            projected, without bias, and added to segment and position tables of width H.
        hidden_dim: width of the encoder, H; a multiple of `num_heads` unless `attention_dim` is given.
        intermediate_dim: width of the feed-forward layer.
        num_layers: encoder layers, each run once per forward pass whatever their weights.
        num_heads: attention heads, N.
        attention_dim: width of queries, keys and values, those of all heads together; a multiple of `num_heads`. None, as
            in every published model, for `hidden_dim`. A model that lost heads by pruning has a smaller one.
        num_groups: consecutive layers are divided into this many groups; sharing is within a group. Layer i belongs to
            group ⌊i · num_groups / num_layers⌋.
        num_inner_repetitions: different blocks run one after another in place of each layer ("inner_group_num").
        sharing: what the layers of a group share: "all" (ALBERT), "attention" or "ffn" only (section 4.5 of the paper),
            or "none" (BERT).
        max_sequence_length: rows of the position table; the longest input in tokens, special tokens included.
        num_segments: rows of the segment table.
        activation: "gelu_tanh" (all English models), "relu" (Google's Chinese models), "gelu_erf" or "linear".
        hidden_dropout: dropout rate after the embeddings and after each sub-layer, in [0, 1).
        attention_dropout: dropout rate on the attention probabilities, in [0, 1).
        initializer_range: standard deviation of the truncated normal initialiser.
        layer_norm_epsilon: the published models use 1e-12.
        masked_lm_layer_norm_epsilon: that of the masked-word head where it is another one, as in KerasHub (1e-5); None
            for `layer_norm_epsilon`.

    Raises:
        InputError: a field has the wrong type or cannot be built; the message names it.
    """

    vocabulary_size: int
    hidden_dim: int
    intermediate_dim: int
    num_layers: int
    num_heads: int
    embedding_dim: int = 128
    factorization: str = "embeddings"
    num_groups: int = 1
    num_inner_repetitions: int = 1
    sharing: str = "all"
    max_sequence_length: int = 512
    num_segments: int = 2
    activation: str = "gelu_tanh"
    hidden_dropout: float = 0.0
    attention_dropout: float = 0.0
    initializer_range: float = 0.02
    layer_norm_epsilon: float = 1e-12
    masked_lm_layer_norm_epsilon: float | None = None
    attention_dim: int | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is int or (field.type == int | None and value is not None):
                if not _is_number(value, Integral) or value < 1:
                    raise InputError(f"{field.name}: expected a whole number of at least 1, got {value!r}")
                if value > _LARGEST:
                    raise InputError(f"{field.name}: expected at most {_LARGEST:,}, got {value:,}")
                object.__setattr__(self, field.name, int(value))
            if field.type is float or (field.type == float | None and value is not None):
                object.__setattr__(self, field.name, _finite(value, field.name))
        for name in ("hidden_dropout", "attention_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise InputError(f"{name}: expected a rate in [0, 1), got {getattr(self, name)}")
        for name in ("initializer_range", "layer_norm_epsilon", "masked_lm_layer_norm_epsilon"):
            if getattr(self, name) is not None and getattr(self, name) <= 0.0:
                raise InputError(f"{name}: expected a number above 0, got {getattr(self, name)}")
        if self.attention_dim == self.hidden_dim:
            object.__setattr__(self, "attention_dim", None)  # one way to say one thing
        name = "hidden_dim" if self.attention_dim is None else "attention_dim"
        if getattr(self, name) % self.num_heads:
            raise InputError(
                f"{name}: expected a multiple of num_heads; got {getattr(self, name)} with {self.num_heads} heads"
            )
        choices = {"factorization": FACTORIZATIONS, "sharing": SHARING_MODES, "activation": ACTIVATIONS}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise InputError(f"{name}: expected one of {', '.join(allowed)}; got {getattr(self, name)!r}")
        if self.num_layers * self.num_inner_repetitions > _MOST_STEPS:
            raise InputError(f"num_layers × num_inner_repetitions: expected at most {_MOST_STEPS:,} steps")
        if self.num_groups > self.num_layers:
            raise InputError(f"num_groups: expected at most num_layers = {self.num_layers}, got {self.num_groups}")
        if self.sharing == "none" and self.num_groups > 1:
            raise InputError('num_groups: groups share weights, so sharing="none" takes num_groups=1')

    @property
    def head_dim(self) -> int:
        """Width of one attention head, D."""
        return (self.attention_dim or self.hidden_dim) // self.num_heads

    @property
    def heads_dim(self) -> int:
        """Width of all attention heads together, N · D."""
        return self.num_heads * self.head_dim

    @property
    def has_projection(self) -> bool:
        """Whether there is a dense layer E → H; see `factorization`."""
        return self.factorization == "words" or self.embedding_dim != self.hidden_dim

    @property
    def summed_dim(self) -> int:
        """Width of the segment and position tables, of the sum that is normalised, and of the masked-word head: E, or H
        where only the word table is factorised."""
        return self.hidden_dim if self.factorization == "words" else self.embedding_dim

    @property
    def block_schedule(self) -> tuple[tuple[int, int], ...]:
        """For each step of the encoder, the (attention, feed-forward) weights it uses: all of the sharing is here.

        `num_layers · num_inner_repetitions` steps; the indices count from 0 without gaps.
        """
        schedule = []
        for layer in range(self.num_layers):
            group = layer * self.num_groups // self.num_layers
            for inner in range(self.num_inner_repetitions):
                shared = group * self.num_inner_repetitions + inner
                own = layer * self.num_inner_repetitions + inner
                attention = shared if self.sharing in ("all", "attention") else own
                feed_forward = shared if self.sharing in ("all", "ffn") else own
                schedule.append((attention, feed_forward))
        return tuple(schedule)

    @property
    def num_blocks(self) -> tuple[int, int]:
        """How many attention and how many feed-forward blocks have weights: one each where all layers share."""
        attention, feed_forward = zip(*self.block_schedule, strict=True)
        return 1 + max(attention), 1 + max(feed_forward)

    @classmethod
    def from_name(cls, name: str) -> "AlbertConfig":
        """The config called `name` in `CONFIGS`.

        Raises:
            InputError: no such name; the message lists those there are.
        """
        if not isinstance(name, str) or name not in CONFIGS:
            raise InputError(f"no config is called {name!r}; there are {', '.join(CONFIGS)}")
        return CONFIGS[name]

    @classmethod
    def from_dict(cls, fields: dict[str, Any], source: str = "config") -> "AlbertConfig":
        """Reads our own field names, or the keys of a published albert_config.json.

        Published keys that the original code accepts and never uses are accepted at their neutral value. Keys that only
        brightmart/albert_zh has mean its architecture, factorization="words".

        Args:
            fields: the JSON object.
            source: what to call it in an error message.

        Raises:
            InputError: unknown or missing keys, or a value that cannot be used.
        """
        if not isinstance(fields, dict):
            raise InputError(f"{source}: expected a JSON object with model dimensions, got {type(fields).__name__}")
        if "vocab_size" in fields or "hidden_size" in fields:
            fields = fields_from_published(fields, source)
        known = {field.name: field for field in dataclasses.fields(cls)}
        unknown = sorted(set(fields) - set(known))
        missing = sorted(n for n, f in known.items() if f.default is dataclasses.MISSING and n not in fields)
        if unknown or missing:
            raise InputError(
                f"{source}: unknown keys {unknown}, missing keys {missing}; known keys: {', '.join(known)}"
            )
        try:
            return cls(**fields)
        except InputError as error:
            raise InputError(f"{source}: {error}") from error

    @classmethod
    def from_json(cls, path: str | Path) -> "AlbertConfig":
        """Reads a config file, ours or a published albert_config.json; see `from_dict`."""
        fields = read_json(checked_path(path, "config"))
        return cls.from_dict(fields, source=str(path))

    def to_dict(self) -> dict[str, Any]:
        """Our own field names: every field, and `attention_dim` only where it is given, as earlier versions have none."""
        fields = dataclasses.asdict(self)
        return {name: value for name, value in fields.items() if name != "attention_dim" or value is not None}

    def to_published_dict(self) -> dict[str, Any]:
        """The keys of albert_config.json; of brightmart/albert_zh's where factorization="words".

        Raises:
            InputError: this architecture has no form there (sharing other than "all", gelu_erf, another epsilon, pruned
                heads; with factorization="words", groups or inner repetitions).
        """
        return published_fields(self)

    def to_json(self, path: str | Path, *, published: bool = False, overwrite: bool = False) -> None:
        """Writes our own form, or with `published` an albert_config.json that the original code reads."""
        fields = self.to_published_dict() if published else self.to_dict()
        with written_whole(path, overwrite=overwrite) as temporary:
            temporary.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")


def _is_number(value: Any, kind: type) -> bool:
    """Whether `value` is of the kind, NumPy's numbers included; a truth value is no number."""
    return isinstance(value, kind) and not isinstance(value, bool)


def _finite(value: Any, name: str) -> float:
    try:
        number = float(value) if _is_number(value, Real) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name}: expected a number, got {value!r}")
    return number


# (hidden_dim, num_layers, num_heads) of the published sizes.
_SHAPES = {"base": (768, 12, 12), "large": (1024, 24, 16), "xlarge": (2048, 24, 16), "xxlarge": (4096, 12, 64)}


def _shape(vocabulary_size: int, shape: tuple[int, int, int], **fields: Any) -> AlbertConfig:
    """A config with the feed-forward layer four times as wide as the encoder, as in every published model."""
    hidden_dim, num_layers, num_heads = shape
    return AlbertConfig(vocabulary_size, hidden_dim, 4 * hidden_dim, num_layers, num_heads, **fields)


def _brightmart(shape: tuple[int, int, int]) -> AlbertConfig:
    return _shape(21128, shape, factorization="words")


def _bert(shape: tuple[int, int, int]) -> AlbertConfig:
    return _shape(30522, shape, embedding_dim=shape[0], sharing="none", activation="gelu_erf")


# Sources: albert_config.json in the released archives of google-research/albert (v1 has dropout 0.1 but for xxlarge,
# v2 and Chinese none) and of brightmart/albert_zh (tiny and small in Google's form; brightmart_* in its own, whose
# xlarge has 32 heads); bert-base/large-uncased for comparison. albert_tiny_en and albert_small_en are this project's own.
CONFIGS: dict[str, AlbertConfig] = {
    **{
        f"albert_{size}_v1": _shape(
            30000,
            shape,
            hidden_dropout=0.0 if size == "xxlarge" else 0.1,
            attention_dropout=0.0 if size == "xxlarge" else 0.1,
        )
        for size, shape in _SHAPES.items()
    },
    **{f"albert_{size}_v2": _shape(30000, shape) for size, shape in _SHAPES.items()},
    **{f"albert_{size}_zh": _shape(21128, shape, activation="relu") for size, shape in _SHAPES.items()},
    "albert_tiny_zh": _shape(21128, (312, 4, 12)),
    "albert_small_zh": _shape(21128, (384, 6, 12)),
    "brightmart_tiny": _brightmart((312, 4, 12)),
    "brightmart_base": _brightmart(_SHAPES["base"]),
    "brightmart_large": _brightmart(_SHAPES["large"]),
    "brightmart_xlarge": _brightmart((2048, 24, 32)),
    "albert_tiny_en": _shape(8192, (312, 6, 12)),
    "albert_small_en": _shape(30000, (384, 6, 12)),
    "bert_base": _bert(_SHAPES["base"]),
    "bert_large": _bert(_SHAPES["large"]),
}
