"""Operators that are evaluated anew have the state, and tell the changes, of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Avg, Count, CountDistinct, Database, Max, Min, Sum
from reactive.engine.dataflow import leaves, node, recomputation, schedule
from reactive.engine.operators import aggregate, index_by, join, order_by, set_operators
from reactive.engine.operators.loops import grouped
from reactive.engine.transactions.transaction import Transaction
from tests.budget import SEED
from tests.replica import Replica


@dataclass(frozen=True)
class Order:
    id: int
    customer: int
    amount: Any


@dataclass(frozen=True)
class Customer:
    id: int
    region: str


CLASSES = (
    *(leaves.ViewRows, index_by.IndexBy, join.SumsBy, aggregate.GroupAggregates),
    *(grouped.GroupLoopRunner, set_operators.Distinct, set_operators.Union),
    *(order_by.OrderBy, set_operators.Pointwise),
)
AMOUNTS = [0, 1, 2, 2.5, float("nan"), 7, True]


def _joined(orders: Any, customers: Any) -> Any:
    return orders.join(customers, left_key=lambda o: o.customer, right_key=lambda c: c.id)


QUERIES: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda o, c: o,
    "where": lambda o, c: o.where(lambda r: r.amount > 1),
    "by key": lambda o, c: o.select(lambda r: (r.customer, r.amount)),
    "sums": lambda o, c: o.group_by(lambda r: r.customer).aggregate(
        Count(), Sum(lambda r: r.amount), Avg(lambda r: r.amount)
    ),
    "total": lambda o, c: o.aggregate(Sum(lambda r: r.amount)),
    "extremes": lambda o, c: o.group_by(lambda r: r.customer).aggregate(
        Min(lambda r: r.id), Max(lambda r: r.id), CountDistinct(lambda r: r.amount)
    ),
    "join": _joined,
    "join, then where": lambda o, c: _joined(o, c).where(lambda o, c: o.id > 3),
    "join, then distinct": lambda o, c: _joined(o, c).select(lambda o, c: c.region).distinct(),
    "join, then sums": lambda o, c: (
        _joined(o, c).group_by(lambda o, c: c.region).aggregate(Sum(lambda o, c: o.amount))
    ),
    "join, then extremes": lambda o, c: (
        _joined(o, c).group_by(lambda o, c: c.region).aggregate(Max(lambda o, c: o.id))
    ),
    "order": lambda o, c: o.order_by(lambda r: r.id),
    "first rows": lambda o, c: o.order_by(lambda r: r.customer, descending=True).limit(3, 1),
    "join, then order": lambda o, c: _joined(o, c).order_by(lambda o, c: o.id),
    "self join": lambda o, c: o.join(o, left_key=lambda a: a.id, right_key=lambda b: b.customer),
    "outer join": lambda o, c: o.left_join(
        c, left_key=lambda o: o.customer, right_key=lambda c: c.id
    ),
    "semi join": lambda o, c: o.semi_join(
        c, left_key=lambda o: o.customer, right_key=lambda c: c.id
    ),
    "anti join": lambda o, c: o.anti_join(
        c, left_key=lambda o: o.customer, right_key=lambda c: c.id
    ),
    "full join": lambda o, c: o.full_join(
        c, left_key=lambda o: o.customer, right_key=lambda c: c.id
    ),
    "right join, then where": lambda o, c: o.right_join(
        c, left_key=lambda o: o.customer, right_key=lambda c: c.id
    ).where(lambda o, c: c.region == "a"),
    "semi join, then sums": lambda o, c: (
        o.semi_join(c, left_key=lambda o: o.customer, right_key=lambda c: c.id)
        .group_by(lambda o: o.customer)
        .aggregate(Count())
    ),
    "bag difference": lambda o, c: o.select(lambda r: r.customer).difference_all(
        c.select(lambda r: r.id)
    ),
    "intersection": lambda o, c: o.select(lambda r: r.customer).intersection(
        c.select(lambda r: r.id)
    ),
    "distinct": lambda o, c: o.select(lambda r: r.amount).distinct(),
    "union": lambda o, c: o.select(lambda r: r.customer).union(
        o.where(lambda r: r.id > 5).select(lambda r: r.id)
    ),
    "difference": lambda o, c: o.select(lambda r: r.customer).difference(c.select(lambda r: r.id)),
    "groups, then join": lambda o, c: (
        o.group_by(lambda r: r.customer)
        .aggregate(Count())
        .join(c, left_key=lambda key, count: key, right_key=lambda c: c.id)
    ),
    "groups, then order": lambda o, c: (
        o.group_by(lambda r: r.customer).aggregate(Count()).order_by(lambda key, count: key)
    ),
}


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate anew in every commit of two rows."""
    monkeypatch.setattr(schedule, "MANY", 2)
    monkeypatch.setattr(recomputation, "_pays", lambda *given: True)
    for kind in CLASSES:
        monkeypatch.setattr(kind, "change_cost", 1e9)


