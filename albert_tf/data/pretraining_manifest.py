"""What a folder of pretraining data says about itself: settings, shards, counts."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from albert_tf.data.masking import MaskingRules
from albert_tf.errors import InputError
from albert_tf.files import read_text

FILE_NAME = "manifest.json"
TOKENIZER_FOLDER = "tokenizer"
FORMAT = 1
TRAIN, HELD_OUT = "train", "held_out"
SHORTEST_LENGTH = 8


@dataclasses.dataclass(frozen=True)
class PretrainingDataSettings:
    """What decides the examples; how many processes make them does not.

    Attributes:
        inputs: text files.
        max_length: the most tokens of an example, special ones included.
        short_probability: share of the documents that are given a shorter target length.
        paragraphs: a line of text is a paragraph, to be split into sentences.
        next_sentence: BERT's next-sentence task instead of ALBERT's sentence order.
        chinese_words: whole Chinese words, found by jieba.
        duplicates: how often each document is used, each time with other borders (and masks, where they are fixed).
        held_out: share of the documents that is kept from training.
        static_masks: mask now and write the features that other systems read; None to mask in training.
        shard_megabytes: text of one shard.
        seed: of everything random.

    Raises:
        InputError: a value out of range.
    """

    inputs: tuple[str, ...]
    max_length: int = 512
    short_probability: float = 0.1
    paragraphs: bool = False
    next_sentence: bool = False
    chinese_words: bool = False
    duplicates: int = 1
    held_out: float = 0.01
    static_masks: MaskingRules | None = None
    shard_megabytes: float = 4.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.inputs:
            raise InputError("expected at least one text file")
        for name, low, high in (("max_length", SHORTEST_LENGTH, 2**16), ("duplicates", 1, 2**16), ("seed", 0, 2**32)):
            value = getattr(self, name)
            if not isinstance(value, int) or not low <= value < high:
                raise InputError(
                    f"--{name.replace('_', '-')}: expected a whole number from {low} to {high - 1}, got {value}"
                )
        for name in ("short_probability", "held_out"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InputError(f"--{name.replace('_', '-')}: expected a share from 0 to 1, got {value}")
        if not 0 < self.shard_megabytes <= 1000:
            raise InputError(f"--shard-megabytes: expected a number above 0 and up to 1000, got {self.shard_megabytes}")

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return dataclasses.asdict(self) | {"inputs": list(self.inputs)}

    def differences(self, other: dict[str, Any]) -> list[str]:
        """The settings that differ from `other`, a `to_dict` result, with both values."""
        own = self.to_dict()
        return [
            f"{name} {other.get(name)} → {own.get(name)}"
            for name in sorted({*own, *other})
            if own.get(name) != other.get(name)
        ]


@dataclasses.dataclass(frozen=True)
class Shard:
    """One file of examples.

    Attributes:
        file: its name in the folder.
        split: "train" or "held_out".
        examples: how many it holds.
        tokens: of those, special ones included.
        documents, sentences: what they were made of.
        left_out_tokens: tokens of the text that are in no example (too much for one, or too short to make one).
        bytes, sha256: of the file.
    """

    file: str
    split: str
    examples: int
    tokens: int
    documents: int
    sentences: int
    left_out_tokens: int
    bytes: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Manifest:
    """Attributes:
    settings: `PretrainingDataSettings.to_dict()`.
    tokenizer_sha256: of the tokenizer's files.
    shards: those of both splits, in order.
    """

    settings: dict[str, Any]
    tokenizer_sha256: str
    shards: tuple[Shard, ...]

    def of_split(self, split: str) -> list[Shard]:
        return [shard for shard in self.shards if shard.split == split]

    def totals(self, split: str) -> dict[str, int]:
        """The counts of a split's shards, added up."""
        shards = self.of_split(split)
        names = ("examples", "tokens", "documents", "sentences", "left_out_tokens", "bytes")
        return {"shards": len(shards)} | {name: sum(getattr(shard, name) for shard in shards) for name in names}

    def to_json(self) -> str:
        content = {
            "format": FORMAT,
            "settings": self.settings,
            "tokenizer_sha256": self.tokenizer_sha256,
            "totals": {split: self.totals(split) for split in (TRAIN, HELD_OUT)},
            "shards": [dataclasses.asdict(shard) for shard in self.shards],
        }
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Reads the manifest of a folder.

        Raises:
            InputError: there is none, or one of another format.
        """
        path = folder / FILE_NAME
        if not path.is_file():
            raise InputError(
                f"{folder}: expected a folder that albert-tf pretrain-data wrote, but it has no {FILE_NAME}"
            )
        return cls.from_json(read_text(path), path)

    @classmethod
    def from_json(cls, text: str, path: str | Path) -> "Manifest":
        """What `to_json` wrote; `path` is what to call it in an error message.

        Raises:
            InputError: not a manifest of this format.
        """
        try:
            content = json.loads(text)
        except ValueError as error:
            raise InputError(f"{path}: not JSON ({error}); make the data anew") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InputError(f"{path}: expected a manifest of format {FORMAT}; make the data anew")
        try:
            shards = tuple(Shard(**shard) for shard in content["shards"])
            return cls(dict(content["settings"]), str(content["tokenizer_sha256"]), shards)
        except (KeyError, TypeError) as error:
            raise InputError(f"{path}: not a whole manifest ({error}); make the data anew") from error


def folder_sha256(folder: Path) -> str:
    """`files_sha256` of a folder's files."""
    return files_sha256({path.name: path.read_bytes() for path in folder.iterdir()})


def files_sha256(files: Mapping[str, bytes]) -> str:
    """One checksum of names and contents."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + hashlib.sha256(files[name]).digest())
    return digest.hexdigest()
