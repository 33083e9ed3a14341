"""Joins that keep rows alone, or ask for partners, with what is done above them in one loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive import Database


class Order(NamedTuple):
    customer: int
    price: int


class Customer(NamedTuple):
    id: int
    limit: int


def same(o: Order, c: Customer) -> bool:
    return o.customer == c.id


def cheap(o: Order, c: Customer) -> bool:
    return o.customer == c.id and o.price < c.limit


QUERIES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "left": lambda o, c, on: o.left_join(c, on=on).select(lambda o, c: (o.price, c and c.limit)),
    "right": lambda o, c, on: o.right_join(c, on=on).where(lambda o, c: o is None or c.limit > 1),
    "full": lambda o, c, on: o.full_join(c, on=on),
    "semi": lambda o, c, on: o.semi_join(c, on=on).where(lambda o: o.price > 1),
    "anti": lambda o, c, on: o.anti_join(c, on=on).select(lambda o: o.price % 2),
    "three": lambda o, c, on: (
        o.join(c, on=same)
        .left_join(o, on=lambda o, c, p: c.limit == p.customer)
        .select(lambda o, c, p: (o.price, None if p is None else p.price))
    ),
}
orders = st.builds(Order, st.integers(0, 2), st.integers(0, 3))
customers = st.builds(Customer, st.integers(0, 2), st.integers(0, 3))
changes = st.lists(st.tuples(st.booleans(), st.one_of(orders, customers)), min_size=1, max_size=4)


def change(db: Database, tables: dict[type, Any], of: list[tuple[bool, Any]]) -> None:
    """Add rows, and remove those that are there, in one commit."""
    with db.transaction():
        for adds, row in of:
            table = tables[type(row)]
            if adds:
                table.add(row)
            elif row in table:
                table.remove(row)


@pytest.mark.parametrize("on", [same, cheap])
@pytest.mark.parametrize("kind", QUERIES)
@settings(max_examples=30)
@given(history=st.lists(changes, max_size=6))
def test_they_have_the_rows_of_the_query_after_every_commit(
    kind: str, on: Any, history: list[list[tuple[bool, Any]]]
) -> None:
    db = Database()
    tables: dict[type, Any] = {Order: db.table(Order), Customer: db.table(Customer)}
    query = QUERIES[kind](tables[Order], tables[Customer], on)
    view = query.materialize()
    for of in history:
        change(db, tables, of)
        view.verify()


@pytest.mark.parametrize("on", [same, cheap])
def test_what_raises_above_leaves_all_as_it_was(on: Any) -> None:
    db = Database()
    placed, known = db.table(Order), db.table(Customer)
    joined: Any = placed.left_join(known, on=on)
    view = joined.select(lambda o, c: (o.price, c.limit)).materialize()
    known.add(Customer(1, 9))
    placed.add(Order(1, 5))
    with pytest.raises(AttributeError):
        placed.add(Order(2, 5))
    with pytest.raises(AttributeError):
        known.remove(Customer(1, 9))
    assert list(view) == [(5, 9)]
    known.add(Customer(2, 7))
    placed.add(Order(2, 5))
    view.verify()
    assert sorted(view) == [(5, 7), (5, 9)]


def test_a_join_alone_and_its_chain_are_one_operator() -> None:
    db = Database()
    placed, known = db.table(Order), db.table(Customer)
    view = placed.left_join(known, on=same).select(lambda o, c: (o.price, c and c.limit))
    assert "probe left_join o.customer == c.id | select" in str(view.explain())
