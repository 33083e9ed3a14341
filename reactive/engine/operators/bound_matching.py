"""Bound matching: the left rows that have a partner by one comparison, decided by a bound per key.

    bound(k)     =  the greatest value of R with key k        (the least one, for `>`)
    partnered(L, R)(row)  =  L(row)  if value(row) < bound(key(row)), else 0

With P for "less than the bound", and B for the bound:

    d partnered  =  dL * P(B)  +  (L + dL) * (P(B + dB) - P(B))

Values of two families, and values without one, have no common order
(`reactive.engine.collections.zset`). After the first such value, or if a test raises,
`PredicateMatching` tests pairs instead.

P(B + dB) - P(B) is not 0 only for rows whose values are between the old and the new bound.

State:  the bound of each key; for a key whose bound has moved, and that has more than `FEW` left
        rows, these sorted by value; for a key that lost its bound, and has more than `FEW` right
        rows, their sorted values.
Cost:   O(|dL| + |dR|), times the log of the rows of a key that has an order; if the bound of a
        key moves, the left rows between both bounds, after O(left rows) for the first time, and
        O(right rows) if it is deleted for the first time.
Source: [dbsp] section 4, antijoin; [stepping] min and max.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from sortedcontainers import SortedList

from reactive.engine.collections.index import NO_MATCH, Key, KeyedPair, Mark
from reactive.engine.collections.zset import Family, Pair, Row, UnorderedError, family_of
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.matching import Change
from reactive.engine.operators.predicate_matching import PredicateMatching, changes_of_switch
from reactive.engine.runtime.interrupts import reraise_asynchronous

FEW = 32
"""Most rows of a key, on either side, that are scanned each time its bound moves."""
NONE: Final = object()
"""The value of a row that matches nothing, and the bound of a key without right rows."""
Read = Callable[[Row], Any]
Valued = tuple[Key, Row, int, Any]
COMPARISONS: Final[dict[tuple[bool, bool], Callable[[Any, Any], bool]]] = {
    (True, False): operator.lt,
    (True, True): operator.le,
    (False, False): operator.gt,
    (False, True): operator.ge,
}
"""Comparison of a value with the bound, by whether the bound is an upper one, and closed."""


class BoundSide:
    """Reads the value of a row of one side: tests, the value, more tests."""

    __slots__ = ("_after", "_before", "_value")

    def __init__(self, before: Sequence[Read], value: Read, after: Sequence[Read]) -> None:
        self._before = before
        self._value = value
        self._after = after

    def value(self, row: Row, family: Family | None) -> tuple[Any, Family | None]:
        """Return the value, or `NONE` if a test fails, with the family of all values so far.

        Raises
        ------
        UnorderedError: the value has no family, or another one.
        """
        if self._before and not all(test(row) for test in self._before):
            return NONE, family
        value = self._value(row)
        own = family_of(value)
        if family is not None and own != family:
            raise UnorderedError(f"{value!r} is of another family")
        if self._after and not all(test(row) for test in self._after):
            return NONE, own
        return value, own


class BoundMatching:
    """Match by key and one comparison; `make` returns the matching that tests pairs.

    >>> from reactive.engine.operators.index_by import IndexBy
    >>> ages, limits, plain = IndexBy(None), IndexBy(None), BoundSide((), int, ())
    >>> sides = (plain, plain)
    >>> matching = BoundMatching(ages, limits, sides, print, is_upper=True, closed=False)
    >>> matching.step(ages.step([(3, 1), (7, 1)]), limits.step([(5, 1)]))
    [(3, 0, 1), (7, 0, 1), (3, 1, -1)]
    >>> matching.step([], limits.step([(8, 1)]))
    [(7, 1, -1)]
    """

    __slots__ = (
        *("_bounds", "_ends", "_entered", "_family", "_fell", "_is_upper", "_last", "_left"),
        *(
            "_lefts",
            "_make",
            "_orders",
            "_passes",
            "_plain",
            "_right",
            "_sides",
            "_touched",
            "_was",
        ),
    )

    def __init__(
        self,
        left: IndexBy,
        right: IndexBy,
        sides: tuple[BoundSide, BoundSide],
        make: Callable[[], PredicateMatching],
        *,
        is_upper: bool,
        closed: bool,
    ) -> None:
        self._left = left
        self._right = right
        self._sides = sides
        self._is_upper = is_upper
        self._passes = COMPARISONS[is_upper, closed]
        self._ends = is_upper != closed, is_upper == closed
        """For the lower and the upper of two bounds: True if a left row with its value flips."""
        self._make = make
        self._bounds: dict[Key, Any] = {}
        self._orders: dict[Key, _Order] = {}
        self._lefts: dict[Key, _LeftOrder] = {}
        self._entered: Sequence[Valued] = ()
        """Changes of left rows that have an order, in the last step."""
        self._family: Family | None = None
        self._last: dict[Key, Any] = {}  # the previous bounds
        self._was: Family | None = None
        self._plain: PredicateMatching | None = None
        self._fell = False
        self._touched = 0

    @property
    def touched(self) -> int:
        return self._touched + (0 if self._plain is None else self._plain.touched)

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> Sequence[Change]:
        """Return the changes of left rows; without a common order, test pairs from now on."""
        if self._plain is not None:
            return self._plain.step(left, right)
        self._last, self._was, self._entered = {}, self._family, ()
        try:
            if self._left.poisoned or self._right.poisoned:
                raise UnorderedError("a key could not be computed")
            ours, theirs = self._add_values(0, left), self._add_values(1, right)
        except Exception as error:
            reraise_asynchronous(error)
            self._family = self._was
            return self._fall_back(left)
        out = [self._change(*each) for each in ours]
        self._touched += len(left) + len(right)
        try:
            self._enter(ours)
            if theirs:
                out += self._move_bounds(theirs)
        except BaseException:
            self._drop_orders(key for key, *_ in (*ours, *theirs))
            raise
        return out

    def undo(self) -> None:
        """Restore the bounds before the last step; drop its sorted rows, built again if asked."""
        if self._fell:
            self._plain, self._fell = None, False
        elif self._plain is not None:
            self._plain.undo()
        for key, bound in self._last.items():
            self._set(key, bound)
        self._drop_orders([*self._last, *(key for key, *_ in self._entered)])
        self._last, self._family, self._entered = {}, self._was, ()

    def commit(self) -> None:
        """Drop the undo state; if pairs are tested from this step on, also the bounds."""
        self._last, self._was, self._entered = {}, self._family, ()
        if self._fell:
            self._fell = False
            self._bounds, self._orders, self._lefts = {}, {}, {}
        if self._plain is not None:
            self._plain.commit()

    def contents(self) -> Iterator[Change]:
        """Yield all left rows, each with its weight as partnered or as alone."""
        if self._plain is not None:
            yield from self._plain.contents()
            return
        for key, (row, weight) in self._left.index.items():
            yield self._change(key, row, weight, self._value(0, key, row))

    def footprint(self) -> tuple[int, int]:
        """Return the number of bounds and sorted rows, and their approximate bytes."""
        if self._plain is not None:
            return self._plain.footprint()
        held = sum(map(len, self._orders.values())) + sum(map(len, self._lefts.values()))
        return len(self._bounds) + held, sys.getsizeof(self._bounds) + 100 * held

    def _add_values(self, side: int, delta: Sequence[KeyedPair]) -> list[Valued]:
        """Return the keyed pairs of a side, each with its compared value."""
        return [(k, row, weight, self._value(side, k, row)) for k, (row, weight) in delta]

    def _value(self, side: int, key: Key, row: Row) -> Any:
        """Return the compared value of a row; `NONE` if it has none, and so matches nothing.

        Raises `UnorderedError` if the key was not computed, or the value is of another family.
        """
        if key.__class__ is Mark:
            if key is NO_MATCH:
                return NONE
            raise UnorderedError("a key could not be computed")
        value, self._family = self._sides[side].value(row, self._family)
        return value

    def _change(self, key: Key, row: Row, weight: int, value: Any) -> Change:
        """Return the change of a left row, partnered or alone by the current bound of its key."""
        is_partnered = self._matches(value, self._bounds.get(key, NONE))
        return (row, weight, 0) if is_partnered else (row, 0, weight)

    def _matches(self, value: Any, bound: Any) -> bool:
        """Return True if a value has a partner by a bound; False if either is `NONE`."""
        return value is not NONE and bound is not NONE and self._passes(value, bound)

    # Bounds.

    def _move_bounds(self, changes: Sequence[Valued]) -> list[Change]:
        """Apply changes of the right; return changes of left rows between both bounds."""
        bounds = self._new_bounds(changes)
        out = [
            each for key, bound in bounds.items() for each in self._find_flipped_rows(key, bound)
        ]
        for key, bound in bounds.items():
            self._last[key] = self._bounds.get(key, NONE)
            self._set(key, bound)
        self._touched += len(out)
        return out

    def _new_bounds(self, changes: Sequence[Valued]) -> dict[Key, Any]:
        """Return the bounds of the keys whose bound may have changed."""
        bounds: dict[Key, Any] = {}
        lost: dict[Key, None] = {}
        for key, _, weight, value in changes:
            if value is NONE:
                continue
            order = self._orders.get(key)
            bound = bounds.get(key, self._bounds.get(key, NONE))
            if order is not None:
                order.add(value, weight)
                lost.setdefault(key)
            elif weight > 0 and (bound is NONE or self._is_beyond(value, bound)):
                bounds[key] = value
            elif weight < 0 and bound is not NONE and not self._is_beyond(bound, value):
                lost.setdefault(key)
        for key in lost:
            bounds[key] = self._outermost(key)
        return bounds

    def _is_beyond(self, value: Any, bound: Any) -> bool:
        """Return True if a value is a better bound than another value."""
        return bool(value > bound) if self._is_upper else bool(value < bound)

    def _outermost(self, key: Key) -> Any:
        """Return the bound of a key, from its current right rows."""
        order = self._orders.get(key)
        if order is None:
            pairs = self._right.index.pairs(key)
            self._touched += len(pairs)
            order = _Order((self._value(1, key, row), weight) for row, weight in pairs)
            if len(order) > FEW:
                self._orders[key] = order
        elif len(order) <= FEW // 2:
            del self._orders[key]
        return order.outermost(is_upper=self._is_upper)

    def _find_flipped_rows(self, key: Key, bound: Any) -> Iterator[Change]:
        """Yield the left rows of a key that get a first partner, or lose the last."""
        old = self._bounds.get(key, NONE)
        if old is bound or (old is not NONE and bound is not NONE and old == bound):
            return
        order = self._left_order(key, old)
        if order is not None:
            is_now = bound is not NONE and (old is NONE or self._is_beyond(bound, old))
            for row, weight in order.between(*self._outward(old, bound), self._ends):
                yield (row, weight, -weight) if is_now else (row, -weight, weight)
            return
        pairs = self._left.index.pairs(key)
        self._touched += len(pairs)
        for row, weight in pairs:
            value = self._value(0, key, row)
            was, now = self._matches(value, old), self._matches(value, bound)
            if was != now:
                yield (row, weight, -weight) if now else (row, -weight, weight)

    def _outward(self, old: Any, bound: Any) -> tuple[Any, Any]:
        """Return both bounds, the lower one first.

        A missing bound matches no row: it is beyond all values.
        """
        if old is NONE or bound is NONE:
            known = bound if old is NONE else old
            return (NONE, known) if self._is_upper else (known, NONE)
        return (bound, old) if bound < old else (old, bound)

    def _left_order(self, key: Key, old: Any) -> _LeftOrder | None:
        """Return the sorted left rows of a key if there are many; None to scan them.

        They are scanned, too, when the key gets its first bound, which may be the only one.
        """
        order = self._lefts.get(key)
        if order is None and old is not NONE:
            pairs = self._left.index.pairs(key)
            if len(pairs) > FEW:
                self._touched += len(pairs)
                order = self._lefts[key] = _LeftOrder()
                for row, weight in pairs:
                    order.add(self._value(0, key, row), row, weight)
        return order

    def _enter(self, changes: Sequence[Valued]) -> None:
        """Apply changes of the left rows that have an order."""
        if not self._lefts:
            return
        self._entered = [each for each in changes if each[0] in self._lefts]
        for key, row, weight, value in self._entered:
            self._lefts[key].add(value, row, weight)
        for key in {key for key, *_ in self._entered}:
            if len(self._lefts[key]) <= FEW // 2:
                del self._lefts[key]

    def _drop_orders(self, keys: Iterable[Key]) -> None:
        """Drop the sorted rows of some keys; they are sorted again when needed."""
        for key in keys:
            self._orders.pop(key, None)
            self._lefts.pop(key, None)

    def _set(self, key: Key, bound: Any) -> None:
        """Set the bound of a key; `NONE` deletes it."""
        if bound is NONE:
            self._bounds.pop(key, None)
        else:
            self._bounds[key] = bound

    # Pairs.

    def _fall_back(self, left: Sequence[KeyedPair]) -> Sequence[Change]:
        """Test pairs from now on; return the changes since the last step."""

        def change_before(key: Key, row: Row, weight: int) -> Change:
            return self._change(key, row, weight, self._value(0, key, row))

        plain = self._make()
        found = changes_of_switch(plain, self._left.index.items(), left, change_before)
        self._plain, self._fell = plain, True
        return found


class _Order:
    """Values of the right rows of a key, sorted."""

    __slots__ = ("_values", "_weights")

    def __init__(self, pairs: Iterable[tuple[Any, int]]) -> None:
        self._weights: dict[Any, int] = {}
        for value, weight in pairs:
            if value is not NONE:
                self._weights[value] = self._weights.get(value, 0) + weight
        self._values: Any = SortedList(v for v, weight in self._weights.items() if weight > 0)

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: Any, weight: int) -> None:
        """Change the weight of a value; only values of positive weight are in the order."""
        was = self._weights.get(value, 0)
        now = was + weight
        if now:
            self._weights[value] = now
        else:
            del self._weights[value]
        if was <= 0 < now:
            self._values.add(value)
        elif now <= 0 < was:
            self._values.remove(value)

    def outermost(self, *, is_upper: bool) -> Any:
        """Return the greatest value (the least, unless `is_upper`), or `NONE` if there is none."""
        if not self._values:
            return NONE
        return self._values[-1] if is_upper else self._values[0]


class _LeftOrder:
    """Left rows of a key, sorted by value."""

    __slots__ = ("_count", "_rows", "_values")

    def __init__(self) -> None:
        self._count = 0
        self._rows: dict[Any, dict[Row, int]] = {}
        self._values: Any = SortedList()

    def __len__(self) -> int:
        return self._count

    def add(self, value: Any, row: Row, weight: int) -> None:
        """Add `weight` to the weight of a row with this value."""
        rows = self._rows.get(value)
        if rows is None:
            rows = self._rows[value] = {}
            if value is not NONE:
                self._values.add(value)
        before = len(rows)
        total = rows.get(row, 0) + weight
        if total:
            rows[row] = total
        else:
            rows.pop(row, None)
        self._count += len(rows) - before
        if not rows:
            del self._rows[value]
            if value is not NONE:
                self._values.remove(value)

    def between(self, low: Any, high: Any, ends: tuple[bool, bool]) -> Iterator[Pair]:
        """Yield the rows whose values are between two bounds; `NONE` is beyond all values."""
        lowest = None if low is NONE else low
        highest = None if high is NONE else high
        for value in [*self._values.irange(lowest, highest, ends)]:
            yield from self._rows[value].items()
