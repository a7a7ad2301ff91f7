"""Tokenizers of other systems, run live: where they agree with ours, and the differences that docs/tokenizer.md lists."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from small_vocabularies import LINES, sentencepiece_vocabulary

from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
from albert_tf.tokenization.training import ALBERT_SYMBOLS

pytestmark = pytest.mark.clients

Encode = Callable[[list[str]], list[list[int]]]
TEXTS = [
    "the old mill by the river has been turning, they say",
    "Who would NOT want to hear the water;  the wood\tand the stones at work?",
    "Café prices rose, “naïve” or not, ``so'' ﬁnd ½",
    "ΜΕΣΑ ΣΟΥ και οι σύντροφοί του",
]
RULES = [{}, {"keep_accents": True}, {"lower": False}, {"lower": False, "keep_accents": True}]
SYMBOL = re.compile("[" + re.escape("".join(ALBERT_SYMBOLS)) + "]")


def transformers_encoder(vocabulary: SentencePieceVocabulary, folder: Path) -> Encode:
    import transformers

    (folder / "spiece.model").write_bytes(vocabulary.model)
    (folder / "config.json").write_text(json.dumps({"model_type": "albert"}))
    rules = {"do_lower_case": vocabulary.lower, "keep_accents": vocabulary.keep_accents}
    tokenizer = transformers.AlbertTokenizer.from_pretrained(folder, **rules)
    return lambda texts: tokenizer(texts, add_special_tokens=False)["input_ids"]


def ids(vocabulary: SentencePieceVocabulary, texts: list[str]) -> list[list[int]]:
    return [vocabulary.encode(text) for text in texts]


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_transformers_has_our_rules_with_quotes(rules: dict[str, bool], tmp_path: Path) -> None:
    vocabulary = sentencepiece_vocabulary(**rules, quotes=True)
    assert transformers_encoder(vocabulary, tmp_path)(TEXTS) == ids(vocabulary, TEXTS)
    without = SentencePieceVocabulary(vocabulary.model, **rules)
    assert ids(without, TEXTS) != ids(vocabulary, TEXTS)


def test_transformers_has_no_final_sigma(tmp_path: Path) -> None:
    vocabulary = sentencepiece_vocabulary(quotes=True)
    encode = transformers_encoder(vocabulary, tmp_path)
    assert encode(["ΗΤΑΝ ΜΕΓΑΣ"]) == ids(vocabulary, ["ηταν μεγασ"]) != ids(vocabulary, ["ΗΤΑΝ ΜΕΓΑΣ"])


def test_transformers_cuts_at_user_symbols(tmp_path: Path) -> None:
    """A symbol loses the word mark before it, and the rest of its word gets one."""
    vocabulary = sentencepiece_vocabulary(quotes=True)
    encode = transformers_encoder(vocabulary, tmp_path)
    [spaced, joined] = encode(["the . mill", "the-mill"])
    assert vocabulary.pieces(spaced)[:2] == ["▁the", "."]
    assert vocabulary.pieces(vocabulary.encode("the . mill"))[:3] == ["▁the", "▁", "."]
    symbol = vocabulary.pieces(joined).index("-")
    assert vocabulary.pieces(joined)[symbol + 1].startswith("▁")
    own = vocabulary.pieces(vocabulary.encode("the-mill"))
    assert not own[own.index("-") + 1].startswith("▁")


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_transformers_on_real_text(rules: dict[str, bool], tmp_path: Path, shared_data: Path) -> None:
    """All lines that have neither a user symbol nor a piece that the digit-comma rule takes apart."""
    vocabulary = SentencePieceVocabulary.load(shared_data / "albert_vocab_en" / "30k-clean.model", **rules, quotes=True)
    lines = (shared_data / "corpora_en" / "wiki_vital.txt").read_text(encoding="utf-8").splitlines()[::5]
    lines = [line for line in lines if not SYMBOL.search(line.removesuffix(".")) and not re.search(r"\d,", line)]
    assert len(lines) > 3000
    lines = [line.removesuffix(".") for line in lines]
    different = [
        line
        for line, own, other in zip(
            lines, ids(vocabulary, lines), transformers_encoder(vocabulary, tmp_path)(lines), strict=True
        )
        if own != other and not re.search(r"\d,$", " ".join(vocabulary.pieces(other)))
    ]
    assert different == []


def test_keras_hub_has_no_rules(tmp_path: Path) -> None:
    import keras_hub

    vocabulary = sentencepiece_vocabulary()
    (tmp_path / "spiece.model").write_bytes(vocabulary.model)
    tokenizer = keras_hub.models.AlbertTokenizer(str(tmp_path / "spiece.model"))

    def encode(texts: list[str]) -> list[list[int]]:
        return [[int(index) for index in tokenizer(text)] for text in texts]

    plain = [line for line in LINES if line.isascii() and not any(character.isdigit() for character in line)]
    assert len(plain) == 2
    lowered = [line.lower() for line in plain]
    assert encode(lowered) == ids(vocabulary, lowered)
    assert encode(plain) != ids(vocabulary, plain)
    assert encode(["café"]) != ids(vocabulary, ["café"])


@pytest.mark.parametrize("strip_diacritics", [True, False])
def test_model_garden_lowers_and_strips(strip_diacritics: bool, tmp_path: Path) -> None:
    import tensorflow as tf
    from official.nlp.modeling.layers import SentencepieceTokenizer

    vocabulary = sentencepiece_vocabulary()
    (tmp_path / "spiece.model").write_bytes(vocabulary.model)
    layer = SentencepieceTokenizer(
        lower_case=True, model_file_path=str(tmp_path / "spiece.model"), strip_diacritics=strip_diacritics
    )

    def encode(texts: list[str]) -> list[list[int]]:
        return layer(tf.constant(texts)).to_list()

    assert encode(TEXTS[:2]) == ids(vocabulary, TEXTS[:2])
    assert (encode(["Café prices"]) == ids(vocabulary, ["Café prices"])) == strip_diacritics
