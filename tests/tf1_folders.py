"""Folders like the released ones, and whether weights read from one are those written to it."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from tf1_writer import save_folder

BLOCK = "bert/encoder/transformer/group_{}/inner_group_{}"


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A tiny folder like the released ones; tests that change it copy it."""
    folder = save_folder(tmp_path_factory.mktemp("released") / "albert_base")
    (folder / "30k-clean.model").write_bytes(b"model")
    (folder / "30k-clean.vocab").write_bytes(b"ignored")
    return folder


@pytest.fixture
def copied(released, tmp_path):
    return Path(shutil.copytree(released, tmp_path / "albert_base"))


def same_block(weights, values, ours, group, inner):
    """Compares the block number `ours` with the names written out from the published list."""
    block = BLOCK.format(group, inner)
    pairs = {
        f"encoder/attention_{ours}/query": f"{block}/attention_1/self/query",
        f"encoder/attention_{ours}/key": f"{block}/attention_1/self/key",
        f"encoder/attention_{ours}/value": f"{block}/attention_1/self/value",
        f"encoder/attention_{ours}/output": f"{block}/attention_1/output/dense",
        f"encoder/feed_forward_{ours}/intermediate": f"{block}/ffn_1/intermediate/dense",
        f"encoder/feed_forward_{ours}/output": f"{block}/ffn_1/intermediate/output/dense",
    }
    for name, theirs in pairs.items():
        for part in ("kernel", "bias"):
            np.testing.assert_array_equal(weights[f"{name}/{part}"], values[f"{theirs}/{part}"], name)
    for part in ("gamma", "beta"):
        after_attention = weights[f"encoder/attention_{ours}/layer_norm/{part}"]
        after_feed_forward = weights[f"encoder/feed_forward_{ours}/layer_norm/{part}"]
        np.testing.assert_array_equal(after_attention, values[f"{block}/LayerNorm/{part}"])
        np.testing.assert_array_equal(after_feed_forward, values[f"{block}/LayerNorm_1/{part}"])


def same_rest(weights, values):
    """Compares what is outside the blocks."""
    pairs = {
        "embeddings/word_embedding/embeddings": "bert/embeddings/word_embeddings",
        "embeddings/segment_embedding/embeddings": "bert/embeddings/token_type_embeddings",
        "embeddings/position_embedding/embeddings": "bert/embeddings/position_embeddings",
        "embeddings/layer_norm/gamma": "bert/embeddings/LayerNorm/gamma",
        "embeddings/layer_norm/beta": "bert/embeddings/LayerNorm/beta",
        "embeddings/projection/kernel": "bert/encoder/embedding_hidden_mapping_in/kernel",
        "embeddings/projection/bias": "bert/encoder/embedding_hidden_mapping_in/bias",
        "pooler/kernel": "bert/pooler/dense/kernel",
        "pooler/bias": "bert/pooler/dense/bias",
        "masked_lm/transform/kernel": "cls/predictions/transform/dense/kernel",
        "masked_lm/transform/bias": "cls/predictions/transform/dense/bias",
        "masked_lm/layer_norm/gamma": "cls/predictions/transform/LayerNorm/gamma",
        "masked_lm/layer_norm/beta": "cls/predictions/transform/LayerNorm/beta",
        "masked_lm/output_bias": "cls/predictions/output_bias",
        "sentence_order/bias": "cls/seq_relationship/output_bias",
    }
    for name, theirs in pairs.items():
        np.testing.assert_array_equal(weights[name], values[theirs], name)
    np.testing.assert_array_equal(weights["sentence_order/kernel"], values["cls/seq_relationship/output_weights"].T)
