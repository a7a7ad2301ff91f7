"""Megabytes of text per second through the tokenizer in Java, ids and places, one thread.

    python benchmarks/java_tokenizer.py --data DATA --json java_tokenizer.json

DATA is a folder with corpora_en/wiki_vital.txt (36,344 lines, 4.9 MB) and albert_vocab_en/30k-clean.model. Needs a JDK,
Java 17 or later. One Java machine passes over all lines turn after turn, with a new tokenizer, which knows no word yet, and
with one that has seen the lines; figures are medians of all turns but the first, in which the machine compiles the code.
Time is the thread's own processor time; what has passed on the clock is in the figures of --json. About a minute.
"""

import statistics
import subprocess
import tempfile
from pathlib import Path

import common

from albert_tf.tokenization.tokenizer import AlbertTokenizer

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "android_demo_assets/java/org/alberttf").glob("*.java"))
CLIENT = ROOT / "tests/java/JavaClient.java"
NAMES = {"load": "load the vocabulary", "first": "first pass: a new tokenizer", "known": "lines seen before"}


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--turns", type=int, default=9, help="turns, the first of which only warms up (default 9)")
    args = parser.parse_args()
    if args.turns < 2:
        parser.error("--turns: expected at least 2")
    text = args.data / "corpora_en/wiki_vital.txt"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer = folder / "tokenizer"
        AlbertTokenizer.from_pretrained(args.data / "albert_vocab_en/30k-clean.model").save(tokenizer)
        subprocess.run(["javac", "--release", "17", "-encoding", "UTF-8", "-d", folder, *SOURCES, CLIENT], check=True)
        command = ["java", "-cp", folder, "JavaClient", "speed", tokenizer, text, str(args.turns)]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    megabytes = text.stat().st_size / 1e6
    seconds: dict[str, dict[str, list[float]]] = {part: {"processor": [], "clock": []} for part in NAMES}
    for part, processor, clock in map(str.split, lines):
        seconds[part]["processor"].append(float(processor))
        seconds[part]["clock"].append(float(clock))
    rows = [
        {
            "tokenizer in Java": title,
            "seconds": f"{statistics.median(seconds[part]['processor'][1:]):.3f}",
            "MB/s": "" if part == "load" else f"{megabytes / statistics.median(seconds[part]['processor'][1:]):.1f}",
            "first turn, seconds": f"{seconds[part]['processor'][0]:.3f}",
        }
        for part, title in NAMES.items()
    ]
    common.show(f"{megabytes:.1f} MB, one thread", rows, {"megabytes": megabytes, "seconds": seconds}, args.json)


if __name__ == "__main__":
    main()
