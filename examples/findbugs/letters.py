"""The analyses that a user selects, by their letters or names."""

from __future__ import annotations

from argparse import ArgumentTypeError

from examples.findbugs.analyses import ANALYSES, name_of


def letters(text: str) -> list[str]:
    """Return the letters of analyses, in their order: as `A,C`, `AC` or `DM_GC`, in any case.

    Raises
    ------
    ArgumentTypeError: there is no such analysis; the message lists all analyses.

    >>> letters("ca, dm_gc")
    ['A', 'C', 'E']
    """
    asked = {letter for word in text.split(",") for letter in _of_word(word.strip().upper())}
    return [letter for letter in ANALYSES if letter in asked]


def _of_word(word: str) -> list[str]:
    """Return the letters that a letter, a name or letters without commas stand for."""
    named = [letter for letter in ANALYSES if word in (letter, name_of(ANALYSES[letter]))]
    if named:
        return named
    if not word or any(letter not in ANALYSES for letter in word):
        known = "".join(f"\n  {letter} {name_of(one)}" for letter, one in ANALYSES.items())
        raise ArgumentTypeError(f"there is no analysis {word!r}, but{known}")
    return [*word]
