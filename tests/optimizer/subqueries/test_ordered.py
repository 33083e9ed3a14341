"""Rows ordered by the results of sub-queries, which are not part of the shown rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Database, OrderedView, Table, asc, check, desc
from reactive.engine.transactions.transaction import Transaction
from tests.replica import Replica


@dataclass(frozen=True)
class Order:
    """Rows that do not compare: tied rows may stand in any order."""

    id: int
    day: int


@dataclass(frozen=True)
class Line:
    oid: int
    price: Any


@pytest.fixture(params=[True, False])
def db(request: Any) -> Database:
    return Database(optimize=request.param)


@pytest.fixture
def orders(db: Database) -> Table[Order]:
    return db.table(Order, name="orders")


@pytest.fixture
def lines(db: Database) -> Table[Line]:
    return db.table(Line, name="lines")


def change(random: Random, orders: Table[Any], lines: Table[Any]) -> None:
    """Insert and delete some orders and lines in one commit; at times delete all."""
    size = random.choice((1, 1, 3, 20))
    with Transaction(orders._engine):
        for table in (orders, lines):
            held = list(table)
            table.remove_all(random.sample(held, min(len(held), random.randrange(size))))
        orders.add_all([Order(random.randrange(5), random.randrange(3)) for _ in range(size // 2)])
        lines.add_all([Line(random.randrange(5), random.randrange(-2, 3)) for _ in range(size)])
    if random.randrange(12) == 0:
        lines.clear()


def is_in_order(view: Any, rows: list[Any], key: Callable[[Any], Any], window: slice) -> bool:
    """Return True if a view shows some copies of these rows, with the keys of the sorted window."""
    shown = list(view)
    keys = sorted(map(key, rows))[window]
    return all(shown.count(r) <= rows.count(r) for r in shown) and list(map(key, shown)) == keys


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_rows_stand_by_what_a_query_gives(
    seed: int, db: Database, orders: Table[Order], lines: Table[Line]
) -> None:
    random = Random(seed)

    prices: dict[int, list[int]] = {}

    def total(o: Order) -> int:
        return sum(prices.get(o.id, ()))

    by = orders.order_by(lambda o: sum(x.price for x in lines if x.oid == o.id))
    down: Any = orders.order_by(
        desc(lambda o: sum(x.price for x in lines if x.oid == o.id)), asc("day")
    )
    halves = orders.order_by(
        lambda o: max((x.price for x in lines if x.oid == o.id), default=0) // 2
    )
    relations: list[tuple[Any, Callable[[Order], Any], slice]] = [
        (by, total, slice(None)),
        (by.limit(3, 1), total, slice(1, 4)),
        (down, lambda o: (-total(o), o.day), slice(None)),
        (down.limit(2), lambda o: (-total(o), o.day), slice(2)),
        (halves.limit(4), lambda o: max(prices.get(o.id, ()), default=0) // 2, slice(4)),
    ]
    views = [(relation.materialize(), key, window) for relation, key, window in relations]
    late = views[0][0].where(lambda o: o.day).materialize()
    replicas = [Replica(view) for view, _, _ in views]
    for _ in range(25):
        change(random, orders, lines)
        rows = list(orders)
        prices = {oid: [x.price for x in lines if x.oid == oid] for oid in range(5)}
        for (view, key, window), replica in zip(views, replicas, strict=True):
            assert isinstance(view, OrderedView)
            assert is_in_order(view, rows, key, window)
            view.verify()
            replica.check()
        assert sorted(o.id for o in late) == sorted(o.id for o in rows if o.day)
    orders.clear()
    lines.clear()
    assert [view.stats().rows for view, _, _ in views] == [0] * len(views)


@pytest.mark.parametrize("seed", range(2))
def test_comprehensions_are_sorted_by_what_a_query_gives(
    seed: int, db: Database, orders: Table[Order], lines: Table[Line]
) -> None:
    random = Random(seed)
    texts: list[Any] = [
        lambda: sorted(orders, key=lambda o: sum(x.price for x in lines if x.oid == o.id)),
        lambda: sorted(orders, key=lambda o: (len([x for x in lines if x.oid > o.id]), o.day))[1:3],
        lambda: sorted(
            [o.day for o in orders], key=lambda d: any(x.oid == d for x in lines), reverse=True
        ),
        lambda: min(
            orders,
            key=lambda o: (sum(x.price for x in lines if x.oid == o.id), o.id, o.day),
            default=0,
        ),
        lambda: [
            o.id
            for o in sorted(
                {Order(o.id, 0) for o in orders},
                key=lambda o: (sum(x.price for x in lines if x.oid == o.id), o.id),
            )[:2]
        ],
    ]
    views = [db.query(text).materialize() for text in texts]
    for _ in range(15):
        change(random, orders, lines)
        check(*views)
        for view in views:
            view.verify()


def test_a_row_that_only_moves_is_told_by_its_edits(
    orders: Table[Order], lines: Table[Line]
) -> None:
    told: list[Any] = []
    orders.add_all([Order(1, 0), Order(2, 0)])
    by = orders.order_by(lambda o: sum(x.price for x in lines if x.oid == o.id))
    subscriptions = by.subscribe(told.append), by.materialize().subscribe(told.append)
    lines.add(Line(1, 5))
    assert [[(e.position, e.row.id, e.weight) for e in d.edits] for d in told] == [
        [(0, 1, -1), (1, 1, 1)],
        [(0, 1, -1), (1, 1, 1)],
    ]
    assert not any(delta.items() for delta in told)
    lines.add(Line(1, 1))
    assert len(told) == 2  # its place is unchanged
    for each in subscriptions:
        each.close()


def test_what_raises_undoes_the_commit_or_is_left_out(
    orders: Table[Order], lines: Table[Line]
) -> None:
    by = orders.order_by(lambda o: max(x.price for x in lines if x.oid == o.id))
    dropping = by.materialize(on_error="drop")
    lines.add_all([Line(1, 5), Line(2, 3)])
    orders.add_all([Order(1, 0), Order(2, 0)])
    with by.materialize() as view:
        assert [o.id for o in view] == [2, 1]
        with pytest.raises(ValueError):
            orders.add(Order(3, 0))
        with pytest.raises(ValueError):
            lines.remove(Line(1, 5))
        assert [o.id for o in view] == [2, 1]
        view.verify()
    lines.remove(Line(1, 5))
    assert [o.id for o in dropping] == [2]
    assert len(dropping.errors) == 1
    dropping.verify()


def test_equal_rows_of_sql_stand_at_different_places(db: Database) -> None:
    db.execute("create table people (id int primary key, name text, age int)")
    view = db.sql("select name from people order by age").materialize()
    first = db.sql("select name from people order by age limit 2").materialize()
    replicas = Replica(view), Replica(first)
    db.execute("insert into people values (1, 'Ann', 7), (2, 'Ben', 8), (3, 'Ann', 9)")
    assert list(view) == [("Ann",), ("Ben",), ("Ann",)]
    db.execute("update people set age = 6 where id = 3")
    assert list(view) == [("Ann",), ("Ann",), ("Ben",)]
    db.execute("delete from people where id = 1")
    assert list(view) == list(first) == [("Ann",), ("Ben",)]
    for each in replicas:
        each.check()
        each.view.verify()


def test_a_query_of_rows_in_such_an_order_has_the_rows(
    orders: Table[Order], lines: Table[Line], db: Database
) -> None:
    by = orders.order_by(lambda o: sum(x.price for x in lines if x.oid == o.id))
    first = by.limit(1)
    days = lines.select(lambda x: sum(o.day for o in first if o.id == x.oid)).materialize()
    pairs = lines.where(lambda x: any(o.id == x.oid for o in by)).materialize()
    orders.add_all([Order(1, 3), Order(2, 4)])
    lines.add_all([Line(1, 5), Line(2, 3), Line(9, 1)])
    assert sorted(days) == [0, 0, 4]
    assert sorted(x.oid for x in pairs) == [1, 2]
    lines.add(Line(2, 3))
    assert sorted(days) == [0, 0, 0, 3]
    days.verify()
    pairs.verify()
