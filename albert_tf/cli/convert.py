"""`albert-tf convert`: any supported checkpoint → a preset folder, or a form of another system."""

import argparse
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from albert_tf.config import ACTIVATIONS, CONFIGS, AlbertConfig
from albert_tf.conversion.archive import is_archive_file
from albert_tf.conversion.checkpoint import Checkpoint, Weights, settings_in_weights
from albert_tf.conversion.detect import PRESET, READABLE
from albert_tf.conversion.huggingface import FORM as HUGGING_FACE
from albert_tf.conversion.huggingface import write_huggingface
from albert_tf.conversion.keras_hub import FORM as KERAS_HUB
from albert_tf.conversion.keras_hub import write_keras_hub
from albert_tf.conversion.model_garden import FORM as MODEL_GARDEN
from albert_tf.conversion.model_garden import write_model_garden
from albert_tf.conversion.stored import in_float16
from albert_tf.conversion.tf1 import write_tf1
from albert_tf.errors import InputError
from albert_tf.files import refuse_existing
from albert_tf.presets import TASK_FILE, load_checkpoint, load_tokenizer, save_preset

if TYPE_CHECKING:
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def _write_preset(
    folder: str,
    config: AlbertConfig,
    weights: Weights,
    tokenizer: "AlbertTokenizer | None",
    *,
    task: dict[str, Any] | None,
    overwrite: bool,
) -> list[str]:
    files = {TASK_FILE: json.dumps(task, indent=2, ensure_ascii=False) + "\n"} if task is not None else {}
    save_preset(folder, config, weights, tokenizer, extra_files=files, overwrite=overwrite)
    return []


PRESET_NAME = "albert-tf"
DTYPES = ("float32", "float16")
# Name of a form → what writes it, and returns what is otherwise in that form than in ours.
WRITERS: dict[str, Callable[..., list[str]]] = {
    PRESET_NAME: _write_preset,
    "huggingface": write_huggingface,
    "keras-hub": write_keras_hub,
    "model-garden": write_model_garden,
    "tf1": write_tf1,
}
# Name of a form → the form that readers say, where another framework runs it.
_FORMS = {"huggingface": HUGGING_FACE, "keras-hub": KERAS_HUB, "model-garden": MODEL_GARDEN}

_DESCRIPTION = """\
Reads a checkpoint of any supported form, checks that every weight is there with the right shape, and writes a preset
folder that every other command takes.

examples:
  albert-tf convert albert_base_v2.tar.gz albert_base
  albert-tf convert out/model.ckpt-800 my_classifier --overwrite
  albert-tf convert albert/albert-base-v2 albert_base
  albert-tf convert films.keras films_preset
  albert-tf convert runs/wiki albert_wiki --dtype float16
  albert-tf convert runs/films films_for_transformers --to huggingface --verify
  albert-tf convert garden/ckpt-125000 albert_base --config albert_base_v2 --tokenizer 30k-clean.model
"""


