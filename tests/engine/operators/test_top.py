"""`group_by(key).top(n, by)`, `first` and `last` against sorting.

They are compared after each commit and each refused commit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import (
    Count,
    Database,
    GroupedView,
    OffloadError,
    PlanError,
    StratificationError,
    Sum,
    asc,
    desc,
    fixpoint,
)
from reactive.engine.operators.rowwise import Top
from reactive.engine.transactions.transaction import Transaction
from tests.borders.offload.elsewhere import Elsewhere
from tests.budget import examples
from tests.replica import Replica


@dataclass(frozen=True, slots=True, order=True)
class Order:
    town: Any
    total: Any
    id: int


class Pair(NamedTuple):
    town: Any
    total: int
    id: int


ROWS = st.tuples(st.sampled_from(["a", "b", None, math.nan]), st.integers(0, 3), st.integers(0, 2))
COMMITS = st.lists(
    st.tuples(
        st.lists(st.tuples(ROWS, st.integers(1, 2)), max_size=5),
        st.integers(0, 4),
        st.sampled_from(["stands", "stands", "stands", "fails", "does not compare"]),
    ),
    max_size=8,
)
Choose = Callable[[list[Any]], list[Any]]
QUERIES: dict[str, tuple[Callable[[Any], Any], Choose]] = {
    "top 2": (
        lambda groups: groups.top(2, by="total"),
        lambda rows: sorted(sorted(rows), key=lambda o: o.total, reverse=True)[:2],
    ),
    "top 0": (lambda groups: groups.top(0, "total"), lambda rows: []),
    "top 9, several keys": (
        lambda groups: groups.top(3, [desc("total"), lambda o: o.id]),
        lambda rows: sorted(rows, key=lambda o: (-o.total, -o.id))[:3],
    ),
    "least 2": (
        lambda groups: groups.top(2, lambda o: o.total, descending=False),
        lambda rows: sorted(rows)[:2],
    ),
    "first": (lambda groups: groups.first("total"), lambda rows: sorted(rows)[:1]),
    "last": (
        lambda groups: groups.last(by=lambda o: o.total),
        lambda rows: sorted(sorted(rows), key=lambda o: o.total, reverse=True)[:1],
    ),
    "last, several keys": (
        lambda groups: groups.last(by=[desc("total"), asc("id")]),
        lambda rows: sorted(rows, key=lambda o: (-o.total, o.id))[-1:],
    ),
}


def expected(rows: Iterable[Any], choose: Choose) -> Counter[Any]:
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        groups.setdefault(row.town, []).append(row)
    return Counter(row for members in groups.values() for row in choose(members))


@examples(200)
@given(
    history=COMMITS,
    kind=st.sampled_from([Order, Pair]),
    name=st.sampled_from(sorted(QUERIES)),
    optimize=st.booleans(),
)
def test_a_view_has_the_rows_that_sorting_each_group_puts_first(
    history: Any, kind: Any, name: str, optimize: bool
) -> None:
    query, choose = QUERIES[name]
    db = Database(optimize=optimize)
    table = db.table(kind, name="orders")
    view = query(table.group_by("town")).materialize("top")
    others = table.where(lambda o: o.id == -1).select(lambda o: 1 // 0).materialize()
    replica = Replica(view)
    held: list[Any] = []
    for added, gone, end in history:
        rows = [kind(*row) for row, times in added for _ in range(times)]
        left = held[min(gone, len(held)) :]
        try:
            with db.transaction():
                table.remove_all(held[: min(gone, len(held))])
                table.add_all(rows)
                if end == "fails":
                    table.add(kind("a", 5, -1))
                if end == "does not compare":
                    table.add_all([kind("b", "x", 1), kind("b", 1, 1)])
        except (ZeroDivisionError, TypeError):
            assert end != "stands"
        else:
            held = [*left, *rows]
        assert Counter(view) == expected(held, choose)
        view.verify()
        replica.check()
    assert Counter(query(table.group_by("town")).materialize()) == expected(held, choose)
    table.clear()
    assert view.stats().rows == 0 and not list(others)


@pytest.mark.parametrize("seed", range(4))
def test_large_groups_and_batches(seed: int) -> None:
    random = Random(seed)
    table = Database().table(Order, name="orders")
    top = table.group_by("town").top(7, by="total").materialize()
    for _ in range(12):
        batch = [
            Order(random.randrange(3), random.randrange(400), random.randrange(9))
            for _ in range(random.choice([1, 400]))
        ]
        with Transaction(table._engine):
            table.remove_all(random.sample(held := list(table), len(held) // 3))
            table.add_all(batch)
        by_total = expected(
            table, lambda rows: sorted(sorted(rows), key=lambda o: o.total, reverse=True)[:7]
        )
        assert Counter(top) == by_total


@pytest.mark.parametrize("optimize", [True, False])
def test_what_raises_names_the_row_and_takes_the_commit_back(optimize: bool) -> None:
    db = Database(optimize=optimize)
    numbers = db.table(int, name="numbers")
    top = numbers.group_by(lambda n: n % 2).top(1, by=lambda n: 12 // (n - 7)).materialize("top")
    by_key = numbers.group_by(lambda n: 12 // (n - 9)).first(by=lambda n: n).materialize("first")
    numbers.add_all([1, 2, 8, 10])
    before = sorted(top), sorted(by_key)
    for bad, name in ((7, "'top'"), (9, "'first'")):
        with pytest.raises(ZeroDivisionError) as raised:
            numbers.add_all([3, 4, 12, bad])
        assert f"of view {name}" in raised.value.__notes__[0]
        assert raised.value.__notes__[0].endswith(f"on row {bad}")
        assert (sorted(top), sorted(by_key)) == before and len(numbers) == 4
    numbers.add(20)
    assert sorted(top) == [1, 8]
    top.verify()
    by_key.verify()


def test_values_that_do_not_compare_have_a_remedy() -> None:
    orders: Any = Database().table(Order)
    view = orders.group_by("town").last(by="total").materialize()
    orders.add(Order("a", None, 1))
    with pytest.raises(TypeError) as raised:
        orders.add(Order("a", 3, 1))
    assert '  nulls="first" or nulls="last" gives None a place' in raised.value.__notes__
    orders.update(Order("a", None, 1), Order("a", 4, 1))
    assert list(view) == [Order("a", 4, 1)]


def test_none_and_nan_have_a_place() -> None:
    rows = Database().table(tuple)
    groups = rows.group_by(lambda r: r[0])
    latest = groups.last(lambda r: r[1], nulls="first").materialize()
    first = groups.first(lambda r: r[1], nulls="last").materialize()
    most = groups.top(1, lambda r: r[1], nulls="last").materialize()
    rows.add_all([("a", None), ("a", 3), ("a", 2), ("b", None), ("c", math.nan), ("c", 1)])
    assert sorted(latest, key=str) == [("a", 3), ("b", None), ("c", math.nan)]
    assert sorted(most, key=str) == [("a", 3), ("b", None), ("c", math.nan)]
    assert sorted(first, key=str) == [("a", 2), ("b", None), ("c", 1)]
    for view in (latest, first, most):
        view.verify()


def test_computed_nan_keys_are_one_group() -> None:
    numbers = Database().table(int)
    view = numbers.group_by(lambda n: float("nan")).top(1, by=lambda n: n).materialize()
    numbers.add(1)
    numbers.add(2)
    assert list(view) == [2]
    numbers.remove(1)
    numbers.remove(2)
    assert not list(view) and view.stats().rows == 0


def test_bindings_stay_as_they_were() -> None:
    db = Database()
    orders, rates = db.table(Order, name="orders"), db.table(Pair, name="rates")
    both = orders.join(rates, on="town")
    best = both.group_by(lambda o, r: o.town).top(1, by=lambda o, r: o.total * r.total)
    view = best.select(lambda o, r: o.total * r.total).materialize()
    orders.add_all([Order("a", 2, 1), Order("b", 3, 1), Order("a", 1, 1)])
    rates.add_all([Pair("a", 2, 1), Pair("b", 1, 1), Pair("a", 5, 1)])
    assert sorted(view) == [3, 10]
    view.verify()


def test_names_of_columns_stay() -> None:
    orders = Database().table(Order, name="orders")
    totals = orders.group_by(lambda o: (o.town, o.id)).aggregate(orders=Count(), total=Sum("total"))
    best = totals.group_by(lambda row: row.key[0]).top(1, by="total")
    view = best.where(lambda row: row.total > 3).materialize()
    assert view.columns == ["key", "orders", "total"] and isinstance(view, GroupedView)
    orders.add_all([Order("a", 2, 1), Order("a", 3, 1), Order("a", 4, 2), Order("b", 1, 1)])
    assert [(row.key, row.total) for row in view] == [(("a", 1), 5)]
    assert view["a", 1].orders == 2
    view.verify()


def test_rows_without_an_order_stand_as_they_arrived() -> None:
    class Thing:
        pass

    table = Database().table(Thing, identity=True)
    things = [Thing() for _ in range(4)]
    view = table.group_by(lambda t: 0).first(by=lambda t: 0).materialize()
    for thing in things:
        table.add(thing)
    assert list(view) == things[:1]
    table.remove(things[0])
    assert list(view) == things[1:2]
    view.verify()
    table.add(things[0])
    view.verify()


def test_tables_that_are_not_stored_may_take_back_what_they_never_gave() -> None:
    numbers = Database().table(int, stored=False)
    top = numbers.group_by(lambda n: n % 2).top(1, by=lambda n: n)
    view = top.materialize()
    numbers.remove(5)
    numbers.add_all([3, 1])
    assert list(view) == [3]
    numbers.add(5)
    assert list(view) == [3]
    numbers.add(7)
    late = top.select(lambda n: -n).materialize()
    assert list(view) == [7] and list(late) == [-7]
    numbers.remove_all([1, 3, 7])
    assert not list(view) and not list(late) and view.stats().rows == 0


@pytest.mark.parametrize("rows", [100, 10_000])
def test_a_change_touches_one_row_however_many_there_are(rows: int) -> None:
    numbers = Database().table(int)
    view = numbers.group_by(lambda n: n % 10).top(20, by=lambda n: n).materialize()
    numbers.add_all(range(rows))
    before = view.stats().touched
    numbers.add(rows + 1)
    numbers.remove(1)
    assert view.stats().touched - before <= 2 * 4


def test_a_condition_on_the_key_is_asked_of_the_rows() -> None:
    orders = Database().table(Order, name="orders")
    one = orders.group_by("town").top(1, by="total").where(town="a")
    assert "push_where_below_top" in str(one.explain())
    view = one.materialize()
    orders.add_all([Order("a", 1, 1), Order("b", 2, 1), Order("a", 2, 1)])
    assert list(view) == [Order("a", 2, 1)] and view.stats().rows == 3
    view.verify()


def test_what_is_refused_when_it_is_made() -> None:
    orders: Any = Database().table(Order, name="orders")
    groups = orders.group_by("town")
    for n in (-1, True, 2.0, None, "total"):
        with pytest.raises(PlanError, match="top takes a number of rows, from 0 on, not"):
            groups.top(n, by="total")
    with pytest.raises(PlanError, match="top takes what its rows stand by"):
        groups.top(3)
    with pytest.raises(PlanError, match="first takes what its rows stand by"):
        groups.first()
    with pytest.raises(PlanError, match="last takes what its rows stand by"):
        groups.last()
    with pytest.raises(PlanError, match=r"top: by=\[\] names nothing"):
        groups.top(3, [])
    with pytest.raises(PlanError, match="top: no binding has a field 'totl'; did you mean 'total'"):
        groups.top(3, by="totl")
    with pytest.raises(PlanError, match="Order has no field 'totl'"):
        groups.top(3, by=lambda o: o.totl)
    with pytest.raises(PlanError, match="top calls its callable with 1 argument"):
        groups.top(3, by=lambda a, b: a)
    with pytest.raises(PlanError, match="top takes keys, not asc itself"):
        groups.top(3, by=asc)
    with pytest.raises(StratificationError, match="own order\n  r -> top -> r"):
        fixpoint(lambda r: orders.union(r.group_by(lambda o: o).top(1, by=lambda o: 0)))


def test_explain_and_the_place_of_a_part_elsewhere() -> None:
    db = Database(offload=Elsewhere())
    orders = db.table(Order, name="orders")
    query = orders.group_by("town").top(3, [desc("total", nulls="last"), asc("id")])
    assert str(query.explain(optimized=False)) == (
        "top 3 by desc(order.total, nulls='last'), order.id of each order.town\n  table orders"
    )
    with pytest.raises(OffloadError, match="the orders of its groups are in the process"):
        query.materialize().offload()


def test_an_operator_that_is_taken_back_is_as_it_was() -> None:
    operator = Top(lambda n: n % 2, lambda n: n, limit=1)
    operator.step([(1, 1), (2, 1), (3, 1)])
    operator.commit()
    before, held = sorted(operator.contents()), operator.footprint()
    operator.step([(1, -1), (2, -1), (5, 1), (0.5, 1)])
    operator.undo()
    assert sorted(operator.contents()) == before == [(1, 1), (2, 1)]
    assert operator.footprint()[0] == held[0] == 3
    assert operator.step([(1, -1), (2, -1), (3, -1)]) == [(1, -1), (2, -1)]
    operator.commit()
    assert operator.footprint()[0] == 0


def test_the_first_rows_of_groups_of_groups_are_a_view() -> None:
    numbers = Database().table(int, name="numbers")
    counted = numbers.group_by(lambda n: n % 2).aggregate(Count())
    view = counted.group_by(lambda k, n: k).top(1, by=lambda k, n: n).materialize()
    numbers.add_all([1, 3, 4])
    assert sorted(view) == [(0, 1), (1, 2)]
    assert dict(view.zset().items()) == {(0, 1): 1, (1, 2): 1}
    assert isinstance(view, GroupedView) and view.get(1) == 2
    numbers.remove(1)
    assert sorted(view) == [(0, 1), (1, 1)]
    view.verify()
