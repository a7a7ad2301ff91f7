"""Checkpoints of every form with seeded damage: each is refused in one line, or loads where its files have no checksum.

Never another exception, and where every number has a checksum (TensorFlow, PyTorch), never other numbers.
"""

import copy
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import garden_writer
import huggingface_writer
import keras_hub_writer
import numpy as np
import pytest
import tf1_writer
import torch_writer
from safetensors.numpy import save_file

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.parameters import backbone_weight_shapes
from albert_tf.presets import load_checkpoint, save_preset
from albert_tf.tokenization.tokenizer import AlbertTokenizer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "e", "f"]
CHECKED = ("tf1", "torch", "garden")
# How many damaged files of each form; those of KerasHub are read by a process of its own, which takes time.
COUNTS = {"tf1": 200, "torch": 200, "safetensors": 200, "shards": 200, "keras hub": 6, "garden": 100, "preset": 200}
VALUES: list[Any] = [
    *(None, True, -1, 0, 1, 10**30, 1e308, float("nan"), float("inf"), "", "x", "a\nb", "\ud800", "y" * 10**5),
    *([], [1], [[]], [{}], {}, {"a": 1}, {"0": "x"}),
]


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one checkpoint of each form, called like it."""
    root = tmp_path_factory.mktemp("forms")
    tf1_writer.save_folder(root / "tf1")
    huggingface_writer.save(root / "safetensors")
    state = huggingface_writer.tensors()
    huggingface_writer.save(root / "torch")
    torch_writer.save(root / "torch" / "pytorch_model.bin", state)
    (root / "torch" / "model.safetensors").unlink()
    huggingface_writer.save(root / "shards")
    (root / "shards" / "model.safetensors").unlink()
    files = {name: f"model-{number % 2}.safetensors" for number, name in enumerate(state)}
    for file in set(files.values()):
        save_file({name: state[name] for name in state if files[name] == file}, root / "shards" / file)
    (root / "shards" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    keras_hub_writer.save(root / "keras hub")
    tree = garden_writer.objects(garden_writer.arrays(garden_writer.RECORDED))
    garden_writer.save(root / "garden", {"model": tree})
    config = AlbertConfig(11, 6, 10, 4, 2, embedding_dim=4, max_sequence_length=7)
    random = np.random.default_rng(0)
    weights = {n: random.standard_normal(s).astype(np.float32) for n, s in backbone_weight_shapes(config).items()}
    (root / "vocab.txt").write_text("\n".join(WORDS))
    tokenizer = AlbertTokenizer.from_pretrained(root / "vocab.txt", max_length=7)
    task = json.dumps({"task": "classification", "settings": {"labels": ["a", "b"]}})
    save_preset(root / "preset", config, weights, tokenizer, extra_files={"task.json": task})
    for folder in ("tf1", "safetensors", "torch", "shards"):
        shutil.copy(root / "vocab.txt", root / folder)
    return root


def outcome(folder: Path) -> dict[str, np.ndarray] | None:
    """The weights, or None where the checkpoint is refused as it should be."""
    try:
        return load_checkpoint(folder).weights
    except InputError as error:
        assert str(folder) in str(error) and "\n" not in str(error) and len(str(error)) < 3100
        return None


def damaged(content: bytes, chance: random.Random) -> bytes:
    """A byte changed, some left out, zeroed or put in, or the end cut off; near the beginning more often than not."""
    at = chance.randrange(min(len(content), chance.choice([200, 2000, len(content)])))
    length = chance.randrange(1, 40)
    return chance.choice(
        [
            content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :],
            content[:at] + chance.randbytes(1) + content[at + 1 :],
            content[:at] + content[at + length :],
            content[:at] + bytes(len(content[at : at + length])) + content[at + length :],
            content[:at] + chance.randbytes(length) + content[at:],
            content[:at] + b"\xff" * 8 + content[at + 8 :],
            content[:at],
        ]
    )


@pytest.mark.parametrize("form", COUNTS)
def test_damaged_bytes(forms: Path, tmp_path: Path, form: str) -> None:
    expected = load_checkpoint(forms / form).weights
    folder = Path(shutil.copytree(forms / form, tmp_path / form))
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    chance = random.Random(form)
    refused = 0
    for _ in range(COUNTS[form]):
        path = chance.choice(files)
        content = path.read_bytes()
        path.write_bytes(damaged(content, chance))
        weights = outcome(folder)
        path.write_bytes(content)
        refused += weights is None
        if form in CHECKED and weights is not None:
            for name, weight in expected.items():
                np.testing.assert_array_equal(weights[name], weight, name)
    assert refused > COUNTS[form] / 3


def variants(saved: Any) -> Iterator[Any]:
    """Every value in a JSON object, one at a time, as something else or gone."""
    for way in ways(saved):
        for value in [*VALUES, "gone"]:
            changed = copy.deepcopy(saved)
            at = changed
            for step in way[:-1]:
                at = at[step]
            if isinstance(value, str) and value == "gone":
                del at[way[-1]]
            else:
                at[way[-1]] = value
            yield changed


def ways(saved: Any) -> Iterator[tuple[Any, ...]]:
    steps = saved.items() if isinstance(saved, dict) else enumerate(saved) if isinstance(saved, list) else ()
    for step, value in steps:
        yield (step,)
        yield from ((step, *way) for way in ways(value))


@pytest.mark.parametrize("form", ["tf1", "safetensors", "keras hub", "preset", "garden"])
def test_other_values_in_json(forms: Path, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if form == "keras hub":  # its weights are not what this is about
        from albert_tf.conversion import keras_hub

        path = forms / form / "model.weights.h5"
        listed = keras_hub.hdf5_tensors_in(path)
        monkeypatch.setattr(keras_hub, "hdf5_tensors_in", lambda _: listed)
    folder = Path(shutil.copytree(forms / form, tmp_path / form))
    refused = read = 0
    for path in sorted(folder.glob("*.json")):
        text = path.read_text()
        for changed in variants(json.loads(text)):
            path.write_bytes(json.dumps(changed).encode("utf-8", "surrogatepass"))
            if outcome(folder) is None:
                refused += 1
            else:
                read += 1
        path.write_text(text)
    assert refused > 100 and read > 10
