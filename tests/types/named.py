"""Types that mypy infers with the plugin `reactive.mypy`: keys by name, rows of aggregates."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any, assert_type

from sqlalchemy import ForeignKey
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from reactive import (
    Avg,
    Collect,
    Count,
    CountDistinct,
    Database,
    Max,
    Min,
    Mirror,
    Monoid,
    Multiset,
    NamedGroupsView,
    Relation,
    Sum,
    Table,
)
from tests.types.rows import Customer, Order
from tests.types.written import Customers, Orders


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
    assert_type(one.value.n, int)
    assert_type(one.value.total, int)
    assert_type([row.n for row in one], list[int])
    print(one.value.m)  # error
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


def values_of_aggregates() -> None:
    orders = Database().table(Order, key="id")
    by = orders.group_by(lambda o: o.customer).aggregate(
        n=Count(),
        total=Sum(lambda o: o.total),
        price=Avg(lambda o: o.price),
        most=Max(lambda o: o.total),
        least=Min(lambda o: (o.day, o.id)),
        days=CountDistinct(lambda o: o.day),
        names=Collect(lambda o: o.customer),
        discount=Max(lambda o: o.discount, skip_none=True),
        text=Monoid("", lambda a, b: a + b),
    )
    for row in by.materialize():
        assert_type(
            (row.n, row.total, row.price, row.most, row.least),
            tuple[int, float, Decimal, float, tuple[date, int]],
        )
        assert_type(
            (row.days, row.names, row.discount, row.text), tuple[int, Multiset[str], float, str]
        )
    fields = orders.aggregate(
        a=Sum("id"), b=Avg("id"), c=Max("day"), d=Min("discount"), e=Collect("paid"), f=Sum("paid")
    )
    one = fields.materialize().value
    assert_type(
        (one.a, one.b, one.c, one.d, one.e, one.f),
        tuple[int, float, date, float | None, Multiset[bool], int],
    )
    orders.aggregate(n=Count(), most=Max(lambda o: o.totl))  # error
    both = orders.join(orders, on="id")
    pairs = both.group_by(lambda a, b: a.id).aggregate(most=Max(lambda a, b: b.day))
    assert_type([row.most for row in pairs.materialize()], list[date])
    assert_type(both.aggregate(n=Sum("id")).materialize().value.n, Any)  # of either binding


def written_classes() -> None:
    db = Database()
    orders = db.table(Orders, key="id")
    assert_type(orders, Table[Orders, int])
    assert_type(orders.aggregate(total=Sum("total")).materialize().value.total, Decimal)
    assert_type(orders.select(lambda o: o.unit_price), Relation[float | None])
    customers = db.table(Customers, key=["name", "town"])
    assert_type(customers, Table[Customers, tuple[str, str]])
    assert_type([row.count for row in customers], list[int])
    orders.add(Orders(1, "ann", 3.5, None, None, None, None, None))  # error


def relationships(mirror: Mirror) -> None:
    assert_type(mirror.related(Sale.shop), Relation[Sale, Shop])
    assert_type(mirror.related(Shop.sales), Relation[Shop, Sale])
