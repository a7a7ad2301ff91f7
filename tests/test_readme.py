"""The READMEs and guides are true: their commands and code run, their trees, options and numbers are the program's."""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from test_architecture import LAYERS
from tf1_writer import PUBLISHED, save_folder, variables

from albert_tf.cli.main import build_parser
from albert_tf.config import AlbertConfig
from albert_tf.evaluation.parameter_report import compare_with_bert
from albert_tf.tokenization.training import train_sentencepiece

README = ROOT / "README.md"
PAIRS = (
    (README, ROOT / "README.zh-CN.md"),
    (ROOT / "docs/guide.md", ROOT / "docs/guide.zh-CN.md"),
    (ROOT / "docs/tokenizer.md", ROOT / "docs/tokenizer.zh-CN.md"),
    (ROOT / "docs/data.md", ROOT / "docs/data.zh-CN.md"),
    (ROOT / "docs/distributed.md", ROOT / "docs/distributed.zh-CN.md"),
    (ROOT / "docs/serving.md", ROOT / "docs/serving.zh-CN.md"),
    (ROOT / "docs/device-runtimes.md", ROOT / "docs/device-runtimes.zh-CN.md"),
    (ROOT / "docs/web.md", ROOT / "docs/web.zh-CN.md"),
)
READMES = PAIRS[0]
PAGES = [*(page for pair in PAIRS for page in pair), ROOT / "docs/architecture.md", ROOT / "docs/benchmarks.md"]

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TREE_LINE = re.compile(r"^((?:  )*)(\S+)(?: {2,}\S.*)?$")
OPERATORS = set("|&;<>()")
TIMEOUT_SECONDS = 300
# Options in the text that are not of `albert-tf`: those of pip, of TensorBoard and of the benchmarks; others' as said.
FOREIGN_OPTIONS = {
    *(
        "--no-deps",
        "--logdir",
        "--texts",
        "--turns",
        "--megabytes",
        "--files",
        "--batches",
        "--memory",
        "--work",
        "--recipes",
        "--encoder",
    ),
    *("--ntasks", "--ntasks-per-node", "--gpus-per-task"),  # of Slurm
    # of Apache Beam, as words end at an underscore here
    *("--runner", "--direct", "--flink", "--environment", "--project", "--region", "--temp", "--sdk"),
    # of docker and saved_model_cli
    *("--rm", "--dir", "--tag", "--signature", "--input"),
}


