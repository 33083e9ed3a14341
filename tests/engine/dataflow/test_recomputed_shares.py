"""The share of a table from which on a commit evaluates operators anew, in counted rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from reactive import Count, Database, Sum
from reactive.engine.collections.whole_rows import JoinedDelta

ROWS = 3_000


@dataclass(frozen=True)
class Order:
    id: int
    customer: int
    amount: int


@dataclass(frozen=True)
class Customer:
    id: int
    region: int


class Shop:
    """Orders of a tenth as many customers, of which a share is replaced."""

    def __init__(self) -> None:
        self.db = Database()
        self.orders = self.db.table(Order)
        self.customers = self.db.table(Customer)
        self.orders.add_all([Order(n, n % 300, n) for n in range(ROWS)])
        self.customers.add_all([Customer(n, n % 7) for n in range(300)])

    def joined(self) -> Any:
        return self.orders.join(
            self.customers, left_key=lambda o: o.customer, right_key=lambda c: c.id
        )

    def replace(self, count: int) -> None:
        rows = list(self.orders)[:count]
        with self.db.transaction():
            self.orders.remove_all(rows)
            self.orders.add_all([Order(o.id, o.customer, o.amount + 1) for o in rows])

    def recomputed(self) -> int:
        graph = self.db._engine.graph
        return sum(node.recomputed for node in [*graph.nodes(), *graph.leaves()])


QUERIES = {
    "where": lambda shop: shop.orders.where(lambda o: o.amount > 10),
    "join": lambda shop: shop.joined(),
    "sums": lambda shop: shop.orders.group_by(lambda o: o.customer).aggregate(
        Count(), Sum(lambda o: o.amount)
    ),
    "join, then sums": lambda shop: (
        shop.joined().group_by(lambda o, c: c.region).aggregate(Sum(lambda o, c: o.amount))
    ),
    "distinct": lambda shop: shop.orders.select(lambda o: o.amount).distinct(),
    "order": lambda shop: shop.orders.order_by(lambda o: o.id),
    "left join": lambda shop: shop.orders.left_join(
        shop.customers, left_key=lambda o: o.customer, right_key=lambda c: c.id
    ),
    "anti join": lambda shop: shop.orders.anti_join(
        shop.customers.where(lambda c: c.region > 3),
        left_key=lambda o: o.customer,
        right_key=lambda c: c.id,
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_small_share_is_stepped_over_and_a_large_one_evaluated_anew(name: str) -> None:
    shop = Shop()
    view = QUERIES[name](shop).materialize()
    shop.replace(1)
    shop.replace(ROWS // 15)
    assert not shop.recomputed()
    shop.replace(ROWS * 3 // 5)
    assert shop.recomputed()
    assert "1 times evaluated anew" in str(view.explain(analyze=True))
    view.verify()


@pytest.mark.parametrize("name", QUERIES)
def test_an_evaluation_looks_at_each_row_of_its_inputs_once(name: str) -> None:
    shop = Shop()
    view = QUERIES[name](shop).materialize()
    before = _touched(shop)
    shop.replace(ROWS)
    assert _touched(shop) - before <= 4 * ROWS
    view.verify()


def test_no_change_is_listed_if_all_readers_are_evaluated_anew_or_read_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = [0]
    list_pairs = JoinedDelta.listed

    def note(delta: JoinedDelta) -> Any:
        listed[0] += 1
        return list_pairs(delta)

    monkeypatch.setattr(JoinedDelta, "listed", note)
    shop = Shop()
    view = shop.orders.where(lambda o: o.amount > 10).materialize()
    order = shop.orders.order_by(lambda o: o.amount).materialize()
    shop.replace(ROWS)
    assert not listed[0] and shop.recomputed()
    deltas: list[Any] = []
    with view.subscribe(deltas.append), order.subscribe(deltas.append):
        before = list(order)
        shop.replace(ROWS // 2)
    view.verify()
    order.verify()
    for delta in deltas:
        assert min(len(delta.added), len(delta.removed)) > ROWS // 3
    (edits,) = [delta.edits for delta in deltas if delta.edits]
    for position, row, weight in edits:
        if weight > 0:
            before.insert(position, row)
        else:
            assert before.pop(position) == row
    assert before == list(order)


def _touched(shop: Shop) -> int:
    graph = shop.db._engine.graph
    return sum(node.operator.touched for node in [*graph.nodes(), *graph.leaves()])


@pytest.mark.parametrize("combine", ["difference", "intersection", "difference_all"])
def test_a_set_operator_is_evaluated_anew_if_all_rows_change(combine: str) -> None:
    shop = Shop()
    past = shop.db.table(Order, name="past")
    past.add_all(list(shop.orders)[::3])
    view = getattr(shop.orders, combine)(past).materialize()
    heard = Counter(list(view))
    with view.subscribe(lambda delta: heard.update(dict(delta))):
        shop.replace(ROWS // 3)
        assert not shop.recomputed()
        shop.replace(ROWS)
    assert shop.recomputed()
    assert +heard == Counter(list(view))
    view.verify()


def test_functions_of_unknown_code_are_called_for_changed_rows_only() -> None:
    shop, calls = Shop(), [0]

    def amount(order: Order) -> int:
        calls[0] += 1
        for _ in range(2):
            if order.amount < 0:
                return 0
        return order.amount

    view = (
        shop.orders.group_by(lambda o: o.customer)
        .aggregate(Sum(lambda o: amount(o)), Count())
        .materialize()
    )
    calls[0] = 0
    shop.replace(ROWS // 2)
    assert calls[0] <= ROWS
    assert not shop.recomputed()
    view.verify()


def test_a_join_of_few_rows_does_not_read_a_large_other_side() -> None:
    shop = Shop()
    view = (
        shop.joined()
        .where(lambda o, c: o.amount < 20)
        .select(lambda o, c: (o.id, c.region))
        .materialize()
    )
    rows = list(shop.customers)
    with shop.db.transaction():
        shop.customers.remove_all(rows[:100])
        shop.customers.add_all([Customer(c.id, c.region + 1) for c in rows[:100]])
    assert not shop.recomputed()
    view.verify()
