"""Files of TF1 checkpoints: finding them, reading and writing variables.

Every tensor that is read carries a checksum that TensorFlow compares.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from albert_tf.conversion.assign import listing
from albert_tf.conversion.bundle_index import check_index
from albert_tf.conversion.stored import StoredTensor
from albert_tf.errors import InputError
from albert_tf.files import is_there, read_text

_DATA_FILE = re.compile(r"(.+)\.data-\d{5}-of-(\d{5})")
# What TensorFlow puts around a message: where in its graph it arose.
_OF_TENSORFLOW = re.compile(r"^(\{\{[^}]*\}\} ?)+| \[Op:\w+\]")
_VOCABULARIES = ("*.model", "*.spm", "vocab*.txt")
# How far below the given folder files are looked for: the released archives hold one folder, a TF-Hub module two.
_MAX_DEPTH = 2


class Files(NamedTuple):
    prefix: Path
    config: Path
    tokenizer: Path | None


def closest(folder: Path, *patterns: str) -> list[Path]:
    """The files that match one of the patterns, in their order and sorted, from the nearest level below `folder` that has
    any; hidden files do not count.

    Raises:
        InputError: one of them is a link to nothing, or a pipe or a device.
    """
    for depth in range(_MAX_DEPTH + 1):
        found = [path for pattern in patterns for path in sorted(folder.glob("*/" * depth + pattern))]
        if found := [path for path in found if not path.name.startswith(".") and not path.is_dir() and is_there(path)]:
            return found
    return []


def checkpoint_prefix(path: Path) -> Path | None:
    """The prefix of a checkpoint, given that or one of its files; None if `path` is neither."""
    if data := _DATA_FILE.fullmatch(path.name):
        return path.with_name(data[1])
    if path.suffix in (".index", ".meta"):
        return path.with_suffix("")
    return path if path.with_name(f"{path.name}.index").is_file() else None


def locate(path: Path) -> Files:
    """The checkpoint that `path` means (a folder, a prefix or one of its files), its config and its vocabulary.

    Raises:
        InputError: none, or several; the message lists what was found.
    """
    if path.is_dir():
        folder, prefix = path, prefix_in(path)
    else:
        folder, given = path.parent, checkpoint_prefix(path)
        if given is None:
            raise InputError(f"{path}: expected a TF1 checkpoint (prefix, .index file or folder); found none")
        prefix = given
    configs = closest(folder, "albert_config*.json") or closest(folder, "bert_config*.json")  # some of albert_zh's
    if len(configs) != 1:
        found = f"found {_relative(configs, folder)}" if configs else "there is none"
        raise InputError(f"{folder}: expected one albert_config.json with the checkpoint; {found}")
    return Files(prefix, configs[0], vocabulary_in(folder))


def vocabulary_in(folder: Path) -> Path | None:
    """The vocabulary file at or below a folder, if there is one.

    Raises:
        InputError: several.
    """
    found = closest(folder, *_VOCABULARIES)
    if len(found) > 1:
        raise InputError(
            f"{folder}: expected one vocabulary file ({', '.join(_VOCABULARIES)}), "
            f"found {_relative(found, folder)}; leave only the one that the model was trained with"
        )
    return found[0] if found else None


def prefix_in(folder: Path) -> Path:
    """The only checkpoint in a folder, or the one that its `checkpoint` file calls the latest."""
    indexes = closest(folder, "*.index")
    if len(indexes) > 1:
        state = indexes[0].with_name("checkpoint")
        latest = re.search(r'^model_checkpoint_path: "([^"]+)"', read_text(state), re.M) if state.is_file() else None
        named = f"{Path(latest[1]).name}.index" if latest else None
        of_one_folder = len({index.parent for index in indexes}) == 1  # it tells of its own
        if chosen := [index for index in indexes if index.name == named and of_one_folder]:
            return chosen[0].with_suffix("")
        raise InputError(f"{folder}: several checkpoints, {_relative(indexes, folder)}; give the prefix of one of them")
    if not indexes:
        held = listing(sorted(entry.name for entry in folder.rglob("*") if entry.is_file())) or "nothing"
        raise InputError(f"{folder}: expected a TF1 checkpoint (*.index), found {held}")
    return indexes[0].with_suffix("")


def _relative(paths: list[Path], folder: Path) -> str:
    return listing([str(path.relative_to(folder)) for path in paths])


class Reader:
    """The variables of one checkpoint, read one by one.

    TensorFlow keeps the memory that it has read the largest into, and reads smaller ones into it. So the largest comes
    first, and what is returned as weights is a copy.

    Attributes:
        prefix: of the checkpoint.
        shapes: name → shape of every variable.

    Raises:
        InputError: files missing, damaged or truncated, here or when a variable is read.
    """

    def __init__(self, prefix: Path) -> None:
        import tensorflow as tf

        check_index(prefix, _data_files(prefix))
        self.prefix = prefix
        try:
            self._reader: Any = tf.train.load_checkpoint(str(prefix))
        except (tf.errors.OpError, IndexError, RuntimeError, ValueError) as error:
            raise InputError(f"{prefix}.index: damaged or not a TensorFlow checkpoint: {_first_line(error)}") from error
        self.shapes = {name: tuple(shape) for name, shape in self._reader.get_variable_to_shape_map().items()}

    def stored(self, name: str) -> StoredTensor:
        """A variable, to be read in float32.

        Raises:
            InputError: it does not hold floating-point numbers.
        """
        if not self._reader.get_variable_to_dtype_map()[name].is_floating:
            raise InputError(f"{self.prefix}: {name}: expected floating-point weights")
        return StoredTensor(self.shapes[name], True, lambda: np.array(self.value(name), np.float32))

    def value(self, name: str) -> np.ndarray:
        """A variable, in memory of TensorFlow's."""
        import tensorflow as tf

        try:
            return np.asarray(self._reader.get_tensor(name))
        except (tf.errors.OpError, IndexError, RuntimeError, ValueError) as error:
            raise InputError(
                f"{self.prefix}: cannot read tensor {name}: {_first_line(error)}; the file is damaged or cut off: copy "
                "it again"
            ) from error


