"""The question sets and entity sets that ship with the package, and the program that makes them."""

import re
import subprocess
import sys
from collections import Counter

import pytest
from conftest import ROOT

from albert_tf.data.conll import read_tagged, to_iob2
from albert_tf.data.squad import read_questions
from albert_tf.data.tables import discover_labels, read_examples
from albert_tf.inference.tagging import word_places

ASSETS = ROOT / "albert_tf" / "assets" / "demo"
EXAMPLES = ROOT / "android_demo_assets" / "examples"
# File → most bytes, fewest and most examples.
SIZES = {
    "questions_train.json": (900_000, 2500, 4000),
    "questions_dev.json": (120_000, 380, 480),
    "entities_train.conll": (500_000, 2500, 6000),
    "entities_dev.conll": (90_000, 400, 1000),
}
TYPES = {"PER", "LOC", "ORG", "TIME", "MONEY"}
PARTS = ("train", "dev")
# Left over from a template, a space too many, a wrong article, a word that comes twice.
FAULTS = re.compile(
    r"[{}|<>\x00-\x1f]|  | [,.;?!]|\.\.|\b[Aa] [aeiou]\w|\b[Aa]n [bcdfgjklmnpqrstvwxz]\w\w|@[aA] |\b(\w+) \1\b"
)


def read(name):
    return (read_questions if name.endswith(".json") else read_tagged)(ASSETS / name)


def lists_in(name):
    """Name → words; of those that are made of other lists only the words are left that refer to none."""
    found, current = {}, ""
    for line in (EXAMPLES / "slots" / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            current, words = re.fullmatch(r"(\w+)(?: [A-Z]+)?: (.*)", line).groups()
            found.setdefault(current, set()).update(word.strip().lower() for word in words.split(";") if word.strip())
    return found


def templates_in(folder, part):
    lines = (
        line.strip() for path in EXAMPLES.glob(f"{folder}/{part}*.txt") for line in path.read_text("utf-8").splitlines()
    )
    return [line for line in lines if line and not line.startswith("#")]


def test_made_again_they_are_the_same_bytes(tmp_path):
    command = [sys.executable, str(EXAMPLES / "make_examples.py"), "--out", str(tmp_path)]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert {path.name for path in tmp_path.iterdir()} == set(SIZES)
    for name in SIZES:
        assert (tmp_path / name).read_bytes() == (ASSETS / name).read_bytes(), name


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name):
    most_bytes, fewest, most = SIZES[name]
    assert (ASSETS / name).stat().st_size <= most_bytes
    assert fewest <= len(read(name)) <= most


@pytest.mark.parametrize("part", PARTS)
def test_answers_stand_where_the_file_says(part):
    moved, left_out = [], []
    examples = read_questions(ASSETS / f"questions_{part}.json", left_out=left_out, moved=moved)
    assert (moved, left_out) == ([], [])
    for example in examples:
        for answer in example.answers:
            end = answer.start + len(answer.text)
            assert example.context[answer.start : end] == answer.text == answer.text.strip()
            around = example.context[max(answer.start - 1, 0) : answer.start], example.context[end : end + 1]
            assert not (around[0].isalnum() or around[1].isalnum()), (example.question, answer)
    assert 0.17 <= sum(not example.answers for example in examples) / len(examples) <= 0.23


@pytest.mark.parametrize("part", PARTS)
def test_texts_are_whole(part):
    for example in read(f"questions_{part}.json"):
        for text in (example.context, example.question):
            assert text == text.strip()
            assert not FAULTS.search(text), text
        assert 1 <= len(re.findall(r"[.!?](?: |$)", example.context)) <= 9
    for example in read(f"entities_{part}.conll"):
        assert not [word for word in example.words if re.search(r"[{}|@\[\]\x00-\x1f]", word)]


