"""The model against outputs of published systems: Google's own graph, and a trained ALBERT run by ONNX Runtime."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tf1_writer import save_published

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.tasks.pretraining import AlbertPretrainer

# Twelve layers of float32 against Google's graph, values up to 5 (logits: 10): measured at most 5.7e-6.
GOOGLE_TOLERANCE = 2e-5
# Against ONNX Runtime on trained weights, values up to 12: measured at most 4.3e-5 (transformers: 2.5e-5).
KOKORO_TOLERANCE = 1e-4


def largest_difference(ours: Any, expected: np.ndarray) -> float:
    ours = np.asarray(ours)
    assert ours.shape == expected.shape
    return float(np.abs(ours - expected).max())


# === google-research/albert ===


@pytest.fixture(scope="module")
def google(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[AlbertPretrainer, Any]:
    """albert_base read from a TF1 checkpoint of seeded weights, and what Google's released graph makes of them."""
    published = shared_data / "tf1_ckpt_index" / "google_albert_base_en"
    folder = tmp_path_factory.mktemp("albert_base")
    save_published(folder, published)
    return AlbertPretrainer.from_pretrained(folder, all_layers=True), np.load(
        published / "golden_google_graph_seed0.npz"
    )


def google_inputs(golden: Any) -> dict[str, np.ndarray]:
    return {
        "token_ids": golden["input_ids"],
        "segment_ids": golden["segment_ids"],
        "padding_mask": golden["input_mask"],
    }


def test_google_encoder(google: tuple[AlbertPretrainer, Any]) -> None:
    pretrainer, golden = google
    backbone = pretrainer.backbone
    assert not golden["input_mask"].all() and golden["segment_ids"].any()  # padding and second texts are in it
    normalized = backbone.embeddings.normalized(golden["input_ids"], golden["segment_ids"])
    assert largest_difference(normalized, golden["embedding_ln"]) < GOOGLE_TOLERANCE
    outputs = backbone(google_inputs(golden))
    for layer in (0, 5, 11):
        assert largest_difference(outputs["layer_outputs"][layer], golden[f"layer_{layer:02d}"]) < GOOGLE_TOLERANCE
    assert largest_difference(outputs["sequence_output"], golden["layer_11"]) < GOOGLE_TOLERANCE
    assert largest_difference(outputs["pooled_output"], golden["pooled"]) < GOOGLE_TOLERANCE


def test_google_pretraining_heads(google: tuple[AlbertPretrainer, Any]) -> None:
    pretrainer, golden = google
    outputs = pretrainer(google_inputs(golden) | {"masked_positions": golden["mlm_positions"]})
    words = np.asarray(outputs["masked_lm_logits"]).reshape(-1, 30000)
    assert largest_difference(words[:, :128], golden["mlm_logits_first128"]) < GOOGLE_TOLERANCE
    np.testing.assert_array_equal(words.argmax(1), golden["mlm_argmax"])
    totals = np.log(np.exp(words.astype(np.float64)).sum(1))
    assert largest_difference(totals, golden["mlm_logsumexp"]) < GOOGLE_TOLERANCE
    assert largest_difference(outputs["sentence_order_logits"], golden["sop_logits"]) < GOOGLE_TOLERANCE


def test_google_weights_matter_to_the_comparison(google: tuple[AlbertPretrainer, Any]) -> None:
    """One weight of the second half layer, moved by a hundredth, is seen in every layer."""
    pretrainer, golden = google
    bias = pretrainer.backbone.encoder.feed_forward_blocks[0].output_dense.bias
    before = np.asarray(bias).copy()
    bias.assign(before + 0.01 * (np.arange(768) == 3))
    outputs = pretrainer.backbone(google_inputs(golden))
    bias.assign(before)
    for layer in (0, 5, 11):
        assert (
            largest_difference(outputs["layer_outputs"][layer], golden[f"layer_{layer:02d}"]) > 100 * GOOGLE_TOLERANCE
        )


# === Kokoro's PL-BERT ===

_LAYER = "encoder.albert_layer_groups.0.albert_layers.0"
# Our name → that of Hugging Face's AlbertModel; its matrices are [out, in].
_LAYER_NORMS = {
    "embeddings/layer_norm": "embeddings.LayerNorm",
    "encoder/attention_0/layer_norm": f"{_LAYER}.attention.LayerNorm",
    "encoder/feed_forward_0/layer_norm": f"{_LAYER}.full_layer_layer_norm",
}
_DENSE = {
    "embeddings/projection": "encoder.embedding_hidden_mapping_in",
    "encoder/attention_0/query": f"{_LAYER}.attention.query",
    "encoder/attention_0/key": f"{_LAYER}.attention.key",
    "encoder/attention_0/value": f"{_LAYER}.attention.value",
    "encoder/attention_0/output": f"{_LAYER}.attention.dense",
    "encoder/feed_forward_0/intermediate": f"{_LAYER}.ffn",
    "encoder/feed_forward_0/output": f"{_LAYER}.ffn_output",
}
_TABLES = {"word": "word_embeddings", "segment": "token_type_embeddings", "position": "position_embeddings"}


def kokoro_weights(stored: Any) -> dict[str, np.ndarray]:
    """The int8 file in float32, under our names. Scales are of a whole table or of an output of a dense layer."""

    def dequantized(name: str) -> np.ndarray:
        zero = int(stored[f"{name}.zero"]) if f"{name}.zero" in stored else 0
        return ((stored[f"{name}.q8"].astype(np.float32) - zero).T * stored[f"{name}.scale"]).T

    weights = {}
    for ours, theirs in _TABLES.items():
        weights[f"embeddings/{ours}_embedding/embeddings"] = dequantized(f"embeddings.{theirs}.weight")
    for ours, theirs in _LAYER_NORMS.items():
        weights |= {f"{ours}/gamma": stored[f"{theirs}.weight"], f"{ours}/beta": stored[f"{theirs}.bias"]}
    for ours, theirs in _DENSE.items():
        weights |= {f"{ours}/kernel": dequantized(f"{theirs}.weight").T, f"{ours}/bias": stored[f"{theirs}.bias"]}
    return weights


def test_kokoro(shared_data: Path) -> None:
    """Trained weights: twelve passes through one block, three sentences of 32, 11 and 54 tokens."""
    folder = shared_data / "kokoro_plbert"
    published = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert published["hidden_act"] == "gelu_new" and published["layer_norm_eps"] == 1e-12
    config = AlbertConfig(
        vocabulary_size=published["vocab_size"],
        hidden_dim=published["hidden_size"],
        intermediate_dim=published["intermediate_size"],
        num_layers=published["num_hidden_layers"],
        num_heads=published["num_attention_heads"],
        embedding_dim=published["embedding_size"],
    )
    backbone = AlbertBackbone(config, pooler=False)
    assert backbone.count_params() == 5_701_888
    with np.load(folder / "plbert_int8_weights_hfnames.npz") as stored:
        backbone.load_named_weights(kokoro_weights(stored), source=folder.name)
    with np.load(folder / "golden_onnxruntime.npz") as golden:
        for sentence in range(3):
            ids = golden[f"ids_{sentence}"]
            inputs = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}
            output = backbone(inputs)["sequence_output"]
            assert largest_difference(output, golden[f"float_{sentence}"]) < KOKORO_TOLERANCE
