"""Joins of several inputs, some of which are found by unique keys of their own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from reactive import Count, Database, Sum
from reactive.engine.operators.index_by import IndexBy
from tests.budget import seeds

VALUES: tuple[Any, ...] = (0, 1, 2, 2, 1.0, None, "a", float("nan"))


@dataclass(frozen=True, slots=True)
class Line:
    order: Any
    supplier: Any
    price: int


@dataclass(frozen=True, slots=True)
class Order:
    id: Any
    customer: Any
    day: Any


@dataclass(frozen=True, slots=True)
class Party:
    """A customer or a supplier."""

    id: Any
    nation: Any


def cyclic(lines: Any, orders: Any, customers: Any, suppliers: Any) -> Any:
    return (
        orders.where(lambda o: o.day != 1)
        .join(customers, on=lambda o, c: o.customer == c.id)
        .join(lines, on=lambda o, c, i: i.order == o.id)
        .join(suppliers, on=lambda o, c, i, s: i.supplier == s.id and s.nation == c.nation)
    )


def by_nation(lines: Any, orders: Any, customers: Any, suppliers: Any) -> Any:
    found = cyclic(lines, orders, customers, suppliers)
    return found.group_by(lambda o, c, i, s: s.nation).aggregate(
        Count(), Sum(lambda o, c, i, s: i.price)
    )


def a_chain(lines: Any, orders: Any, customers: Any, suppliers: Any) -> Any:
    two = lines.join(orders, on=lambda i, o: i.order == o.id)
    return two.join(customers, on=lambda i, o, c: o.customer == c.id)


def by_two_keys(lines: Any, orders: Any, customers: Any, suppliers: Any) -> Any:
    """Join the parties of one nation; neither party determines the other."""
    two = customers.join(suppliers, on=lambda c, s: c.nation == s.nation)
    return two.join(lines, on=lambda c, s, i: i.supplier == s.id and i.order == c.id)


def twice_the_key(lines: Any, orders: Any, customers: Any, suppliers: Any) -> Any:
    """The key is equal to two values, and another field to a third one."""
    two = lines.join(orders, on=lambda i, o: i.order == o.id)
    return two.join(
        customers,
        on=lambda i, o, c: i.supplier == c.id and o.customer == c.id and o.day == c.nation,
    )


QUERIES = (cyclic, by_nation, a_chain, by_two_keys, twice_the_key)


class Side:
    def __init__(self, query: Any, *, optimize: bool) -> None:
        self.db = Database(optimize=optimize)
        self.lines = self.db.table(Line)
        self.orders = self.db.table(Order, key="id")
        self.customers = self.db.table(Party, name="customers", key=lambda c: c.id)
        self.suppliers = self.db.table(Party, name="suppliers", key=lambda s: (s.id,))
        self.keyed = (self.orders, self.customers, self.suppliers)
        self.relation = query(self.lines, *self.keyed)
        self.view = self.relation.materialize()
        self.replica: Counter[Any] = Counter()
        self.subscription = self.view.subscribe(self._told)

    def _told(self, delta: Any) -> None:
        for row, weight in delta.items():
            self.replica[row] += weight

    def commit(self, changes: list[tuple[int, Any, bool]]) -> None:
        with self.db.transaction():
            for place, row, comes in changes:
                table: Any = (self.lines, *self.keyed)[place]
                if place and comes:
                    table.upsert(row)
                elif comes:
                    table.add(row)
                elif not place:
                    table.discard(row)
                elif table.get((row.id,) if table is self.suppliers else row.id) is not None:
                    table.delete((row.id,) if table is self.suppliers else row.id)

    def rows(self) -> Counter[Any]:
        found = Counter(dict(self.view.zset().items()))
        assert +self.replica == found
        return found


def history(random: Random, commits: int) -> Any:
    def some() -> Any:
        return random.choice(VALUES)

    def row(place: int) -> Any:
        if place == 0:
            return Line(some(), some(), random.randrange(3))
        key = random.choice(VALUES[:-1])  # none is NaN
        return Order(key, some(), some()) if place == 1 else Party(key, some())

    for _ in range(commits):
        places = random.choices(range(4), k=random.choice((1, 2, 12)))
        yield [(place, row(place), random.random() < 0.7) for place in places]


@pytest.mark.parametrize("query", QUERIES)
def test_they_equal_the_plan_as_written(query: Any) -> None:
    for seed in seeds(8):
        fast, plain = (Side(query, optimize=optimize) for optimize in (True, False))
        for changes in history(Random(seed), 40):
            fast.commit(changes)
            plain.commit(changes)
            assert fast.rows() == plain.rows()
        late = fast.relation.materialize()
        assert Counter(dict(late.zset().items())) == plain.rows()


def filled(query: Any, size: int) -> Side:
    side, random = Side(query, optimize=True), Random(size)
    side.customers.add_all(Party(n, n % 5) for n in range(size))
    side.suppliers.add_all(Party(n, n % 5) for n in range(size // 4))
    side.orders.add_all(Order(n, random.randrange(size), n % 3) for n in range(size))
    side.lines.add_all(Line(n // 3, random.randrange(size // 4), n) for n in range(3 * size))
    side.view.verify()
    return side


def indexes(side: Side, table: Any) -> int:
    nodes = side.db._engine.graph.nodes()
    own = [node for node in nodes if isinstance(node.operator, IndexBy)]
    return sum(table._node in node.inputs for node in own)


@pytest.mark.parametrize("query", [cyclic, by_nation])
def test_rows_that_lead_to_keys_have_an_index_for_each_and_those_one_for_their_key(
    query: Any,
) -> None:
    side = filled(query, 40)
    assert indexes(side, side.lines) == 2  # by order, by supplier
    assert [indexes(side, table) for table in side.keyed] == [2, 2, 2]
    assert "trie" not in str(side.relation.explain())


def test_a_line_touches_one_row_of_each_input_whatever_their_size() -> None:
    touched = []
    for size in (40, 4_000):
        side = filled(by_nation, size)
        before = side.view.stats().touched
        side.lines.add(Line(2, 2, 7))
        touched.append(side.view.stats().touched - before)
    assert touched[1] <= touched[0] + 4 <= 14


def test_an_update_of_a_line_is_told_as_one_through_keys() -> None:
    side = filled(cyclic, 40)
    old = next(i for _, _, i, _ in side.view)
    told: list[Any] = []
    with side.view.subscribe(lambda delta: told.append(delta.updated)):
        side.lines.update(old, replace(old, price=1_000))
    ((before, after),) = told[0]
    assert (before[2], after[2]) == (old, replace(old, price=1_000))
    assert before[3] == after[3]
