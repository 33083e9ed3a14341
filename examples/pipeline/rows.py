"""The input and output rows. Spark's workers import them from here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Order:
    """A customer ordered something, for an amount in euros."""

    number: int
    customer: int
    amount: float


@dataclass(frozen=True, slots=True)
class Customer:
    """A customer, and the region."""

    number: int
    region: str


@dataclass(frozen=True, slots=True)
class Revenue:
    """The number and the sum of a region's orders."""

    region: str
    orders: int
    total: float
