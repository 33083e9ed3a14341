"""The rows that come in and those that go out. Spark's workers import them from here."""

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
    """Who may order, and where they live."""

    number: int
    region: str


@dataclass(frozen=True, slots=True)
class Revenue:
    """What a region's orders come to."""

    region: str
    orders: int
    total: float