def write_variables(prefix: Path, values: Mapping[str, np.ndarray]) -> None:
    """Writes `prefix`.index and `prefix`.data-00000-of-00001, the variables in the order of their names as a TF1 saver
    does, and the `checkpoint` file that names the prefix."""
    import tensorflow as tf

    names = sorted(values)
    with errors_of_the_disk():
        tf.raw_ops.SaveV2(
            prefix=str(prefix),
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[tf.convert_to_tensor(values[name]) for name in names],
        )
    state = f'model_checkpoint_path: "{prefix.name}"\nall_model_checkpoint_paths: "{prefix.name}"\n'
    (prefix.parent / "checkpoint").write_text(state, encoding="utf-8")


@contextlib.contextmanager
def errors_of_the_disk() -> Iterator[None]:
    """What TensorFlow raises in the block, which writes a file, becomes an OSError."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        raise OSError(_OF_TENSORFLOW.sub("", _first_line(error))) from error


def refuse_patterns(path: Path) -> None:
    """Raises InputError for a path that TensorFlow would take for several, or cannot take as it is no UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{path}: TensorFlow takes names in UTF-8 only; rename the folder or file") from error
    if odd := sorted(set(str(path)) & set("*?[\\")):
        raise InputError(f"{path}: TensorFlow takes {' '.join(odd)} in a path for a pattern; rename the folder or file")


def _data_files(prefix: Path) -> list[Path]:
    """The data files in order. They and the index are there under a usable name, or TensorFlow would say so."""
    refuse_patterns(prefix)
    if not prefix.with_name(f"{prefix.name}.index").is_file():
        raise InputError(f"{prefix}.index: no such file; a checkpoint is an .index and a .data file together")
    files = [path for path in prefix.parent.iterdir() if path.is_file()]
    shards = sorted(
        match[0] for path in files if (match := _DATA_FILE.fullmatch(path.name)) and match[1] == prefix.name
    )
    count = int(_DATA_FILE.fullmatch(shards[0])[2]) if shards else 0  # type: ignore[index]  # it is one
    if not shards or shards != [f"{prefix.name}.data-{number:05}-of-{count:05}" for number in range(count)]:
        held = f"found {listing(shards)}" if shards else "there is none"
        raise InputError(f"{prefix}: the weights belong in {prefix.name}.data-00000-of-00001 beside the .index; {held}")
    return [prefix.with_name(name) for name in shards]


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
