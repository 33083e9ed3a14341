"""A program: the facts of its classes in tables, and what all analyses find in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from examples.findbugs.analyses import ANALYSES, kinds_read, name_of
from examples.findbugs.difference import Difference, difference
from examples.findbugs.facts import KINDS, Fact, Facts
from examples.findbugs.tables import Tables
from reactive import Database, View

NONE: Facts = {}


class Program:
    """All classes of a program as facts, with one view per analysis.

    Parameters
    ----------
    letters: the analyses to keep up to date.
    stored: whether the tables keep their rows. The analyses do not need it, but views that are
        made later do, and `view.verify()`.
    optimize: whether the queries are run as the optimizer makes them, or as they are written.

    >>> from examples.findbugs.facts import MethodDecl
    >>> program = Program()
    >>> finalize = MethodDecl("shop/Cart", "finalize()V", 1, "finalize", (), "V")
    >>> len(program.put({"shop/Cart": {MethodDecl: [finalize]}}))
    1
    >>> [found.cls for found in program.views["I"]]
    ['shop/Cart']
    """

    def __init__(
        self,
        letters: Iterable[str] = tuple(ANALYSES),
        *,
        stored: bool = False,
        optimize: bool = True,
    ) -> None:
        self.db = Database(optimize=optimize)
        self.tables = Tables(self.db, stored=stored)
        self.views: dict[str, View[Any]] = {
            letter: ANALYSES[letter](self.tables).materialize(name_of(ANALYSES[letter]))
            for letter in letters
        }
        self.kinds = KINDS if stored else kinds_read(self.views)
        """The kinds of facts that matter; others are left out of the tables."""
        self._facts: dict[str, Facts] = {}

    def put(self, changes: Mapping[str, Facts]) -> Difference:
        """Replace the facts of some classes, in one transaction; a class without facts is gone.

        Only the facts that differ from those of before are changes, so the cost is that of
        comparing the facts of these classes, and of what the differing ones affect.
        """
        change = difference({name: self.facts(name) for name in changes}, changes)
        self.apply(change)
        self._facts.update(changes)
        for name in [name for name, facts in changes.items() if not facts]:
            del self._facts[name]
        return change

    def apply(self, change: Difference) -> None:
        """Take facts away and add others, in one transaction, without keeping whose they are."""
        with self.db.transaction():
            for kind in self.kinds:
                if kind in change.removed:
                    self.tables.of(kind).remove_all(change.removed[kind])
                if kind in change.added:
                    self.tables.of(kind).add_all(change.added[kind])

    @property
    def classes(self) -> list[str]:
        """The classes that there are."""
        return sorted(self._facts)

    def facts(self, name: str) -> Facts:
        """What was put for a class."""
        return self._facts.get(name, NONE)

    def all_facts(self) -> Facts:
        """What was put for all classes."""
        found: dict[type[Fact], list[Any]] = {kind: [] for kind in KINDS}
        for facts in self._facts.values():
            for kind, rows in facts.items():
                found[kind] += rows
        return found
