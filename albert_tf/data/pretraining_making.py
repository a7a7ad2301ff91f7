"""All of `albert-tf pretrain-data`: text files into a folder of shards, on every core, resumable."""

import concurrent.futures
import dataclasses
import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from albert_tf.data.documents import Block, group_files, read_blocks
from albert_tf.data.pretraining_manifest import (
    FILE_NAME,
    TOKENIZER_FOLDER,
    TRAIN,
    Manifest,
    PretrainingDataSettings,
    Shard,
    folder_sha256,
)
from albert_tf.data.pretraining_shards import ShardMaker
from albert_tf.data.text_files import text_lines
from albert_tf.errors import InputError
from albert_tf.files import read_json, refuse_other_folder, written_whole
from albert_tf.tokenization.tokenizer import AlbertTokenizer

Progress = Callable[[int, int], None]  # shards so far, bytes of text so far

_SETTINGS_FILE = "settings.json"
_DONE_FOLDER = "done"  # a file for each finished block; it goes when all are
_BLOCKS_AHEAD = 2  # for each process, read before they are needed


def make_pretraining_data(
    settings: PretrainingDataSettings,
    tokenizer: AlbertTokenizer,
    out: str | Path,
    *,
    workers: int | None = None,
    overwrite: bool = False,
    progress: Progress = lambda shards, size: None,
) -> Manifest:
    """Writes the folder `out`: shards, manifest, tokenizer.

    While it is made it is called OUT.making; a call that was interrupted, whatever by, goes on where it was. Memory does
    not grow with the text: each process holds a block of about `settings.shard_megabytes`.

    Args:
        settings: what decides the examples.
        tokenizer: its vocabulary makes the ids.
        out: the folder to create.
        workers: processes, all cores if None; the examples do not depend on it.
        overwrite: replace `out`, and forget an interrupted call.
        progress: is told of every finished block.

    Raises:
        InputError: a file cannot be used, `out` exists, the interrupted call had other settings, text or vocabulary, or
            the text has nothing to train on.
    """
    out = Path(out)
    if out.name in ("", ".."):
        raise InputError(f"--out: expected the name of a folder to create, got {str(out)!r}")
    if workers is not None and workers < 1:
        raise InputError(f"--workers: expected a whole number of at least 1, got {workers}")
    refuse_other_folder(out, FILE_NAME, "a folder of pretraining data", overwrite=overwrite)
    groups = _file_groups(settings)
    work = _work_folder(out, settings, tokenizer, overwrite=overwrite)
    blocks = (block for number, files in enumerate(groups) for block in _blocks(files, number, settings))
    shards = _write_shards(blocks, settings, work, workers or os.cpu_count() or 1, progress)
    manifest = Manifest(settings.to_dict(), folder_sha256(work / TOKENIZER_FOLDER), tuple(shards))
    if not manifest.of_split(TRAIN):
        raise InputError(
            f"{', '.join(settings.inputs)}: no text to train on; expected documents of at least two sentences, a sentence a "
            "line and a blank line between documents (or --paragraphs)"
        )
    with written_whole(work / FILE_NAME, overwrite=True) as temporary:
        temporary.write_text(manifest.to_json(), encoding="utf-8")
    if out.exists():
        shutil.rmtree(out)
    work.rename(out)
    shutil.rmtree(out / _DONE_FOLDER)
    (out / _SETTINGS_FILE).unlink()
    return manifest


def _file_groups(settings: PretrainingDataSettings) -> list[list[Path]]:
    paths = [Path(path) for path in settings.inputs]
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: {'a folder' if path.is_dir() else 'no such file'}; expected a text file")
    groups = group_files([path.stat().st_size for path in paths], 1e6 * settings.shard_megabytes)
    return [[paths[index] for index in group] for group in groups]


def _blocks(files: Sequence[Path], group: int, settings: PretrainingDataSettings) -> Iterator[Block]:
    return read_blocks(map(text_lines, files), group, 1e6 * settings.shard_megabytes)


def _work_folder(out: Path, settings: PretrainingDataSettings, tokenizer: AlbertTokenizer, *, overwrite: bool) -> Path:
    """OUT.making: a new one, or that of an interrupted call with the same settings and vocabulary."""
    work = out.with_name(f"{out.name}.making")
    if work.exists():
        refuse_other_folder(work, _SETTINGS_FILE, "unfinished pretraining data", overwrite=True)
        if not overwrite:
            _refuse_differences(work, settings, tokenizer)
            for leftover in work.glob(".*"):  # of a file that was being written
                shutil.rmtree(leftover)
            return work
        shutil.rmtree(work)
    with written_whole(work) as temporary:
        (temporary / _DONE_FOLDER).mkdir(parents=True)
        AlbertTokenizer(tokenizer.vocabulary, settings.max_length).save(temporary / TOKENIZER_FOLDER)
        own = {"settings": settings.to_dict(), "tokenizer_sha256": folder_sha256(temporary / TOKENIZER_FOLDER)}
        text = json.dumps(own, indent=2, ensure_ascii=False)
        (temporary / _SETTINGS_FILE).write_text(text + "\n", encoding="utf-8")
    return work


