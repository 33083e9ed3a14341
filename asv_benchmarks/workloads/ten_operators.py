"""A relation of ten operators, to measure the cost of making and compiling it."""

from __future__ import annotations

from typing import Any

from asv_benchmarks.rows import Customer, Item, Order
from reactive import Count, Relation, Sum, Table


def query(
    orders: Table[Order], customers: Table[Customer], items: Table[Item]
) -> Relation[*tuple[Any, ...]]:
    """Return the (product, region) pairs with large sales, for items of a kind."""
    sold = (
        orders.where(lambda o: o.quantity > 1)
        .join(customers, left_key=lambda o: o.customer, right_key=lambda c: c.id)
        .where(lambda o, c: c.active and o.price > 10)
        .select(lambda o, c: (o.product, c.region, o.quantity * o.price))
    )
    totals = (
        sold.group_by(lambda s: (s[0], s[1]))
        .aggregate(Sum(lambda s: s[2]), Count())
        .where(lambda place, total, count: total > 100 and count > 1)
    )
    kinds = items.where(lambda i: i.kind > 0)
    best: Relation[*tuple[Any, ...]] = (
        totals.semi_join(
            kinds, left_key=lambda place, total, count: place[0], right_key=lambda i: i.id
        )
        .select(lambda place, total, count: place)
        .distinct()
    )
    return best
