"""Makes the question sets and the entity sets that ship with the package; the same bytes on every run."""

import argparse
from pathlib import Path

from entity_sets import entity_set, read_sentences
from grammar import Lists
from question_sets import question_set, read_passages

from albert_tf.files import written_whole

HERE = Path(__file__).resolve().parent
# Texts drawn from each template.
QUESTION_DRAWINGS = {"train": 3, "dev": 2}
ENTITY_DRAWINGS = {"train": 6, "dev": 4}
SEEDS = {"train": 20, "dev": 21}


def lists_of(part: str) -> Lists:
    """Words of the part's own and those that both may have, such as names of days."""
    return Lists([HERE / "slots" / "shared.txt", HERE / "slots" / f"{part}.txt"])


def made(part: str) -> dict[str, str]:
    """File name → text, of the part "train" or "dev"."""
    lists = lists_of(part)
    passages = [each for path in sorted((HERE / "questions").glob(f"{part}*.txt")) for each in read_passages(path)]
    sentences = [each for path in sorted((HERE / "entities").glob(f"{part}*.txt")) for each in read_sentences(path)]
    return {
        f"questions_{part}.json": question_set(passages, lists, QUESTION_DRAWINGS[part], SEEDS[part]),
        f"entities_{part}.conll": entity_set(sentences, lists, ENTITY_DRAWINGS[part], SEEDS[part]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder to write the four files to")
    arguments = parser.parse_args()
    for part in ("train", "dev"):
        for name, text in made(part).items():
            with written_whole(arguments.out / name, overwrite=True) as temporary:
                temporary.write_bytes(text.encode("utf-8"))


if __name__ == "__main__":
    main()
