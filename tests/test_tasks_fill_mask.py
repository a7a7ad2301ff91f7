"""`albert_tf.tasks.fill_mask`: the head against NumPy and the pretraining model, every source, the loss, a device file."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest
from references import numpy_albert
from small_vocabularies import sentencepiece_vocabulary, wordpiece_vocabulary
from tiny_models import example_inputs, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.conversion.huggingface import write_huggingface
from albert_tf.errors import InputError
from albert_tf.inference.fill_mask import FillMaskPipeline
from albert_tf.presets import save_preset
from albert_tf.tasks.fill_mask import AlbertMaskedLM
from albert_tf.tasks.pretraining import AlbertPretrainer
from albert_tf.tasks.trained import load_task
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.runtime import TFLiteRunner
from export.tflite import export_tflite

# float32 against float64: measured at most 2e-6.
TOLERANCE = 1e-5
CONFIG = AlbertConfig(140, 16, 32, 2, 2, embedding_dim=8, max_sequence_length=24)
TEXTS = ["the old [MASK] by the river", "[MASK] [MASK].", "In 1999, [MASK] came"]


@pytest.fixture(scope="module")
def tokenizer() -> AlbertTokenizer:
    return AlbertTokenizer(sentencepiece_vocabulary(), max_length=24)


@pytest.fixture(scope="module")
def pretrainer() -> AlbertPretrainer:
    model = AlbertPretrainer(AlbertBackbone(CONFIG))
    randomize(model)
    return model


@pytest.fixture(scope="module")
def run_folder(
    pretrainer: AlbertPretrainer, tokenizer: AlbertTokenizer, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """What `albert-tf pretrain` leaves: both heads, no task.json."""
    folder = tmp_path_factory.mktemp("pretrained") / "run"
    pretrainer.save_pretrained(folder, tokenizer)
    return folder


def test_head_against_numpy() -> None:
    model = AlbertMaskedLM(AlbertBackbone(CONFIG, pooler=False))
    randomize(model)
    weights = {name: np.asarray(variable, np.float64) for name, variable in model.named_weights().items()}
    inputs = example_inputs()
    encoded = numpy_albert.encode(weights, CONFIG, **inputs)["sequence_output"]
    every = np.tile(np.arange(encoded.shape[1]), (len(encoded), 1))
    expected = numpy_albert.masked_lm_logits(weights, CONFIG, encoded, every)
    np.testing.assert_allclose(model(inputs), expected, rtol=0, atol=TOLERANCE)
    labels = np.full(inputs["token_ids"].shape, -1)
    labels[0, 1], labels[0, 2], labels[1, 1] = 2, 0, 77
    nll = np.log(np.exp(expected).sum(-1)) - np.take_along_axis(expected, np.maximum(labels, 0)[..., None], -1)[..., 0]
    losses = (nll * (labels >= 0)).sum(-1) / np.maximum((labels >= 0).sum(-1), 1)
    np.testing.assert_allclose(model.training_losses({"labels": labels}, model(inputs)), losses, rtol=1e-4, atol=1e-6)


def test_the_probabilities_are_those_of_the_pretraining_model(
    run_folder: Path, pretrainer: AlbertPretrainer, tokenizer: AlbertTokenizer
) -> None:
    model = AlbertMaskedLM.from_pretrained(run_folder)
    assert not model.head_is_new and model.backbone.pooler is None
    rows, (places, _) = FillMaskPipeline(model).prepare(TEXTS).rows, FillMaskPipeline(model).prepare(TEXTS).context
    for answer, (token_ids, segment_ids), (_, masks) in zip(model.fill(TEXTS, top_k=140), rows, places, strict=True):
        inputs = {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": [1] * len(token_ids)}
        inputs = {name: np.int32([row]) for name, row in inputs.items()}
        logits = pretrainer(inputs | {"masked_positions": np.int32([list(masks.values())])})["masked_lm_logits"]
        expected = np.asarray(keras.ops.softmax(logits, axis=-1))[0]
        assert np.ptp(expected) > 0.02
        for found, probabilities in zip(answer.masks, expected, strict=True):
            assert [c.probability for c in found] == pytest.approx(np.sort(probabilities)[::-1], abs=TOLERANCE)
            assert [probabilities[c.token_id] for c in found] == pytest.approx(
                [c.probability for c in found], abs=TOLERANCE
            )


def test_from_every_source_with_the_head(run_folder: Path, tokenizer: AlbertTokenizer, tmp_path: Path) -> None:
    """A run folder, its own folder, one of Hugging Face without the other head and pooler; and through `load_task`."""
    model = AlbertMaskedLM.from_pretrained(run_folder)
    expected = model.fill(TEXTS)
    model.save_pretrained(tmp_path / "own")
    assert json.loads((tmp_path / "own" / "task.json").read_text()) == {"task": "fill-mask", "settings": {}}
    weights = {name: np.asarray(variable) for name, variable in model.named_weights().items()}
    assert not any(name.startswith(("pooler", "sentence_order")) for name in weights)
    write_huggingface(tmp_path / "theirs", CONFIG, weights, tokenizer)
    for source in (tmp_path / "own", tmp_path / "theirs", run_folder):
        assert AlbertMaskedLM.from_pretrained(source).fill(TEXTS) == expected
        loaded = load_task(source)
        assert isinstance(loaded, AlbertMaskedLM) and FillMaskPipeline(loaded)(TEXTS) == expected
    model.save(tmp_path / "model.keras")
    restored = keras.models.load_model(tmp_path / "model.keras")
    assert restored.fill(TEXTS) == expected


def test_wordpiece_and_projected_words(tmp_path: Path) -> None:
    """A Chinese vocabulary; and brightmart's order, where the head goes through the projection too."""
    vocabulary = wordpiece_vocabulary()
    tokenizer = AlbertTokenizer(vocabulary, 24)
    for factorization in ("embeddings", "words"):
        config = AlbertConfig(
            vocabulary.size, 16, 32, 2, 2, embedding_dim=8, max_sequence_length=24, factorization=factorization
        )
        pretrainer = AlbertPretrainer(AlbertBackbone(config))
        randomize(pretrainer)
        pretrainer.save_pretrained(tmp_path / factorization, tokenizer)
        (answer,) = AlbertMaskedLM.from_pretrained(tmp_path / factorization).fill(["我爱[MASK]国"])
        assert len(answer.masks[0]) == 5 and "[MASK]" not in answer.text


