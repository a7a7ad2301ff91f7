"""WordPiece vocabularies: Google's Chinese ALBERT models, brightmart's, and any BERT `vocab.txt`."""

import re
from array import array
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from albert_tf.errors import InputError
from albert_tf.files import read_text, refuse_special, written_whole
from albert_tf.tokenization.alignment import Span, pieces_as_bytes, pieces_in_text, sources_of_lengths, spans_through
from albert_tf.tokenization.remembered import RememberedWords
from albert_tf.tokenization.rules import bert_lengths, bert_words, spaced_text
from albert_tf.tokenization.word_table import WordTable

FILE_NAME = "vocab.txt"
MAX_WORD_LENGTH = 200  # characters; a longer word is unknown as a whole (WordpieceTokenizer of google-research/albert)
CONTINUATION = "##"
_SPECIAL_TOKENS = {"pad_id": "[PAD]", "unk_id": "[UNK]", "cls_id": "[CLS]", "sep_id": "[SEP]", "mask_id": "[MASK]"}
_IDEOGRAPH = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


class WordPieceVocabulary:
    """A list of word pieces with BERT's text rules; see `tokenization.api.Vocabulary`.

    The ids are those of google-research/albert's `FullTokenizer` without a SentencePiece model: `BasicTokenizer`, then
    the longest piece that fits, again and again.

    Args:
        tokens: the piece of each id; "##" in front marks one that continues a word.
        lower: lower-case the text and drop accents.

    Raises:
        InputError: an empty or repeated token, or a special token is missing.
    """

    kind = "wordpiece"

    def __init__(self, tokens: Sequence[str], *, lower: bool = True, source: str = "WordPiece vocabulary") -> None:
        self.tokens = list(tokens)
        self.lower = lower
        self.size = len(self.tokens)
        self._ids = _numbered(self.tokens, source)
        missing = [token for token in _SPECIAL_TOKENS.values() if token not in self._ids]
        if missing:
            raise InputError(
                f"{source}: expected the special tokens {', '.join(_SPECIAL_TOKENS.values())}, each on a line of its own; "
                f"{', '.join(missing)} missing among {self.size} lines"
            )
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self._ids[token] for token in _SPECIAL_TOKENS.values()
        )
        self._longest = max(map(len, self.tokens))
        self._remembered = RememberedWords(self._pieces_of)
        self._table = WordTable(self._ids_of)

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> "WordPieceVocabulary":
        """Reads a vocabulary file: one token a line, the line's number (from 0) is its id.

        Args:
            path: a UTF-8 text file; what follows a space or tab in a line is ignored, as in the original.
            options: the text rules of the constructor.
        """
        refuse_special(path)
        lines = read_text(path).split("\n")  # not splitlines(): U+2028 is a token of the published vocabulary
        if lines[-1] in ("", "\r"):
            lines.pop()
        return cls([re.split("[ \t\r]", line.lstrip(" \t"))[0] for line in lines], source=str(path), **options)

    def encode(self, text: str) -> list[int]:
        """The ids of one text, without special tokens. Any string is accepted, the empty one gives []."""
        found = self._remembered.look_up(bert_words(text, lower=self.lower))
        return memoryview(b"".join(found)).cast("i").tolist()[0::3]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each text, several times as fast."""
        return self._table.encode([spaced_text(text, lower=self.lower) for text in texts])

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[Span]]:
        """`encode`, and for each id the characters of `text` that it stands for, (start, end); see alignment.py."""
        spaced = spaced_text(text, lower=self.lower)
        sources = sources_of_lengths(bert_lengths(text, lower=self.lower))
        words = spaced.split()
        found = self._remembered.look_up(words)
        ids, spans = pieces_in_text(spaced, words, found)
        return ids, spans_through(spans, sources)

    def decode(self, ids: list[int]) -> str:
        """The text that the ids spell, special tokens left out; no spaces between ideographs, one between words."""
        special = {self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id}
        text = ""
        for token in self.pieces([index for index in ids if index not in special]):
            if token.startswith(CONTINUATION):
                token = token.removeprefix(CONTINUATION)
            elif text and not (_IDEOGRAPH.match(text[-1]) and _IDEOGRAPH.match(token)):
                text += " "
            text += token
        return text

    def pieces(self, ids: list[int]) -> list[str]:
        """The vocabulary entry of each id.

        Raises:
            InputError: an id is outside the vocabulary.
        """
        for index in ids:
            if not 0 <= index < self.size:
                raise InputError(f"token id {index}: expected 0 to {self.size - 1}, the ids of this vocabulary")
        return [self.tokens[index] for index in ids]

    def options(self) -> dict[str, Any]:
        """The text rules as keyword arguments of the constructor."""
        return {"lower": self.lower}

    def graph_offset_encoder(self) -> Any:
        """A callable from a tf.string tensor (n,) to ids and spans, equal to `encode_with_offsets`; see graph_offsets.py."""
        from albert_tf.tokenization.graph_offsets import WordPieceOffsetEncoder

        return WordPieceOffsetEncoder(self)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Writes the tokens as `vocab.txt` into `folder`."""
        with written_whole(Path(folder) / FILE_NAME, overwrite=overwrite) as temporary:
            temporary.write_bytes("".join(f"{token}\n" for token in self.tokens).encode("utf-8"))

    def graph_encoder(self) -> Any:
        """A callable from a tf.string tensor (n,) to a tf.RaggedTensor of int32 ids (n, None), equal to `encode`."""
        from albert_tf.tokenization.graph_encoders import WordPieceEncoder

        return WordPieceEncoder(self)

    def _ids_of(self, words: list[str]) -> list[bytes]:
        """The ids of each word, as the bytes of int32."""
        return [array("i", [index for index, _ in self._segment(word)]).tobytes() for word in words]

    def _pieces_of(self, words: list[str]) -> list[bytes]:
        """The pieces of each word, with their spans in it; see `alignment.pieces_as_bytes`."""
        segments = map(self._segment, words)
        return [
            pieces_as_bytes([i for i, _ in pieces], pairwise([0, *(end for _, end in pieces)])) for pieces in segments
        ]

    def _segment(self, word: str) -> list[tuple[int, int]]:
        """Id and end of each piece. Greedy: the longest token at each place; the unknown token alone if there is none at
        any one."""
        if len(word) > MAX_WORD_LENGTH:
            return [(self.unk_id, len(word))]
        pieces = []
        start = 0
        while start < len(word):
            prefix = CONTINUATION if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                index = self._ids.get(prefix + word[start:end])
                if index is not None:
                    break
            else:
                return [(self.unk_id, len(word))]
            pieces.append((index, end))
            start = end
        return pieces


def _numbered(tokens: list[str], source: str) -> dict[str, int]:
    """Token → id."""
    ids: dict[str, int] = {}
    for index, token in enumerate(tokens):
        if not isinstance(token, str) or not token:
            raise InputError(f"{source}, line {index + 1}: expected a token, found {token!r}; remove the line")
        if token in ids:
            raise InputError(f"{source}, line {index + 1}: {token!r} stands on line {ids[token] + 1} already")
        ids[token] = index
    return ids
