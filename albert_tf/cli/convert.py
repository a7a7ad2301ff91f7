"""`albert-tf convert`: any supported checkpoint → a preset folder."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from albert_tf.config import CONFIGS, AlbertConfig
from albert_tf.conversion.detect import PRESET, detect
from albert_tf.errors import InputError
from albert_tf.files import refuse_existing
from albert_tf.presets import load_checkpoint, save_preset

if TYPE_CHECKING:
    from albert_tf.tokenization.tokenizer import AlbertTokenizer

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_DESCRIPTION = """\
Reads a checkpoint of any supported form, checks that every weight is there with the right shape, and writes a preset
folder that every other command takes.

examples:
  albert-tf convert albert_base_v2.tar.gz albert_base
  albert-tf convert out/model.ckpt-800 my_classifier --overwrite
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
        "source", metavar="SOURCE", help="a Google TF1 checkpoint: its folder, prefix, .index file or .tar.gz archive"
    )
    parser.add_argument("out", metavar="OUT", help="the preset folder to write")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it is a preset folder already")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Writes the preset and prints what was read and written.

    Returns:
        The exit code, 0.

    Raises:
        InputError: the source cannot be read as a whole, or OUT cannot be written.
    """
    from rich.console import Console
    from rich.table import Table

    from albert_tf.tokenization.tokenizer import AlbertTokenizer

    refuse_existing(args.out, overwrite=args.overwrite)  # before the long part
    if detect(args.source) == PRESET:
        raise InputError(f"{args.source} is a preset folder already; copy it as it is")
    checkpoint = load_checkpoint(args.source)
    tokenizer = None
    if checkpoint.tokenizer_path is not None:
        longest = checkpoint.config.max_sequence_length
        tokenizer = AlbertTokenizer.from_pretrained(checkpoint.tokenizer_path, max_length=longest)
    save_preset(args.out, checkpoint.config, checkpoint.weights, tokenizer, overwrite=args.overwrite)
    backbone = sum(weight.size for weight in checkpoint.backbone_weights.values())
    head = sum(weight.size for weight in checkpoint.head_weights.values())
    table = Table(show_header=False)
    for row in (
        ("form", checkpoint.form),
        ("config", _described(checkpoint.config)),
        ("parameters", f"{backbone:,}" + (f" + {head:,} in the head" if head else "")),
        ("head", checkpoint.head),
        ("tokenizer", _vocabulary(tokenizer)),
        ("written to", f"{args.out} ({_megabytes(Path(args.out)):.1f} MB)"),
    ):
        table.add_row(*row)
    Console().print(table)
    return 0


def _described(config: AlbertConfig) -> str:
    name = next((name for name, published in CONFIGS.items() if published == config), "not a published one")
    return (
        f"{name}: {config.num_layers} layers, {config.hidden_dim} wide, {config.num_heads} heads, "
        f"{config.vocabulary_size} words, {config.activation}"
    )


def _vocabulary(tokenizer: "AlbertTokenizer | None") -> str:
    if tokenizer is None:
        return "none in the source; copy the vocabulary file (*.model, vocab*.txt) there and convert again to have one"
    return f"{tokenizer.vocabulary.kind}, {tokenizer.vocabulary.size} entries"


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
