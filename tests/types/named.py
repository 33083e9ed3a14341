"""Types that mypy infers with the plugin `reactive.mypy`: keys by name, rows of aggregates."""

from __future__ import annotations

from typing import Any, assert_type

from sqlalchemy import ForeignKey
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from reactive import Count, Database, Mirror, NamedGroupsView, Relation, Sum, Table
from tests.types.rows import Customer, Order


class Base(DeclarativeBase): ...


class Shop(Base):
    __tablename__ = "shops"
    id: Mapped[int] = mapped_column(primary_key=True)
    sales: Mapped[list[Sale]] = relationship(back_populates="shop")


class Sale(Base):
    __tablename__ = "sales"
    id: Mapped[int] = mapped_column(primary_key=True)
    shop_id: Mapped[int] = mapped_column(ForeignKey("shops.id"))
    shop: Mapped[Shop] = relationship(back_populates="sales")


def keys() -> None:
    db = Database()
    orders = db.table(Order, key="id")
    assert_type(orders, Table[Order, int])
    assert_type(db.table(Customer, key="town"), Table[Customer, str])
    assert_type(db.table(Order, key=["customer", "id"], name="b"), Table[Order, tuple[str, int]])
    assert_type(db.table(Order, key=["id"], name="c"), Table[Order, int])
    assert_type(db.table(Order, name="d"), Table[Order, Any])
    assert_type(orders.get(1), Order | None)
    assert_type(orders.keys(), list[int])
    orders["one"]  # error
    orders.delete("one")  # error


def aggregates() -> None:
    orders = Database().table(Order, key="id")
    one = orders.aggregate(n=Count(), total=Sum(lambda o: o.id)).materialize()
    assert_type(one.value.n, Any)  # `value` is of one row or of several bindings
    assert_type([row.n for row in one], list[int])
    view = orders.group_by(lambda o: o.customer).aggregate(n=Count()).materialize()
    assert_type(view["ann"].n, int)
    assert_type([row.n for _, row in view.items()], list[int])
    assert_type(view.keys(), list[str])
    large = orders.group_by(lambda o: o.customer).aggregate(n=Count()).where(lambda row: row.n > 1)
    assert_type([row.n for row in large.materialize().values()], list[int])
    print(view["ann"].m)  # error
    view[7]  # error
    typed: NamedGroupsView[str, Any] = view
    assert list(typed) == []


def relationships(mirror: Mirror) -> None:
    assert_type(mirror.related(Sale.shop), Relation[Sale, Shop])
    assert_type(mirror.related(Shop.sales), Relation[Shop, Sale])