class Tables:
    """Two tables, views of all queries, and what their subscribers have heard."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.db = Database()
        self.orders = self.db.table(Order)
        self.customers = self.db.table(Customer)
        self.views: dict[str, Any] = {}
        self.heard: dict[str, Counter[Any]] = {}
        self.subscriptions: list[Any] = []

    def make_views(self, *names: str) -> None:
        for name in names or QUERIES:
            view = self.views[name] = QUERIES[name](self.orders, self.customers).materialize()
            heard = self.heard[name] = Counter({row: view.count(row) for row in view})

            def hear(delta: Any, heard: Counter[Any] = heard) -> None:
                assert len(dict(delta)) == len(delta)
                assert len(delta)
                heard.update(dict(delta))

            self.subscriptions.append(view.subscribe(hear))

    def change(self) -> None:
        """Change up to all rows in one transaction."""
        draw = self.random
        with self.db.transaction():
            sides: Any = ((self.orders, self.order), (self.customers, self.customer))
            for table, make in sides:
                if draw.random() < 0.7:
                    rows = list(table)
                    table.remove_all(draw.sample(rows, draw.randint(0, len(rows))))
                    table.add_all([make() for _ in range(draw.choice([0, 1, 3, 12]))])

    def order(self) -> Order:
        draw = self.random
        return Order(draw.randrange(12), draw.randrange(5), draw.choice(AMOUNTS))

    def customer(self) -> Customer:
        return Customer(self.random.randrange(5), self.random.choice("ab"))

    def verify(self) -> None:
        for name, view in self.views.items():
            view.verify()
            found = {row: count for row, count in self.heard[name].items() if count}
            assert found == {row: view.count(row) for row in view}, name

    def recomputed(self) -> int:
        return sum(node.recomputed for node in self.db._engine.graph.nodes())


@pytest.fixture(params=range(3))
def tables(request: pytest.FixtureRequest) -> Iterator[Tables]:
    yield Tables(SEED + request.param)


def test_views_equal_their_queries_after_every_commit(tables: Tables) -> None:
    tables.make_views()
    for _ in range(20):
        tables.change()
        tables.verify()
    assert tables.recomputed()


@pytest.mark.parametrize("name", QUERIES)
def test_each_query_alone_equals_its_definition(name: str) -> None:
    tables = Tables(SEED)
    tables.make_views(name)
    for _ in range(12):
        tables.change()
        tables.verify()


@pytest.mark.parametrize("failing", range(1, 9))
@pytest.mark.parametrize("late", [False, True])
def test_nodes_step_over_the_changes_if_an_evaluation_raises(
    failing: int, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute, calls = node.compute_state, [0]

    def fail(*given: Any) -> None:
        calls[0] += 1
        if late:
            compute(*given)
        if calls[0] % failing == 0:
            raise ValueError("a fault")
        if not late:
            compute(*given)

    monkeypatch.setattr(recomputation, "compute_state", fail)
    tables = Tables(SEED + failing)
    tables.make_views()
    for _ in range(8):
        tables.change()
        tables.verify()
    assert calls[0] >= failing


def test_a_commit_that_fails_restores_all_detached_states(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, fails = schedule.CommitStep.address, [False]

    def refuse(step: Any) -> None:
        address(step)
        if fails[0]:
            raise ValueError("refused")

    monkeypatch.setattr(schedule.CommitStep, "address", refuse)
    tables.make_views()
    for number in range(20):
        fails[0] = number % 2 == 1
        state = [Counter(tables.orders), Counter(tables.customers)]
        try:
            tables.change()
        except ValueError:
            assert state == [Counter(tables.orders), Counter(tables.customers)]
        tables.verify()


def test_a_refused_row_raises_as_in_a_step(tables: Tables) -> None:
    tables.make_views()
    tables.change()
    for _ in range(4):
        bad = Order(1, tables.random.randrange(5), "no number")
        with pytest.raises(TypeError, match=r"unsupported|not supported|str") as raised:
            tables.orders.add_all([tables.order(), tables.order(), bad])
        assert any("rolled back" in note for note in raised.value.__notes__)
        tables.verify()
        tables.change()
        tables.verify()


def test_no_changes_are_told_without_a_difference(tables: Tables) -> None:
    tables.make_views()
    tables.change()
    told = {name: counts.copy() for name, counts in tables.heard.items()}
    rows = list(tables.orders)
    with tables.db.transaction():
        tables.orders.remove_all(rows)
        tables.orders.add_all([Order(o.id, o.customer, o.amount) for o in rows])
    assert told == tables.heard
    tables.verify()


@pytest.mark.parametrize("several", [False, True])
def test_updates_of_keyed_rows_are_told_as_by_steps(
    several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[list[Any]] = []
    for many in (2, 10**9):
        monkeypatch.setattr(schedule, "MANY", many)
        db = Database()
        orders: Any = db.table(Order, key="id")
        customers: Any = db.table(Customer, key="id")
        updated: list[Any] = []
        subscriptions = []
        for name in ("rows", "where", "join", "join, then where", "sums", "self join"):
            view = QUERIES[name](orders, customers).materialize()

            def hear(delta: Any, updated: list[Any] = updated) -> None:
                updated.append(
                    (Counter(delta.updated), Counter(delta.added), Counter(delta.removed))
                )

            subscriptions.append(view.subscribe(hear))
        draw = Random(SEED)
        orders.add_all([Order(n, n % 5, n) for n in range(20)])
        customers.add_all([Customer(n, "a") for n in range(4)])
        for _ in range(6):
            with db.transaction():
                for row in draw.sample(list(orders), 9):
                    orders.update(row, Order(row.id, draw.randrange(5), draw.randrange(9)))
                for row in draw.sample(list(customers), 2) if several else ():
                    customers.update(row, Customer(row.id, draw.choice("ab")))
        assert subscriptions
        told.append(updated)
    assert told[0] == told[1]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("limit", "offset"), [(None, 0), (4, 2)])
def test_rows_are_loaded_again_in_order_unless_rows_of_one_key_keep_theirs(
    limit: int | None, offset: int, descending: bool
) -> None:
    draw = Random(SEED)
    table: Any = Database().table(tuple, name="t")
    table.add_all([(number, 0) for number in range(100)])
    ordered = table.order_by(lambda r: r[0], descending=descending)
    view = (ordered if limit is None else ordered.limit(limit, offset)).materialize()
    (node,) = [n for n in table._engine.graph.nodes() if type(n.operator) is order_by.OrderBy]
    replica, last = None, None if limit is None else offset + limit
    expected = list(table)
    for number in range(30):
        gone = draw.sample(list(table), 60)
        keys = draw.sample(range(10**6), 60)
        if number % 7 == 6:
            keys[:30] = keys[30:]
        come = [(key, 1_000 + 100 * number + place) for place, key in enumerate(keys)]
        if number == 10:
            replica = Replica(view)
        with Transaction(table._engine):
            table.remove_all(gone)
            table.add_all(come)
        expected = [row for row in expected if row not in set(gone)] + come
        rows = sorted(expected, key=lambda r: r[0], reverse=descending)
        assert list(view) == rows[offset:last]
        if replica is not None:
            replica.check()
    assert 5 < node.recomputed < 30
