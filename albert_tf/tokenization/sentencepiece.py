"""SentencePiece vocabularies: the published English models and those of `training.train_sentencepiece`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.files import written_whole
from albert_tf.tokenization import sentencepiece_model as models
from albert_tf.tokenization.alignment import Span, pieces_in_text
from albert_tf.tokenization.remembered import RememberedWords
from albert_tf.tokenization.rules import WORD_START
from albert_tf.tokenization.sentencepiece_words import WordEncoder
from albert_tf.tokenization.word_table import WordTable

FILE_NAME = "vocabulary.spm"
# A character map without rules: the size of its trie, a trie in which nothing is found, and no replacements.
_EMPTY_CHARSMAP = (1024).to_bytes(4, "little") + bytes(1025)


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
        self.model = model if isinstance(model, bytes) else models.read_model(model)
        self.lower, self.keep_accents, self.quotes = lower, keep_accents, quotes
        proto = models.parse_model(self.model, source)
        self._pieces = [piece.piece for piece in proto.pieces]
        self.size = len(self._pieces)
        self.unk_id = models.unknown_id(proto, source)
        self.pad_id, self.cls_id, self.sep_id, self.mask_id = models.special_ids(self._pieces, source)
        self.charsmap = proto.normalizer_spec.precompiled_charsmap
        self.words = WordEncoder(proto, self._pieces, self.unk_id, self.options())
        self._remembered_ids = RememberedWords(self.words.ids_of)
        self._remembered_pieces = RememberedWords(self.words.pieces_of)
        self._table = WordTable(self.words.ids_of)

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> "SentencePieceVocabulary":
        """Reads a SentencePiece model file; `options` are the text rules of the constructor."""
        return cls(Path(path), **options)

    def encode(self, text: str) -> list[int]:
        """The ids of one text, without special tokens. Any string is accepted, the empty one gives []."""
        return memoryview(b"".join(self._remembered_ids.look_up(text.split()))).cast("i").tolist()

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each text, several times as fast."""
        return self._table.encode(texts)

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[Span]]:
        """`encode`, and for each id the characters of `text` that it stands for, (start, end); see alignment.py."""
        words = text.split()
        return pieces_in_text(text, words, self._remembered_pieces.look_up(words))

    def decode(self, ids: list[int]) -> str:
        """The text that the ids spell; special tokens are left out."""
        special = {self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id}
        return "".join(self.pieces([i for i in ids if i not in special])).replace(WORD_START, " ").lstrip(" ")

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
        return [[new for new, _ in self.words.row(index)] for index in range(self.size)]

    def graph_model(self) -> bytes:
        """The model for `tensorflow_text.FastSentencepieceTokenizer`, which needs a normaliser: one that changes nothing
        where the model has none."""
        proto = models.plain_model(self.model, self.unk_id)
        if not proto.normalizer_spec.precompiled_charsmap:
            proto.normalizer_spec.precompiled_charsmap = _EMPTY_CHARSMAP
        return proto.SerializeToString()

    def graph_encoder(self) -> Any:
        """A callable from a tf.string tensor (n,) to a tf.RaggedTensor of int32 ids (n, None), equal to `encode`."""
        from albert_tf.tokenization.graph_encoders import SentencePieceEncoder

        return SentencePieceEncoder(self)

    def graph_offset_encoder(self) -> Any:
        """A callable from a tf.string tensor (n,) to ids and spans, equal to `encode_with_offsets`; see graph_offsets.py."""
        from albert_tf.tokenization.graph_offsets import SentencePieceOffsetEncoder

        return SentencePieceOffsetEncoder(self)
