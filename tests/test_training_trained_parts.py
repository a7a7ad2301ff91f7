"""`albert_tf.training.trained_parts`: what is frozen does not move, what is not does, each at its own rate."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from tiny_models import TINY, example_inputs, named_weights, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.training.compiling import compile_model
from albert_tf.training.optimizers import AdamW
from albert_tf.training.task_runs import ClassificationRun
from albert_tf.training.trained_parts import choose_trained_parts, rate_factors

OWN_LAYERS = dataclasses.replace(TINY, sharing="none")
TARGETS = {"label": np.array([0, 1, 0]), "scale": np.full(3, 1 / 3, np.float32)}


def run(**changes: Any) -> ClassificationRun:
    return ClassificationRun(train="train.tsv", out="out", source="albert", **changes)


def moved(config: AlbertConfig, **changes: Any) -> tuple[Any, set[str]]:
    """The model after two steps, and the first two parts of the names of weights that moved."""
    model = AlbertTextClassifier(AlbertBackbone(config), labels=["a", "b"])
    randomize(model)
    choose_trained_parts(run(**changes), model.backbone)
    before = named_weights(model)
    optimizer = AdamW(1e-2)
    compile_model(model, optimizer, precision="float32", accumulate=1, jit=False)
    for _ in range(2):
        model.train_on_batch(example_inputs(), TARGETS)
    changed = {name for name, value in named_weights(model).items() if not np.array_equal(value, before[name])}
    assert {variable.path for variable in model.trainable_variables} == changed  # none learns that has no gradient
    assert len(optimizer.variables) == 2 + 2 * len(changed)  # and the optimizer keeps nothing for those that do not
    return model, {"/".join(name.split("/")[:2]) for name in changed}


HEADS = {"pooler/kernel", "pooler/bias", "classifier/kernel", "classifier/bias"}
EMBEDDINGS = {f"embeddings/{part}" for part in ("word_embedding", "segment_embedding", "position_embedding")} | {
    *("embeddings/layer_norm", "embeddings/projection")
}


@pytest.mark.parametrize(
    ("freeze", "expected"),
    [
        (None, HEADS | EMBEDDINGS | {"encoder/attention_0", "encoder/feed_forward_0"}),
        ("embeddings", HEADS | {"encoder/attention_0", "encoder/feed_forward_0"}),
        ("encoder", HEADS),
        ("backbone", {"classifier/kernel", "classifier/bias"}),
    ],
)
def test_frozen_parts(freeze: str | None, expected: set[str]) -> None:
    assert moved(TINY, freeze=freeze)[1] == expected


def test_layers_with_weights_of_their_own_can_be_frozen_from_below() -> None:
    upper = {f"encoder/{half}_{layer}" for half in ("attention", "feed_forward") for layer in (1, 2)}
    assert moved(OWN_LAYERS, freeze="1")[1] == HEADS | upper
    assert moved(OWN_LAYERS, freeze="3")[1] == HEADS
    groups = dataclasses.replace(TINY, num_layers=4, num_groups=2)
    assert moved(groups, freeze="2")[1] == HEADS | {"encoder/attention_1", "encoder/feed_forward_1"}


@pytest.mark.parametrize(
    ("config", "freeze", "expected"),
    [
        (TINY, "2", r"--freeze 2: layers of this model share their weights \(sharing='all'\).*embeddings, encoder or"),
        (dataclasses.replace(TINY, sharing="attention"), "1", "share their weights"),
        (dataclasses.replace(TINY, sharing="ffn"), "1", "share their weights"),
        (dataclasses.replace(TINY, num_layers=4, num_groups=2), "1", "share their weights"),
        (OWN_LAYERS, "4", "--freeze 4: the model has 3 layers"),
    ],
    ids=lambda value: "" if isinstance(value, AlbertConfig) else value,
)
def test_layers_that_cannot_be_frozen(config: AlbertConfig, freeze: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        choose_trained_parts(run(freeze=freeze), AlbertBackbone(config))


@pytest.mark.parametrize(
    ("layers", "names"),
    [
        ("query-value", {"attention_0/query", "attention_0/value"}),
        ("attention", {f"attention_0/{name}" for name in ("query", "key", "value", "output")}),
        (
            "all",
            {f"attention_0/{name}" for name in ("query", "key", "value", "output")}
            | {"feed_forward_0/intermediate", "feed_forward_0/output"},
        ),
    ],
)
def test_additions(layers: str, names: set[str]) -> None:
    model, parts = moved(TINY, lora_rank=2, lora_alpha=6.0, lora_layers=layers)
    assert parts == HEADS | {f"encoder/{name.split('/')[0]}" for name in names}
    added = {v.path.removeprefix("encoder/") for v in model.trainable_variables if "lora" in v.path}
    assert added == {f"{name}/lora_kernel_{half}" for name in names for half in "ab"}
    assert all(2 in variable.shape for variable in model.trainable_variables if "lora" in variable.path)


def test_additions_with_the_whole_backbone_frozen() -> None:
    assert moved(TINY, lora_rank=2, freeze="backbone")[1] == {
        *("encoder/attention_0", "classifier/kernel", "classifier/bias")
    }


def test_rates_fall_from_the_head_to_the_embeddings() -> None:
    """One block: three rates. Layers of their own: one each. One shared half: it counts where it is used last."""
    assert rate_factors(TINY, 0.5) == {"encoder/attention_0/": 0.5, "encoder/feed_forward_0/": 0.5, "embeddings/": 0.25}
    own = rate_factors(OWN_LAYERS, 0.5)
    assert [own[f"encoder/attention_{layer}/"] for layer in range(3)] == [0.125, 0.25, 0.5]
    assert [own[f"encoder/feed_forward_{layer}/"] for layer in range(3)] == [0.125, 0.25, 0.5]
    assert own["embeddings/"] == 0.0625
    half = rate_factors(dataclasses.replace(TINY, sharing="attention"), 0.5)
    assert half["encoder/attention_0/"] == 0.5 == half["encoder/feed_forward_2/"]
    assert half["encoder/feed_forward_0/"] == 0.125


def test_every_weight_has_its_rate() -> None:
    """Adam's first step is the rate: that of each weight is seen in how far it moves."""
    model = AlbertTextClassifier(AlbertBackbone(OWN_LAYERS), labels=["a", "b"], classifier_dropout=0.0)
    before = randomize(model)
    optimizer = AdamW(1e-3, weight_decay=0.0, epsilon=1e-12, rate_factors=rate_factors(OWN_LAYERS, 0.5))
    compile_model(model, optimizer, precision="float32", accumulate=1, jit=False)
    model.train_on_batch(example_inputs(), TARGETS)
    for name, value in named_weights(model).items():
        if name.endswith("key/bias"):
            continue  # softmax takes no notice of it: its gradient is 0 but for rounding
        expected = 1e-3
        if name.startswith("encoder/"):
            expected *= 0.5 ** (3 - int(name.split("/")[1][-1]))
        elif name.startswith("embeddings/"):
            expected *= 0.5**4
        assert np.abs(value - before[name]).max() == pytest.approx(expected, rel=0.02), name
