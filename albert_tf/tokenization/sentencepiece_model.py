"""SentencePiece model files: read, checked to be ALBERT's kind, and what the tokenizers need of them."""

from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from albert_tf.errors import InputError
from albert_tf.files import refuse_special
from albert_tf.tokenization.rules import WORD_START

SPECIAL_PIECES = {"pad_id": "<pad>", "cls_id": "[CLS]", "sep_id": "[SEP]", "mask_id": "[MASK]"}

_Model = sentencepiece_model_pb2.ModelProto  # type: ignore[attr-defined]  # protobuf makes it at run time
_Piece = _Model.SentencePiece
# SentencePiece's own limit is 16 unless told otherwise; all beginnings of all pieces may be kept in memory.
_LONGEST_PIECE = 128
# The least log probability of a published piece is -17.
_GREATEST_SCORE = 1e6


def read_model(path: str | Path) -> bytes:
    """The bytes of a model file."""
    refuse_special(path)
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def parse_model(model: bytes, source: str) -> Any:
    """The parsed model, checked to be one that `SentencePieceVocabulary` encodes as SentencePiece does."""
    try:
        proto = _Model.FromString(model)
        sentencepiece.SentencePieceProcessor(model_proto=model)
    except Exception as error:  # protobuf's and sentencepiece's own types, which differ between releases
        raise InputError(f"{source}: expected a SentencePiece model, but it cannot be parsed ({error})") from error
    if not any(map(is_text, proto.pieces)):
        raise InputError(f"{source}: expected a SentencePiece model, found no pieces of text in it")
    normalizer, trainer = proto.normalizer_spec, proto.trainer_spec
    needed = {
        "model_type": (trainer.model_type == trainer.UNIGRAM, "unigram"),
        "add_dummy_prefix": (normalizer.add_dummy_prefix, "true"),
        "remove_extra_whitespaces": (normalizer.remove_extra_whitespaces, "true"),
        "escape_whitespaces": (normalizer.escape_whitespaces, "true"),
        "treat_whitespace_as_suffix": (not trainer.treat_whitespace_as_suffix, "false"),
    }
    wrong = [f"{name}={value}" for name, (as_needed, value) in needed.items() if not as_needed]
    if wrong:
        raise InputError(
            f"{source}: ALBERT vocabularies are SentencePiece models with {', '.join(wrong)}; this is not one"
        )
    for index, piece in enumerate(proto.pieces):
        if not isinstance(piece.piece, str):  # protobuf gives bytes that are no UTF-8 as they are
            raise InputError(f"{source}: piece {index} is no UTF-8 text; the file is damaged")
        if len(piece.piece) > _LONGEST_PIECE or not abs(piece.score) <= _GREATEST_SCORE:  # nor NaN
            raise InputError(
                f"{source}: piece {index} {piece.piece[:20]!r} has {len(piece.piece)} characters and the score "
                f"{piece.score:g}; expected at most {_LONGEST_PIECE}, and a log probability"
            )
        if piece.type not in (_Piece.NORMAL, _Piece.USER_DEFINED, _Piece.UNKNOWN, _Piece.CONTROL):
            raise InputError(
                f"{source}: piece {index} {piece.piece!r} is of a type (byte or unused) that ALBERT has not"
            )
        if is_text(piece) and WORD_START in piece.piece[1:]:
            raise InputError(
                f"{source}: piece {index} {piece.piece!r} spans a space; train with split_by_whitespace=true"
            )
    return proto


def plain_model(model: bytes, unk_id: int) -> Any:
    """The model, parsed, with what TensorFlow Text does not read from it made explicit.

    User-defined symbols become plain pieces: all searches take their score as it is written. The id of the unknown
    piece is filled in, which a model may leave to the piece's type.
    """
    proto = _Model.FromString(model)
    for piece in proto.pieces:
        if piece.type == _Piece.USER_DEFINED:
            piece.type = _Piece.NORMAL
    proto.trainer_spec.unk_id = unk_id
    return proto


def search_model(model: bytes, unk_id: int) -> Any:
    """`plain_model` without a normaliser: it cuts up text as it is."""
    proto = plain_model(model, unk_id)
    spec = proto.normalizer_spec
    spec.precompiled_charsmap = b""
    spec.add_dummy_prefix = spec.remove_extra_whitespaces = spec.escape_whitespaces = False
    return proto


def normalizer_of(proto: Any) -> sentencepiece.SentencePieceProcessor:
    """A processor that normalizes as the model does; with two pieces, as what else it knows takes memory."""
    small = _Model()
    small.trainer_spec.CopyFrom(proto.trainer_spec)
    small.normalizer_spec.CopyFrom(proto.normalizer_spec)
    small.pieces.add(piece="<unk>", type=_Piece.UNKNOWN)
    small.pieces.add(piece=WORD_START, type=_Piece.NORMAL)
    small.trainer_spec.unk_id = 0
    return sentencepiece.SentencePieceProcessor(model_proto=small.SerializeToString())


def changes_ascii(charsmap: bytes) -> bool:
    """Whether a normalisation map has a rule for printable ASCII characters alone, spaces excepted.

    Walks the trie that the map begins with (after its size): a double array of darts-clone, darts.h.
    """
    size = int.from_bytes(charsmap[:4], "little")
    units = np.frombuffer(charsmap[4 : 4 + size // 4 * 4], "<u4").tolist()
    nodes = [0] if units else []
    seen = set()  # in a damaged map, a way may lead back
    while nodes:
        node = nodes.pop()
        if node in seen:
            continue
        seen.add(node)
        children = node ^ ((units[node] >> 10) << ((units[node] & 0x200) >> 6))
        for label in range(ord("!"), ord("~") + 1):
            child = children ^ label
            if child < len(units) and units[child] & 0x800000FF == label:
                if units[child] >> 8 & 1:
                    return True
                nodes.append(child)
    return False


def is_text(piece: Any) -> bool:
    """Whether a text may contain it: neither a control piece nor the unknown one."""
    return piece.type in (_Piece.NORMAL, _Piece.USER_DEFINED)


def unknown_id(proto: Any, source: str) -> int:
    """The id of the piece that stands for unknown characters."""
    found = [index for index, piece in enumerate(proto.pieces) if piece.type == _Piece.UNKNOWN]
    if len(found) != 1:
        raise InputError(f"{source}: expected one piece for unknown characters, such as <unk>, found {len(found)}")
    return found[0]


def special_ids(pieces: list[str], source: str) -> list[int]:
    """The ids of `SPECIAL_PIECES`."""
    missing = [piece for piece in SPECIAL_PIECES.values() if piece not in pieces]
    if missing:
        raise InputError(
            f"{source}: expected the special pieces {', '.join(SPECIAL_PIECES.values())}; "
            f"{', '.join(missing)} missing. Train the model with them, as train_sentencepiece does"
        )
    return [pieces.index(piece) for piece in SPECIAL_PIECES.values()]
