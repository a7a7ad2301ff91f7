"""`albert-tf params`: parameter counts of ALBERT beside BERT, by part, for presets, config files and sharing modes."""

import argparse
from typing import TYPE_CHECKING

from albert_tf.config import CONFIGS, SHARING_MODES, AlbertConfig
from albert_tf.evaluation.parameter_report import compare_with_bert, parameter_tables, plot_parameters, with_sharing
from albert_tf.evaluation.report import check_figure_path, write_json
from albert_tf.files import refuse_existing

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_DESCRIPTION = f"""\
Counts the parameters of ALBERT models, exactly and without building them, beside the BERT that each is made from:
the word embedding, the layers, the total.

names: {", ".join(CONFIGS)}

example:
  albert-tf params albert_base_v2 albert_base_zh --plot parameters.png
"""


def add_parser(subparsers: "Subparsers") -> None:
    """Adds the command to those of `albert-tf`."""
    parser = subparsers.add_parser(
        "params",
        help="count parameters, ALBERT beside BERT, as in: albert-tf params albert_base_v2",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="models to count; all when neither NAME nor --config")
    parser.add_argument(
        "--config", action="append", default=[], metavar="FILE", help="count an albert_config.json too; may be repeated"
    )
    parser.add_argument(
        "--sharing",
        action="append",
        choices=(*SHARING_MODES, "every"),
        help="what the layers share, instead of the model's own mode; may be repeated; every: a row for each mode",
    )
    parser.add_argument("--heads", action="store_true", help="count the two pretraining heads with each model")
    parser.add_argument("--json", metavar="FILE", help="write the same figures as JSON")
    parser.add_argument("--plot", metavar="FILE", help="draw the parts as bars (.png, .svg or .pdf)")
    parser.add_argument("--overwrite", action="store_true", help="replace the files of --json and --plot")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the tables and writes the files asked for.

    Returns:
        The exit code, 0.

    Raises:
        InputError: an unknown name, a config file that cannot be used, or a file that cannot be written.
    """
    from rich.console import Console

    if args.json is not None:
        refuse_existing(args.json, overwrite=args.overwrite, file=True)
    if args.plot is not None:
        check_figure_path(args.plot, overwrite=args.overwrite)
    comparisons = [
        compare_with_bert(name, config, heads=args.heads)
        for name, config in _asked_configs(args.names, args.config, args.sharing)
    ]
    console = Console()
    for table in parameter_tables(comparisons, heads=args.heads):
        console.print(table)
        console.print()
    if args.json is not None:
        write_json(args.json, {"heads": args.heads, "models": comparisons}, overwrite=args.overwrite)
    if args.plot is not None:
        plot_parameters(comparisons, args.plot, overwrite=args.overwrite)
    return 0


def _asked_configs(
    names: list[str], config_files: list[str], sharing: list[str] | None
) -> list[tuple[str, AlbertConfig]]:
    """(name, config) of each row, in the order of the command line."""
    configs = {name: AlbertConfig.from_name(name) for name in names}
    configs |= {file: AlbertConfig.from_json(file) for file in config_files}
    if not configs:
        configs = dict(CONFIGS)
    if not sharing:
        return list(configs.items())
    modes = SHARING_MODES if "every" in sharing else tuple(dict.fromkeys(sharing))
    return [(name, with_sharing(config, mode)) for name, config in configs.items() for mode in modes]
