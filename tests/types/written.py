"""Rows of tables of Postgres.

Written by `python -m reactive.sources.postgres`, which writes it again: do not edit.
"""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, NamedTuple


class Orders(NamedTuple):
    """Table 'orders'; primary key: id."""

    id: int
    customer: str
    total: Decimal
    day: date | None
    at: Annotated[datetime, UTC]
    numbers: tuple[int, ...] | None
    unit_price: float | None
    note: Any


class Customers(NamedTuple):
    """Table 'customers'; primary key: town, name."""

    town: str
    name: str
    count: int  # type: ignore[assignment]
