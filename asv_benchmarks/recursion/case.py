"""A recursive case: a query, the same from scratch and by hand, rows, and kinds of edits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any, Protocol

from asv_benchmarks.workload import Row, Rows, TableDelta, TableOf
from reactive import Relation

Edit = tuple[TableDelta, ...]
"""The inserted and deleted rows of each table, in one transaction."""
Table = Collection[Row]
"""The rows of a table in no order that matters. No two are equal."""


class Program(Protocol):
    """A handwritten program for one query: it maintains its result row by row."""

    def add(self, table: int, row: Row, /) -> TableDelta:
        """Return the change of the result for an inserted row."""

    def remove(self, table: int, row: Row, /) -> TableDelta:
        """Return the change of the result for a deleted row."""

    def result(self) -> Iterable[Row]: ...


@dataclass(frozen=True, slots=True)
class Kind:
    """Edits of a kind. Each is applied and then undone, so that all begin with the same rows."""

    name: str
    edits: list[Edit]


@dataclass(frozen=True, slots=True)
class Case:
    """A recursive query; `rows(size, random)` makes its tables."""

    name: str
    title: str
    size: int
    """Number of nodes, if the rows are made for it."""
    tables: tuple[TableOf, ...]
    query: Callable[..., Relation[*tuple[Any, ...]]]
    scratch: Callable[..., Collection[Row]]
    """Function from the rows of each table to the result, as written without the engine."""
    program: Callable[[], Program] | None
    """The incremental program, where there is one to write."""
    rows: Callable[[int, Random], Rows]
    kinds: Callable[[Rows, Random], list[Kind]]
    gains: Mapping[str, float] = field(default_factory=dict)
    """The least gain over evaluation from scratch, in the median, by kind of edit."""
    judged: Collection[str] = ()
    """Kinds whose edits must all take at most twice as long as from scratch."""


def removals(rows: Iterable[Row], tables: int = 1, table: int = 0) -> list[Edit]:
    """Return edits that each remove one of the rows from a table."""
    return [_edit(TableDelta(removed=[row]), tables, table) for row in rows]


def additions(rows: Iterable[Row], tables: int = 1, table: int = 0) -> list[Edit]:
    """Return edits that each add one of the rows to a table."""
    return [_edit(TableDelta(added=[row]), tables, table) for row in rows]


def back(edit: Edit) -> Edit:
    """Return the edit that takes an edit back."""
    return tuple(TableDelta(delta.removed, delta.added) for delta in edit)


def sample(rows: Sequence[Row], count: int, random: Random) -> list[Row]:
    """Return some of the rows; all of few."""
    return random.sample(rows, min(count, len(rows)))


def others(rows: Collection[Row], make: Callable[[], Row], count: int) -> list[Row]:
    """Return new rows: made, and not among those there are."""
    there = set(rows)
    return list(islice((row for row in iter(make, None) if row not in there), count))


def _edit(delta: TableDelta, tables: int, table: int) -> Edit:
    return tuple(delta if number == table else TableDelta() for number in range(tables))
