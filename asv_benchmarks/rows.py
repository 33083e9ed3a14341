"""The rows of the workloads, and how they are made: from a number and a random generator.

Numbers are never used twice, so all rows of a table differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

PRODUCTS = 1_000
REGIONS = 50
SENSORS = 1_000
PAGES = 100
DEPOTS = 100
REGULARS = 1_000
SPACING = 10**8


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: int
    product: int
    quantity: int
    price: int


@dataclass(frozen=True, slots=True)
class Sale:
    id: int
    product: int
    quantity: int
    price: float


@dataclass(frozen=True, slots=True)
class Customer:
    id: int
    region: int
    active: bool


@dataclass(frozen=True, slots=True)
class Visit:
    id: int
    user: int
    page: int


@dataclass(frozen=True, slots=True)
class Item:
    id: int
    kind: int


@dataclass(frozen=True, slots=True)
class Reading:
    id: int
    sensor: int
    value: int


@dataclass(frozen=True, slots=True)
class Parcel:
    id: int
    order: int
    depot: int


@dataclass(frozen=True, slots=True)
class Edge:
    id: int
    source: int
    target: int


def order(number: int, random: Random, customers: int = 1) -> Order:
    """Return an order of a random customer; four of five are for more than one piece."""
    pick = random.randrange
    return Order(number, pick(customers), pick(PRODUCTS), 1 + pick(5), 1 + pick(1_000))


def sale(number: int, random: Random, unit: float) -> Sale:
    """Return a sale at a price in a unit; four of five are of more than one piece."""
    pick = random.randrange
    return Sale(number, pick(PRODUCTS), 1 + pick(5), (1 + pick(100_000)) * unit)


def customer(number: int) -> Customer:
    """Return a customer; three of four are active."""
    return Customer(number, number % REGIONS, number % 4 > 0)


def visit(number: int, random: Random) -> Visit:
    """Return a visit; half of them by a user who comes once, half by one of the regulars."""
    user = REGULARS + number if number % 2 else random.randrange(REGULARS)
    return Visit(number, user, random.randrange(PAGES))


def reading(number: int, random: Random) -> Reading:
    """Return a reading; no two have the same value."""
    value = random.randrange(1_000_000) * SPACING + number
    return Reading(number, random.randrange(SENSORS), value)


def parcel(number: int, order: int) -> Parcel:
    """Return a parcel of an order, which tells its depot."""
    return Parcel(number, order, order % DEPOTS)
