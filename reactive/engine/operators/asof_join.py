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
from collections.abc import Callable, Iterator
from typing import Any, Literal

from reactive.engine.collections.index import NO_MATCH, match_key
from reactive.engine.collections.timed_rows import TimedRows
from reactive.engine.collections.zset import Pair, Pairs, Row, UniformDelta, canonical, is_nan

NOBODY: Any = object()
"""In place of a partner that is not there: a row may be None."""
SURE = frozenset({int, str})
"""Classes whose values are equal to themselves, and to no value of another form."""
Placed = tuple[Any, Row, int]
"""A row of a key: `(time, row, weight)`."""


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
        self.looks_back = direction != "forward"
        self.looks_ahead = direction != "backward"
        self._tolerance = tolerance
        self.or_at = not is_strict
        self.is_shared = tolerance is None and direction != "nearest"
        """True if all left rows between two neighbours of the right have the same partner."""
        self.is_after = self.looks_back is is_strict
        """True if rows at the bounds of these are before the lower one and not after the upper."""

    def partner(self, time: Any, rows: TimedRows) -> Row:
        """Return the row of the other side for a time; `NOBODY` if there is none."""
        times, or_at = rows.times, self.or_at
        if self.looks_back:
            if type(times) is list:
                place = bisect_right(times, time) if or_at else bisect_left(times, time)
            else:
                place = rows.place(time, after=or_at)
            found = times[place - 1] if place else NOBODY
            if self.looks_ahead:
                ahead = self._ahead(time, rows)
                if found is NOBODY or (ahead is not NOBODY and ahead - time < time - found):
                    found = ahead
        else:
            found = self._ahead(time, rows)
        if found is NOBODY or not (self._tolerance is None or self._is_near(time, found)):
            return NOBODY
        held = rows.rows[found]
        return held[0] if held.__class__ is tuple else held.first()

    def _ahead(self, time: Any, rows: TimedRows) -> Any:
        """Return the next time; `NOBODY` if there is none."""
        place = rows.place(time, after=not self.or_at)
        return rows.times[place] if place < len(rows.times) else NOBODY

    def _is_near(self, time: Any, found: Any) -> bool:
        distance = time - found if found <= time else found - time
        return bool(distance <= self._tolerance)

    def followers(
        self, time: Any, others: TimedRows | None, rows: TimedRows
    ) -> Iterator[tuple[Any, Row, int]]:
        """Return the rows of which a row at `time` may be the partner.

        `others` are the rows of its side.
        """
        first, last = self._reach(time, others)
        start = 0 if first is NOBODY else rows.place(first, after=False)
        return rows.timed(start, None if last is NOBODY else rows.place(last, after=True))

    def _reach(self, time: Any, others: TimedRows | None) -> tuple[Any, Any]:
        """Return the first and the last time of the followers; `NOBODY` is no bound."""
        first, last = NOBODY if self.looks_ahead else time, NOBODY if self.looks_back else time
        if others is not None:
            times = others.times
            if self.looks_ahead and (place := others.place(time, after=False)):
                first = times[place - 1]
            if self.looks_back and (place := others.place(time, after=True)) < len(times):
                last = times[place]
        if self._tolerance is None:
            return first, last
        if self.looks_ahead and (first is NOBODY or time - first > self._tolerance):
            first = time - self._tolerance
        if self.looks_back and (last is NOBODY or last - time > self._tolerance):
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
        self._changes: list[tuple[bool, Any, Any, Row, int]] = []
        self.touched = 0

    def step(self, left: Pairs, right: Pairs) -> Pairs:
        """Pair the changed left rows with old partners, then give all left rows their new ones."""
        self.touched += len(left) + len(right)
        out: list[Any] = []
        if not left:
            self._step_right(right, out)
            return out
        is_batch = type(left) is UniformDelta and not right
        sides, others, note = self._left, self._right, self._changes.append
        partner_of, pair, is_left = self._nearest.partner, self._pair, self._is_left
        for (row, key, time), weight in left:
            if key.__class__ not in SURE or time.__class__ not in SURE:
                key, time = _comparable(key, time)
            partner = NOBODY
            if time is None:
                if not is_left:
                    continue
                key = NO_MATCH
                self._set(True, key, None, row, weight)
            else:
                partners = others.get(key)
                if partners is not None:
                    partner = partner_of(time, partners)
                rows = sides.get(key)
                if rows is None:
                    self._set(True, key, time, row, weight)
                else:
                    rows.add(time, row, weight)
                    if not rows.rows:
                        del sides[key]
            note((True, key, time, row, weight))
            if partner is not NOBODY or is_left:
                new = pair(row, None if partner is NOBODY else partner)
                out.append(new if is_batch else (new, weight))
        if is_batch:
            return UniformDelta(out, left.weight)  # type: ignore[attr-defined]
        if right:
            self._step_right(right, out)
        return out

    def _step_right(self, right: Pairs, out: list[Pair]) -> None:
        """Change right rows, and the partners of the left rows near them."""
        changed: dict[Any, list[Placed]] = {}
        for (row, key, time), weight in right:
            if key.__class__ not in SURE or time.__class__ not in SURE:
                key, time = _comparable(key, time)
            if time is None:
                continue
            placed = changed.get(key)
            if placed is None:
                changed[key] = [(time, row, weight)]
            else:
                placed.append((time, row, weight))
        is_shared = self._nearest.is_shared
        for key, placed in changed.items():
            rows = self._left.get(key)
            if rows is None:
                self._change_right(key, placed)
            elif not is_shared:
                self._change_near(key, placed, rows, out)
            elif len(placed) == 1:
                self._change_one(key, placed, rows, out)
            else:
                self._change_shared(key, placed, rows, out)

    def _change_one(self, key: Any, placed: list[Placed], rows: TimedRows, out: list[Pair]) -> None:
        """Change one right row, and the partner of the left rows up to the next right one."""
        time, row, weight = placed[0]
        partners = self._right.get(key)
        if partners is None:
            old = base = end = NOBODY
        else:
            old, base, _, end = _segment(time, partners, is_back=self._nearest.looks_back)
        self._set(False, key, time, row, weight)
        self._changes.append((False, key, time, row, weight))
        partners = self._right.get(key)
        new = base if partners is None else partners.first_at(time, base)
        if new is not old and new != old:
            self._replace(rows, time, end, old, new, out)

    def _change_shared(
        self, key: Any, placed: list[Placed], rows: TimedRows, out: list[Pair]
    ) -> None:
        """Change right rows of a key, and the partners of the left rows up to the next right ones.

        quotes      12        20             30      looking back: 22 and 26 are changed
        segments                 [22  26) [26  30)   each has one old partner, and one new one
        """
        is_back, partners = self._nearest.looks_back, self._right.get(key)
        changed = sorted(dict.fromkeys(each[0] for each in placed), reverse=not is_back)
        if partners is None:
            segments = [(NOBODY, NOBODY, NOBODY, NOBODY)] * len(changed)
        else:
            segments = [_segment(time, partners, is_back=is_back) for time in changed]
        self._change_right(key, placed)
        partners = self._right.get(key)
        last = new = NOBODY
        for number, (old, base, beside, end) in enumerate(segments, 1):
            time = changed[number - 1]
            if last is NOBODY or (
                beside is not NOBODY and (beside > last if is_back else beside < last)
            ):
                new = base
            if partners is not None:
                new = partners.first_at(time, new)
            last = time
            if new is old or new == old:
                continue
            if number < len(changed):
                following = changed[number]
                if end is NOBODY or (following < end if is_back else following > end):
                    end = following
            self._replace(rows, time, end, old, new, out)

    def _replace(
        self, rows: TimedRows, time: Any, end: Any, old: Row, new: Row, out: list[Pair]
    ) -> None:
        """Replace the partner of the left rows from a time to an end."""
        after, times = self._nearest.is_after, rows.times
        if type(times) is list:
            find = bisect_right if after else bisect_left
            place, limit = find(times, time), None if end is NOBODY else find(times, end)
        else:
            place = rows.place(time, after=after)
            limit = None if end is NOBODY else rows.place(end, after=after)
        if self._nearest.looks_back:
            near = rows.between(place, limit)
        else:
            near = rows.between(limit or 0, place)
        self.touched += len(near)
        pair, is_left = self._pair, self._is_left
        goes, comes = old is not NOBODY or is_left, new is not NOBODY or is_left
        old, new = None if old is NOBODY else old, None if new is NOBODY else new
        for row, weight in near:
            if goes:
                out.append((pair(row, old), -weight))
            if comes:
                out.append((pair(row, new), weight))

    def _change_near(
        self, key: Any, placed: list[Placed], rows: TimedRows, out: list[Pair]
    ) -> None:
        """Change right rows of a key, and the partners of all left rows that are near them."""
        nearest, partners = self._nearest, self._right.get(key)
        near: dict[int, tuple[Any, Row, int, Row]] = {}
        for time in dict.fromkeys(each[0] for each in placed):
            for at, row, weight in nearest.followers(time, partners, rows):
                if id(row) not in near:
                    old = NOBODY if partners is None else nearest.partner(at, partners)
                    near[id(row)] = (at, row, weight, old)
        self.touched += len(near)
        self._change_right(key, placed)
        partners = self._right.get(key)
        for at, row, weight, old in near.values():
            new = NOBODY if partners is None else nearest.partner(at, partners)
            if new is not old and new != old:
                self._emit(row, old, -weight, out)
                self._emit(row, new, weight, out)

    def _emit(self, row: Row, partner: Row, weight: int, out: list[Pair]) -> None:
        if partner is not NOBODY:
            out.append((self._pair(row, partner), weight))
        elif self._is_left:
            out.append((self._pair(row, None), weight))

    def _change_right(self, key: Any, placed: list[Placed]) -> None:
        """Change the weights of right rows, and note each for `undo`."""
        note = self._changes.append
        rows = self._right.get(key)
        for time, row, weight in placed:
            if rows is None:
                self._set(False, key, time, row, weight)
                rows = self._right.get(key)
            else:
                rows.add(time, row, weight)
                if not rows.rows:
                    del self._right[key]
                    rows = None
            note((False, key, time, row, weight))

    def _set(self, is_left: bool, key: Any, time: Any, row: Row, weight: int) -> None:
        """Change the weight of a row."""
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
            if rows.rows:
                side[key] = rows
        else:
            rows.add(time, row, weight)
            if not rows.rows:
                del side[key]

    def undo(self) -> None:
        """Revert the last step."""
        for is_left, key, time, row, weight in reversed(self._changes):
            self._set(is_left, key, time, row, -weight)
        self._changes = []

    def commit(self) -> None:
        self._changes = []

    def contents(self) -> Iterator[Pair]:
        out: list[Pair] = []
        for key, rows in self._left.items():
            partners = self._right.get(key)
            for time, row, weight in rows.timed(0, None):
                found = NOBODY if partners is None else self._nearest.partner(time, partners)
                self._emit(row, found, weight, out)
        for row, weight in self._timeless.items():
            self._emit(row, NOBODY, weight, out)
        return iter(out)

    def footprint(self) -> tuple[int, int]:
        """Return the number of stored rows, and the bytes of the state."""
        sides = (*self._left.values(), *self._right.values())
        size = sum(map(sys.getsizeof, (self._left, self._right, self._timeless, *sides)))
        return sum(map(len, sides)) + len(self._timeless), size


