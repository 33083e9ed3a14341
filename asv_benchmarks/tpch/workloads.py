"""The queries with their tables, twins and changes, as workloads."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from asv_benchmarks.churn import Churn
from asv_benchmarks.tpch import queries, twins
from asv_benchmarks.tpch.rows import (
    Customer,
    Item,
    Nation,
    Offer,
    Order,
    Part,
    Region,
    Shop,
    Supplier,
)
from asv_benchmarks.workload import Listener, Row, Rows, Side, Stream, TableOf, Workload

ORDERS_AT_1 = 1_500_000
KEYS: dict[type[Any], str | None] = {
    **dict.fromkeys((Order, Customer, Part, Supplier, Nation, Region), "id"),
    **dict.fromkeys((Item, Offer), None),
}
READ: dict[str, tuple[type[Any], ...]] = {
    "q1": (Item,),
    "q3": (Item, Order, Customer),
    "q5": (Item, Order, Customer, Supplier, Nation, Region),
    "q6": (Item,),
    "q9": (Item, Part, Offer, Supplier, Order, Nation),
    "q13": (Order, Customer),
    "q18": (Item, Order, Customer),
}
"""The tables of each query."""


def workload(name: str) -> Workload:
    """Return the workload of a query; its size is the number of orders."""
    types = READ[name]
    twin: Callable[[Listener], Side] = getattr(twins, name.upper())

    def rows(size: int, random: Random) -> Rows:
        shop = Shop(size / ORDERS_AT_1, random)
        return tuple(tables(shop)[row_type] for row_type in types)

    def stream(rows: Rows, random: Random) -> Stream:
        return changes(name, rows, random)

    keys = [None if number == 0 else KEYS[row_type] for number, row_type in enumerate(types)]
    return Workload(
        name=name,
        title=(getattr(queries, name).__doc__ or "").rstrip("."),
        tables=tuple(map(TableOf, types, keys)),
        query=getattr(queries, name),
        twin=twin,
        rows=rows,
        stream=stream,
    )


def tables(shop: Shop) -> dict[type[Any], list[Row]]:
    """All rows by their class."""
    return {
        Item: shop.items,
        Order: shop.orders,
        Customer: shop.customers,
        Part: shop.parts,
        Supplier: shop.suppliers,
        Offer: shop.offers,
        Nation: shop.nations,
        Region: shop.regions,
    }


def changes(name: str, rows: Rows, random: Random) -> Churn:
    """Insert rows like those of the first table, and delete random ones.

    A new item is a copy of an existing one with another number, so that its references exist.
    """
    first: list[Any] = rows[0]

    def make(number: int) -> Row:
        like = first[random.randrange(len(first))]
        if isinstance(like, Order):
            return Order(number, like.customer, like.total, like.day, like.priority, like.note)
        return Item(
            *(like.order, number, like.part, like.supplier, 1 + random.randrange(50)),
            *(like.price, like.discount, like.tax, like.returned, like.status, like.shipped),
        )

    return Churn(first, make, lambda row: True, random)


WORKLOADS = tuple(map(workload, READ))
