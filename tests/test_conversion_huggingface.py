"""Folders of transformers, in: every tensor lands where it belongs, and what does not fit is told."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch_writer
from huggingface_writer import CONFIG, same_block, same_linear, save, tensors, without_heads
from safetensors.numpy import save_file

from albert_tf.conversion.checkpoint import Checkpoint
from albert_tf.conversion.huggingface import read_huggingface
from albert_tf.errors import InputError

GROUPS = CONFIG | {"num_hidden_groups": 2, "inner_group_num": 2}
WORDS = "albert.embeddings.word_embeddings.weight"


def same_outside_the_blocks(weights: dict[str, np.ndarray], state: dict[str, np.ndarray]) -> None:
    tables = {"word": "word", "segment": "token_type", "position": "position"}
    for ours, theirs in tables.items():
        expected = state[f"albert.embeddings.{theirs}_embeddings.weight"]
        np.testing.assert_array_equal(weights[f"embeddings/{ours}_embedding/embeddings"], expected)
    for ours, theirs in (("embeddings/", "albert.embeddings."), ("masked_lm/", "predictions.")):
        np.testing.assert_array_equal(weights[f"{ours}layer_norm/gamma"], state[f"{theirs}LayerNorm.weight"])
        np.testing.assert_array_equal(weights[f"{ours}layer_norm/beta"], state[f"{theirs}LayerNorm.bias"])
    np.testing.assert_array_equal(weights["masked_lm/output_bias"], state["predictions.bias"])
    linear = {
        "embeddings/projection": "albert.encoder.embedding_hidden_mapping_in",
        "pooler": "albert.pooler",
        "masked_lm/transform": "predictions.dense",
        "sentence_order": "sop_classifier.classifier",
    }
    same_linear(weights, state, linear)


def same(read: Checkpoint, expected: Checkpoint) -> None:
    assert read.weights.keys() == expected.weights.keys()
    for name, weight in expected.weights.items():
        np.testing.assert_array_equal(read.weights[name], weight, name)


# === Weights ===


@pytest.mark.parametrize("config", [CONFIG, GROUPS], ids=["shared", "groups"])
def test_every_tensor_lands_where_it_belongs(tmp_path: Path, config: dict[str, Any]) -> None:
    state = tensors(config)
    read = read_huggingface(save(tmp_path, state, config))
    same_outside_the_blocks(read.weights, state)
    inner = config["inner_group_num"]
    for n in range(config["num_hidden_groups"] * inner):
        same_block(read.weights, state, n, n // inner, n % inner)
    assert len(read.weights) == len(state) and (read.form, read.head, read.task) == (
        "hugging face",
        "pretraining",
        None,
    )
    assert (read.config.vocabulary_size, read.config.num_groups) == (11, config["num_hidden_groups"])


def test_weights_of_albert_model_alone(tmp_path: Path) -> None:
    state = without_heads(tensors())
    expected = read_huggingface(save(tmp_path / "with", state, architectures=["AlbertForMaskedLM"]))
    bare = {name.removeprefix("albert."): tensor for name, tensor in state.items()}
    same(read_huggingface(save(tmp_path / "without", bare, architectures=["AlbertModel"])), expected)
    both = state | {"pooler.bias": bare["pooler.bias"]}
    with pytest.raises(InputError, match=r"pooler\.bias also with 'albert\.' before it; expected one encoder"):
        read_huggingface(save(tmp_path / "both", both))


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin.index.json"])
def test_weights_behind_a_link_to_nothing_are_told(tmp_path: Path, name: str) -> None:
    save(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / name).symlink_to("../../blobs/1234")
    with pytest.raises(InputError, match=rf"{name}: expected a file, found a link to nothing"):
        read_huggingface(tmp_path)


def test_a_masked_word_model_without_pooler(tmp_path: Path) -> None:
    state = {name: x for name, x in tensors().items() if not name.startswith(("albert.pooler", "sop_"))}
    read = read_huggingface(save(tmp_path, state, architectures=["AlbertForMaskedLM"]))
    assert read.head == "masked_lm" and "pooler/kernel" not in read.weights


def test_tied_tensors_under_either_name_or_both(tmp_path: Path) -> None:
    state = tensors()
    expected = read_huggingface(save(tmp_path / "first", state))
    copies = {"predictions.decoder.weight": state[WORDS], "predictions.decoder.bias": state["predictions.bias"]}
    same(read_huggingface(save(tmp_path / "both", state | copies)), expected)
    second = {name: x for name, x in state.items() if name not in (WORDS, "predictions.bias")} | copies
    same(read_huggingface(save(tmp_path / "second", second)), expected)
    for name, copy in copies.items():
        with pytest.raises(InputError, match=rf"{name} is not .*: the masked-word head is not tied to the word table"):
            read_huggingface(save(tmp_path / "untied", state | {name: copy + 1}))


def test_the_buffer_of_positions(tmp_path: Path) -> None:
    state = tensors()
    expected = read_huggingface(save(tmp_path / "without", state))
    positions = np.arange(7)[None]
    same(read_huggingface(save(tmp_path / "with", state | {"albert.embeddings.position_ids": positions})), expected)
    with pytest.raises(InputError, match=r"position_ids is not 0, 1, 2"):
        read_huggingface(save(tmp_path / "bad", state | {"albert.embeddings.position_ids": positions[:, ::-1]}))


def test_a_torch_file_and_which_file_is_read(tmp_path: Path) -> None:
    state = tensors()
    expected = read_huggingface(save(tmp_path / "safe", state))
    folder = save(tmp_path / "torch", state)
    torch_writer.save(folder / "pytorch_model.bin", tensors(seed=1))
    same(read_huggingface(folder), expected)
    (folder / "model.safetensors").unlink()
    same(read_huggingface(folder), read_huggingface(save(tmp_path / "other", tensors(seed=1))))
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(InputError, match=r"expected one of model\.safetensors, .*; there is none"):
        read_huggingface(folder)


@pytest.mark.parametrize("form", ["safetensors", "bin"])
def test_shards(tmp_path: Path, form: str) -> None:
    state = tensors()
    expected = read_huggingface(save(tmp_path / "whole", state))
    folder = save(tmp_path / "shards")
    (folder / "model.safetensors").unlink()
    stem = "model" if form == "safetensors" else "pytorch_model"
    files = {name: f"{stem}-{1 + index % 3}.{form}" for index, name in enumerate(state)}
    for file in set(files.values()):
        part = {name: state[name] for name in state if files[name] == file}
        save_file(part, folder / file) if form == "safetensors" else torch_writer.save(folder / file, part)
    index = folder / f"{stem}.{form}.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": files}))
    same(read_huggingface(folder), expected)
    moved = files | {WORDS: f"{stem}-{1 + int(files[WORDS][-1 - len(form) - 1]) % 3}.{form}"}
    for wrong, message in (
        ({"weight_map": files | {WORDS: f"../{stem}-1.{form}"}}, r"expected names of files in the same folder"),
        ({"weight_map": files | {WORDS: f"{stem}-9.{form}"}}, rf"index\.json: no such file as {stem}-9\.{form}"),
        ({"weight_map": moved}, rf"says that it holds other tensors \({WORDS}"),
        ({"weights": {}}, 'expected a JSON object with "weight_map"'),
        ([], 'expected a JSON object with "weight_map"'),
    ):
        index.write_text(json.dumps(wrong))
        with pytest.raises(InputError, match=message):
            read_huggingface(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"albert.pooler.bias": None}, r"names of transformers: .* 1 missing: pooler\.bias \(6,\)"),
        ({"predictions.dense.bias": None}, r"1 missing: predictions\.dense\.bias"),
        ({"albert.extra.weight": np.zeros(3, np.float32)}, r"1 not in the model: extra\.weight \(3,\)"),
        ({"albert.pooler.weight": np.zeros((6, 5), np.float32)}, r"pooler\.weight is \(6, 5\), expected \(6, 6\)"),
        ({"albert.pooler.bias": np.full(6, np.nan, np.float32)}, r"pooler/bias: 6 of 6 values are NaN"),
        ({"albert.pooler.bias": np.zeros(6, np.int64)}, "pooler/bias: expected floating-point weights, got int64"),
        ({WORDS: np.zeros((12, 4), np.float32)}, r"word_embeddings\.weight is \(12, 4\), expected \(11, 4\)"),
    ],
)
def test_weights_that_do_not_fit(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    state = {name: x for name, x in (tensors() | change).items() if x is not None}
    with pytest.raises(InputError, match=message):
        read_huggingface(save(tmp_path, state))


def test_damaged_files(tmp_path: Path) -> None:
    folder = save(tmp_path)
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(InputError, match=r"cannot read .*model\.safetensors: .*damaged"):
        read_huggingface(folder)
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(InputError, match="only a Git LFS pointer"):
        read_huggingface(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"config\.json, line 1: not JSON"):
        read_huggingface(folder)
    (folder / "config.json").unlink()
    with pytest.raises(InputError, match=r"cannot read .*config\.json: No such file"):
        read_huggingface(folder)


def test_a_projection_between_equal_widths(tmp_path: Path) -> None:
    """transformers has one there; ours has none, so only one that changes nothing can be left out."""
    config = CONFIG | {"embedding_size": 6}
    state = tensors(config)
    with pytest.raises(InputError, match="both 6 wide, with a trained projection between them"):
        read_huggingface(save(tmp_path / "trained", state, config))
    identity = {"weight": np.eye(6, dtype=np.float32), "bias": np.zeros(6, np.float32)}
    state |= {f"albert.encoder.embedding_hidden_mapping_in.{part}": value for part, value in identity.items()}
    read = read_huggingface(save(tmp_path / "identity", state, config))
    assert not any(name.startswith("embeddings/projection") for name in read.weights)


# === Heads ===


@pytest.mark.parametrize(
    ("architecture", "name", "outputs", "fields", "head", "task"),
    [
        (
            "AlbertForSequenceClassification",
            "classifier",
            3,
            {"id2label": {"2": "c", "0": "a", "1": "b"}, "classifier_dropout_prob": 0.3},
            "classifier",
            {"task": "classification", "settings": {"labels": ["a", "b", "c"], "classifier_dropout": 0.3}},
        ),
        (
            "AlbertForSequenceClassification",
            "classifier",
            2,
            {"classifier_dropout_prob": None},
            "classifier",
            {"task": "classification", "settings": {"labels": ["LABEL_0", "LABEL_1"], "classifier_dropout": 0.1}},
        ),
        (
            "AlbertForSequenceClassification",
            "classifier",
            1,
            {"id2label": {"0": "score"}, "problem_type": "regression"},
            "classifier",
            {"task": "regression", "settings": {"classifier_dropout": 0.1}},
        ),
        (
            "AlbertForSequenceClassification",
            "classifier",
            1,
            {"num_labels": 1, "classifier_dropout_prob": 0.2},
            "classifier",
            {"task": "regression", "settings": {"classifier_dropout": 0.2}},
        ),
        (
            "AlbertForSequenceClassification",
            "classifier",
            3,
            {"num_labels": 3, "problem_type": "regression"},
            "classifier",
            {"task": "regression", "settings": {"classifier_dropout": 0.1}},
        ),
        (
            "AlbertForSequenceClassification",
            "classifier",
            2,
            {"problem_type": "multi_label_classification"},
            "multi_label",
            {"task": "multi-label", "settings": {"labels": ["LABEL_0", "LABEL_1"], "classifier_dropout": 0.1}},
        ),
        (
            "AlbertForTokenClassification",
            "classifier",
            2,
            {"id2label": {"0": "O", "1": "B"}},
            "token_classification",
            {"task": "tagging", "settings": {"labels": ["O", "B"], "classifier_dropout": 0.1}},
        ),
        (
            "AlbertForQuestionAnswering",
            "qa_outputs",
            2,
            {},
            "question_answering",
            {"task": "question-answering", "settings": {"head": "span"}},
        ),
        (
            "AlbertForMultipleChoice",
            "classifier",
            1,
            {"classifier_dropout_prob": 0.25},
            "multiple_choice",
            {"task": "multiple-choice", "settings": {"classifier_dropout": 0.25}},
        ),
    ],
)
def test_fine_tuned_heads(
    tmp_path: Path, architecture: str, name: str, outputs: int, fields: dict[str, Any], head: str, task: Any
) -> None:
    state = tensors(**{name: (outputs, 6)})
    state = without_heads(state) | {key: x for key, x in state.items() if key.startswith(name)}
    read = read_huggingface(save(tmp_path, state, architectures=[architecture], **fields))
    assert (read.head, read.task) == (head, task)
    same_linear(read.weights, state, {head: name})


@pytest.mark.parametrize("problem", ["ranking", 1, ["regression"], {}, True])
def test_a_problem_that_transformers_has_not(tmp_path: Path, problem: Any) -> None:
    state = without_heads(tensors()) | {"classifier.weight": np.zeros((2, 6), np.float32)}
    folder = save(tmp_path, state, architectures=["AlbertForSequenceClassification"], problem_type=problem)
    with pytest.raises(InputError, match="problem_type: expected one of single_label_classification, multi_label_"):
        read_huggingface(folder)


@pytest.mark.parametrize("architectures", [None, [], ["AlbertModel"], ["AlbertForNothing"]])
def test_a_head_of_unknown_kind(tmp_path: Path, architectures: Any) -> None:
    state = without_heads(tensors()) | {"classifier.weight": np.zeros((2, 6), np.float32)}
    with pytest.raises(
        InputError, match=r"the weights have classifier\.weight; which head that is, architectures must"
    ):
        read_huggingface(save(tmp_path, state, architectures=architectures))


def test_labels_that_do_not_fit_the_head(tmp_path: Path) -> None:
    state = tensors(classifier=(3, 6))
    state = {name: x for name, x in state.items() if name.startswith(("albert.", "classifier"))}
    fields = {"architectures": ["AlbertForSequenceClassification"]}
    with pytest.raises(InputError, match=r"classifier\.weight is \(3, 6\), expected \(2, 6\)"):
        read_huggingface(save(tmp_path, state, **fields))
    for labels in ({"0": "a", "2": "b"}, {"0": "a", "1": 3}, ["a", "b"], {}, "no"):
        with pytest.raises(InputError, match="id2label: expected"):
            read_huggingface(save(tmp_path, state, **fields, id2label=labels))
