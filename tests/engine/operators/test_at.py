"""Many views of one shape: each gets the rows of its value through one index, and no others."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Count, Database, StaleCaptureError, Sum
from reactive.engine.dataflow.node import LOOKED_AT
from reactive.engine.operators.join import IndexLookup


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: Any
    amount: Any


VALUES = [*range(60), "a", b"a"]


def of(orders: Any, customer: Any) -> Any:
    return orders.where(lambda o: o.customer == customer)


def shapes(orders: Any, customer: Any) -> list[Any]:
    """Return queries over the orders of a customer."""
    mine = of(orders, customer)
    large = orders.where(lambda o: o.customer == customer and o.amount > 1)
    return [
        mine,
        mine.select(lambda o: o.amount),
        mine.aggregate(Sum(lambda o: o.amount), Count()),
        large,
        mine.group_by(lambda o: o.amount).aggregate(Count()),
        mine.join(large, on=lambda a, b: a.amount == b.amount),
        mine.join(orders, on=lambda a, b: a.amount == b.amount and b.customer == 3),
        orders.where(lambda o: customer == o.customer).order_by(lambda o: o.amount).limit(2),
    ]


def routed(db: Database) -> list[Any]:
    return [n for n in db._engine.graph.nodes() if isinstance(n.operator, IndexLookup)]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_they_are_right_after_every_commit(seed: int) -> None:
    random = Random(seed)
    db = Database()
    orders = db.table(Order)
    odd = [True, 1.0, 2.0, None, float("nan"), "a", (1,), *range(8)]
    rows = [Order(n, random.choice(odd), random.randrange(4)) for n in range(200)]
    orders.add_all(rows[:50])
    views = [view.materialize() for v in VALUES[:20] for view in shapes(orders, v)]
    assert routed(db)
    for n in range(50, 200, 10):
        with db.transaction():
            orders.add_all(rows[n : n + 10])
            for row in random.sample(rows[:n], 3):
                orders.discard(row)
        orders.add(rows[random.randrange(n)])
        for view in random.sample(views, 40):
            view.verify()
    for view in views:
        view.verify()
    assert [view for view in views if len(view)]
    orders.clear()
    for view in views:
        view.verify()


def test_a_change_reaches_those_that_it_affects() -> None:
    db = Database()
    orders = db.table(Order)
    views = [of(orders, value).materialize() for value in VALUES]
    heard: list[Any] = []
    subscriptions = [view.subscribe(heard.append) for view in views]
    touched = [node.operator.touched for node in routed(db)]
    orders.add(Order(1, 40, 2))
    assert [delta.added for delta in heard] == [(Order(1, 40, 2),)]
    now = [node.operator.touched for node in routed(db)]
    assert sum(now) == sum(touched) + 1
    assert len(subscriptions) == len(VALUES)


def test_one_more_is_filled_from_the_index() -> None:
    db = Database()
    orders = db.table(Order)
    orders.add_all(Order(n, n % 50, n) for n in range(500))
    views = [of(orders, value).materialize() for value in range(20)]
    index = next(node.inputs[0] for node in routed(db))
    read = orders._node.contents
    orders._node.contents = None  # no reader needs all rows
    views.append(of(orders, 30).materialize())
    orders._node.contents = read
    assert sorted(o.id for o in views[-1]) == list(range(30, 500, 50))
    assert len(index.routes.find(30)) == 1


def test_the_index_goes_with_the_last_of_them() -> None:
    db = Database()
    orders = db.table(Order)
    orders.add_all(Order(n, n % 50, n) for n in range(500))
    views = [of(orders, value).materialize() for value in VALUES]
    assert routed(db)
    assert len(routed(db)) == len(VALUES)  # also the views that were made before the index
    del views[16:40]
    gc.collect()
    orders.add(Order(-1, 17, 0))
    assert len(routed(db)) == len(VALUES) - 24
    views.clear()
    gc.collect()
    orders.add(Order(-2, 17, 0))
    assert not db._engine.graph.nodes()


def test_few_views_have_no_index() -> None:
    db = Database()
    orders = db.table(Order)
    views = [of(orders, value).materialize() for value in range(10)]
    assert not routed(db)
    assert len(views) == 10


def test_what_raises_in_one_is_rolled_back_in_all() -> None:
    db = Database()
    orders = db.table(Order)
    views = [of(orders, v).select(lambda o: 1 // o.amount).materialize() for v in range(40)]
    with pytest.raises(ZeroDivisionError), db.transaction():
        orders.add(Order(1, 20, 1))
        orders.add(Order(2, 30, 0))
    assert not any(map(len, views))
    orders.add(Order(1, 20, 1))
    assert [len(view) for view in views] == [int(v == 20) for v in range(40)]


def test_a_captured_variable_that_changes_is_found_soon() -> None:
    db = Database(strict=True)
    orders = db.table(Order)
    current = [0]

    def made(value: int) -> Any:
        view = orders.where(lambda o: o.customer == value).materialize()

        def change() -> None:
            nonlocal value
            value = -1

        current.append(change)  # type: ignore[arg-type]
        return view

    views = [made(value) for value in range(60)]
    current[50]()  # type: ignore[operator]
    with pytest.raises(StaleCaptureError, match="value"):
        for n in range(60 // LOOKED_AT + 2):
            orders.add(Order(n, -5, 0))
    assert len(views) == 60
