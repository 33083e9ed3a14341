"""Moved bounds: rows of a side of a join that are replaced, but for a value that is compared.

    on o.amount > l.least       delete l (least 10), insert l (least 12)

If nothing that reads the pairs reads any other value of the two rows that differs, the pairs of `o`
with both rows are the same: they cancel. Only the difference of two intervals is left:

    - o  with  10 < o.amount <= 12        a `MovedKey` of the deleted row
    + none                                a `MovedKey` of the inserted row

Comparisons elsewhere, as in `1 if o.amount > l.least else 0` or below an `or`, are found too: then
both rows are paired with the rows between, for which a comparison gives another result.

Deleted and inserted rows are paired in the order of their bounds, among rows with the same key of
an equation and the same other values. The weights may differ: the rest stays as it is.

If other values of the two rows are read, all pairs change; then both rows find their partners among
the rows of their key by the order of these, not by testing them all.

Sound:  a pair is made of values that are the same objects, or equal objects of one plain class.
Cost:   O(|d| log |d|) for a delta of one side; look-ups as `range_index.py` and `key_orders.py`.
Source: [dbsp] bilinear operators, as the change of one factor that is a difference of intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from operator import itemgetter
from types import NoneType
from typing import Any

from optimizer.expr import (
    TRUE,
    Attribute,
    Call,
    Constant,
    Expr,
    Item,
    Lifted,
    Local,
    Operation,
    Parameter,
    origins,
    parts,
    reads,
    row_names,
    tuple_of,
    walk,
)
from optimizer.expressions.knowledge import Shapes
from optimizer.expressions.operand_checks import Comparison
from optimizer.plans.properties import bindings
from optimizer.plans.side_conditions import (
    AnyJoin,
    Ranges,
    bounds_of,
    comparisons_of,
    is_decided_by,
    join_match,
    of_left,
    of_right,
    pair_shapes,
    ranges_by,
    side_of,
)
from reactive.engine.collections import key_orders
from reactive.engine.collections.index import Key, KeyedPair, Mark, WeightedRows
from reactive.engine.collections.range_index import ABSENT, MovedKey
from reactive.engine.collections.zset import Row, family_of, has_both_signs
from reactive.engine.operators import next_change
from reactive.engine.operators.index_by import FINDS_NOTHING, IndexBy
from reactive.engine.operators.join import range_key, side_ranges
from reactive.engine.operators.plain import spread_bindings
from reactive.engine.runtime.interrupts import reraise_asynchronous

PLAIN = frozenset({int, str, bytes, bool, NoneType, date, timedelta})
"""Classes whose equal instances are the same value."""
TESTS = frozenset({"is", "is not", "==", "!=", "<", "<=", ">", ">=", "not"})
Values = Callable[[Row], Any]
Delta = Sequence[KeyedPair]
Limit = tuple[Values, key_orders.KeyOrders]
"""The bound of a row of a side, and the rows of the side by key and bound."""
Moving = tuple[Any, Row, int]
"""The bound of a row, the row, and the weight that is not paired yet."""


class MovedBounds:
    """Finds the moved rows in the deltas of a join, and looks up their partners.

    Parameters
    ----------
    values_read: the expressions that are evaluated for a pair, but for those that give `ranges`.
    ranges: the ranges that are the keys of the indexes; None if keys are of an equation, or all
        rows have one: then `values_read` are searched for comparisons.
    """

    __slots__ = ("_indexes", "_is_by_range", "_limits", "_orders", "_ranges", "_sides")

    def __init__(
        self,
        join: AnyJoin,
        values_read: Sequence[Expr],
        indexes: tuple[IndexBy, IndexBy],
        ranges: Ranges | None,
    ) -> None:
        count, self._indexes = bindings(join.left), indexes
        self._is_by_range = ranges is not None
        names = row_names(count + 1)
        on = Lifted(TRUE, names, origins(join_match(join).on), count + 1)
        found = ValuesRead(count, pair_shapes(join), is_by_range=ranges is not None)
        for expr in values_read:
            found.read(expr, lambda test: ranges is not None and follows_from(ranges, test, join))
        every = [ranges_by(on, count, each) for each in found.comparisons]
        self._ranges = every if ranges is None else [ranges]
        self._sides: list[MovedRows | None] = []
        self._orders: list[list[key_orders.KeyOrders]] = []
        for side, places in enumerate((range(count), range(count, count + 1))):
            size = len(places)
            spans = [(each.left, each.right)[side] for each in every]
            reaches = [side_ranges(each)[side] for each in every]
            values = [spread_bindings(range_key(span).function, size) for span in spans]
            self._orders.append(
                [
                    indexes[side].follower(
                        (span, reach), partial(key_orders.KeyOrders, value, reach)
                    )
                    for span, reach, value in zip(spans, reaches, values, strict=True)
                ]
            )
            unchanged = found.unchanged(side)
            if unchanged is None or (ranges is None and not every):
                self._sides.append(None)
                continue
            of_side = (of_left, of_right)[side](on, tuple_of(*unchanged), count)
            read = spread_bindings(of_side, size)
            bound = None if ranges is not None else _tuple_maker(values)
            self._sides.append(
                MovedRows(indexes[1 - side], read, bound, is_only_bound=not unchanged)
            )

        bounds = None if self._is_by_range else bounds_of(join)
        self._limits = None if bounds is None else self._limits_of(bounds.ranges, count)

    def _limits_of(self, ranges: Ranges, count: int) -> list[Limit]:
        """Return for each side the bound of a row, and its rows by key and bound."""
        found: list[Limit] = []
        for side, size in ((0, count), (1, 1)):
            span, reach = (ranges.left, ranges.right)[side], side_ranges(ranges)[side]
            value = spread_bindings(range_key(span).function, size)
            make = partial(key_orders.KeyOrders, value, reach)
            found.append((value, self._indexes[side].follower((span, reach), make)))
        return found

    def next_change(self, side: int, moment: datetime) -> datetime | None:
        """Return the first moment at which a clock, the side 0 or 1, changes the pairs.

        Return `moment` if it is not known, and None if there is none.
        """
        rows, (own, other) = self._sides[side], self._indexes[:: -1 if side else 1]
        if rows is None or not rows.is_only_bound or own.poisoned or other.poisoned:
            return moment
        if not self._is_by_range and own.index.buckets.keys() - {()}:
            return moment  # the moment is also a key
        found: datetime | None = None
        for place, ranges in enumerate(self._ranges):
            span = (ranges.left, ranges.right)[side]
            if not all(map(next_change.is_monotone, span.ends)):
                return moment
            order = other.index
            if not self._is_by_range:
                order = self._orders[1 - side][place].order(other.index, ())
            key = spread_bindings(range_key(span).function, 1)
            each = next_change.first_change(order, key, moment)
            if each is not None:
                found = each if found is None else min(found, each)
        return found

    def find(self, left: Delta, right: Delta) -> tuple[int, Delta] | None:
        """Return a side, 0 or 1, with its delta by moved keys; None if no row has moved.

        If rows of both sides have moved, it is the side with more rows on the other one.
        """
        sides = [(side, delta) for side, delta in ((1, right), (0, left)) if has_both_signs(delta)]
        if len(sides) == 2 and self._indexes[0].index.rows < self._indexes[1].index.rows:
            sides.reverse()
        for side, delta in sides:
            paired = self._pair(side, delta)
            if paired is not None:
                return side, paired
        for side, delta in sides:
            limited = self.limited_rows(side, delta)
            if limited is not None:
                return side, limited
        return None

    def limited_rows(self, side: int, delta: Delta) -> Delta | None:
        """Return the delta of a side by the bounds of rows with many partners of their key.

        Return None if there are none.
        """
        if self._limits is None:
            return None
        (bound, _), others = self._limits[side], self._indexes[1 - side].index
        limited: list[KeyedPair] = []
        is_any = False
        for key, pair in delta:
            found: Key = key
            if key.__class__ is not Mark and _has_many_rows(others, key):
                try:
                    found = MovedKey(bound(pair[0]), ABSENT, key)
                    is_any = True
                except Exception as error:  # it meets all partners of its key
                    reraise_asynchronous(error)
            limited.append((found, pair))
        return limited if is_any else None

    def moved_rows(self, side: int, delta: Delta) -> Delta | None:
        """Return the delta of a side, 0 or 1, by moved keys; None if no row has moved."""
        return self._pair(side, delta) if has_both_signs(delta) else None

    def _pair(self, side: int, delta: Delta) -> Delta | None:
        rows = self._sides[side]
        return None if rows is None else rows.pair(delta)

    def partners(self, side: int, find: Callable[..., Any], since: Delta) -> Callable[..., Any]:
        """Return the look-up `find` of the rows of a side, for moved keys of the other side, too.

        It finds the rows before the delta `since`, which the side has applied.
        """
        every, index, limits = self._orders[side], self._indexes[side], self._limits
        if not (every or limits) or find is FINDS_NOTHING:
            return find

        def found(key: Any, default: Any) -> Any:
            if key.__class__ is not MovedKey:
                return find(key, default)
            rows = WeightedRows()
            if key.old is ABSENT:
                assert limits is not None
                pairs = limits[side][1].pairs(index.index, key, since)
                return WeightedRows((index.handle(pair[0]), pair) for pair in pairs) or default
            for orders, new, old in zip(every, key.new, key.old, strict=True):
                for moved in (MovedKey(new, old, key.key), MovedKey(old, new, key.key)):
                    pairs = orders.pairs(index.index, moved, since)
                    rows.update((index.handle(pair[0]), pair) for pair in pairs)
            return rows or default

        return found


class MovedRows:
    """Pairs the deleted and inserted rows of a side that differ only in a bound.

    Parameters
    ----------
    partners: the index of the other side.
    unchanged: returns the values of a row that must be the same.
    bound: returns the bound of a row; None if the key of the side is the bound.
    is_only_bound: True if nothing else of a row is read.
    """

    __slots__ = ("_bound", "_partners", "_unchanged", "is_only_bound")

    def __init__(
        self, partners: IndexBy, unchanged: Values, bound: Values | None, *, is_only_bound: bool
    ) -> None:
        self.is_only_bound = is_only_bound
        self._partners = partners
        self._unchanged = unchanged
        self._bound = bound

    def pair(self, delta: Delta) -> list[KeyedPair] | None:
        """Return the delta with moved keys for the rows that have moved; None if none has."""
        rest: list[KeyedPair] = []
        groups: dict[Any, tuple[Key, list[Moving], list[Moving]]] = {}
        alive = []  # values whose `id` is compared
        for keyed in delta:
            key, (row, weight) = keyed
            read = self._read(key, row)
            if read is None:
                rest.append(keyed)
                continue
            bound, values, same = read
            alive.append(values)
            group = groups.setdefault(same, (key, [], []))
            group[1 if weight < 0 else 2].append((bound, row, abs(weight)))
        moved: list[KeyedPair] = []
        for key, gone, come in groups.values():
            self._pair_group(key, gone, come, moved, rest)
        return [*rest, *moved] if moved else None

    def _read(self, key: Key, row: Row) -> tuple[Any, Any, Hashable] | None:
        """Return the bound of a row, its other values, and what these are grouped by.

        Return None if it has no bound in an order, or few partners.
        """
        if key.__class__ is Mark or not self._has_many_partners(key):
            return None
        try:
            bound = key if self._bound is None else self._bound(row)
            values = self._unchanged(row)
            family = family_of(bound)
        except Exception as error:
            reraise_asynchronous(error)
            return None
        equal = () if self._bound is None else key
        return bound, values, (equal, family, tuple(map(identity, values)))

    def _has_many_partners(self, key: Key) -> bool:
        index = self._partners.index
        if self._bound is None:
            return bool(index.rows >= key_orders.MANY)
        return _has_many_rows(index, key)

    def _pair_group(
        self,
        key: Key,
        gone: list[Moving],
        come: list[Moving],
        moved: list[KeyedPair],
        rest: list[KeyedPair],
    ) -> None:
        """Pair rows in the order of their bounds; append what is left to `rest`."""
        equal = () if self._bound is None else key
        for rows in (gone, come) if gone and come else ():
            rows.sort(key=_bound_of, reverse=True)
        while gone and come:
            old, old_row, had = gone.pop()
            new, new_row, has = come.pop()
            weight = min(had, has)
            moved.append((MovedKey(old, new, equal), (old_row, -weight)))
            moved.append((MovedKey(new, old, equal), (new_row, weight)))
            if had > weight:
                gone.append((old, old_row, had - weight))
            if has > weight:
                come.append((new, new_row, has - weight))
        for rows, sign in ((gone, -1), (come, 1)):
            for bound, row, weight in rows:
                rest.append((key if self._bound else bound, (row, sign * weight)))


_bound_of: Callable[[Moving], Any] = itemgetter(0)


def _has_many_rows(index: Any, key: Key) -> bool:
    found = index.buckets.get(key)
    return found.__class__ is WeightedRows and len(found) >= key_orders.MANY


def identity(value: Any) -> Hashable:
    """Return a value that is equal for the same objects, and for equal ones of a plain class."""
    return (value.__class__, value) if value.__class__ in PLAIN else id(value)


def _tuple_maker(values: Sequence[Values]) -> Values:
    return lambda row: tuple([value(row) for value in values])


class ValuesRead:
    """Comparisons of the two rows that expressions over a pair read, and values of each row."""

    def __init__(self, count: int, of: Shapes, *, is_by_range: bool) -> None:
        self._count = count
        self._of = of
        self._is_by_range = is_by_range
        self.comparisons: list[Comparison] = []
        self._values: dict[Expr, None] = {}

    def unchanged(self, side: int) -> list[Expr] | None:
        """Return the values of a side that must be the same; None if its whole row is read."""
        own = (range(self._count), range(self._count, self._count + 1))[side]
        whole = {Parameter(place) for place in own}
        if whole <= self._values.keys():
            return None
        return [value for value in self._values if reads(value) <= {*own}]

    def read(self, expr: Expr, is_known: Callable[[Expr], bool] = lambda test: False) -> None:
        """Add what an expression reads, as far as it is known; `is_known` tests are left out."""
        if not reads(expr) or is_known(expr):
            return
        if _is_path(expr) or (_is_test(expr) and side_of(expr, self._count) is not None):
            self._values[expr] = None
            return
        found = () if self._is_by_range else self._compared(expr)
        self.comparisons += [each for each in found if each not in self.comparisons]
        if isinstance(expr, Call) and isinstance(expr.function, Attribute):
            expr = Call(expr.function.of, expr.arguments, expr.keywords)  # of a method's object
        for part in () if found else parts(expr):
            self.read(part, is_known)

    def _compared(self, expr: Expr) -> tuple[Comparison, ...]:
        """Return the comparisons of both sides that an expression is."""
        if not isinstance(expr, Operation) or any(isinstance(p, Local) for p in walk(expr)):
            return ()
        found = comparisons_of(expr, self._count, self._of)
        return found if is_decided_by(expr, found) else ()


def follows_from(ranges: Ranges, test: Expr, join: AnyJoin) -> bool:
    """Return True for a test that all pairs pass whose values are in the ranges of each other."""
    count, on = bindings(join.left), join_match(join).on
    found = comparisons_of(test, count, pair_shapes(join))
    if not is_decided_by(test, found) or not isinstance(on, Lifted):
        return False
    for each in (ranges_by(on, count, comparison) for comparison in found):
        own: tuple[Any, ...]
        of: tuple[Any, ...]
        if each.left.low is not None:
            own = (each.left.low, each.right.high, each.closed[0])
            of = (ranges.left.low, ranges.right.high, ranges.closed[0])
        else:
            own = (each.left.high, each.right.low, each.closed[1])
            of = (ranges.left.high, ranges.right.low, ranges.closed[1])
        if own != of:
            return False
    return True


def _is_test(expr: Expr) -> bool:
    """Return True for an expression whose values are booleans, without variables."""
    is_test = isinstance(expr, Operation) and expr.operator in TESTS
    return is_test and not any(isinstance(part, Local) for part in walk(expr))


def _is_path(expr: Expr) -> bool:
    """Return True for a row, or a field or item of it, of one of these, and so on."""
    while True:
        match expr:
            case Parameter():
                return True
            case Attribute(of=inner) | Item(of=inner, key=Constant()):
                expr = inner
            case _:
                return False
