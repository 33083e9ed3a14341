"""A single change on one side of a join that stores sums: equal to the loops for many changes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Avg, Count, Database, Sum
from reactive.engine.operators.join import SumsBy
from reactive.engine.operators.loops.factored_aggregate import FactoredAggregate

INTEGERS: tuple[Any, ...] = (1, 2, -3, 2**70, True, 0)
ODD: tuple[Any, ...] = (*INTEGERS, 0.1, 1e300, -1e300, math.nan, math.inf)


@dataclass(frozen=True, slots=True)
class Order:
    customer: Any
    amount: Any


@dataclass(frozen=True, slots=True)
class Customer:
    id: Any
    region: Any
    factor: Any = 1


def by_region(orders: Any, customers: Any) -> Any:
    some = orders.where(lambda o: o.amount != 2)
    both = some.join(customers, on=lambda o, c: o.customer == c.id)
    return both.group_by(lambda o, c: c.region).aggregate(
        Count(), Sum(lambda o, c: o.amount), Avg(lambda o, c: o.amount)
    )


def by_order(orders: Any, customers: Any) -> Any:
    both = orders.join(customers, left_key=lambda o: o.customer, right_key=lambda c: c.id)
    return both.group_by(lambda o, c: o.amount).aggregate(Count(), Sum(lambda o, c: c.factor))


def of_all(orders: Any, customers: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id and c.region != 1)
    return both.aggregate(Sum(lambda o, c: o.amount), Count())


def products(orders: Any, customers: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id)
    return both.group_by(lambda o, c: c.region).aggregate(
        Count(), Sum(lambda o, c: o.amount * c.factor)
    )


QUERIES = (by_region, by_order, of_all, products)


class Side:
    """A database and a view; a second view may refuse the results of the first one."""

    def __init__(self, query: Any, *, optimize: bool = True, refusing: bool = False) -> None:
        self.db = Database(optimize=optimize)
        self.orders: Any = self.db.table(Order, name="orders")
        self.customers: Any = self.db.table(Customer, name="customers")
        relation = query(self.orders, self.customers)
        self.view = relation.materialize()
        if refusing:
            self.refusing = relation.select(lambda *row: 1 // (row[1] - 3)).materialize()

    def change(self, row: Any, weight: int) -> str | None:
        table = self.orders if isinstance(row, Order) else self.customers
        try:
            table.add(row) if weight > 0 else table.remove(row)
        except ZeroDivisionError as error:
            return type(error).__name__
        return None

    def rows(self) -> Counter[Any]:
        return Counter(dict(self.view.zset().items()))

    def operators(self, kind: type) -> list[Any]:
        return [n.operator for n in self.db._engine.graph.nodes() if isinstance(n.operator, kind)]


def changes(random: Random, values: tuple[Any, ...], count: int) -> list[tuple[Any, int]]:
    held: list[Any] = []
    made = []
    for _ in range(count):
        if held and random.random() < 0.4:
            made.append((held.pop(random.randrange(len(held))), -1))
            continue
        key = random.choice((0, 1, 2, 3, None, math.nan))
        value = random.choice(values)
        factor = random.choice(INTEGERS)
        row = Order(key, value) if random.random() < 0.6 else Customer(key, value, factor)
        held.append(row)
        made.append((row, 1))
    return made


@pytest.mark.long
@pytest.mark.parametrize("values", [INTEGERS, ODD], ids=["integers", "odd"])
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(6))
def test_it_makes_what_one_commit_of_all_makes(
    query: Any, values: tuple[Any, ...], seed: int
) -> None:
    alone, together, written = Side(query), Side(query), Side(query, optimize=False)
    for _ in range(15):
        some = changes(Random(f"{seed} {_}"), values, 8)
        for row, weight in some:
            alone.change(row, weight)
            written.change(row, weight)
        with together.db.transaction():
            for row, weight in some:
                together.change(row, weight)
        assert alone.rows() == together.rows()
        assert alone.rows() == written.rows()
        alone.view.verify()


@pytest.mark.parametrize("query", [by_region, by_order, products])
@pytest.mark.parametrize("seed", range(6))
def test_what_a_commit_above_refuses_is_taken_back(query: Any, seed: int) -> None:
    """A view that divides by how many rows a group has, less three."""
    fast, plain = (Side(query, optimize=o, refusing=True) for o in (True, False))
    refused = 0
    held: list[Any] = []
    random = Random(seed)
    for row, weight in changes(random, INTEGERS, 150):
        if weight < 0 and row not in held:
            continue
        before = fast.rows()
        errors = fast.change(row, weight), plain.change(row, weight)
        assert errors[0] == errors[1]
        if errors[0]:
            refused += 1
            assert fast.rows() == before
        else:
            held.append(row) if weight > 0 else held.remove(row)
        assert fast.rows() == plain.rows()
    fast.view.verify()
    assert refused


def test_sums_and_groups_of_a_single_change_are_those_of_its_key() -> None:
    side = Side(by_region)
    side.customers.add_all([Customer(1, "north"), Customer(2, "south"), Customer(2, "west")])
    side.orders.add(Order(1, 5))
    side.orders.add(Order(2, 7))  # two customers: the loops for many
    side.orders.add(Order(3, 9))  # none
    (over,) = side.operators(FactoredAggregate)
    (kept,) = side.operators(SumsBy)
    assert over._alone is not None
    assert kept._one is not None
    assert kept.sums == {1: (1, 5), 2: (1, 7), 3: (1, 9)}
    assert sorted(side.view) == [("north", 1, 5, 5.0), ("south", 1, 7, 7.0), ("west", 1, 7, 7.0)]
    side.customers.remove(Customer(1, "north"))
    side.orders.remove(Order(2, 7))
    assert list(side.view) == []
    side.customers.add(Customer(3, "east"))
    assert list(side.view) == [("east", 1, 9, 9.0)]
    side.view.verify()
