"""Known findings of the recorded histories."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import TypeAlias

from examples.findbugs.analyses import ANALYSES
from examples.findbugs.recorded import Revision
from examples.findbugs.replay.sources import history_at, of_history

Course: TypeAlias = tuple[int, int, int]
"""Number of findings at first and at last, and of revisions in which they change."""

KNOWN: dict[str, dict[str, Course]] = {
    "vespucci": {"L": (94, 94, 0)},
    "hibernate": {
        "C": (1, 1, 0),
        "D": (3, 3, 0),
        "G": (6, 11, 3),
        "K": (14, 19, 3),
        "L": (8, 9, 1),
    },
    "flashcards": {"D": (0, 1, 1), "E": (1, 1, 8), "K": (1, 1, 2), "L": (2, 0, 1)},
    "py4j": {"G": (1, 0, 1), "L": (2, 0, 1)},
}
"""Courses by letter; the other analyses never find anything."""

SIZES = {"vespucci": (243, 86_599), "hibernate": (21, 515_692)} | {
    "flashcards": (18, 39_832),
    "py4j": (23, 30_352),
}
"""Revisions, and facts that differ in all of them."""


def course(sizes: Iterable[set[object]]) -> Course:
    """Return the course of the findings after each revision."""
    found = [*sizes]
    changed = sum(before != after for before, after in pairwise(found))
    return len(found[0]), len(found[-1]), changed


def known(name: str) -> dict[str, Course]:
    """Return the course of every analysis in a history."""
    return {letter: KNOWN[name].get(letter, (0, 0, 0)) for letter in ANALYSES}


@cache
def revisions(name: str) -> tuple[Revision, ...]:
    """The revisions of a history, read once."""
    return tuple(of_history(history_at(name)))
