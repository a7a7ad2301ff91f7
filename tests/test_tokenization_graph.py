import numpy as np
import pytest
import tensorflow as tf
from small_vocabularies import LINES, fuzzed_texts, sentencepiece_vocabulary, wordpiece_vocabulary

from albert_tf.errors import InputError
from albert_tf.tokenization.graph import GraphTokenizer
from albert_tf.tokenization.rules import to_utf8
from albert_tf.tokenization.tokenizer import AlbertTokenizer

BOTH = pytest.mark.parametrize("vocabulary", [sentencepiece_vocabulary, wordpiece_vocabulary], ids=["spm", "wordpiece"])


def strings(texts):
    return tf.constant([to_utf8(text) for text in texts], tf.string)


def assert_same(graph, python):
    assert sorted(graph) == sorted(python)
    for name, expected in python.items():
        assert graph[name].dtype == tf.int32
        np.testing.assert_array_equal(graph[name], expected, err_msg=name)


@BOTH
@pytest.mark.parametrize("max_length", [3, 4, 9, 64])
def test_same_as_python(vocabulary, max_length):
    tokenizer = AlbertTokenizer(vocabulary(), max_length)
    graph = GraphTokenizer(tokenizer)
    texts, pairs = [*LINES, *fuzzed_texts(200, 8)], [*fuzzed_texts(200, 9), *LINES]
    assert_same(graph(strings(texts)), tokenizer(texts))
    assert_same(graph(strings(texts), strings(pairs)), tokenizer(texts, pairs))
    for length in {3, max_length, (max_length + 3) // 2}:
        assert_same(graph(strings(texts), length=length), tokenizer(texts, length=length))
        assert_same(graph(strings(texts), strings(pairs), length=length), tokenizer(texts, pairs, length=length))


@BOTH
def test_in_a_pipeline(vocabulary):
    tokenizer = AlbertTokenizer(vocabulary(), 16)
    graph = GraphTokenizer(tokenizer)
    dataset = tf.data.Dataset.from_tensor_slices((LINES, LINES[::-1])).batch(3)  # the last batch is smaller
    dataset = dataset.map(lambda text, pair: graph(text, pair), num_parallel_calls=2)
    starts = range(0, len(LINES), 3)
    for start, inputs in zip(starts, dataset, strict=True):
        assert_same(inputs, tokenizer(LINES[start : start + 3], LINES[::-1][start : start + 3]))


@BOTH
def test_first_used_while_a_graph_is_built(vocabulary):
    tokenizer = AlbertTokenizer(vocabulary(), 16)
    graphs = []

    @tf.function
    def lengths(texts):
        graphs.append(GraphTokenizer(tokenizer))
        return graphs[-1](texts)

    assert_same(lengths(strings(LINES)), tokenizer(LINES))
    assert_same(graphs[0](strings(LINES)), tokenizer(LINES))


@BOTH
def test_saved_model(tmp_path, vocabulary):
    tokenizer = AlbertTokenizer(vocabulary(), 16)
    module = GraphTokenizer(tokenizer)
    signature = tf.function(module.__call__, input_signature=[tf.TensorSpec([None], tf.string)])
    module.served = signature
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures=signature)
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    assert_same(loaded.served(strings(LINES)), tokenizer(LINES))
    outputs = loaded.signatures["serving_default"](strings(LINES))
    assert {name: tuple(array.shape) for name, array in outputs.items()} == dict.fromkeys(
        ("token_ids", "segment_ids", "padding_mask"), tokenizer(LINES)["token_ids"].shape
    )


@BOTH
def test_empty_batch(vocabulary):
    tokenizer = AlbertTokenizer(vocabulary(), 16)
    graph = GraphTokenizer(tokenizer)
    assert graph(strings([]))["token_ids"].shape == (0, 0)
    assert graph([], [], length=8)["token_ids"].shape == (0, 8)
    assert_same(graph(["", " "]), tokenizer(["", " "]))


def test_wrong_arguments():
    graph = GraphTokenizer(AlbertTokenizer(wordpiece_vocabulary(), 16))
    with pytest.raises(InputError, match=r"texts: expected tf.string \(batch,\), got string \(\); batch the texts"):
        graph(tf.constant("a"))
    with pytest.raises(InputError, match=r"pairs: expected tf.string \(batch,\), got int32 \(1,\)"):
        graph(tf.constant(["a"]), tf.constant([1]))
    with pytest.raises(InputError, match="length: expected 3 to 16"):
        graph(tf.constant(["a"]), length=17)


@BOTH
@pytest.mark.parametrize("length", [None, 5, 12])
def test_offsets(vocabulary, length):
    tokenizer = AlbertTokenizer(vocabulary(), 20)
    graph = GraphTokenizer(tokenizer)
    texts, pairs = [*LINES, *fuzzed_texts(200, 12)], [*fuzzed_texts(200, 13), *LINES]
    for second in (None, pairs):
        found = graph.encode_with_offsets(strings(texts), None if second is None else strings(second), length=length)
        offsets = found.pop("offsets")
        assert_same(found, tokenizer(texts, second, length=length))
        assert offsets.dtype == tf.int32 and offsets.shape == (*found["token_ids"].shape, 2)
        expected = tokenizer.encode_batch_with_offsets(texts, second, length=length)
        for row, spans in zip(offsets.numpy().tolist(), expected, strict=True):
            padding = [[0, 0]] * (len(row) - len(spans.offsets))
            assert row == [*map(list, spans.offsets), *padding]


@BOTH
def test_offsets_in_a_saved_model(tmp_path, vocabulary):
    tokenizer = AlbertTokenizer(vocabulary(), 16)
    module = GraphTokenizer(tokenizer)
    module.served = tf.function(module.encode_with_offsets, input_signature=[tf.TensorSpec([None], tf.string)])
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures=module.served)
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    expected = module.encode_with_offsets(strings(LINES))
    assert_same(loaded.signatures["serving_default"](strings(LINES)), expected)
    assert module.encode_with_offsets(strings([]), strings([]))["offsets"].shape == (0, 0, 2)
