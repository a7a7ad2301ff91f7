"""What the benchmarks have in common: their data and how they say what they measured."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


def parser(description: str) -> argparse.ArgumentParser:
    """A parser with the options of every benchmark."""
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = os.environ.get("ALBERT_TF_DATA")
    result.add_argument(
        "--data",
        type=Path,
        default=folder,
        required=folder is None,
        help="folder of real data (default: the environment variable ALBERT_TF_DATA)",
    )
    result.add_argument("--json", type=Path, help="file for the figures")
    return result


def show(title: str, rows: list[dict[str, str]], figures: Any, json_file: Path | None) -> None:
    """Prints the rows as a table and writes the figures."""
    table = Table(title=title)
    for column in rows[0]:
        table.add_column(column, justify="left" if column == next(iter(rows[0])) else "right")
    for row in rows:
        table.add_row(*row.values())
    console = Console()
    if not console.is_terminal:  # a file: rich would cut the columns to 80 characters
        console = Console(width=160)
    console.print(table)
    if json_file is not None:
        json_file.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def albert_tf(*words: Any) -> None:
    """Runs the command line in a process of its own.

    Raises:
        CalledProcessError: it did not end with 0.
    """
    subprocess.run([sys.executable, "-m", "albert_tf.cli.main", *map(str, words)], check=True)


def resident(field: str) -> int:
    """Memory of this process in bytes: VmRSS now, VmHWM at its peak (Linux)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