@pytest.mark.parametrize("part", PARTS)
def test_tags_are_well_formed(part):
    examples = read(f"entities_{part}.conll")
    for example in examples:
        assert to_iob2(example.labels) == example.labels
        assert [word_places(word) for word in example.words] == [[(0, len(word))] for word in example.words]
    labels = Counter(label for example in examples for label in example.labels)
    assert set(labels) == {"O"} | {f"{prefix}-{kind}" for prefix in "BI" for kind in TYPES}
    assert min(labels[f"B-{kind}"] for kind in TYPES) >= len(examples) // 20
    without = sum(set(example.labels) == {"O"} for example in examples) / len(examples)
    lower = sum(" ".join(example.words).islower() for example in examples) / len(examples)
    assert 0.08 <= without <= 0.35
    assert 0.1 <= lower <= 0.5


@pytest.mark.parametrize("folder", ["questions", "entities"])
def test_dev_shares_no_template_with_train(folder):
    shared = set(templates_in(folder, "train")) & set(templates_in(folder, "dev"))
    assert {line for line in shared if not line.startswith("?")} == set()


def test_dev_shares_no_word_with_train():
    train, dev, shared = (lists_in(f"{name}.txt") for name in ("train", "dev", "shared"))
    assert set(dev) <= set(train)
    words = {part: {word for name in lists for word in lists[name]} for part, lists in (("train", train), ("dev", dev))}
    assert words["train"] & words["dev"] == set()
    assert not set(shared) & set(train)


def test_dev_shares_no_text_with_train():
    train, dev = (read(f"questions_{part}.json") for part in PARTS)
    assert {example.context for example in train} & {example.context for example in dev} == set()
    train, dev = (read(f"entities_{part}.conll") for part in PARTS)
    assert {example.words for example in train} & {example.words for example in dev} == set()


# === The larger sets for training ===

LARGE = {
    "messages_train.tsv": (900, 1500),
    "messages_dev.tsv": (100, 200),
    "questions_train.json": (12_000, 20_000),
    "questions_dev.json": (450, 800),
    "entities_train.conll": (6000, 12_000),
    "entities_dev.conll": (400, 1000),
}


def make_large(folder):
    command = [sys.executable, str(EXAMPLES / "make_examples.py"), "--large", "--out", str(folder)]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return make_large(tmp_path_factory.mktemp("large"))


def read_large(folder, name):
    reader = {".json": read_questions, ".conll": read_tagged, ".tsv": read_examples}[(folder / name).suffix]
    return reader(folder / name)


def test_larger_sets(large, tmp_path):
    assert {path.name for path in large.iterdir()} == set(LARGE)
    for name, (fewest, most) in LARGE.items():
        assert fewest <= len(read_large(large, name)) <= most, name
        text = (large / name).read_text("utf-8")
        assert not re.search("[\u3040-\u9fff]", text), name  # the vocabulary that they are for is English
    make_large(tmp_path)
    for name in LARGE:
        assert (tmp_path / name).read_bytes() == (large / name).read_bytes(), name


def test_messages(large):
    train, dev = (read_large(large, f"messages_{part}.tsv") for part in PARTS)
    assert discover_labels(train) == discover_labels(dev)
    texts = [example.text for example in [*train, *dev]]
    assert len({text.lower() for text in texts}) > 0.98 * len(texts)
    assert {example.text.lower() for example in train} & {example.text.lower() for example in dev} == set()
    for example in train:
        assert not re.search(r"[{}|<>]|  | [,.;?!]|for first$|before (early|late)$", example.text), example.text
    for part in (train, dev):
        counts = Counter(example.label for example in part)
        assert max(counts.values()) <= 1.5 * min(counts.values())


@pytest.mark.parametrize("part", PARTS)
def test_extracts_of_passages(large, part):
    examples = read_large(large, f"questions_{part}.json")
    for example in examples:
        for answer in example.answers:
            assert example.context[answer.start : answer.start + len(answer.text)] == answer.text
        assert not FAULTS.search(example.question), example.question
    words = [len(example.context.split()) for example in examples]
    assert max(words) <= 90 and sum(words) / len(words) < 30
    without = sum(not example.answers for example in examples) / len(examples)
    assert 0.15 <= without <= 0.35
    # A question without an answer is often one that another sentence of the passage answers.
    answered = {example.question for example in examples if example.answers}
    unanswered = [example.question for example in examples if not example.answers]
    assert sum(question in answered for question in unanswered) > 0.2 * len(unanswered)
