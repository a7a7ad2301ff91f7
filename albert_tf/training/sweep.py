"""Several runs of one task: with several seeds, or over a grid of settings, and the table of what came of them.

OUT has a folder for each combination of settings, and in it or in OUT itself a run folder for each seed. Each run is
resumed by itself; finished ones are not done again. OUT/summary.json appears when all are done.
"""

import dataclasses
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from albert_tf.errors import InputError
from albert_tf.evaluation.report import write_json
from albert_tf.files import read_json, refuse_other_folder, written_whole
from albert_tf.training.checkpoints import UnsavedError
from albert_tf.training.finetune import finetune
from albert_tf.training.rounds import DivergedError
from albert_tf.training.run_config import RunConfig
from albert_tf.training.run_folder import METRICS_FILE, RUN_FILE, remove_work, work_path

SWEEP_FILE = "sweep.json"
SUMMARY_FILE = "summary.json"
_FIXED = ("out", "seed", "task", "recipe", "valid", "best_metric")  # not to be swept over


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What varies.

    Attributes:
        seeds: of each combination's runs.
        values: field of the run → the values it takes; none for one combination.
    """

    seeds: tuple[int, ...]
    values: Mapping[str, tuple[Any, ...]]

    def combinations(self) -> list[dict[str, Any]]:
        return [dict(zip(self.values, chosen, strict=True)) for chosen in itertools.product(*self.values.values())]


def parse_sweep(run: RunConfig, seeds: str | None, values: Sequence[str]) -> Sweep:
    """The sweep that flags describe.

    Args:
        run: the settings that all runs share.
        seeds: "1,2,3", or None for the run's own.
        values: "learning_rate=1e-5,2e-5" and the like.

    Raises:
        InputError: not such texts, an unknown field, or a value that the field does not take.
    """
    if run.strategy not in ("one", "mirrored"):
        raise InputError(f"--seeds and --sweep go with one machine; leave --strategy {run.strategy} out")
    if run.valid is None:
        raise InputError("--seeds and --sweep compare runs by --valid FILE; give one")
    chosen = (str(run.seed),) if seeds is None else tuple(part.strip() for part in seeds.split(","))
    if not all(seed.isascii() and seed.isdigit() for seed in chosen) or len({*map(int, chosen)}) < len(chosen):
        raise InputError(f"--seeds: expected different whole numbers such as 1,2,3, got {seeds!r}")
    grid: dict[str, tuple[Any, ...]] = {}
    for text in values:
        name, found = _parse_values(run, text)
        if name in grid:
            raise InputError(f"--sweep: {name} is named twice")
        grid[name] = found
    sweep = Sweep(tuple(map(int, chosen)), grid)
    for combination in sweep.combinations():  # what a field refuses is refused before the first run
        for seed in sweep.seeds:
            dataclasses.replace(run, seed=seed, **combination)
    return sweep


def run_sweep(
    run: RunConfig,
    sweep: Sweep,
    *,
    overwrite: bool = False,
    report: Callable[[str], None] = print,
    train: Callable[..., dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Makes all runs and writes OUT/summary.json.

    Args:
        run: the settings that all runs share; `run.out` is the folder for all.
        sweep: what varies.
        overwrite: replace the folder, finished or not.
        report: receives lines of progress.
        train: makes one run; None: `finetune`.

    Returns:
        The summary: `rows`, a dict for each combination with its settings, folder, runs, and mean and standard deviation of
        each metric, and for runs that came to no end `failures`, why, and `diverged`, how many of them did; best first;
        `metric`; and `best`, the folder of the best run.

    Raises:
        InputError: `run.out` exists, or is of other settings; no run came to an end; or the disk is full.
    """
    out = Path(run.out)
    _begin(out, run, sweep, overwrite=overwrite)
    rows = []
    for combination in sweep.combinations():
        figures: dict[str, dict[str, float]] = {}
        failures: dict[str, InputError] = {}
        for seed in sweep.seeds:
            folder = _run_folder(out, combination, seed)
            report(f"=== {folder.relative_to(out)} ===")
            one = dataclasses.replace(run, out=str(folder), seed=seed, **combination)
            try:
                figures[str(folder.relative_to(out))] = _finished(one) or _trained(one, report, train or finetune)
            except UnsavedError:
                raise
            except InputError as error:  # which says something about its settings
                report(f"{'diverged' if isinstance(error, DivergedError) else 'failed'}: {error}")
                failures[str(folder.relative_to(out))] = error
        rows.append({"settings": combination, "runs": figures} | _spread(figures) | _failed(failures))
    # A combination of which a run failed is no good one, whatever the others reached.
    rows.sort(key=lambda row: (len(row["failures"]), -_worth(row["mean"], run.best_metric)))
    runs = rows[0]["runs"]
    if not runs:
        raise InputError(_none_left(out, rows))
    best = max(runs, key=lambda folder: _worth(runs[folder], run.best_metric))
    summary = {"metric": run.best_metric, "best": best, "rows": rows}
    write_json(out / SUMMARY_FILE, summary)
    return summary


