"""The normaliser that a SentencePiece model carries, as TensorFlow operations that tell where characters come from.

`tensorflow_text.FastSentencepieceTokenizer` applies it too, but keeps to itself what it did (normalizer.cc of
sentencepiece): from the beginning of a word on, the longest source of the map that fits is replaced, or one character
stays; spaces at the ends and after spaces go, the others become "▁", and "▁" comes in front.
"""

import numpy as np
import tensorflow as tf

from albert_tf.tokenization.graph_rules import next_starts, ragged, row_numbers
from albert_tf.tokenization.rules import WORD_START

_SPACE, _MARK = ord(" "), ord(WORD_START)
_VALUE_BITS = 0x7FFFFFFF
_LABEL_BITS = 0x800000FF


class GraphNormalizer(tf.Module):
    """Words → words as the model's normaliser leaves them.

    Args:
        charsmap: the compiled map of the model; see charsmap.py. The empty one changes nothing.
    """

    def __init__(self, charsmap: bytes) -> None:
        super().__init__()
        size = int.from_bytes(charsmap[:4], "little")
        units = np.frombuffer(charsmap[4 : 4 + size], "<u4")
        targets = charsmap[4 + size :]
        # Where targets begin; units that are not in use may have values, too.
        places = np.unique(units[units > _VALUE_BITS] & _VALUE_BITS)
        places = places[places < len(targets)].tolist()
        texts = [targets[place : targets.index(b"\0", place)].decode("utf-8", "replace") for place in places]
        self._units = units.astype(np.int64) if len(units) else np.zeros(1, np.int64)  # in which nothing is found
        self._target_places = np.array([-1, *places], np.int64)
        self._targets = np.array([ord(character) for text in texts for character in text], np.int32)
        self._target_splits = np.cumsum([0, 0, *map(len, texts)]).astype(np.int64)

    def __call__(self, words: tf.RaggedTensor) -> tuple[tf.RaggedTensor, tf.Tensor, tf.Tensor]:
        """Normalizes words.

        Args:
            words: code points (words, None), no spaces among them.

        Returns:
            Code points (words, None); and for each of them the characters in `words.values` that it stands for, from
            start to end (excluded), int64. Those of "▁" mean nothing.
        """
        lengths, targets = self._matches(words)
        units = reached_places(words, lengths)
        targets = tf.gather(targets, units)
        counts = tf.gather(self._target_splits, targets + 1) - tf.gather(self._target_splits, targets)
        is_kept = targets == 0  # no source fits: the character stays
        counts = tf.where(is_kept, tf.ones_like(counts), counts)
        # What comes of each unit, one after the other.
        unit = tf.repeat(tf.range(tf.size(units)), counts)
        place = tf.range(tf.size(unit, tf.int64)) - tf.gather(tf.cumsum(counts, exclusive=True), unit)
        found = tf.gather(
            tf.concat([self._targets, [0]], 0), tf.gather(tf.gather(self._target_splits, targets), unit) + place
        )
        starts = tf.gather(units, unit)
        values = tf.where(tf.gather(is_kept, unit), tf.gather(words.values, starts), found)
        rows = tf.gather(row_numbers(words), starts)
        ends = next_starts(starts, rows, tf.gather(words.row_splits[1:], rows))
        kept = _kept(values, unit, rows)
        values = tf.where(values == _SPACE, _MARK, values)
        values, starts, ends, rows = (tf.boolean_mask(part, kept) for part in (values, starts, ends, rows))
        return _with_marks(values, starts, ends, rows, words.nrows())

    def _matches(self, words: tf.RaggedTensor) -> tuple[tf.Tensor, tf.Tensor]:
        """For each character the longest source that begins there: its length in characters (1 where there is none), and
        the number of its target (0 where there is none). Walks the trie, byte by byte, for all characters at once."""
        strings = tf.strings.unicode_encode(words, "UTF-8")
        joined = tf.cast(tf.io.decode_raw(tf.strings.reduce_join(strings), tf.uint8), tf.int64)
        is_first = tf.bitwise.bitwise_and(joined, 0xC0) != 0x80
        firsts = tf.where(is_first)[:, 0]
        word_ends = tf.gather(tf.cumsum(tf.cast(tf.strings.length(strings), tf.int64)), row_numbers(words))

        def step(count: tf.Tensor, characters: tf.Tensor, nodes: tf.Tensor, lengths: tf.Tensor, found: tf.Tensor):  # type: ignore[no-untyped-def]
            here = tf.gather(firsts, characters) + count
            within = here < tf.gather(word_ends, characters)
            characters, nodes, here = (tf.boolean_mask(part, within) for part in (characters, nodes, here))
            label = tf.gather(joined, here)
            children = tf.bitwise.bitwise_xor(nodes, label)
            inside = children < len(self._units)
            units = tf.gather(self._units, tf.where(inside, children, 0))
            matches = inside & (tf.bitwise.bitwise_and(units, _LABEL_BITS) == label)
            characters, children, units = (tf.boolean_mask(part, matches) for part in (characters, children, units))
            nodes = tf.bitwise.bitwise_xor(children, _offsets(units))
            ends = tf.boolean_mask(tf.stack([characters, nodes], 1), tf.bitwise.bitwise_and(units, 0x100) != 0)
            values = tf.bitwise.bitwise_and(tf.gather(self._units, ends[:, 1]), _VALUE_BITS)
            lengths = tf.tensor_scatter_nd_update(lengths, ends[:, :1], tf.fill(tf.shape(values), count + 1))
            found = tf.tensor_scatter_nd_update(found, ends[:, :1], values)
            return count + 1, characters, nodes, lengths, found

        characters = tf.range(tf.size(firsts, tf.int64))
        nothing = tf.zeros_like(characters)
        start = (tf.constant(0, tf.int64), characters, nothing + _offsets(self._units[:1]), nothing, nothing - 1)
        flat = tf.TensorShape([None])
        shapes = (tf.TensorShape([]), flat, flat, flat, flat)
        _, _, _, lengths, found = tf.while_loop(lambda count, alive, *rest: tf.size(alive) > 0, step, start, shapes)
        number = tf.searchsorted(self._target_places, found, out_type=tf.int64)
        characters_before = tf.cumsum(tf.cast(is_first, tf.int64))
        last_bytes = firsts + tf.maximum(lengths, 1) - 1
        return tf.gather(characters_before, last_bytes) - characters, number


