"""Text files as a stream of documents, and documents in blocks that make a shard each: memory holds one block."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from albert_tf.data.sentences import split_sentences

Document = list[str]  # sentences, or paragraphs

# A document longer than this is handed on in parts, so that memory is bounded where a file has no blank lines.
MOST_DOCUMENT_CHARACTERS = 4_000_000


@dataclasses.dataclass(frozen=True)
class Block:
    """Consecutive documents of a group of files.

    Attributes:
        group, number: which block of which group.
        text: UTF-8, as in a file: a sentence (or paragraph) a line, a blank line between documents.
    """

    group: int
    number: int
    text: bytes

    @property
    def name(self) -> str:
        return f"{self.group:05d}-{self.number:05d}"

    def documents(self, *, paragraphs: bool = False) -> list[Document]:
        """The documents, as sentences; `paragraphs`: the lines are paragraphs, to be split."""
        documents = [text.split("\n") for text in self.text.decode("utf-8").split("\n\n")]
        if not paragraphs:
            return documents
        return [[sentence for line in lines for sentence in split_sentences(line)] for lines in documents]


def read_documents(lines: Iterable[str]) -> Iterator[Document]:
    """The lines of each document of a file, without blank ones, which end a document."""
    document: Document = []
    size = 0
    for line in lines:
        text = line.strip()
        if text:
            document.append(text)
            size += len(text)
        if document and (not text or size > MOST_DOCUMENT_CHARACTERS):
            yield document
            document, size = [], 0
    if document:
        yield document


def read_blocks(files: Iterable[Iterable[str]], group: int, block_bytes: float) -> Iterator[Block]:
    """The documents of a group of files, in order, in blocks of about `block_bytes` of text.

    Args:
        files: the lines of each; a file's end ends a document.
        group: its number.
    """
    number = size = 0
    texts: list[bytes] = []
    for lines in files:
        for document in read_documents(lines):
            texts.append("\n".join(document).encode("utf-8"))
            size += len(texts[-1])
            if size >= block_bytes:
                yield Block(group, number, b"\n\n".join(texts))
                number, size, texts = number + 1, 0, []
    if texts:
        yield Block(group, number, b"\n\n".join(texts))


def group_files(sizes: Sequence[int], block_bytes: float) -> list[list[int]]:
    """Which files are read as one: consecutive small ones share a group, so that many small files make few shards.

    Args:
        sizes: of each file.

    Returns:
        The indices of the files of each group.
    """
    groups: list[list[int]] = []
    total = 0.0
    for index, size in enumerate(sizes):
        if not groups or total + size > block_bytes:
            groups.append([])
            total = 0.0
        groups[-1].append(index)
        total += size
    return groups
