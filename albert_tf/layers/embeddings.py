"""Word, segment and position tables, and the projection to the encoder's width H."""

from typing import Any

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.layers.configured import ConfiguredLayer
from albert_tf.layers.rows import unflattened


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertEmbeddings(ConfiguredLayer):
    """Factorised embeddings (paper section 3.1), in one of two orders of operations.

    factorization="embeddings" (google-research/albert modeling.py): word + segment + position → layer norm → dropout →
    dense E → H. Where E = H the dense layer does not exist.

    factorization="words" (brightmart/albert_zh modeling.py): word → dense E → H without bias; that + segment +
    position → layer norm → dropout.
    """

    def __init__(self, config: AlbertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.projects_words = config.factorization == "words"
        self.word_embedding = self._table(config.vocabulary_size, config.embedding_dim, "word_embedding")
        self.segment_embedding = self._table(config.num_segments, config.summed_dim, "segment_embedding")
        self.position_embedding = self._table(config.max_sequence_length, config.summed_dim, "position_embedding")
        self.norm = self.layer_norm()
        self.dropout = keras.layers.Dropout(config.hidden_dropout, dtype=self.dtype_policy, name="dropout")
        self.projection: Any = (
            self.dense(config.hidden_dim, "projection", use_bias=not self.projects_words)
            if config.has_projection
            else None
        )

    def build(self, input_shape: Any = None) -> None:
        for table in (self.word_embedding, self.segment_embedding, self.position_embedding):
            table.build()
        self.norm.build((None, None, self.config.summed_dim))
        if self.projection is not None:
            self.projection.build((None, self.config.embedding_dim))
        self.built = True

    def call(self, token_ids: Any, segment_ids: Any, training: bool | None = None) -> Any:
        """(B, S) ids and segments → (B, S, H).

        Raises:
            InputError: the sequence is longer than the position table (in a graph of unknown length, TensorFlow's
                InvalidArgumentError says so when it runs).
        """
        x = self.normalized(token_ids, segment_ids)
        x = self.dropout(x, training=training)
        return x if self.projection is None or self.projects_words else self._project(x, token_ids)

    def normalized(self, token_ids: Any, segment_ids: Any) -> Any:
        """The sum of the three tables after the layer norm: (B, S, E), or (B, S, H) with factorization="words"."""
        length = ops.shape(token_ids)[1]
        limit = self.config.max_sequence_length
        if isinstance(length, int) and length > limit:
            raise InputError(
                f"token_ids: expected at most {limit} positions (max_sequence_length), got {length}; cut the texts"
            )
        positions = ops.convert_to_tensor(self.position_embedding.embeddings)[:length]
        words = self.word_embedding(token_ids)
        if self.projects_words:
            words = self._project(words, token_ids)
        x = words + self.segment_embedding(segment_ids)
        return self.norm(x + ops.cast(positions, x.dtype))

    def _project(self, x: Any, token_ids: Any) -> Any:
        """(B, S, E) → (B, S, H), as one multiplication of (B·S, E)."""
        x = self.projection(ops.reshape(x, (-1, self.config.embedding_dim)))
        return unflattened(x, token_ids, self.config.hidden_dim)

    def output_matrices(self) -> list[Any]:
        """The variables that the masked-word head shares: the table (V, E), and the kernel (E, H) if words have one."""
        tables = [self.word_embedding.embeddings]
        return [*tables, self.projection.kernel] if self.projects_words else tables

    def compute_output_shape(self, token_ids_shape: Any, segment_ids_shape: Any) -> tuple[int | None, ...]:
        return (*token_ids_shape, self.config.hidden_dim)

    def _table(self, rows: int, width: int, name: str) -> keras.layers.Embedding:
        return keras.layers.Embedding(rows, width, self.initializer(), dtype=self.dtype_policy, name=name)
