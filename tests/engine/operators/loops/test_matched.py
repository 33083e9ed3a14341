"""Joins that keep plain rows, or look up partners, fused with the operators above them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Avg, Count, Database, Max, Min, Sum
from reactive.engine.operators.matching import OuterJoin
from tests.budget import examples


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
    "left, grouped": lambda o, c, on: (
        c.left_join(o, on=lambda c, o: on(o, c))
        .group_by(lambda c, o: c.id)
        .aggregate(Count(), Sum(lambda c, o: 0 if o is None else o.price))
    ),
    "right, grouped": lambda o, c, on: (
        o.right_join(c, on=on)
        .group_by(lambda o, c: o is None)
        .aggregate(Min(lambda o, c: c.limit), Avg(lambda o, c: 0.5 * c.limit))
    ),
    "full, summed": lambda o, c, on: o.full_join(c, on=on).aggregate(
        Count(), Max(lambda o, c: 0 if o is None or c is None else o.price - c.limit)
    ),
    "semi, grouped": lambda o, c, on: (
        o.semi_join(c, on=on)
        .where(lambda o: o.price > 0)
        .group_by(lambda o: o.customer)
        .aggregate(Sum(lambda o: o.price), Max(lambda o: o.price))
    ),
    "anti, summed": lambda o, c, on: o.anti_join(c, on=on).aggregate(
        Sum(lambda o: o.price), Count()
    ),
}
orders = st.builds(Order, st.integers(0, 2), st.integers(0, 3))
customers = st.builds(Customer, st.integers(0, 2), st.integers(0, 3))
changes = st.lists(st.tuples(st.booleans(), st.one_of(orders, customers)), min_size=1, max_size=4)


def change(db: Database, tables: dict[type, Any], of: list[tuple[bool, Any]]) -> None:
    """Add rows, and remove rows that are present, in one commit."""
    with db.transaction():
        for adds, row in of:
            table = tables[type(row)]
            if adds:
                table.add(row)
            elif row in table:
                table.remove(row)


@pytest.mark.long
@pytest.mark.parametrize("on", [same, cheap])
@pytest.mark.parametrize("kind", QUERIES)
@examples(30, share=3)
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
    query.select(lambda *row: row).materialize().verify()
    for table in tables.values():
        table.clear()
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


@pytest.mark.parametrize("on", [same, cheap])
def test_groups_in_which_something_raises_are_as_they_were(on: Any) -> None:
    db = Database()
    placed, known = db.table(Order), db.table(Customer)
    joined: Any = placed.left_join(known, on=on)
    groups = joined.group_by(lambda o, c: c.limit).aggregate(
        Sum(lambda o, c: o.price), Min(lambda o, c: 9 // o.price)
    )
    view = groups.materialize()
    known.add(Customer(1, 9))
    placed.add(Order(1, 5))
    failing: list[Callable[[], None]] = [
        lambda: placed.add(Order(2, 5)),
        lambda: placed.add(Order(1, 0)),
        lambda: known.remove(Customer(1, 9)),
    ]
    for fails in failing:
        with pytest.raises((AttributeError, ZeroDivisionError)):
            fails()
        assert list(view) == [(9, 5, 1)]
        view.verify()
    known.add(Customer(2, 7))
    placed.add_all([Order(2, 5), Order(1, 3)])
    view.verify()
    assert sorted(view) == [(7, 5, 1), (9, 8, 1)]


@pytest.mark.parametrize("join", ["left_join", "semi_join", "anti_join"])
def test_a_change_that_another_view_refuses_leaves_the_groups(join: str) -> None:
    db = Database()
    placed: Any = db.table(Order)
    known: Any = db.table(Customer)
    joined = getattr(placed, join)(known, on=same)
    view = joined.group_by(lambda o, *_: 0).aggregate(Count()).materialize()
    count = joined.aggregate(Count()).materialize()
    refusing = known.select(lambda c: 1 // (c.limit - 7)).materialize()
    placed.add_all([Order(1, 5), Order(2, 5)])
    known.add(Customer(1, 9))
    before = count.value
    with pytest.raises(ZeroDivisionError), db.transaction():
        known.add(Customer(2, 8))
        known.remove(Customer(1, 9))
        known.add(Customer(2, 7))
    assert count.value == before and len(refusing) == 1
    known.add(Customer(2, 8))
    for each in (view, count):
        each.verify()


@pytest.mark.parametrize("join", ["left_join", "semi_join", "anti_join"])
def test_a_change_of_groups_touches_as_much_in_tables_100_times_larger(join: str) -> None:
    touched = []
    for size in (30, 3_000):
        db = Database()
        placed: Any = db.table(Order)
        known: Any = db.table(Customer)
        view = getattr(placed, join)(known, on=same).aggregate(Count()).materialize()
        placed.add_all(Order(n, n) for n in range(size))
        known.add_all(Customer(n, n) for n in range(0, size, 2))
        placed.add(Order(9, 2))  # the first one that looks customers up has their index made
        before = view.stats().touched
        known.add(Customer(7, 1))
        known.remove(Customer(8, 8))
        placed.add(Order(9, 1))
        view.verify()
        touched.append(view.stats().touched - before)
    assert touched[0] == touched[1] < 30


def test_an_outer_join_and_its_chain_are_one_operator_and_a_semi_join_is_its_own() -> None:
    db = Database()
    placed, known = db.table(Order), db.table(Customer)
    view = placed.left_join(known, on=same).select(lambda o, c: (o.price, c and c.limit))
    assert "probe left_join o.customer == c.id | select" in str(view.explain())
    counted = placed.semi_join(known, on=same).group_by(lambda o: o.price).aggregate(Count())
    explained = str(counted.explain())
    assert "probe" not in explained and "match semi_join o.customer == c.id" in explained


def test_rows_that_are_replaced_on_both_sides_go_through_the_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[int] = []
    plainly = OuterJoin.rows

    def rows(*given: Any) -> Any:
        taken.append(1)
        return plainly(*given)

    monkeypatch.setattr(OuterJoin, "rows", rows)
    random, db = Random(5), Database()
    people: Any = db.table(int)
    one: Any = db.table(Order)
    other: Any = db.table(Customer)
    view = people.nest(
        orders=lambda p: one.where(lambda o: o.customer == p),
        known=lambda p: other.where(lambda c: c.id == p),
    ).materialize()
    people.add_all(range(6))
    for number in range(40):
        with db.transaction():
            one.add_all(Order(random.randrange(7), number) for _ in range(2))
            other.add_all(Customer(random.randrange(7), number) for _ in range(2))
            for table in (one, other):
                if number % 3:
                    table.discard(random.choice(list(table)))
        view.verify()
    assert not taken
