"""Texts → embeddings, and pairs of texts → the cosine of their embeddings."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from albert_tf.data.schema import TextExample
from albert_tf.data.similarity import SimilarityExample
from albert_tf.errors import InputError
from albert_tf.inference.runner import Outputs, Prepared, Runner, finite_outputs

EMBEDDING = "embedding"
POOLINGS = ("mean", "cls")
OBJECTIVES = ("cosine", "contrastive", "softmax", "vectors")


class SimilarityPipeline:
    """An embedding for a text, a cosine for a pair of texts; each text is encoded by itself."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def __call__(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[Any]:
        """The embedding of each text, float32 (D,), or the cosine of each pair of texts, a number from -1 to 1.

        Raises:
            InputError: not a list of strings, or `pairs` of another length.
        """
        if pairs is None:
            return list(self.embed(texts))
        encode = self.runner.required_tokenizer.encode_batch
        first, second = encode(texts), encode(pairs)
        if len(first) != len(second):
            raise InputError(f"pairs: expected one for each text; got {len(first)} texts and {len(second)} pairs")
        return self.answer(
            Prepared([row for both in zip(first, second, strict=True) for row in both], [2] * len(first))
        )

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 (texts, D): of length 1 each, unless the model was made with normalize=False.

        Raises:
            InputError: not a list of strings.
        """
        rows = finite_outputs(self.runner, self.runner.required_tokenizer.encode_batch(texts))
        return np.stack([row[EMBEDDING] for row in rows]) if rows else np.zeros((0, 0), np.float32)

    def outputs(self, config: dict[str, Any]) -> dict[str, tuple[int | None, ...]]:
        return {EMBEDDING: (self.runner.task_settings.get("projection_dim") or config["hidden_dim"],)}

    def prepare(self, examples: Sequence[TextExample]) -> Prepared:
        """A row for each text of each example; the context says how many each has."""
        texts: list[str] = []
        sizes = []
        for example in examples:
            third = example.negative if isinstance(example, SimilarityExample) else None
            own = [text for text in (example.text, example.pair, third) if text is not None]
            texts += own
            sizes.append(len(own))
        return Prepared(self.runner.required_tokenizer.encode_batch(texts), sizes)

    def answer(self, prepared: Prepared) -> list[Any]:
        """Of an example of one text its embedding, of others the cosine of the first two."""
        return [rows[0] if len(rows) == 1 else cosine(rows[0], rows[1]) for rows in self.embeddings(prepared)]

    def embeddings(self, prepared: Prepared) -> list[np.ndarray]:
        """float32 (texts, D) of each example."""
        rows = [outputs[EMBEDDING] for outputs in finite_outputs(self.runner, prepared.rows)]
        return [np.stack(rows[start:end]) for start, end in pairwise(accumulate(prepared.context, initial=0))]

    def decision(self, outputs: Outputs) -> tuple[None, float]:
        """An embedding decides nothing; how far it is off is what the differences say."""
        return None, 0.0


def text_numbers(prepared: Prepared) -> np.ndarray:
    """int32 (examples, texts): equal where texts are the same to the model; of examples with as many texts each."""
    known: dict[tuple[int, ...], int] = {}
    numbers = [known.setdefault(tuple(token_ids), len(known)) for token_ids, _ in prepared.rows]
    return np.array(numbers, np.int32).reshape(len(prepared.context), -1)


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    """The cosine of the angle between two vectors; 0 where one of them is 0."""
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / lengths if lengths else 0.0
