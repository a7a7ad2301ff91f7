"""Damages `.tflite` files in many ways and gives them to `albert-tf inspect`, `predict` and `evaluate`.

`python tests/fuzz_tflite.py --files 2000` makes a few small files, damages them, and runs the commands on each in worker
processes. Every command must end in time, with exit code 0, 1 or 2; where it is not 0, with one line on standard error;
and a file that `predict` takes must give the answers of the whole one. Where a worker ends, the command is given again as a
user gives it. The same seed gives the same files.

Half of the files are signed again: their settings record the sum of the damaged model, so that it reaches the runtime, as
no accident could.
"""

import argparse
import contextlib
import dataclasses
import io
import json
import os
import random
import re
import select
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from albert_tf.cli.main import main  # noqa: E402
from export.metadata import SETTINGS_FILE, append_files, model_record  # noqa: E402

COMMANDS = ("inspect", "predict", "evaluate")
SECONDS = 120  # far above what any of them takes on a busy machine
TEXTS = ("the old mill", "")
_TABLE = "text\tlabel\nthe old mill\tyes\nby the river\tno\n"
_NUMBERS = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)


def write_base_files(folder: Path) -> None:
    """The whole files: recipes, forms, metadata for MediaPipe, and a model that is not ours."""
    from tiny_exports import exported, new_classifier

    from export.tflite import export_tflite

    sources = [
        exported("all", "float32", "loop", None),
        exported("all", "dynamic_int8", "unrolled", 16),
        exported("all", "float16", "loop", 16),
    ]
    for number, source in enumerate(sources):
        (folder / f"{number}.tflite").write_bytes(source.read_bytes())
    export_tflite(new_classifier(scale=0.3), folder / "3.tflite", recipe="dynamic_int8", runtime="mediapipe")
    (folder / "4.tflite").write_bytes(keras_model())


def keras_model() -> bytes:
    """A TFLite model of two dense layers, as Keras and TensorFlow write it."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(size, bias_initializer="random_normal") for size in (4, 2)]
    model = keras.Sequential([keras.Input((8,), batch_size=1), layers[0], keras.layers.ReLU(), layers[1]])
    with tempfile.TemporaryDirectory() as folder:
        model.export(folder, verbose=False)
        return bytes(tf.lite.TFLiteConverter.from_saved_model(folder).convert())


def damaged(bases: list[bytes], number: int, seed: int) -> tuple[str, bytes]:
    """How file `number` is damaged, and its bytes."""
    rng = random.Random(f"{seed} {number}")
    whole = rng.choice(bases)
    kind = rng.choice(list(KINDS))
    model = model_size(whole)
    resigned = rng.random() < 0.5 and model < len(whole)
    content = KINDS[kind](rng, whole[:model] if resigned else whole, bases)
    if not resigned:
        return kind, content
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    settings = json.loads(files[SETTINGS_FILE]) | model_record(content)
    files[SETTINGS_FILE] = json.dumps(settings).encode()
    # The archive is made on its own: what is spliced into the model may look like one.
    return f"{kind}, signed again", content + append_files(b"", files)


def model_size(whole: bytes) -> int:
    """Where the archive of files begins."""
    found = whole.find(b"PK\x03\x04")
    return found if found > 0 else len(whole)


def _cut(rng: random.Random, content: bytes, bases: list[bytes]) -> bytes:
    return content[: rng.randrange(len(content))]


def _bits(rng: random.Random, content: bytes, bases: list[bytes]) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 4, 32, 256))):
        changed[_place(rng, content)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _random_bytes(rng: random.Random, content: bytes, bases: list[bytes]) -> bytes:
    start, size = _place(rng, content), rng.choice((1, 4, 16, 256, 4096))
    return content[:start] + rng.randbytes(size) + content[start + size :]


def _numbers(rng: random.Random, content: bytes, bases: list[bytes]) -> bytes:
    """Numbers that go wrong most often, where a flatbuffer has its numbers."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        place = _place(rng, content) & ~3
        changed[place : place + 4] = struct.pack("<I", rng.choice((*_NUMBERS, rng.randrange(len(content)))))
    return bytes(changed[: len(content)])


def _spliced(rng: random.Random, content: bytes, bases: list[bytes]) -> bytes:
    other = rng.choice(bases)
    start, end = sorted((_place(rng, content), _place(rng, content)))
    first = rng.randrange(len(other))
    piece = other[first : first + rng.choice((16, 256, 4096, end - start))]
    return content[:start] + piece + content[rng.choice((start, end, start + len(piece))) :]


def _noise(rng: random.Random, content: bytes, bases: list[bytes]) -> bytes:
    return content[: rng.choice((0, 4, 8, 64))] + rng.randbytes(rng.choice((0, 1, 100, 10_000)))


def _place(rng: random.Random, content: bytes) -> int:
    """A byte: anywhere, or where tables stand, which is at both ends of the model rather than among the weights."""
    size = model_size(content)
    places = (len(content), min(4096, size), size)
    place = rng.randrange(places[rng.randrange(3)])
    return place if rng.random() < 0.7 else max(0, size - 1 - rng.randrange(min(size, 20_000)))


