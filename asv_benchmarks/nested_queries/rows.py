"""The tables, made from a scale (at 1, 1,500,000 orders), and the batches to load them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

NATIONS = 25
DAYS, MONTH = 2_400, 30
OFFERS_OF_A_PART = 4
ITEMS_OF_AN_ORDER = 7


class Customer(NamedTuple):
    id: int
    name: str
    nation: int


class Order(NamedTuple):
    id: int
    customer: int
    day: int


class Item(NamedTuple):
    order: int
    part: int
    supplier: int
    quantity: int


class Part(NamedTuple):
    id: int
    name: str


class Supplier(NamedTuple):
    id: int
    name: str
    nation: int


class Offer(NamedTuple):
    part: int
    supplier: int


class Nation(NamedTuple):
    id: int
    name: str


TYPES: tuple[type[Any], ...] = (Nation, Customer, Supplier, Part, Offer, Order, Item)
"""The tables in their order within a batch."""
Change = tuple[type[Any], Sequence[Any], Sequence[Any]]
"""A table, inserted rows, and deleted rows, in this order."""
Batch = Sequence[Change]


def tables(scale: float, random: Random) -> dict[type[Any], list[Any]]:
    """Return the rows of each table."""
    pick = random.randrange
    customers, parts = max(5, int(150_000 * scale)), max(5, int(200_000 * scale))
    suppliers, orders = max(4, int(10_000 * scale)), max(10, int(1_500_000 * scale))
    offers = [Offer(n, pick(suppliers)) for n in range(parts) for _ in range(OFFERS_OF_A_PART)]
    return {
        Nation: [Nation(n, f"nation {n}") for n in range(NATIONS)],
        Customer: [Customer(n, f"customer {n}", pick(NATIONS)) for n in range(customers)],
        Supplier: [Supplier(n, f"supplier {n}", pick(NATIONS)) for n in range(suppliers)],
        Part: [Part(n, f"part {n}") for n in range(parts)],
        Offer: offers,
        Order: [Order(n, pick(customers), pick(DAYS)) for n in range(orders)],
        Item: [
            Item(n, *offers[pick(len(offers))], 1 + pick(50))
            for n in range(orders)
            for _ in range(1 + pick(ITEMS_OF_AN_ORDER))
        ],
    }


def batches(
    rows: dict[type[Any], list[Any]], count: int, used: Iterable[type[Any]]
) -> Iterator[Batch]:
    """Yield the tables in `count` equal parts, the parts of all tables together."""
    read = [each for each in TYPES if each in set(used)]
    for number in range(count):
        yield [(each, _part(rows[each], number, count), ()) for each in read]


def unsettled(come: Iterable[Batch], random: Random) -> Iterator[Batch]:
    """Yield the batches with deletes: some earlier rows are deleted, and some inserted again."""
    there: defaultdict[type[Any], list[Any]] = defaultdict(list)
    gone: defaultdict[type[Any], list[Any]] = defaultdict(list)
    for batch in come:
        changes = []
        for table, new, _ in batch:
            back = _taken(gone[table], len(gone[table]) // 3, random)
            away = _taken(there[table], min(len(there[table]), 1 + len(new) // 4), random)
            there[table] += [*new, *back]
            gone[table] += away
            changes.append((table, [*new, *back], away))
        yield changes


def _taken(rows: list[Any], count: int, random: Random) -> list[Any]:
    return [rows.pop(random.randrange(len(rows))) for _ in range(count)]


def _part(rows: list[Any], number: int, count: int) -> list[Any]:
    return rows[len(rows) * number // count : len(rows) * (number + 1) // count]
