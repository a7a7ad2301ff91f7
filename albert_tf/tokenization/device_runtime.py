"""What the text tasks of device runtimes make of a text, with the very libraries that they are built on.

MediaPipe Tasks (bert_preprocessor_calculator.cc, tasks/cc/text/tokenizers) and Task Library lower-case ASCII, whatever
the model, then tokenize: a SentencePiece file with SentencePiece, a `vocab.txt` with TensorFlow Text's kernels.
"""

import string
from collections.abc import Callable, Sequence

import sentencepiece

from albert_tf.tokenization.api import Vocabulary
from albert_tf.tokenization.device_model import device_model
from albert_tf.tokenization.rules import to_utf8, without_surrogates
from albert_tf.tokenization.sentencepiece import SentencePieceVocabulary
from albert_tf.tokenization.wordpiece import WordPieceVocabulary

DeviceEncoder = Callable[[Sequence[str]], list[list[int]]]

_LOWER_ASCII = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
# bert_tokenizer.h: ASCII signs, Unicode punctuation and ideographs are words of their own.
_WORD = (
    r"[!-/:-@\[-`{-~\p{P}\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}"
    r"\x{2B740}-\x{2B81F}\x{2B820}-\x{2CEAF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}]"
)
_MOST_BYTES = 100  # of a word; a longer one is unknown


def device_encoder(vocabulary: Vocabulary) -> DeviceEncoder:
    """A function from texts to the ids that a device runtime gives them with the file of `save_device_model`.

    Loads TensorFlow Text for a WordPiece vocabulary.
    """
    if isinstance(vocabulary, SentencePieceVocabulary):
        return _sentencepiece_encoder(device_model(vocabulary))
    if isinstance(vocabulary, WordPieceVocabulary):
        return _wordpiece_encoder(vocabulary)
    raise TypeError(f"no device runtime has a tokenizer for a vocabulary of kind {vocabulary.kind!r}")


def _sentencepiece_encoder(model: bytes) -> DeviceEncoder:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    def encode(texts: Sequence[str]) -> list[list[int]]:
        # To strings and from those to ids, as the runtimes do.
        lowered = [without_surrogates(text).translate(_LOWER_ASCII) for text in texts]
        return [processor.piece_to_id(processor.encode_as_pieces(text)) for text in lowered]

    return encode


def _wordpiece_encoder(vocabulary: WordPieceVocabulary) -> DeviceEncoder:
    import tensorflow as tf
    import tensorflow_text

    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            vocabulary.tokens, tf.range(vocabulary.size, dtype=tf.int64), key_dtype=tf.string
        ),
        default_value=-1,
    )
    segmenter = tensorflow_text.WordpieceTokenizer(
        table,
        max_bytes_per_word=_MOST_BYTES,
        max_chars_per_token=_MOST_BYTES,
        unknown_token=vocabulary.tokens[vocabulary.unk_id],
    )

    def encode(texts: Sequence[str]) -> list[list[int]]:
        lowered = tf.constant([to_utf8(text.translate(_LOWER_ASCII)) for text in texts])
        words = tensorflow_text.regex_split(lowered, rf"\s+|{_WORD}", _WORD)
        return segmenter.tokenize(words).merge_dims(1, 2).to_list()

    return encode
