"""`.keras` files: what Keras wrote comes back bit for bit, with its task and tokenizer."""

import dataclasses
import io
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest
from small_vocabularies import sentencepiece_vocabulary
from tiny_models import TINY, example_inputs, named_weights, randomize

from albert_tf.backbone import AlbertBackbone
from albert_tf.cli.main import main
from albert_tf.cli.models import open_runner
from albert_tf.conversion import keras_file
from albert_tf.errors import InputError
from albert_tf.presets import load_checkpoint, load_tokenizer
from albert_tf.tasks.base import AlbertTask
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.tasks.fill_mask import AlbertMaskedLM
from albert_tf.tasks.multi_label import AlbertMultiLabelClassifier
from albert_tf.tasks.multiple_choice import AlbertMultipleChoice
from albert_tf.tasks.pretraining import AlbertPretrainer
from albert_tf.tasks.question_answering import AlbertQuestionAnswerer
from albert_tf.tasks.regression import AlbertTextRegressor
from albert_tf.tasks.similarity import AlbertTextEmbedder
from albert_tf.tasks.token_classification import AlbertTokenClassifier
from albert_tf.tasks.trained import TASKS
from albert_tf.tokenization.tokenizer import AlbertTokenizer

LABELS = ["no", "yes", "perhaps"]
CONFIG = dataclasses.replace(TINY, num_layers=4, num_groups=2, num_inner_repetitions=2)
WORDS = dataclasses.replace(TINY, factorization="words", sharing="none", hidden_dropout=0.1)


def backbone(config: Any = TINY, **options: Any) -> AlbertBackbone:
    return AlbertBackbone(config, **options)


MODELS: dict[str, Callable[[], Any]] = {
    "backbone": lambda: backbone(CONFIG),
    "backbone called otherwise": lambda: backbone(WORDS, name="embeddings", all_layers=True),
    "no pooler": lambda: backbone(pooler=False, rematerialize=True),
    "pretrainer": lambda: AlbertPretrainer(backbone(CONFIG)),
    "classifier": lambda: AlbertTextClassifier(backbone(CONFIG, name="b"), labels=LABELS, classifier_dropout=0.3),
    "half": lambda: AlbertTextClassifier(backbone(dtype="mixed_bfloat16"), labels=LABELS, name="other"),
    "regressor": lambda: AlbertTextRegressor(backbone(WORDS)),
    "tagger": lambda: AlbertTokenClassifier(backbone(pooler=False), labels=["O", "B-X"]),
    "choice": lambda: AlbertMultipleChoice(backbone()),
    "span": lambda: AlbertQuestionAnswerer(backbone(pooler=False)),
    "squad2": lambda: AlbertQuestionAnswerer(backbone(), head="squad2", no_answer_threshold=-1.5),
    "mask": lambda: AlbertMaskedLM(backbone(pooler=False)),
    "several labels": lambda: AlbertMultiLabelClassifier(backbone(), labels=LABELS, threshold=0.3),
    "similarity": lambda: AlbertTextEmbedder(backbone(pooler=False), pooling="cls", projection_dim=5),
    "pairs": lambda: AlbertTextEmbedder(backbone(pooler=False), objective="softmax", labels=LABELS),
}


@pytest.fixture(scope="module")
def trained() -> AlbertTextClassifier:
    """With a tokenizer, an optimizer that has made a step, and metrics."""
    vocabulary = sentencepiece_vocabulary()
    config = dataclasses.replace(TINY, vocabulary_size=vocabulary.size, hidden_dropout=0.1)
    model = AlbertTextClassifier(backbone(config), AlbertTokenizer(vocabulary, 9), labels=LABELS)
    randomize(model)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(), loss, metrics=["accuracy"])
    model.fit(example_inputs(), np.array([0, 1, 2]), verbose=0)
    return model


