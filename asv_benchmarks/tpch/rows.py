"""The tables, made from a scale: at 1, 1,500,000 orders of one to seven items each."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

LAST_DAY = 2_500
SEGMENTS = ("building", "farming", "household", "machines", "travel")
COLOURS = ("azure", "green", "ivory", "lemon", "olive", "plum", "rose", "white")
NOTES = ("asap", "call before delivery", "gift", "special wishes", "ship in two parts")
NATIONS = 25
REGIONS = 5
SUPPLIERS_PER_PART = 4


@dataclass(frozen=True, slots=True)
class Item:
    order: int
    number: int
    part: int
    supplier: int
    quantity: int
    price: int
    discount: int
    tax: int
    returned: str
    status: str
    shipped: int


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: int
    total: int
    day: int
    priority: int
    note: str


@dataclass(frozen=True, slots=True)
class Customer:
    id: int
    nation: int
    segment: str


@dataclass(frozen=True, slots=True)
class Part:
    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Supplier:
    id: int
    nation: int


@dataclass(frozen=True, slots=True)
class Offer:
    part: int
    supplier: int
    cost: int


@dataclass(frozen=True, slots=True)
class Nation:
    id: int
    name: str
    region: int


@dataclass(frozen=True, slots=True)
class Region:
    id: int
    name: str


class Shop:
    """All rows of a scale, and more items and orders on demand."""

    def __init__(self, scale: float, random: Random) -> None:
        self._random = random
        self._customers = max(10, int(150_000 * scale))
        self._parts = max(10, int(200_000 * scale))
        self._suppliers = max(2 * SUPPLIERS_PER_PART, int(10_000 * scale))
        pick = random.randrange
        self.regions = [Region(n, f"region {n}") for n in range(REGIONS)]
        self.nations = [Nation(n, f"nation {n}", n % REGIONS) for n in range(NATIONS)]
        self.suppliers = [Supplier(n, pick(NATIONS)) for n in range(self._suppliers)]
        self.customers = [
            Customer(n, pick(NATIONS), random.choice(SEGMENTS)) for n in range(self._customers)
        ]
        self.parts = [Part(n, f"{random.choice(COLOURS)} {n}") for n in range(self._parts)]
        self.offers = [
            Offer(n, self._offered_by(n, k), 100 + pick(100_000))
            for n in range(self._parts)
            for k in range(SUPPLIERS_PER_PART)
        ]
        self.orders = [self.order(n) for n in range(max(10, int(1_500_000 * scale)))]
        self.items = [
            self.item(order, number) for order in self.orders for number in range(1 + pick(7))
        ]

    def order(self, number: int) -> Order:
        pick = self._random.randrange
        return Order(
            *(number, pick(self._customers), 10_000 + pick(50_000_000)),
            *(pick(LAST_DAY), pick(5), self._random.choice(NOTES)),
        )

    def item(self, order: Order, number: int) -> Item:
        pick = self._random.randrange
        part, shipped = pick(self._parts), order.day + 1 + pick(120)
        return Item(
            *(order.id, number, part, self._offered_by(part, pick(SUPPLIERS_PER_PART))),
            *(1 + pick(50), 100_000 + pick(10_000_000), pick(11), pick(9)),
            *(self._random.choice("ANR"), "FO"[shipped > LAST_DAY // 2], shipped),
        )

    def _offered_by(self, part: int, number: int) -> int:
        return (part + number * (self._suppliers // SUPPLIERS_PER_PART)) % self._suppliers
