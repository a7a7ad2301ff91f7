"""Question answering: the part of a passage that answers a question, or none."""

import dataclasses
from typing import Any

import keras
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS
from albert_tf.errors import InputError
from albert_tf.inference.depth import ExitSettings
from albert_tf.inference.question_answering import (
    END_LOG_PROBS,
    END_LOGITS,
    NO_ANSWER_LOGIT,
    START_LOG_PROBS,
    START_LOGITS,
    AnswerSettings,
)
from albert_tf.layers.answer_head import AnswerHead, answer_positions
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.depth import at_depth, exit_settings
from albert_tf.tasks.exit_rules import Choice
from albert_tf.tasks.heads import checked_dropout, head_dense, heads_of
from albert_tf.tokenization.tokenizer import AlbertTokenizer

_PADDING = -1e9  # added to the logits of padding
_EXCLUDED = -1e9  # in place of the logits where no answer can be


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertQuestionAnswerer(AlbertTask):
    """head="span": last layer → dense with two outputs for each token, start and end (run_squad_v1.py of
    google-research/albert; paper section 4.2). head="squad2": `AnswerHead` (run_squad_v2.py).

    Output: of "span", float32 logits (B, S, 2), very low at padding; of "squad2", a dict: that of `AnswerHead` and
    `sequence_output`.

    Args:
        backbone: an encoder, with or without pooler.
        tokenizer: of the encoder's vocabulary; its `max_length` is that of a question with a part of its passage.
        head, doc_stride, max_question_length, max_answer_length, n_best, start_beams, end_beams, no_answer_threshold,
            language: see `AnswerSettings`.
        classifier_dropout: of the head "squad2", rate before the last layer of "no answer".
        exits: when the answer of a row is settled before the last pass; the head is then trained after every pass. One
            head of "squad2" is that of all passes, as it is not small.

    Raises:
        InputError: unusable settings or exits, or a tokenizer of another vocabulary.
    """

    task = "question-answering"
    head_settings = ("head",)
    uses_pooler = False
    takes_pairs = True
    token_outputs = (START_LOGITS, END_LOGITS, START_LOG_PROBS, END_LOG_PROBS)
    exit_rules = ("patience", "confidence", "entropy")

    def __init__(
        self,
        backbone: AlbertBackbone,
        tokenizer: AlbertTokenizer | None = None,
        *,
        head: str = "span",
        doc_stride: int = 128,
        max_question_length: int = 64,
        max_answer_length: int = 30,
        n_best: int = 20,
        start_beams: int = 5,
        end_beams: int = 5,
        no_answer_threshold: float | None = None,
        language: str = "english",
        classifier_dropout: float = 0.1,
        exits: ExitSettings | dict[str, Any] | None = None,
        name: str = "question_answerer",
    ) -> None:
        answering = AnswerSettings(
            head,
            doc_stride,
            max_question_length,
            max_answer_length,
            n_best,
            start_beams,
            end_beams,
            no_answer_threshold,
            language,
        )
        if not isinstance(backbone, AlbertBackbone):
            raise InputError(f"backbone: expected an AlbertBackbone, got {type(backbone).__name__}")
        rate, exits = checked_dropout(classifier_dropout), exit_settings(exits, type(self))
        check_exit_heads(head, exits)
        sequence_output = backbone(backbone.input)["sequence_output"]
        layer: Any
        if head == "span":
            layer = head_dense(backbone, 2 * heads_of(backbone, exits), "question_answering")
        else:
            layer = AnswerHead(backbone.config, rate, dtype=backbone.policy, name="question_answering")
        outputs = _head_outputs(layer, sequence_output, backbone.input)
        super().__init__(backbone, tokenizer, backbone.input, outputs, name=name)
        self.answering: AnswerSettings = answering
        self.classifier_dropout: float = classifier_dropout
        self.question_answering = layer
        self.exits = exits

    def settings(self) -> dict[str, Any]:
        own = dataclasses.asdict(self.answering) | {"classifier_dropout": self.classifier_dropout}
        return own if self.exits is None else own | {"exits": self.saved_exits}

    def device_outputs(self, sequence_output: Any, padding_mask: Any, depth: Any = None) -> dict[str, Any]:
        """Of the head "span": `start_logits` and `end_logits`, float32 (B, S), from the vectors after pass number `depth`;
        None: the last."""
        if self.answering.head != "span":
            raise InputError("the head squad2 asks which tokens are of the passage: call row_outputs")
        logits = at_depth(self.question_answering(sequence_output), 2, depth)
        return {START_LOGITS: logits[..., 0], END_LOGITS: logits[..., 1]}

    def row_outputs(
        self, sequence_output: Any, segment_ids: Any, padding_mask: Any, depth: Any = None
    ) -> dict[str, Any]:
        """`device_outputs`; of the head "squad2": `start_log_probs` float32 (B, S), `end_log_probs` (B, S, start beams)
        and `no_answer_logit` (B, 1)."""
        if self.answering.head == "span":
            return self.device_outputs(sequence_output, padding_mask, depth)
        head = self.question_answering
        found = head(sequence_output, segment_ids, padding_mask, training=False)
        logits = found["start_logits"]
        ends = head.best_ends(sequence_output, logits, found["allowed"], self.answering.start_beams)
        return {
            START_LOG_PROBS: ops.log_softmax(logits, axis=-1),
            END_LOG_PROBS: ends,
            NO_ANSWER_LOGIT: found["no_answer_logit"],
        }

    def head_outputs(self, sequence_output: Any, inputs: dict[str, Any], depth: int | None, training: bool) -> Any:
        return _head_outputs(self.question_answering, sequence_output, inputs, training, depth)

    def choices(self, outputs: dict[str, Any], segment_ids: Any, padding_mask: Any) -> list[Choice]:
        """Where the answer starts and where it ends, each among the tokens of the passage and the first one, which stands
        for none; of the head "squad2" the end for the best start, and whether there is an answer."""
        allowed = answer_positions(segment_ids, padding_mask)
        options = ops.sum(allowed, axis=-1)
        if self.answering.head == "span":
            low = _EXCLUDED * (1.0 - allowed)
            both = [outputs[name] * allowed + low for name in (START_LOGITS, END_LOGITS)]
            return [Choice(ops.softmax(logits, axis=-1), options=options) for logits in both]
        log_probs = (outputs[START_LOG_PROBS], outputs[END_LOG_PROBS][:, :, 0])
        none = ops.sigmoid(outputs[NO_ANSWER_LOGIT])
        places = [Choice(ops.exp(one), options=options) for one in log_probs]
        return [*places, Choice(ops.concatenate([none, 1.0 - none], axis=-1))]

    def training_losses(self, targets: dict[str, Any], outputs: Any) -> Any:
        """Half the cross-entropy of the start and half that of the end, over the tokens; of the head "squad2" also half
        that of "no answer", with ends given the right start (v1_model_fn_builder, v2_model_fn_builder).

        Args:
            targets: `start` and `end`, int (B,), positions in the row, 0 where it does not hold the answer;
                `unanswerable` float (B,), 1 for such a row.
            outputs: the model's.
        """

        def cross_entropy(positions: Any, logits: Any) -> Any:
            return keras.losses.sparse_categorical_crossentropy(positions, logits, from_logits=True)

        if self.answering.head == "span":
            starts, ends = outputs[..., 0], outputs[..., 1]
            return 0.5 * (cross_entropy(targets["start"], starts) + cross_entropy(targets["end"], ends))
        right = targets["start"][:, None]
        ends = self.question_answering.end_logits(outputs["sequence_output"], right, outputs["allowed"])[:, 0]
        spans = cross_entropy(targets["start"], outputs["start_logits"]) + cross_entropy(targets["end"], ends)
        unanswerable = ops.cast(targets["unanswerable"], "float32")[:, None]
        none = keras.losses.binary_crossentropy(unanswerable, outputs["no_answer_logit"], from_logits=True)
        return 0.5 * (spans + none)

    def adopt(self, metrics: dict[str, Any]) -> dict[str, Any]:
        """Takes the no-answer threshold that is best for F1, where a validation has found one."""
        chosen = metrics.get("at_best_threshold")
        if chosen is None:
            return metrics
        self.answering = dataclasses.replace(self.answering, no_answer_threshold=chosen["no_answer_threshold"])
        return {name: value for name, value in metrics.items() if name != "at_best_threshold"} | chosen


def check_exit_heads(head: str, exits: ExitSettings | None) -> None:
    """Raises InputError for a head of its own for each pass where the head is not small."""
    if head == "squad2" and exits is not None and exits.heads == "own":
        raise InputError(
            'exits: heads: the head "squad2" has layers as wide as the encoder\'s, which are those of all passes; expected '
            "shared, got own"
        )


def _head_outputs(
    layer: Any, sequence_output: Any, inputs: dict[str, Any], training: bool | None = None, depth: int | None = None
) -> Any:
    """The model's outputs, of either head."""
    padding_mask = inputs[PADDING_MASK]
    if not isinstance(layer, AnswerHead):
        logits = at_depth(layer(sequence_output), 2, depth)
        return logits + _PADDING * (1.0 - ops.cast(padding_mask, "float32")[..., None])
    found = layer(sequence_output, inputs[SEGMENT_IDS], padding_mask, training=training)
    return found | {"sequence_output": sequence_output}