@pytest.fixture(scope="module")
def trained_file(trained: AlbertTextClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keras") / "trained.keras"
    trained.save(path)
    return path


def weights_of(model: Any) -> dict[str, np.ndarray]:
    return {path: value for path, value in named_weights(model).items() if not path.endswith("seed_generator_state")}


def assert_same(read: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert read.keys() == expected.keys()
    for name, value in expected.items():
        assert read[name].dtype == np.float32
        np.testing.assert_array_equal(read[name], value, name)


@pytest.mark.parametrize("kind", MODELS)
def test_every_model_comes_back_bit_for_bit(kind: str, tmp_path: Path) -> None:
    model = MODELS[kind]()
    expected = randomize(model)
    model.save(tmp_path / "model.keras")
    read = load_checkpoint(tmp_path / "model.keras")
    assert_same(read.weights, weights_of(model))
    assert_same(read.weights, {path: expected[path] for path in read.weights})
    assert (read.form, read.source) == ("keras model", str(tmp_path / "model.keras"))
    assert read.tokenizer_path is None and load_tokenizer(read) is None
    of_task = isinstance(model, AlbertTask)
    assert read.config == (model if kind.startswith(("backbone", "no")) else model.backbone).config
    assert read.task == ({"task": model.task, "settings": model.settings()} if of_task else None)


def test_every_task_can_be_read() -> None:
    named = {keras.saving.get_registered_name(cls).removeprefix("albert_tf>"): task for task, cls in TASKS.items()}
    assert {name: keras_file._TASKS[name] for name in named} == named


def test_a_trained_task(trained: AlbertTextClassifier, trained_file: Path, tmp_path: Path) -> None:
    """The optimizer's state is left behind; head, labels, tokenizer and its length stay."""
    with zipfile.ZipFile(trained_file) as archive, archive.open("model.weights.h5") as file:
        assert "optimizer" in h5py.File(io.BytesIO(file.read()))
    model = AlbertTextClassifier.from_pretrained(trained_file)
    assert_same(weights_of(model), weights_of(trained))
    assert not model.head_is_new and not model.pooler_is_new and model.labels == tuple(LABELS)
    assert model.required_tokenizer.max_length == 9
    texts = ["the old mill", "hahaha 1807"]
    np.testing.assert_array_equal(model.predict_probabilities(texts), trained.predict_probabilities(texts))
    renamed = AlbertTextClassifier.from_pretrained(trained_file, labels=["a", "b"])
    assert renamed.head_is_new
    with pytest.raises(InputError, match="holds a model for classification, no tagging model"):
        AlbertTokenClassifier.from_pretrained(trained_file)
    runner = open_runner(trained_file)
    assert isinstance(runner, AlbertTextClassifier) and runner.labels == tuple(LABELS)
    model.save(tmp_path / "again.keras")
    assert_same(load_checkpoint(tmp_path / "again.keras").weights, weights_of(trained))


def test_commands(trained: AlbertTextClassifier, trained_file: Path, tmp_path: Path, capsys: Any) -> None:
    assert main(["convert", str(trained_file), str(tmp_path / "preset")]) == 0
    assert "keras model" in capsys.readouterr().out
    read = load_checkpoint(tmp_path / "preset")
    assert_same(read.weights, weights_of(trained))
    assert read.task == {"task": "classification", "settings": trained.settings()}
    assert main(["predict", str(trained_file), "--text", "the old mill"]) == 0
    label, _, text = capsys.readouterr().out.strip().split("\t")
    assert label == trained.classify(["the old mill"])[0].label and text == "the old mill"


def test_a_folder(trained: AlbertTextClassifier, trained_file: Path, tmp_path: Path) -> None:
    """`zipped=False`, a file unzipped by hand, and an archive of that."""
    trained.save(tmp_path / "saved", zipped=False)
    assert_same(load_checkpoint(tmp_path / "saved").weights, weights_of(trained))
    shutil.unpack_archive(trained_file, tmp_path / "unzipped", "zip")
    read = load_checkpoint(tmp_path / "unzipped")
    assert_same(read.weights, weights_of(trained))
    assert load_tokenizer(read) is not None
    shutil.make_archive(str(tmp_path / "packed"), "gztar", tmp_path / "unzipped")
    packed = load_checkpoint(tmp_path / "packed.tar.gz")
    assert_same(packed.weights, read.weights)
    assert packed.task == read.task and load_tokenizer(packed) is not None


def test_half_precision_variables(tmp_path: Path) -> None:
    model = backbone(dtype="bfloat16")
    model.save(tmp_path / "half.keras")
    read = load_checkpoint(tmp_path / "half.keras").weights
    assert_same(read, {path: np.asarray(value, np.float32) for path, value in named_weights(model).items()})


def test_a_task_without_tokenizer(tmp_path: Path) -> None:
    MODELS["classifier"]().save(tmp_path / "small.keras")
    with pytest.raises(InputError, match=r"small\.keras: holds no tokenizer .* albert-tf convert with --tokenizer"):
        AlbertTextClassifier.from_pretrained(tmp_path / "small.keras")
    assert AlbertBackbone.from_pretrained(tmp_path / "small.keras").config == CONFIG
