"""`albert_tf.tasks.base`: saving and loading, which head is kept, and inference in batches."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from tiny_data import TinyFiles
from tiny_models import TINY, named_weights, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.presets import save_preset
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tasks.pretraining import AlbertPretrainer
from albert_tf.tasks.regression import AlbertTextRegressor
from albert_tf.tokenization.tokenizer import AlbertTokenizer

LABELS = ("cold", "warm", "温")
# float32, probabilities of a model with large random weights; measured at most 3.3e-7.
TOLERANCE = 2e-6
TEXTS = ["snow", "the sun and the fire of a very red day in summer", "", "it is freezing"]


@pytest.fixture(scope="module")
def config(tiny_files: TinyFiles) -> AlbertConfig:
    """Sharing by groups, so that weights are shared and yet more than one block's."""
    tokenizer = AlbertTokenizer.from_pretrained(tiny_files.vocabulary)
    return dataclasses.replace(
        TINY, vocabulary_size=tokenizer.vocabulary.size, max_sequence_length=32, num_layers=4, num_groups=2
    )


@pytest.fixture(scope="module")
def tokenizer(tiny_files: TinyFiles) -> AlbertTokenizer:
    return AlbertTokenizer.from_pretrained(tiny_files.vocabulary, max_length=20)


@pytest.fixture(scope="module")
def classifier(config: AlbertConfig, tokenizer: AlbertTokenizer) -> AlbertTextClassifier:
    """With random weights; no test changes it."""
    model = AlbertTextClassifier(AlbertBackbone(config), tokenizer, labels=LABELS, classifier_dropout=0.3)
    randomize(model)
    return model


@pytest.fixture(scope="module")
def saved(classifier: AlbertTextClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "task"
    classifier.save_pretrained(folder)
    return folder


def head(model: AlbertTextClassifier) -> np.ndarray:
    return np.asarray(model.classifier.kernel)


# === Saving and loading ===


def test_round_trip_is_exact(saved: Path, classifier: AlbertTextClassifier) -> None:
    restored = AlbertTextClassifier.from_pretrained(saved)
    assert not restored.head_is_new
    assert restored.settings() == classifier.settings() == {"labels": [*LABELS], "classifier_dropout": 0.3}
    assert restored.backbone.config == classifier.backbone.config
    assert restored.required_tokenizer.max_length == 20
    before, after = named_weights(classifier), named_weights(restored)
    assert before.keys() == after.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)
    assert restored.classify(TEXTS) == classifier.classify(TEXTS)


def test_the_folder_is_a_preset(saved: Path, classifier: AlbertTextClassifier) -> None:
    """The backbone class reads it too, and leaves the head."""
    assert sorted(path.name for path in saved.iterdir()) == [
        "config.json",
        "task.json",
        "tokenizer.json",
        "vocabulary.spm",
        "weights.safetensors",
    ]
    assert json.loads((saved / "task.json").read_text(encoding="utf-8"))["task"] == "classification"
    backbone = AlbertBackbone.from_pretrained(saved)
    assert named_weights(backbone).keys() == named_weights(classifier.backbone).keys()
    with pytest.raises(InputError, match="exists already"):
        classifier.save_pretrained(saved)


def test_config_changes_and_backbone_options(saved: Path, classifier: AlbertTextClassifier) -> None:
    restored = AlbertTextClassifier.from_pretrained(
        saved,
        config_changes={"hidden_dropout": 0.25},
        backbone_options={"dtype": "mixed_bfloat16", "rematerialize": True},
    )
    assert restored.backbone.config == dataclasses.replace(classifier.backbone.config, hidden_dropout=0.25)
    assert restored.backbone.policy.compute_dtype == "bfloat16" and restored.backbone.encoder.rematerialize
    half, full = restored.predict_probabilities(TEXTS), classifier.predict_probabilities(TEXTS)
    assert half.dtype == np.float32
    assert 1e-5 < np.abs(half - full).max() < 0.2


