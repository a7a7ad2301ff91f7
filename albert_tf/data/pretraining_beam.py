"""`pretrain-data` as an Apache Beam pipeline: for text that one machine takes too long for.

The same blocks through the same `ShardMaker` give the same files as `make_pretraining_data`, on any runner. Text and
folder may be on any file system that Beam knows (gs://, s3://, hdfs://).
"""

import re
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import apache_beam as beam
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from albert_tf.data.documents import Block, group_files, read_blocks
from albert_tf.data.pretraining_manifest import (
    FILE_NAME,
    TOKENIZER_FOLDER,
    TRAIN,
    Manifest,
    PretrainingDataSettings,
    Shard,
    files_sha256,
)
from albert_tf.data.pretraining_shards import ShardMaker
from albert_tf.data.text_files import decoded_lines
from albert_tf.errors import InputError
from albert_tf.tokenization.tokenizer import AlbertTokenizer

Files = dict[str, bytes]  # name → content

_OURS = re.compile(rf"\.?(train|held_out)-[\d-]+\.tfrecord(\.gz)?(\..*)?|{re.escape(FILE_NAME)}|{TOKENIZER_FOLDER}")


def run_pretraining_pipeline(
    settings: PretrainingDataSettings,
    tokenizer: AlbertTokenizer,
    out: str,
    flags: Sequence[str],
    *,
    overwrite: bool = False,
) -> Manifest:
    """Writes the folder `out` as `make_pretraining_data` does; its manifest comes last, so a folder without is not whole.

    Args:
        settings: what decides the examples; `inputs` may be patterns.
        tokenizer: its vocabulary makes the ids.
        out: the folder to create.
        flags: Beam's pipeline options, such as --runner=FlinkRunner.
        overwrite: remove what is in `out` first.

    Raises:
        InputError: a file cannot be used, `out` exists, or the text has nothing to train on.
    """
    _prepare(out, overwrite=overwrite)
    vocabulary = _saved(AlbertTokenizer(tokenizer.vocabulary, settings.max_length))
    groups = list(enumerate(_grouped_files(settings)))
    with beam.Pipeline(options=PipelineOptions(list(flags))) as pipeline:
        _ = (
            pipeline
            | "groups of files" >> beam.Create(groups)
            | "spread groups" >> beam.Reshuffle()
            | "read blocks" >> beam.FlatMap(_read_group, block_bytes=1e6 * settings.shard_megabytes)
            | "spread blocks" >> beam.Reshuffle()
            | "write shards" >> beam.ParDo(_WriteShards(settings, vocabulary, out))
            | "gather" >> beam.combiners.ToList()
            | "write the rest" >> beam.Map(_write_rest, settings=settings, vocabulary=vocabulary, out=out)
        )
    path = FileSystems.join(out, FILE_NAME)
    if not FileSystems.exists(path):
        raise InputError(
            f"{', '.join(settings.inputs)}: no text to train on; expected documents of at least two sentences, a sentence a "
            "line and a blank line between documents (or --paragraphs)"
        )
    with FileSystems.open(path) as file:
        return Manifest.from_json(file.read().decode("utf-8"), path)


def _prepare(out: str, *, overwrite: bool) -> None:
    held = [found.path for found in FileSystems.match([FileSystems.join(out, "*")])[0].metadata_list]
    if held and not overwrite:
        raise InputError(f"{out} exists already; pass --overwrite to replace it, or choose another name")
    # A mistyped name must not cost anyone a folder; what a pipeline that failed has left is no loss.
    others = [path for path in held if not _OURS.fullmatch(FileSystems.split(path)[1])]
    if others:
        raise InputError(
            f"{out} is not a folder of pretraining data ({', '.join(sorted(others)[:10])}), so it is not replaced; choose "
            "another name"
        )
    if held:
        FileSystems.delete(held)
    if not FileSystems.exists(out):
        FileSystems.mkdirs(out)


def _saved(tokenizer: AlbertTokenizer) -> Files:
    """The files of a tokenizer's folder; workers on other machines have no other way to it."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def _grouped_files(settings: PretrainingDataSettings) -> list[list[str]]:
    """The files that are read as one, as `make_pretraining_data` groups them."""
    found = []
    for pattern, match in zip(settings.inputs, FileSystems.match(list(settings.inputs)), strict=True):
        if not match.metadata_list:
            raise InputError(f"{pattern}: no such file; expected a text file, or a pattern of some")
        found += sorted(match.metadata_list, key=lambda file: str(file.path))
    groups = group_files([file.size_in_bytes for file in found], 1e6 * settings.shard_megabytes)
    return [[found[index].path for index in group] for group in groups]


def _read_group(group: tuple[int, list[str]], block_bytes: float) -> Iterator[Block]:
    number, paths = group
    return read_blocks(map(_lines, paths), number, block_bytes)


def _lines(path: str) -> Iterator[str]:
    """As `text_files.text_lines`, on any file system."""
    with FileSystems.open(path) as file:  # unpacked according to its name
        yield from decoded_lines(iter(file.readline, b""), path)


class _WriteShards(beam.DoFn):
    """Blocks into shards, which it writes, and their descriptions."""

    def __init__(self, settings: PretrainingDataSettings, vocabulary: Files, out: str) -> None:
        self._settings, self._vocabulary, self._out = settings, vocabulary, out
        self._maker: ShardMaker | None = None

    def setup(self) -> None:
        """Once in each process."""
        with tempfile.TemporaryDirectory() as folder:
            for name, content in self._vocabulary.items():
                (Path(folder) / name).write_bytes(content)
            self._maker = ShardMaker(self._settings, AlbertTokenizer.from_pretrained(folder).vocabulary)

    def process(self, block: Block) -> Iterator[Shard]:
        if self._maker is None:
            raise RuntimeError("setup comes first")
        for shard, content in self._maker.shards(block):
            _write(FileSystems.join(self._out, shard.file), content)
            yield shard


def _write(path: str, content: bytes) -> None:
    """Whole or not at all: a runner may give a block to a second worker while the first still writes."""
    folder, name = FileSystems.split(path)
    temporary = FileSystems.join(folder, f".{name}.{uuid.uuid4().hex}")
    # Not compressed once more, whatever the name says.
    with FileSystems.create(temporary, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        file.write(content)
    FileSystems.rename([temporary], [path])


def _write_rest(shards: list[Shard], settings: PretrainingDataSettings, vocabulary: Files, out: str) -> None:
    """The tokenizer, and last the manifest."""
    folder = FileSystems.join(out, TOKENIZER_FOLDER)
    if not FileSystems.exists(folder):
        FileSystems.mkdirs(folder)
    for name, content in vocabulary.items():
        _write(FileSystems.join(folder, name), content)
    manifest = Manifest(settings.to_dict(), files_sha256(vocabulary), tuple(sorted(shards, key=_place)))
    if manifest.of_split(TRAIN):
        _write(FileSystems.join(out, FILE_NAME), manifest.to_json().encode())


def _place(shard: Shard) -> tuple[str, bool]:
    """The order of `make_pretraining_data`: by block, the training shard first."""
    return shard.file.removeprefix(f"{shard.split}-"), shard.split != TRAIN
