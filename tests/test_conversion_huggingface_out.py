"""Folders for transformers, out: the files they hold, what comes back from them, and what has no form there."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_writer import CONFIG, save, tensors
from peer_models import GROUPED, assert_same_weights, random_weights
from safetensors import safe_open
from small_vocabularies import sentencepiece_vocabulary
from tiny_models import TINY

from albert_tf.conversion.huggingface import read_huggingface, write_huggingface
from albert_tf.errors import InputError
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tasks.trained import load_task
from albert_tf.tokenization.tokenizer import AlbertTokenizer

HEADS = {
    "classifier": (16, 3),
    "multi_label": (16, 3),
    "token_classification": (16, 3),
    "question_answering": (16, 2),
    "multiple_choice": (16, 1),
}


def with_head(name: str, outputs: int | None = None) -> dict[str, np.ndarray]:
    random, (width, columns) = np.random.default_rng(1), HEADS[name]
    columns = columns if outputs is None else outputs
    head = {f"{name}/kernel": random.standard_normal((width, columns)), f"{name}/bias": random.standard_normal(columns)}
    return random_weights(TINY) | {key: value.astype(np.float32) for key, value in head.items()}


def written_config(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "config.json").read_text())


@pytest.mark.parametrize("config", [CONFIG, CONFIG | {"num_hidden_groups": 2, "inner_group_num": 2}], ids=["1", "2"])
def test_theirs_come_back_bit_for_bit(tmp_path: Path, config: dict[str, Any]) -> None:
    state = tensors(config)
    read = read_huggingface(save(tmp_path / "theirs", state, config))
    assert write_huggingface(tmp_path / "ours", read.config, read.weights, None) == []
    with safe_open(tmp_path / "ours" / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}
        assert_same_weights({name: file.get_tensor(name) for name in file.keys()}, state)  # noqa: SIM118
    written = written_config(tmp_path / "ours")
    known = {key: value for key, value in config.items() if key not in ("pad_token_id", "transformers_version")}
    assert {key: written[key] for key in known} == known


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"sharing": "none"},
        {"sharing": "none", "num_inner_repetitions": 2},
        {"embedding_dim": 16},
        {"activation": "gelu_erf", "layer_norm_epsilon": 1e-6},
        {"activation": "linear", "attention_dropout": 0.1},
    ],
    ids=str,
)
def test_ours_come_back_bit_for_bit(tmp_path: Path, change: dict[str, Any]) -> None:
    config = dataclasses.replace(TINY, **change)
    weights = random_weights(config, heads=True)
    write_huggingface(tmp_path / "out", config, weights, None)
    read = read_huggingface(tmp_path / "out")
    assert_same_weights(read.weights, weights)
    as_groups = {"sharing": "all", "num_groups": 3} if config.sharing == "none" else {}
    assert read.config == dataclasses.replace(config, **as_groups)
    assert read.config.block_schedule == config.block_schedule


def test_dropout_that_transformers_leaves_out_is_told(tmp_path: Path) -> None:
    config = dataclasses.replace(GROUPED, hidden_dropout=0.1)
    notes = write_huggingface(tmp_path / "out", config, random_weights(config), None)
    assert notes == ["no dropout after the feed-forward half of a layer"]


@pytest.mark.parametrize(
    ("head", "pooler", "architecture"),
    [
        ("", True, "AlbertModel"),
        ("masked_lm sentence_order", True, "AlbertForPreTraining"),
        ("masked_lm", True, "AlbertForMaskedLM"),
        ("masked_lm", False, "AlbertForMaskedLM"),
        ("token_classification", False, "AlbertForTokenClassification"),
        ("token_classification", True, "AlbertForTokenClassification"),
        ("question_answering", False, "AlbertForQuestionAnswering"),
        ("classifier", True, "AlbertForSequenceClassification"),
        ("multiple_choice", True, "AlbertForMultipleChoice"),
    ],
)
def test_the_class_that_has_the_head(tmp_path: Path, head: str, pooler: bool, architecture: str) -> None:
    weights = with_head(head) if head in HEADS else random_weights(TINY, heads=True)
    parts = ("embeddings", "encoder", *head.split(), *(["pooler"] if pooler else []))
    weights = {name: weight for name, weight in weights.items() if name.startswith(parts)}
    write_huggingface(tmp_path / "out", TINY, weights, None)
    assert written_config(tmp_path / "out")["architectures"] == [architecture]
    assert_same_weights(read_huggingface(tmp_path / "out").weights, weights)


def test_labels_and_dropout_of_a_classifier(tmp_path: Path) -> None:
    task = {"task": "classification", "settings": {"labels": ["nein", "jä", "?"], "classifier_dropout": 0.3}}
    write_huggingface(tmp_path / "named", TINY, with_head("classifier"), None, task=task)
    fields = written_config(tmp_path / "named")
    assert fields["id2label"] == {"0": "nein", "1": "jä", "2": "?"} and fields["label2id"]["jä"] == 1
    assert read_huggingface(tmp_path / "named").task == task
    write_huggingface(tmp_path / "unnamed", TINY, with_head("classifier"), None)
    assert written_config(tmp_path / "unnamed")["id2label"] == {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}
    write_huggingface(tmp_path / "score", TINY, with_head("classifier", 1), None)
    assert written_config(tmp_path / "score")["problem_type"] == "regression"
    with pytest.raises(InputError, match="the head classifier has 2 outputs, but its task names 3 labels"):
        write_huggingface(tmp_path / "wrong", TINY, with_head("classifier", 2), None, task=task)


@pytest.mark.parametrize(
    ("head", "outputs", "task", "problem"),
    [
        ("classifier", 3, "classification", "single_label_classification"),
        ("classifier", 1, "regression", "regression"),
        ("classifier", 2, "regression", "regression"),
        ("multi_label", 3, "multi-label", "multi_label_classification"),
    ],
)
def test_what_a_classifier_was_trained_for(tmp_path: Path, head: str, outputs: int, task: str, problem: str) -> None:
    settings: dict[str, Any] = {} if task == "regression" else {"labels": ["a", "b", "c"]}
    saved = {"task": task, "settings": settings | {"classifier_dropout": 0.2}}
    weights = with_head(head, outputs)
    write_huggingface(tmp_path / "out", TINY, weights, None, task=saved)
    fields = written_config(tmp_path / "out")
    assert (fields["architectures"], fields["problem_type"]) == (["AlbertForSequenceClassification"], problem)
    read = read_huggingface(tmp_path / "out")
    assert_same_weights(read.weights, weights)
    assert read.task == saved


def test_a_classifier_of_an_unknown_task(tmp_path: Path) -> None:
    """Nothing is claimed that is not known."""
    write_huggingface(tmp_path / "out", TINY, with_head("classifier"), None)
    assert "problem_type" not in written_config(tmp_path / "out")


@pytest.mark.parametrize(("head", "outputs"), [("multi_label", 3), ("classifier", 1), ("classifier", 3)])
def test_no_other_head_is_taken_for_a_softmax(tmp_path: Path, head: str, outputs: int) -> None:
    vocabulary = sentencepiece_vocabulary()
    config = dataclasses.replace(TINY, vocabulary_size=vocabulary.size)
    task = {"task": "multi-label" if head == "multi_label" else "regression", "settings": {}}
    weights = with_head(head, outputs) | random_weights(config)
    write_huggingface(tmp_path / "out", config, weights, AlbertTokenizer(vocabulary, max_length=12), task=task)
    with pytest.raises(InputError, match=f"holds a model for {task['task']}, no classification model"):
        AlbertTextClassifier.from_pretrained(tmp_path / "out")
    fresh = AlbertTextClassifier.from_pretrained(tmp_path / "out", labels=["a", "b", "c"])
    assert fresh.head_is_new and not np.array_equal(np.asarray(fresh.classifier.kernel), weights[f"{head}/kernel"])
    if outputs == 3 and head == "classifier":
        with pytest.raises(InputError, match=r"classifier/kernel is \(16, 3\), expected \(16, 1\)"):
            load_task(tmp_path / "out")
    else:
        model = load_task(tmp_path / "out")
        assert model.task == task["task"] and not model.head_is_new
        np.testing.assert_array_equal(model.named_weights()[f"{head}/kernel"], weights[f"{head}/kernel"])


def test_an_encoder_without_pooler(tmp_path: Path) -> None:
    weights = {name: weight for name, weight in random_weights(TINY).items() if not name.startswith("pooler")}
    (told,) = write_huggingface(tmp_path / "out", TINY, weights, None)
    assert "AlbertModel makes a pooler of its own" in told
    read = read_huggingface(tmp_path / "out")
    assert_same_weights(read.weights, weights)
    assert written_config(tmp_path / "out")["architectures"] == ["AlbertModel"]


def test_a_classifier_is_loaded_with_its_head_and_its_labels_may_be_named(tmp_path: Path) -> None:
    vocabulary = sentencepiece_vocabulary()
    config = dataclasses.replace(TINY, vocabulary_size=vocabulary.size)
    weights = with_head("classifier") | random_weights(config)
    write_huggingface(tmp_path / "out", config, weights, AlbertTokenizer(vocabulary, max_length=12))
    unnamed = AlbertTextClassifier.from_pretrained(tmp_path / "out")
    assert unnamed.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    named = AlbertTextClassifier.from_pretrained(tmp_path / "out", labels=["a", "b", "c"])
    for model in (unnamed, named):
        assert not model.head_is_new and model.required_tokenizer.max_length == 12
        np.testing.assert_array_equal(np.asarray(model.classifier.kernel), weights["classifier/kernel"])
    assert AlbertTextClassifier.from_pretrained(tmp_path / "out", labels=["a", "b"]).head_is_new
    written = written_config(tmp_path / "out")
    assert (written["pad_token_id"], written["bos_token_id"], written["eos_token_id"]) == (0, 2, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sharing": "attention"}, 'it has no form for sharing="attention"'),
        ({"sharing": "ffn"}, 'it has no form for sharing="ffn"'),
        ({"factorization": "words"}, 'no form for factorization="words"'),
        ({"masked_lm_layer_norm_epsilon": 1e-5}, "no form for masked_lm_layer_norm_epsilon"),
    ],
)
def test_architectures_without_a_form(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    config = dataclasses.replace(TINY, **change)
    with pytest.raises(InputError, match=message):
        write_huggingface(tmp_path / "out", config, random_weights(config, heads=True), None)
    assert not (tmp_path / "out").exists()


def test_heads_without_a_form(tmp_path: Path) -> None:
    both = with_head("classifier") | with_head("multiple_choice")
    only_order = {n: w for n, w in random_weights(TINY, heads=True).items() if not n.startswith("masked_lm")}
    squad_2 = random_weights(TINY) | {"question_answering/start/kernel": np.zeros((16, 1), np.float32)}
    for weights in (both, only_order, squad_2):
        homeless = "; no tensor for question_answering/start/kernel" if weights is squad_2 else ""
        with pytest.raises(
            InputError, match=f"Hugging Face has no class with the heads .* of this checkpoint{homeless}$"
        ):
            write_huggingface(tmp_path / "out", TINY, weights, None)
    no_pooler = {n: w for n, w in with_head("classifier").items() if not n.startswith("pooler")}
    with pytest.raises(InputError, match="AlbertForSequenceClassification of Hugging Face needs a pooler"):
        write_huggingface(tmp_path / "out", TINY, no_pooler, None)
    with pytest.raises(InputError, match=r"1 missing: pooler/bias"):
        damaged = {n: w for n, w in random_weights(TINY).items() if n != "pooler/bias"}
        write_huggingface(tmp_path / "out", TINY, damaged, None)


def test_what_exists_is_replaced_only_when_asked(tmp_path: Path) -> None:
    weights = random_weights(TINY)
    write_huggingface(tmp_path / "out", TINY, weights, None)
    with pytest.raises(InputError, match="exists already"):
        write_huggingface(tmp_path / "out", TINY, weights, None)
    write_huggingface(tmp_path / "out", TINY, weights, None, overwrite=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").touch()
    with pytest.raises(InputError, match=r"is not a Hugging Face checkpoint \(thesis\.txt\), so it is not replaced"):
        write_huggingface(tmp_path / "other", TINY, weights, None, overwrite=True)