@pytest.mark.parametrize("with_heads", [False, True])
def test_a_checkpoint_of_an_encoder_gets_a_new_head(
    config: AlbertConfig, tokenizer: AlbertTokenizer, with_heads: bool, tmp_path: Path
) -> None:
    source = AlbertPretrainer(AlbertBackbone(config)) if with_heads else AlbertBackbone(config)
    weights = randomize(source)
    save_preset(tmp_path / "encoder", config, weights, tokenizer)
    with pytest.raises(InputError, match=r"encoder: holds no trained classification model; .* a new head: labels"):
        AlbertTextClassifier.from_pretrained(tmp_path / "encoder")
    model = AlbertTextClassifier.from_pretrained(tmp_path / "encoder", labels=LABELS)
    assert model.head_is_new and 0 < np.abs(head(model)).max() < 0.05  # the initialiser's 0.02, cut at two deviations
    for name, value in named_weights(model.backbone).items():
        np.testing.assert_array_equal(value, weights[name], err_msg=name)


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({}, True),
        ({"labels": list(LABELS)}, True),
        ({"labels": LABELS, "classifier_dropout": 0.0}, True),  # a rate is no weight
        ({"labels": LABELS[::-1]}, False),
        ({"labels": ("a", "b", "c")}, False),
        ({"labels": LABELS[:2]}, False),
    ],
    ids=str,
)
def test_the_head_is_kept_where_the_labels_are_the_same(
    saved: Path, classifier: AlbertTextClassifier, settings: dict[str, Any], kept: bool
) -> None:
    model = AlbertTextClassifier.from_pretrained(saved, **settings)
    assert model.head_is_new is not kept
    assert np.array_equal(head(model), head(classifier)) is kept
    assert model.labels == tuple(settings.get("labels", LABELS))
    assert model.classifier_dropout == settings.get("classifier_dropout", 0.3)
    kernel = "encoder/attention_1/query/kernel"
    np.testing.assert_array_equal(named_weights(model)[kernel], named_weights(classifier)[kernel])


def test_a_head_of_another_task_is_no_head(saved: Path, tmp_path: Path) -> None:
    folder = copied(saved, tmp_path / "task")
    (folder / "task.json").write_text('{"task": "tagging", "settings": {"labels": ["cold", "warm"]}}')
    with pytest.raises(InputError, match="holds a model for tagging, no classification model"):
        AlbertTextClassifier.from_pretrained(folder)


@pytest.mark.parametrize(
    ("task_json", "expected"),
    [
        ("{", "task.json, line 1: not JSON"),
        ('{"task": "classification"}', "task.json: expected an object"),
        (
            '{"task": "classification", "settings": {"labels": ["a", "b"], "poetry": 2}}',
            "settings that this version does not know: poetry; expected ",
        ),
        ('{"task": "classification", "settings": {"labels": ["a", "b"]}}', r"classifier/kernel is \(16, 3\)"),
        ('{"task": "classification", "settings": {"labels": 2}}', "labels: expected a list"),
    ],
)
def test_a_damaged_task_file(saved: Path, task_json: str, expected: str, tmp_path: Path) -> None:
    folder = copied(saved, tmp_path / "task")
    (folder / "task.json").write_text(task_json)
    with pytest.raises(InputError, match=expected):
        AlbertTextClassifier.from_pretrained(folder)


def test_what_is_not_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        AlbertTextClassifier.from_pretrained(tmp_path / "nowhere", labels=LABELS)
    with pytest.raises(InputError, match="the folder is empty"):
        AlbertTextClassifier.from_pretrained(tmp_path, labels=LABELS)


def test_a_new_head_has_to_be_asked_for(saved: Path) -> None:
    """Also one that needs no setting."""
    with pytest.raises(
        InputError, match=r"no regression model; expected .* settings of a new head: classifier_dropout$"
    ):
        AlbertTextRegressor.from_pretrained(saved)
    assert AlbertTextRegressor.from_pretrained(saved, classifier_dropout=0.1).head_is_new


# === Tokenizer ===


def test_a_tokenizer_of_another_vocabulary_is_refused(config: AlbertConfig, tokenizer: AlbertTokenizer) -> None:
    backbone = AlbertBackbone(dataclasses.replace(config, vocabulary_size=51))
    with pytest.raises(InputError, match="the tokenizer has 50 pieces, the model's word table 51 rows"):
        AlbertTextClassifier(backbone, tokenizer, labels=LABELS)


