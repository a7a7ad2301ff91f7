"""`albert_tf.training.augmentation`: words that a model proposes, and models that cannot propose any."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tiny_data import TinyFiles
from tiny_teachers import begun, save_teacher, student_run

from albert_tf.data.replacement import ReplacementRules, ReplacementVocabulary
from albert_tf.errors import InputError
from albert_tf.tasks.fill_mask import AlbertMaskedLM
from albert_tf.training.augmentation import masked_pieces


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory, tiny_files: TinyFiles) -> Path:
    return save_teacher(tmp_path_factory.mktemp("teacher") / "teacher", "classification", tiny_files)


def test_words_that_a_masked_language_model_proposes(teacher: Path, tiny_files: TinyFiles, tmp_path: Path) -> None:
    """Candidates are its most probable pieces in the word's place, by the pipeline that fills masks."""
    model = AlbertMaskedLM.from_pretrained(save_teacher(tmp_path / "mlm", "fill-mask", tiny_files))
    rules = ReplacementRules(candidates=4)
    tokenizer = model.required_tokenizer
    words = ReplacementVocabulary(tokenizer.vocabulary, rules)
    rows = tokenizer.encode_batch(["ice and snow and the fire", "sun"])
    places = [(number, position) for number, (ids, _) in enumerate(rows) for position in words.words(ids)]
    found = masked_pieces(model, words, rules)(rows, places)
    for (row, position), candidates in zip(places, found, strict=True):
        ids = list(rows[row][0])
        ids[position] = tokenizer.vocabulary.mask_id
        (outputs,) = model.run_rows([(ids, rows[row][1])])
        probabilities = np.where(words.is_word, outputs["token_probabilities"][position], -1.0)
        assert candidates.tolist() == np.argsort(-probabilities, kind="stable")[:4].tolist()
    run = student_run(
        tiny_files, teacher, tmp_path / "run", augment=1, augment_candidates=3, augment_from=str(tmp_path / "mlm")
    )
    assert len(begun(run)[2].rows) == 128
    with pytest.raises(InputError, match="--augment-candidates: expected fewer than the vocabulary has pieces"):
        begun(dataclasses.replace(run, augment_candidates=50))


def test_a_model_for_shorter_texts(teacher: Path, tiny_files: TinyFiles, tmp_path: Path) -> None:
    short = save_teacher(tmp_path / "mlm", "fill-mask", tiny_files, shape={"max_sequence_length": 4})
    run = student_run(tiny_files, teacher, tmp_path / "run", augment=1, augment_candidates=3, augment_from=str(short))
    with pytest.raises(InputError, match="takes 4 tokens, the longest text has"):
        begun(run)
