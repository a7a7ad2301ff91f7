import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from small_vocabularies import LINES, sentencepiece_vocabulary

from albert_tf.tokenization.charsmap import compile_charsmap, read_charsmap

RULES = {"a": "", "B": "b", "ab": "xyz", "é": "e", "``": '"', "\u3000": " ", "한": "\u1112\u1161\u11ab", "😀😀": "!"}


def test_what_is_compiled_is_read():
    assert read_charsmap(compile_charsmap(RULES)) == RULES
    assert read_charsmap(b"") == {}


def test_same_rules_same_bytes():
    assert compile_charsmap(dict(reversed(RULES.items()))) == compile_charsmap(RULES)


def test_sentencepiece_follows_the_rules():
    proto = sentencepiece_model_pb2.ModelProto.FromString(sentencepiece_vocabulary().model)
    proto.normalizer_spec.precompiled_charsmap = compile_charsmap(RULES)
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    assert processor.normalize("abaaBc ``é\u3000\u3000한😀😀😀") == '▁xyzbc▁"e▁\u1112\u1161\u11ab!😀'


def test_map_of_a_trained_model():
    """nmt_nfkc of sentencepiece: every rule that is read must be what the library does with its source."""
    model = sentencepiece_vocabulary().model
    compiled = sentencepiece_model_pb2.ModelProto.FromString(model).normalizer_spec.precompiled_charsmap
    rules = read_charsmap(compiled)
    assert len(rules) > 200_000 and rules["ﬁ"] == "fi" and rules["e\u0301"] == "é"
    assert compile_charsmap(rules) == compiled
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    for source in [*list(rules)[::997], *(c for line in LINES for c in line if c in rules)]:
        # Between digits, which no rule joins with anything.
        assert processor.normalize(f"0{source}0").replace("▁", " ") == " 0" + rules[source] + "0"
