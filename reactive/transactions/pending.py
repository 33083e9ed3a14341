"""The changes of a transaction so far: the changes of each statement, in their order.

What follows from them is found when it is asked for: which rows were removed and may come again,
and the net changes of a table, which others subtract from what they read (`committed.py`).

State:  the changes; per table that was asked for, their sum.
Cost:   of a statement that of appending to a list; of what follows from it O(its rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reactive.collections.zset import Batch, Pair, Row, consolidate

if TYPE_CHECKING:
    from reactive.transactions.base import Base
    from reactive.transactions.commit import Between, Change


class Pending:
    """What has been changed, and is committed or undone at the end."""

    __slots__ = ("_sums", "between", "depth", "failed", "statements")

    def __init__(self, between: Between = ()) -> None:
        self.statements: list[Change] = []
        self.between = between
        """What is called between the phases of the commit."""
        self.depth = 1
        """How often it has been entered and not yet left."""
        self.failed = False
        self._sums: _Sums | None = None

    def has(self, changes: Sequence[Pair]) -> bool:
        """Whether these are the changes of the last statement."""
        return bool(self.statements) and self.statements[-1][1] is changes

    def has_lost(self, table: Base) -> bool:
        """Whether rows of a stored table have been removed, which may come again."""
        return table.plan.stored and self._summed().has_lost(table)

    def interned(self, table: Base, row: Row) -> Row:
        """The object that an equal row is in this transaction, or the row itself."""
        known = self._summed().net_of(table).get(row)
        return row if known is None else known[0]

    def of(self, table: Base) -> list[Pair]:
        """The net changes of a table."""
        return [pair for pair in self._summed().net_of(table).values() if pair[1]]

    def changes(self) -> list[Change]:
        """The changes of all tables that have any, each as one delta."""
        tables = dict.fromkeys([table for table, _ in self.statements])
        found = [(table, self._delta(table)) for table in tables]
        return [change for change in found if change[1]]

    def _delta(self, table: Base) -> Sequence[Pair]:
        """The statements' changes as one; net, if rows are inserted and deleted."""
        statements = [changes for of, changes in self.statements if of is table]
        if len(statements) == 1:
            return statements[0]
        if self.has_lost(table):
            return self.of(table)
        pairs = [pair for changes in statements for pair in changes]
        return consolidate(pairs) if self._summed().has_lost(table) else pairs

    def _summed(self) -> _Sums:
        if self._sums is None:
            self._sums = _Sums(self.statements)
        return self._sums


class _Sums:
    """What follows from statements, each of which is looked at when that is first asked for."""

    __slots__ = ("_lost", "_net", "_seen", "_statements")

    def __init__(self, statements: Sequence[Change]) -> None:
        self._statements = statements
        self._lost: set[Base] = set()
        self._seen = 0
        self._net: dict[Base, _Net] = {}

    def has_lost(self, table: Base) -> bool:
        """Whether rows of a table have been removed."""
        while self._seen < len(self._statements):
            of, changes = self._statements[self._seen]
            if of not in self._lost and _removes(changes):
                self._lost.add(of)
            self._seen += 1
        return table in self._lost

    def net_of(self, table: Base) -> dict[Row, Pair]:
        net = self._net.get(table)
        if net is None:
            net = self._net[table] = _Net(table)
        return net.after(self._statements)


class _Net:
    """The changes of a table's statements, added up per row.

    A row whose changes cancel stays in here: should an equal row come again, it must become the
    object that the indexes know.
    """

    __slots__ = ("_pairs", "_seen", "_table")

    def __init__(self, table: Base) -> None:
        self._table = table
        self._pairs: dict[Row, Pair] = {}
        self._seen = 0

    def after(self, statements: Sequence[Change]) -> dict[Row, Pair]:
        """The sum of all statements, each of which is added when it is first seen."""
        try:
            while self._seen < len(statements):
                table, changes = statements[self._seen]
                if table is self._table:
                    for row, weight in changes:
                        known, old = self._pairs.get(row, (row, 0))
                        self._pairs[row] = (known, old + weight)
                self._seen += 1
        except BaseException:  # half added: begin again the next time
            self._pairs, self._seen = {}, 0
            raise
        return self._pairs


def _removes(changes: Sequence[Pair]) -> bool:
    if type(changes) is Batch:
        return changes.weight < 0
    return any(weight < 0 for _, weight in changes)
