"""The texts that the bundled encoder learned from: sentences of books and encyclopedias, and WordNet's words and examples.

    apt-get download wordnet-base fortunes fortunes-min && for file in *.deb; do dpkg-deb -x $file debian; done
    python tools/albert_tiny_en/make_texts.py --sentences novels_train.txt.xz --paragraphs wiki_vital.txt \\
        --wordnet debian/usr/share/wordnet --fortunes debian/usr/share/games/fortunes --out texts.txt

One text a line, each once, in a random order that is the same every time. What a dictionary brings are the words that books
of a hundred years ago lack, each alone and in its definition.
"""

import argparse
import random
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from albert_tf.data.text_files import text_lines

_QUOTES = {"’": "'", "‘": "'", "“": '"', "”": '"', "``": '"', "''": '"', "—": " - ", "--": " - ", "_": ""}
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_PARAGRAPH_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"])")
_LEFT_OUT = ("ascii-art", "perl", "translate-me")  # no sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=Path, required=True, help="a sentence a line")
    parser.add_argument("--most-words", type=int, default=3_600_000, help="of --sentences (default 3,600,000)")
    parser.add_argument(
        "--passages", type=int, default=4_000, help="of --sentences, 60 to 380 words long (default 4,000)"
    )
    parser.add_argument("--paragraphs", type=Path, required=True, help="a paragraph a line")
    parser.add_argument(
        "--wordnet", type=Path, required=True, help="folder of data.noun, data.verb, data.adj, data.adv"
    )
    parser.add_argument(
        "--fortunes", type=Path, required=True, help="folder of files whose texts are parted by % lines"
    )
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    args = parser.parse_args()
    chance = random.Random(1)
    found = [*of_wordnet(args.wordnet), *of_fortunes(args.fortunes), *of_paragraphs(args.paragraphs)]
    found += of_sentences(args.sentences, args.most_words, chance)
    found += passages(args.sentences, args.passages, chance)
    texts = [text for text in dict.fromkeys(map(plain, found)) if any(character.isalpha() for character in text)]
    chance.shuffle(texts)
    args.out.write_text("\n".join(texts) + "\n", encoding="utf-8")
    print(f"{len(texts):,} texts of {sum(len(text.split()) for text in texts):,} words")


def plain(text: str) -> str:
    """One space between words, and typewriter's quotes."""
    text = unicodedata.normalize("NFKC", text)
    for sign, replacement in _QUOTES.items():
        text = text.replace(sign, replacement)
    return " ".join(text.split())


def of_wordnet(folder: Path) -> Iterator[str]:
    """Every word, alone once; each sense as "words: definition"; and the examples."""
    seen: set[str] = set()
    for part in ("adj", "adv", "noun", "verb"):
        for line in (folder / f"data.{part}").read_text(encoding="latin1").splitlines():
            if line.startswith("  "):  # the licence
                continue
            fields, gloss = line.split(" | ", 1)
            values = fields.split()
            words = [
                re.sub(r"\(.*?\)", "", word).replace("_", " ") for word in values[4 : 4 + 2 * int(values[3], 16) : 2]
            ]
            yield from (word for word in words if word.lower() not in seen)
            seen.update(word.lower() for word in words)
            gloss = plain(gloss)
            definition = re.sub(r';?\s*"[^"]+"', "", gloss).strip(" ;")
            yield ", ".join(words) + ": " + definition
            yield from (example for example in re.findall(r'"([^"]+)"', gloss) if " " in example)


def of_fortunes(folder: Path) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        if path.suffix or path.name in _LEFT_OUT:
            continue
        for text in path.read_text(encoding="utf-8", errors="ignore").split("\n%\n"):
            said = plain(re.sub(r"\n\s*-- .*", "", text, flags=re.DOTALL))  # without who said it
            yield from (sentence for sentence in _SENTENCE_END.split(said) if 3 <= len(sentence.split()) <= 60)


def of_paragraphs(path: Path) -> Iterator[str]:
    for line in text_lines(path):
        yield from (part for part in _PARAGRAPH_SENTENCE_END.split(plain(line)) if 3 <= len(part.split()) <= 80)


def of_sentences(path: Path, most_words: int, chance: random.Random) -> Iterator[str]:
    """Sentences drawn until they have so many words."""
    sentences = list(dict.fromkeys(text for line in text_lines(path) if 4 <= len((text := plain(line)).split()) <= 60))
    chance.shuffle(sentences)
    for sentence in sentences:
        most_words -= len(sentence.split())
        yield sentence
        if most_words < 0:
            return


def passages(path: Path, count: int, chance: random.Random) -> Iterator[str]:
    """Neighbouring sentences together: what places far into a text learn from."""
    sentences = [text for line in text_lines(path) if (text := plain(line))]
    for _ in range(count):
        words: list[str] = []
        start, wanted = chance.randrange(len(sentences)), chance.randint(60, 380)
        while len(words) < wanted and start < len(sentences):
            words += sentences[start].split()
            start += 1
        yield " ".join(words[:wanted])


if __name__ == "__main__":
    main()
