"""Dense layers behind a layer norm, with even inputs: the same float answers, and less lost where inputs are rounded."""

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tiny_exports import exported, random_inputs

from export import integer_weights
from export.integer_weights import WeightBits, rewrite_weights
from export.smoothing import smooth
from export.tflite_metadata import packed


def run(model: bytes, length: int = 17) -> np.ndarray:
    from ai_edge_litert.interpreter import Interpreter

    token_ids, segment_ids = random_inputs(length)
    inputs = {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": [1] * length}
    arrays = {name: np.array([values], np.int32) for name, values in inputs.items()}
    return Interpreter(model_content=model).get_signature_runner()(**arrays)["probabilities"]


def smoothed(model: bytes) -> tuple[bytes, int]:
    """The model with even inputs, and the number of operators that were added."""
    content = schema.ModelT.InitFromPackedBuf(bytearray(model))
    before = sum(len(graph.operators) for graph in content.subgraphs)
    smooth(content)
    return packed(content, 2 * len(model)), sum(len(graph.operators) for graph in content.subgraphs) - before


@pytest.mark.parametrize(
    ("name", "form", "layers"),
    [
        ("all", "loop", 2),  # the block's feed-forward layer, and the projection behind the embeddings
        ("all", "unrolled", 4),
        ("none, inner 2", "unrolled", 5),
        ("ffn", "unrolled", 1),  # of two norms that differ before one feed-forward layer, neither
    ],
)
def test_float_answers_stay(name: str, form: str, layers: int) -> None:
    plain = exported(name, form=form).read_bytes()
    even, added = smoothed(plain)
    assert added == layers
    np.testing.assert_allclose(run(even), run(plain), rtol=0, atol=1e-6)


def test_less_is_lost_behind_a_norm_with_large_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two columns of the norm's output take nearly all of a row's range, and the dense layer makes little of them."""
    import keras
    import tensorflow as tf
    from ai_edge_litert.interpreter import Interpreter

    random = np.random.default_rng(0)
    large = np.where(np.arange(64) < 2, 30.0, 1.0)
    norm, dense = keras.layers.LayerNormalization(), keras.layers.Dense(48)
    norm.build((None, 64)), dense.build((None, 64))
    norm.gamma.assign(large)
    dense.kernel.assign(random.standard_normal((64, 48)) / large[:, None])
    graph = tf.function(lambda x: dense(norm(x)), input_signature=[tf.TensorSpec((5, 64))])
    model = tf.lite.TFLiteConverter.from_concrete_functions([graph.get_concrete_function()]).convert()
    x = random.standard_normal((5, 64)).astype(np.float32)

    def run(model: bytes) -> np.ndarray:
        interpreter = Interpreter(model_content=model)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

    def lost(bits: WeightBits) -> float:
        return float(np.abs(run(rewrite_weights(model, bits)) - run(model)).mean())

    for bits in (WeightBits(), WeightBits(4, 4, 32)):
        even = lost(bits)
        with monkeypatch.context() as patch:
            patch.setattr(integer_weights, "smooth", lambda content: None)
            assert 0 < even < 0.5 * lost(bits)
