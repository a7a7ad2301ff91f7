"""Files that PyTorch, transformers and huggingface_hub really write: weights of every kind, tokenizers, the cache."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peer_models import assert_same_weights, random_weights
from small_vocabularies import fuzzed_texts, sentencepiece_vocabulary, wordpiece_vocabulary
from test_clients_peers_transformers import their_model
from tiny_models import TINY

from albert_tf.conversion.huggingface import read_huggingface, write_huggingface
from albert_tf.errors import InputError
from albert_tf.presets import load_checkpoint, load_tokenizer
from albert_tf.tokenization.tokenizer import AlbertTokenizer

pytestmark = pytest.mark.clients

PLAIN = ["the old mill by the river", "who would not want to hear the water", "hahaha hahaha"]


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, Any]:
    """A folder that transformers saved, and its model."""
    model = their_model("AlbertForPreTraining", TINY)
    model.save_pretrained(tmp_path / "saved")
    return tmp_path / "saved", model


def with_torch_file(folder: Path, state: Any, **options: Any) -> Path:
    import torch

    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin", **options)
    return folder


# === Weights ===


def test_a_torch_file_holds_what_the_safetensors_file_holds(saved: tuple[Path, Any]) -> None:
    folder, model = saved
    expected = read_huggingface(folder).weights
    state = model.state_dict() | {"albert.embeddings.position_ids": np_tensor(np.arange(12)[None])}
    assert "predictions.decoder.weight" in state
    assert_same_weights(read_huggingface(with_torch_file(folder, state)).weights, expected)


def np_tensor(values: np.ndarray) -> Any:
    import torch

    return torch.tensor(values)


def test_views_on_one_storage(saved: tuple[Path, Any]) -> None:
    """Transposed, cut out and shared tensors are saved as windows on the storage that they share."""
    folder, model = saved
    expected = read_huggingface(folder).weights
    state = {name: x.t().contiguous().t() if x.dim() == 2 else x for name, x in model.state_dict().items()}
    both = np_tensor(np.stack([np.zeros((16, 16), np.float32), state["albert.pooler.weight"].numpy()]))
    state["albert.pooler.weight"] = both[1]
    assert state["albert.pooler.weight"].storage_offset() == 256
    assert_same_weights(read_huggingface(with_torch_file(folder, state)).weights, expected)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("form", ["torch", "safetensors"])
def test_half_precision_is_read_as_the_same_numbers(saved: tuple[Path, Any], kind: str, form: str) -> None:
    import torch

    folder, model = saved
    half = model.to(getattr(torch, kind))
    expected = {name: tensor.float().numpy() for name, tensor in half.state_dict().items()}
    if form == "torch":
        with_torch_file(folder, half.state_dict())
    else:
        half.save_pretrained(folder)
    weights = read_huggingface(folder).weights
    assert {weight.dtype for weight in weights.values()} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(weights["pooler/kernel"], expected["albert.pooler.weight"].T)
    table = "embeddings/word_embedding/embeddings"
    np.testing.assert_array_equal(weights[table], expected["albert.embeddings.word_embeddings.weight"])


def test_shards(saved: tuple[Path, Any], tmp_path: Path) -> None:
    folder, model = saved
    model.save_pretrained(tmp_path / "shards", max_shard_size="5KB")
    assert len(list((tmp_path / "shards").glob("model-*.safetensors"))) > 2
    assert_same_weights(read_huggingface(tmp_path / "shards").weights, read_huggingface(folder).weights)


def test_the_form_before_pytorch_1_6_is_refused(saved: tuple[Path, Any]) -> None:
    folder, model = saved
    with_torch_file(folder, model.state_dict(), _use_new_zipfile_serialization=False)
    with pytest.raises(
        InputError, match=r"in the form that torch\.save had before PyTorch 1\.6.*make a safetensors file"
    ):
        read_huggingface(folder)


class Harm:
    """What an attacker puts into a pickle."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_code_in_a_torch_file_is_not_run(saved: tuple[Path, Any], tmp_path: Path) -> None:
    folder, model = saved
    with_torch_file(folder, dict(model.state_dict()) | {"harm": Harm(tmp_path / "harm")})
    with pytest.raises(InputError, match=r"asks for posix\.mkdir, which was not run"):
        read_huggingface(folder)
    assert not (tmp_path / "harm").exists()
    pickle.loads(pickle.dumps(Harm(tmp_path / "harm")))  # it would have been
    assert (tmp_path / "harm").exists()


