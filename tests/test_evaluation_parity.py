"""Comparing outputs: an independent model in a framework's place agrees, a wrong one is caught, output by output."""

import argparse
import dataclasses
import sys
import zipfile

import numpy as np
import pytest
from garden_writer import CONFIG
from references import numpy_albert

from albert_tf.cli.convert import add_parser
from albert_tf.conversion.checkpoint import Checkpoint
from albert_tf.conversion.model_garden import FORM as MODEL_GARDEN
from albert_tf.conversion.model_garden import write_model_garden
from albert_tf.errors import CheckError, InputError
from albert_tf.evaluation import frameworks
from albert_tf.evaluation.parity import (
    Difference,
    check_differences,
    check_written,
    compare_with_framework,
    difference_table,
    differences,
    our_outputs,
    parity_batch,
)
from albert_tf.parameters import backbone_weight_shapes, pretraining_head_weight_shapes

HEADS = {"classifier": ("pooled_output", 3), "token_classification": ("sequence_output", 4)}


def random_weights(config, *, pretraining=True):
    shapes = backbone_weight_shapes(config) | (pretraining_head_weight_shapes(config) if pretraining else {})
    random = np.random.default_rng(3)
    noise = {name: 0.3 * random.standard_normal(shape) for name, shape in shapes.items()}
    return {name: (1 + value if name.endswith("gamma") else value).astype(np.float32) for name, value in noise.items()}


def reference_outputs(path, config, weights, batch):
    """What a framework returns, by the NumPy reference in double precision."""
    encoded = numpy_albert.encode(weights, config, batch["token_ids"], batch["segment_ids"], batch["padding_mask"])
    inner = config.num_inner_repetitions
    outputs = {f"layer {n}": x for n, x in enumerate(encoded["layer_outputs"][inner - 1 :: inner], start=1)}
    outputs |= {name: encoded[name] for name in ("sequence_output", "pooled_output")}
    if "masked_lm/output_bias" in weights:
        outputs["masked_lm_logits"] = numpy_albert.masked_lm_logits(
            weights, config, encoded["sequence_output"], batch["masked_positions"]
        )
        outputs["sentence_order_logits"] = numpy_albert.sentence_order_logits(weights, encoded["pooled_output"])
    for name, (features, _) in HEADS.items():
        if f"{name}/kernel" in weights:
            outputs[f"{name}_logits"] = encoded[features] @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]
    return outputs


@pytest.fixture
def framework(monkeypatch):
    """The reference in the place of the TF Model Garden."""
    present = frameworks.Framework("reference", ("numpy",), "numpy", reference_outputs)
    monkeypatch.setitem(frameworks.FRAMEWORKS, MODEL_GARDEN, present)
    return present


def checkpoint_of(config, weights):
    return Checkpoint(MODEL_GARDEN, "somewhere", config, weights)


# === The batch ===


@pytest.mark.parametrize(("longest", "lengths"), [(512, [512, 128, 5, 1]), (9, [9, 2, 5, 1]), (1, [1, 1, 1, 1])])
def test_the_batch_has_several_lengths(longest, lengths):
    config = dataclasses.replace(CONFIG, max_sequence_length=longest)
    batch = parity_batch(config)
    assert batch["padding_mask"].sum(axis=1).tolist() == lengths
    assert batch["token_ids"].max() < 40 and batch["segment_ids"].max() <= 1
    assert np.take_along_axis(batch["padding_mask"], batch["masked_positions"], axis=1).all()


# === Ours against an independent model ===


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation": "relu"},
        {"activation": "gelu_erf", "embedding_dim": 12},
        {"num_layers": 4, "num_groups": 2, "num_inner_repetitions": 2},
        {"factorization": "words"},
    ],
)
def test_every_output_agrees(changes, framework):
    config = dataclasses.replace(CONFIG, **changes)
    compared = compare_with_framework(checkpoint_of(config, random_weights(config)))
    layers = [f"layer {n}" for n in range(1, config.num_layers + 1)]
    heads = ["masked_lm_logits", "sentence_order_logits"]
    assert [difference.output for difference in compared] == [*layers, "sequence_output", "pooled_output", *heads]
    assert all(difference.passed for difference in compared)
    check_differences(compared, "x")