def add_parser(subparsers: "Subparsers") -> None:
    """Adds the command to those of `albert-tf`."""
    parser = subparsers.add_parser(
        "convert",
        help="make a preset folder of a checkpoint, as in: albert-tf convert albert_base_v2.tar.gz albert_base",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "source", metavar="SOURCE", help=f"{READABLE}; or the name of a model on Hugging Face or Kaggle"
    )
    parser.add_argument("out", metavar="OUT", help="the folder to write")
    parser.add_argument(
        "--to",
        choices=WRITERS,
        default=PRESET_NAME,
        help=f"the form to write (default: {PRESET_NAME}, a preset folder)",
    )
    parser.add_argument(
        "--activation", choices=ACTIVATIONS, help="instead of what the source says; the weights stay as they are"
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="for a TF Model Garden checkpoint, which has none: albert_config.json, the training's params.yaml, or the name "
        "of a published config",
    )
    parser.add_argument(
        "--tokenizer",
        metavar="PATH",
        help="instead of the source's own: a vocabulary file, a tokenizer's folder, a preprocessing SavedModel, or an "
        "archive of one of these",
    )
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        default="float32",
        help="of the weights in a preset folder (default: float32); float16 takes half the bytes",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="compare outputs with the framework that SOURCE is of, and that OUT is of, where there is one to run it; read "
        "OUT back; exit with 1 above the tolerance",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace OUT if it is a folder of the form that is written"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Writes the preset and prints what was read and written.

    Returns:
        The exit code, 0.

    Raises:
        InputError: the source cannot be read as a whole, a weight is too large for float16, or OUT cannot be written.
        CheckError: with `verify`, outputs or weights differ.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    refuse_existing(args.out, overwrite=args.overwrite)  # before the long part
    if args.dtype != "float32" and args.to != PRESET_NAME:
        raise InputError(f"--dtype {args.dtype} is for preset folders; --to {args.to} writes float32")
    if args.verify and args.to in _FORMS:
        from albert_tf.evaluation.frameworks import FRAMEWORKS, require

        require(FRAMEWORKS[_FORMS[args.to]])
    checkpoint = load_checkpoint(args.source, config=args.config, tokenizer=args.tokenizer)
    config = dataclasses.replace(checkpoint.config, activation=args.activation or checkpoint.config.activation)
    archived = is_archive_file(checkpoint.source)
    as_it_is = checkpoint.form == PRESET and args.to == PRESET_NAME and config == checkpoint.config and not archived
    if as_it_is and args.dtype == "float32":
        raise InputError(f"{args.source} is a preset folder already; copy it as it is")
    tokenizer = load_tokenizer(checkpoint)
    if args.verify:
        _verify(checkpoint)
    write = WRITERS[args.to]
    weights = in_float16(checkpoint.weights, checkpoint.source) if args.dtype == "float16" else checkpoint.weights
    notes = write(args.out, config, weights, tokenizer, task=checkpoint.task, overwrite=args.overwrite)
    backbone = sum(weight.size for weight in checkpoint.backbone_weights.values())
    head = sum(weight.size for weight in checkpoint.head_weights.values())
    table = Table(show_header=False)
    for row in (
        ("form", checkpoint.form + (" archive" if archived else "")),
        ("config", _described(config)),
        ("parameters", f"{backbone:,}" + (f" + {head:,} in the head" if head else "")),
        ("head", checkpoint.head),
        ("tokenizer", _vocabulary(tokenizer)),
        ("written to", f"{args.out} ({_megabytes(Path(args.out)):.1f} MB)"),
        *(("otherwise there", note) for note in notes),
    ):
        table.add_row(*map(Text, row))  # a name of a file or label may have brackets
    Console().print(table)
    if args.verify:
        from albert_tf.evaluation.parity import check_written

        written = load_checkpoint(args.out)
        if args.to != PRESET_NAME:
            weights, _ = settings_in_weights(weights, checkpoint.task)
        check_written({name: weight.astype("float32", copy=False) for name, weight in weights.items()}, written)
        _verify(written)
    return 0


def _verify(checkpoint: Checkpoint) -> None:
    """Compares outputs with those of the framework that a checkpoint is of, and prints the differences.

    Raises:
        InputError: the framework is not installed.
        CheckError: an output is above the tolerance.
    """
    from rich.console import Console

    from albert_tf.evaluation.frameworks import FRAMEWORKS
    from albert_tf.evaluation.parity import check_differences, compare_with_framework, difference_table

    if checkpoint.form not in FRAMEWORKS:
        Console().print(
            f"{checkpoint.source}: read as a whole; no other framework here runs a checkpoint of this form "
            f"({checkpoint.form}), so there are no outputs to compare",
            markup=False,
        )
        return
    compared = compare_with_framework(checkpoint)
    framework = FRAMEWORKS[checkpoint.form].name
    Console().print(difference_table(compared, f"{checkpoint.source}: {framework} and albert-tf"))
    check_differences(compared, checkpoint.source)


def _described(config: AlbertConfig) -> str:
    name = next((name for name, published in CONFIGS.items() if published == config), "not a published one")
    return (
        f"{name}: {config.num_layers} layers, {config.hidden_dim} wide, {config.num_heads} heads, "
        f"{config.vocabulary_size} words, {config.activation}"
    )


def _vocabulary(tokenizer: "AlbertTokenizer | None") -> str:
    if tokenizer is None:
        return "none in the source; to have one, convert again with --tokenizer and the vocabulary file"
    return f"{tokenizer.vocabulary.kind}, {tokenizer.vocabulary.size} entries"


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