def summary_table(summary: Mapping[str, Any], title: str) -> Any:
    """The summary as a terminal table: a row for each combination, best first, metrics as mean ± standard deviation."""
    from rich.table import Table
    from rich.text import Text

    rows, metric = summary["rows"], summary["metric"]
    settings = list(rows[0]["settings"])
    metrics = [metric, *(name for name in rows[0]["mean"] if name != metric)]
    table = Table(title=Text(title), title_justify="left")
    for name in [*settings, "runs", *metrics]:
        table.add_column(Text(name.replace("_", " ")), justify="right")
    for row in rows:
        failed = {"diverged": row["diverged"], "failed": len(row["failures"]) - row["diverged"]}
        runs = ", ".join([str(len(row["runs"])), *(f"{count} {what}" for what, count in failed.items() if count)])
        cells = [str(row["settings"][name]) for name in settings] + [runs]
        table.add_row(*map(Text, cells + [_cell(row, name) for name in metrics]))
    return table


def _cell(row: Mapping[str, Any], name: str) -> str:
    if name not in row["mean"]:
        return "-"
    deviation = row["deviation"].get(name)
    return f"{row['mean'][name]:.4f}" + ("" if deviation is None else f" ± {deviation:.4f}")


def _parse_values(run: RunConfig, text: str) -> tuple[str, tuple[Any, ...]]:
    given, separator, listed = text.partition("=")
    name = given.strip().lstrip("-").replace("-", "_")
    fields = {field.name: field for field in dataclasses.fields(run)}
    if not separator or name not in fields or name in _FIXED:
        usable = ", ".join(field for field in fields if field not in _FIXED)
        raise InputError(f"--sweep: expected FIELD=VALUE,VALUE with a field among {usable}; got {text!r}")
    kinds: dict[Any, Any] = {int: int, int | None: int, float: float, float | None: float, bool: _boolean}
    kind = kinds.get(fields[name].type, str)
    try:
        found = tuple(kind(value.strip()) for value in listed.split(","))
    except ValueError as error:
        raise InputError(f"--sweep {name}: expected values of the kind of {run.flag_name(name)}; {error}") from error
    if len(set(found)) < len(found):
        raise InputError(f"--sweep {name}: a value comes twice in {listed}")
    return name, found


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"expected true or false, got {text!r}")
    return text == "true"


def _begin(out: Path, run: RunConfig, sweep: Sweep, *, overwrite: bool) -> None:
    """Makes the folder, or checks that the one there is of this sweep, unfinished."""
    known = {"run": json.loads(run.to_json()), "seeds": list(sweep.seeds)}
    known["values"] = {name: list(values) for name, values in sweep.values.items()}
    if out.exists():
        unfinished = (out / SWEEP_FILE).exists() and not (out / SUMMARY_FILE).exists()
        refuse_other_folder(out, SWEEP_FILE, "a folder of several runs", overwrite=overwrite or unfinished)
        if not overwrite and unfinished:
            if read_json(out / SWEEP_FILE) != known:
                raise InputError(
                    f"{out}: unfinished runs with other settings; give the same ones to go on with them, another --out, or "
                    "--overwrite to start again"
                )
            return
    with written_whole(out, overwrite=overwrite) as folder:
        folder.mkdir()
        write_json(folder / SWEEP_FILE, known)


def _run_folder(out: Path, combination: Mapping[str, Any], seed: int) -> Path:
    name = ",".join(f"{field}={str(value).replace('/', '_')}" for field, value in combination.items())
    return out / name / f"seed_{seed}" if name else out / f"seed_{seed}"


def _finished(run: RunConfig) -> dict[str, float] | None:
    """The figures of a run that is done."""
    if not (Path(run.out) / RUN_FILE).exists():
        return None
    if work_path(run).exists():  # interrupted when all was done
        remove_work(work_path(run))
    return _numbers(read_json(Path(run.out) / METRICS_FILE)["valid"])


def _trained(run: RunConfig, report: Callable[[str], None], train: Callable[..., dict[str, Any]]) -> dict[str, float]:
    """The figures of a run."""
    keras.backend.clear_session()  # the models of the runs before it
    return _numbers(train(run, report=report)["valid"])


def _worth(figures: Mapping[str, float], metric: str) -> float:
    """The more the better."""
    value = figures.get(metric, math.nan)
    return -math.inf if math.isnan(value) else -value if metric.endswith(("loss", "error")) else value


def _numbers(figures: Mapping[str, Any]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if isinstance(value, float)}


def _failed(failures: Mapping[str, InputError]) -> dict[str, Any]:
    """Why runs came to no end, and how many of them diverged."""
    diverged = sum(isinstance(error, DivergedError) for error in failures.values())
    return {"failures": {folder: str(error) for folder, error in failures.items()}, "diverged": diverged}


def _none_left(out: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    """What to say where no run came to an end."""
    if all(row["diverged"] == len(row["failures"]) for row in rows):
        return f"{out}: every run diverged; lower --learning-rate or raise --warmup, and pass --overwrite"
    return f"{out}: no run came to an end, the first because: {next(iter(rows[0]['failures'].values()))}"


def _spread(runs: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Mean of each metric over the runs, and sample standard deviation where there are several."""
    names = list(next(iter(runs.values()), {}))
    columns = {name: np.array([figures.get(name, math.nan) for figures in runs.values()]) for name in names}
    deviation = {name: float(values.std(ddof=1)) for name, values in columns.items() if len(values) > 1}
    mean = {name: float(values.mean()) for name, values in columns.items()}
    return {"mean": mean, "deviation": deviation}
