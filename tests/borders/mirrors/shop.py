"""A shop in SQLAlchemy: classes with the features of mappings, and SQLite engines for them."""

from __future__ import annotations

from pathlib import Path
from sqlite3 import Connection
from typing import Any

from sqlalchemy import JSON, Column, Engine, ForeignKey, Table, create_engine, event, func
from sqlalchemy.ext.hybrid import hybrid_property
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    column_property,
    mapped_column,
    relationship,
    synonym,
)
from sqlalchemy.pool import StaticPool


class Base(DeclarativeBase): ...


order_tags = Table(
    "order_tags",
    Base.metadata,
    Column("order_id", ForeignKey("orders.id", ondelete="CASCADE"), primary_key=True),
    Column("tag_id", ForeignKey("tags.id", ondelete="CASCADE"), primary_key=True),
)


class Customer(Base):
    __tablename__ = "customers"
    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str | None] = mapped_column(unique=True)
    name: Mapped[str]
    size: Mapped[Any] = mapped_column(JSON, nullable=True)
    orders: Mapped[list[Order]] = relationship(
        back_populates="customer", cascade="all, delete-orphan", passive_deletes=True
    )
    label = synonym("name")


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(
        ForeignKey("customers.id", ondelete="CASCADE", onupdate="CASCADE")
    )
    total: Mapped[int] = mapped_column(server_default="5")
    changes: Mapped[int] = mapped_column(default=0, onupdate=func.coalesce(1, 1))
    note: Mapped[str | None] = mapped_column(deferred=True)
    twice: Mapped[int] = column_property(total * 2)
    customer: Mapped[Customer] = relationship(back_populates="orders")
    lines: Mapped[list[Line]] = relationship(cascade="all, delete-orphan", passive_deletes=True)
    tags: Mapped[list[Tag]] = relationship(secondary=order_tags, back_populates="orders")

    @hybrid_property
    def is_large(self) -> bool:
        return self.total > 10


class Line(Base):
    __tablename__ = "lines"
    order_id: Mapped[int] = mapped_column(
        ForeignKey("orders.id", ondelete="CASCADE", onupdate="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)
    pieces: Mapped[int]


class Tag(Base):
    __tablename__ = "tags"
    id: Mapped[int] = mapped_column(primary_key=True)
    word: Mapped[str]
    orders: Mapped[list[Order]] = relationship(secondary=order_tags, back_populates="tags")


class Person(Base):
    __tablename__ = "persons"
    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    name: Mapped[str]
    friend_id: Mapped[int | None] = mapped_column(
        ForeignKey("persons.id", deferrable=True, initially="DEFERRED")
    )
    __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "person"}


class Manager(Person):
    __tablename__ = "managers"
    id: Mapped[int] = mapped_column(ForeignKey("persons.id"), primary_key=True)
    level: Mapped[int]
    __mapper_args__ = {"polymorphic_identity": "manager"}


class Clerk(Person):
    desk: Mapped[str | None]
    __mapper_args__ = {"polymorphic_identity": "clerk"}


CLASSES = (Customer, Order, Line, Tag, Person, Manager, Clerk)


def shop(path: Path | None = None, factory: type[Connection] = Connection) -> Engine:
    """An engine over the tables of the shop, in a file or in memory."""
    given: dict[str, Any] = {"factory": factory}
    if path is None:
        memory = {**given, "check_same_thread": False}
        engine = create_engine("sqlite://", poolclass=StaticPool, connect_args=memory)
    else:
        engine = create_engine(f"sqlite:///{path}", connect_args=given)
    keep_keys(engine)
    Base.metadata.create_all(engine)
    return engine


def keep_keys(engine: Engine) -> None:
    """Make SQLite enforce foreign keys, and begin transactions when SQLAlchemy does."""

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        connection.isolation_level = None
        connection.execute("pragma foreign_keys = on")

    @event.listens_for(engine, "begin")
    def begun(connection: Any) -> None:
        connection.exec_driver_sql(engine.get_execution_options().get("begin", "begin"))
