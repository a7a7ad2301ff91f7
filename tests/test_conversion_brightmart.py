"""Checkpoints of brightmart/albert_zh against a TensorFlow 1 graph that wrote them, in and out."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from references import numpy_albert
from references.brightmart_graph import BrightmartGraph
from tf1_writer import PUBLISHED, save_folder, variables

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import CONFIGS, AlbertConfig
from albert_tf.conversion.tf1 import read_tf1, write_tf1
from albert_tf.errors import InputError
from albert_tf.presets import load_checkpoint
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tasks.pretraining import AlbertPretrainer
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.tflite import export_tflite

# Against the graph in float32 and NumPy in float64, values up to 5: measured at most 2.2e-6.
TOLERANCE = 2e-5

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "e", "f", "g"]
TINY = {
    "attention_probs_dropout_prob": 0.0,
    "directionality": "bidi",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "hidden_size": 12,
    "embedding_size": 4,
    "initializer_range": 0.02,
    "intermediate_size": 20,
    "max_position_embeddings": 9,
    "num_attention_heads": 3,
    "num_hidden_layers": 3,
    "pooler_fc_size": 768,
    "pooler_type": "first_token_transform",
    "type_vocab_size": 2,
    "vocab_size": len(WORDS),
    "ln_type": "postln",
}
# What the oldest files have: nothing of brightmart's own.
PLAIN = {k: v for k, v in TINY.items() if k != "ln_type" and not k.startswith(("pooler", "direction"))}


def example(config: dict[str, Any], length: int, batch: int = 3) -> dict[str, np.ndarray]:
    """Random ids; the first row is full, the others are shorter."""
    random = np.random.default_rng(length)
    lengths = np.maximum(length - np.arange(batch) * (length // 3), 1)
    return {
        "token_ids": random.integers(0, config["vocab_size"], (batch, length)).astype(np.int32),
        "segment_ids": random.integers(0, 2, (batch, length)).astype(np.int32),
        "padding_mask": (np.arange(length) < lengths[:, None]).astype(np.int32),
        "masked_positions": random.integers(0, lengths[:, None], (batch, 2)).astype(np.int32),
    }


def write(
    folder: Path, config: dict[str, Any] = TINY, *, slots: tuple[str, ...] = (), **options: Any
) -> BrightmartGraph:
    """A folder like the released ones."""
    graph = BrightmartGraph(config, **options)
    graph.save(folder / "albert_model.ckpt", slots=slots)
    (folder / "albert_config_tiny.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))
    return graph


def largest_difference(ours: Any, expected: Any) -> float:
    ours, expected = np.asarray(ours), np.asarray(expected)
    assert ours.shape == expected.shape
    return float(np.abs(ours - expected).max())


def same_outputs(pretrainer: AlbertPretrainer, graph: BrightmartGraph, inputs: dict[str, np.ndarray]) -> None:
    encoder_inputs = {name: value for name, value in inputs.items() if name != "masked_positions"}
    ours, expected = pretrainer.backbone(encoder_inputs) | pretrainer(inputs), graph.run(inputs)
    for name in ("embedding_output", "pooled_output", "masked_lm_logits", "sentence_order_logits"):
        assert largest_difference(ours[name], expected[name]) < TOLERANCE, name
    for ours_layer, layer in zip(ours["layer_outputs"], expected["layer_outputs"], strict=True):
        assert largest_difference(ours_layer, layer) < TOLERANCE


# === In ===


@pytest.mark.parametrize("slots", [(), ("adam_m", "adam_v"), ("lamb_m", "lamb_v")], ids=str)
@pytest.mark.parametrize("config", [TINY, PLAIN | {"hidden_act": "relu", "embedding_size": 12}], ids=["gelu", "relu"])
def test_outputs_are_those_of_the_graph(tmp_path: Path, config: dict[str, Any], slots: tuple[str, ...]) -> None:
    graph = write(tmp_path, config, slots=slots)
    checkpoint = read_tf1(tmp_path)
    assert (checkpoint.form, checkpoint.head) == ("brightmart tf1", "pretraining")
    assert checkpoint.tokenizer_path == tmp_path / "vocab.txt"
    assert checkpoint.config.factorization == "words"
    pretrainer = AlbertPretrainer.from_pretrained(tmp_path, all_layers=True)
    for length in (1, 5, 9):
        same_outputs(pretrainer, graph, example(config, length))


def test_outputs_are_those_of_numpy(tmp_path: Path) -> None:
    graph, inputs = write(tmp_path), example(TINY, 7)
    checkpoint, expected = read_tf1(tmp_path), graph.run(inputs)
    positions = inputs.pop("masked_positions")
    ours = numpy_albert.encode(checkpoint.weights, checkpoint.config, **inputs)
    words = numpy_albert.masked_lm_logits(checkpoint.weights, checkpoint.config, ours["sequence_output"], positions)
    assert largest_difference(ours["embedding_output"], expected["embedding_output"]) < TOLERANCE
    assert largest_difference(ours["pooled_output"], expected["pooled_output"]) < TOLERANCE
    assert largest_difference(words, expected["masked_lm_logits"]) < TOLERANCE


def test_the_released_shape_of_tiny(shared_data: Path, tmp_path: Path) -> None:
    """4.3 million parameters, the published config and vocabulary, up to 512 tokens."""
    config = json.loads((shared_data / "albert_vocab_zh/albert_config_tiny.json").read_text())
    graph = write(tmp_path, config, scale=0.05)
    (tmp_path / "vocab.txt").write_bytes((shared_data / "albert_vocab_zh/vocab.txt").read_bytes())
    pretrainer = AlbertPretrainer.from_pretrained(tmp_path, all_layers=True)
    assert pretrainer.backbone.config == CONFIGS["brightmart_tiny"]
    for length in (1, 60, 512):
        same_outputs(pretrainer, graph, example(config, length))


def test_the_weights_matter_to_the_comparison(tmp_path: Path) -> None:
    graph, inputs = write(tmp_path), example(TINY, 7)
    pretrainer = AlbertPretrainer.from_pretrained(tmp_path, all_layers=True)
    kernel = pretrainer.backbone.embeddings.projection.kernel
    kernel.assign(np.asarray(kernel) + 0.01 * np.eye(4, 12))
    ours, expected = pretrainer(inputs), graph.run(inputs)
    assert largest_difference(ours["masked_lm_logits"], expected["masked_lm_logits"]) > 100 * TOLERANCE


def test_a_zip_as_the_released_ones(tmp_path: Path) -> None:
    write(tmp_path / "albert_tiny")
    with zipfile.ZipFile(tmp_path / "albert_tiny.zip", "w") as file:
        for path in (tmp_path / "albert_tiny").iterdir():
            file.write(path, f"albert_tiny/{path.name}")
            file.writestr(f"__MACOSX/albert_tiny/._{path.name}", b"of macOS")
    checkpoint = load_checkpoint(tmp_path / "albert_tiny.zip")
    assert checkpoint.form == "brightmart tf1"
    assert checkpoint.tokenizer_path is not None and checkpoint.tokenizer_path.name == "vocab.txt"


def test_the_file_names_of_bert(tmp_path: Path) -> None:
    graph = write(tmp_path)
    (tmp_path / "albert_config_tiny.json").rename(tmp_path / "bert_config.json")
    assert len(read_tf1(tmp_path).weights) == len(graph.values())


def test_a_fine_tuned_classifier(tmp_path: Path) -> None:
    graph = write(tmp_path)
    values = {name: value for name, value in graph.values().items() if not name.startswith("cls/")}
    kernel = np.arange(24, dtype=np.float32).reshape(2, 12)
    values |= {"output_weights": kernel, "output_bias": np.array([1, 2], np.float32)}
    folder = save_folder(tmp_path / "tuned", TINY, values)
    (folder / "vocab.txt").write_bytes((tmp_path / "vocab.txt").read_bytes())
    assert read_tf1(folder).head == "classifier"
    classifier = AlbertTextClassifier.from_pretrained(folder, labels=["no", "yes"])
    assert not classifier.head_is_new
    inputs = example(TINY, 5)
    logits = graph.run(inputs)["pooled_output"] @ kernel.T + [1, 2]
    inputs.pop("masked_positions")
    np.testing.assert_allclose(classifier(inputs), logits, rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ln_type": "preln"}, "ln_type = 'preln' is another encoder than ALBERT's"),
        ({"num_hidden_groups": 3}, "a brightmart checkpoint has one layer; the config says several groups"),
        ({"inner_group_num": 2}, "a brightmart checkpoint has one layer"),
        ({"hidden_size": 15}, "disagreement in hidden_size"),
        ({"embedding_size": 5}, r"disagreement in embedding_size.*word_embeddings_2 is \(4, 12\), expected \(5, 12\)"),
    ],
)
def test_a_config_that_does_not_fit(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    write(tmp_path)
    (tmp_path / "albert_config_tiny.json").write_text(json.dumps(TINY | change))
    with pytest.raises(InputError, match=message):
        read_tf1(tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bert/embeddings/word_embeddings_2", "1 missing: bert/embeddings/word_embeddings_2"),
        ("bert/encoder/layer_shared/output/LayerNorm/beta", "1 missing: bert/encoder/layer_shared/output/LayerNorm"),
        ("cls/predictions/transform/LayerNorm/beta", "1 missing: cls/predictions/transform/LayerNorm/beta"),
    ],
)
def test_a_missing_variable_is_named(tmp_path: Path, name: str, message: str) -> None:
    values = BrightmartGraph(TINY).values()
    del values[name]
    with pytest.raises(InputError, match=message):
        read_tf1(save_folder(tmp_path, TINY, values))


def test_a_model_of_google_stays_one_whatever_its_config_says(tmp_path: Path) -> None:
    folder = save_folder(tmp_path, PUBLISHED, variables(PUBLISHED))
    (folder / "albert_config.json").write_text(json.dumps(PUBLISHED | {"ln_type": "postln"}))
    checkpoint = read_tf1(folder)
    assert (checkpoint.form, checkpoint.config.factorization) == ("google tf1", "embeddings")


# === Out ===


def test_what_is_written_is_restored_by_the_graph(tmp_path: Path) -> None:
    graph, inputs = write(tmp_path / "in"), example(TINY, 6)
    checkpoint = read_tf1(tmp_path / "in")
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path / "in" / "vocab.txt")
    write_tf1(tmp_path / "out", checkpoint.config, checkpoint.weights, tokenizer)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "albert_config.json",
        "checkpoint",
        "model.ckpt-best.data-00000-of-00001",
        "model.ckpt-best.index",
        "vocab.txt",
    }
    other = BrightmartGraph(TINY, seed=1)
    assert largest_difference(other.run(inputs)["pooled_output"], graph.run(inputs)["pooled_output"]) > 0.1
    other.restore(tmp_path / "out" / "model.ckpt-best")
    for name, value in graph.values().items():
        np.testing.assert_array_equal(other.values()[name], value, name)
    np.testing.assert_array_equal(other.run(inputs)["pooled_output"], graph.run(inputs)["pooled_output"])
    again = read_tf1(tmp_path / "out")
    assert again.config == checkpoint.config and again.weights.keys() == checkpoint.weights.keys()
    assert all(np.array_equal(again.weights[name], weight) for name, weight in checkpoint.weights.items())
    words = (tmp_path / "out" / "vocab.txt").read_text().split()
    assert words == WORDS


@pytest.mark.parametrize("form", ["loop", "unrolled"])
def test_it_is_exported(tmp_path: Path, form: str) -> None:
    """The export compares its file with the Keras model and refuses one that differs."""
    config = AlbertConfig.from_dict(TINY)
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path / "vocab.txt", max_length=9)
    task = AlbertTextClassifier(AlbertBackbone(config), tokenizer, labels=["no", "yes"])
    for length in (None, 8):
        path = tmp_path / f"{length}.tflite"
        report = export_tflite(task, path, recipe="float32", form=form, length=length, texts=["a b c d", "g f", "e"])
        assert report.comparison.max_difference < 1e-5
