"""transformers, run live: its ALBERT models give what our model gives on the folders that they save, and the reverse."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peer_models import GROUPED, LENGTHS, SHAPES, assert_same_weights, batch_of, largest_difference, random_weights
from tiny_models import TINY

from albert_tf.config import AlbertConfig
from albert_tf.conversion.huggingface import read_huggingface, write_huggingface

pytestmark = pytest.mark.clients

# float32 on both sides; measured at most 8.3e-6.
TOLERANCE = 2e-5
MULTI_LABEL = {"num_labels": 3, "problem_type": "multi_label_classification"}
ACTIVATIONS = {"gelu_tanh": "gelu_new", "gelu_erf": "gelu", "relu": "relu"}


def their_config(config: AlbertConfig, **more: Any) -> Any:
    import transformers

    return transformers.AlbertConfig(
        vocab_size=config.vocabulary_size,
        embedding_size=config.embedding_dim,
        hidden_size=config.hidden_dim,
        intermediate_size=config.intermediate_dim,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        num_hidden_groups=config.num_groups,
        inner_group_num=config.num_inner_repetitions,
        max_position_embeddings=config.max_sequence_length,
        hidden_act=ACTIVATIONS[config.activation],
        **more,
    )


def their_model(name: str, config: AlbertConfig, **more: Any) -> Any:
    """Of random weights, far from the initialiser's, and of a size that keeps the sums over a layer's width alike."""
    import torch
    import transformers

    torch.manual_seed(0)
    model = getattr(transformers, name)(their_config(config, **more)).eval()
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            noise = torch.randn_like(parameter)
            parameter.copy_(1 + 0.1 * noise if "orm.weight" in path else config.hidden_dim**-0.5 * noise)
    return model


def their_outputs(model: Any, batch: dict[str, np.ndarray], **more: Any) -> dict[str, Any]:
    import torch

    names = {"input_ids": "token_ids", "token_type_ids": "segment_ids", "attention_mask": "padding_mask"}
    with torch.no_grad():
        given = {theirs: torch.tensor(batch[ours]).long() for theirs, ours in names.items()}
        outputs = model(**given, output_hidden_states=True, **more)
    return {
        name: [np.asarray(x) for x in value] if isinstance(value, tuple) else np.asarray(value)
        for name, value in outputs.items()
    }


def assert_same_outputs(folder: Path, model: Any, lengths: tuple[int, ...]) -> AlbertConfig:
    """The pretraining model of a folder against the model that was saved there: every layer and both heads."""
    from albert_tf.tasks.pretraining import AlbertPretrainer

    pretrainer = AlbertPretrainer.from_pretrained(folder, all_layers=True)
    for length in lengths:
        batch = batch_of(pretrainer.backbone.config, length)
        positions = np.linspace(0, length - 1, num=min(length, 40), dtype=np.int32)
        ours = our_outputs(pretrainer, batch, positions)
        theirs = their_outputs(model, batch)
        sequence = theirs["hidden_states"][-1]
        assert len(ours["layers"]) == len(theirs["hidden_states"])
        expected = {
            "masked words": theirs["prediction_logits"][:, positions],
            "sentence order": theirs["sop_logits"],
            "pooled": their_pooled(model, sequence),
            **{f"layer {index}": layer for index, layer in enumerate(theirs["hidden_states"])},
        }
        ours |= {f"layer {index}": layer for index, layer in enumerate(ours.pop("layers"))}
        differences = {name: largest_difference(ours[name], value) for name, value in expected.items()}
        assert max(differences.values()) <= TOLERANCE, (length, differences)
    return pretrainer.backbone.config


def our_outputs(pretrainer: Any, batch: dict[str, np.ndarray], positions: np.ndarray) -> dict[str, Any]:
    """As the pretrainer computes them, the encoder run once."""
    encoded = pretrainer.backbone(batch)
    rows = np.tile(positions, (len(batch["token_ids"]), 1))
    matrices = pretrainer.backbone.embeddings.output_matrices()
    return {
        "masked words": pretrainer.get_layer("masked_lm")(encoded["sequence_output"], rows, *matrices),
        "sentence order": pretrainer.get_layer("sentence_order")(encoded["pooled_output"]),
        "pooled": encoded["pooled_output"],
        "layers": [encoded["embedding_output"], *encoded["layer_outputs"]],
    }


def their_pooled(model: Any, sequence: np.ndarray) -> np.ndarray:
    import torch

    with torch.no_grad():
        return np.asarray(model.albert.pooler_activation(model.albert.pooler(torch.tensor(sequence[:, 0]))))


@pytest.mark.parametrize("size", SHAPES)
def test_the_four_sizes(tmp_path: Path, size: str) -> None:
    model = their_model("AlbertForPreTraining", SHAPES[size])
    model.save_pretrained(tmp_path)
    assert assert_same_outputs(tmp_path, model, LENGTHS) == SHAPES[size]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("config", [TINY, GROUPED], ids=["shared", "groups"])
def test_activations_and_groups(tmp_path: Path, config: AlbertConfig, activation: str) -> None:
    config = dataclasses.replace(config, activation=activation)
    model = their_model("AlbertForPreTraining", config)
    model.save_pretrained(tmp_path)
    assert assert_same_outputs(tmp_path, model, (1, 12)) == config


@pytest.mark.parametrize(
    ("name", "head", "task", "more"),
    [
        ("AlbertForSequenceClassification", "classifier", "classification", {"num_labels": 3}),
        ("AlbertForSequenceClassification", "classifier", "regression", {"num_labels": 1}),
        (
            "AlbertForSequenceClassification",
            "classifier",
            "regression",
            {"num_labels": 1, "problem_type": "regression"},
        ),
        ("AlbertForSequenceClassification", "multi_label", "multi-label", MULTI_LABEL),
        ("AlbertForTokenClassification", "token_classification", "tagging", {"id2label": {0: "O", 1: "B", 2: "I"}}),
        ("AlbertForQuestionAnswering", "question_answering", "question-answering", {}),
        ("AlbertForMultipleChoice", "multiple_choice", "multiple-choice", {}),
    ],
)
def test_every_fine_tuned_head(tmp_path: Path, name: str, head: str, task: str, more: dict[str, Any]) -> None:
    from albert_tf.backbone import AlbertBackbone

    model = their_model(name, TINY, **more)
    model.save_pretrained(tmp_path / "theirs")
    checkpoint = read_huggingface(tmp_path / "theirs")
    assert checkpoint.head == head and checkpoint.task is not None and checkpoint.task["task"] == task
    backbone = AlbertBackbone(checkpoint.config, pooler="pooler/kernel" in checkpoint.weights)
    backbone.load_named_weights(checkpoint.backbone_weights, source=name)
    batch = batch_of(TINY, 12)
    encoded = backbone(batch)
    by_token = task in ("tagging", "question-answering")
    features = np.asarray(encoded["sequence_output" if by_token else "pooled_output"])
    logits = features @ checkpoint.weights[f"{head}/kernel"] + checkpoint.weights[f"{head}/bias"]
    if task == "multiple-choice":  # the three rows are the choices of one question
        theirs = their_outputs(model, {key: value[None] for key, value in batch.items()})["logits"][0, :, None]
    else:
        theirs = their_outputs(model, batch)
        if task == "question-answering":
            theirs["logits"] = np.stack([theirs["start_logits"], theirs["end_logits"]], -1)
        theirs = theirs["logits"]
    assert largest_difference(logits, theirs) <= TOLERANCE
    write_huggingface(tmp_path / "ours", checkpoint.config, checkpoint.weights, None, task=checkpoint.task)
    assert_loads_whole(name, tmp_path / "ours", model, batch)
    again = read_huggingface(tmp_path / "ours")
    assert_same_weights(again.weights, checkpoint.weights)
    assert (again.task, again.config) == (checkpoint.task, checkpoint.config)


def assert_loads_whole(name: str, folder: Path, model: Any, batch: dict[str, np.ndarray]) -> None:
    """The folder gives transformers the very same model: no tensor missing, left over or changed."""
    import transformers

    loaded, report = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report
    state, expected = loaded.eval().state_dict(), model.state_dict()
    assert state.keys() == expected.keys()
    for key in expected:
        np.testing.assert_array_equal(np.asarray(state[key]), np.asarray(expected[key]), key)
    if name != "AlbertForMultipleChoice":
        theirs, before = their_outputs(loaded, batch), their_outputs(model, batch)
        # A sum's last bit may hang on where in memory its numbers are.
        assert all(largest_difference(theirs[key], before[key]) <= 1e-6 for key in before if key != "hidden_states")


@pytest.mark.parametrize("name", ["AlbertModel", "AlbertForPreTraining", "AlbertForMaskedLM"])
@pytest.mark.parametrize("config", [TINY, GROUPED], ids=["shared", "groups"])
def test_theirs_to_ours_and_back(tmp_path: Path, config: AlbertConfig, name: str) -> None:
    model = their_model(name, config)
    model.save_pretrained(tmp_path / "theirs")
    checkpoint = read_huggingface(tmp_path / "theirs")
    write_huggingface(tmp_path / "ours", checkpoint.config, checkpoint.weights, None)
    assert_loads_whole(name, tmp_path / "ours", model, batch_of(config, 12))


@pytest.mark.parametrize(
    "change",
    [{}, {"sharing": "none"}, {"embedding_dim": 16}, {"activation": "relu"}, {"hidden_dropout": 0.1}],
    ids=str,
)
def test_ours_to_theirs(tmp_path: Path, change: dict[str, Any]) -> None:
    import transformers

    from albert_tf.backbone import AlbertBackbone

    config = dataclasses.replace(TINY, **change)
    weights = random_weights(config, heads=True)
    write_huggingface(tmp_path / "ours", config, weights, None)
    model, report = transformers.AlbertForPreTraining.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(report.values()), report
    assert_same_outputs(tmp_path / "ours", model.eval(), (1, 12))
    backbone, batch = AlbertBackbone(config), batch_of(config, 12)
    backbone.load_named_weights(
        {n: w for n, w in weights.items() if not n.startswith(("masked_lm", "sentence_order"))}, source="ours"
    )
    theirs = their_outputs(model.albert, batch)
    assert largest_difference(backbone(batch)["sequence_output"], theirs["last_hidden_state"]) <= TOLERANCE
    assert_same_weights(read_huggingface(tmp_path / "ours").weights, weights)
    model.save_pretrained(tmp_path / "theirs")
    assert_same_weights(read_huggingface(tmp_path / "theirs").weights, weights)
