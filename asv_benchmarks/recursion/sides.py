"""The sides of a recursive case: the engine, all over again from scratch, and by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial

from asv_benchmarks.engine import Engine
from asv_benchmarks.measure import AS_WRITTEN, ENGINE, TWIN
from asv_benchmarks.recursion.case import Case, Edit, Program
from asv_benchmarks.workload import Listener, Result, Row, Rows, Side, TableDelta, Verb

SCRATCH = "scratch"
"""The side that recomputes the query after every change."""


class Scratch:
    """Keep the rows of the tables, and the result of the last evaluation.

    It does not compute changes, so its listener is not called.
    """

    def __init__(self, evaluate: Callable[..., Collection[Row]], tables: int) -> None:
        self._evaluate = evaluate
        self._tables: list[dict[Row, None]] = [{} for _ in range(tables)]
        self._result: Collection[Row] = ()

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(partial(self._add, table), partial(self._remove, table)) for table in self._tables]

    def batch(self, *deltas: TableDelta) -> None:
        for table, delta in zip(self._tables, deltas, strict=True):
            for row in delta.removed:
                del table[row]
            table.update(dict.fromkeys(delta.added))
        self._result = self._evaluate(*self._tables)

    def result(self) -> Result:
        return dict.fromkeys(self._result, 1)

    def _add(self, table: dict[Row, None], row: Row) -> None:
        table[row] = None
        self._result = self._evaluate(*self._tables)

    def _remove(self, table: dict[Row, None], row: Row) -> None:
        del table[row]
        self._result = self._evaluate(*self._tables)


class ByHand:
    """Keep the rows of the tables, to refuse the removal of an absent one; the rest is by hand."""

    def __init__(self, program: Program, tables: int, listener: Listener) -> None:
        self._program = program
        self._tables: list[set[Row]] = [set() for _ in range(tables)]
        self._listener = listener

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [
            (partial(self._add, table), partial(self._remove, table))
            for table in range(len(self._tables))
        ]

    def batch(self, *deltas: TableDelta) -> None:
        net: Counter[Row] = Counter()
        for table, delta in enumerate(deltas):
            for row in delta.removed:
                self._tables[table].remove(row)
                _count(net, self._program.remove(table, row))
            for row in delta.added:
                self._tables[table].add(row)
                _count(net, self._program.add(table, row))
        came = [row for row, weight in net.items() if weight > 0]
        self._tell(TableDelta(came, [row for row, weight in net.items() if weight < 0]))

    def result(self) -> Result:
        return dict.fromkeys(self._program.result(), 1)

    def _add(self, table: int, row: Row) -> None:
        self._tables[table].add(row)
        self._tell(self._program.add(table, row))

    def _remove(self, table: int, row: Row) -> None:
        self._tables[table].remove(row)
        self._tell(self._program.remove(table, row))

    def _tell(self, delta: TableDelta) -> None:
        if delta.added or delta.removed:
            gone = [(row, None) for row in delta.removed]
            self._listener.changes([*gone, *((None, row) for row in delta.added)])


def names_of(case: Case) -> list[str]:
    """Return the sides that a case has."""
    return [ENGINE, AS_WRITTEN, SCRATCH, *([TWIN] if case.program else [])]


def side_of(case: Case, name: str, listener: Listener) -> Side:
    """Return the empty side of a name."""
    if name == SCRATCH:
        return Scratch(case.scratch, len(case.tables))
    if name == TWIN:
        assert case.program
        return ByHand(case.program(), len(case.tables), listener)
    return Engine(case, listener, optimize=name == ENGINE)


def fill(side: Side, rows: Rows) -> None:
    """All rows of all tables in one transaction."""
    side.batch(*(TableDelta(added=table) for table in rows))


def doing(side: Side, edit: Edit) -> Callable[[], object]:
    """Return an edit of a side, ready to be called; a single row is one call of a user."""
    rows = [(table, row) for table, delta in enumerate(edit) for row, _ in delta.pairs()]
    if len(rows) > 1:
        return partial(side.batch, *edit)
    table, row = rows[0]
    add, remove = side.verbs()[table]
    return partial(add if edit[table].added else remove, row)


def _count(net: Counter[Row], delta: TableDelta) -> None:
    for row, weight in delta.pairs():
        net[row] += weight