KINDS = {
    "cut": _cut,
    "bits": _bits,
    "random bytes": _random_bytes,
    "numbers": _numbers,
    "spliced": _spliced,
    "noise": _noise,
}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a command did with a file; `code` is None where it ended the process or did not end."""

    number: int
    kind: str
    command: str
    code: int | None
    message: str
    answers: str
    seconds: float


def words_of(command: str, path: Path, table: Path) -> list[str]:
    return {
        "inspect": ["inspect", str(path)],
        "predict": ["predict", str(path), "--jsonl", *(word for text in TEXTS for word in ("--text", text))],
        "evaluate": ["evaluate", str(path), "--data", str(table)],
    }[command]


def run_command(command: str, path: Path, table: Path) -> tuple[int | None, str, str]:
    """Exit code, standard error and, of `predict`, the answers."""
    words = words_of(command, path, table)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: int | None = main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
        except BaseException as error:
            return None, f"traceback: {type(error).__name__}: {error}", ""
    return code, err.getvalue(), out.getvalue() if command == "predict" else ""


def work(folder: Path, numbers: range, seed: int, commands: list[str]) -> None:
    """Runs the commands on each file in this process; prints what it begins and how it ends, a JSON line each."""
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    bases = [path.read_bytes() for path in sorted(folder.glob("*.tflite"))]
    table = folder / "data.tsv"
    table.write_text(_TABLE, encoding="utf-8")
    for number in numbers:
        kind, content = damaged(bases, number, seed)
        path = folder / f"work.{os.getpid()}.damaged"
        path.write_bytes(content)
        for command in commands:
            print(json.dumps({"number": number, "kind": kind, "command": command}), file=report, flush=True)
            started = time.perf_counter()
            code, message, answers = run_command(command, path, table)
            seconds = time.perf_counter() - started
            print(json.dumps({"code": code, "message": message, "answers": answers, "seconds": seconds}), file=report)
        path.unlink()
    report.flush()


def outcomes(
    folder: Path, numbers: range, seed: int, commands: tuple[str, ...], *, first: str = ""
) -> Iterator[Outcome]:
    """Runs `work` in a process of its own, and in a new one after each file that ends it; `first` is code to run there."""
    left = list(commands)
    number = numbers.start
    while number < numbers.stop:
        calls = ((range(number, number + 1), left), (range(number + 1, numbers.stop), list(commands)))
        code = "\n".join(
            [
                f"import sys; sys.path[:0] = [{str(ROOT / 'tests')!r}]",
                "from pathlib import Path; import fuzz_tflite",
                first,
                *(f"fuzz_tflite.work(Path({str(folder)!r}), {span!r}, {seed}, {names!r})" for span, names in calls),
            ]
        )
        worker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        begun = None
        for line in _lines(worker):
            entry = json.loads(line)
            if "command" in entry:
                begun = entry
            elif begun is not None:
                yield Outcome(**begun, **entry)
                begun = None
        ended = worker.wait()
        if begun is None:
            if ended:
                raise RuntimeError(f"the worker ended with {ended} between two commands")
            break
        yield Outcome(**begun, code=None, message=f"the process ended with {ended}", answers="", seconds=0.0)
        rest = commands[commands.index(begun["command"]) + 1 :]
        number, left = (begun["number"], list(rest)) if rest else (begun["number"] + 1, list(commands))


def _lines(worker: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    """The lines that a worker prints; ends it when it is silent for too long."""
    assert worker.stdout is not None
    held = b""
    while True:
        ready, _, _ = select.select([worker.stdout], [], [], SECONDS)
        if not ready:
            worker.kill()
            return
        piece = os.read(worker.stdout.fileno(), 1 << 16)
        if not piece:
            return
        *whole, held = (held + piece).split(b"\n")
        yield from whole


def fault(outcome: Outcome, right_answers: set[str]) -> str | None:
    """What is wrong with an outcome; None where nothing is."""
    message = outcome.message
    if outcome.code is None:
        return message
    if outcome.code not in (0, 1, 2):
        return f"exit code {outcome.code}"
    if outcome.code and not (message.startswith("albert-tf: error: ") and message.count("\n") == 1):
        return f"exit code {outcome.code} with the message {message!r}"
    signed = "signed again" in outcome.kind  # who signs other weights asks for other answers
    if outcome.code == 0 and outcome.answers and not signed and outcome.answers not in right_answers:
        return "other answers than those of the whole file"
    return None


def as_program(outcome: Outcome, folder: Path, seed: int) -> Outcome:
    """What a user sees of the command that ended a worker."""
    bases = [path.read_bytes() for path in sorted(folder.glob("*.tflite"))]
    path = folder / "again.damaged"
    path.write_bytes(damaged(bases, outcome.number, seed)[1])
    command = [sys.executable, "-m", "albert_tf.cli.main", *words_of(outcome.command, path, folder / "data.tsv")]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, cwd=ROOT)
    code = None if done.returncode < 0 else done.returncode
    return dataclasses.replace(outcome, code=code, message=done.stderr)


def right_answers(folder: Path) -> set[str]:
    """What `predict` says of the whole files."""
    paths = sorted(folder.glob("*.tflite"))
    return {run_command("predict", path, folder)[2] for path in paths}


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_base_files(folder)
        right, counts, faults, slowest = right_answers(folder), Counter[str](), [], 0.0
        numbers = range(arguments.first, arguments.first + arguments.files)
        for outcome in outcomes(folder, numbers, arguments.seed, COMMANDS):
            if outcome.code is None:
                print(f"file {outcome.number} ({outcome.kind}), {outcome.command}: {outcome.message}", flush=True)
                outcome = as_program(outcome, folder, arguments.seed)
            counts[f"{outcome.command}: exit code {outcome.code}"] += 1
            slowest = max(slowest, outcome.seconds)
            if (wrong := fault(outcome, right)) is not None:
                faults.append(f"file {outcome.number} ({outcome.kind}), {outcome.command}: {wrong}")
                print(re.sub(r"\s+", " ", faults[-1]), flush=True)
    for what, count in sorted(counts.items()):
        print(f"{count:6} {what}")
    print(f"{arguments.files} files, {len(faults)} faults, slowest command {slowest:.1f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(_main())
