import numpy as np
import pytest

from albert_tf.data.parts import replica_parts


def batch(examples: int, rows: int) -> tuple[dict, dict]:
    ids = np.arange(examples * rows * 3).reshape(examples * rows, 3)
    return {"token_ids": ids}, {"label": np.arange(examples), "scale": np.full(examples, 1 / examples, np.float32)}


@pytest.mark.parametrize("replicas", [1, 2, 4])
@pytest.mark.parametrize("rows", [1, 3])
def test_parts_together_are_the_batch(replicas: int, rows: int) -> None:
    inputs, targets = batch(8, rows)
    parts = list(replica_parts(inputs, targets, ("scale",), range(replicas), replicas))
    assert len(parts) == replicas
    for name, array in inputs.items():
        np.testing.assert_array_equal(np.concatenate([part[0][name] for part in parts]), array)
    for name, array in targets.items():
        np.testing.assert_array_equal(np.concatenate([part[1][name] for part in parts]), array)


def test_a_worker_gets_its_own_parts() -> None:
    inputs, targets = batch(8, 1)
    whole = list(replica_parts(inputs, targets, ("scale",), range(4), 4))
    second = list(replica_parts(inputs, targets, ("scale",), range(2, 4), 4))
    assert [part[1]["label"].tolist() for part in second] == [part[1]["label"].tolist() for part in whole[2:]]


@pytest.mark.parametrize("examples", [1, 3, 5, 7])
def test_too_few_examples_are_filled_up_without_a_share(examples: int) -> None:
    inputs, targets = batch(examples, 2)
    parts = list(replica_parts(inputs, targets, ("scale",), range(4), 4))
    assert {len(part[1]["label"]) for part in parts} == {-(-examples // 4)}
    assert all(len(part[0]["token_ids"]) == 2 * len(part[1]["label"]) for part in parts)
    counted = np.concatenate([part[1]["label"][part[1]["scale"] > 0] for part in parts])
    assert counted.tolist() == list(range(examples))
    assert sum(part[1]["scale"].sum() for part in parts) == pytest.approx(1.0)
