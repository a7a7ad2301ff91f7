"""The JSON files of KerasHub presets: whatever stands in them, it is read or refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keras_hub_writer import CONFIG, save, save_object, variables, write_h5

from albert_tf.conversion.keras_hub import read_keras_hub
from albert_tf.conversion.keras_hub_files import VOCABULARY_FILE
from albert_tf.errors import InputError

LAYER = "layers/transformer_encoder/_self_attention_layer"


def preset(**changes: Any) -> dict[str, Any]:
    return {"class_name": "AlbertBackbone", "config": CONFIG | changes}


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        ({"class_name": ["AlbertBackbone"], "config": CONFIG}, "expected an object that Keras saved"),
        ({"class_name": "AlbertBackbone", "config": [CONFIG]}, "expected an object that Keras saved"),
        ([], "expected an object that Keras saved"),
        (
            {"class_name": "AlbertBackbone", "config": CONFIG | {"dtype": {"class_name": "DTypePolicy", "config": 3}}},
            "quant",
        ),
        (preset(dtype=["float32"]), "quantised weights"),
        (
            {"class_name": "AlbertBackbone", "config": CONFIG | {"num_groups": 3}},
            "multiples of num_groups only, which is 3",
        ),
        (preset(num_heads=10**30), "num_heads: expected at most"),
    ],
)
def test_configs_of_any_kind(tmp_path: Path, saved: Any, message: str) -> None:
    save(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(saved))
    with pytest.raises(InputError, match=rf"config\.json: .*{message}"):
        read_keras_hub(tmp_path)


def test_json_beyond_what_python_reads(tmp_path: Path) -> None:
    save(tmp_path)
    for text in ('{"class_name": ' + "9" * 5000 + "}", "[" * 200_000):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(InputError, match=r"config\.json: not JSON that can be read"):
            read_keras_hub(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_classes": True},
        {"num_classes": 0},
        {"num_classes": -3},
        {"num_classes": 3.0},
        {"dropout": float("nan")},
        {"dropout": 1},
        {"dropout": "0.1"},
    ],
)
def test_heads_of_any_kind(tmp_path: Path, changes: dict[str, Any]) -> None:
    save(tmp_path)
    save_object(tmp_path / "task.json", "AlbertTextClassifier", {"num_classes": 3, "dropout": 0.1} | changes)
    values = {"layers/dense/vars/0": np.zeros((6, 3), np.float32), "layers/dense/vars/1": np.zeros(3, np.float32)}
    write_h5(tmp_path / "task.weights.h5", values)
    with pytest.raises(InputError, match=r"task\.json: expected num_classes, at least 1, and dropout in \[0, 1\)"):
        read_keras_hub(tmp_path)


@pytest.mark.parametrize("kind", [np.int32, np.complex64])
def test_weights_that_are_no_floating_point_numbers(tmp_path: Path, kind: Any) -> None:
    change = {"layers/dense_1/vars/1": np.ones(6, kind)}
    with pytest.raises(
        InputError, match=r"pooler/bias: expected (floating-point weights, got int32|numbers)|complex64"
    ):
        read_keras_hub(save(tmp_path, variables() | change))


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({"layers/other/vars/0": np.zeros((11, 4), np.float32)}, {"other": "token_embedding"}),
        ({f"{LAYER.replace('/_', '/')}/query_dense/vars/1": np.zeros((2, 3), np.float32)}, {}),
    ],
)
def test_two_variables_of_one_name(tmp_path: Path, more: dict[str, np.ndarray], names: dict[str, str]) -> None:
    """Which of them is the model's?"""
    folder = save(tmp_path)
    write_h5(folder / "model.weights.h5", variables() | more, names)
    with pytest.raises(InputError, match=r"is the second variable .* in the file; expected one"):
        read_keras_hub(folder)


def test_a_vocabulary_that_is_no_file_is_not_taken_for_none(tmp_path: Path) -> None:
    save(tmp_path)
    (tmp_path / VOCABULARY_FILE).parent.mkdir(parents=True)
    assert read_keras_hub(tmp_path).tokenizer_path is None
    (tmp_path / VOCABULARY_FILE).symlink_to("gone")
    with pytest.raises(InputError, match=r"vocabulary\.spm: expected a file, found a link to nothing"):
        read_keras_hub(tmp_path)
