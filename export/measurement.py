"""Load time, memory and latency of a `.tflite` file, each measured in a process of its own.

Run as a program it measures one file on the texts and lengths that standard input names, and prints JSON:
`echo '{"texts": ["a text"], "lengths": [64]}' | python -m export.measurement model.tflite THREADS REPEATS`.
"""

import dataclasses
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from albert_tf.errors import InputError
from albert_tf.inference.depth import PLAIN
from albert_tf.tokenization.tokenizer import AlbertTokenizer
from export.metadata import check_model, read_files, read_settings
from export.runtime import open_tokenizer
from export.signatures import OpenedModel, recorded_length

WARM_UP_RUNS = 3
# Of rows of one length: enough runs for a median, but no more than this takes.
_MOST_RUNS = 15
_SECONDS = 0.3
_ROOT = Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What one file costs on this machine.

    Attributes:
        load_ms: from the path to being ready for the first text.
        tokenizer_load_ms: what of it the tokenizer took.
        memory_growth_bytes: resident memory after every text and length was run, less that before the load.
        tokenizer_growth_bytes: what of it came with the tokenizer; the rest came with the model.
        median_latency_ms: of one text, ids to answer.
        mean_tokens: mean length of the texts.
        threads: CPU threads used.
        latencies_ms: of rows of the lengths asked for, tokens → median.
    """

    load_ms: float
    tokenizer_load_ms: float
    memory_growth_bytes: int
    tokenizer_growth_bytes: int
    median_latency_ms: float
    mean_tokens: float
    threads: int
    latencies_ms: dict[int, float] = dataclasses.field(default_factory=dict)


def measure(
    path: str | Path, texts: Sequence[str], *, threads: int = 1, repeats: int = 3, lengths: Sequence[int] = ()
) -> Measurement:
    """Measures `path` on `texts` in a fresh process, so that nothing loaded before counts.

    Args:
        path: a file written by `export.export_tflite`.
        texts: what to run it on.
        threads: CPU threads.
        repeats: how often each text is run.
        lengths: tokens of further rows to run it on, each such row by itself.

    Raises:
        InputError: no texts, `repeats` below 1, a length that the file does not take, or the file cannot be run.
    """
    if isinstance(texts, str) or not len(texts):
        raise InputError(f"texts: expected a list of at least one text to measure on, got {texts!r}")
    for name, value in (("threads", threads), ("repeats", repeats)):
        if value < 1:
            raise InputError(f"{name}: expected at least 1, got {value}")
    command = [sys.executable, "-P", "-m", "export.measurement", str(path), str(threads), str(repeats)]
    # The new process must find this very package, also where it is not installed.
    search = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        command,
        input=json.dumps({"texts": list(texts), "lengths": list(lengths)}),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": search},
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"])[-1]
        raise InputError(f"{path}: cannot be measured: {reason.removeprefix(f'{path}: ')}")
    figures = json.loads(done.stdout.splitlines()[-1])
    figures["latencies_ms"] = {int(tokens): latency for tokens, latency in figures["latencies_ms"].items()}
    return Measurement(**figures)


def _measure_here(path: str, texts: list[str], lengths: list[int], threads: int, repeats: int) -> Measurement:
    from ai_edge_litert import interpreter  # noqa: F401  # its own code is not the file's memory

    # What TFLiteRunner does, in two parts.
    memory, started = _resident_bytes(), time.perf_counter()
    files = read_files(path)
    settings = read_settings(files, path)
    tokenizer = open_tokenizer(files, settings, path)
    del files
    tokenizer_growth, tokenizer_load = _resident_bytes() - memory, time.perf_counter() - started
    check_model(path, settings)
    model = OpenedModel(path, recorded_length(settings), threads, settings.get("adaptive", PLAIN))
    load = time.perf_counter() - started
    pad_id = tokenizer.vocabulary.pad_id
    encoded = sorted(tokenizer.encode_batch(texts), key=lambda row: len(row[0]))
    for row in encoded[-1:] * WARM_UP_RUNS:
        model.run(*row, pad_id)
    latencies = []
    for _ in range(repeats):
        for row in encoded:
            started = time.perf_counter()
            model.run(*row, pad_id)
            latencies.append(time.perf_counter() - started)
    by_length = {tokens: 1e3 * _latency(model, tokenizer, tokens) for tokens in sorted(lengths)}
    return Measurement(
        load_ms=1e3 * load,
        tokenizer_load_ms=1e3 * tokenizer_load,
        memory_growth_bytes=_resident_bytes() - memory,
        tokenizer_growth_bytes=tokenizer_growth,
        median_latency_ms=1e3 * statistics.median(latencies),
        mean_tokens=statistics.fmean(len(token_ids) for token_ids, _ in encoded),
        threads=threads,
        latencies_ms=by_length,
    )


def _latency(model: OpenedModel, tokenizer: AlbertTokenizer, tokens: int) -> float:
    """Seconds of a row of so many tokens, in the median; which tokens they are makes no difference."""
    vocabulary = tokenizer.vocabulary
    if not 2 <= tokens <= tokenizer.max_length:
        raise InputError(f"lengths: expected 2 to {tokenizer.max_length} tokens, got {tokens}")
    row = [vocabulary.cls_id, *[vocabulary.unk_id] * (tokens - 2), vocabulary.sep_id]
    model.run(row, [0] * tokens, vocabulary.pad_id)  # the runtime allocates anew for a new length
    found: list[float] = []
    while not found or (len(found) < _MOST_RUNS and sum(found) < _SECONDS):
        started = time.perf_counter()
        model.run(row, [0] * tokens, vocabulary.pad_id)
        found.append(time.perf_counter() - started)
    return statistics.median(found)


def _resident_bytes() -> int:
    """The resident size of this process; where the system tells only its peak, that."""
    if sys.platform == "linux":
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes on macOS


def _main() -> None:
    path, threads, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    asked = json.load(sys.stdin)
    try:
        measured = _measure_here(path, asked["texts"], asked["lengths"], threads, repeats)
    except InputError as error:
        sys.exit(str(error))
    print(json.dumps(dataclasses.asdict(measured)))


if __name__ == "__main__":
    _main()