def fences(page: Path) -> list[tuple[str, str]]:
    """(language, content) of every fenced block."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


def is_tree(content: str) -> bool:
    return "\nalbert_tf/\n" in content


def tree_paths(readme: Path) -> list[str]:
    """The paths in the tree of a README; folders end in "/"."""
    (content,) = (content for _, content in fences(readme) if is_tree(content))
    paths: list[str] = []
    folders: list[str] = []
    for line in content.splitlines():
        found = TREE_LINE.match(line)
        assert found, f"{readme.name}: not a line of a tree: {line!r}"
        depth = len(found[1]) // 2
        paths.append("".join(folders[:depth]) + found[2])
        if found[2].endswith("/"):
            folders[depth:] = [found[2]]
    return paths


def commands(content: str) -> list[list[str]]:
    """The arguments of every `albert-tf` in a block of shell lines; the lines of output in it have none."""
    found = []
    for line in content.replace("\\\n", " ").splitlines():
        if "albert-tf " not in line or line.startswith("albert-tf: "):
            continue
        lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        arguments: list[str] | None = None
        for word in [*lexer, ";"]:
            if set(word) <= OPERATORS:
                found += [] if arguments is None else [arguments]
                arguments = None
            elif arguments is not None:
                arguments.append(word)
            elif word == "albert-tf":
                arguments = []
    return found


def known_options(parser: argparse.ArgumentParser) -> set[str]:
    """Every option of a command line, those of its subcommands included."""
    options = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                options |= known_options(subparser)
    return options


# === The two languages ===


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=[pair[0].stem for pair in PAIRS])
def test_both_languages_have_the_same_code(english: Path, chinese: Path) -> None:
    ours, theirs = ([block for block in fences(page) if not is_tree(block[1])] for page in (english, chinese))
    assert theirs == ours
    assert len(ours) > 2


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=[pair[0].stem for pair in PAIRS])
def test_both_languages_have_the_same_sections_tables_and_links(english: Path, chinese: Path) -> None:
    pages = [FENCE.sub("", page.read_text(encoding="utf-8")) for page in (english, chinese)]
    levels = [re.findall(r"^(#+) ", page, re.MULTILINE) for page in pages]
    assert levels[0] == levels[1]
    numbers = [re.findall(r"^\|.*\|$", page, re.MULTILINE) for page in pages]
    assert [figures(row) for row in numbers[0]] == [figures(row) for row in numbers[1]]
    urls = [sorted(re.findall(r"https?://[^\s)]+", page)) for page in pages]
    assert urls[0] == urls[1]


def figures(row: str) -> list[str]:
    """The cells of a row of a Markdown table that are a number, or still to be filled in."""
    return [cell for cell in map(str.strip, row.strip("|").split("|")) if re.fullmatch(r"[\d,.]+×?|…", cell)]


# === The tree ===


def test_the_trees_of_both_languages_are_the_same() -> None:
    assert tree_paths(READMES[1]) == tree_paths(READMES[0])


def test_the_tree_has_every_folder_of_code() -> None:
    paths = tree_paths(README)
    assert len(set(paths)) == len(paths)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    modules = [path for package in ("albert_tf", "export", "benchmarks") for path in (ROOT / package).rglob("*.py")]
    assert {f"{path.parent.relative_to(ROOT).as_posix()}/" for path in modules} <= set(paths)
    top = {path.relative_to(ROOT).as_posix() for path in (ROOT / "albert_tf").glob("*.py")} - {"albert_tf/__init__.py"}
    assert top <= set(paths)


# === Links, options, numbers ===


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        linked = page.parent / name if name else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_option_in_the_text_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    mentioned = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
    assert mentioned - known_options(build_parser()) - FOREIGN_OPTIONS - {"--data", "--config"} == set()


@pytest.mark.parametrize("readme", READMES, ids=lambda page: page.name)
def test_the_parameter_table_is_that_of_the_command(readme: Path) -> None:
    rows = {}
    for row in re.findall(r"^\| (?:x*)(?:base|large) \|.*$", readme.read_text(encoding="utf-8"), re.MULTILINE):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        rows[cells[0]] = cells[1:]
    assert list(rows) == ["base", "large", "xlarge", "xxlarge"]
    for size, cells in rows.items():
        name = f"albert_{size}_v2"
        counted = compare_with_bert(name, AlbertConfig.from_name(name))
        expected = [
            f"{counted[system][key]:,}"
            for key in ("word_embedding", "layers", "total")
            for system in ("bert", "albert")
        ]
        assert cells == [*expected, f"{counted['times_smaller']['total']:.1f}×"]


def test_the_import_order_is_the_one_that_is_checked() -> None:
    (listed,) = (
        content for _, content in fences(ROOT / "docs/architecture.md") if content.startswith("albert_tf.errors\n")
    )
    assert [tuple(line.split(", ")) for line in listed.splitlines()] == list(LAYERS)


# === Commands and code ===


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_of_the_command_line(page: Path) -> None:
    parser = build_parser()
    for language, content in fences(page):
        if language == "python":
            compile(content, str(page), "exec")
        for arguments in [] if is_tree(content) else commands(content):
            try:
                parser.parse_args(arguments)
            except SystemExit:
                pytest.fail(f"{page.name}: not a command: albert-tf {shlex.join(arguments)}", pytrace=False)


def test_commands_are_found() -> None:
    content = (
        '$ cat a.txt | albert-tf predict m.tflite --text "a | b" && echo\nalbert-tf: error: no\nalbert-tf params\n'
    )
    assert commands(content) == [["predict", "m.tflite", "--text", "a | b"], ["params"]]
    assert commands("albert-tf \\\n  params --heads") == [["params", "--heads"]]


@pytest.fixture(scope="module")
def user_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the README's reader has: two labelled files, and an archive of Google's, with a tiny model in it."""
    folder = tmp_path_factory.mktemp("user")
    rows = [("a gripping, beautifully shot film", "good"), ("a warm and funny film with a big heart", "good")]
    rows += [("two long hours and no end", "bad"), ("the plot is thin and the jokes are old", "bad")]
    for name in ("train.tsv", "dev.tsv"):
        (folder / name).write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows * 4))
    vocabulary = train_sentencepiece([text for text, _ in rows], 40)
    sizes = {"vocab_size": vocabulary.size, "hidden_size": 16, "max_position_embeddings": 512}
    config = PUBLISHED | sizes
    values = {
        name: (0.05 * value + name.endswith("gamma")).astype(np.float32) for name, value in variables(config).items()
    }
    source = save_folder(folder / "unpacked", config, values)
    (source / "30k-clean.model").write_bytes(vocabulary.model)
    with tarfile.open(folder / "albert_base_v2.tar.gz", "w:gz") as archive:
        archive.add(source, "albert_base")
    return folder


def test_the_blocks_of_the_readme_run(user_folder: Path) -> None:
    """One after the other, as a reader would, in one folder; the Chinese page has the same blocks."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    ran = []
    for language, content in fences(README):
        if language not in ("bash", "python"):
            continue
        program = ["bash", "-euo", "pipefail", "-c"] if language == "bash" else [sys.executable, "-c"]
        done = subprocess.run(
            [*program, content],
            cwd=user_folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
        assert done.returncode == 0, f"{content}\n{done.stdout}\n{done.stderr}"
        ran.append((language, done.stdout))
    assert [language for language, _ in ran] == ["bash", "bash", "python"]
    four_commands, convert, python = (output for _, output in ran)
    # finetune, export, evaluate and predict each left their mark.
    assert (user_folder / "runs/films/metrics.json").is_file()
    assert (user_folder / "films.tflite").is_file()
    assert "matthews correlation" in four_commands
    assert re.search(r"^(good|bad)\t0\.\d{4}\ta warm and funny film$", four_commands, re.MULTILINE)
    assert "google tf1 archive" in convert
    assert "Prediction(label='" in python
