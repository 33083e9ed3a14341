"""The changes of a transaction so far: the changes of each statement, in their order.

What follows from them is found when it is asked for: the net changes of a table, which others
subtract from what they read (`committed.py`), and by which rows that were removed come again as the
objects that they were.

State:  the changes; per table that was asked for, their sum.
Cost:   of a statement that of appending to a list; of what follows from it O(its rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reactive.engine.collections.zset import Batch, Pair, Row, consolidate, negate, net_by_identity

if TYPE_CHECKING:
    from reactive.engine.transactions.base import Base
    from reactive.engine.transactions.commit import Between, Change


class Pending(list["Change"]):
    """What has been changed, and is committed or undone at the end: a change per statement.

    Made by `nothing_pending`, which takes half of the time of an `__init__`.
    """

    __slots__ = (
        *("_lost", "_sums", "beneath", "between", "depth", "failed", "is_prepared", "other"),
        *("owner", "updates"),
    )
    beneath: list[Change]
    """The commits of others since this was first set aside, which it does not see."""
    between: Between
    """What is called between the phases of the commit."""
    depth: int
    """How many transactions are open within the outermost one."""
    failed: bool
    is_prepared: bool
    """Whether it takes no more statements: its operators step, or have stepped."""
    owner: Any
    """Who has it open, while it is set aside."""
    updates: Any
    """The rows that it has replaced by others, while it is set aside."""
    other: Any
    """What is committed with it (`two_commits/others.py`), or None."""
    _sums: dict[Base, _Net] | None
    _lost: dict[Base, _Lost] | None

    def has(self, changes: Sequence[Pair]) -> bool:
        """Whether these are the changes of the last statement."""
        return bool(self) and self[-1][1] is changes

    def interned(self, table: Base, rows: Sequence[Row]) -> list[Row]:
        """Each row as the object that an equal row was which has been removed, or as itself."""
        if self._lost is None:
            self._lost = {}
        lost = self._lost.get(table)
        if lost is None:
            lost = self._lost[table] = _Lost(table)
        known = lost.after(self)
        return list(map(known.get, rows, rows))

    def forget(self) -> None:
        """The statements have been replaced by others: what was known of them is not."""
        self._sums = self._lost = None

    def of(self, table: Base) -> list[Pair]:
        """The net changes of a table; less what others have committed, which is not in it."""
        net = [pair for pair in self._net_of(table).values() if pair[1]]
        if not self.beneath:
            return net
        others = [pair for changed, delta in self.beneath if changed is table for pair in delta]
        return consolidate([*net, *negate(others)])

    def changes(self) -> list[Change]:
        """The changes of all tables that have any, each as one delta."""
        found: dict[Base, list[Sequence[Pair]]] = {}
        for table, changes in self:
            if table._node is not None:  # no assignment to an object
                found.setdefault(table, []).append(changes)
        each = [(table, self._delta(table, parts)) for table, parts in found.items()]
        return [change for change in each if change[1]]

    def _delta(self, table: Base, parts: Sequence[Sequence[Pair]]) -> Sequence[Pair]:
        """The statements' changes as one; net, if rows are inserted and deleted."""
        if len(parts) == 1:
            return parts[0]
        pairs = [pair for changes in parts for pair in changes]
        gone, come = ([row for part in parts for row in _rows(part, come=c)] for c in (False, True))
        if not gone or not come:
            return pairs
        if not table.plan.stored:
            return consolidate(pairs)
        if not table._store.interns:
            return self.of(table)
        are_others = {*map(id, gone)}.isdisjoint(map(id, come))
        return pairs if are_others else net_by_identity(pairs)

    def _net_of(self, table: Base) -> dict[Row, Pair]:
        if self._sums is None:
            self._sums = {}
        net = self._sums.get(table)
        if net is None:
            net = self._sums[table] = _Net(table)
        return net.after(self)


class _Lost:
    """The rows that statements have removed from a table.

    Should an equal row come again, it must become the object that the indexes know.
    """

    __slots__ = ("_rows", "_seen", "_table")

    def __init__(self, table: Base) -> None:
        self._rows: dict[Row, Row] = {}
        self._seen = 0
        self._table = table

    def after(self, statements: Sequence[Change]) -> dict[Row, Row]:
        """Those of all statements, each of which is looked at when it is first seen."""
        while self._seen < len(statements):
            table, changes = statements[self._seen]
            if table is self._table:
                gone = _rows(changes, come=False)
                self._rows.update(zip(gone, gone, strict=True))
            self._seen += 1
        return self._rows


class _Net:
    """The changes of a table's statements, added up per row."""

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


NOTHING: list[Any] = []
"""The `beneath` of a transaction that was never set aside. Not to be changed."""


def nothing_pending(between: Between) -> Pending:
    """Of a transaction that begins, which has this to be called at its end."""
    pending = Pending()
    pending.between, pending.depth = between, 0
    pending.failed = pending.is_prepared = False
    pending._sums = pending._lost = pending.other = None
    pending.beneath = NOTHING
    return pending


def _rows(changes: Sequence[Pair], *, come: bool) -> Sequence[Row]:
    """The rows that are inserted, or those that are deleted."""
    if type(changes) is Batch:
        return changes.rows if (changes.weight > 0) is come else ()
    return [row for row, weight in changes if (weight > 0) is come]
