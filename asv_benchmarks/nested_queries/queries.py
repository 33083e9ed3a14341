"""The queries as live ones. Every row has its nested rows beside itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from asv_benchmarks.nested_queries.rows import (
    MONTH,
    TYPES,
    Batch,
    Customer,
    Item,
    Nation,
    Offer,
    Order,
    Part,
    Supplier,
)
from reactive import Bag, Database, Sum

KEYED = (Nation, Customer, Supplier, Part, Order)
Tables = dict[type[Any], Any]


class Live:
    """A materialized view over tables that take whole batches."""

    def __init__(self, name: str) -> None:
        self.database = Database()
        self.tables: Tables = {
            each: self.database.table(
                each, name=each.__name__.lower(), key="id" if each in KEYED else None
            )
            for each in TYPES
        }
        self.view = QUERIES[name](self.tables).materialize(name)

    def batch(self, changes: Batch) -> None:
        """One transaction."""
        with self.database.transaction():
            for table, come, gone in changes:
                if gone:
                    self.tables[table].remove_all(gone)
                self.tables[table].add_all(come)

    def result(self) -> dict[Any, int]:
        """Rows, with bags as frozen sets of pairs, and how often each occurs."""
        return _counted(self.view.zset().items())


def _counted(rows: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    return {_plain(row): count for row, count in rows}


def _plain(value: Any) -> Any:
    if isinstance(value, Bag):
        return frozenset(_counted(value.items()).items())
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value


def depth1(t: Tables) -> Any:
    """Customers with their orders."""
    orders = t[Order]
    return t[Customer].nest(orders=lambda c: orders.where(lambda o: o.customer == c.id))


def q1(t: Tables) -> Any:
    """Customers with their orders with the parts of these: flat to nested, two levels."""
    orders, items, parts = t[Order], t[Item], t[Part]
    return t[Customer].nest(
        orders=lambda c: orders.where(lambda o: o.customer == c.id).nest(
            parts=lambda o: (
                items.where(lambda i: i.order == o.id)
                .join(parts, on=lambda i, p: i.part == p.id)
                .select(lambda i, p: (p.name, i.quantity))
            )
        )
    )


def depth3(t: Tables) -> Any:
    """Nations with their customers with all of Q1: three levels."""
    tree = q1(t)
    return t[Nation].nest(customers=lambda n: tree.where(lambda c, orders: c.nation == n.id))


def q2(t: Tables) -> Any:
    """Suppliers with the names of their customers: flat to nested."""
    orders, items, customers = t[Order], t[Item], t[Customer]
    return t[Supplier].nest(
        customers=lambda s: (
            items.where(lambda i: i.supplier == s.id)
            .join(orders, on=lambda i, o: i.order == o.id)
            .join(customers, on=lambda i, o, c: o.customer == c.id)
            .select(lambda i, o, c: c.name)
        )
    )


def q3(t: Tables) -> Any:
    """Parts with their suppliers and with their customers: flat to nested, two bags."""
    orders, items, customers = t[Order], t[Item], t[Customer]
    offers, suppliers = t[Offer], t[Supplier]
    return t[Part].nest(
        suppliers=lambda p: (
            offers.where(lambda x: x.part == p.id)
            .join(suppliers, on=lambda x, s: x.supplier == s.id)
            .select(lambda x, s: (s.name, s.nation))
        ),
        customers=lambda p: (
            items.where(lambda i: i.part == p.id)
            .join(orders, on=lambda i, o: i.order == o.id)
            .join(customers, on=lambda i, o, c: o.customer == c.id)
            .select(lambda i, o, c: (c.name, c.nation))
        ),
    )


def q4(t: Tables) -> Any:
    """The purchases of each customer by part and month, from Q1: nested to flat."""
    return (
        q1(t)
        .unnest(lambda c, orders: orders)
        .unnest(lambda c, orders, o: o.parts)
        .select(lambda c, orders, o, p: (c.name, o.row.day // MONTH, p[0], p[1]))
        .group_by(lambda r: (r[0], r[1], r[2]))
        .aggregate(Sum(lambda r: r[3]))
    )


def q4_flat(t: Tables) -> Any:
    """Q4 written as a join of four tables."""
    return (
        t[Customer]
        .join(t[Order], on=lambda c, o: c.id == o.customer)
        .join(t[Item], on=lambda c, o, i: o.id == i.order)
        .join(t[Part], on=lambda c, o, i, p: i.part == p.id)
        .group_by(lambda c, o, i, p: (c.name, o.day // MONTH, p.name))
        .aggregate(Sum(lambda c, o, i, p: i.quantity))
    )


def q5(t: Tables) -> Any:
    """The number of customers of each part whose nation has no supplier of it, from Q3."""
    return q3(t).select(
        lambda p, suppliers, customers: (
            p.name,
            sum(1 for c in customers if not any(s[1] == c[1] for s in suppliers)),
        )
    )


def q6(t: Tables) -> Any:
    """Q2 turned round: customers with the names of their suppliers: nested to nested."""
    tree = q2(t)
    return t[Customer].nest(
        suppliers=lambda c: (
            tree.unnest(lambda s, customers: customers)
            .where(lambda s, customers, name: name == c.name)
            .select(lambda s, customers, name: s.name)
        )
    )


def q7(t: Tables) -> Any:
    """Nations with the parts that have a supplier of the nation and no customer of it, from Q3."""
    tree = q3(t)
    return t[Nation].nest(
        parts=lambda n: tree.where(
            lambda p, suppliers, customers: (
                any(s[1] == n.id for s in suppliers) and not any(c[1] == n.id for c in customers)
            )
        ).select(lambda p, suppliers, customers: p.name)
    )


QUERIES = {
    "depth1": depth1,
    "q1": q1,
    "depth3": depth3,
    "q2": q2,
    "q3": q3,
    "q4": q4,
    "q4_flat": q4_flat,
    "q5": q5,
    "q6": q6,
    "q7": q7,
}
