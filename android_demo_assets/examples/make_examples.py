"""Makes the question sets and the entity sets that ship with the package, and the larger sets that `make assets` trains
on; the same bytes on every run."""

import argparse
from pathlib import Path

from entity_sets import entity_set, read_sentences
from grammar import Lists
from message_sets import english_rows, message_set, read_templates
from question_sets import PassageTemplate, question_set, read_passages

from albert_tf.files import written_whole

HERE = Path(__file__).resolve().parent
DEMO = HERE.parents[1] / "albert_tf" / "assets" / "demo"
# Texts drawn from each template: of the sets that ship, and of those for training.
QUESTION_DRAWINGS = {"train": 3, "dev": 2}
ENTITY_DRAWINGS = {"train": 6, "dev": 4}
LARGE_QUESTION_DRAWINGS = {"train": 20, "dev": 4}
LARGE_ENTITY_DRAWINGS = {"train": 12, "dev": 4}
MESSAGE_DRAWINGS = {"train": 8, "dev": 0}
SEEDS = {"train": 20, "dev": 21}


def lists_of(part: str) -> Lists:
    """Words of the part's own and those that both may have, such as names of days."""
    return Lists([HERE / "slots" / "shared.txt", HERE / "slots" / f"{part}.txt"])


def made(part: str) -> dict[str, str]:
    """File name → text, of the part "train" or "dev"."""
    lists, passages, sentences = lists_of(part), _passages(part), _sentences(part)
    return {
        f"questions_{part}.json": question_set(passages, lists, QUESTION_DRAWINGS[part], SEEDS[part]),
        f"entities_{part}.conll": entity_set(sentences, lists, ENTITY_DRAWINGS[part], SEEDS[part]),
    }


def made_large(part: str) -> dict[str, str]:
    """The same of the sets for training, in English alone: more drawings, extracts of passages, and messages."""
    lists, passages, sentences = lists_of(part), _passages(part), _sentences(part)
    templates = [each for path in sorted((HERE / "messages").glob(f"{part}*.txt")) for each in read_templates(path)]
    written = {name: english_rows((DEMO / f"commands_{name}.tsv").read_text(encoding="utf-8")) for name in SEEDS}
    dev = frozenset(text for text, _ in written["dev"])
    drawings = LARGE_QUESTION_DRAWINGS[part]
    return {
        f"messages_{part}.tsv": message_set(written[part], templates, lists, MESSAGE_DRAWINGS[part], SEEDS[part], dev),
        f"questions_{part}.json": question_set(passages, lists, drawings, SEEDS[part], extracts=True),
        f"entities_{part}.conll": entity_set(sentences, lists, LARGE_ENTITY_DRAWINGS[part], SEEDS[part]),
    }


def _passages(part: str) -> list[PassageTemplate]:
    return [each for path in sorted((HERE / "questions").glob(f"{part}*.txt")) for each in read_passages(path)]


def _sentences(part: str) -> list[str]:
    return [each for path in sorted((HERE / "entities").glob(f"{part}*.txt")) for each in read_sentences(path)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder to write the files to")
    parser.add_argument("--large", action="store_true", help="the larger sets for training, with messages")
    arguments = parser.parse_args()
    for part in ("train", "dev"):
        for name, text in (made_large if arguments.large else made)(part).items():
            with written_whole(arguments.out / name, overwrite=True) as temporary:
                temporary.write_bytes(text.encode("utf-8"))


if __name__ == "__main__":
    main()
