"""A program: the facts of its classes in tables, and what all analyses find in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from examples.findbugs.analyses import ANALYSES, kinds_read, name_of
from examples.findbugs.difference import Difference
from examples.findbugs.facts import KINDS, Fact, Facts
from examples.findbugs.tables import Tables
from reactive import Batch, Database, Ingestion, Table, View

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
    >>> program.put({"shop/Cart": {MethodDecl: [finalize]}})
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
        tables: dict[type, Table[Any]] = {kind: self.tables.of(kind) for kind in self.kinds}
        self.source: Ingestion[Fact] = self.db.ingest(None, tables, name="classes")
        """Each class is an origin, and its facts are its rows."""

    def put(self, changes: Mapping[str, Facts]) -> None:
        """Replace the facts of some classes, in one transaction; a class without facts is gone.

        Only facts that differ from the earlier ones are changes. The cost is that of comparing the
        facts of these classes, and of the effects of the changed ones.
        """
        origins = {name: self._of_kinds(facts) for name, facts in changes.items()}
        self.source.take(Batch(origins=origins))

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
        return sorted(map(str, self.source.origins))

    def all_facts(self) -> Facts:
        """Return the facts of all classes, of the kinds that matter."""
        found: dict[type[Fact], list[Any]] = {kind: [] for kind in KINDS}
        for facts in self.source.origins.values():
            for fact in facts:
                found[type(fact)].append(fact)
        return found

    def _of_kinds(self, facts: Facts) -> dict[type, Sequence[Fact]]:
        return {kind: rows for kind, rows in facts.items() if kind in self.kinds}
