"""What another encoder made of each word of each text, to learn word by word, whatever the two vocabularies are.

A word is what stands between whitespace. That is the same for every tokenizer, so a teacher's pieces and a student's can
both be put together to words.
"""

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from albert_tf.data.pipeline import Arrays
from albert_tf.data.similarity import read_vectors
from albert_tf.data.text_files import text_lines
from albert_tf.errors import InputError
from albert_tf.tokenization.packing import Encoded

WORDS, WORD_VECTORS = "words", "word_vectors"  # names of targets
NO_WORD = -1

_ROWS_AT_ONCE = 65536


class WordVectors:
    """The vectors of the words of some texts.

    Args:
        rows: float (words of all texts, D), one text after the other, 0 for a word that the encoder did not see; a mapped
            file stays on disk.
        counts: how many words each text has.
        source: the file.

    Attributes:
        length: D.
        mean: of all rows that are not 0, float32 (D,).
        checksum: of all rows.

    Raises:
        InputError: a row is not finite.
    """

    def __init__(self, rows: np.ndarray, counts: Sequence[int], source: str | Path) -> None:
        self._rows, self._counts = rows, np.asarray(counts, np.int64)
        self._starts = np.cumsum(self._counts) - self._counts
        self.length = rows.shape[1]
        total, seen, checksum = np.zeros(self.length), 0, 0
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = np.ascontiguousarray(rows[start : start + _ROWS_AT_ONCE])
            if (bad := np.flatnonzero(~np.isfinite(part).all(axis=1))).size:
                raise InputError(f"{source}, row {start + bad[0] + 1}: expected finite numbers")
            total += part.sum(axis=0, dtype=np.float64)
            seen += int(np.count_nonzero(part.any(axis=1)))
            checksum = zlib.crc32(part.data, checksum)
        self.mean = (total / max(seen, 1)).astype(np.float32)
        self.checksum = f"{checksum:08x}"

    def targets(self, epoch: int, numbers: np.ndarray, inputs: Arrays, wanted: Arrays) -> tuple[Arrays, Arrays]:
        """For `training_dataset`: adds what `of` has for the words that are left of the texts, `WORDS` in `wanted`."""
        most = int(wanted[WORDS].max(initial=NO_WORD)) + 1
        return inputs, wanted | {WORD_VECTORS: self.of(numbers, most)}

    def of(self, numbers: np.ndarray, most: int) -> np.ndarray:
        """The vectors of the first `most` words of these texts, less the mean, float32 (texts, most, D).

        0 for no word, and for words that have a row of 0: the encoder did not see them. Vectors of an encoder have a large
        part in common, beside which cosines would all be near 1.
        """
        vectors = np.zeros((len(numbers), most, self.length), np.float32)
        for place, number in enumerate(numbers):
            start, count = self._starts[number], min(most, self._counts[number])
            rows = np.asarray(self._rows[start : start + count], np.float32)
            vectors[place, :count] = np.where(rows.any(axis=1, keepdims=True), rows - self.mean, 0.0)
        return vectors


def read_word_vectors(path: str | Path, texts: str | Path) -> WordVectors:
    """Reads the vectors of the words of a text file.

    Args:
        path: .npy, float (words, D): a row for each word of `texts`, in order.
        texts: a text a line.

    Raises:
        InputError: a file that cannot be read, another number of rows than words, or a row that is not finite.
    """
    rows = read_vectors(path)
    counts = [len(line.split()) for line in text_lines(texts)]
    if len(rows) != sum(counts):
        raise InputError(
            f"{path}: expected a row for each of the {sum(counts)} words between whitespace in {texts}, found {len(rows)}"
        )
    return WordVectors(rows, counts, path)


def words_of_tokens(text: str, encoded: Encoded) -> np.ndarray:
    """For each token of a row the number of its word in the text, from 0, int16 (tokens,); `NO_WORD` for special tokens.

    Args:
        text: the row's only text.
        encoded: its tokens, as `AlbertTokenizer.encode_with_offsets` gives them.
    """
    is_space = np.array([character.isspace() for character in text], bool)
    begins = ~is_space & np.concatenate([[True], is_space[:-1]])
    word_at = np.cumsum(begins) - 1
    words = np.full(len(encoded.token_ids), NO_WORD, np.int16)
    places = np.array([start for start, _ in encoded.offsets[1:-1]], np.int64)
    words[1:-1] = word_at[np.minimum(places, len(text) - 1)]
    return words
