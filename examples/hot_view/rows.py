"""The rows of the tables. They are in a module of their own because Spark's workers import it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Order:
    """A customer ordered something, for an amount in euros."""

    number: int
    customer: int
    product: str
    amount: float


@dataclass(frozen=True, slots=True)
class Customer:
    """Somebody who may order."""

    number: int
    name: str
    region: str


@dataclass(frozen=True, slots=True)
class Spender:
    """A customer and the sum of all orders."""

    number: int
    name: str
    region: str
    total: float
