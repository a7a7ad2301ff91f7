"""Names of models: which are names and which are paths, and what the clients are asked for."""

import sys
import types
from pathlib import Path
from typing import Any

import pytest
from huggingface_writer import save

from albert_tf.conversion.hub import fetched
from albert_tf.errors import InputError
from albert_tf.presets import load_checkpoint


class Clients:
    """In place of huggingface_hub and kagglehub: what they were asked for, and the folder that they give."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[Any] = []

    def snapshot_download(self, repository: str, *, allow_patterns: list[str]) -> str:
        self.asked.append((repository, allow_patterns[-1]))
        return str(self.folder)

    def model_download(self, handle: str) -> str:
        self.asked.append(handle)
        return str(self.folder)


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clients:
    """The clients, and a working folder of its own."""
    fake = Clients(tmp_path / "cache")
    fake.folder.mkdir()
    for name in ("huggingface_hub", "kagglehub"):
        module = types.ModuleType(name)
        module.snapshot_download, module.model_download = fake.snapshot_download, fake.model_download  # type: ignore
        monkeypatch.setitem(sys.modules, name, module)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return fake


@pytest.mark.parametrize(
    ("name", "repository"),
    [
        ("albert/albert-base-v2", "albert/albert-base-v2"),
        ("hf://albert/albert-base-v2", "albert/albert-base-v2"),
        ("albert-xxlarge-v1", "albert/albert-xxlarge-v1"),
        ("some.one/my_model-2.0", "some.one/my_model-2.0"),
    ],
)
def test_names_on_hugging_face(clients: Clients, name: str, repository: str) -> None:
    (clients.folder / "model.safetensors").touch()
    assert fetched(name) == clients.folder
    assert clients.asked == [(repository, "*.weights.h5")]


def test_the_torch_file_is_fetched_only_where_there_is_no_other(clients: Clients) -> None:
    (clients.folder / "pytorch_model.bin").touch()
    fetched("albert/albert-base-v2")
    assert [pattern for _, pattern in clients.asked] == ["*.weights.h5", "pytorch_model*.bin"]


@pytest.mark.parametrize(
    ("name", "handle"),
    [
        ("kaggle://keras/albert/keras/albert_base_en_uncased", "keras/albert/keras/albert_base_en_uncased"),
        ("kaggle://keras/albert/keras/albert_base_en_uncased/5", "keras/albert/keras/albert_base_en_uncased/5"),
        ("albert_base_en_uncased", "keras/albert/keras/albert_base_en_uncased/5"),
        ("albert_extra_extra_large_en_uncased", "keras/albert/keras/albert_extra_extra_large_en_uncased/3"),
    ],
)
def test_names_on_kaggle(clients: Clients, name: str, handle: str) -> None:
    assert fetched(name) == clients.folder
    assert clients.asked == [handle]


@pytest.mark.parametrize(
    "path",
    [
        "/absolute/path",
        "./relative/path",
        "../relative/path",
        "folder",
        "a/b/c",
        "downloads/albert_base_v2.tar.gz",
        "out/model.ckpt-800",
        "out/model.ckpt-best.index",
        "out/model.safetensors",
        "out/model.keras",
        "albert_base_v2",
        "my model/name",
    ],
)
def test_paths(clients: Clients, path: str) -> None:
    assert fetched(path) == path
    assert fetched(Path("albert/albert-base-v2")) == Path("albert/albert-base-v2")
    assert clients.asked == []


def test_what_is_there_is_a_path(clients: Clients) -> None:
    for name in ("albert/albert-base-v2", "albert-base-v2", "albert_base_en_uncased"):
        Path(name).mkdir(parents=True)
        assert fetched(name) == name
    assert fetched("albert/mistyped") == "albert/mistyped"  # in a folder that is there
    assert clients.asked == []
    fetched("hf://albert/albert-base-v2")
    assert len(clients.asked) == 2


@pytest.mark.parametrize("name", ["hf://albert", "hf://a/b/c", "hf://", "kaggle://a/b/c", "kaggle://a/b/c/d/e"])
def test_names_of_another_form(clients: Clients, name: str) -> None:
    with pytest.raises(InputError, match=f"{name}: expected (hf|kaggle)://owner/"):
        fetched(name)


def test_a_client_that_is_not_installed(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("huggingface_hub", "kagglehub"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        InputError, match=r"a/b: no such file or folder; .* needs huggingface_hub: pip install 'albert-tf"
    ):
        load_checkpoint("a/b")
    with pytest.raises(InputError, match="needs kagglehub"):
        load_checkpoint("kaggle://keras/albert/keras/albert_base_en_uncased")


def test_a_model_out_of_reach(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ConnectionError("no\nnetwork")

    for name in ("huggingface_hub", "kagglehub"):
        monkeypatch.setattr(sys.modules[name], "snapshot_download", fail)
        monkeypatch.setattr(sys.modules[name], "model_download", fail)
    with pytest.raises(
        InputError, match="a/b: no such file or folder, and the Hugging Face repository a/b cannot be had: no"
    ):
        load_checkpoint("a/b")
    with pytest.raises(InputError, match="and the Kaggle model a/b/c/d cannot be had: no network"):
        load_checkpoint("kaggle://a/b/c/d")


def test_a_model_is_loaded_by_its_name(clients: Clients) -> None:
    save(clients.folder)
    checkpoint = load_checkpoint("albert/albert-base-v2")
    assert (checkpoint.form, checkpoint.head) == ("hugging face", "pretraining")
