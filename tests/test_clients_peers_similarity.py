"""transformers, run live: its encoder with Sentence-BERT's pooling gives our embeddings, and the reverse."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peer_models import largest_difference
from small_vocabularies import sentencepiece_vocabulary
from test_clients_peers_fill_mask import BASE, GROUPS, their_tokenizer
from test_clients_peers_transformers import their_model

from albert_tf.config import AlbertConfig

pytestmark = pytest.mark.clients

# float32 on both sides, vectors of length 1; measured at most 1.5e-7.
TOLERANCE = 1e-6
TEXTS = [
    "the old mill by the river has been turning",
    "the water",
    "",
    "who would not want to hear the stones at work?",
]


def their_embeddings(model: Any, tokenizer: Any, pooling: str) -> np.ndarray:
    """Padded together; the mean over what is no padding, as Sentence-BERT has it."""
    import torch

    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        tokens = model(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None].float()
    pooled = tokens[:, 0] if pooling == "cls" else (tokens * mask).sum(1) / mask.sum(1)
    return np.asarray(torch.nn.functional.normalize(pooled, dim=1))


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("config", [BASE, GROUPS], ids=["shared", "groups"])
def test_embeddings(config: AlbertConfig, pooling: str, tmp_path: Path) -> None:
    import transformers

    from albert_tf.conversion.huggingface import write_huggingface
    from albert_tf.tasks.similarity import AlbertTextEmbedder

    model = their_model("AlbertModel", config)
    model.save_pretrained(tmp_path / "theirs")
    tokenizer = their_tokenizer(sentencepiece_vocabulary(quotes=True), tmp_path / "theirs")
    ours = AlbertTextEmbedder.from_pretrained(tmp_path / "theirs", pooling=pooling)
    expected = their_embeddings(model, tokenizer, pooling)
    difference = largest_difference(ours.embed(TEXTS), expected)
    print(f"largest difference {difference:.2g}")
    assert difference <= TOLERANCE and np.abs(expected[0] - expected[1]).max() > 0.01
    weights = {name: np.asarray(variable) for name, variable in ours.named_weights().items()}
    write_huggingface(tmp_path / "ours", config, weights, ours.tokenizer)
    again = transformers.AlbertModel.from_pretrained(tmp_path / "ours", add_pooling_layer=False).eval()
    assert largest_difference(their_embeddings(again, tokenizer, pooling), expected) <= TOLERANCE
