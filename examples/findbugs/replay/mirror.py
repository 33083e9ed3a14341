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
    """The facts of a program by kind, kept beside its views so that these can be checked."""

    def __init__(self) -> None:
        self.facts: dict[type[Fact], dict[Any, Any]] = {kind: {} for kind in KINDS}

    def apply(self, change: Difference) -> None:
        """Take facts away and add others.

        Raises
        ------
        HistoryError: a fact that is to be taken away is not there.
        """
        for kind, rows in change.removed.items():
            facts = self.facts[kind]
            for row in rows:
                if facts.pop(row, self) is self:
                    raise HistoryError(f"a fact is taken away that is not there: {row}")
        for kind, rows in change.added.items():
            self.facts[kind].update(dict.fromkeys(rows))

    def evaluate(self, letters: Iterable[str]) -> dict[str, set[Any]]:
        """What the analyses find, each from scratch."""
        return {letter: PLAIN[letter](self.facts) for letter in letters}


def differing(program: Program, expected: dict[str, set[Any]]) -> dict[str, set[Any]]:
    """By letter the rows that a view has too few or too many times; {} if all are equal."""
    found = {
        letter: {row for row, _ in {*view.items()} ^ {(row, 1) for row in expected[letter]}}
        for letter, view in program.views.items()
    }
    return {letter: rows for letter, rows in found.items() if rows}