def test_on_a_device(run_folder: Path, tmp_path: Path) -> None:
    model = AlbertMaskedLM.from_pretrained(run_folder)
    expected = model.fill(TEXTS)
    for recipe, length, tolerance in (("float32", None, 1e-5), ("float32", 24, 1e-5), ("dynamic_int8", None, 0.1)):
        path = tmp_path / f"{recipe}-{length}.tflite"
        export_tflite(model, path, recipe=recipe, length=length)
        for found, wanted in zip(TFLiteRunner(path)(TEXTS), expected, strict=True):
            for ours, theirs in zip(found.masks, wanted.masks, strict=True):
                assert ours[0].probability == pytest.approx(theirs[0].probability, abs=tolerance)
        if recipe == "float32":
            assert [answer.text for answer in TFLiteRunner(path)(TEXTS)] == [answer.text for answer in expected]


def test_what_cannot_fill_masks(tokenizer: AlbertTokenizer, tmp_path: Path) -> None:
    save_preset(tmp_path / "encoder", CONFIG, randomize(AlbertBackbone(CONFIG)), tokenizer)
    with pytest.raises(
        InputError, match=r"encoder: holds no head for masked words \(its head: none\); expected a run folder"
    ):
        AlbertMaskedLM.from_pretrained(tmp_path / "encoder")
    with pytest.raises(InputError, match="expected an AlbertBackbone, got str"):
        AlbertMaskedLM("backbone")
    with pytest.raises(InputError, match=r"text 1 \('the mill'\): expected \[MASK\] in the text"):
        AlbertMaskedLM(AlbertBackbone(CONFIG), tokenizer).fill(["the mill"])
