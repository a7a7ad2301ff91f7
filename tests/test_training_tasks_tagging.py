"""Tagging from columns to a run folder and a `.tflite` file; head and loss against NumPy."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from references import numpy_albert
from small_vocabularies import sentencepiece_vocabulary
from tiny_data import WORDS, TinyFiles, read_json, run_quietly, separable_rows, tiny_task_run
from tiny_models import example_inputs, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.cli.main import main
from albert_tf.config import AlbertConfig
from albert_tf.data.conll import TaggedExample, entities, read_tagged
from albert_tf.errors import InputError
from albert_tf.evaluation.evaluate import evaluate
from albert_tf.inference.tagging import TaggingPipeline
from albert_tf.tasks.token_classification import AlbertTokenClassifier
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from albert_tf.training.task_runs import TaggingRun
from albert_tf.training.tasks.tagging import FinetuneTagging
from export.runtime import TFLiteRunner
from export.tflite import export_tflite

CONFIG = AlbertConfig(140, 16, 32, 2, 2, embedding_dim=8, max_sequence_length=24)
LABELS = ["O", "B-X", "I-X"]


@pytest.fixture(scope="module")
def model() -> AlbertTokenClassifier:
    tokenizer = AlbertTokenizer(sentencepiece_vocabulary(), max_length=24)
    result = AlbertTokenClassifier(AlbertBackbone(CONFIG, pooler=False), tokenizer, labels=LABELS)
    randomize(result)
    return result


def columns(path: Path, count: int) -> Path:
    """Words for cold and warm are entities of one word each."""
    kinds = {word: label for label, words in WORDS.items() for word in words.split()}
    lines = []
    for text, _ in separable_rows(count):
        lines += [f"{word}\t{'S-' + kinds[word] if word in kinds else 'O'}" for word in text.split()] + [""]
    path.write_text("\n".join(lines))
    return path


def test_head_and_loss_against_numpy(model: AlbertTokenClassifier) -> None:
    weights = {name: np.asarray(variable, np.float64) for name, variable in model.named_weights().items()}
    inputs = example_inputs()
    encoded = numpy_albert.encode(weights, CONFIG, **inputs)["sequence_output"]
    logits = encoded @ weights["token_classification/kernel"] + weights["token_classification/bias"]
    np.testing.assert_allclose(model(inputs), logits, rtol=0, atol=5e-6)
    labels = np.full(inputs["token_ids"].shape, -1)
    labels[0, 1], labels[0, 2], labels[1, 1] = 2, 0, 1
    nll = np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, np.maximum(labels, 0)[..., None], -1)[..., 0]
    expected = (nll * (labels >= 0)).sum(-1) / np.maximum((labels >= 0).sum(-1), 1)
    found = model.training_losses({"labels": labels}, model(inputs))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def tagging_run(files: TinyFiles, out: Path, train: Path, **changes: Any) -> TaggingRun:
    run: TaggingRun = tiny_task_run(TaggingRun, files, out, train, **changes)
    return run


def test_from_columns_to_a_file(tiny_files: TinyFiles, tmp_path: Path) -> None:
    train = columns(tmp_path / "train.conll", 48)
    summary = run_quietly(tagging_run(tiny_files, tmp_path / "run", train, epochs=12.0))
    assert summary["valid"]["f1"] > 0.9
    assert (tmp_path / "run" / "labels.txt").read_text().split() == ["O", "B-cold", "I-cold", "B-warm", "I-warm"]
    trained, examples = AlbertTokenClassifier.from_pretrained(tmp_path / "run"), read_tagged(train)
    assert evaluate(trained, examples, source="train")["f1"] == pytest.approx(summary["valid"]["f1"])
    pipeline, words = TaggingPipeline(trained), examples[0].words
    (found,) = pipeline([" ".join(words)])
    (answer,) = pipeline.answer(pipeline.prepare(examples[:1]))
    expected = [(kind, " ".join(words[start:end])) for kind, start, end in entities(answer.labels)]
    assert [(entity.kind, entity.text) for entity in found] == expected and expected
    for length in (None, 32):
        export_tflite(trained, tmp_path / f"{length}.tflite", recipe="float32", length=length)
        on_file = TFLiteRunner(tmp_path / f"{length}.tflite")
        assert on_file([" ".join(words)]) == [
            [dataclasses.replace(entity, score=pytest.approx(entity.score, abs=1e-4)) for entity in found]
        ]
    for name in ("run", "None.tflite"):
        command = ["evaluate", str(tmp_path / name), "--data", str(train), "--json", str(tmp_path / f"{name}.json")]
        assert main(command) == 0
        assert read_json(tmp_path / f"{name}.json")["f1"] == pytest.approx(summary["valid"]["f1"], abs=0.02)


def test_what_cannot_be_trained_on(model: AlbertTokenClassifier, tmp_path: Path) -> None:
    task, pipeline = FinetuneTagging(), TaggingPipeline(model)
    for labels, expected in (
        (("B-Z",), "text 1 has the label 'B-Z'; the model's labels are O, B-X"),
        (None, "text 1 has no"),
    ):
        examples = [TaggedExample(("mill",), labels)]
        with pytest.raises(InputError, match=expected):
            task.training_rows(model, examples, pipeline.prepare(examples), "train.conll")
    with pytest.raises(InputError, match="train: text 1 has no labels to compare with"):
        evaluate(model, [TaggedExample(("mill",))], source="train")
    run = TaggingRun(train="train.conll", out="run", source="x")
    with pytest.raises(InputError, match=r"train\.conll: expected words with labels such as B-PER, found none"):
        task.head_settings(run, [TaggedExample(("a",), ("O",))])


def test_round_trip(model: AlbertTokenClassifier, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "model")
    restored = AlbertTokenClassifier.from_pretrained(tmp_path / "model", backbone_options={"pooler": False})
    assert not restored.head_is_new and restored.labels == ("O", "B-X", "I-X")
    for name, variable in model.named_weights().items():
        np.testing.assert_array_equal(restored.named_weights()[name], variable)