def test_a_framework_gets_the_files_of_an_archive(framework, monkeypatch, tmp_path):
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as file:
        file.writestr("model/ckpt", "")
    held = []

    def run(path, config, weights, batch):
        held.extend(entry.name for entry in path.iterdir())
        return reference_outputs(path, config, weights, batch)

    monkeypatch.setitem(frameworks.FRAMEWORKS, MODEL_GARDEN, framework._replace(run=run))
    checkpoint = dataclasses.replace(checkpoint_of(CONFIG, random_weights(CONFIG)), source=str(tmp_path / "model.zip"))
    check_differences(compare_with_framework(checkpoint), "x")
    assert held == ["ckpt"]


@pytest.mark.parametrize("head", HEADS)
def test_task_heads_agree(head, framework):
    random = np.random.default_rng(4)
    labels = HEADS[head][1]
    weights = random_weights(CONFIG, pretraining=False)
    weights |= {f"{head}/kernel": random.standard_normal((12, labels)).astype(np.float32)}
    weights |= {f"{head}/bias": random.standard_normal(labels).astype(np.float32)}
    compared = compare_with_framework(checkpoint_of(CONFIG, weights))
    assert compared[-1].output == f"{head}_logits" and compared[-1].passed


@pytest.mark.parametrize(
    ("name", "first_wrong"),
    [
        ("encoder/attention_0/key/bias", None),  # softmax does not see what all keys have in common
        ("encoder/attention_0/key/kernel", "layer 1"),
        ("embeddings/position_embedding/embeddings", "layer 1"),
        ("pooler/bias", "pooled_output"),
        ("masked_lm/layer_norm/beta", "masked_lm_logits"),
        ("sentence_order/kernel", "sentence_order_logits"),
    ],
)
def test_one_wrong_weight_shows(name, first_wrong, framework, monkeypatch):
    weights = random_weights(CONFIG)
    wrong = weights | {
        name: weights[name] + np.float32(1e-2) * np.arange(weights[name].size).reshape(weights[name].shape)
    }
    if first_wrong is None:
        wrong[name] = weights[name] + np.float32(1.0)
    run = framework._replace(run=lambda path, config, _, batch: reference_outputs(path, config, wrong, batch))
    monkeypatch.setitem(frameworks.FRAMEWORKS, MODEL_GARDEN, run)
    compared = compare_with_framework(checkpoint_of(CONFIG, weights))
    failed = [difference.output for difference in compared if not difference.passed]
    assert (failed or [None])[0] == first_wrong
    if failed:
        with pytest.raises(CheckError, match=f"x: {len(failed)} of {len(compared)} outputs are above the tolerance"):
            check_differences(compared, "x")


def test_padding_does_not_count(framework):
    batch = parity_batch(CONFIG)
    ours = our_outputs(CONFIG, random_weights(CONFIG), batch)
    theirs = {name: value.copy() for name, value in ours.items()}
    for name in ("layer 1", "sequence_output"):
        theirs[name][batch["padding_mask"] == 0] += 1
    assert {difference.largest for difference in differences(ours, theirs, batch["padding_mask"])} == {0.0}
    theirs["sequence_output"][0, -1, 0] += 0.5
    found = {difference.output: difference.largest for difference in differences(ours, theirs, batch["padding_mask"])}
    assert found["sequence_output"] == pytest.approx(0.5) and found["layer 1"] == 0


def test_another_depth_or_shape_is_an_error():
    batch = parity_batch(CONFIG)
    ours = our_outputs(CONFIG, random_weights(CONFIG), batch)
    fewer = {name: value for name, value in ours.items() if name != "layer 3"}
    with pytest.raises(CheckError, match="our model has more layers: layer 3"):
        differences(ours, fewer, batch["padding_mask"])
    with pytest.raises(CheckError, match=r"layer 3 is .* there; our model has none"):
        differences(fewer, ours, batch["padding_mask"])
    with pytest.raises(CheckError, match=r"pooled_output is \(4, 13\) there; our model has \(4, 12\)"):
        differences(ours, ours | {"pooled_output": np.zeros((4, 13))}, batch["padding_mask"])


