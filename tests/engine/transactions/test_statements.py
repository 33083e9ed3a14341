"""Statements of many rows equal the same statements of one row each."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Sum, Table, TableError, fixpoint
from reactive.engine.collections.zset import may_hold_nan
from reactive.engine.transactions.row_gate import MANY
from tests.counted_calls import calls_of


class Point(NamedTuple):
    x: int
    tags: tuple[str, ...] = ()


class Reading(NamedTuple):
    name: str
    values: tuple[float, ...]


Statement = tuple[bool, list[int]]
statements = st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 4), max_size=6)), max_size=5)


@given(st.lists(st.tuples(statements, st.booleans()), max_size=6), st.booleans())
def test_transactions_of_them_leave_table_and_views_as_a_counter_has_it(
    transactions: list[tuple[list[Statement], bool]], identical: bool
) -> None:
    db = Database()
    table = db.table(Point, name="points")
    views = [
        table.materialize(),
        table.group_by(lambda p: p.x % 2).aggregate(Count()).materialize(),
        table.join(table, on=lambda p, q: p.x == q.x).materialize(),
        table.order_by(lambda p: -p.x).limit(3).materialize(),
    ]
    expected: Counter[Point] = Counter()
    for written, fails in transactions:
        held = expected.copy()
        try:
            with db.transaction():
                for adds, numbers in written:
                    rows = [Point(n) for n in numbers]
                    rows = [rows[numbers.index(n)] for n in numbers] if identical else rows
                    if adds:
                        table.add_all(rows)
                        expected.update(rows)
                    elif not Counter(rows) - expected:
                        table.remove_all(rows)
                        expected.subtract(rows)
                    else:
                        with pytest.raises(TableError, match=r"not there|is there"):
                            table.remove_all(rows)
                if fails:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            expected = held
        assert Counter(table) == +expected
        for view in views:
            view.verify()


def test_removing_many_is_all_or_nothing() -> None:
    table = Database().table(Point, name="points")
    table.add_all([Point(1), Point(2), Point(2)])
    with pytest.raises(TableError, match=r"cannot remove Point\(x=3.*it is not there"):
        table.remove_all([Point(1), Point(2), Point(3)])
    with pytest.raises(TableError, match=r"cannot remove Point\(x=2"):
        table.remove_all([Point(2)] * 3)
    assert Counter(table) == {Point(1): 1, Point(2): 2}


def test_removing_many_of_a_keyed_table_is_too() -> None:
    table = Database().table(Point, name="points", key="x")
    table.add_all([Point(1), Point(2, ("a",))])
    with pytest.raises(TableError, match="it is not there"):
        table.remove_all([Point(1), Point(2)])
    assert len(table) == 2
    table.remove_all([Point(1), Point(2, ("a",))])
    assert len(table) == 0


def test_rows_that_come_again_in_a_transaction_are_the_objects_that_went() -> None:
    db = Database()
    table = db.table(Point, name="points")
    first = Point(1, ("a",))
    table.add(first)
    with db.transaction():
        table.remove_all([Point(1, ("a",))])
        table.add_all([Point(1, ("a",)), Point(2)])
    assert next(row for row in table if row.x == 1) is first


def test_an_unstored_table_takes_back_in_a_transaction_what_it_gave() -> None:
    db = Database()
    table = db.table(Point, name="points", stored=False)
    views = [table.materialize(), table.join(table, on=lambda p, q: p.x == q.x).materialize()]
    table.add_all([Point(1), Point(2)])
    with db.transaction():
        table.remove_all([Point(1)])
        table.add_all([Point(1), Point(3)])
        table.remove_all([Point(3), Point(2)])
    assert [len(view) for view in views] == [1, 1]


def test_an_unstored_table_refuses_rows_without_a_hash() -> None:
    table = Database().table(tuple, name="pairs", stored=False)
    with pytest.raises(TableError, match="found by hash"):
        table.add_all([(1,), ([],)])


def test_a_nan_inside_a_tuple_of_a_row_is_found_again() -> None:
    table = Database().table(Reading, name="readings")
    table.add_all([Reading("a", (1.0, float("nan")))])
    table.remove_all([Reading("a", (1.0, math.nan))])
    assert len(table) == 0


def test_views_made_inside_a_transaction_begin_with_the_last_commit() -> None:
    db = Database()
    table = db.table(Point, name="points")
    table.add_all([Point(1), Point(2)])
    with db.transaction():
        table.remove_all([Point(1)])
        table.add_all([Point(3)])
        view: Any = table.materialize()
        assert sorted(row.x for row in view) == [1, 2]
    assert sorted(row.x for row in view) == [2, 3]


def test_statements_that_cancel_are_no_commit() -> None:
    db = Database()
    table = db.table(Point, name="points")
    with db.transaction():
        table.add_all([Point(1), Point(2)])
        table.remove_all([Point(2), Point(1)])
    assert db.version == 0


def test_annotations_say_which_rows_need_no_search_for_nan() -> None:
    assert not may_hold_nan(Point)
    assert may_hold_nan(Reading)


def test_a_recursion_over_an_unstored_table_sees_what_a_transaction_comes_to() -> None:
    db = Database()
    edges = db.table(Point, name="edges", stored=False)
    view = fixpoint(
        lambda found: edges.select(lambda e: e.x).union(found.where(lambda x: x > 5))
    ).materialize()
    edges.add(Point(1))
    with db.transaction():
        edges.remove(Point(1))
        edges.remove(Point(1))
        edges.add(Point(1))
    assert list(view) == []


def test_a_sum_goes_on_when_an_integer_leaves_as_the_float_that_it_equals() -> None:
    table = Database().table(tuple, name="rows")
    view = table.select(lambda r: r[0]).distinct().aggregate(Sum(lambda x: x)).materialize()
    table.add_all([(2, 1), (2.0, 2)])
    table.remove((2, 1))
    table.add((1.0, 2))
    table.remove((2.0, 2))
    assert view.value == 1.0


def test_rows_that_an_order_refuses_leave_nothing_behind() -> None:
    table: Table[Any] = Database().table(object, name="rows")
    view = table.order_by(lambda r: r).limit(3).materialize()
    table.add(1)
    size = view.stats().bytes
    for number in range(1000):
        with pytest.raises(TypeError):
            table.add(f"x{number}")
    assert view.stats().bytes < size + 5_000


class Untyped(NamedTuple):
    id: Any
    town: Any


MADE: list[Callable[..., Any]] = [Untyped, lambda *values: tuple(values)]


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("loads", [True, False])
def test_rows_without_types_are_looked_at_as_those_that_came_before(make: Any, loads: bool) -> None:
    table = Database().table(object)
    rows = [make(n, None if n % 5 else "Bonn") for n in range(3 * MANY)]
    at_first = calls_of(lambda: table.add(rows[-1]))
    if loads:
        table.add_all(rows[:MANY])
    else:
        for row in rows[:MANY]:
            table.add(row)
    calls = []
    for number, row in enumerate(rows[MANY : 2 * MANY]):
        if number % 16:
            table.add(row)
        else:
            calls.append(calls_of(partial(table.add, row)))
    assert median(calls) < at_first - 2


@pytest.mark.parametrize("make", MADE)
def test_rows_of_other_values_are_looked_at_whole(make: Any) -> None:
    table = Database().table(object)
    table.add_all([make(n, 0.5) for n in range(2 * MANY)])
    for odd in (make(1, math.nan), make(1, (math.nan,)), (1, 2, math.nan), math.nan, (), Point(1)):
        again = copy.deepcopy(odd)
        table.add(odd)
        table.remove(again)
    with pytest.raises(TableError, match="no view would notice"):
        table.add(Changing(1))
    with pytest.raises(TableError, match="found by hash"):
        table.add(make(1, []))
    assert len(table) == 2 * MANY


@dataclass(eq=False)
class Changing:
    id: int


@given(st.lists(st.sampled_from([1, 0.5, math.nan, "a", None, (math.nan,), -0.0]), max_size=12))
def test_a_table_finds_again_what_it_took_one_by_one(values: list[Any]) -> None:
    table, loaded = Database().table(object), Database().table(object)
    for value in values:
        table.add(Untyped(value, value))
    loaded.add_all([Untyped(value, value) for value in values])
    assert Counter(table) == Counter(loaded)
    for value in values:
        table.remove(Untyped(copy.deepcopy(value), value))
    assert not len(table)
