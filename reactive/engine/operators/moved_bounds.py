"""Moved bounds: rows of a side of a join that are replaced, but for a value that is compared.

    on o.amount > l.least       delete l (least 10), insert l (least 12)

If nothing that reads the pairs reads any other value of the two rows that differs, the pairs of `o`
with both rows are the same: they cancel. Only the difference of two intervals is left:

    - o  with  10 < o.amount <= 12        a `MovedKey` of the deleted row
    + none                                a `MovedKey` of the inserted row

Deleted and inserted rows are paired in the order of their bounds, among rows with the same key of
an equation and the same other values. The weights may differ: the rest stays as it is.

Sound:  a pair is made of values that are the same objects, or equal objects of one plain class.
Cost:   O(|d| log |d|) for a delta of one side; look-ups as `range_index.py` and `key_orders.py`.
Source: [dbsp] bilinear operators, as the change of one factor that is a difference of intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from datetime import date, timedelta
from functools import partial
from operator import itemgetter
from types import NoneType
from typing import Any

from optimizer.expr import (
    Attribute,
    Call,
    Constant,
    Expr,
    Item,
    Lifted,
    Parameter,
    parts,
    reads,
    tuple_of,
)
from optimizer.plans.properties import bindings
from optimizer.plans.side_conditions import AnyJoin, Ranges, join_match, of_left, of_right
from reactive.engine.collections import key_orders
from reactive.engine.collections.index import (
    Key,
    KeyedBatch,
    KeyedPair,
    Mark,
    MovedKey,
    WeightedRows,
)
from reactive.engine.collections.zset import Row, family_of
from reactive.engine.operators.index_by import FINDS_NOTHING, IndexBy
from reactive.engine.operators.join import range_key, side_ranges
from reactive.engine.operators.plain import spread_bindings
from reactive.engine.runtime.interrupts import reraise_asynchronous

PLAIN = frozenset({int, str, bytes, bool, NoneType, date, timedelta})
"""Classes whose equal instances are the same value."""
Values = Callable[[Row], Any]
Delta = Sequence[KeyedPair]
Moving = tuple[Any, Row, int]
"""The bound of a row, the row, and the weight that is not paired yet."""


class MovedBounds:
    """Finds the moved rows in the deltas of a join, and looks up their partners.

    Parameters
    ----------
    values_read: the expressions that are evaluated for a pair, but for the comparisons.
    by_range: True if the keys of the indexes are the compared values.
    """

    __slots__ = ("_indexes", "_orders", "_sides")

    def __init__(
        self,
        join: AnyJoin,
        ranges: Ranges,
        values_read: Sequence[Expr],
        indexes: tuple[IndexBy, IndexBy],
        *,
        by_range: bool,
    ) -> None:
        count, on, by_key = bindings(join.inputs()[0]), join_match(join).on, not by_range
        assert isinstance(on, Lifted)
        self._indexes = indexes
        self._sides: list[MovedRows | None] = []
        self._orders: list[key_orders.KeyOrders | None] = []
        spans, reaches = (ranges.left, ranges.right), side_ranges(ranges)
        for side, places in enumerate((range(count), range(count, count + 1))):
            values = _unchanged_values(values_read, frozenset(places))
            value = spread_bindings(range_key(spans[side]).function, len(places))
            orders = partial(key_orders.KeyOrders, value, reaches[side])
            self._orders.append(
                indexes[side].key_orders((spans[side], reaches[side]), orders) if by_key else None
            )
            if values is None:
                self._sides.append(None)
                continue
            of_side = (of_left, of_right)[side](on, tuple_of(*values), count)
            unchanged = spread_bindings(of_side, len(places))
            self._sides.append(MovedRows(indexes[1 - side], unchanged, value if by_key else None))

    def find(self, left: Delta, right: Delta) -> tuple[int, Delta] | None:
        """Return a side, 0 or 1, with its delta by moved keys; None if no row has moved.

        If rows of both sides have moved, it is the side with more rows on the other one.
        """
        sides = [(side, delta) for side, delta in ((1, right), (0, left)) if _is_mixed(delta)]
        if len(sides) == 2 and self._indexes[0].index.rows < self._indexes[1].index.rows:
            sides.reverse()
        for side, delta in sides:
            paired = self._pair(side, delta)
            if paired is not None:
                return side, paired
        return None

    def moved_rows(self, side: int, delta: Delta) -> Delta | None:
        """Return the delta of a side, 0 or 1, by moved keys; None if no row has moved."""
        return self._pair(side, delta) if _is_mixed(delta) else None

    def _pair(self, side: int, delta: Delta) -> Delta | None:
        rows = self._sides[side]
        return None if rows is None else rows.pair(delta)

    def partners(self, side: int, find: Callable[..., Any], since: Delta) -> Callable[..., Any]:
        """Return the look-up `find` of the rows of a side, for moved keys of the other side, too.

        It finds the rows before the delta `since`, which the side has applied.
        """
        orders, index = self._orders[side], self._indexes[side]
        if orders is None or find is FINDS_NOTHING:
            return find

        def found(key: Any, default: Any) -> Any:
            if key.__class__ is not MovedKey:
                return find(key, default)
            return orders.find(index.index, key, since, default)

        return found


class MovedRows:
    """Pairs the deleted and inserted rows of a side that differ only in a bound.

    Parameters
    ----------
    partners: the index of the other side.
    unchanged: returns the values of a row that must be the same.
    bound: returns the bound of a row; None if the key of the side is the bound.
    """

    __slots__ = ("_bound", "_partners", "_unchanged")

    def __init__(self, partners: IndexBy, unchanged: Values, bound: Values | None) -> None:
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
        return bound, values, (equal, family, tuple(map(_identity, values)))

    def _has_many_partners(self, key: Key) -> bool:
        index = self._partners.index
        if self._bound is None:
            return bool(index.rows >= key_orders.MANY)
        found = index.buckets.get(key)
        return found.__class__ is WeightedRows and len(found) >= key_orders.MANY

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


def _is_mixed(delta: Delta) -> bool:
    """Return True if a delta deletes and inserts rows."""
    if len(delta) < 2 or type(delta) is KeyedBatch:
        return False
    weights = [pair[1] for _, pair in delta]
    return min(weights) < 0 < max(weights)


def _identity(value: Any) -> Hashable:
    """Return a value that is equal for the same objects, and for equal ones of a plain class."""
    return (value.__class__, value) if value.__class__ in PLAIN else id(value)


def _unchanged_values(exprs: Sequence[Expr], places: frozenset[int]) -> list[Expr] | None:
    """Return the values of a side that expressions read; None if they read its whole row."""
    found: dict[Expr, None] = {}
    for expr in exprs:
        _add_values(expr, places, found)
    whole = {Parameter(place) for place in places}
    return None if whole <= found.keys() else list(found)


def _add_values(expr: Expr, places: frozenset[int], found: dict[Expr, None]) -> None:
    """Add the fields and rows of a side that an expression reads, as far as they are known."""
    if not reads(expr) & places:
        return
    if _is_path(expr):
        found[expr] = None
        return
    if isinstance(expr, Call) and isinstance(expr.function, Attribute):
        expr = Call(expr.function.of, expr.arguments, expr.keywords)  # a method is of its object
    for part in parts(expr):
        _add_values(part, places, found)


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
