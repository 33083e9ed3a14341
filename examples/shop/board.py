"""The live view over the file: the best customers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.orm import sessionmaker

from examples.shop.models import Customer, Order
from reactive import Count, Database, OrderedView, Sum, asc, desc, mirror

PLACES = 10
"""Rows of the leaderboard."""


@dataclass(frozen=True, slots=True)
class Board:
    """The views of the shop; `totals` has a row per customer, by name."""

    db: Database
    sessions: sessionmaker[Any]
    totals: Any
    leaders: OrderedView[Any]

    def close(self) -> None:
        """Stop following the file."""
        self.db.close()


def open_board(engine: Engine) -> Board:
    """Return the board of a file.

    The content of the file is loaded in one commit; then each commit of a session updates the
    views, after SQL has it.
    """
    sessions = sessionmaker(engine)
    db = Database()
    shop = mirror(db, sessions, Order, Customer)
    totals = (
        shop.related(Order.customer)
        .group_by(lambda order, customer: customer.name)
        .aggregate(orders=Count(), cents=Sum(lambda order, customer: order.cents))
    )
    leaders = totals.order_by(desc("cents"), asc("name")).limit(PLACES)
    return Board(db, sessions, totals.materialize("totals"), leaders.materialize("leaders"))
