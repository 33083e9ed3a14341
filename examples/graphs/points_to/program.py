"""A program: the facts of its files in tables, and the analysis over them, live."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from examples.graphs.points_to.extract import extract
from examples.graphs.points_to.facts import Fact
from examples.graphs.points_to.query import points_to
from examples.graphs.points_to.tables import Tables
from examples.live_lint.folder import Folder
from reactive import Database

Facts: TypeAlias = frozenset[Fact]


class Program:
    """Some files as facts, and what they may hold and call, in three views.

    >>> program = Program()
    >>> program.put({"a.py": extract("a", b"import b\\nx = b.make()\\n")})
    >>> program.put({"b.py": extract("b", b"def make():\\n    return []\\n")})
    >>> [str(site) for site in program.sites("a:x")]
    ['list from b.make:1']
    """

    def __init__(self) -> None:
        self.db = Database()
        self.tables = Tables(self.db)
        analysis = points_to(self.tables)
        self.points = analysis.points.materialize("points")
        self.holds = analysis.holds.materialize("holds")
        self.calls = analysis.calls.materialize("calls")
        self._facts: dict[str, Facts] = {}

    def put(self, changes: Mapping[str, Facts]) -> None:
        """Replace the facts of some files, in one transaction; only what differs is changed."""
        with self.db.transaction():
            for file, facts in changes.items():
                old = self._facts.get(file, frozenset())
                for kind, rows in _by_kind(old - facts).items():
                    self.tables.of(kind).remove_all(rows)
                for kind, rows in _by_kind(facts - old).items():
                    self.tables.of(kind).add_all(rows)
        self._facts.update(changes)

    def facts(self) -> list[Fact]:
        """Return the facts of all files."""
        return [fact for facts in self._facts.values() for fact in facts]

    def sites(self, variable: str) -> list[Any]:
        """Return the objects that a variable may hold."""
        return sorted((p.site for p in self.points if p.variable == variable), key=str)


def facts_of(folder: Folder, file: str, source: bytes) -> Facts:
    """Return the facts of a file of a folder."""
    return extract(folder.module(file), source, is_package=file.endswith("__init__.py"))


def _by_kind(rows: Iterable[Fact]) -> dict[type[Any], list[Fact]]:
    kinds: dict[type[Any], list[Fact]] = defaultdict(list)
    for row in rows:
        kinds[type(row)].append(row)
    return kinds
