"""`albert_tf.data.documents`: where documents and blocks end, whatever the files look like."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.data import documents as documents_module
from albert_tf.data.documents import Block, group_files, read_blocks, read_documents


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\n \n\t\n", []),
        ("one", [["one"]]),
        ("one\ntwo\n\nthree", [["one", "two"], ["three"]]),
        ("\n\n one \n\t\n\u3000\n two\t\n\n", [["one"], ["two"]]),
    ],
)
def test_documents(text: str, expected: list[list[str]]) -> None:
    assert list(read_documents(text.split("\n"))) == expected


def test_a_document_without_end_comes_in_parts(monkeypatch) -> None:
    monkeypatch.setattr(documents_module, "MOST_DOCUMENT_CHARACTERS", 10)
    assert list(read_documents(["abcdef"] * 5)) == [["abcdef"] * 2, ["abcdef"] * 2, ["abcdef"]]


@given(
    st.lists(st.lists(st.lists(st.sampled_from(["a", "bb", "文"]), min_size=1), min_size=1), max_size=4),
    st.integers(1, 40),
)
def test_blocks_hold_all_documents_in_order(files: list[list[list[str]]], size: int) -> None:
    lines = [[line for document in file for line in [*document, ""]] for file in files]
    blocks = list(read_blocks(lines, 7, size))
    assert [block.number for block in blocks] == list(range(len(blocks)))
    assert {block.group for block in blocks} <= {7}
    assert [document for block in blocks for document in block.documents()] == [d for file in files for d in file]
    assert all(len(block.text.replace(b"\n\n", b"")) >= size for block in blocks[:-1])
    for block in blocks:
        without_last = b"".join("\n".join(document).encode() for document in block.documents()[:-1])
        assert len(without_last) < size


def test_blocks_do_not_run_on_into_another_file_s_document() -> None:
    (block,) = read_blocks([["one", "two"], ["three"]], 0, 1000)
    assert block.documents() == [["one", "two"], ["three"]]
    assert block.name == "00000-00000"


def test_paragraphs_are_split_into_sentences() -> None:
    block = Block(0, 0, "It rained. Mr. Fox slept.\nThen came spring.\n\n我爱你。你呢？".encode())
    assert block.documents(paragraphs=True) == [
        ["It rained.", "Mr. Fox slept.", "Then came spring."],
        ["我爱你。", "你呢？"],
    ]
    assert block.documents()[0] == ["It rained. Mr. Fox slept.", "Then came spring."]


def test_memory_does_not_grow_with_the_text() -> None:
    def peak(count: int) -> int:
        lines = (f"a sentence with the number {n}" if n % 20 else "" for n in range(count))
        tracemalloc.start()
        total = sum(len(block.text) for block in read_blocks([lines], 0, 20_000))
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert total > count * 20
        return result

    assert peak(60_000) < 1.5 * peak(6_000)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([5], [[0]]),
        ([50], [[0]]),
        ([5, 5, 5], [[0, 1], [2]]),
        ([5, 50, 2, 3, 4, 9], [[0], [1], [2, 3, 4], [5]]),
        ([0, 0, 10, 0, 1], [[0, 1, 2, 3], [4]]),
    ],
)
def test_small_files_share_a_group(sizes: list[int], expected: list[list[int]]) -> None:
    assert group_files(sizes, 10) == expected