def _offsets(units: tf.Tensor) -> tf.Tensor:
    """How far the children of nodes are; see charsmap.py."""
    shift = tf.bitwise.right_shift(tf.bitwise.bitwise_and(units, 0x200), tf.constant(6, tf.int64))
    return tf.bitwise.left_shift(tf.bitwise.right_shift(units, tf.constant(10, tf.int64)), shift)


def reached_places(words: tf.RaggedTensor, lengths: tf.Tensor) -> tf.Tensor:
    """The characters at which one comes along, going from the beginning of each word `lengths` characters at a time."""
    size = tf.size(lengths, tf.int64)
    following = tf.concat([tf.range(size) + lengths, [size]], 0)
    word_starts = tf.boolean_mask(words.row_splits[:-1], words.row_lengths() > 0)
    reached = tf.scatter_nd(word_starts[:, None], tf.ones_like(word_starts), [size + 1])

    def step(reached: tf.Tensor, following: tf.Tensor, count: tf.Tensor):  # type: ignore[no-untyped-def]
        # From all places reached so far, as many steps again as led there; the steps double each time.
        ahead = tf.gather(following, tf.where(reached > 0))
        reached = tf.tensor_scatter_nd_max(reached, ahead, tf.ones_like(ahead[:, 0]))
        return reached, tf.gather(following, following), count * 2

    longest = tf.reduce_max(tf.concat([words.row_lengths(), [0]], 0))
    state = (reached, following, tf.constant(1, tf.int64))
    reached, _, _ = tf.while_loop(lambda reached, following, count: count <= longest, step, state)
    return tf.where(reached[:-1] > 0)[:, 0]


def _kept(values: tf.Tensor, unit: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Which characters stay: not the spaces that a unit begins with where nothing or a space is before it in the word,
    and not the spaces at the end of a word."""
    is_space = values == _SPACE
    others = tf.cast(~is_space, tf.int64)
    others_before, others_up_to = tf.cumsum(others, exclusive=True), tf.cumsum(others)
    is_first = tf.concat([[True], unit[1:] != unit[:-1]], 0)[: tf.size(unit)]
    first = tf.where(is_first)[:, 0]  # character of each unit
    group = tf.cumsum(tf.cast(is_first, tf.int32)) - 1
    before = tf.maximum(first - 1, 0)
    after_space = (first == 0) | (tf.gather(rows, before) != tf.gather(rows, first)) | tf.gather(is_space, before)
    leading = (others_up_to == tf.gather(others_before, tf.gather(first, group))) & tf.gather(after_space, group)
    in_row = tf.math.unsorted_segment_max(others_up_to, rows, tf.reduce_max(tf.concat([rows, [0]], 0)) + 1)
    trailing = others_up_to == tf.gather(in_row, rows)
    return ~(is_space & (leading | trailing))


def _with_marks(
    values: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor, rows: tf.Tensor, count: tf.Tensor
) -> tuple[tf.RaggedTensor, tf.Tensor, tf.Tensor]:
    """The characters of `count` words, with "▁" in front of each that has some."""
    lengths = tf.math.bincount(rows, minlength=tf.cast(count, tf.int32), maxlength=tf.cast(count, tf.int32))
    row_splits = tf.concat([[0], tf.cumsum(tf.cast(lengths, tf.int64))], 0)
    mark_splits = tf.concat([[0], tf.cumsum(tf.cast(lengths > 0, tf.int64))], 0)

    def in_front(mark: int, part: tf.Tensor) -> tf.RaggedTensor:
        marks = ragged(tf.fill(mark_splits[-1:], tf.constant(mark, part.dtype)), mark_splits)
        return tf.concat([marks, ragged(part, row_splits)], 1)

    return in_front(_MARK, values), in_front(0, starts).values, in_front(0, ends).values
