"""SentencePiece vocabularies: the published English models and those of `training.train_sentencepiece`."""

from pathlib import Path
from typing import Any

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from albert_tf.errors import InputError
from albert_tf.files import refuse_special, written_whole
from albert_tf.tokenization.rules import WORD_START, digit_comma_table, sentencepiece_words
from albert_tf.tokenization.unigram import UnigramModel

FILE_NAME = "vocabulary.spm"
_SPECIAL_PIECES = {"pad_id": "<pad>", "cls_id": "[CLS]", "sep_id": "[SEP]", "mask_id": "[MASK]"}
_REMEMBERED_WORDS = 200_000
# SentencePiece's own limit is 16 unless told otherwise; all beginnings of all pieces are kept in memory.
_LONGEST_PIECE = 128
# The least log probability of a published piece is -17.
_GREATEST_SCORE = 1e6
# A character map without rules: the size of its trie, a trie in which nothing is found, and no replacements.
_EMPTY_CHARSMAP = (1024).to_bytes(4, "little") + bytes(1025)

_Model = sentencepiece_model_pb2.ModelProto  # type: ignore[attr-defined]  # protobuf makes it at run time
_Piece = _Model.SentencePiece


class SentencePieceVocabulary:
    """A unigram SentencePiece model with ALBERT's text rules; see `tokenization.api.Vocabulary`.

    The ids are those of google-research/albert's `FullTokenizer`: text rules, segmentation, digit-comma rule. Texts are
    segmented word by word (why: unigram.py), so the model must be one that never joins words.

    Args:
        model: the bytes of a SentencePiece model, or the path of its file.
        lower: lower-case the text (all published ALBERT models are uncased).
        keep_accents: neither decompose the text nor drop its combining marks.
        quotes: turn `` and '' into ", as transformers does and the original does not.

    Raises:
        InputError: not a SentencePiece model, not a unigram model of whole words, or a special token is missing.
    """

    kind = "sentencepiece"

    def __init__(
        self, model: bytes | str | Path, *, lower: bool = True, keep_accents: bool = False, quotes: bool = False
    ) -> None:
        source = "SentencePiece model" if isinstance(model, bytes) else str(model)
        self.model = model if isinstance(model, bytes) else _read_bytes(model)
        self.lower, self.keep_accents, self.quotes = lower, keep_accents, quotes
        proto = _parse(self.model, source)
        self._pieces = [piece.piece for piece in proto.pieces]
        self.size = len(self._pieces)
        self.unk_id = _unknown_id(proto, source)
        self.pad_id, self.cls_id, self.sep_id, self.mask_id = _special_ids(self._pieces, source)
        plain = _plain_model(self.model, self.unk_id).SerializeToString()
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=plain)
        text_pieces = [(p.piece, i, p.score) for i, p in enumerate(proto.pieces) if _is_text(p)]
        self._unigram = UnigramModel(text_pieces, self.unk_id)
        self._digit_commas = digit_comma_table(self._pieces, self._segment, self.unk_id)
        self._words: dict[str, list[int]] = {}

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> "SentencePieceVocabulary":
        """Reads a SentencePiece model file; `options` are the text rules of the constructor."""
        return cls(Path(path), **options)

    def encode(self, text: str) -> list[int]:
        """The ids of one text, without special tokens. Any string is accepted, the empty one gives []."""
        ids: list[int] = []
        for word in sentencepiece_words(text, lower=self.lower, keep_accents=self.keep_accents, quotes=self.quotes):
            ids += self._words[word] if word in self._words else self._encode_word(word)
        return ids

    def decode(self, ids: list[int]) -> str:
        """The text that the ids spell; special tokens are left out."""
        self.pieces(ids)
        special = {self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id}
        return self._processor.decode([int(i) for i in ids if i not in special])

    def pieces(self, ids: list[int]) -> list[str]:
        """The vocabulary entry of each id.

        Raises:
            InputError: an id is outside the vocabulary.
        """
        for index in ids:
            if not 0 <= index < self.size:
                raise InputError(f"token id {index}: expected 0 to {self.size - 1}, the ids of this vocabulary")
        return [self._pieces[index] for index in ids]

    def options(self) -> dict[str, Any]:
        """The text rules as keyword arguments of the constructor."""
        return {"lower": self.lower, "keep_accents": self.keep_accents, "quotes": self.quotes}

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Writes the model file, unchanged, as `vocabulary.spm` into `folder`."""
        with written_whole(Path(folder) / FILE_NAME, overwrite=overwrite) as temporary:
            temporary.write_bytes(self.model)

    def digit_comma_ids(self) -> list[list[int]]:
        """For each id, the ids that the digit-comma rule puts in its place: mostly itself."""
        return [self._digit_commas.get(index, [index]) for index in range(self.size)]

    def graph_model(self) -> bytes:
        """The model for `tensorflow_text.FastSentencepieceTokenizer`, which needs a normaliser: one that changes nothing
        where the model has none."""
        proto = _plain_model(self.model, self.unk_id)
        if not proto.normalizer_spec.precompiled_charsmap:
            proto.normalizer_spec.precompiled_charsmap = _EMPTY_CHARSMAP
        return proto.SerializeToString()

    def graph_encoder(self) -> Any:
        """A callable from a tf.string tensor (n,) to a tf.RaggedTensor of int32 ids (n, None), equal to `encode`."""
        from albert_tf.tokenization.graph_encoders import SentencePieceEncoder

        return SentencePieceEncoder(self)

    def _encode_word(self, word: str) -> list[int]:
        """The ids of one word, digit-comma rule included; remembered, as most words come again."""
        if len(self._words) >= _REMEMBERED_WORDS:
            self._words.clear()
        ids = [new for old in self._segment(word) for new in self._digit_commas.get(old, (old,))]
        self._words[word] = ids
        return ids

    def _segment(self, word: str) -> list[int]:
        return self._unigram.segment(self._processor.normalize(word))


def _plain_model(model: bytes, unk_id: int) -> Any:
    """The model, parsed, with what TensorFlow Text does not read from it made explicit.

    User-defined symbols become plain pieces: both encoders take their score as it is written. The id of the unknown
    piece is filled in, which a model may leave to the piece's type.
    """
    proto = _Model.FromString(model)
    for piece in proto.pieces:
        if piece.type == _Piece.USER_DEFINED:
            piece.type = _Piece.NORMAL
    proto.trainer_spec.unk_id = unk_id
    return proto


def _is_text(piece: Any) -> bool:
    return piece.type in (_Piece.NORMAL, _Piece.USER_DEFINED)


def _read_bytes(path: str | Path) -> bytes:
    refuse_special(path)
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def _parse(model: bytes, source: str) -> Any:
    """The parsed model, checked to be one that `SentencePieceVocabulary` encodes as SentencePiece does."""
    try:
        proto = _Model.FromString(model)
        sentencepiece.SentencePieceProcessor(model_proto=model)
    except Exception as error:  # protobuf's and sentencepiece's own types, which differ between releases
        raise InputError(f"{source}: expected a SentencePiece model, but it cannot be parsed ({error})") from error
    if not proto.pieces:
        raise InputError(f"{source}: expected a SentencePiece model, found no pieces in it")
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
        if _is_text(piece) and WORD_START in piece.piece[1:]:
            raise InputError(
                f"{source}: piece {index} {piece.piece!r} spans a space; train with split_by_whitespace=true"
            )
    return proto


def _unknown_id(proto: Any, source: str) -> int:
    found = [index for index, piece in enumerate(proto.pieces) if piece.type == _Piece.UNKNOWN]
    if len(found) != 1:
        raise InputError(f"{source}: expected one piece for unknown characters, such as <unk>, found {len(found)}")
    return found[0]


def _special_ids(pieces: list[str], source: str) -> list[int]:
    missing = [piece for piece in _SPECIAL_PIECES.values() if piece not in pieces]
    if missing:
        raise InputError(
            f"{source}: expected the special pieces {', '.join(_SPECIAL_PIECES.values())}; "
            f"{', '.join(missing)} missing. Train the model with them, as train_sentencepiece does"
        )
    return [pieces.index(piece) for piece in _SPECIAL_PIECES.values()]
