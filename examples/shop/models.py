"""The tables of the file: customers and their orders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Engine, ForeignKey, create_engine, event
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase): ...


class Customer(Base):
    __tablename__ = "customers"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey("customers.id"), index=True)
    what: Mapped[str]
    cents: Mapped[int]
    customer: Mapped[Customer] = relationship()


def open_file(path: Path) -> Engine:
    """Return the file of the shop, with its tables; it is made if there is none."""
    engine = create_engine(f"sqlite:///{path}")
    event.listen(engine, "connect", _set_up)
    Base.metadata.create_all(engine)
    return engine


def _set_up(connection: Any, _: object) -> None:
    """Let readers not wait for writers, and commits survive a kill of the process."""
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = normal")
    connection.execute("pragma foreign_keys = on")
