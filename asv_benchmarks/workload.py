"""A workload: a query, a twin, the first rows and the changes.

The engine, the engine on the plan as written, and the twin are the sides of a workload. They are
given the same rows and changes, keep a result that can be read at any time, and report its changes
to a listener.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from random import Random
from typing import Any, NamedTuple, Protocol

from reactive import Delta, Relation

Row = Any
OldNew = tuple[Row | None, Row | None]
"""A row of the result and the one in its place; None where there is none."""
Rows = tuple[list[Row], ...]
"""The rows of each table."""
Verb = Callable[[Row], object]
Result = dict[Row, int] | list[Row]
"""Rows with their weights; the rows in order, of an ordered query."""


class Change(NamedTuple):
    """One row that is added to a table (weight 1) or removed from it (-1)."""

    table: int
    row: Row
    weight: int


class TableDelta(NamedTuple):
    """Inserted and deleted rows of one batch; no row is both."""

    added: Sequence[Row] = ()
    removed: Sequence[Row] = ()

    def pairs(self) -> Iterator[tuple[Row, int]]:
        """Yield removed rows, then added ones, with their weights."""
        return chain(zip(self.removed, repeat(-1)), zip(self.added, repeat(1)))


class Listener(Protocol):
    """Whom the sides tell: the engine a `Delta`, the twin old and new rows."""

    def delta(self, delta: Delta[Any], /) -> object: ...
    def change(self, old: Row | None, new: Row | None, /) -> object: ...
    def changes(self, changes: list[OldNew], /) -> object: ...


class Side(Protocol):
    """The engine or a twin."""

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        """Return the functions that add and remove a row, for each table."""

    def batch(self, *deltas: TableDelta) -> None:
        """Change tables together: one delta per table, and the listener is called once."""

    def result(self) -> Result: ...


class Stream(Protocol):
    """Changes that keep the tables at their size: in turn a row is added and one removed."""

    def visible(self) -> Change:
        """Return the next change, chosen so that the result changes."""

    def ordinary(self) -> Change:
        """Return the next change, of any row."""


@dataclass(frozen=True, slots=True)
class TableOf:
    """A table of a workload."""

    row_type: type[Any]
    key: str | None = None


class Asked(Protocol):
    """A query, and the tables that it reads."""

    @property
    def name(self) -> str: ...
    @property
    def tables(self) -> tuple[TableOf, ...]: ...
    @property
    def query(self) -> Callable[..., Relation[*tuple[Any, ...]]]: ...


@dataclass(frozen=True, slots=True)
class Workload:
    """`rows(size, random)` makes the tables; the first has `size` rows."""

    name: str
    title: str
    tables: tuple[TableOf, ...]
    query: Callable[..., Relation[*tuple[Any, ...]]]
    twin: Callable[[Listener], Side]
    rows: Callable[[int, Random], Rows]
    stream: Callable[[Rows, Random], Stream]


def load(side: Side, rows: Rows, *, part: int | None = None) -> None:
    """Fill the tables, the largest last, each in one batch; the largest in parts of `part` rows."""
    for table in reversed(range(len(rows))):
        size = part if part and not table else len(rows[table]) or 1
        for start in range(0, len(rows[table]), size):
            none = [TableDelta()] * len(rows)
            none[table] = TableDelta(added=rows[table][start : start + size])
            side.batch(*none)


def batch_of(stream: Stream, size: int, tables: int) -> tuple[TableDelta, ...]:
    """Return the net of the next `size` ordinary changes as a batch."""
    net: dict[tuple[int, Row], int] = {}
    for _ in range(size):
        table, row, weight = stream.ordinary()
        net[table, row] = net.get((table, row), 0) + weight
    return tuple(
        TableDelta(
            added=[row for (table, row), weight in net.items() if (table, weight) == (wanted, 1)],
            removed=[
                row for (table, row), weight in net.items() if (table, weight) == (wanted, -1)
            ],
        )
        for wanted in range(tables)
    )