@pytest.mark.parametrize(
    ("largest", "scale", "passed"),
    [(1.9e-5, 0.1, True), (2.1e-5, 0.1, False), (2.1e-5, 6.0, True), (1.3e-4, 6.0, False), (float("nan"), 1.0, False)],
)
def test_the_tolerance(largest, scale, passed):
    assert Difference("x", largest, scale).passed == passed


# === Weights read back ===


def test_written_weights_are_compared_bit_for_bit():
    weights = random_weights(CONFIG)
    check_written(weights, checkpoint_of(CONFIG, dict(weights)))
    without = {name: value for name, value in weights.items() if not name.startswith("sentence_order/")}
    check_written(weights, checkpoint_of(CONFIG, without))
    flipped = weights | {"pooler/bias": np.nextafter(weights["pooler/bias"], np.float32(9))}
    with pytest.raises(CheckError, match="somewhere: pooler/bias do not read as they were written"):
        check_written(weights, checkpoint_of(CONFIG, flipped))
    zeros = weights | {"pooler/bias": np.zeros(12, np.float32)}
    with pytest.raises(CheckError, match="pooler/bias"):
        check_written(zeros, checkpoint_of(CONFIG, zeros | {"pooler/bias": -zeros["pooler/bias"]}))


# === The command ===


def convert(*arguments):
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["convert", *map(str, arguments)])
    return args.run(args)


@pytest.fixture
def source(tmp_path):
    write_model_garden(tmp_path / "source", CONFIG, random_weights(CONFIG), None)
    return tmp_path / "source"


def test_verify_prints_the_differences(source, tmp_path, framework, capsys):
    assert convert(source, tmp_path / "out", "--verify") == 0
    printed = capsys.readouterr().out
    assert "reference and albert-tf" in printed
    for output in (
        "layer 1",
        "layer 3",
        "sequence_output",
        "pooled_output",
        "masked_lm_logits",
        "sentence_order_logits",
    ):
        assert output in printed
    assert "differs" not in printed and "no other framework here runs" in " ".join(printed.split())


def test_verify_runs_what_was_written(source, tmp_path, framework, capsys):
    assert convert(source, tmp_path / "out", "--to", "model-garden", "--verify") == 0
    assert " ".join(capsys.readouterr().out.split()).count("reference and albert-tf") == 2


def test_a_source_that_differs_is_not_converted(source, tmp_path, framework, monkeypatch, capsys):
    def off(path, config, weights, batch):
        outputs = reference_outputs(path, config, weights, batch)
        return outputs | {"layer 2": outputs["layer 2"] + 1e-3}

    monkeypatch.setitem(frameworks.FRAMEWORKS, MODEL_GARDEN, framework._replace(run=off))
    with pytest.raises(CheckError, match=r"1 of 7 outputs are above the tolerance; layer 2 by 1\.0e-03, at most"):
        convert(source, tmp_path / "out", "--verify")
    assert "differs" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_what_reads_back_otherwise_is_told(source, tmp_path, framework, monkeypatch):
    import albert_tf.presets as presets

    read = presets.read_weights
    monkeypatch.setattr(presets, "read_weights", lambda path: read(path) | {"pooler/bias": np.zeros(12, np.float32)})
    with pytest.raises(CheckError, match="pooler/bias do not read as they were written"):
        convert(source, tmp_path / "out", "--verify")


@pytest.mark.parametrize(
    ("form", "module", "package"),
    [
        ("huggingface", "transformers", "pip install transformers torch"),
        ("keras-hub", "keras_hub", "pip install keras-hub"),
        ("model-garden", "official", "pip install tf-models-official==2.20.0"),
    ],
)
def test_a_framework_that_is_missing_is_told_before_the_work(form, module, package, source, tmp_path, monkeypatch):
    for name in ("torch", module):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=f"must be installed .*{package}"):
        convert(source, tmp_path / "out", "--to", form, "--verify")
    assert not (tmp_path / "out").exists()


def test_the_table_has_a_row_for_each_output():
    table = difference_table([Difference("layer 1", 1e-6, 3.0), Difference("pooled_output", 1.0, 1.0)], "title")
    assert table.row_count == 2
    assert list(table.columns[-1].cells) == ["ok", "differs"]
