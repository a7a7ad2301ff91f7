"""Templates and lists of words → texts: `{list}`, `{list.tag}`, `{this|that}`, `{name=this|that}`, `[TYPE text]`, `@a`."""

import random
import re
from collections.abc import Iterable
from pathlib import Path

_LIST = re.compile(r"(\w+)(?: ([A-Z]+))?: (.*)")
_REFERENCE = re.compile(r"\w+(\.\w+)?")
_BINDING = re.compile(r"(\w+)=")
_TYPED = re.compile(r"\[([A-Z]+) ")
_ARTICLE = re.compile(r"@([aA]) (?=[\W_]*(\w+))")
# Words that do not begin with the sound that their first letter stands for.
_VOWEL_SOUND = re.compile(r"(hour|honest|hono|heir|[aefhilmnorsx]\d*$|8|11$|18$|[aeiou])", re.IGNORECASE)
_CONSONANT_SOUND = re.compile(r"(uni(?!n)|us[eu]|eu|one|once|ut[ei])", re.IGNORECASE)
# Around the words of an entity: START type BETWEEN words END.
START, BETWEEN, END = "\x01", "\x02", "\x03"
_MARKS = re.compile(f"{START}[A-Z]+{BETWEEN}|{END}")


class Lists:
    """Lists of words by name; of some the type of entity that their words are."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.words: dict[str, list[str]] = {}
        self.types: dict[str, str] = {}
        for path in paths:
            name = ""
            for line in path.read_text(encoding="utf-8").splitlines():
                if not line.strip() or line.startswith("#"):
                    continue
                if found := _LIST.fullmatch(line):
                    name, kind, line = found.groups()
                    if kind:
                        self.types[name] = kind
                if not name:
                    raise ValueError(f"{path}: expected 'name: word; word', got {line!r}")
                words = [word.strip() for word in line.split(";") if word.strip()]
                self.words.setdefault(name, []).extend(words)


class Drawing:
    """One drawing: a list's name stands for the same word in all texts of it, other names and tags for other words."""

    def __init__(self, lists: Lists, random_numbers: random.Random) -> None:
        self.lists = lists
        self.random = random_numbers
        self.drawn: dict[str, str] = {}
        self.used: set[str] = set()

    def text(self, template: str) -> str:
        """The template with words in its places; entities between marks."""
        filled = self._filled(template, remember=True)
        return _ARTICLE.sub(lambda found: found[1] + ("n " if _begins_with_vowel(found[2]) else " "), filled)

    def choice(self, template: str) -> str:
        """The text of one of the alternatives that stand between bars."""
        return self.text("{" + template + "}" if "|" in template else template)

    def _filled(self, template: str, remember: bool) -> str:
        template = _TYPED.sub(lambda found: START + found[1] + BETWEEN, template).replace("]", END)
        result, place = [], 0
        while (opening := template.find("{", place)) >= 0:
            closing = _closing(template, opening)
            result += [template[place:opening], self._place(template[opening + 1 : closing], remember)]
            place = closing + 1
        return "".join(result) + template[place:]

    def _place(self, inside: str, remember: bool) -> str:
        if _REFERENCE.fullmatch(inside):
            if not remember:
                return self._from_list(inside)
            if inside not in self.drawn:
                self.drawn[inside] = self._unused(inside.split(".")[0])
            return self.drawn[inside]
        name = _BINDING.match(inside)
        if name:
            inside = inside[name.end() :]
        alternatives = _alternatives(inside)
        if len(alternatives) < 2 and not name:
            raise ValueError(f"{{{inside}}}: expected the name of a list, or alternatives with | between them")
        text = self._filled(self.random.choice(alternatives), remember)
        if name:
            self.drawn[name[1]] = text
        return text

    def _unused(self, name: str) -> str:
        for _ in range(200):
            word = self._from_list(name)
            if plain(word).lower() not in self.used:
                self.used.add(plain(word).lower())
                return word
        raise ValueError(f"list {name!r} has too few words")

    def _from_list(self, name: str) -> str:
        if name not in self.lists.words:
            raise ValueError(f"there is no list {name!r}")
        word = self._filled(self.random.choice(self.lists.words[name]), remember=False)
        kind = self.lists.types.get(name)
        return f"{START}{kind}{BETWEEN}{word}{END}" if kind else word


def plain(text: str) -> str:
    """The text without the marks of entities."""
    return _MARKS.sub("", text)


def capitalized(text: str) -> str:
    """The text with a capital at its beginning, past signs and marks."""
    found = re.match(rf"(?:{START}[A-Z]+{BETWEEN}|[\"'(“])*", text)
    place = found.end() if found else 0
    return text[:place] + text[place : place + 1].upper() + text[place + 1 :]


def _begins_with_vowel(word: str) -> bool:
    return bool(_VOWEL_SOUND.match(word)) and not _CONSONANT_SOUND.match(word)


def _closing(template: str, opening: int) -> int:
    depth = 0
    for place in range(opening, len(template)):
        depth += {"{": 1, "}": -1}.get(template[place], 0)
        if not depth:
            return place
    raise ValueError(f"{template!r}: a brace is not closed")


def _alternatives(inside: str) -> list[str]:
    parts, depth = [""], 0
    for character in inside:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts
