"""Rows that expire: each tick of the clock deletes those whose time is up, in its commit.

    codes = db.table(Code, expire_after=timedelta(minutes=5), at="sent")

    sent     12:00  12:01  12:01  12:04          the rows by their moments, sorted
    tick     12:06                               now - 5 minutes = 12:01: three rows are deleted

Rows of the open transaction are found among its changes. The rows of earlier commits are sorted at
a tick, together with the deltas since the last one. A rolled back tick changes nothing here.

State:  the moments, sorted, and the rows of each.
Cost:   O(log n) per row that was added or removed, and per row that expires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sortedcontainers import SortedList

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.kinds.fields import TRACKED
from optimizer.plans.declared_kinds import declared_classes
from reactive.api.clock import clock_of, expire_at_ticks, instant_of
from reactive.api.columns import take_callable
from reactive.api.over_time import check_age
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.storage.rows import key_function
from reactive.engine.storage.store import NONE
from reactive.engine.transactions.followers import followers_of
from reactive.engine.transactions.row_gate import CommittedRows
from reactive.errors import TableError

if TYPE_CHECKING:
    from reactive.api.table import Table

FEW = 1024
"""Rows of which deltas are noted, however few rows the table has."""


class Expiry:
    """Deletes the rows of a table that are as old as `after`, or older, by the clock.

    at: callable, row -> datetime, or None for a row that never expires.
    """

    def __init__(self, table: Table[Any], at: Callable[[Row], Any], after: timedelta) -> None:
        self._table = table
        self._at = at
        self._after = after
        self._clock = clock_of(table._engine)
        self._is_naive: bool | None = None
        self._rows: _RowsByMoment | None = None
        """The rows of the last commit, but for the noted deltas; None if all are to be read."""
        self._deltas: list[Sequence[Pair]] = []
        self._waiting = 0
        followers_of(table).expiry = self

    def check(self, delta: Sequence[Pair]) -> None:
        """Refuse a change that adds a row whose moment the clock cannot be compared with.

        Raises
        ------
        TableError: a moment is no datetime, or has a time zone where the clock has none, or the
            other way round. Before the clock is set, both are accepted.
        """
        clock: Any = self._clock._parameter._store
        now = clock.get(())
        is_naive = self._is_naive = None if now is None else now.tzinfo is None
        at, moment = self._at, self._moment
        for row, weight in delta:
            if weight > 0:
                try:
                    found = at(row)
                except Exception:
                    found = None  # which raises again, with a note
                if type(found) is not datetime or (found.tzinfo is None) is not is_naive:
                    moment(row)

    def note(self, delta: Sequence[Pair], rows: int) -> None:
        """Note the delta of a commit; forget all rows if there are more changes than rows."""
        if self._rows is not None:
            self._deltas.append(delta)
            self._waiting += len(delta)
            if self._waiting > max(rows, FEW):
                self.forget()

    def forget(self) -> None:
        """Forget the rows, to read them all at the next tick."""
        self._rows, self._deltas, self._waiting = None, [], 0

    def delete_until(self, now: datetime) -> None:
        """Delete the rows whose time is up, as a part of the open transaction.

        Raises
        ------
        TableError: the moment of a row cannot be compared with the clock.
        """
        engine, table = self._table._engine, self._table
        self._is_naive = now.tzinfo is None
        try:
            limit = now - self._after
        except OverflowError:
            return
        with engine.graph.running():
            due = dict.fromkeys([*self._committed().until(limit), *self._added_until(limit)])
        count = table._store.count
        copies = [row for row in due for _ in range(count(row))]
        if copies:
            engine.write(table, table._do.remove_known, copies)

    def next(self, now: datetime) -> datetime | None:
        """Return when the first row expires; None if there is none."""
        self._is_naive = now.tzinfo is None
        first = self._committed().first()
        try:
            return None if first is None else first + self._after
        except OverflowError:
            return None

    def _committed(self) -> _RowsByMoment:
        """Return the rows of the last commit."""
        rows, deltas = self._rows, self._deltas
        if rows is None:
            changed = [pair for delta in self._pending() for pair in delta]
            store: Any = self._table._store
            store = CommittedRows(store, changed) if changed else store
            rows, deltas = _RowsByMoment(self._moment), [store.pairs()]
        self.forget()  # if a row is refused, all are read again
        for delta in deltas:
            rows.change(delta)
        self._rows = rows
        return rows

    def _pending(self) -> Iterator[Sequence[Pair]]:
        """Yield the deltas of the open transaction."""
        pending = self._table._engine.mine
        for table, delta in () if pending is None else (*pending, *pending.beneath):
            if table is self._table:
                yield delta

    def _added_until(self, limit: datetime) -> Iterator[Row]:
        """Yield the rows that the open transaction added, up to a moment."""
        for delta in self._pending():
            for row, weight in delta:
                moment = self._moment(row) if weight > 0 else None
                if moment is not None and moment <= limit:
                    yield row

    def _moment(self, row: Row) -> datetime | None:
        """Return the moment of a row, in UTC if it has a zone; None if the row never expires."""
        try:
            found = self._at(row)
        except Exception as error:
            error.add_note(f"  in at= of table {self._table.name!r}, on row {row!r:.200}")
            raise
        if found is None:
            return None
        is_naive = self._is_naive
        is_moment = isinstance(found, datetime)
        if not is_moment or is_naive not in (None, found.tzinfo is None):
            zone = {None: "", True: " without a time zone", False: " with a time zone"}[is_naive]
            raise TableError(
                f"at= of table {self._table.name!r} is {found!r} of row {row!r:.200}\n"
                f"  the clock takes datetimes{zone}; a row of which it is None never expires"
            )
        return instant_of(found)


class _Weights(dict[Row, int]):
    """The rows of one moment, with their weights."""


class _RowsByMoment:
    """The rows of a table, sorted by their moments.

    >>> rows = _RowsByMoment(lambda row: datetime(2024, 5, row))
    >>> rows.change([(3, 1), (1, 1), (2, 1), (1, -1)])
    >>> list(rows.until(datetime(2024, 5, 2)))
    [2]
    """

    def __init__(self, moment: Callable[[Row], datetime | None]) -> None:
        self._moment = moment
        self._rows: dict[datetime, Any] = {}
        """The only row of a moment, with weight 1; or the `_Weights` of its rows."""
        self._sorted: Any = SortedList()

    def change(self, delta: Iterable[Pair]) -> None:
        """Apply a delta."""
        rows, moment_of = self._rows, self._moment
        was: dict[datetime, bool] = {}
        """The changed moments, with True for those that had rows."""
        for row, weight in delta:
            moment = moment_of(row)
            if moment is None:
                continue
            held = rows.get(moment, NONE)
            was.setdefault(moment, held is not NONE)
            if held is NONE and weight == 1:
                rows[moment] = row
            else:
                self._change_weight(moment, held, row, weight)
        for moment in [each for each, had in was.items() if had and each not in rows]:
            self._sorted.remove(moment)
        self._sorted.update([each for each, had in was.items() if not had and each in rows])

    def _change_weight(self, moment: datetime, held: Any, row: Row, weight: int) -> None:
        """Change the weight of a row of a moment."""
        if type(held) is not _Weights:
            held = self._rows[moment] = _Weights({} if held is NONE else {held: 1})
        left = held.get(row, 0) + weight
        if left:
            held[row] = left
            return
        del held[row]
        if not held:
            del self._rows[moment]

    def until(self, limit: datetime) -> Iterator[Row]:
        """Yield the rows up to a moment."""
        for moment in self._sorted.irange(None, limit):
            held = self._rows[moment]
            yield from held if type(held) is _Weights else (held,)

    def first(self) -> datetime | None:
        """Return the first moment; None without rows."""
        return self._sorted[0] if self._sorted else None


def check_expiry(row_type: Any, stored: bool, after: Any, at: Any) -> Callable[[Any], Any]:
    """Return `at` as a callable, of a table whose rows expire.

    Raises
    ------
    PlanError: one of them is missing or of another class, or the rows are not stored.
    """
    if after is None or at is None:
        given, missing = ("at", "expire_after") if after is None else ("expire_after", "at")
        raise PlanError(
            f"a table with {given}= takes {missing}=, too\n"
            '  write expire_after=timedelta(hours=1), at="at", with the field of its moment'
        )
    check_age(after)
    if not stored:
        raise PlanError("the rows of a table with expire_after= must be stored, to be deleted")
    if hasattr(row_type, TRACKED):
        raise PlanError(
            "a table of tracked objects takes no expire_after=: their moments may change\n"
            "  remove them by the rows of a view: where(lambda row: now() - row.at > ...)"
        )
    if not isinstance(at, str) and not callable(at):
        raise PlanError(f"at= takes the name of a field or a callable, not {at!r:.100}")
    made = take_callable(key_function(row_type, at), 1, "at of table")
    kinds = declared_classes(made, plan.Table(0, "", None, True, row_type))
    if kinds and datetime not in kinds:
        names = " or ".join(sorted(kind.__name__ for kind in kinds))
        raise PlanError(
            f"at= of a table with expire_after= is of class {names}, by its annotation\n"
            "  rows expire by a datetime; make one of the value: at=lambda row: ..."
        )
    function: Any = made.function
    return function  # type: ignore[no-any-return]


def begin_expiry(table: Table[Any], after: timedelta, at: Callable[[Any], Any]) -> None:
    """Let the rows of a new table expire."""
    expiry = Expiry(table, at, after)
    expire_at_ticks(clock_of(table._engine), table.plan.number, expiry)
