"""Joins that share an index get the rows whose key their other side has, and are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Max, Sum, Table, View
from reactive.engine.compiler import queries
from reactive.engine.dataflow import discrimination
from reactive.engine.transactions.transaction import Transaction
from tests.budget import examples
from tests.counted_calls import calls_of
from tests.thresholds import thresholds


class Order(NamedTuple):
    customer: Any
    amount: int
    region: int


class Customer(NamedTuple):
    id: Any
    nation: Any
    tier: int


class Nation(NamedTuple):
    name: Any
    zone: int


Tables = tuple["Table[Order]", "Table[Customer]", "Table[Nation]"]
Query = Callable[[Tables, int], Any]


def joined(tables: Tables) -> Any:
    orders, customers, _ = tables
    return orders.join(customers, on=lambda o, c: o.customer == c.id)


def closed_join(tables: Tables) -> Any:
    return joined(tables).join(tables[2], on=lambda o, c, n: c.nation == n.name)


QUERIES: dict[str, Query] = {
    "rows": lambda t, k: joined(t).where(lambda o, c: c.nation == k),
    "sum": lambda t, k: (
        joined(t).where(lambda o, c: c.nation == k).aggregate(Sum(lambda o, c: o.amount))
    ),
    "sum by the other side": lambda t, k: (
        joined(t)
        .where(lambda o, c: c.nation == k)
        .group_by(lambda o, c: c.tier)
        .aggregate(Sum(lambda o, c: o.amount))
    ),
    "sum by both sides": lambda t, k: (
        joined(t)
        .where(lambda o, c: c.nation == k)
        .group_by(lambda o, c: (o.region, c.tier))
        .aggregate(Sum(lambda o, c: o.amount), Count())
    ),
    "greatest": lambda t, k: (
        joined(t).where(lambda o, c: c.nation == k).aggregate(Max(lambda o, c: o.amount))
    ),
    "unequal": lambda t, k: joined(t).where(lambda o, c: c.nation != k).aggregate(Count()),
    "a range": lambda t, k: joined(t).where(lambda o, c: c.tier > k),
    "either": lambda t, k: joined(t).where(lambda o, c: c.nation == k or c.tier == k),
    "a grid": lambda t, k: joined(t).where(lambda o, c: c.nation == k % 2 and o.region == k // 2),
    "a test of both": lambda t, k: joined(t).where(
        lambda o, c: c.nation == k and o.amount < c.tier
    ),
    "a test that may raise": lambda t, k: joined(t).where(
        lambda o, c: c.nation == k and 6 // o.amount > c.tier
    ),
    "a key that may raise": lambda t, k: t[0].join(
        t[1], on=lambda o, c: c.nation == k and 6 // o.amount == c.id
    ),
    "two joins": lambda t, k: closed_join(t).where(lambda o, c, n: n.zone == k),
    "two joins, by the key": lambda t, k: closed_join(t).where(lambda o, c, n: n.name == k),
    "two joins, the middle": lambda t, k: closed_join(t).where(lambda o, c, n: c.tier == k),
    "two joins, the first": lambda t, k: closed_join(t).where(lambda o, c, n: o.region == k),
    "two joins of a part": lambda t, k: (
        t[0]
        .where(lambda o: o.region == k)
        .join(t[1], on=lambda o, c: o.customer == c.id)
        .join(t[2], on=lambda o, c, n: c.nation == n.name)
    ),
    "two joins, greatest": lambda t, k: (
        closed_join(t).where(lambda o, c, n: n.zone == k).aggregate(Max(lambda o, c, n: o.amount))
    ),
    "two joins, sum": lambda t, k: (
        closed_join(t).where(lambda o, c, n: n.zone == k).aggregate(Sum(lambda o, c, n: o.amount))
    ),
    "in order": lambda t, k: (
        joined(t).where(lambda o, c: c.nation == k).order_by(lambda o, c: o.amount).limit(2)
    ),
    "distinct": lambda t, k: (
        joined(t).where(lambda o, c: c.nation == k).select(lambda o, c: o.region).distinct()
    ),
    "semi join": lambda t, k: t[0].semi_join(
        t[1].where(lambda c: c.nation == k), on=lambda o, c: o.customer == c.id
    ),
    "semi join by a test": lambda t, k: t[0].semi_join(
        t[1].where(lambda c: c.nation == k),
        on=lambda o, c: o.customer == c.id and o.amount < c.tier,
    ),
    "anti join": lambda t, k: t[0].anti_join(
        t[1].where(lambda c: c.nation == k), on=lambda o, c: o.customer == c.id
    ),
    "left join": lambda t, k: t[0].left_join(
        t[1].where(lambda c: c.nation == k), on=lambda o, c: o.customer == c.id
    ),
    "itself": lambda t, k: t[0].join(
        t[0].where(lambda o: o.region == k), on=lambda o, p: o.customer == p.customer
    ),
}
KEYS = st.sampled_from([0, 1, 2, 3, True, None, float("nan"), "a"])
SMALL = st.integers(0, 3)
orders_rows = st.builds(Order, KEYS, SMALL, SMALL)
customers_rows = st.builds(Customer, KEYS, st.sampled_from([0, 1, 2, None]), SMALL)
nations_rows = st.builds(Nation, st.sampled_from([0, 1, 2, None]), SMALL)
CHANGE = st.one_of(
    st.tuples(st.just(0), st.booleans(), orders_rows),
    st.tuples(st.just(1), st.booleans(), customers_rows),
    st.tuples(st.just(2), st.booleans(), nations_rows),
)
COMMIT = st.tuples(st.lists(CHANGE, min_size=1, max_size=4), st.booleans())
"""Changes in one transaction, and whether its commit is undone."""
EVENT = st.one_of(COMMIT, st.integers(0, 5))
"""A commit, or the number of a view that comes, or goes if it is there."""


class RefusedError(Exception):
    """Raised at the end of a commit, after all operators have stepped."""


def refuse() -> None:
    raise RefusedError


def change(tables: Tables, which: int, adds: bool, row: Any) -> None:
    table: Any = tables[which]
    (table.add if adds else table.discard)(row)


def run(query: Query, history: list[Any], views: int, db: Database, on_error: Any) -> None:
    """Run a history, and compare each view with its query after every event."""
    tables = db.table(Order), db.table(Customer), db.table(Nation)
    live: dict[int, View[Any]] = {
        k: query(tables, k).materialize(on_error=on_error) for k in range(views)
    }
    for event in history:
        if isinstance(event, int):
            if event in live:
                live.pop(event).close()
            else:
                live[event] = query(tables, event).materialize(on_error=on_error)
        else:
            changes, is_refused = event
            with (
                suppress(RefusedError, TypeError, ZeroDivisionError),
                Transaction(db._engine, refuse if is_refused else None),
            ):
                for each in changes:
                    change(tables, *each)
            assert db._engine.broken is None  # undone, not repaired
        for view in live.values():
            view.verify()


@pytest.mark.parametrize("name", QUERIES)
@examples(208)
@given(st.lists(EVENT, max_size=10), st.booleans(), st.booleans())
def test_they_are_right_after_every_event(
    name: str, history: list[Any], drops: bool, shares: bool
) -> None:
    with found_by_key(shares=shares):
        run(QUERIES[name], history, 4, Database(), "drop" if drops else "raise")


@contextmanager
def found_by_key(*, shares: bool) -> Iterator[None]:
    """Find readers by key from two of them on.

    shares: whether there are indexes by field, and joins of two in place of multiway joins.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discrimination, "WORTHWHILE", 2)
        if shares:
            patch.setattr(queries, "MANY_READERS", 2)
            patch.setattr(queries, "MANY_RANGES", 2)
            patch.setattr(queries, "LARGE", 0)
        yield


