"""The Java sources of `android_demo_assets/java`, compiled, and asked through `tests/java/JavaClient.java`."""

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from conftest import ROOT

from albert_tf.tokenization.tokenizer import AlbertTokenizer

SOURCES = sorted((ROOT / "android_demo_assets" / "java" / "org" / "alberttf").glob("*.java"))
CLIENT = ROOT / "tests" / "java" / "JavaClient.java"


def java_tool(name: str) -> str:
    """The path of a program of the JDK."""
    found = shutil.which(name)
    assert found, (
        f"{name} not found: these tests need a JDK of Java 17 or later on the PATH (Debian: openjdk-17-jdk-headless)"
    )
    return found


def compiled(folder: Path, *options: str) -> Path:
    """Compiles the sources and the client; any warning is an error."""
    folder.mkdir()
    command: list[Any] = [
        java_tool("javac"),
        *options,
        "-Xlint:all,-options",
        "-Werror",
        "-encoding",
        "UTF-8",
        "-d",
        folder,
    ]
    done = subprocess.run([*command, *SOURCES, CLIENT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


class Java:
    """The client; see JavaClient.java."""

    def __init__(self, folder: Path) -> None:
        self.classes = compiled(folder / "classes", "--release", "17")
        self.folder = folder

    def run(self, *arguments: Any, lines: Iterable[str] = ()) -> list[str]:
        """The answers to lines."""
        command = [java_tool("java"), "-cp", self.classes, "JavaClient", *arguments]
        sent = "".join(f"{line}\n" for line in lines)
        done = subprocess.run(list(map(str, command)), input=sent, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr
        return done.stdout.split("\n")[:-1]

    def ask(self, command: str, tokenizer: AlbertTokenizer, lines: Iterable[str]) -> list[str]:
        """The answers to lines, of the tokenizer that was saved."""
        tokenizer.save(self.folder / "tokenizer", overwrite=True)
        return self.run(command, self.folder / "tokenizer", lines=lines)


def digits(text: str) -> str:
    """How the client reads texts."""
    return text.encode("utf-16-be", "surrogatepass").hex()


def as_java_has_it(text: str) -> str:
    """Two surrogates that make a character are that character in Java; Python can have them apart."""
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def row_text(token_ids: list[int], segment_ids: list[int]) -> str:
    """How the client writes an input."""
    return ";".join(" ".join(map(str, numbers)) for numbers in (token_ids, segment_ids, [1] * len(token_ids)))


def squad_paragraphs(shared_data: Path) -> list[str]:
    articles = json.loads((shared_data / "squad2" / "cs224n_dev-v2.0.json").read_text("utf-8"))["data"]
    return [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]


def sst2_sentences(shared_data: Path) -> list[str]:
    rows = (shared_data / "glue_canonical" / "SST-2" / "dev.tsv").read_text("utf-8").splitlines()[1:]
    return [row.split("\t")[0] for row in rows]
