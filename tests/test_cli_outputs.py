"""An output that is an input, or another output, is refused before anything is done, whatever the command."""

from pathlib import Path

import pytest
from command_line import albert_tf, assert_refused

from albert_tf.errors import InputError
from albert_tf.files import resolved

INPUT = [
    ("inspect", "{file}", "--json", "{file}"),
    ("evaluate", "{file}", "--data", "{other}", "--json", "{file}"),
    ("evaluate", "{file}", "--data", "{other}", "--json", "{folder}/./other"),
    ("params", "--config", "{other}", "--config", "{file}", "--json", "{file}"),
    ("params", "--config", "{file}", "--plot", "{file}"),
    ("tokenizer-check", "{other}", "--text-file", "{file}", "--json", "{file}"),
    ("export", "tflite", "{folder}", "--examples", "{file}", "--out", "{file}"),
    ("export", "tflite", "{folder}", "--text-file", "{file}", "--out", "{folder}/m", "--json", "{file}"),
    ("export", "tflite", "{folder}", "--calibration", "{link}", "--out", "{file}"),
    ("export", "saved-model", "{folder}", "--text-file", "{file}", "--out", "{folder}/m", "--json", "{file}"),
    ("finetune", "classification", "--train", "{file}", "--out", "{folder}/m", "--json", "{file}"),
    ("pretrain-data", "{other}", "{file}", "--tokenizer", "{other}", "--out", "{folder}/m", "--json", "{file}"),
    ("train-vocab", "{other}", "{file}", "--size", "30", "--out", "{file}"),
    ("convert", "{file}", "{file}"),
]


@pytest.mark.parametrize("words", INPUT, ids=lambda words: "-".join(words[:2]))
def test_an_input_is_not_replaced(words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"folder": tmp_path, "file": tmp_path / "file", "other": tmp_path / "other", "link": tmp_path / "link"}
    for name in ("file", "other"):
        names[name].write_text(name, encoding="utf-8")
    names["link"].symlink_to(names["file"])
    done = albert_tf(capsys)(*(word.format(**names) for word in words), "--overwrite")
    assert_refused(done, "is what this command reads, so it is not replaced; choose another name")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "link", "other"]
    assert [names[name].read_text(encoding="utf-8") for name in ("file", "other")] == ["file", "other"]


@pytest.mark.parametrize(
    "words",
    [
        ("params", "--json", "{folder}/a.png", "--plot", "{folder}/b/../a.png"),
        ("export", "tflite", "{folder}", "--out", "{folder}/a", "--json", "{folder}/a"),
        ("finetune", "tagging", "--train", "a", "--out", "{folder}/a", "--json", "{folder}/a"),
    ],
    ids=lambda words: words[0],
)
def test_two_outputs_are_two_files(words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(albert_tf(capsys)(*(word.format(folder=tmp_path) for word in words)), "expected two files, got")
    assert list(tmp_path.iterdir()) == []


def test_texts_are_no_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("a" * 5000, "a\0b", ""):
        done = albert_tf(capsys)("predict", tmp_path / "absent", "--text", text)
        assert_refused(done, "absent: no such file or folder")


@pytest.mark.parametrize("kind", ["tflite", "saved-model"])
def test_a_limit_on_the_size_of_files_is_one_plain_line(
    kind: str, finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of a quota, or of a full disk: TensorFlow raises errors of its own there."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        done = albert_tf(capsys)("export", kind, finished_run, "--out", tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_refused(done, "/variables", "File too large")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_full_disk_is_told_with_what_was_written(
    finished_tflite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(*words: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", write)
    done = albert_tf(capsys)("inspect", finished_tflite, "--json", tmp_path / "found.json")
    assert done.code == 2 and done.err.startswith("albert-tf: error: No space left on device: cannot write ")
    assert f"{tmp_path / 'found.json'} or standard output or a temporary file" in done.err and done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_paths_that_lead_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for path in (tmp_path / "circle" / "a", "a\0b"):
        with pytest.raises(InputError, match="cannot use the path"):
            resolved(path)
    assert resolved(tmp_path / "a" / ".." / "b") == tmp_path.resolve() / "b"
    words = ("export", "saved-model", tmp_path, "--json", tmp_path / "circle")
    assert_refused(albert_tf(capsys)(*words, "--out", tmp_path / "served"), "circle")


@pytest.mark.parametrize("option", ["--out", "--json"])
def test_a_part_of_the_model_that_is_read_is_not_replaced(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = tmp_path / "run" / "weights.safetensors"
    part.parent.mkdir()
    part.write_text("weights", encoding="utf-8")
    outputs = {"--out": tmp_path / "a.tflite", "--json": tmp_path / "a.json"} | {option: part}
    words = [word for pair in outputs.items() for word in pair]
    done = albert_tf(capsys)("export", "tflite", part.parent, *words, "--overwrite")
    assert_refused(done, "is a part of the model that is read; choose another name")
    done = albert_tf(capsys)("export", "android", tmp_path, part.parent, "--out", part, "--overwrite")
    assert_refused(done, "is a part of the model that is read; choose another name")
    assert part.read_text(encoding="utf-8") == "weights"
