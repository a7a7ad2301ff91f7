"""Training of models that fill masks, by a teacher alone: `albert-tf pretrain` trains them by texts."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.data.masking import MaskingRules, MaskingVocabulary, mask_tokens
from albert_tf.data.pipeline import Arrays, Remade
from albert_tf.data.pretraining_examples import example_draws
from albert_tf.data.schema import PADDING_MASK, TOKEN_IDS, TextExample
from albert_tf.data.text_files import text_lines
from albert_tf.data.word_starts import begins_word
from albert_tf.errors import InputError
from albert_tf.inference.runner import Prepared
from albert_tf.tasks.fill_mask import AlbertMaskedLM
from albert_tf.tokenization.api import Vocabulary
from albert_tf.training.tasks.finetune_task import TrainingRows

_LABELS, _NONE = "labels", -1


class FinetuneFillMask:
    """Plain text, a text a line → `AlbertMaskedLM`; see `FinetuneTask`. Masks are drawn anew in every epoch."""

    model_class = AlbertMaskedLM
    metric = "soft_loss"

    def read(self, run: Any, path: str, report: Callable[[str], None]) -> list[TextExample]:
        return read_lines(path)

    def head_settings(self, run: Any, examples: Sequence[TextExample]) -> dict[str, Any]:
        return {}

    def prepare(self, model: Any, examples: Sequence[TextExample]) -> Prepared:
        return Prepared(model.required_tokenizer.encode_batch([example.text for example in examples]))

    def training_rows(
        self, model: AlbertMaskedLM, examples: Sequence[TextExample], prepared: Prepared, source: str
    ) -> TrainingRows:
        targets = [[_NONE] * len(token_ids) for token_ids, _ in prepared.rows]
        return TrainingRows(prepared.rows, {_LABELS: targets})

    def describe(self, model: AlbertMaskedLM) -> str:
        return "words for masks"

    def write(self, folder: Path, model: AlbertMaskedLM, metrics: dict[str, Any]) -> None:
        pass


def read_lines(path: str) -> list[TextExample]:
    """The lines of a text file that are not blank.

    Raises:
        InputError: it cannot be read, or there are none.
    """
    examples = [TextExample(line) for line in text_lines(path) if line.strip()]
    if not examples:
        raise InputError(f"{path}: expected a text a line, found none")
    return examples


def masked_anew(vocabulary: Vocabulary, rules: MaskingRules, seed: int) -> Remade:
    """Masks the rows of a batch as pretraining does, each by random numbers of its own in every epoch."""
    fixed, starts = MaskingVocabulary(vocabulary), begins_word(vocabulary)

    def remade(epoch: int, numbers: np.ndarray, inputs: Arrays, targets: Arrays) -> tuple[Arrays, Arrays]:
        token_ids, lengths = inputs[TOKEN_IDS], inputs[PADDING_MASK].sum(axis=1).astype(np.int64)
        special = fixed.is_fixed[token_ids]
        word_starts = starts[token_ids] | special
        word_starts[:, 1:] |= special[:, :-1]
        _, draws = example_draws(seed, epoch, numbers, token_ids.shape[1])
        masked, predicted = mask_tokens(token_ids, word_starts, lengths, rules, fixed, draws)
        labels = np.where(predicted, token_ids, _NONE).astype(np.int32)
        return inputs | {TOKEN_IDS: masked}, targets | {_LABELS: labels}

    return remade
