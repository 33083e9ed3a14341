"""Handwritten incremental programs for each query: dictionaries, and a function per table.

An inner bag is a dictionary from values to their counts, by the label of its row, whether the row
is present or not; a row that is inserted later finds it. Rows that join are looked up by keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from asv_benchmarks.nested_queries.rows import (
    MONTH,
    Batch,
    Customer,
    Item,
    Nation,
    Offer,
    Order,
    Part,
    Supplier,
)

Counts = dict[Any, int]
Groups = defaultdict[Any, Counts]


class ByHand:
    """Tables, each with the function for one changed row."""

    def __init__(self) -> None:
        self.does: dict[Any, Callable[[Any, int], None]] = {}

    def batch(self, changes: Batch) -> None:
        """Apply the rows one after the other."""
        for table, come, gone in changes:
            do = self.does[table]
            for row in gone:
                do(row, -1)
            for row in come:
                do(row, 1)

    def result(self) -> dict[Any, int]:
        """Return the rows of the view."""
        raise NotImplementedError


def _groups() -> Groups:
    return defaultdict(dict)


def _add(counts: Counts, key: Any, weight: int) -> None:
    now = counts.get(key, 0) + weight
    if now:
        counts[key] = now
    else:
        del counts[key]


def _put(rows: dict[Any, Any], key: Any, row: Any, weight: int) -> None:
    if weight > 0:
        rows[key] = row
    else:
        del rows[key]


def _bag(counts: Counts | None) -> Any:
    return frozenset((counts or {}).items())


class Depth1(ByHand):
    def __init__(self) -> None:
        super().__init__()
        self.customers: dict[int, Customer] = {}
        self.orders = _groups()
        self.does[Customer] = self.customer
        self.does[Order] = self.order

    def customer(self, c: Customer, weight: int) -> None:
        _put(self.customers, c.id, c, weight)

    def order(self, o: Order, weight: int) -> None:
        _add(self.orders[o.customer], o, weight)

    def result(self) -> dict[Any, int]:
        return {(c, _bag(self.orders.get(n))): 1 for n, c in self.customers.items()}


class Q1(Depth1):
    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[int, Part] = {}
        self.items_of, self.inside = _groups(), _groups()
        self.does |= {Item: self.item, Part: self.part}

    def item(self, i: Item, weight: int) -> None:
        _add(self.items_of[i.part], i, weight)
        part = self.parts.get(i.part)
        if part is not None:
            _add(self.inside[i.order], (part.name, i.quantity), weight)

    def part(self, p: Part, weight: int) -> None:
        _put(self.parts, p.id, p, weight)
        for i, count in self.items_of.get(p.id, {}).items():
            _add(self.inside[i.order], (p.name, i.quantity), count * weight)

    def tree(self, c: Customer) -> Any:
        orders = self.orders.get(c.id, {})
        return (c, frozenset(((o, _bag(self.inside.get(o.id))), n) for o, n in orders.items()))

    def result(self) -> dict[Any, int]:
        return {self.tree(c): 1 for c in self.customers.values()}


class Depth3(Q1):
    def __init__(self) -> None:
        super().__init__()
        self.nations: dict[int, Nation] = {}
        self.customers_of: dict[int, dict[int, Customer]] = defaultdict(dict)
        self.does |= {Nation: self.nation}

    def nation(self, n: Nation, weight: int) -> None:
        _put(self.nations, n.id, n, weight)

    def customer(self, c: Customer, weight: int) -> None:
        _put(self.customers_of[c.nation], c.id, c, weight)

    def result(self) -> dict[Any, int]:
        below = {n: map(self.tree, found.values()) for n, found in self.customers_of.items()}
        return {
            (n, frozenset((each, 1) for each in below.get(n.id, ()))): 1
            for n in self.nations.values()
        }


class Buying(ByHand):
    """Customer, order and item, in any order of arrival: the start of Q2 to Q7."""

    def __init__(self) -> None:
        super().__init__()
        self.customers: dict[int, Customer] = {}
        self.orders: dict[int, Order] = {}
        self.orders_of, self.items_of = _groups(), _groups()
        self.does |= {Customer: self.customer, Order: self.order, Item: self.item}

    def customer(self, c: Customer, weight: int) -> None:
        _put(self.customers, c.id, c, weight)
        for o in self.orders_of.get(c.id, ()):
            for i, count in self.items_of.get(o.id, {}).items():
                self.bought(c, o, i, count * weight)

    def order(self, o: Order, weight: int) -> None:
        _put(self.orders, o.id, o, weight)
        _add(self.orders_of[o.customer], o, weight)
        c = self.customers.get(o.customer)
        if c is not None:
            for i, count in self.items_of.get(o.id, {}).items():
                self.bought(c, o, i, count * weight)

    def item(self, i: Item, weight: int) -> None:
        _add(self.items_of[i.order], i, weight)
        o = self.orders.get(i.order)
        if o is not None:
            c = self.customers.get(o.customer)
            if c is not None:
                self.bought(c, o, i, weight)

    def bought(self, c: Customer, o: Order, i: Item, weight: int) -> None:
        """Handle a joined row."""
        raise NotImplementedError


class Q2(Buying):
    def __init__(self) -> None:
        super().__init__()
        self.suppliers: dict[int, Supplier] = {}
        self.names = _groups()
        self.does |= {Supplier: self.supplier}

    def supplier(self, s: Supplier, weight: int) -> None:
        _put(self.suppliers, s.id, s, weight)

    def bought(self, c: Customer, o: Order, i: Item, weight: int) -> None:
        _add(self.names[i.supplier], c.name, weight)

    def result(self) -> dict[Any, int]:
        return {(s, _bag(self.names.get(n))): 1 for n, s in self.suppliers.items()}


class Q3(Buying):
    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[int, Part] = {}
        self.suppliers: dict[int, Supplier] = {}
        self.offers_of, self.offering, self.buying = _groups(), _groups(), _groups()
        self.does |= {Part: self.part, Supplier: self.supplier, Offer: self.offer}

    def part(self, p: Part, weight: int) -> None:
        _put(self.parts, p.id, p, weight)

    def supplier(self, s: Supplier, weight: int) -> None:
        _put(self.suppliers, s.id, s, weight)
        for x, count in self.offers_of.get(s.id, {}).items():
            self.offered(x.part, s, count * weight)

    def offer(self, x: Offer, weight: int) -> None:
        _add(self.offers_of[x.supplier], x, weight)
        s = self.suppliers.get(x.supplier)
        if s is not None:
            self.offered(x.part, s, weight)

    def offered(self, part: int, s: Supplier, weight: int) -> None:
        _add(self.offering[part], (s.name, s.nation), weight)

    def bought(self, c: Customer, o: Order, i: Item, weight: int) -> None:
        _add(self.buying[i.part], (c.name, c.nation), weight)

    def result(self) -> dict[Any, int]:
        return {
            (p, _bag(self.offering.get(n)), _bag(self.buying.get(n))): 1
            for n, p in self.parts.items()
        }


class Q4(Buying):
    """Sums, and how many rows each has; no bags."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[int, Part] = {}
        self.items_with = _groups()
        self.sums: dict[Any, list[int]] = {}
        self.does |= {Part: self.part}

    def part(self, p: Part, weight: int) -> None:
        _put(self.parts, p.id, p, weight)
        for i, count in self.items_with.get(p.id, {}).items():
            o = self.orders.get(i.order)
            if o is not None and o.customer in self.customers:
                self.sold(self.customers[o.customer], o, p, i, count * weight)

    def item(self, i: Item, weight: int) -> None:
        _add(self.items_with[i.part], i, weight)
        super().item(i, weight)

    def bought(self, c: Customer, o: Order, i: Item, weight: int) -> None:
        p = self.parts.get(i.part)
        if p is not None:
            self.sold(c, o, p, i, weight)

    def sold(self, c: Customer, o: Order, p: Part, i: Item, weight: int) -> None:
        key = (c.name, o.day // MONTH, p.name)
        held = self.sums.get(key)
        if held is None:
            self.sums[key] = [i.quantity * weight, weight]
        else:
            held[0] += i.quantity * weight
            held[1] += weight
            if not held[1]:
                del self.sums[key]

    def result(self) -> dict[Any, int]:
        return {(key, held[0]): 1 for key, held in self.sums.items()}


class Q5(Q3):
    """Customers and suppliers by nation for each part, and the number shown."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counts = defaultdict(int)

    def offered(self, part: int, s: Supplier, weight: int) -> None:
        offering = self.offering[part]
        had = s.nation in offering
        _add(offering, s.nation, weight)
        if had != (s.nation in offering):
            customers = self.buying.get(part, {}).get(s.nation, 0)
            self.counts[part] += customers if had else -customers

    def bought(self, c: Customer, o: Order, i: Item, weight: int) -> None:
        _add(self.buying[i.part], c.nation, weight)
        if c.nation not in self.offering.get(i.part, ()):
            self.counts[i.part] += weight

    def result(self) -> dict[Any, int]:
        return {(p.name, self.counts.get(n, 0)): 1 for n, p in self.parts.items()}


class Q6(Buying):
    """Q2 by customers, of the suppliers that are there."""

    def __init__(self) -> None:
        super().__init__()
        self.suppliers: dict[int, Supplier] = {}
        self.sold_by, self.names = _groups(), _groups()
        self.does |= {Supplier: self.supplier}

    def supplier(self, s: Supplier, weight: int) -> None:
        _put(self.suppliers, s.id, s, weight)
        for customer, count in self.sold_by.get(s.id, {}).items():
            _add(self.names[customer], s.name, count * weight)

    def bought(self, c: Customer, o: Order, i: Item, weight: int) -> None:
        _add(self.sold_by[i.supplier], c.id, weight)
        s = self.suppliers.get(i.supplier)
        if s is not None:
            _add(self.names[c.id], s.name, weight)

    def result(self) -> dict[Any, int]:
        return {(c, _bag(self.names.get(n))): 1 for n, c in self.customers.items()}


class Q7(Q3):
    """Customers and suppliers by nation for each part; a nation's parts without a customer."""

    def __init__(self) -> None:
        super().__init__()
        self.nations: dict[int, Nation] = {}
        self.names = _groups()
        self.does |= {Nation: self.nation}

    def nation(self, n: Nation, weight: int) -> None:
        _put(self.nations, n.id, n, weight)

    def part(self, p: Part, weight: int) -> None:
        super().part(p, weight)
        for nation in self.offering.get(p.id, {}):
            if nation not in self.buying.get(p.id, ()):
                _add(self.names[nation], p.name, weight)

    def offered(self, part: int, s: Supplier, weight: int) -> None:
        offering = self.offering[part]
        had = s.nation in offering
        _add(offering, s.nation, weight)
        has = s.nation in offering
        if had != has and part in self.parts and s.nation not in self.buying.get(part, ()):
            _add(self.names[s.nation], self.parts[part].name, has - had)

    def bought(self, c: Customer, o: Order, i: Item, weight: int) -> None:
        buying = self.buying[i.part]
        had = c.nation in buying
        _add(buying, c.nation, weight)
        has = c.nation in buying
        is_offered = c.nation in self.offering.get(i.part, ())
        if had != has and is_offered and i.part in self.parts:
            _add(self.names[c.nation], self.parts[i.part].name, had - has)

    def result(self) -> dict[Any, int]:
        return {(n, _bag(self.names.get(n.id))): 1 for n in self.nations.values()}


QUERIES: dict[str, type[ByHand]] = {
    "depth1": Depth1,
    "q1": Q1,
    "depth3": Depth3,
    "q2": Q2,
    "q3": Q3,
    "q4": Q4,
    "q4_flat": Q4,
    "q5": Q5,
    "q6": Q6,
    "q7": Q7,
}
READ: dict[str, tuple[type[Any], ...]] = {name: tuple(of().does) for name, of in QUERIES.items()}
"""The tables of each query."""