# === Tokenizers ===


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    import dataclasses

    vocabulary = sentencepiece_vocabulary(quotes=True)
    config = dataclasses.replace(TINY, vocabulary_size=vocabulary.size)
    tokenizer = AlbertTokenizer(vocabulary, max_length=12)
    notes = write_huggingface(tmp_path / "model", config, random_weights(config), tokenizer)
    assert notes == [
        "transformers' fast tokenizer keeps a digit and a comma together and drops the word mark before ( ) \" - ."
    ]
    return tmp_path / "model"


def test_transformers_takes_our_sentencepiece_model(model_folder: Path) -> None:
    import transformers

    theirs = transformers.AutoTokenizer.from_pretrained(model_folder)
    ours = load_tokenizer(load_checkpoint(model_folder))
    assert isinstance(theirs, transformers.AlbertTokenizer) and theirs.model_max_length == 12
    for text in PLAIN:
        assert theirs(text, truncation=True)["input_ids"] == ours.encode(text)[0]
    pair = theirs("the old mill", "the wood", truncation=True, return_token_type_ids=True)
    assert (pair["input_ids"], pair["token_type_ids"]) == ours.encode("the old mill", "the wood")
    ids = (theirs.unk_token_id, theirs.pad_token_id, theirs.cls_token_id, theirs.sep_token_id, theirs.mask_token_id)
    assert ids == (1, 0, 2, 3, 4)


def test_the_tokenizer_that_transformers_5_saves_has_the_same_ids(model_folder: Path, tmp_path: Path) -> None:
    import transformers

    before = load_tokenizer(load_checkpoint(model_folder))
    transformers.AutoTokenizer.from_pretrained(model_folder).save_pretrained(tmp_path / "fast")
    (model_folder / "spiece.model").unlink()
    for path in (tmp_path / "fast").iterdir():
        path.rename(model_folder / path.name)
    assert not any(model_folder.glob("*.model"))
    after = load_tokenizer(load_checkpoint(model_folder))
    for text in fuzzed_texts(500, seed=3):
        assert after.encode(text) == before.encode(text)


@pytest.mark.parametrize("lower", [True, False])
def test_transformers_takes_our_wordpiece_vocabulary(tmp_path: Path, lower: bool) -> None:
    import dataclasses

    import transformers

    ours = AlbertTokenizer(wordpiece_vocabulary(lower=lower), max_length=12)
    config = dataclasses.replace(TINY, vocabulary_size=ours.vocabulary.size)
    assert write_huggingface(tmp_path / "model", config, random_weights(config), ours) == []
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    assert isinstance(theirs, transformers.BertTokenizer)
    read = load_tokenizer(load_checkpoint(tmp_path / "model"))
    for text in ("The mills of 中国人", "café", "naïve wheels!"):
        assert theirs(text, truncation=True)["input_ids"] == ours.encode(text)[0] == read.encode(text)[0]


# === Names ===


def test_a_repository_in_the_offline_cache(model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "cache" / "models--mills--albert-tiny"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    (repository / "snapshots").mkdir()
    model_folder.rename(repository / "snapshots" / commit)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    checkpoint = load_checkpoint("mills/albert-tiny")
    assert checkpoint.form == "hugging face" and load_tokenizer(checkpoint) is not None
    assert_same_weights(load_checkpoint("hf://mills/albert-tiny").weights, checkpoint.weights)
    with pytest.raises(
        InputError, match=r"mills/absent: no such file or folder, and the Hugging Face repository mills/a"
    ):
        load_checkpoint("mills/absent")
