"""The queries evaluated again, with hash joins, over all rows so far.

Each is a function from the tables to the rows of the view, with lists for bags. The lists of the
rows are kept for it, and are not counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
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

Lists = dict[Any, list[Any]]


class Again:
    """Rows of tables, and the last evaluation over them."""

    def __init__(self, name: str) -> None:
        self.query = QUERIES[name]
        self.tables: Lists = {each: [] for each in TYPES}
        self.shown: list[Any] = []

    def keep(self, changes: Batch) -> None:
        """Take the rows, which is not timed."""
        for table, come, gone in changes:
            for row in gone:
                self.tables[table].remove(row)
            self.tables[table] += come

    def batch(self, changes: Batch) -> None:
        """Evaluate; the rows have been kept."""
        self.shown = self.query(self.tables)

    def result(self) -> dict[Any, int]:
        """Rows, with lists as frozen sets of pairs."""
        return dict(Counter(map(_plain, self.shown)))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return frozenset(Counter(map(_plain, value)).items())
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value


def depth1(t: Lists) -> list[Any]:
    orders = _lists((o.customer, o) for o in t[Order])
    return [(c, orders.get(c.id, [])) for c in t[Customer]]


def q1(t: Lists) -> list[Any]:
    names = {p.id: p.name for p in t[Part]}
    parts = _lists((i.order, (names[i.part], i.quantity)) for i in t[Item] if i.part in names)
    orders = _lists((o.customer, (o, parts.get(o.id, []))) for o in t[Order])
    return [(c, orders.get(c.id, [])) for c in t[Customer]]


def depth3(t: Lists) -> list[Any]:
    customers = _lists((row[0].nation, row) for row in q1(t))
    return [(n, customers.get(n.id, [])) for n in t[Nation]]


def _buyers(t: Lists) -> dict[int, Customer]:
    """Return the customer of each order."""
    customers = {c.id: c for c in t[Customer]}
    return {o.id: customers[o.customer] for o in t[Order] if o.customer in customers}


def q2(t: Lists) -> list[Any]:
    buyers = _buyers(t)
    names = _lists((i.supplier, buyers[i.order].name) for i in t[Item] if i.order in buyers)
    return [(s, names.get(s.id, [])) for s in t[Supplier]]


def q3(t: Lists) -> list[Any]:
    buyers, offering = _buyers(t), {s.id: (s.name, s.nation) for s in t[Supplier]}
    found = ((i.part, buyers[i.order]) for i in t[Item] if i.order in buyers)
    customers = _lists((part, (c.name, c.nation)) for part, c in found)
    suppliers = _lists((x.part, offering[x.supplier]) for x in t[Offer] if x.supplier in offering)
    return [(p, suppliers.get(p.id, []), customers.get(p.id, [])) for p in t[Part]]


def q4(t: Lists) -> list[Any]:
    """Evaluate Q4 over the result of Q1, because its input is nested."""
    sums: dict[Any, int] = defaultdict(int)
    for c, orders in q1(t):
        for o, parts in orders:
            month = o.day // MONTH
            for name, quantity in parts:
                sums[c.name, month, name] += quantity
    return list(sums.items())


def q4_flat(t: Lists) -> list[Any]:
    buyers, names = _buyers(t), {p.id: p.name for p in t[Part]}
    months = {o.id: o.day // MONTH for o in t[Order]}
    sums: dict[Any, int] = defaultdict(int)
    for i in t[Item]:
        if i.order in buyers and i.part in names:
            sums[buyers[i.order].name, months[i.order], names[i.part]] += i.quantity
    return list(sums.items())


def q5(t: Lists) -> list[Any]:
    found = []
    for p, suppliers, customers in q3(t):
        nations = {nation for _, nation in suppliers}
        found.append((p.name, sum(nation not in nations for _, nation in customers)))
    return found


def q6(t: Lists) -> list[Any]:
    suppliers = _lists((name, s.name) for s, customers in q2(t) for name in customers)
    return [(c, suppliers.get(c.name, [])) for c in t[Customer]]


def q7(t: Lists) -> list[Any]:
    parts: Lists = {}
    for p, suppliers, customers in q3(t):
        bought = {nation for _, nation in customers}
        for nation in {nation for _, nation in suppliers} - bought:
            parts.setdefault(nation, []).append(p.name)
    return [(n, parts.get(n.id, [])) for n in t[Nation]]


def _lists(pairs: Iterable[tuple[Any, Any]]) -> Lists:
    found: Lists = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


QUERIES: dict[str, Callable[[Lists], list[Any]]] = {
    each.__name__: each for each in (depth1, q1, depth3, q2, q3, q4, q4_flat, q5, q6, q7)
}
