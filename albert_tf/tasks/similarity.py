"""Sentence similarity: a vector for each text, such that texts of like meaning have vectors of like direction."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.data.schema import PADDING_MASK
from albert_tf.errors import InputError
from albert_tf.inference.depth import ExitSettings
from albert_tf.inference.similarity import EMBEDDING, OBJECTIVES, POOLINGS, SimilarityPipeline
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.depth import exit_settings
from albert_tf.tasks.heads import checked_labels, head_dense
from albert_tf.tokenization.tokenizer import AlbertTokenizer

_EPSILON = 1e-12  # of a vector's squared length, so that the vector 0 has a direction too
_NOT_A_CANDIDATE = -1e9


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextEmbedder(AlbertTask):
    """last layer → mean of the tokens, or the first token ([CLS]) (Sentence-BERT, Reimers and Gurevych, 2019, section 3).

    Output: float32 (B, D), of any length, with D the encoder's width H or `projection_dim`. The rows of one example are
    trained together, one after the other; see `training_losses`.

    Args:
        backbone: an encoder; a pooler is not used.
        tokenizer: of the encoder's vocabulary.
        pooling: "mean" of all tokens but padding, special tokens included, as in Sentence-BERT; or "cls".
        normalize: whether `embedding`, what an exported file and the pipelines give, has length 1.
        projection_dim: a dense layer makes embeddings of this length; None for none.
        objective: what is trained: "cosine", "contrastive", "softmax" or "vectors".
        max_score: for "cosine", the score of two texts that mean the same; 5 in STS.
        scale: for "contrastive", what cosines are multiplied by: one by the temperature.
        labels: for "softmax", the labels of pairs.
        exits: when the embedding is settled before the last pass; what is trained is then trained after every pass.

    Raises:
        InputError: unusable settings, or a tokenizer of another vocabulary.
    """

    task = "similarity"
    head_settings = ("pooling", "projection_dim", "labels")
    uses_pooler = False
    exit_rules = ("tolerance",)

    def __init__(
        self,
        backbone: AlbertBackbone,
        tokenizer: AlbertTokenizer | None = None,
        *,
        pooling: str = "mean",
        normalize: bool = True,
        projection_dim: int | None = None,
        objective: str = "cosine",
        max_score: float = 5.0,
        scale: float = 20.0,
        labels: Sequence[str] | None = None,
        exits: ExitSettings | dict[str, Any] | None = None,
        name: str = "sentence_encoder",
    ) -> None:
        for setting, value, known in (("pooling", pooling, POOLINGS), ("objective", objective, OBJECTIVES)):
            if value not in known:
                raise InputError(f"{setting}: expected one of {', '.join(known)}; got {value!r}")
        for setting, number in (("max_score", max_score), ("scale", scale)):
            if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 < number < float("inf"):
                raise InputError(f"{setting}: expected a number above 0, got {number!r}")
        if projection_dim is not None and not (type(projection_dim) is int and projection_dim >= 1):
            raise InputError(f"projection_dim: expected a whole number from 1, or None; got {projection_dim!r}")
        if labels and objective != "softmax":
            raise InputError(f"labels: are for the objective softmax, not for {objective}")
        if not isinstance(backbone, AlbertBackbone):
            raise InputError(f"backbone: expected an AlbertBackbone, got {type(backbone).__name__}")
        names = checked_labels(labels) if objective == "softmax" else ()
        pooled = _pooled(backbone(backbone.input)["sequence_output"], backbone.input[PADDING_MASK], pooling)
        projection = None if projection_dim is None else head_dense(backbone, projection_dim, "sentence_projection")
        embedded = pooled if projection is None else projection(pooled)
        super().__init__(backbone, tokenizer, backbone.input, embedded, name=name)
        self.projection, self.projection_dim = projection, projection_dim
        self.embedding_dim = projection_dim or backbone.config.hidden_dim
        self.pooling, self.normalize, self.objective = pooling, normalize, objective
        self.max_score, self.scale = max_score, scale
        self.exits = exit_settings(exits, type(self))
        if self.exits is not None and self.exits.heads == "own":
            raise InputError(
                "exits: heads: an embedding has no head of its own for each pass; expected shared, got own"
            )
        self.labels: tuple[str, ...] = names
        if names:
            self.pair_classifier = head_dense(backbone, len(names), "pair_classifier")
            self.pair_classifier.build((None, 3 * self.embedding_dim))

    def settings(self) -> dict[str, Any]:
        own = {
            "pooling": self.pooling,
            "normalize": self.normalize,
            "projection_dim": self.projection_dim,
            "objective": self.objective,
            "max_score": self.max_score,
            "scale": self.scale,
            "labels": list(self.labels),
        }
        return own if self.exits is None else own | {"exits": self.saved_exits}

    def head_outputs(self, sequence_output: Any, inputs: dict[str, Any], depth: int | None, training: bool) -> Any:
        return self._embedded(sequence_output, inputs[PADDING_MASK])

    def device_outputs(self, sequence_output: Any, padding_mask: Any, depth: Any = None) -> dict[str, Any]:
        """`embedding`, float32 (B, D); one head is that of all passes."""
        embedded = self._embedded(sequence_output, padding_mask)
        return {EMBEDDING: of_length_1(embedded) if self.normalize else embedded}

    def change(self, outputs: dict[str, Any], before: dict[str, Any]) -> Any:
        """1 - cosine of the embeddings."""
        now, then = (of_length_1(found[EMBEDDING]) for found in (outputs, before))
        return 1.0 - ops.sum(now * then, axis=-1)

    def training_losses(self, targets: dict[str, Any], outputs: Any) -> Any:
        """float (B,), from the embeddings (B · rows, D), in which an example's rows stand together.

        - "cosine", 2 rows: (cos(u, v) − `value` / max_score)², with `value` float (B,). Sentence-BERT's regression.
        - "contrastive", 2 or 3 rows (anchor, positive, hard negative): the cross-entropy of choosing an anchor's own
          positive by scale · cosine among all positives and negatives of the batch (Henderson et al., 2017, section
          4.4; Sentence-BERT's library calls it multiple negatives ranking). `texts`, int (B, rows), numbers the texts:
          what is the same text as the anchor or its positive, or goes with an equal anchor, is no negative. The batch
          is the replica's own: with several replicas, or a batch taken in parts, there are fewer negatives.
        - "vectors", 1 row: 1 − cos(u, `vector`), with `vector` float (B, D), another encoder's embedding of the text:
          distillation, as of Reimers and Gurevych, 2020, section 2, of directions alone.
        - "softmax", 2 rows: the cross-entropy of a dense layer on (u, v, |u − v|) against `label`, int (B,).
        """
        if self.objective == "contrastive":
            return self._contrastive_losses(targets["texts"], outputs)
        if self.objective == "vectors":
            return 1.0 - ops.sum(of_length_1(outputs) * of_length_1(targets["vector"]), axis=-1)
        first, second = outputs[0::2], outputs[1::2]
        if self.objective == "cosine":
            cosines = ops.sum(of_length_1(first) * of_length_1(second), axis=-1)
            return ops.square(cosines - ops.cast(targets["value"], "float32") / self.max_score)
        logits = self.pair_classifier(ops.concatenate([first, second, ops.abs(first - second)], axis=-1))
        return keras.losses.sparse_categorical_crossentropy(targets["label"], logits, from_logits=True)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 (texts, D)."""
        return SimilarityPipeline(self).embed(texts)

    def _embedded(self, sequence_output: Any, padding_mask: Any) -> Any:
        pooled = _pooled(sequence_output, padding_mask, self.pooling)
        return pooled if self.projection is None else self.projection(pooled)

    def _contrastive_losses(self, texts: Any, outputs: Any) -> Any:
        examples, rows = ops.shape(texts)[0], ops.shape(texts)[1]
        vectors = ops.reshape(of_length_1(outputs), (examples, rows, self.embedding_dim))
        # Candidates: the positives of all examples, then the hard negatives of all.
        candidates = ops.reshape(ops.transpose(vectors[:, 1:], (1, 0, 2)), (-1, self.embedding_dim))
        logits = self.scale * ops.matmul(vectors[:, 0], ops.transpose(candidates))
        anchors, positives, own = texts[:, :1], texts[:, 1:2], ops.arange(examples)[:, None]
        candidate_texts = ops.reshape(ops.transpose(texts[:, 1:]), (1, -1))
        # The anchor that a candidate belongs to; of a hard negative, none.
        belongs_to = ops.concatenate([anchors, ops.zeros_like(texts[:, 2:]) - 1], axis=1)
        belongs_to = ops.reshape(ops.transpose(belongs_to), (1, -1))
        right = (candidate_texts == positives) | (candidate_texts == anchors) | (belongs_to == anchors)
        others = right & (ops.arange(ops.shape(candidate_texts)[1])[None] != own)
        logits = ops.where(others, _NOT_A_CANDIDATE, logits)
        return keras.losses.sparse_categorical_crossentropy(own[:, 0], logits, from_logits=True)


def _pooled(sequence_output: Any, padding_mask: Any, pooling: str) -> Any:
    """(B, S, H) → float32 (B, H)."""
    if pooling == "cls":
        return ops.cast(sequence_output[:, 0], "float32")
    mask = ops.cast(padding_mask, "float32")[:, :, None]
    return ops.sum(ops.cast(sequence_output, "float32") * mask, axis=1) / ops.maximum(ops.sum(mask, axis=1), 1.0)


def of_length_1(vectors: Any) -> Any:
    """Vectors (…, D) as long as 1; the vector 0 stays what it is."""
    return vectors * ops.rsqrt(ops.maximum(ops.sum(ops.square(vectors), axis=-1, keepdims=True), _EPSILON))