@pytest.mark.parametrize("name", ["a grid", "two joins", "semi join"])
def test_rows_that_come_and_go_with_their_partners_find_each_other(name: str) -> None:
    """Join both sides of a grid, which find their readers by the keys of the other side."""
    history: list[Any] = [([(2, True, Nation(nation, nation))], False) for nation in range(3)]
    for key, is_undone in enumerate([False, True, False, True]):
        for places in (range(2), range(1), range(1, 2)):
            come: list[Any] = [(0, True, Order(key, 1, region)) for region in places]
            come += [(1, True, Customer(key, nation, 0)) for nation in places]
            gone = [(which, False, row) for which, _, row in come]
            for changes in (come, gone, come[:1], come[1:], gone[:1], gone[1:]):
                history += [(changes, True)] * is_undone
                history += [(changes, False)]
    with found_by_key(shares=True):
        run(QUERIES[name], history, 4, Database(), "drop")


def test_a_refused_commit_loses_no_partner_of_a_new_view() -> None:
    """The keys of a new view are found in a commit that deletes a partner, and is undone."""
    there: list[Any] = [(1, True, Customer(n, n, 0)) for n in range(3)]
    there += [(0, True, Order(n, n, 0)) for n in range(3)]
    order, partner = (0, True, Order(1, 1, 1)), (1, False, Customer(1, 1, 0))
    new_view = 4
    history: list[Any] = [(there, False), new_view, ([partner, order], True), ([order], False)]
    with found_by_key(shares=True):
        run(QUERIES["a grid"], history, 4, Database(), "drop")


NAMES = ["rows", "sum", "distinct", "semi join", "two joins, sum"]
DEEP = [name for name in QUERIES if name.startswith("two joins") and "sum" not in name]


@pytest.mark.parametrize("name", [*NAMES, *DEEP])
def test_a_change_calls_as_much_with_many_views(name: str) -> None:
    def calls(views: int) -> int:
        db = Database()
        tables = db.table(Order), db.table(Customer, key="id"), db.table(Nation, key="name")
        tables[2].add_all(Nation(n, n) for n in range(300))
        tables[1].add_all(Customer(n, n, 0) for n in range(300))
        tables[0].add_all(Order(n, n, 0) for n in range(300))
        live = [QUERIES[name](tables, k).materialize() for k in range(views)]
        for n in range(100):
            tables[0].add(Order(n, -n, 1))
        count = calls_of(lambda: tables[0].add(Order(7, 1000, 0)))
        assert len(live) == views
        return count

    assert calls(120) <= calls(30) + 3


@pytest.mark.parametrize("folds", [(Count(),), (Count(), Max(lambda x, y, z: y[0]))], ids=str)
def test_a_join_that_makes_sums_is_found_by_the_keys_of_its_other_side(
    folds: tuple[Any, ...],
) -> None:
    """Its own sums have keys, too, which are those of the join above it."""
    lowest = {
        "reactive.engine.dataflow.discrimination.WORTHWHILE": 1,
        "optimizer.plans.multiway.FEWEST": 10**9,
    }
    with thresholds(lowest), Database() as db:
        pairs = db.table(tuple[int, int], name="pairs")
        ends = db.table(tuple[int, int], name="ends")
        ends.add((2, 0))
        view = (
            ends.join(pairs, on=lambda x, y: x[1] == y[0])
            .join(pairs, on=lambda x, y, z: y[1] == z[0] and x[0] == z[1])
            .aggregate(*folds)
            .materialize()
        )
        assert "groups of sums join" in view.explain()
        for row in ((0, 2), (2, 2), (0, 2)):
            pairs.add(row)
        view.verify()
        pairs.remove((2, 2))
        view.verify()
