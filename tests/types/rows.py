"""Rows of the programs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: str
    total: float
    discount: float | None = None
    price: Decimal = Decimal(1)
    share: Fraction = Fraction(1, 2)
    paid: bool = True
    day: date = date(2026, 1, 2)


class Customer(NamedTuple):
    name: str
    town: str


@dataclass(frozen=True, slots=True)
class Town:
    town: str
    orders: int
    total: float


@dataclass(frozen=True, slots=True)
class Totals:
    orders: int
    total: float
