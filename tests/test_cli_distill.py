"""albert-tf distill, from the command line to what the other commands make of its run folder."""

from pathlib import Path

import pytest
from command_line import albert_tf, assert_refused
from tiny_data import TinyFiles, read_json
from tiny_teachers import save_teacher


@pytest.fixture(scope="module")
def teachers(tmp_path_factory: pytest.TempPathFactory, tiny_files: TinyFiles) -> Path:
    folder = tmp_path_factory.mktemp("teachers")
    for name in ("classification", "fill-mask"):
        save_teacher(folder / name, name, tiny_files)
    return folder


def test_a_general_student_is_what_other_commands_take(
    capsys: pytest.CaptureFixture[str], teachers: Path, tiny_files: TinyFiles, tmp_path: Path
) -> None:
    """Plain text and a masked language model; the student fills masks, and a classifier's student starts from it."""
    command = albert_tf(capsys)
    lines = tiny_files.train.read_text(encoding="utf-8").splitlines()[1:]
    (tmp_path / "texts.txt").write_text("".join(line.partition("\t")[0] + "\n" for line in lines), encoding="utf-8")
    common = ["--batch-size", 16, "--max-length", 32, "--learning-rate", "3e-3", "--layers", 2]
    words = ["--train", tmp_path / "texts.txt", "--teacher", teachers / "fill-mask", "--out", tmp_path / "general"]
    lesson = ["--hidden-weight", 1, "--hidden-loss", "cosine", "--layer-map", "last", "--epochs", 3]
    done = command("distill", "fill-mask", *words, *lesson, *common)
    assert done.code == 0, done.err
    history = read_json(tmp_path / "general" / "history.json")
    assert history[-1]["soft_loss"] < history[0]["soft_loss"] and history[-1]["hidden_loss"] < history[0]["hidden_loss"]
    assert "Lengths" in (tmp_path / "general" / "report.html").read_text(encoding="utf-8")
    done = command("predict", tmp_path / "general", "--text", "ice and [MASK]")
    assert done.code == 0 and len(done.out.strip().splitlines()) == 5
    words = ["--train", tiny_files.train, "--valid", tiny_files.dev, "--teacher", teachers / "classification"]
    words += ["--from", tmp_path / "general", "--out", tmp_path / "task", "--epochs", 1, "--accumulate", 2]
    done = command("distill", "classification", *words, *common, "--json", tmp_path / "figures.json")
    assert done.code == 0, done.err
    said = " ".join(done.out.split())  # a title may be wrapped
    assert "dev.tsv, the teacher" in said and "agreement" in said
    assert read_json(tmp_path / "figures.json")["teacher"] == read_json(tmp_path / "task" / "metrics.json")["teacher"]
    done = command("evaluate", tmp_path / "task", "--data", tiny_files.dev)
    assert done.code == 0 and "accuracy" in done.out


def test_wrong_use_is_one_line(
    capsys: pytest.CaptureFixture[str], teachers: Path, tiny_files: TinyFiles, tmp_path: Path
) -> None:
    command = albert_tf(capsys)
    words = ["distill", "classification", "--train", tiny_files.train, "--out", tmp_path / "run"]
    assert_refused(command(*words), "give either --teacher MODEL, or --teacher-outputs FILE")
    assert_refused(command(*words, "--teacher", tmp_path / "none"), "none")
    done = command(*words, "--teacher", teachers / "fill-mask")
    assert_refused(done, "a model for fill-mask; expected one for classification")
    lesson = ["--layers", 9, "--hidden-weight", 1, "--layer-map", "9:4"]
    done = command(*words, "--teacher", teachers / "classification", *lesson)
    assert_refused(done, "--layer-map 9:4", "the teacher 0 to 3")


def test_help_says_which_recipes_a_task_has(capsys: pytest.CaptureFixture[str]) -> None:
    from albert_tf.cli.main import build_parser

    for task, expected in (("fill-mask", "tinybert, distilbert"), ("tagging", "none for this task")):
        with pytest.raises(SystemExit):
            build_parser().parse_args(["distill", task, "--help"])
        assert expected in " ".join(capsys.readouterr().out.split())
