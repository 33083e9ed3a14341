"""Random edits of single words: harmless ones, and ones that break a text for a while.

harmless   replace a word by another of the same kind
breaking   delete, insert or replace any word
repair     undo the last breaking edit; likely the next edit, else after a harmless one
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from examples.parser.grammar import Grammar
from examples.parser.text import Change, Text

BREAKING, REPAIRED = 0.4, 0.7
"""The share of breaking edits, and the share of them that the next edit undoes."""


@dataclass(frozen=True, slots=True)
class Edit:
    """The edit of the word at a place: an insert without `old`, a delete without `new`."""

    at: int
    old: str | None
    new: str | None

    def apply(self, text: Text) -> Change:
        """Edit the text."""
        if self.new is None:
            return text.remove(self.at)
        if self.old is None:
            return text.insert(self.at, self.new)
        return text.replace(self.at, self.new)

    @property
    def back(self) -> Edit:
        """The edit that takes this one back."""
        return Edit(self.at, self.new, self.old)

    def __str__(self) -> str:
        match self.old, self.new:
            case None, new:
                return f"word {self.at}: {new} comes"
            case old, None:
                return f"word {self.at}: {old} goes"
            case old, new:
                return f"word {self.at}: {old} becomes {new}"


def edits(text: Text, grammar: Grammar, seed: int) -> Iterator[Edit]:
    """Yield edits without end, each for the text at that moment."""
    random, alike = Random(seed), _alike(grammar)
    words = sorted(alike)
    broken: Edit | None = None
    while True:
        if broken is not None and random.random() < REPAIRED:
            edit, broken = broken.back, None
        elif broken is None and random.random() < BREAKING:
            edit = broken = _breaking(text, words, random)
        else:
            edit = _harmless(text, alike, random, but=broken)
        yield edit


def _harmless(text: Text, alike: Mapping[str, list[str]], random: Random, but: Edit | None) -> Edit:
    """Another word like it, somewhere else than at the place of `but`."""
    avoided = None if but is None else but.at
    places = [at for at, word in enumerate(text.words) if len(alike[word]) > 1 and at != avoided]
    at = random.choice(places)
    old = text.words[at]
    return Edit(at, old, random.choice([word for word in alike[old] if word != old]))


def _breaking(text: Text, words: list[str], random: Random) -> Edit:
    at = random.randrange(len(text.words))
    old = text.words[at]
    new = random.choice([word for word in words if word != old])
    return random.choice([Edit(at, old, None), Edit(at, None, new), Edit(at, old, new)])


def _alike(grammar: Grammar) -> dict[str, list[str]]:
    """Each word, with the words that are of the same categories, and equal as operators."""
    kinds: dict[str, set[object]] = {}
    for word, category in grammar.terminals:
        kinds.setdefault(word, set()).add(category)
    for operator in grammar.operators:
        kinds.setdefault(operator.word, set()).add(operator._replace(word=""))
    alike: dict[frozenset[object], list[str]] = {}
    for word, found in kinds.items():
        alike.setdefault(frozenset(found), []).append(word)
    return {word: alike[frozenset(found)] for word, found in kinds.items()}
