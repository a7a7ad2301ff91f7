"""What a SavedModel of a task offers: its signatures, as TensorFlow functions of strings or of token ids.

A signature takes tensors and gives tensors, so every answer of a pipeline (`albert_tf.inference`) becomes columns: what
has not as many entries as others of the batch is filled up at the end, texts with "", numbers with 0.
"""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from albert_tf.data.schema import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from albert_tf.errors import InputError
from albert_tf.inference.depth import DEPTH, EXITS, PLAIN, DepthChoice, DepthCounter
from albert_tf.inference.pipelines import pipeline_of
from albert_tf.inference.runner import Outputs
from albert_tf.tasks.base import AlbertTask
from albert_tf.tokenization.graph import GraphTokenizer
from albert_tf.tokenization.graph_rules import ragged
from albert_tf.tokenization.packing import Packed, pad_batch
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.adaptive import EVERY_PASS

SERVING_DEFAULT, TOKENS, PAIRS, EMBED = "serving_default", "tokens", "pairs", "embed"
AT_DEPTH = "_at_depth"  # at the end of the name of a signature that takes the depth too
TEXTS, SECOND_TEXTS = "texts", "pairs"  # inputs
MEAN_EMBEDDING, POOLED_EMBEDDING = "mean_embedding", "pooled_embedding"
SPACES = [code_point for code_point in range(0x3001) if chr(code_point).isspace()]  # there are none above

_MODEL_INPUTS = {name: tf.TensorSpec((None, None), tf.int32, name) for name in (TOKEN_IDS, SEGMENT_IDS, PADDING_MASK)}

Tensors = dict[str, tf.Tensor]
Columns = dict[str, Any]  # input → a list of strings, or of lists of them, or an array
Answer = dict[str, Any]  # output → what it is for one row, without what fills it up


@dataclasses.dataclass(frozen=True)
class Signature:
    """One way to ask a model.

    Attributes:
        answer: tensors by name → tensors by name; traced once.
        inputs: the tensors that it takes, by name.
        example: inputs made of texts.
        expected: what the task itself answers to such inputs, a row each.
    """

    answer: Callable[..., Tensors]
    inputs: dict[str, tf.TensorSpec]
    example: Callable[[Sequence[str]], Columns]
    expected: Callable[[Columns], list[Answer]]


class CutRunner:
    """A task with a tokenizer that cuts texts to what the task takes, whatever its own would do."""

    def __init__(self, task: AlbertTask) -> None:
        tokenizer = task.required_tokenizer
        self._task = task
        self.task: str = task.task
        self.required_tokenizer = AlbertTokenizer(
            tokenizer.vocabulary, min(tokenizer.max_length, task.backbone.config.max_sequence_length)
        )

    @property
    def task_settings(self) -> dict[str, Any]:
        return self._task.settings()

    def run_rows(self, rows: Sequence[Packed]) -> list[Outputs]:
        return self._task.run_rows(rows)


class ServedTask(abc.ABC):
    """The signatures of a task. A subclass says what it answers to texts.

    Args:
        task: a trained task with a tokenizer, in float32.
        adaptive: what of the depth the signatures that end in `AT_DEPTH` take: see `albert_tf.inference.depth.ADAPTIVE`.

    Attributes:
        asked: what the name of the signature that takes strings and the depth begins with.
        pipeline: the task's own, in Python: what signatures must agree with.
        tokenizer: cuts texts to what the task takes.
        encode_texts: the vocabulary in the graph: string (n,) → ragged int32 ids (n, None).
        tokenize: the tokenizer in the graph.
        encode: the three model inputs (B, S) → the last layer (B, S, H).
    """

    asked: ClassVar[str] = TEXTS

    def __init__(self, task: Any, adaptive: str = PLAIN) -> None:
        self.task = task
        self.adaptive = adaptive
        self.runner = DepthCounter(CutRunner(task))
        self.pipeline: Any = pipeline_of(self.runner)
        self.tokenizer = self.runner.required_tokenizer
        # Functions of their own, so that they stand in the SavedModel once, not once for each signature.
        encoder = tf.function(self.tokenizer.vocabulary.graph_encoder(), autograph=False)
        self.encode_texts = encoder.get_concrete_function(tf.TensorSpec((None,), tf.string))
        self.tokenize = GraphTokenizer(self.tokenizer, encode=self.encode_texts)
        self.encode = _traced(lambda inputs: task.backbone(inputs, training=False)["sequence_output"])
        # What chooses the depth, by name; as it is, the model's own choice.
        self.depth_inputs = {
            name: tf.TensorSpec((), value.dtype, name) for name, value in DepthChoice().inputs(adaptive).items()
        }
        self._run = _traced(
            lambda inputs: task.row_outputs(self.encode(inputs), inputs[SEGMENT_IDS], inputs[PADDING_MASK])
        )
        if adaptive != PLAIN:
            run = tf.function(lambda inputs, *depth: task.outputs_at_depth(inputs, *depth), autograph=False)
            self._run_at_depth = run.get_concrete_function(_MODEL_INPUTS, *self.depth_inputs.values())

    def run(self, inputs: Tensors, depth: Tensors | None = None) -> Tensors:
        """The three model inputs (B, S) → the task's device outputs.

        Args:
            inputs: by name.
            depth: the `depth_inputs` of a request; None or empty: the model's own depth.
        """
        if not depth and self.adaptive != EXITS:
            return dict(self._run(inputs))
        own = {name: tf.constant(value[0]) for name, value in DepthChoice().inputs(self.adaptive).items()}
        return dict(self._run_at_depth(inputs, *(own | (depth or {})).values()))

    def with_depth(self, name: str, signature: Signature) -> dict[str, Signature]:
        """The signature, which notes depths where the model exits early; where the depth can be chosen, also one of the
        same with the inputs that choose it. What is expected of answers that are read in parts says depths already."""

        if self.adaptive == PLAIN:
            return {name: signature}

        def expected(columns: Columns, choice: DepthChoice) -> list[Answer]:
            before = self.task.depth
            self.task.choose_depth(choice)
            self.runner.depths.clear()
            found = signature.expected(columns)
            self.task.choose_depth(before)
            if self.adaptive != EXITS or all(DEPTH in answer for answer in found):
                return found
            return [answer | {DEPTH: depth} for answer, depth in zip(found, self.runner.depths, strict=True)]

        # Without exits in the signature, a model that has some is compared without.
        own = EVERY_PASS if self.adaptive != EXITS and self.task.exits is not None else DepthChoice()
        found = {name: dataclasses.replace(signature, expected=lambda columns: expected(columns, own))}
        choice = dataclasses.replace(own, num_passes=(1 + self.task.backbone.config.num_layers) // 2)
        chosen = {one: value[0] for one, value in choice.inputs(self.adaptive).items()}
        found[(self.asked if name == SERVING_DEFAULT else name) + AT_DEPTH] = Signature(
            signature.answer,
            signature.inputs | self.depth_inputs,
            lambda texts: signature.example(texts) | chosen,
            lambda columns: expected(columns, choice),
        )
        return found

    def depths_of_parts(self, outputs: Tensors, texts: tf.Tensor, count: tf.Tensor) -> Tensors:
        """`depth` of `count` answers that are read in parts, int32 (count, parts): of each part in order, then 0; nothing
        where the model does not say it.

        Args:
            outputs: of the model, a row for each part.
            texts: the answer that each part is of, in order, int32 (rows,).
        """
        if DEPTH not in outputs:
            return {}
        parts = tf.math.bincount(texts, minlength=count, maxlength=count)
        splits = tf.concat([[0], tf.cumsum(tf.cast(parts, tf.int64))], 0)
        return {DEPTH: ragged(outputs[DEPTH], splits).to_tensor()}

    def expected_depths(self, texts: Sequence[int | None], count: int) -> list[Answer]:
        """The same of the rows that were run last; None for a row that a signature does not run."""
        if self.adaptive != EXITS:
            return [{} for _ in range(count)]
        found: list[list[int]] = [[] for _ in range(count)]
        for text, depth in zip(texts, self.runner.depths[-len(texts) :], strict=True):
            if text is not None:
                found[text].append(depth)
        return [{DEPTH: depths} for depths in found]

    @abc.abstractmethod
    def text_signatures(self) -> dict[str, Signature]:
        """The signatures that take strings."""

    def signatures(self) -> dict[str, Signature]:
        """All of them, by name."""
        return self.text_signatures() | self.with_depth(TOKENS, self._tokens())

    def inputs_of(self, texts: tf.Tensor, pairs: tf.Tensor | None = None) -> Tensors:
        """The model inputs of strings (B,), with one position at least, which a batch of no texts would not have."""
        return with_a_position(self.tokenize(texts, pairs))

    def padded(self, token_ids: tf.RaggedTensor, segment_ids: tf.RaggedTensor | None = None) -> Tensors:
        """The model inputs of rows of ids, special tokens included."""
        segments = tf.zeros_like(token_ids) if segment_ids is None else segment_ids
        return with_a_position(
            {
                TOKEN_IDS: token_ids.to_tensor(self.tokenizer.vocabulary.pad_id),
                SEGMENT_IDS: segments.to_tensor(0),
                PADDING_MASK: tf.ones_like(token_ids).to_tensor(0),
            }
        )

    def framed(self, ids: tf.RaggedTensor) -> tf.RaggedTensor:
        """[CLS] ids [SEP], for each row."""
        vocabulary = self.tokenizer.vocabulary
        column = tf.stack([tf.cast(ids.nrows(), tf.int32), 1])
        return tf.concat([tf.fill(column, vocabulary.cls_id), ids, tf.fill(column, vocabulary.sep_id)], 1)

    def _tokens(self) -> Signature:
        def answer(token_ids: tf.Tensor, segment_ids: tf.Tensor, padding_mask: tf.Tensor, **depth: Any) -> Tensors:
            return self.run({TOKEN_IDS: token_ids, SEGMENT_IDS: segment_ids, PADDING_MASK: padding_mask}, depth)

        def example(texts: Sequence[str]) -> Columns:
            rows = self.tokenizer.encode_batch(texts, texts[::-1] if self.task.takes_pairs else None)
            return dict(pad_batch(rows, self.tokenizer.vocabulary.pad_id))

        def expected(columns: Columns) -> list[Answer]:
            lengths = columns[PADDING_MASK].sum(axis=1)
            both = zip(columns[TOKEN_IDS], columns[SEGMENT_IDS], lengths, strict=True)
            rows = [(ids[:n].tolist(), segments[:n].tolist()) for ids, segments, n in both]
            return [{name: row[name] for name in row if name != DEPTH} for row in self.runner.run_rows(rows)]

        return Signature(answer, dict(_MODEL_INPUTS), example, expected)

    def embeddings(self) -> Signature:
        """The signature `embed`: of each text the mean of its tokens in the last layer, as Sentence-BERT has it, and the
        pooler's output where there is a pooler."""

        def answer(texts: tf.Tensor) -> Tensors:
            inputs = self.inputs_of(texts)
            encoded = self.encode(inputs)
            mask = tf.cast(inputs[PADDING_MASK], tf.float32)[:, :, None]
            found = {MEAN_EMBEDDING: tf.reduce_sum(encoded * mask, 1) / tf.maximum(tf.reduce_sum(mask, 1), 1.0)}
            if self.task.backbone.pooler is not None:
                found[POOLED_EMBEDDING] = self.task.backbone.pool(encoded)
            return found

        def expected(columns: Columns) -> list[Answer]:
            answers = []
            for row in self.tokenizer.encode_batch(columns[TEXTS]):
                outputs = self.task.backbone(pad_batch([row], self.tokenizer.vocabulary.pad_id), training=False)
                found = {MEAN_EMBEDDING: np.mean(outputs["sequence_output"], axis=1)[0]}
                if "pooled_output" in outputs:
                    found[POOLED_EMBEDDING] = np.asarray(outputs["pooled_output"])[0]
                answers.append(found)
            return answers

        return Signature(answer, strings(TEXTS), lambda texts: {TEXTS: list(texts)}, expected)


def _traced(function: Callable[[Tensors], Any]) -> Any:
    """The graph of a function of the three model inputs."""
    return tf.function(function, autograph=False).get_concrete_function(_MODEL_INPUTS)


def strings(*names: str) -> dict[str, tf.TensorSpec]:
    """Inputs of one string for each row of a batch of any size."""
    return {name: tf.TensorSpec((None,), tf.string, name) for name in names}


def with_a_position(inputs: Tensors) -> Tensors:
    """Model inputs (B, S), S at least 1: no head can ask for the first of no tokens."""
    missing = tf.cast(tf.equal(tf.shape(inputs[TOKEN_IDS])[1], 0), tf.int32)
    return {name: tf.pad(tensor, [[0, 0], [0, missing]]) for name, tensor in inputs.items()}


def as_labels(names: Sequence[str], like: tf.Tensor) -> tf.Tensor:
    """The names of the labels beside each row of `like`, float (B, labels): string (B, labels)."""
    return tf.tile(tf.constant([list(names)]), [tf.shape(like)[0], 1])


def same_batch(**tensors: tf.Tensor) -> None:
    """Puts a check into the graph that inputs have as many rows: without it, TensorFlow says so in its own words, or
    repeats the only row of one of them."""
    (first, *others) = tensors
    rows = tf.shape(tensors[first])[0]
    for name in others:
        tf.debugging.assert_equal(
            tf.shape(tensors[name])[0], rows, message=f"{name}: expected as many rows as {first} has"
        )


def checked_task(task: Any) -> AlbertTask:
    """`task`, if it is one.

    Raises:
        InputError: it is not, or it has no tokenizer.
    """
    if not isinstance(task, AlbertTask):
        raise InputError(
            f"task: expected a task such as AlbertTextClassifier, got {type(task).__name__}; a folder is read by "
            "from_pretrained"
        )
    _ = task.required_tokenizer
    return task
