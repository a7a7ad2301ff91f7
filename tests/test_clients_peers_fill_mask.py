"""transformers, run live: its fill-mask gives our probabilities, and its tokenizer our ids where the words are apart."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peer_models import largest_difference
from small_vocabularies import sentencepiece_vocabulary, wordpiece_vocabulary
from test_clients_peers_tokenizers import SYMBOL
from test_clients_peers_transformers import their_model

from albert_tf.config import AlbertConfig
from albert_tf.inference.fill_mask import FillMaskPipeline
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
from albert_tf.tokenization.tokenizer import AlbertTokenizer

pytestmark = pytest.mark.clients

# float32 on both sides; measured at most 2.0e-6 on probabilities of up to 0.99.
TOLERANCE = 1e-5
BASE = AlbertConfig(140, 64, 128, 4, 4, embedding_dim=32, max_sequence_length=64)
GROUPS = AlbertConfig(140, 16, 32, 6, 2, embedding_dim=8, max_sequence_length=64, num_groups=3, num_inner_repetitions=2)
APART = [
    "the old [MASK] by the river",
    "[MASK]",
    "  the [MASK]\t[MASK] wheel ",
    "the[MASK] water",
    "[MASK][MASK] the",
    "the old [MASK].",
    "the [MASK])",
    "the-[MASK]",
    "The Water [MASK] ``so''",
    "[mask] [MASK]",
]


def their_tokenizer(vocabulary: Any, folder: Path) -> Any:
    import transformers

    if vocabulary.kind == "wordpiece":
        vocabulary.save(folder)
        return transformers.BertTokenizer(str(folder / "vocab.txt"), do_lower_case=vocabulary.lower)
    (folder / "spiece.model").write_bytes(vocabulary.model)
    if not (folder / "config.json").exists():
        (folder / "config.json").write_text(json.dumps({"model_type": "albert"}))
    return transformers.AlbertTokenizer.from_pretrained(folder)


class Holder:
    """What a pipeline needs to prepare rows."""

    def __init__(self, vocabulary: Any, max_length: int = 512) -> None:
        self.required_tokenizer = AlbertTokenizer(vocabulary, max_length)


def our_rows(vocabulary: Any, texts: list[str]) -> list[list[int]]:
    return [token_ids for token_ids, _ in FillMaskPipeline(Holder(vocabulary)).prepare(texts).rows]


def test_ids_where_the_mask_stands_apart(tmp_path: Path) -> None:
    """Spaces around it, the start and end of the text, or one of the signs that transformers cuts at."""
    vocabulary = sentencepiece_vocabulary(quotes=True)
    assert our_rows(vocabulary, APART) == their_tokenizer(vocabulary, tmp_path)(APART)["input_ids"]


def test_transformers_begins_a_word_after_every_mask(tmp_path: Path) -> None:
    """In a text as pretraining masks it, what follows a word without a space has no word mark; with transformers it does."""
    vocabulary = sentencepiece_vocabulary(quotes=True)
    for text in ("the [MASK], the", "[MASK]s the", "the [MASK]'s"):
        (ours,), (theirs,) = our_rows(vocabulary, [text]), their_tokenizer(vocabulary, tmp_path)([text])["input_ids"]
        assert ours != theirs
        separated = text.replace("[MASK]", "[MASK] ")
        assert our_rows(vocabulary, [separated]) == [theirs]


def test_transformers_takes_every_special_token_in_a_text(tmp_path: Path) -> None:
    vocabulary = sentencepiece_vocabulary(quotes=True)
    (theirs,) = their_tokenizer(vocabulary, tmp_path)(["[CLS] the [MASK]"])["input_ids"]
    (ours,) = our_rows(vocabulary, ["[CLS] the [MASK]"])
    assert theirs.count(vocabulary.cls_id) == 2 and ours.count(vocabulary.cls_id) == 1


def test_ids_of_wordpiece(tmp_path: Path) -> None:
    vocabulary = wordpiece_vocabulary()
    texts = ["我爱[MASK]国", "the [MASK]s.", "the[MASK]", "[MASK]。", "[MASK]x", "mills [MASK][MASK] a"]
    assert our_rows(vocabulary, texts) == their_tokenizer(vocabulary, tmp_path)(texts)["input_ids"]


@pytest.mark.parametrize("name", ["AlbertForMaskedLM", "AlbertForPreTraining"])
@pytest.mark.parametrize("config", [BASE, GROUPS], ids=["shared", "groups"])
def test_probabilities(config: AlbertConfig, name: str, tmp_path: Path) -> None:
    import torch

    from albert_tf.tasks.fill_mask import AlbertMaskedLM

    vocabulary = sentencepiece_vocabulary(quotes=True)
    model = their_model(name, config)
    with torch.no_grad():
        model.predictions.LayerNorm.weight.mul_(8)  # some pieces far more probable than others
    model.save_pretrained(tmp_path)
    tokenizer = their_tokenizer(vocabulary, tmp_path)
    ours = AlbertMaskedLM.from_pretrained(tmp_path)
    worst, highest = 0.0, 0.0
    for text, answer in zip(APART, ours.fill(APART, top_k=config.vocabulary_size), strict=True):
        inputs = tokenizer([text], return_tensors="pt")
        with torch.no_grad():
            outputs = model(**inputs)
        logits = (outputs.logits if name == "AlbertForMaskedLM" else outputs.prediction_logits)[0]
        probabilities = np.asarray(logits.softmax(-1))[np.asarray(inputs["input_ids"][0]) == vocabulary.mask_id]
        assert len(probabilities) == len(answer.masks)
        for found, expected in zip(answer.masks, probabilities, strict=True):
            mine = np.zeros(config.vocabulary_size)
            mine[[candidate.token_id for candidate in found]] = [candidate.probability for candidate in found]
            worst, highest = max(worst, largest_difference(mine, expected)), max(highest, float(expected.max()))
            assert found[0].token_id == int(expected.argmax())
    print(f"largest difference {worst:.2g}, highest probability {highest:.2g}")
    assert worst <= TOLERANCE and highest > 0.5


def test_their_pipeline(tmp_path: Path) -> None:
    """transformers' own fill-mask: the same pieces in the same order."""
    import transformers

    from albert_tf.tasks.fill_mask import AlbertMaskedLM

    vocabulary = sentencepiece_vocabulary(quotes=True)
    model = their_model("AlbertForMaskedLM", BASE)
    model.save_pretrained(tmp_path)
    pipeline = transformers.pipeline("fill-mask", model=model, tokenizer=their_tokenizer(vocabulary, tmp_path), top_k=7)
    (answer,) = AlbertMaskedLM.from_pretrained(tmp_path).fill(["the old [MASK] by the river"], top_k=7)
    theirs = pipeline("the old [MASK] by the river")
    assert [candidate.token_id for candidate in answer.masks[0]] == [found["token"] for found in theirs]
    assert [c.probability for c in answer.masks[0]] == pytest.approx(
        [found["score"] for found in theirs], abs=TOLERANCE
    )


def test_ids_on_real_text(tmp_path: Path, shared_data: Path) -> None:
    """A whole word masked in every line that has none of the signs which transformers cuts at, nor its digits."""
    vocabulary = SentencePieceVocabulary.load(shared_data / "albert_vocab_en" / "30k-clean.model", quotes=True)
    lines = (shared_data / "corpora_en" / "wiki_vital.txt").read_text(encoding="utf-8").splitlines()[::7]
    texts = []
    for number, line in enumerate(lines):
        words = line.removesuffix(".").split()
        plain = [place for place, word in enumerate(words) if word.isascii() and word.isalpha()]
        if plain and not re.search(r"\d,", line) and not SYMBOL.search(line.removesuffix(".")):
            words[plain[number % len(plain)]] = "[MASK]"
            texts.append(" ".join(words))
    assert len(texts) > 500
    ours = FillMaskPipeline(Holder(vocabulary, 4096)).prepare(texts).rows
    assert [ids for ids, _ in ours] == their_tokenizer(vocabulary, tmp_path)(texts)["input_ids"]
