"""Tokenizer files of transformers, in and out.

`spiece.model` is the SentencePiece model, unchanged; `vocab.txt` a WordPiece vocabulary; `tokenizer_config.json` has the
text rules. transformers 5 saves `tokenizer.json` alone, which lists the pieces with their scores: a SentencePiece model
is made of it again.

The ids are those of the original tokenizer, which transformers 4's slow tokenizer gives too. transformers' fast
tokenizers, the only ones of version 5, differ from it: they keep "9," together, and drop the word mark "▁" before
( ) " - . – £ € as they cut the text there first.
"""

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tf.conversion.archive import folder_until_exit
from albert_tf.errors import InputError
from albert_tf.files import is_there, read_json

if TYPE_CHECKING:
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

SENTENCEPIECE_FILE = "spiece.model"
WORDPIECE_FILE = "vocab.txt"
CONFIG_FILE = "tokenizer_config.json"
FAST_FILE = "tokenizer.json"
# Options of BertTokenizer → the only values that our WordPiece vocabulary has a form for.
_BERT_RULES = {"tokenize_chinese_chars": (True, None), "do_basic_tokenize": (True, None)}


def read_tokenizer_files(folder: Path) -> tuple[Path | None, dict[str, bool]]:
    """The vocabulary file of a folder and its text rules, as `AlbertTokenizer.from_pretrained` takes them.

    Returns:
        (None, {}) where the folder has none.

    Raises:
        InputError: damaged files, rules that ours has no form for, or a `tokenizer.json` of another kind.
    """
    path = folder / CONFIG_FILE
    settings = _json_object(path) if is_there(path) else {}
    lower, keep_accents = settings.get("do_lower_case", True), settings.get("keep_accents", False)
    for name, value in (("do_lower_case", lower), ("keep_accents", keep_accents)):
        if not isinstance(value, bool):
            raise InputError(f"{path}: {name}: expected true or false, got {value!r}")
    vocabularies = [name for name in (SENTENCEPIECE_FILE, WORDPIECE_FILE) if is_there(folder / name)]
    if len(vocabularies) == 2:
        raise InputError(
            f"{folder}: has {' and '.join(vocabularies)}; leave only the one that the model was trained with"
        )
    if vocabularies == [WORDPIECE_FILE]:
        strips = settings.get("strip_accents")
        if strips not in (None, lower):
            raise InputError(
                f"{path}: strip_accents={strips} with do_lower_case={lower}: albert-tf does both or neither"
            )
        for name, allowed in _BERT_RULES.items():
            if settings.get(name) not in allowed:
                raise InputError(f"{path}: {name}={settings[name]}: albert-tf has no form for that")
        return folder / WORDPIECE_FILE, {"lower": lower}
    rules = {"lower": lower, "keep_accents": keep_accents, "quotes": True}
    if vocabularies:
        return folder / SENTENCEPIECE_FILE, rules
    if is_there(folder / FAST_FILE):
        return _sentencepiece_model(folder / FAST_FILE), rules
    return None, {}


def write_tokenizer_files(folder: Path, tokenizer: "AlbertTokenizer") -> list[str]:
    """Writes the vocabulary and `tokenizer_config.json`.

    Returns:
        In what transformers' text rules differ from this tokenizer's, in words.
    """
    vocabulary = tokenizer.vocabulary
    options = vocabulary.options()
    names = {
        name: vocabulary.pieces([index])[0]
        for name, index in (
            ("unk_token", vocabulary.unk_id),
            ("pad_token", vocabulary.pad_id),
            ("cls_token", vocabulary.cls_id),
            ("sep_token", vocabulary.sep_id),
            ("mask_token", vocabulary.mask_id),
        )
    }
    settings = {"do_lower_case": options["lower"], "model_max_length": tokenizer.max_length, **names}
    differences = []
    if vocabulary.kind == "sentencepiece":
        vocabulary.save(folder)
        (folder / "vocabulary.spm").rename(folder / SENTENCEPIECE_FILE)
        settings |= {"tokenizer_class": "AlbertTokenizer", "keep_accents": options["keep_accents"]}
        differences.append(
            "transformers' fast tokenizer keeps a digit and a comma together and drops the word mark before ( ) \" - ."
        )
        if not options["quotes"]:
            differences.append("transformers turns `` and '' into \" first, this tokenizer does not")
    else:
        vocabulary.save(folder)
        settings |= {"tokenizer_class": "BertTokenizer", "tokenize_chinese_chars": True, "strip_accents": None}
    (folder / CONFIG_FILE).write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return differences


def _json_object(path: Path) -> dict[str, Any]:
    held = read_json(path)
    if not isinstance(held, dict):
        raise InputError(f"{path}: expected a JSON object, found {type(held).__name__}")
    return held


def _sentencepiece_model(path: Path) -> Path:
    """A SentencePiece model with the pieces, scores and normaliser of a `tokenizer.json`; removed when the process ends.

    Raises:
        InputError: not a unigram vocabulary of the `tokenizers` library.
    """
    from sentencepiece import sentencepiece_model_pb2

    from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary

    model: Any = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]  # protobuf makes it at run time
    saved = _json_object(path)
    try:
        vocabulary, unk_id = saved["model"]["vocab"], saved["model"]["unk_id"]
        types = {unk_id: model.SentencePiece.UNKNOWN}
        for token in saved["added_tokens"]:
            kind = model.SentencePiece.CONTROL if token["special"] else model.SentencePiece.USER_DEFINED
            types.setdefault(token["id"], kind)
        for index, (piece, score) in enumerate(vocabulary):
            kind = types.get(index, model.SentencePiece.NORMAL)
            model.pieces.add(piece=piece, score=score, type=kind)
        for step in (saved["normalizer"] or {}).get("normalizers", []):
            if step["type"] == "Precompiled":
                model.normalizer_spec.precompiled_charsmap = base64.b64decode(
                    step["precompiled_charsmap"], validate=True
                )
        model.trainer_spec.unk_id = unk_id
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(
            f"{path}: expected the unigram vocabulary that transformers saves for ALBERT, found another one; put the "
            f"vocabulary that the model was trained with, {SENTENCEPIECE_FILE} or {WORDPIECE_FILE}, into the folder"
        ) from error
    model.trainer_spec.model_type = model.trainer_spec.UNIGRAM
    model.trainer_spec.pad_id = model.trainer_spec.bos_id = model.trainer_spec.eos_id = -1
    contents = model.SerializeToString()
    try:
        SentencePieceVocabulary(contents)
    except InputError as error:
        raise InputError(f"{path}: made a SentencePiece model again, it is none for ALBERT: {error}") from error
    made = folder_until_exit() / SENTENCEPIECE_FILE
    made.write_bytes(contents)
    return made
