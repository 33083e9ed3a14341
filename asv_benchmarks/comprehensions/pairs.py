"""Comprehensions, each with the best equivalent chain of methods."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from random import Random
from typing import Any

from reactive import Collect, Count, Database, Max, Min, Sum, fixpoint


@dataclass(frozen=True, slots=True)
class Customer:
    id: int
    name: str
    town: str


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    cid: int
    total: int
    paid: bool
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    src: int
    dst: int


class Shop:
    """Tables with rows in them, and changes of these."""

    def __init__(self, size: int) -> None:
        random = Random(size)
        self.db = Database()
        self.customers = self.db.table(Customer, name="customers")
        self.orders = self.db.table(Order, name="orders")
        self.blocked = self.db.table(int, name="blocked")
        self.edges = self.db.table(Edge, name="edges")
        self.size = size
        self.customers.add_all(
            Customer(n, f"c{n}", f"t{random.randrange(20)}") for n in range(size // 10)
        )
        self.orders.add_all(self.order(n, random) for n in range(size))
        self.blocked.add_all(random.sample(range(size // 10), size // 100))
        self.edges.add_all(Edge(n, n + 1) for n in range(0, size // 20, 2))

    def order(self, number: int, random: Random) -> Order:
        """Return a new order."""
        tags = tuple(random.sample("abcdef", random.randrange(3)))
        cid = random.randrange(self.size // 10)
        return Order(number, cid, random.randrange(1000), random.random() < 0.5, tags)

    def change(self, number: int, random: Random) -> None:
        """One commit: an order is replaced; sometimes a customer, a block or an edge changes."""
        old = self.chosen[number]
        self.orders.update(old, self.order(self.size + number, random))
        if number % 4 == 0:
            cid = random.randrange(self.size // 10)
            self.blocked.add(cid)
        if number % 4 == 1:
            self.customers.add(Customer(self.size + number, f"n{number}", "t1"))
        if number % 4 == 2:
            self.edges.add(Edge(2 * number + 1, 2 * number + 2))

    def choose(self, count: int) -> None:
        """The orders that will change."""
        self.chosen = Random(7).sample(list(self.orders), count)


def pairs(s: Shop) -> dict[str, tuple[Any, Any]]:
    """Return each kind of query: a function without parameters, and a relation."""
    customers: Any = s.customers
    orders: Any = s.orders
    blocked, edges = s.blocked, s.edges

    def groups() -> Any:
        found = defaultdict(list)
        for o in orders:
            found[o.cid].append(o.total)
        return {cid: sum(totals) for cid, totals in found.items()}

    def sums() -> Any:
        found: dict[int, int] = defaultdict(int)
        for o in orders:
            found[o.cid] += o.total
        return found

    def named() -> Any:
        owed = {o.cid for o in orders if not o.paid}
        return [c.name for c in customers if c.id in owed and c.id not in blocked]

    def reach() -> Any:
        return {(e.src, e.dst) for e in edges} | {
            (a, e.dst) for a, b in reach() for e in edges if b == e.src
        }

    def by_cid(o: Order) -> int:
        return o.cid

    def by_id(c: Customer) -> int:
        return c.id

    owed = orders.where(lambda o: not o.paid)
    paid = orders.where(lambda o: o.paid)
    totals = orders.group_by(by_cid).aggregate(Sum(lambda o: o.total))
    return {
        "where": (
            lambda: [o for o in orders if o.total > 500],
            orders.where(lambda o: o.total > 500),
        ),
        "select": (
            lambda: [(o.id, o.total * 2) for o in orders],
            orders.select(lambda o: (o.id, o.total * 2)),
        ),
        "where select": (
            lambda: [o.id for o in orders if o.paid and o.total > 500],
            orders.where(lambda o: o.paid and o.total > 500).select(lambda o: o.id),
        ),
        "set": (
            lambda: {o.total // 100 for o in orders},
            orders.select(lambda o: o.total // 100).distinct(),
        ),
        "unnest": (
            lambda: [(o.id, tag) for o in orders for tag in o.tags],
            orders.unnest(lambda o: o.tags).select(lambda o, tag: (o.id, tag)),
        ),
        "join": (
            lambda: [(c.name, o.id) for c in customers for o in orders if o.cid == c.id],
            customers.join(orders, on=lambda c, o: o.cid == c.id).select(
                lambda c, o: (c.name, o.id)
            ),
        ),
        "join where": (
            lambda: [
                (c.name, o.id)
                for c in customers
                if c.town == "t1"
                for o in orders
                if o.cid == c.id and o.paid
            ],
            customers.where(lambda c: c.town == "t1")
            .join(paid, on=lambda c, o: o.cid == c.id)
            .select(lambda c, o: (c.name, o.id)),
        ),
        "three": (
            lambda: [
                (c.name, o.id)
                for c in customers
                for o in orders
                for b in blocked
                if o.cid == c.id
                if b == c.id
            ],
            customers.join(orders, on=lambda c, o: o.cid == c.id)
            .join(blocked, on=lambda c, o, b: b == c.id)
            .select(lambda c, o, b: (c.name, o.id)),
        ),
        "any": (
            lambda: [c.id for c in customers if any(o.cid == c.id and o.paid for o in orders)],
            customers.semi_join(paid, on=lambda c, o: o.cid == c.id).select(by_id),
        ),
        "not any": (
            lambda: [c.id for c in customers if not any(o.cid == c.id for o in orders)],
            customers.anti_join(orders, on=lambda c, o: o.cid == c.id).select(by_id),
        ),
        "all": (
            lambda: [c.id for c in customers if all(o.paid for o in orders if o.cid == c.id)],
            customers.anti_join(owed, on=lambda c, o: o.cid == c.id).select(by_id),
        ),
        "in table": (
            lambda: [c.id for c in customers if c.id in blocked],
            customers.semi_join(blocked, on=lambda c, b: c.id == b).select(by_id),
        ),
        "not in table": (
            lambda: [c.id for c in customers if c.id not in blocked],
            customers.anti_join(blocked, on=lambda c, b: c.id == b).select(by_id),
        ),
        "in set": (
            lambda: [c.id for c in customers if c.id in {o.cid for o in orders if o.paid}],
            customers.semi_join(paid, on=lambda c, o: c.id == o.cid).select(by_id),
        ),
        "not in set": (
            lambda: [c.id for c in customers if c.id not in {o.cid for o in orders}],
            customers.anti_join(orders, on=lambda c, o: c.id == o.cid).select(by_id),
        ),
        "names": (
            named,
            customers.semi_join(owed, on=lambda c, o: c.id == o.cid)
            .anti_join(blocked, on=lambda c, b: c.id == b)
            .select(lambda c: c.name),
        ),
        "sum": (
            lambda: [(c.id, sum(o.total for o in orders if o.cid == c.id)) for c in customers],
            customers.left_join(totals, on=lambda c, t: c.id == t[0]).select(
                lambda c, t: (c.id, t[1] if t is not None else 0)
            ),
        ),
        "len": (
            lambda: [(c.id, len([o for o in orders if o.cid == c.id])) for c in customers],
            customers.left_join(
                orders.group_by(by_cid).aggregate(Count()), on=lambda c, t: c.id == t[0]
            ).select(lambda c, t: (c.id, t[1] if t is not None else 0)),
        ),
        "max": (
            lambda: [
                (c.id, max((o.total for o in orders if o.cid == c.id), default=0))
                for c in customers
            ],
            customers.left_join(
                orders.group_by(by_cid).aggregate(Max(lambda o: o.total)),
                on=lambda c, t: c.id == t[0],
            ).select(lambda c, t: (c.id, t[1] if t is not None else 0)),
        ),
        "two scalars": (
            lambda: [
                (
                    c.id,
                    sum(o.total for o in orders if o.cid == c.id),
                    len([o for o in orders if o.cid == c.id]),
                )
                for c in customers
            ],
            customers.left_join(
                orders.group_by(by_cid).aggregate(Sum(lambda o: o.total), Count()),
                on=lambda c, t: c.id == t[0],
            ).select(lambda c, t: (c.id, *(t[1:] if t is not None else (0, 0)))),
        ),
        "having": (
            lambda: [
                c.id for c in customers if sum(o.total for o in orders if o.cid == c.id) > 5000
            ],
            customers.join(
                totals.where(lambda k, t: t > 5000), on=lambda c, t: c.id == t[0]
            ).select(lambda c, t: c.id),
        ),
        "self": (
            lambda: [
                o.id for o in orders if o.total == max(p.total for p in orders if p.cid == o.cid)
            ],
            orders.join(
                orders.group_by(by_cid).aggregate(Max(lambda o: o.total)),
                on=lambda o, t: o.cid == t[0] and o.total == t[1],
            ).select(lambda o, t: o.id),
        ),
        "dict": (
            lambda: {
                cid: sum(o.total for o in orders if o.cid == cid) for cid in {o.cid for o in orders}
            },
            totals,
        ),
        "groups": (groups, totals),
        "sums": (sums, totals),
        "total": (
            lambda: sum(o.total for o in orders if o.paid),
            paid.aggregate(Sum(lambda o: o.total)),
        ),
        "least": (
            lambda: min((o.total for o in orders), default=None),
            orders.aggregate(Min(lambda o: o.total)),
        ),
        "top": (
            lambda: sorted(orders, key=lambda o: (-o.total, o.id))[:10],
            orders.order_by(lambda o: (-o.total, o.id)).limit(10),
        ),
        "top of each": (
            lambda: [
                (c.id, o.id)
                for c in customers
                for o in sorted(
                    (o for o in orders if o.cid == c.id), key=lambda o: (-o.total, o.id)
                )[:2]
            ],
            customers.join(
                orders.group_by(by_cid).top(2, by=lambda o: (-o.total, o.id), descending=False),
                on=lambda c, o: c.id == o.cid,
            ).select(lambda c, o: (c.id, o.id)),
        ),
        "sorted of each": (
            lambda: [
                (c.id, tuple(sorted(o.total for o in orders if o.cid == c.id))) for c in customers
            ],
            customers.left_join(
                orders.group_by(by_cid).aggregate(Collect(lambda o: o.total)),
                on=lambda c, t: c.id == t[0],
            ).select(lambda c, t: (c.id, tuple(sorted(t[1])) if t is not None else ())),
        ),
        "union": (
            lambda: {o.cid for o in orders if o.paid} | {c.id for c in customers},
            paid.select(by_cid).union(customers.select(by_id)),
        ),
        "difference": (
            lambda: {c.id for c in customers} - {o.cid for o in orders},
            customers.select(by_id).difference(orders.select(by_cid)),
        ),
        "both": (
            lambda: [o.id for o in orders if o.paid] + [c.id for c in customers],
            paid.select(lambda o: o.id).union_all(customers.select(by_id)),
        ),
        "recursion": (
            reach,
            fixpoint(
                lambda reach: edges.select(lambda e: (e.src, e.dst)).union(
                    reach.join(edges, on=lambda p, e: p[1] == e.src).select(
                        lambda p, e: (p[0], e.dst)
                    )
                )
            ),
        ),
    }
