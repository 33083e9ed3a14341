"""Joins that compute rows of NaN, None and equal values of other types, beside plain evaluation.

Loops and plain operators take turns: values without an order make error rows, for which a join
calls the plain operators, and a row must be found again that the other ones have emitted. This also
holds for a NaN in a field whose annotation excludes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count as CountRows
from reactive import Database
from reactive.engine.collections.zset import canonical
from tests.budget import examples, sampled
from tests.thresholds import thresholds

MANY = "reactive.engine.collections.key_orders.MANY"


class Order(NamedTuple):
    id: int
    key: float | bool | None
    qty: float | bool | None


class Limit(NamedTuple):
    id: int
    low: float | bool | None
    high: float | bool | None
    name: float | bool | None


@dataclass(frozen=True)
class OrderRecord:
    id: int
    key: float | bool | None
    qty: float | bool | None


@dataclass(frozen=True)
class LimitRecord:
    id: int
    low: float | bool | None
    high: float | bool | None
    name: float | bool | None


class OrderOfInts(NamedTuple):
    id: int
    key: int
    qty: int


class LimitOfInts(NamedTuple):
    id: int
    low: int
    high: int
    name: int


class Chosen(NamedTuple):
    id: int
    limit: int
    key: Any
    total: int


CLASSES: dict[str, tuple[Any, Any]] = {
    "named tuples": (Order, Limit),
    "dataclasses": (OrderRecord, LimitRecord),
    "annotated as integers": (OrderOfInts, LimitOfInts),
}
NUMBERS = [1, 1.0, True, -0.0, 2.5]
SHARED = float("nan")
Rows = Iterable[Any]
Query = tuple[Callable[[Any, Any], Any], Callable[[Rows, Rows], list[Any]]]


def within(o: Any, c: Any) -> bool:
    return compared(c.low, o.qty) and compared(o.qty, c.high)


def compared(low: Any, high: Any) -> bool:
    return low is not None and high is not None and low <= high


def pairs(orders: Rows, limits: Rows, test: Callable[[Any, Any], bool] = within) -> list[Any]:
    return [(o, c) for o in orders for c in limits if test(o, c)]


def alone(orders: Rows, limits: Rows) -> list[Any]:
    return [o for o in orders if not any(within(o, c) for c in limits)]


QUERIES: dict[str, Query] = {
    "range": (
        lambda o, c: o.join(c, on=lambda o, c: c.low <= o.qty and o.qty <= c.high).select(
            lambda o, c: (o.id, c.id, o.key, c.name)
        ),
        lambda os, cs: [(o.id, c.id, o.key, c.name) for o, c in pairs(os, cs)],
    ),
    "one end": (
        lambda o, c: o.join(c, on=lambda o, c: c.low <= o.qty).select(
            lambda o, c: (o.id, c.id, o.key, c.name)
        ),
        lambda os, cs: [
            (o.id, c.id, o.key, c.name)
            for o, c in pairs(os, cs, lambda o, c: compared(c.low, o.qty))
        ],
    ),
    "computed": (
        lambda o, c: o.join(c, on=lambda o, c: c.low <= o.qty and o.qty <= c.high).select(
            lambda o, c: (o.id, (o.key, c.name), o.qty + c.low, c.id)
        ),
        lambda os, cs: [(o.id, (o.key, c.name), o.qty + c.low, c.id) for o, c in pairs(os, cs)],
    ),
    "record": (
        lambda o, c: o.join(c, on=lambda o, c: c.low <= o.qty and o.qty <= c.high).select(
            lambda o, c: Chosen(o.id, c.id, o.key, o.qty + c.low)
        ),
        lambda os, cs: [Chosen(o.id, c.id, o.key, o.qty + c.low) for o, c in pairs(os, cs)],
    ),
    "range, then key": (
        lambda o, c: (
            o.join(c, on=lambda o, c: c.low <= o.qty and o.qty <= c.high)
            .join(c, on=lambda o, c, d: c.id == d.id)
            .select(lambda o, c, d: (o.id, c.id, o.key, d.name))
        ),
        lambda os, cs: [(o.id, c.id, o.key, c.name) for o, c in pairs(os, cs)],
    ),
    "range, then range": (
        lambda o, c: (
            o.join(c, on=lambda o, c: c.low <= o.qty)
            .join(c, on=lambda o, c, d: o.qty <= d.high)
            .select(lambda o, c, d: (o.id, c.id, d.id, o.key, d.name))
        ),
        lambda os, cs: [
            (o.id, c.id, d.id, o.key, d.name)
            for o, c in pairs(os, cs, lambda o, c: compared(c.low, o.qty))
            for d in cs
            if compared(o.qty, d.high)
        ],
    ),
    "key": (
        lambda o, c: o.join(c, on=lambda o, c: o.qty == c.low).select(
            lambda o, c: (o.id, c.id, o.key, c.name)
        ),
        lambda os, cs: [
            (o.id, c.id, o.key, c.name) for o, c in pairs(os, cs, lambda o, c: o.qty == c.low)
        ],
    ),
    "key and range": (
        lambda o, c: o.join(c, on=lambda o, c: o.qty == c.low and o.key <= c.high).select(
            lambda o, c: (o.id, c.id, o.key, c.name)
        ),
        lambda os, cs: [
            (o.id, c.id, o.key, c.name)
            for o, c in pairs(os, cs, lambda o, c: o.qty == c.low and compared(o.key, c.high))
        ],
    ),
    "left join": (
        lambda o, c: o.left_join(c, on=lambda o, c: c.low <= o.qty and o.qty <= c.high).select(
            lambda o, c: (o.id, o.key, None if c is None else (c.id, c.name))
        ),
        lambda os, cs: [
            *((o.id, o.key, (c.id, c.name)) for o, c in pairs(os, cs)),
            *((o.id, o.key, None) for o in alone(os, cs)),
        ],
    ),
    "semi-join": (
        lambda o, c: o.semi_join(c, on=lambda o, c: c.low <= o.qty and o.qty <= c.high).select(
            lambda o: (o.id, o.key)
        ),
        lambda os, cs: [(o.id, o.key) for o in os if any(within(o, c) for c in cs)],
    ),
    "anti-join": (
        lambda o, c: o.anti_join(c, on=lambda o, c: c.low <= o.qty and o.qty <= c.high).select(
            lambda o: (o.id, o.key)
        ),
        lambda os, cs: [(o.id, o.key) for o in alone(os, cs)],
    ),
    "several": (
        lambda o, c: o.join(c, on=lambda o, c: c.low <= o.qty and o.qty <= c.high).select_many(
            lambda o, c: ((o.id, o.key), (c.id, c.name))
        ),
        lambda os, cs: [row for o, c in pairs(os, cs) for row in ((o.id, o.key), (c.id, c.name))],
    ),
    "groups": (
        lambda o, c: (
            o.join(c, on=lambda o, c: c.low <= o.qty and o.qty <= c.high)
            .group_by(lambda o, c: (o.id, o.key))
            .aggregate(CountRows())
        ),
        lambda os, cs: [
            ((o.id, o.key), sum(within(o, c) for c in cs))
            for o in os
            if any(within(o, c) for c in cs)
        ],
    ),
}


def values_of(of: str) -> list[Callable[[], Any]]:
    """Return makers of values: one NaN object for many rows, and another one for each row."""
    plain: list[Any] = NUMBERS if of == "annotated as integers" else [*NUMBERS, None]
    return [*(lambda value=value: value for value in [*plain, SHARED]), lambda: float("nan")]


def commits(of: str, longest: int) -> st.SearchStrategy[list[list[Any]]]:
    """Draw commits of edits: a table, the place of a row to remove, and makers of new values.

    The first ones add rows, most of which match.
    """
    value = st.sampled_from(values_of(of))
    few, many = (st.just(lambda number=number: number) for number in (1, 3))
    fit = st.one_of(
        st.tuples(st.just(0), st.none(), st.tuples(value, few, few)),
        st.tuples(st.just(1), st.none(), st.tuples(few, many, value)),
    )
    new = st.none() | st.tuples(value, value, value)
    edit = st.tuples(st.integers(0, 1), st.none() | st.integers(0, 9), new)
    first = st.lists(fit.map(lambda each: [each]), min_size=2, max_size=5)
    rest = st.lists(st.lists(edit, min_size=1, max_size=longest), min_size=2, max_size=8)
    return st.tuples(first, rest).map(lambda both: [*both[0], *both[1]])


def check_history(of: str, query: Query, history: list[list[Any]], shown: Any) -> None:
    """Compare a view with plain evaluation after each commit, as `shown` shows rows."""
    db, (make, evaluate), ids = Database(), query, count()
    tables: list[Any] = [db.table(kind, name=kind.__name__) for kind in CLASSES[of]]
    held: list[list[Any]] = [[], []]
    view = make(*tables).materialize(on_error="drop")
    for commit in history:
        with db.transaction():
            for table, place, new in commit:
                if place is not None and held[table]:
                    tables[table].remove(held[table].pop(place % len(held[table])))
                if new is not None:
                    kind = CLASSES[of][table]
                    row = kind(next(ids), *(value() for value in new[: 2 + table]))
                    tables[table].add(row)
                    held[table].append(row)
        expected = Counter(map(shown, evaluate(*held)))
        assert Counter(map(shown, view)) == expected
        again = make(*tables).materialize(on_error="drop")
        assert Counter(map(shown, again)) == expected
        again.close()


@sampled
@pytest.mark.parametrize("of", CLASSES)
@pytest.mark.parametrize("name", QUERIES)
@examples(60)
@given(st.data())
def test_single_changes_leave_the_values_of_a_plain_evaluation(
    name: str, of: str, data: st.DataObject
) -> None:
    with thresholds({MANY: data.draw(st.sampled_from((1, 16)))}):
        check_history(of, QUERIES[name], data.draw(commits(of, 1)), repr)


@sampled
@pytest.mark.parametrize("of", CLASSES)
@pytest.mark.parametrize("name", QUERIES)
@examples(60)
@given(st.data())
def test_commits_of_several_changes_leave_equal_values(
    name: str, of: str, data: st.DataObject
) -> None:
    with thresholds({MANY: data.draw(st.sampled_from((1, 16)))}):
        check_history(of, QUERIES[name], data.draw(commits(of, 4)), canonical)


def test_a_row_of_a_loop_is_removed_by_the_plain_operators() -> None:
    """A NaN where the annotation excludes it, and then a value without an order."""
    db = Database()
    orders, limits = db.table(OrderOfInts, name="orders"), db.table(LimitOfInts, name="limits")
    join = orders.join(limits, on=lambda o, c: c.low <= o.qty and o.qty <= c.high)
    wrong: Any = float("nan")
    views = [
        join.select(lambda o, c: (o.key, c.id)).materialize(),
        join.select(lambda o, c: ((o.key, o.qty + c.low), c.id)).materialize(),
        join.select(lambda o, c: Chosen(o.id, c.id, o.key, o.qty * c.low)).materialize(),
        join.group_by(lambda o, c: o.key).aggregate(CountRows()).materialize(),
    ]
    orders.add(OrderOfInts(1, wrong, 2))
    limits.add(LimitOfInts(1, 1, 3, 0))
    limits.add(LimitOfInts(2, 2, 3, 0))
    assert [len(view) for view in views] == [2, 2, 2, 1]
    orders.add(OrderOfInts(2, 0, wrong))
    limits.remove(LimitOfInts(2, 2, 3, 0))
    assert [len(view) for view in views] == [1, 1, 1, 1]
    limits.remove(LimitOfInts(1, 1, 3, 0))
    assert [list(view) for view in views] == [[], [], [], []]
