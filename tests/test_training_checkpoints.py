"""`albert_tf.training.checkpoints`: all that a step changes comes back, or the file is refused."""

import resource
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tiny_models import DROPPING, example_inputs

from albert_tf.backbone import AlbertBackbone
from albert_tf.errors import InputError
from albert_tf.tasks.classification import AlbertTextClassifier
from albert_tf.training.checkpoints import (
    Progress,
    UnsavedError,
    folder_checksum,
    has_state,
    restore_state,
    save_state,
    saving,
)
from albert_tf.training.optimizers import AdamW

PROGRESS = Progress(2, [{"loss": 0.5}, {"loss": 0.25}], 1, "digest")


def compiled(labels: tuple[str, ...] = ("a", "b"), seed: int = 0) -> Any:
    keras.utils.set_random_seed(seed)
    model = AlbertTextClassifier(AlbertBackbone(DROPPING), labels=labels)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(AdamW(1e-2), loss, metrics=[keras.metrics.SparseCategoricalAccuracy("accuracy")], run_eagerly=True)
    model.optimizer.build(model.trainable_variables)
    return model


def step(model: Any) -> float:
    return float(model.train_on_batch(example_inputs(), np.array([0, 1, 0]))[0])


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """A state after one step, and the losses of the steps after it."""
    model = compiled()
    step(model)
    path = tmp_path_factory.mktemp("state") / "state.safetensors"
    save_state(path, model, PROGRESS)
    return path, [step(model) for _ in range(2)]


def test_a_restored_model_goes_on_as_the_old_one_did(saved: tuple[Path, list[float]]) -> None:
    """With dropout: without its random states, or the optimizer's slots, the losses would be others."""
    path, losses = saved
    model = compiled(seed=9)
    assert restore_state(path, model) == PROGRESS
    assert int(model.optimizer.iterations) == 1
    assert [step(model) for _ in losses] == losses
    assert step(model) != losses[-1]


def test_the_state_is_replaced(saved: tuple[Path, list[float]], tmp_path: Path) -> None:
    model = compiled()
    for progress in (Progress(), PROGRESS):
        save_state(tmp_path / "state", model, progress)
        assert restore_state(tmp_path / "state", model) == progress
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state", "state.before"]


def test_the_state_before_is_taken_where_the_newest_is_damaged(tmp_path: Path) -> None:
    """Cut off, of zeros, or with one bit turned in its weights: each is noticed, said, and not gone on from."""
    model, lines = compiled(), []
    for progress in (PROGRESS, Progress(3)):
        step(model)
        save_state(tmp_path / "state.safetensors", model, progress)
    newest, whole = tmp_path / "state.safetensors", (tmp_path / "state.safetensors").read_bytes()
    turned = bytearray(whole)
    turned[-9] ^= 1
    for content in (whole[: len(whole) // 2], b"\0" * len(whole), bytes(turned), None):
        newest.write_bytes(content) if content is not None else newest.unlink()
        before = (tmp_path / "state.before.safetensors").read_bytes()
        other = compiled(seed=9)
        assert has_state(newest) and restore_state(newest, other, lines.append) == PROGRESS
        assert int(other.optimizer.iterations) == 1
        assert lines.pop().startswith(f"{newest}: damaged (") and lines == []
        assert newest.read_bytes() == before  # in its place, so that the damaged one is not kept
        (tmp_path / "state.before.safetensors").write_bytes(before)
    newest.write_bytes(b"x")
    (tmp_path / "state.before.safetensors").write_bytes(b"x")
    with pytest.raises(InputError, match="damaged training state"):
        restore_state(newest, compiled(), lines.append)
    newest.write_bytes(whole)
    assert restore_state(newest, compiled(), lines.append) == Progress(3) and lines == []


def test_a_state_whose_other_files_are_damaged_is_not_taken(tmp_path: Path) -> None:
    """Nor does it become the one before the next."""
    model, lines = compiled(), []
    for progress in (PROGRESS, Progress(3)):
        step(model)
        save_state(tmp_path / "state.safetensors", model, progress)

    def unusable(progress: Progress) -> str | None:
        return "its best is gone" if progress.round == 3 else None

    assert restore_state(tmp_path / "state.safetensors", model, lines.append, unusable) == PROGRESS
    assert lines == [f"{tmp_path / 'state.safetensors'}: damaged (its best is gone); the state before it is taken"]
    save_state(tmp_path / "state.safetensors", model, Progress(4))
    assert restore_state(tmp_path / "state.before.safetensors", model) == PROGRESS
    with pytest.raises(InputError, match=r"damaged training state \(its best is gone\)"):
        restore_state(tmp_path / "state.safetensors", model, lines.append, lambda progress: "its best is gone")


def test_the_checksum_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "best"
    assert folder_checksum(folder) == folder_checksum(tmp_path / "absent")
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a").write_text("1")
    known = {folder_checksum(folder)}
    for name, text in (("deep/a", "2"), ("deep/a", ""), ("b", ""), ("b", "1")):
        (folder / name).write_text(text)
        known.add(folder_checksum(folder))
    assert len(known) == 5


def test_a_full_disk_keeps_both_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on the size of files fails a write as a full disk does."""
    model = compiled()
    for progress in (Progress(1), Progress(2)):
        save_state(tmp_path / "state.safetensors", model, progress)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with (
            pytest.raises(InputError, match=r"cannot save round 3 \(.*\); make room there .* goes on after round 2"),
            saving(tmp_path, 3),
        ):
            save_state(tmp_path / "state.safetensors", model, Progress(3))
        with (
            pytest.raises(UnsavedError, match=r"cannot save round 1 \(.*best.*\); make room .* goes on from the start"),
            saving(tmp_path, 1),
        ):
            model.save_pretrained(tmp_path / "best")
        with pytest.raises(InputError, match=r"^exists already$") as other, saving(tmp_path, 1):
            raise InputError("exists already")
        assert not isinstance(other.value, UnsavedError)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.before.safetensors", "state.safetensors"]
    assert restore_state(tmp_path / "state.safetensors", model) == Progress(2)
    assert restore_state(tmp_path / "state.before.safetensors", model) == Progress(1)


@pytest.mark.parametrize("labels", [("a", "b", "c"), None], ids=["another head", "no head"])
def test_another_model_is_refused_and_left_alone(
    saved: tuple[Path, list[float]], labels: tuple[str, ...] | None
) -> None:
    if labels is None:
        model: Any = AlbertBackbone(DROPPING)
        model.compile(AdamW())
    else:
        model = compiled(labels)
    before = [np.asarray(variable).copy() for variable in model.variables]
    with pytest.raises(InputError, match=r"another model.*; choose another --out, or --overwrite"):
        restore_state(saved[0], model)
    for variable, value in zip(model.variables, before, strict=True):
        np.testing.assert_array_equal(variable, value)


@pytest.mark.parametrize("content", [b"", b"\0" * 64, b"cut"], ids=str)
def test_a_damaged_file_is_refused(saved: tuple[Path, list[float]], content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    path.write_bytes(saved[0].read_bytes()[:-8] if content == b"cut" else content)
    with pytest.raises(InputError, match=r"damaged training state .*--overwrite"):
        restore_state(path, compiled())


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    model = compiled()
    save_state(tmp_path / "state", model, PROGRESS)
    save_file(load_file(tmp_path / "state"), tmp_path / "weights")  # the same tensors without the progress
    with pytest.raises(InputError, match="damaged training state"):
        restore_state(tmp_path / "weights", model)
