"""Seven queries as a user would write them for a live view; the first table of each changes.

Money times a discount in hundredths is in hundredths of a cent.
"""

from __future__ import annotations

from typing import Any

from asv_benchmarks.tpch.rows import Customer, Item, Nation, Offer, Order, Part, Region, Supplier
from reactive import Avg, Count, Relation, Sum, Table

Asked = Relation[*tuple[Any, ...]]
CLOSING, MIDDLE = 2_400, 1_200
YEAR = 365
LARGE = 250


def q1(items: Table[Item]) -> Asked:
    """Sums and averages of sales, by return flag and line status."""
    return (
        items.where(lambda i: i.shipped <= CLOSING)
        .group_by(lambda i: (i.returned, i.status))
        .aggregate(
            Sum(lambda i: i.quantity),
            Sum(lambda i: i.price),
            Sum(lambda i: i.price * (100 - i.discount)),
            Sum(lambda i: i.price * (100 - i.discount) * (100 + i.tax)),
            Avg(lambda i: i.quantity),
            Avg(lambda i: i.price),
            Avg(lambda i: i.discount),
            Count(),
        )
    )


def q3(items: Table[Item], orders: Table[Order], customers: Table[Customer]) -> Asked:
    """The ten orders of a segment that are not shipped and are worth most."""
    open_items = (
        customers.where(lambda c: c.segment == "building")
        .join(orders, on=lambda c, o: c.id == o.customer)
        .join(items, on=lambda c, o, i: o.id == i.order)
        .where(lambda c, o, i: o.day < MIDDLE and i.shipped > MIDDLE)
    )
    worth = open_items.group_by(lambda c, o, i: (o.id, o.day, o.priority)).aggregate(
        Sum(lambda c, o, i: i.price * (100 - i.discount))
    )
    return worth.order_by(lambda k, worth: (-worth, k[1], k[0])).limit(10)


def q5(
    items: Table[Item],
    orders: Table[Order],
    customers: Table[Customer],
    suppliers: Table[Supplier],
    nations: Table[Nation],
    regions: Table[Region],
) -> Asked:
    """Sales of suppliers of a region in a year to customers of their own nation."""
    sold = (
        orders.where(lambda o: YEAR <= o.day < 2 * YEAR)
        .join(customers, on=lambda o, c: o.customer == c.id)
        .join(items, on=lambda o, c, i: i.order == o.id)
        .join(suppliers, on=lambda o, c, i, s: i.supplier == s.id and s.nation == c.nation)
        .join(nations, on=lambda o, c, i, s, n: s.nation == n.id)
        .join(regions, on=lambda o, c, i, s, n, r: n.region == r.id)
        .where(lambda o, c, i, s, n, r: r.name == "region 2")
    )
    return sold.group_by(lambda o, c, i, s, n, r: n.name).aggregate(
        Sum(lambda o, c, i, s, n, r: i.price * (100 - i.discount))
    )


def q6(items: Table[Item]) -> Asked:
    """Revenue lost by small discounts on small quantities of a year."""
    return items.where(
        lambda i: YEAR <= i.shipped < 2 * YEAR and 5 <= i.discount <= 7 and i.quantity < 24
    ).aggregate(Sum(lambda i: i.price * i.discount))


def q9(
    items: Table[Item],
    parts: Table[Part],
    offers: Table[Offer],
    suppliers: Table[Supplier],
    orders: Table[Order],
    nations: Table[Nation],
) -> Asked:
    """The profit on parts of a colour, by nation and year."""
    sold = (
        items.join(parts, on=lambda i, p: i.part == p.id)
        .where(lambda i, p: "green" in p.name)
        .join(offers, on=lambda i, p, f: f.part == i.part and f.supplier == i.supplier)
        .join(suppliers, on=lambda i, p, f, s: s.id == i.supplier)
        .join(orders, on=lambda i, p, f, s, o: o.id == i.order)
        .join(nations, on=lambda i, p, f, s, o, n: n.id == s.nation)
    )
    return sold.group_by(lambda i, p, f, s, o, n: (n.name, o.day // YEAR)).aggregate(
        Sum(lambda i, p, f, s, o, n: i.price * (100 - i.discount) - 100 * f.cost * i.quantity)
    )


def q13(orders: Table[Order], customers: Table[Customer]) -> Asked:
    """Number of customers by number of orders, without orders of special wishes."""
    usual = orders.where(lambda o: "special" not in o.note)
    per_customer = (
        customers.left_join(usual, on=lambda c, o: c.id == o.customer)
        .group_by(lambda c, o: c.id)
        .aggregate(Sum(lambda c, o: 0 if o is None else 1))
    )
    return per_customer.group_by(lambda c, number: number).aggregate(Count())


def q18(items: Table[Item], orders: Table[Order], customers: Table[Customer]) -> Asked:
    """The hundred orders of largest worth among orders of many pieces."""
    large = (
        items.group_by(lambda i: i.order)
        .aggregate(Sum(lambda i: i.quantity))
        .where(lambda order, pieces: pieces > LARGE)
    )
    return (
        large.join(orders, on=lambda k, pieces, o: o.id == k)
        .join(customers, on=lambda k, pieces, o, c: c.id == o.customer)
        .select(lambda k, pieces, o, c: (c.id, o.id, o.day, o.total, pieces))
        .order_by(lambda row: (-row[3], row[2], row[1]))
        .limit(100)
    )
