"""All facts in plain dictionaries, and what the analyses find in them when run from scratch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from examples.findbugs.difference import Difference
from examples.findbugs.facts import KINDS, Fact
from examples.findbugs.plain import PLAIN
from examples.findbugs.program import Program
from examples.findbugs.recorded import HistoryError


class Mirror:
    """All facts by kind, kept beside a program so that its views can be checked.

    It has the facts of all kinds: a program that leaves out too many has other findings. They are
    counted, as tables count rows: a recorded history has a class of two jars twice.
    """

    def __init__(self) -> None:
        self.facts: dict[type[Fact], dict[Any, int]] = {kind: {} for kind in KINDS}

    def apply(self, change: Difference) -> None:
        """Take facts away and add others.

        Raises
        ------
        HistoryError: a fact that is to be taken away is not there.
        """
        for kind, rows in change.removed.items():
            facts = self.facts[kind]
            for row in rows:
                left = facts.pop(row, 0) - 1
                if left < 0:
                    raise HistoryError(f"a fact is taken away that is not there: {row}")
                if left:
                    facts[row] = left
        for kind, rows in change.added.items():
            facts = self.facts[kind]
            for row in rows:
                facts[row] = facts.get(row, 0) + 1

    def evaluate(self, letters: Iterable[str]) -> dict[str, set[Any]]:
        """Return the findings of analyses from scratch, if they have a plain evaluation."""
        return {letter: PLAIN[letter](self.facts) for letter in letters if letter in PLAIN}


def without_plain(letters: Iterable[str]) -> list[str]:
    """Return the analyses that nothing can be compared with."""
    return [letter for letter in letters if letter not in PLAIN]


def differing(program: Program, expected: dict[str, set[Any]]) -> dict[str, set[Any]]:
    """Return the rows that a view has too few or too many times, by letter; {} if all are equal."""
    found = {
        letter: {row for row, _ in {*program.views[letter].items()} ^ {(row, 1) for row in rows}}
        for letter, rows in expected.items()
    }
    return {letter: rows for letter, rows in found.items() if rows}