def _comparable(key: Any, time: Any) -> tuple[Any, Any]:
    """Return a key and a time that compare; the time is None if its row matches nothing."""
    if key.__class__ not in SURE:
        key = match_key(canonical(key))
    if time.__class__ not in SURE:
        time = canonical(time)
    return key, None if key is NO_MATCH or is_nan(time) else time


def _segment(time: Any, partners: TimedRows, *, is_back: bool) -> tuple[Row, Row, Any, Any]:
    """Return the partner at a time, the one if it were not there, and the times of that one and of
    the next right row on the other side.
    """
    times, rows = partners.times, partners.rows
    if is_back:
        high = bisect_right(times, time) if type(times) is list else times.bisect_right(time)
        had = high > 0 and times[high - 1] == time
        low = high - 1 - had
        end = times[high] if high < len(times) else NOBODY
        beside = times[low] if low >= 0 else NOBODY
    else:
        low = bisect_left(times, time) if type(times) is list else times.bisect_left(time)
        had = low < len(times) and times[low] == time
        high = low + had
        end = times[low - 1] if low else NOBODY
        beside = times[high] if high < len(times) else NOBODY
    base = NOBODY
    if beside is not NOBODY:
        held = rows[beside]
        base = held[0] if held.__class__ is tuple else held.first()
    return partners.first_at(time, base) if had else base, base, beside, end
