"""Preset folders: what is saved comes back, what is damaged or unfitting is refused, and no other folder is lost."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tf1_writer import save_folder

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.parameters import backbone_weight_shapes, pretraining_head_weight_shapes
from albert_tf.presets import load_checkpoint, load_tokenizer, read_preset, read_task_settings, save_preset
from albert_tf.tokenization.tokenizer import AlbertTokenizer

CONFIG = AlbertConfig(11, 6, 10, 4, 2, embedding_dim=4, max_sequence_length=7)
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "e", "f"]


def random_weights(dtype=np.float32, **more):
    shapes = backbone_weight_shapes(CONFIG) | pretraining_head_weight_shapes(CONFIG)
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape).astype(dtype) for name, shape in (shapes | more).items()}


def tokenizer_of(folder, words=WORDS):
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    return AlbertTokenizer.from_pretrained(folder / "vocab.txt")


@pytest.fixture
def preset(tmp_path):
    save_preset(tmp_path / "preset", CONFIG, random_weights(), tokenizer_of(tmp_path))
    return tmp_path / "preset"


def same(read, weights):
    assert read.keys() == weights.keys()
    for name in weights:
        np.testing.assert_array_equal(read[name], weights[name], name)


def test_a_preset_comes_back(preset):
    checkpoint = load_checkpoint(preset)
    same(checkpoint.weights, random_weights())
    assert checkpoint.config == CONFIG
    assert (checkpoint.form, checkpoint.source, checkpoint.head) == ("albert-tf preset", str(preset), "pretraining")
    assert checkpoint.tokenizer_path == preset
    assert AlbertTokenizer.from_pretrained(preset).vocabulary.size == 11
    assert {path.name for path in preset.iterdir()} == {
        "config.json",
        "weights.safetensors",
        "tokenizer.json",
        "vocab.txt",
    }


def test_the_same_weights_give_the_same_bytes(preset, tmp_path):
    shuffled = dict(reversed(random_weights().items()))
    save_preset(tmp_path / "again", CONFIG, shuffled, None)
    assert (tmp_path / "again" / "weights.safetensors").read_bytes() == (preset / "weights.safetensors").read_bytes()


def test_float16_is_stored_as_given_and_read_as_float32(tmp_path):
    weights = random_weights(np.float16)
    save_preset(tmp_path / "half", CONFIG, weights, None)
    assert {weight.dtype for weight in load_file(tmp_path / "half" / "weights.safetensors").values()} == {
        np.dtype(np.float16)
    }
    read = load_checkpoint(tmp_path / "half").weights
    assert {weight.dtype for weight in read.values()} == {np.dtype(np.float32)}
    same(read, {name: weight.astype(np.float32) for name, weight in weights.items()})


def test_a_transposed_array_is_stored_as_it_looks(tmp_path):
    weights = random_weights()
    weights["pooler/kernel"] = np.arange(36, dtype=np.float32).reshape(6, 6).T
    save_preset(tmp_path / "preset", CONFIG, weights, None)
    same(read_preset(tmp_path / "preset").weights, weights)


def test_a_preset_without_a_tokenizer(tmp_path):
    save_preset(tmp_path / "preset", CONFIG, random_weights(), None)
    assert load_checkpoint(tmp_path / "preset").tokenizer_path is None


def test_a_task_head_and_its_files(tmp_path):
    weights = random_weights(**{"classifier/kernel": (6, 3), "classifier/bias": (3,)})
    weights = {name: weight for name, weight in weights.items() if not name.startswith(("masked_lm", "sentence_order"))}
    task = {"task": "classification", "settings": {"labels": ["nein", "jä"]}}
    extra = {"task.json": json.dumps(task, ensure_ascii=False), "card.bin": b"\x00"}
    save_preset(tmp_path / "preset", CONFIG, weights, None, extra_files=extra)
    assert read_preset(tmp_path / "preset").head == "classifier"
    assert read_task_settings(tmp_path / "preset") == task
    assert (tmp_path / "preset" / "card.bin").read_bytes() == b"\x00"


def test_there_may_be_no_task_settings(preset, tmp_path):
    assert read_task_settings(preset) is None
    assert read_task_settings(tmp_path / "absent") is None
    assert read_task_settings(preset / "config.json") is None


@pytest.mark.parametrize("text", ["[]", "{}", '{"task": 1, "settings": {}}', '{"task": "a"}', "{"])
def test_broken_task_settings_are_refused(preset, text):
    (preset / "task.json").write_text(text)
    with pytest.raises(InputError, match=r"task\.json.*(expected an object|not JSON)"):
        read_task_settings(preset)


@pytest.mark.parametrize("name", ["config.json", "weights.safetensors", "vocab.txt", "a/b", "../a", "", "."])
def test_an_extra_file_cannot_take_another_place(tmp_path, name):
    with pytest.raises(ValueError, match="expected a plain file name"):
        save_preset(tmp_path / "preset", CONFIG, random_weights(), tokenizer_of(tmp_path), extra_files={name: b""})
    assert not (tmp_path / "preset").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pooler/bias": np.zeros(7, np.float32)}, r"pooler/bias is \(7,\), expected \(6,\)"),
        ({"pooler/bias": np.full(6, np.inf, np.float32)}, "pooler/bias: 6 of 6 values are NaN or infinite"),
        ({"pooler/bias": np.zeros(6, np.float64)}, "pooler/bias: expected float16 or float32, got float64"),
        ({"encoder/other": np.zeros(6, np.float32)}, "1 not in the model: encoder/other"),
    ],
)
def test_unfitting_weights_are_not_saved(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        save_preset(tmp_path / "preset", CONFIG, random_weights() | change, None)
    assert not (tmp_path / "preset").exists()


def test_unfitting_weights_are_not_read(preset):
    weights = random_weights()
    del weights["pooler/bias"]
    save_file(weights, preset / "weights.safetensors")
    with pytest.raises(InputError, match="1 missing: pooler/bias"):
        load_checkpoint(preset)
    save_file(random_weights(np.float64), preset / "weights.safetensors")
    with pytest.raises(InputError, match="expected float32, float16 or bfloat16, got float64"):
        load_checkpoint(preset)


def test_a_wrong_vocabulary_is_refused(preset, tmp_path):
    other = tokenizer_of(tmp_path, [*WORDS, "g"])
    with pytest.raises(InputError, match="wrong vocabulary: the tokenizer has 12 entries, the model's word table 11"):
        save_preset(tmp_path / "new", CONFIG, random_weights(), other)
    (preset / "vocab.txt").write_text("\n".join([*WORDS, "g"]) + "\n")
    with pytest.raises(InputError, match="wrong vocabulary"):
        load_checkpoint(preset)


def test_a_wrong_vocabulary_beside_a_tf1_checkpoint_is_refused(tmp_path):
    folder = save_folder(tmp_path / "tf1")
    tokenizer_of(folder)
    assert load_checkpoint(folder).tokenizer_path == folder / "vocab.txt"
    tokenizer_of(folder, WORDS[:-1])
    with pytest.raises(InputError, match="wrong vocabulary: the tokenizer has 10 entries"):
        load_checkpoint(folder)


@pytest.mark.parametrize("length", [0, 4, 100, -1])
def test_a_truncated_weights_file_is_refused(preset, length):
    path = preset / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(InputError, match=r"cannot read .*weights\.safetensors"):
        load_checkpoint(preset)


def test_a_damaged_header_is_refused_or_changes_nothing(preset):
    path = preset / "weights.safetensors"
    raw = path.read_bytes()
    header = 8 + int.from_bytes(raw[:8], "little")
    refused = 0
    for position in [*range(8), *range(8, header, 23)]:
        path.write_bytes(raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :])
        try:
            read = read_preset(preset).weights
        except InputError:
            refused += 1
        else:
            same(read, random_weights())
    assert refused


@pytest.mark.parametrize("name", ["config.json", "weights.safetensors"])
def test_a_missing_file_is_named(preset, name):
    (preset / name).unlink()
    with pytest.raises(InputError, match=name):
        read_preset(preset)


def test_a_preset_is_replaced_only_when_asked(preset):
    changed = random_weights()
    changed["pooler/bias"] += 1
    with pytest.raises(InputError, match="exists already"):
        save_preset(preset, CONFIG, changed, None)
    same(read_preset(preset).weights, random_weights())
    save_preset(preset, CONFIG, changed, None, overwrite=True)
    same(read_preset(preset).weights, changed)
    assert not (preset / "vocab.txt").exists()


def test_no_other_folder_or_file_is_replaced(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    save_preset(home, CONFIG, random_weights(), None, overwrite=True)  # an empty folder holds nothing to lose
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "thesis.txt").touch()
    with pytest.raises(InputError, match=r"is not a preset \(thesis.txt\), so it is not replaced"):
        save_preset(documents, CONFIG, random_weights(), None, overwrite=True)
    with pytest.raises(InputError, match="is a file; give the name of a folder"):
        save_preset(documents / "thesis.txt", CONFIG, random_weights(), None, overwrite=True)
    assert (documents / "thesis.txt").exists()


def test_a_failed_write_leaves_the_old_preset(preset):
    class Broken:
        vocabulary = AlbertTokenizer.from_pretrained(preset).vocabulary

        def save(self, folder: Path) -> None:
            raise OSError("disk full")

    with pytest.raises(InputError, match="disk full"):
        save_preset(preset, CONFIG, random_weights(), Broken(), overwrite=True)
    assert load_checkpoint(preset).tokenizer_path == preset
    assert [path.name for path in preset.parent.iterdir() if path.name.startswith(".")] == []


# === What lies around a preset ===


def test_a_vocabulary_without_our_settings(preset):
    """As somebody puts it there who is told that the preset has no tokenizer."""
    (preset / "tokenizer.json").unlink()
    checkpoint = load_checkpoint(preset)
    assert checkpoint.tokenizer_path == preset / "vocab.txt"
    assert load_tokenizer(checkpoint).max_length == CONFIG.max_sequence_length
    (preset / "vocab.txt").write_text("[PAD]\n")
    with pytest.raises(InputError, match="expected the special tokens"):
        load_checkpoint(preset)


def test_a_text_is_never_longer_than_the_position_table(preset):
    settings = json.loads((preset / "tokenizer.json").read_text())
    assert settings["max_length"] == 512
    assert load_tokenizer(load_checkpoint(preset)).max_length == 7
    (preset / "tokenizer.json").write_text(json.dumps(settings | {"max_length": 5}))
    assert load_tokenizer(load_checkpoint(preset)).max_length == 5


def test_a_position_table_too_short_for_a_tokenizer(tmp_path):
    config = dataclasses.replace(CONFIG, max_sequence_length=2)
    shapes = backbone_weight_shapes(config)
    save_preset(tmp_path / "preset", config, {name: np.ones(shape, np.float32) for name, shape in shapes.items()}, None)
    assert load_tokenizer(load_checkpoint(tmp_path / "preset")) is None
    tokenizer_of(tmp_path / "preset")
    with pytest.raises(InputError, match="max_sequence_length = 2: the special tokens of a pair of texts take 3"):
        load_checkpoint(tmp_path / "preset")


@pytest.mark.parametrize("name", ["task.json", "tokenizer.json"])
def test_a_link_to_nothing_is_not_taken_for_no_file(preset, name):
    (preset / name).unlink(missing_ok=True)
    (preset / name).symlink_to(preset / "gone")
    with pytest.raises(InputError, match=f"{name}: expected a file, found a link to nothing"):
        load_checkpoint(preset)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"labels": True}, "labels: expected a list of names, found True"),
        ({"labels": "ab"}, "labels: expected a list of names"),
        ({"labels": ["a", ["b"]]}, "labels: expected a list of names"),
        ({"classifier_dropout": "0.1"}, r"classifier_dropout: expected a rate in \[0, 1\), found '0.1'"),
        ({"classifier_dropout": float("nan")}, "classifier_dropout: expected a rate"),
        ({"classifier_dropout": True}, "classifier_dropout: expected a rate"),
    ],
)
def test_settings_of_a_task_that_are_none(preset, settings, message):
    """Of whatever task: every form that a preset is written in takes them from here."""
    (preset / "task.json").write_text(json.dumps({"task": "tagging", "settings": settings}))
    with pytest.raises(InputError, match=rf"task\.json: {message}"):
        load_checkpoint(preset)


def test_what_cannot_be_read_at_all(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"^cannot read n+ … n+: File name too long$"):
        load_checkpoint("n" * 5000)

    def locked(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", locked)
    monkeypatch.setattr(Path, "is_dir", locked)
    with pytest.raises(InputError, match=f"cannot read {tmp_path}: Permission denied"):
        load_checkpoint(tmp_path)
