"""Weights in few bits, against the numbers that they were made from."""

import numpy as np

from export.rounding import block_size, quantized


def test_rounding():
    random = np.random.default_rng(0)
    weights = random.normal(size=(6, 96)).astype(np.float32)
    weights[2] = 0
    for bits, block, steps in ((8, 0, 127), (4, 32, 7), (4, 0, 7)):
        held = quantized(weights, bits, block)
        assert np.abs(held.values).max() <= steps
        scales = held.scales.reshape(6, -1).repeat(block or 96, axis=1)
        back = held.values * scales
        largest = np.abs(weights.reshape(6, -1, block or 96)).max(-1).repeat(block or 96, axis=1)
        assert np.all(np.abs(back - weights) <= largest * (0.5 / steps + (0 if bits == 8 else 0.41)) + 1e-7)
        assert not back[2].any()
    assert (quantized(weights, 4).stored()[:1] & 15).item() == quantized(weights, 4).values[0, 0] % 16
    assert len(quantized(weights, 4).stored()) * 2 == weights.size


def test_block_size():
    assert [block_size(n, 32) for n in (768, 128, 48, 16)] == [32, 32, 0, 0]
    assert [block_size(n, 128) for n in (768, 96, 64)] == [128, 32, 64]


def test_scales_that_are_float16_numbers():
    random = np.random.default_rng(0)
    weights = (random.standard_normal((300, 64)) * 10.0 ** random.uniform(-9, 3, (300, 1))).astype(np.float32)
    weights[7] = 0
    held, exact = quantized(weights, 8, half_scales=True), quantized(weights, 8)
    np.testing.assert_array_equal(held.scales.astype(np.float16).astype(np.float32), held.scales)
    assert (held.scales >= exact.scales).all()  # so that the largest value of a row fits
    assert (np.abs(held.values * held.scales[:, None] - weights) <= held.scales[:, None] * 0.501).all()
    normal = exact.scales > 2.0**-14
    assert 100 < normal.sum() < 300 and (held.scales[normal] <= exact.scales[normal] * (1 + 2.0**-10)).all()


def test_scales_beyond_float16_stay_float32():
    weights = np.float32([[1, 2], [1e8, 3]])
    np.testing.assert_array_equal(quantized(weights, 8, half_scales=True).scales, quantized(weights, 8).scales)
