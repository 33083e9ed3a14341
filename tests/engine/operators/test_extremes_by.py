"""Least and greatest values over joins, stored by key: as written, after every commit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Avg, Count, Database, Max, Min, Sum
from reactive.engine.operators.extremes_by import ExtremesBy
from tests.budget import seeds
from tests.engine.operators.test_sums_by import (
    ODD,
    PLAIN,
    Customer,
    Order,
    Side,
    history,
    sums,
)


def greatest(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id)
    return both.group_by(lambda o, c: c.region).aggregate(Max(lambda o, c: o.amount))


def of_the_right(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = customers.join(orders, on=lambda c, o: o.customer == c.id)
    return both.group_by(lambda c, o: c.region).aggregate(
        Min(lambda c, o: o.amount), Sum(lambda c, o: o.amount), Max(lambda c, o: o.amount), Count()
    )


def of_both_sides(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = orders.join(products, left_key=lambda o: o.product, right_key=lambda p: p.id)
    return both.aggregate(
        Max(lambda o, p: o.amount), Min(lambda o, p: p.price), Avg(lambda o, p: o.amount), Count()
    )


def beside_rows(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id)
    return both.group_by(lambda o, c: o.product).aggregate(
        Max(lambda o, c: c.region), Min(lambda o, c: o.amount), Max(lambda o, c: o.amount)
    )


def without_none(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id)
    return both.group_by(lambda o, c: c.region).aggregate(
        Max(lambda o, c: o.amount if o.amount != 2 else None, skip_none=True),
        Min(lambda o, c: o.amount if o.amount != 2 else None, skip_none=True),
        Count(),
    )


def of_tests_and_tuples(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id)
    return both.group_by(lambda o, c: c.region).aggregate(
        Min(lambda o, c: o.amount == 1),
        Max(lambda o, c: o.amount != 3),
        Max(lambda o, c: (o.amount == 2, str(o.product))),
    )


def of_a_chain(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    three = orders.join(customers, on=lambda o, c: o.customer == c.id).join(
        regions, on=lambda o, c, r: c.region == r.id
    )
    return three.group_by(lambda o, c, r: r.name).aggregate(
        Min(lambda o, c, r: o.amount), Max(lambda o, c, r: c.id), Max(lambda o, c, r: r.id)
    )


def by_parts_of_a_chain(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    three = orders.join(customers, on=lambda o, c: o.customer == c.id).join(
        regions, on=lambda o, c, r: c.region == r.id
    )
    return three.group_by(lambda o, c, r: (o.product, r.name)).aggregate(
        Min(lambda o, c, r: o.amount), Count()
    )


def of_a_left_join(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = orders.left_join(customers, on=lambda o, c: o.customer == c.id)
    return both.group_by(lambda o, c: c.region if c is not None else -1).aggregate(
        Max(lambda o, c: o.amount), Count()
    )


def of_a_full_join(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = customers.full_join(orders, on=lambda c, o: o.customer == c.id)
    return both.group_by(lambda c, o: c.region if c is not None else -1).aggregate(
        Max(lambda c, o: o.amount if o is not None else -1),
        Min(lambda c, o: o.amount if o is not None else None, skip_none=True),
        Sum(lambda c, o: o.amount if o is not None else 5),
    )


def of_a_right_join(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    inner = orders.join(products, on=lambda o, p: o.product == p.id)
    both = inner.right_join(customers, on=lambda o, p, c: o.customer == c.id)
    return both.group_by(lambda o, p, c: c.region).aggregate(
        Max(lambda o, p, c: o.amount if o is not None else 1),
        Min(lambda o, p, c: p.price if p is not None else 2),
    )


QUERIES = (
    greatest,
    of_the_right,
    of_both_sides,
    beside_rows,
    without_none,
    of_tests_and_tuples,
    of_a_chain,
    by_parts_of_a_chain,
    of_a_left_join,
    of_a_full_join,
    of_a_right_join,
)
FLOATS = (0, 1, 2.5, math.nan, -1.5)


def stored(side: Side) -> bool:
    return any(isinstance(operator, ExtremesBy) for operator in sums(side))


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", seeds(5))
def test_it_equals_the_plan_as_written(query: Any, seed: int) -> None:
    fast, plain = (Side(query, optimize=optimize) for optimize in (True, False))
    assert stored(fast), fast.relation.explain()
    for changes in history(Random(seed), PLAIN, 40):
        assert fast.commit(changes) == plain.commit(changes)
        fast.view.verify()
        assert fast.shown() == plain.shown()
        assert {k: n for k, n in fast.told.items() if n} == dict(fast.view.zset().items())
    assert stored(fast)
    late = fast.relation.materialize()
    assert sorted(map(str, late)) == sorted(map(str, fast.view))
    with fast.db.transaction():
        for table in fast.tables:
            table.clear()
    fast.view.verify()
    assert not any(operator.contents() for operator in sums(fast))


@pytest.mark.parametrize("values", [FLOATS, ODD])
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", seeds(4))
def test_odd_values_give_what_they_give_as_written(query: Any, seed: int, values: Any) -> None:
    fast, plain = (Side(query, optimize=optimize) for optimize in (True, False))
    for changes in history(Random(seed), values, 30):
        raised, error = fast.commit(changes), plain.commit(changes)
        assert (raised is None) is (error is None), (raised, error)
        assert dict(fast.view.zset().items()) == dict(plain.view.zset().items())
    assert dict(fast.relation.materialize().zset().items()) == dict(fast.view.zset().items())


@pytest.mark.parametrize("query", [greatest, of_the_right, of_a_left_join, of_a_full_join])
def test_a_customer_that_moves_is_one_step_however_many_orders_it_has(query: Any) -> None:
    work = []
    for count in (10, 1_000):
        side = Side(query, optimize=True)
        side.tables[1].add(Customer(1, 2))
        side.tables[0].add_all(Order(1, n, n) for n in range(count))
        before = side.view.stats().touched
        side.tables[1].update(Customer(1, 2), Customer(1, 3))
        work.append(side.view.stats().touched - before)
        side.view.verify()
    assert work[0] == work[1]


def test_an_extreme_that_leaves_is_replaced_by_the_next() -> None:
    side = Side(of_the_right, optimize=True)
    side.tables[1].add_all([Customer(1, "north"), Customer(2, "north")])
    side.tables[0].add_all(Order(1 + n % 2, n, n) for n in range(6))
    assert list(side.view) == [("north", 0, 15, 5, 6)]
    side.tables[0].remove(Order(2, 5, 5))
    assert list(side.view) == [("north", 0, 10, 4, 5)]
    side.tables[1].remove(Customer(1, "north"))
    assert list(side.view) == [("north", 1, 4, 3, 2)]
    side.view.verify()


@dataclass(frozen=True, slots=True, order=True)
class Size:
    number: int


@pytest.mark.parametrize("value", [frozenset({1}), Size(3), (1, (2,))])
def test_values_of_other_orders_go_back_to_rows(value: Any) -> None:
    side = Side(greatest, optimize=True)
    side.tables[1].add(Customer(1, "north"))
    side.tables[0].add(Order(1, 1, value))
    assert not sums(side)
    assert list(side.view) == [("north", value)]
    side.tables[1].update(Customer(1, "north"), Customer(1, "south"))
    assert list(side.view) == [("south", value)]


def test_values_that_do_not_compare_may_have_no_partner() -> None:
    side = Side(greatest, optimize=True)
    side.tables[1].add(Customer(1, "north"))
    side.tables[0].add_all([Order(1, 1, 5), Order(2, 1, 5)])
    side.tables[0].add(Order(2, 1, None))
    assert not sums(side)
    with pytest.raises(TypeError, match="not supported between"):
        side.tables[1].add(Customer(2, "south"))
    assert list(side.view) == [("north", 5)]
    side.view.verify()


def test_a_refused_commit_leaves_the_plan_and_the_values() -> None:
    side = Side(of_the_right, optimize=True)
    side.tables[1].add(Customer(1, "north"))
    side.tables[0].add_all([Order(1, 1, 5), Order(1, 2, 7)])
    state = str([operator.contents() for operator in sums(side)])
    for row in (Order(1, 3, None), Order(1, 3, "seven")):
        with pytest.raises(TypeError):
            side.tables[0].add(row)
        assert str([operator.contents() for operator in sums(side)]) == state
    side.tables[0].remove(Order(1, 2, 7))
    assert list(side.view) == [("north", 5, 5, 5, 1)]
    side.view.verify()


def test_what_is_rolled_back_elsewhere_is_rolled_back_in_extremes() -> None:
    side = Side(of_a_chain, optimize=True)
    orders: Any = side.tables[0]
    divided = orders.select(lambda o: 1 / o.amount).materialize()
    side.tables[1].add(Customer(1, 1))
    side.tables[0].add_all([Order(1, 1, 2), Order(1, 2, 3)])
    state = str([operator.contents() for operator in sums(side)])
    gone = [(0, Order(1, 1, 2), -1), (0, Order(1, 2, 3), -1)]
    for changes in ([(0, Order(1, 1, 0), 1)], [*gone, (0, Order(1, 2, 0), 1)]):
        assert side.commit(changes) == "ZeroDivisionError"
        assert str([operator.contents() for operator in sums(side)]) == state
        side.view.verify()
    side.tables[0].add(Order(1, 1, 4))
    side.view.verify()
    assert len(divided) == 3


def test_an_interrupt_in_the_middle_is_recovered_from() -> None:
    side = Side(greatest, optimize=True)
    side.tables[1].add_all([Customer(1, "north"), Customer(2, "north")])
    (kept,) = sums(side)

    class Interrupting(dict[Any, Any]):
        def get(self, key: Any, default: Any = None) -> Any:
            if key == 2:
                raise KeyboardInterrupt
            return super().get(key, default)

    kept.sums = Interrupting(kept.sums)
    with pytest.raises(KeyboardInterrupt):
        side.tables[0].add_all([Order(1, 1, 5), Order(2, 1, 6)])
    assert not len(side.view)
    side.tables[0].add(Order(1, 1, 7))
    side.view.verify()
    assert list(side.view) == [("north", 7)]


@pytest.mark.parametrize("policy", ["drop", "null"])
@pytest.mark.parametrize("query", QUERIES)
def test_policies_give_what_they_give_as_written(query: Any, policy: Any) -> None:
    sides = []
    for optimize in (True, False):
        side = Side(query, optimize=optimize)
        side.view = query(*side.tables).materialize(on_error=policy)
        side.subscription.close()
        sides.append(side)
    for changes in history(Random(3), (*FLOATS, "a", None), 25):
        for side in sides:
            side.commit(changes)
        fast, plain = sides
        assert dict(fast.view.zset().items()) == dict(plain.view.zset().items())


def test_sql_stores_extremes() -> None:
    db = Database()
    orders, customers = db.table(Order, name="orders"), db.table(Customer, name="customers")
    text = """
        select region, max(amount) as most, bool_and(amount > 3) as every, count(*) as number
        from customers c join orders o on o.customer = c.id group by region
    """
    query = db.sql(text)
    view = query.materialize()
    customers.add_all([Customer(1, "north"), Customer(2, "south")])
    orders.add_all([Order(1, 1, 5), Order(1, 2, 7), Order(2, 1, 3)])
    assert "groups of sums" in str(query.explain())
    assert sorted(map(tuple, view)) == [("north", 7, True, 2), ("south", 3, False, 1)]
    customers.update(Customer(1, "north"), Customer(1, "south"))
    assert sorted(map(tuple, view)) == [("south", 7, False, 3)]
    view.verify()
