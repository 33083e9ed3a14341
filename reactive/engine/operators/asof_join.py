"""As-of joins: each left row with the right row of its key that is nearest in time.

    left  10       25              trades, by time
    right    12 20    30           quotes, by time
    backward       25 -> 20        the last quote before or at the time of the trade
    + right 22                     only trades from 22 up to the next quote, 30, may change

A right row is the partner of left rows up to its neighbours in time, so a change of it touches only
the left rows between these, whatever the numbers of rows are.

State:  the rows of both sides, by key and time.
Cost:   O(log rows) per changed row, and the left rows between a changed right row and its
        neighbours.
Source: kdb+ `aj`, Kx Systems, as the change of a step function.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from reactive.engine.collections.index import NO_MATCH, match_key
from reactive.engine.collections.sorted_copies import KeyedValues, value_key
from reactive.engine.collections.values import delete_from_order, insert_in_order
from reactive.engine.collections.zset import Pair, Pairs, Row, canonical, is_nan

NOBODY: Any = object()
"""In place of a partner that is not there: a row may be None."""
SURE = frozenset({int, str})
"""Classes whose values are equal to themselves, and to no value of another form."""
Placed = tuple[Any, Any, Any, int]
"""A row by its key and time: `(key, time, row, weight)`."""


class TimedRows:
    """Rows of one key of one side, by their times.

        times    3 5 8                         sorted; a `SortedList` if there are many
        rows     {3: one, 5: several, 8: one}  a row with its weight, or `KeyedValues` by value

    Rows of negative weight are there on the left only.
    """

    __slots__ = ("_is_left", "_rows", "_times")

    def __init__(self, *, is_left: bool = False) -> None:
        self._is_left = is_left
        self._times: Any = []
        self._rows: dict[Any, tuple[Row, int] | KeyedValues] = {}

    def add(self, time: Any, row: Row, weight: int) -> None:
        """Add to the weight of a row, or change nothing if its time does not compare."""
        held = self._rows.get(time)
        was = held is not None and self._are_there(held)
        new: tuple[Row, int] | KeyedValues | None
        if held is None:
            new = (row, weight) if weight else None
        elif isinstance(held, tuple) and (held[0] is row or held[0] == row):
            new = (row, held[1] + weight) if held[1] + weight else None
        else:
            new = held if isinstance(held, KeyedValues) else self._several(held)
            new.add(row, weight)
            if new.is_zero:
                new = None
        is_there = new is not None and self._are_there(new)
        if is_there != was:
            self._set_time(time, is_there=is_there)
        if new is None:
            self._rows.pop(time, None)
        else:
            self._rows[time] = new

    def _several(self, held: tuple[Row, int]) -> KeyedValues:
        """Return rows of one time, with one to begin with."""
        found = KeyedValues(_by_hash if self._is_left else _by_value, keeps_negative=self._is_left)
        found.add(*held)
        return found

    def _are_there(self, held: tuple[Row, int] | KeyedValues) -> bool:
        if isinstance(held, tuple):
            return self._is_left or held[1] > 0
        return len(held) > 0

    def _set_time(self, time: Any, *, is_there: bool) -> None:
        """Insert or delete a time."""
        if is_there:
            self._times = insert_in_order(self._times, time)
        else:
            delete_from_order(self._times, time)

    def has_time(self, time: Any) -> bool:
        """Return True if a row with a time may be a partner."""
        held = self._rows.get(time)
        return held is not None and self._are_there(held)

    def drop(self, time: Any) -> bool:
        """Drop the rows with a time; return True if there were any."""
        held = self._rows.pop(time, None)
        if held is not None and self._are_there(held):
            self._set_time(time, is_there=False)
        return held is not None

    def first_at(self, time: Any) -> Row:
        """Return the least row with a time; it has one."""
        held = self._rows[time]
        return held[0] if isinstance(held, tuple) else held.first()

    def last_time(self, before: Any, *, or_at: bool) -> Any:
        """Return the last time before another one, or at it; None if there is none."""
        place = self._place(before, after=or_at)
        return self._times[place - 1] if place else None

    def first_time(self, after: Any, *, or_at: bool) -> Any:
        """Return the first time after another one, or at it; None if there is none."""
        place = self._place(after, after=not or_at)
        return self._times[place] if place < len(self._times) else None

    def _place(self, time: Any, *, after: bool) -> int:
        """Return the number of times before a time, or up to it."""
        times = self._times
        if type(times) is list:
            return bisect_right(times, time) if after else bisect_left(times, time)
        return int(times.bisect_right(time) if after else times.bisect_left(time))

    def between(self, first: Any, last: Any) -> Iterator[tuple[Any, Row, int]]:
        """Return the rows of the times from `first` to `last`; None: without an end."""
        start = 0 if first is None else self._place(first, after=False)
        stop = len(self._times) if last is None else self._place(last, after=True)
        for time in self._times[start:stop]:
            held = self._rows[time]
            if isinstance(held, tuple):
                yield (time, *held)
            else:
                for row in held:
                    yield time, row, held.weight(row)

    @property
    def is_zero(self) -> bool:
        """True if all that was added has been removed."""
        return not self._rows

    def __len__(self) -> int:
        return sum(1 if isinstance(held, tuple) else len(held) for held in self._rows.values())

    def __sizeof__(self) -> int:
        parts = (self._rows, *self._rows.values())
        return object.__sizeof__(self) + 8 * len(self._times) + sum(map(sys.getsizeof, parts))


def _by_hash(row: Row, weight: int) -> Any:
    return hash(row)


def _by_value(row: Row, weight: int) -> Any:
    return value_key(row)


class Nearest:
    """The rule by which a partner is chosen.

    >>> rows = TimedRows()
    >>> for time in (12, 20, 30): rows.add(time, f"at {time}", 1)
    >>> Nearest("backward").partner(25, rows), Nearest("forward").partner(25, rows)
    ('at 20', 'at 30')
    """

    def __init__(
        self,
        direction: Literal["backward", "forward", "nearest"],
        tolerance: Any = None,
        *,
        is_strict: bool = False,
    ) -> None:
        self._looks_back = direction != "forward"
        self._looks_ahead = direction != "backward"
        self._tolerance = tolerance
        self._or_at = not is_strict
        self.is_shared = tolerance is None and direction != "nearest"
        """True if all left rows between two neighbours of the right have the same partner."""

    def partner(self, time: Any, rows: TimedRows | None) -> Row:
        """Return the row of the other side for a time; `NOBODY` if there is none."""
        if rows is None:
            return NOBODY
        before = rows.last_time(time, or_at=self._or_at) if self._looks_back else None
        after = rows.first_time(time, or_at=self._or_at) if self._looks_ahead else None
        if before is not None and after is not None:
            found = before if time - before <= after - time else after
        else:
            found = after if before is None else before
        if found is None or not self._is_near(time, found):
            return NOBODY
        return rows.first_at(found)

    def followers(self, time: Any, others: TimedRows | None, rows: TimedRows) -> list[Any]:
        """Return the rows, with times, of which a row at `time` is the partner if it is there.

        `others` are the rows of its side. The partner `is_shared`.
        """
        first, last = self.reach(time, others)
        found = list(rows.between(first, last))
        begin, end = 0, len(found)
        leaves_first = self._looks_ahead if self._or_at else self._looks_back
        if leaves_first and first is not None:
            while begin < end and found[begin][0] == first:
                begin += 1
        if not leaves_first and last is not None:
            while begin < end and found[end - 1][0] == last:
                end -= 1
        return found[begin:end]

    def _is_near(self, time: Any, found: Any) -> bool:
        if self._tolerance is None:
            return True
        distance = time - found if found <= time else found - time
        return bool(distance <= self._tolerance)

    def reach(self, time: Any, rows: TimedRows | None) -> tuple[Any, Any]:
        """Return the first and the last time of which a row at `time` may be the partner.

        `rows` are the others of its side. None is a time without a bound.
        """
        first, last = None if self._looks_ahead else time, None if self._looks_back else time
        if rows is not None:
            if self._looks_ahead:
                first = rows.last_time(time, or_at=False)
            if self._looks_back:
                last = rows.first_time(time, or_at=False)
        if self._tolerance is None:
            return first, last
        if self._looks_ahead and (first is None or time - first > self._tolerance):
            first = time - self._tolerance
        if self._looks_back and (last is None or last - time > self._tolerance):
            last = time + self._tolerance
        return first, last


class AsofJoin:
    """Pair the rows `(row, key, time)` of the left with their partners.

    Parameters
    ----------
    pair: left row, and its partner or None -> row.
    is_left: rows without a partner are kept, with None.

    >>> join = AsofJoin(lambda row, other: (row, other), Nearest("backward"))
    >>> join.step([(("trade", "A", 25), 1)], [(("old", "A", 20), 1), (("new", "A", 30), 1)])
    [(('trade', 'old'), 1)]
    >>> join.commit()
    >>> join.step([], [(("newer", "A", 22), 1)])
    [(('trade', 'old'), -1), (('trade', 'newer'), 1)]
    """

    __slots__ = (
        "_changes",
        "_is_left",
        "_left",
        "_nearest",
        "_pair",
        "_right",
        "_timeless",
        "touched",
    )

    def __init__(
        self, pair: Callable[[Row, Any], Row], nearest: Nearest, *, is_left: bool = False
    ) -> None:
        self._pair = pair
        self._nearest = nearest
        self._is_left = is_left
        self._left: dict[Any, TimedRows] = {}
        self._right: dict[Any, TimedRows] = {}
        self._timeless: dict[Row, int] = {}
        """The left rows without a key or a time, which have no partner."""
        self._changes: list[tuple[bool, Placed]] = []
        self.touched = 0

    def step(self, left: Pairs, right: Pairs) -> list[Pair]:
        """Pair the changed left rows with old partners, then give all left rows their new ones."""
        self.touched += len(left) + len(right)
        out: list[Pair] = []
        partner_of, right_of = self._nearest.partner, self._right.get
        for row, key, time, weight in _placed(left):
            if time is None:
                self._add_timeless(row, weight, out)
                continue
            self._emit(row, partner_of(time, right_of(key)), weight, out)
            self._change((key, time, row, weight), is_left=True)
        if not right:
            return out
        changed: dict[Any, list[Placed]] = {}
        for row, key, time, weight in _placed(right):
            if time is not None:
                changed.setdefault(key, []).append((key, time, row, weight))
        for key, placed in changed.items():
            self._change_partners(key, placed, out)
        return out

    def _change_partners(self, key: Any, placed: list[Placed], out: list[Pair]) -> None:
        """Change right rows of a key, and the partners of the left rows near them."""
        rows = self._left.get(key)
        if rows is None:
            for each in placed:
                self._change(each, is_left=False)
            return
        nearest, partners = self._nearest, self._right.get(key)
        if nearest.is_shared and len(placed) == 1:
            self._change_partner(rows, placed[0], out)
            return
        near: dict[int, tuple[Any, Row, int, Row]] = {}
        for time in dict.fromkeys(each[1] for each in placed):
            for at, row, weight in rows.between(*nearest.reach(time, partners)):
                if id(row) not in near:
                    near[id(row)] = (at, row, weight, nearest.partner(at, partners))
        self.touched += len(near)
        for each in placed:
            self._change(each, is_left=False)
        partners = self._right.get(key)
        for at, row, weight, old in near.values():
            new = nearest.partner(at, partners)
            if new is not old and new != old:
                self._emit(row, old, -weight, out)
                self._emit(row, new, weight, out)

    def _change_partner(self, rows: TimedRows, placed: Placed, out: list[Pair]) -> None:
        """Change one right row, which `is_shared`, and the partner of the left rows near it."""
        key, time = placed[:2]
        near, partners = self._nearest, self._right.get(key)
        followers = near.followers(time, partners, rows)
        if not followers:
            self._change(placed, is_left=False)
            return
        self.touched += len(followers)
        at = followers[0][0]
        old = near.partner(at, partners)
        self._change(placed, is_left=False)
        new = near.partner(at, self._right.get(key))
        if new is not old and new != old:
            for _, row, weight in followers:
                self._emit(row, old, -weight, out)
                self._emit(row, new, weight, out)

    def _emit(self, row: Row, partner: Row, weight: int, out: list[Pair]) -> None:
        if partner is not NOBODY:
            out.append((self._pair(row, partner), weight))
        elif self._is_left:
            out.append((self._pair(row, None), weight))

    def _add_timeless(self, row: Row, weight: int, out: list[Pair]) -> None:
        """Add a left row that has no key or no time."""
        if self._is_left:
            self._change((NO_MATCH, None, row, weight), is_left=True)
            self._emit(row, NOBODY, weight, out)

    def _change(self, placed: Placed, *, is_left: bool) -> None:
        """Change the weight of a row, and note it for `undo`."""
        self._set(placed, is_left=is_left)
        self._changes.append((is_left, placed))

    def _set(self, placed: Placed, *, is_left: bool) -> None:
        key, time, row, weight = placed
        if time is None:
            new = self._timeless.get(row, 0) + weight
            if new:
                self._timeless[row] = new
            else:
                del self._timeless[row]
            return
        side = self._left if is_left else self._right
        rows = side.get(key)
        if rows is None:
            rows = TimedRows(is_left=is_left)
        rows.add(time, row, weight)
        if rows.is_zero:
            side.pop(key, None)
        else:
            side[key] = rows

    def undo(self) -> None:
        """Revert the last step."""
        for is_left, (key, time, row, weight) in reversed(self._changes):
            self._set((key, time, row, -weight), is_left=is_left)
        self._changes = []

    def commit(self) -> None:
        self._changes = []

    def contents(self) -> Iterator[Pair]:
        out: list[Pair] = []
        for key, rows in self._left.items():
            partners = self._right.get(key)
            for time, row, weight in rows.between(None, None):
                self._emit(row, self._nearest.partner(time, partners), weight, out)
        for row, weight in self._timeless.items():
            self._emit(row, NOBODY, weight, out)
        return iter(out)

    def footprint(self) -> tuple[int, int]:
        """Return the number of stored rows, and the bytes of the state."""
        sides = (*self._left.values(), *self._right.values())
        size = sum(map(sys.getsizeof, (self._left, self._right, self._timeless, *sides)))
        return sum(map(len, sides)) + len(self._timeless), size


def _placed(delta: Pairs) -> Iterable[tuple[Row, Any, Any, int]]:
    """Return rows with key, time and weight; the time is None for a row that matches nothing."""
    found = []
    for (row, key, time), weight in delta:
        if key.__class__ not in SURE:
            key = match_key(canonical(key))
        if time.__class__ not in SURE:
            time = canonical(time)
            if is_nan(time):
                time = None
        found.append((row, key, None if key is NO_MATCH else time, weight))
    return found