def test_without_a_tokenizer(config: AlbertConfig, tmp_path: Path) -> None:
    model = AlbertTextClassifier(AlbertBackbone(config), labels=LABELS)
    ids = np.array([[2, 7, 3]], np.int32)
    assert model({"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}).shape == (1, 3)
    with pytest.raises(InputError, match="this model has no tokenizer; pass token ids"):
        model.classify(["snow"])
    model.save_pretrained(tmp_path / "task")
    assert not (tmp_path / "task" / "tokenizer.json").exists()
    with pytest.raises(InputError, match=r"holds no tokenizer .* put the vocabulary file"):
        AlbertTextClassifier.from_pretrained(tmp_path / "task")


# === .keras files ===


def test_keras_file_with_tokenizer(classifier: AlbertTextClassifier, tmp_path: Path) -> None:
    classifier.save(tmp_path / "task.keras")
    restored = keras.saving.load_model(tmp_path / "task.keras")
    assert isinstance(restored, AlbertTextClassifier)
    assert restored.labels == LABELS and restored.classifier_dropout == 0.3
    assert restored.required_tokenizer.max_length == 20
    assert restored.classify(TEXTS) == classifier.classify(TEXTS)
    # Two groups in four layers: the weights are still two blocks', and one change shows in both of its layers.
    assert [v.path for v in restored.weights] == [v.path for v in classifier.weights]
    assert restored.count_params() == classifier.count_params()
    before = restored.predict_probabilities(TEXTS)
    kernel = restored.backbone.encoder.feed_forward_blocks[0].output_dense.kernel
    kernel.assign(np.zeros(kernel.shape))
    assert np.abs(restored.predict_probabilities(TEXTS) - before).max() > 1e-3


def test_keras_file_without_tokenizer(config: AlbertConfig, tmp_path: Path) -> None:
    model = AlbertTextClassifier(AlbertBackbone(config), labels=LABELS)
    randomize(model)
    model.save(tmp_path / "task.keras")
    restored = keras.saving.load_model(tmp_path / "task.keras")
    assert restored.tokenizer is None
    ids = np.array([[2, 7, 3]], np.int32)
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    np.testing.assert_array_equal(restored(inputs), model(inputs))


def test_keras_file_of_a_compiled_model_keeps_its_optimizer(config: AlbertConfig, tmp_path: Path) -> None:
    shallow = dataclasses.replace(config, num_layers=1, num_groups=1)
    model = AlbertTextClassifier(AlbertBackbone(shallow), labels=LABELS)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), run_eagerly=True)
    ids = np.array([[2, 7, 3]], np.int32)
    model.fit({"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}, np.array([1]), verbose=0)
    model.save(tmp_path / "task.keras")
    restored = keras.saving.load_model(tmp_path / "task.keras")
    assert int(restored.optimizer.iterations) == 1
    for before, after in zip(model.optimizer.variables, restored.optimizer.variables, strict=True):
        np.testing.assert_array_equal(after, before)


# === Inference ===


def test_answers_do_not_depend_on_the_batch(classifier: AlbertTextClassifier) -> None:
    texts = [*TEXTS, "fire", "the day of ice", "summer " * 30]
    together = classifier.predict_probabilities(texts)
    alone = np.concatenate([classifier.predict_probabilities([text]) for text in texts])
    in_twos = [row["probabilities"] for row in classifier.run_rows(classifier.encode(texts), batch_size=2)]
    assert np.ptp(together, axis=0).max() > 0.05  # the texts do differ
    np.testing.assert_allclose(alone, together, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(in_twos, together, rtol=0, atol=TOLERANCE)
    backwards = classifier.predict_probabilities(texts[::-1])
    np.testing.assert_allclose(backwards[::-1], together, rtol=0, atol=TOLERANCE)


def test_one_graph_for_all_lengths(
    config: AlbertConfig, tokenizer: AlbertTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, traces = AlbertTextClassifier(AlbertBackbone(config), tokenizer, labels=LABELS), []
    encode = model.backbone.encoder.call
    monkeypatch.setattr(
        model.backbone.encoder, "call", lambda x, *rest, **kw: traces.append(1) or encode(x, *rest, **kw)
    )
    for texts in (["a"], ["a b"], ["a b c", "a"], ["a b c d"] * 5):
        model.classify(texts)
    assert len(traces) == 1


def test_many_models_in_one_process_are_no_reason_to_warn(
    config: AlbertConfig, tokenizer: AlbertTokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    """TensorFlow warns of too much tracing where several models have the same Python function."""
    shallow = dataclasses.replace(config, num_layers=1, num_groups=1)
    for _ in range(7):
        AlbertTextClassifier(AlbertBackbone(shallow), tokenizer, labels=LABELS).classify(["a"])
    assert caplog.text == ""


def test_inference_sees_new_weights_and_no_dropout(config: AlbertConfig, tokenizer: AlbertTokenizer) -> None:
    shaken = dataclasses.replace(config, hidden_dropout=0.5, attention_dropout=0.5)
    model = AlbertTextClassifier(AlbertBackbone(shaken), tokenizer, labels=LABELS, classifier_dropout=0.9)
    randomize(model)
    first = model.predict_probabilities(TEXTS)
    np.testing.assert_array_equal(model.predict_probabilities(TEXTS), first)
    randomize(model, seed=1)
    assert np.abs(model.predict_probabilities(TEXTS) - first).max() > 0.01


def test_a_task_must_say_what_it_is(config: AlbertConfig) -> None:
    backbone = AlbertBackbone(config)
    bare = AlbertTask(backbone, None, backbone.input, backbone.output)
    with pytest.raises(NotImplementedError):
        bare.settings()
    with pytest.raises(NotImplementedError):
        bare.device_outputs(None, None)
    with pytest.raises(NotImplementedError):
        bare.training_losses({}, None)


def copied(saved: Path, folder: Path) -> Path:
    return Path(shutil.copytree(saved, folder))
