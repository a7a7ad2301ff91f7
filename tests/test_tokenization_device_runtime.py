from small_vocabularies import LINES, sentencepiece_vocabulary, wordpiece_vocabulary

from albert_tf.tokenization.device_model import device_model
from albert_tf.tokenization.device_runtime import device_encoder


def test_sentencepiece_lower_cases_ascii_and_gives_the_ids_of_the_device_model():
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=device_model(sentencepiece_vocabulary()))
    expected = [processor.encode(line) for line in LINES]
    encode = device_encoder(sentencepiece_vocabulary())
    assert encode(LINES) == expected
    assert encode([line.upper() for line in LINES[:3]]) == expected[:3]
    assert encode([]) == [] and encode(["", "\ud800"]) == [[], encode(["\ufffd"])[0]]


def test_sentencepiece_has_no_capitals_for_a_cased_vocabulary():
    vocabulary = sentencepiece_vocabulary(lower=False)
    [ids] = device_encoder(vocabulary)(["The Mill"])
    assert ids == vocabulary.encode("the mill") != vocabulary.encode("The Mill")


def test_wordpiece_cuts_as_mediapipe_does():
    vocabulary = wordpiece_vocabulary()
    encode = device_encoder(vocabulary)

    def pieces(text):
        [ids] = encode([text])
        return vocabulary.pieces(ids)

    assert pieces("The MILLS!") == ["the", "mill", "##s", "!"]
    assert pieces("我爱 中国，人。") == ["我", "爱", "中", "国", "，", "人", "。"]
    assert pieces("café") == ["café"]  # no accent is dropped
    assert pieces("cafÉ") == ["[UNK]"]  # and only ASCII lower-cased
    assert pieces("the\u00a0mill") == ["[UNK]"]  # other spaces are letters
    assert pieces("a" * 100 + " " + "a" * 101) == ["a", *["##aa"] * 49, "##a", "[UNK]"]
    assert encode(["", "\ud800"]) == [[], [vocabulary.unk_id]]


def test_wordpiece_agrees_on_plain_text():
    texts = ["The mill's wheel.", "我爱你中国人，the mill。", "a b ab!", ""]
    vocabulary = wordpiece_vocabulary()
    assert device_encoder(vocabulary)(texts) == [vocabulary.encode(text) for text in texts]