def _refuse_differences(work: Path, settings: PretrainingDataSettings, tokenizer: AlbertTokenizer) -> None:
    saved = read_json(work / _SETTINGS_FILE)
    differences = settings.differences(saved["settings"])
    with tempfile.TemporaryDirectory() as folder:
        AlbertTokenizer(tokenizer.vocabulary, saved["settings"]["max_length"]).save(folder)
        if folder_sha256(Path(folder)) != saved["tokenizer_sha256"]:
            differences.append("another vocabulary")
    if differences:
        raise InputError(
            f"{work}: an interrupted call with other settings ({'; '.join(differences)}); give the same ones to go on with "
            "it, another --out, or --overwrite to start again"
        )


def _write_shards(
    blocks: Iterator[Block], settings: PretrainingDataSettings, work: Path, workers: int, progress: Progress
) -> list[Shard]:
    """Makes the blocks that are not made yet; returns the shards of all, in order."""
    made: dict[str, list[Shard]] = {}
    size = 0

    def finished(name: str, text_bytes: int, shards: list[Shard]) -> None:
        nonlocal size
        made[name], size = shards, size + text_bytes
        progress(sum(map(len, made.values())), size)

    def missing() -> Iterator[Block]:
        for block in blocks:
            shards = _finished_shards(block, work)
            if shards is None:
                yield block
            else:
                finished(block.name, len(block.text), shards)

    if workers == 1:
        maker = ShardMaker(settings, AlbertTokenizer.from_pretrained(work / TOKENIZER_FOLDER).vocabulary)
        for block in missing():
            finished(block.name, len(block.text), _write_block(maker, block, work))
    else:
        _in_processes(missing(), settings, work, workers, finished)
    return [shard for name in sorted(made) for shard in made[name]]


def _in_processes(
    blocks: Iterator[Block],
    settings: PretrainingDataSettings,
    work: Path,
    workers: int,
    finished: Callable[[str, int, list[Shard]], None],
) -> None:
    # Not forked: the parent may have threads, of TensorFlow for instance, that do not survive it.
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(workers, context, _start_worker, (settings, work))
    running: dict[concurrent.futures.Future[list[Shard]], tuple[str, int]] = {}
    try:
        ended = False
        while running or not ended:
            while not ended and len(running) < workers * _BLOCKS_AHEAD:
                block = next(blocks, None)
                if block is None:
                    ended = True
                else:
                    running[pool.submit(_work_on, block)] = (block.name, len(block.text))
            done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                finished(*running.pop(future), future.result())
    except BrokenProcessPool as error:
        raise InputError(
            "a process was ended from outside, most likely for lack of memory; give the same command again to go on, with "
            f"fewer --workers than {workers} or smaller --shard-megabytes"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_worker: tuple[ShardMaker, Path] | None = None  # of this process, if it is one of the pool's


def _start_worker(settings: PretrainingDataSettings, work: Path) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the processes
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker = ShardMaker(settings, AlbertTokenizer.from_pretrained(work / TOKENIZER_FOLDER).vocabulary), work


def _end_with_parent() -> None:
    """A parent that was killed cannot end its processes, which would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work_on(block: Block) -> list[Shard]:
    if _worker is None:
        raise RuntimeError("_start_worker comes first")
    return _write_block(_worker[0], block, _worker[1])


def _write_block(maker: ShardMaker, block: Block, work: Path) -> list[Shard]:
    """The shards of one block, and after them the file that says that they are whole."""
    shards = maker.write(block, work)
    record = {"text_sha256": _text_sha256(block), "shards": [dataclasses.asdict(shard) for shard in shards]}
    with written_whole(work / _DONE_FOLDER / f"{block.name}.json", overwrite=True) as temporary:
        temporary.write_text(json.dumps(record), encoding="utf-8")
    return shards


def _finished_shards(block: Block, work: Path) -> list[Shard] | None:
    """The shards that an interrupted call made of `block`; None if it did not come to it.

    Raises:
        InputError: it made them of another text.
    """
    path = work / _DONE_FOLDER / f"{block.name}.json"
    if not path.exists():
        return None
    record = read_json(path)
    if record["text_sha256"] != _text_sha256(block):
        raise InputError(f"{work}: the text was changed since the interrupted call; --overwrite starts again")
    return [Shard(**shard) for shard in record["shards"]]


def _text_sha256(block: Block) -> str:
    return hashlib.sha256(block.text).hexdigest()
