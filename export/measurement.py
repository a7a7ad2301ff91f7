"""Load time, memory and latency of a `.tflite` file, each measured in a process of its own.

Run as a program it measures one file on the JSON list of texts on standard input and prints JSON:
`echo '["a text"]' | python -m export.measurement model.tflite THREADS REPEATS`.
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
from albert_tf.tokenization.packing import pad_batch
from export.metadata import check_model, read_files, read_settings
from export.runtime import open_model, open_tokenizer

WARM_UP_RUNS = 3
_ROOT = Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What one file costs on this machine.

    Attributes:
        load_ms: from the path to being ready for the first text.
        tokenizer_load_ms: what of it the tokenizer took.
        memory_growth_bytes: resident memory after every text was answered, less that before the load.
        tokenizer_growth_bytes: what of it came with the tokenizer; the rest came with the model.
        median_latency_ms: of one text, ids to answer.
        mean_tokens: mean length of the texts.
        threads: CPU threads used.
    """

    load_ms: float
    tokenizer_load_ms: float
    memory_growth_bytes: int
    tokenizer_growth_bytes: int
    median_latency_ms: float
    mean_tokens: float
    threads: int


def measure(path: str | Path, texts: Sequence[str], *, threads: int = 1, repeats: int = 3) -> Measurement:
    """Measures `path` on `texts` in a fresh process, so that nothing loaded before counts.

    Raises:
        InputError: no texts, `repeats` below 1, or the file cannot be run.
    """
    if isinstance(texts, str) or not len(texts):
        raise InputError(f"texts: expected a list of at least one text to measure on, got {texts!r}")
    for name, value in (("threads", threads), ("repeats", repeats)):
        if value < 1:
            raise InputError(f"{name}: expected at least 1, got {value}")
    command = [sys.executable, "-m", "export.measurement", str(path), str(threads), str(repeats)]
    # The new process must find this very package, also where it is not installed.
    search = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        command,
        input=json.dumps(list(texts)),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": search},
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"])[-1]
        raise InputError(f"{path}: cannot be measured: {reason.removeprefix(f'{path}: ')}")
    return Measurement(**json.loads(done.stdout.splitlines()[-1]))


def _measure_here(path: str, texts: list[str], threads: int, repeats: int) -> Measurement:
    from ai_edge_litert import interpreter  # noqa: F401  # its own code is not the file's memory

    # What TFLiteRunner does, in two parts.
    memory, started = _resident_bytes(), time.perf_counter()
    files = read_files(path)
    settings = read_settings(files, path)
    tokenizer = open_tokenizer(files, settings, path)
    del files
    tokenizer_growth, tokenizer_load = _resident_bytes() - memory, time.perf_counter() - started
    check_model(path, settings)
    model = open_model(path, threads)
    load = time.perf_counter() - started
    encoded = sorted(tokenizer.encode_batch(texts), key=lambda example: len(example[0]))
    batches = [pad_batch([example], tokenizer.vocabulary.pad_id, settings["length"]) for example in encoded]
    for batch in batches[-1:] * WARM_UP_RUNS:
        model(**batch)
    latencies = []
    for _ in range(repeats):
        for batch in batches:
            started = time.perf_counter()
            model(**batch)
            latencies.append(time.perf_counter() - started)
    return Measurement(
        load_ms=1e3 * load,
        tokenizer_load_ms=1e3 * tokenizer_load,
        memory_growth_bytes=_resident_bytes() - memory,
        tokenizer_growth_bytes=tokenizer_growth,
        median_latency_ms=1e3 * statistics.median(latencies),
        mean_tokens=statistics.fmean(len(token_ids) for token_ids, _ in encoded),
        threads=threads,
    )


def _resident_bytes() -> int:
    """The resident size of this process; where the system tells only its peak, that."""
    if sys.platform == "linux":
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes on macOS


def _main() -> None:
    path, threads, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    try:
        measured = _measure_here(path, json.load(sys.stdin), threads, repeats)
    except InputError as error:
        sys.exit(str(error))
    print(json.dumps(dataclasses.asdict(measured)))


if __name__ == "__main__":
    _main()
