"""Indexes of tables that are built at the first look-up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Sum
from reactive.engine.collections.zset import Pair
from reactive.engine.operators.index_by import IndexBy
from tests.budget import examples

NAN = float("nan")
Rel = Any


class Item(NamedTuple):
    order: Any
    part: Any
    price: int


class Order(NamedTuple):
    id: Any
    customer: Any


class Customer(NamedTuple):
    id: Any
    nation: Any


def listed(i: Rel, o: Rel, c: Rel) -> Rel:
    return i.join(o, on=lambda i, o: i.order == o.id)


def listed_from_the_other_side(i: Rel, o: Rel, c: Rel) -> Rel:
    return o.join(i, on=lambda o, i: i.order == o.id and i.price != 2)


def grouped(i: Rel, o: Rel, c: Rel) -> Rel:
    pairs = i.join(o, on=lambda i, o: i.order == o.id)
    return pairs.group_by(lambda i, o: o.customer).aggregate(Sum(lambda i, o: i.price), Count())


def all_rows_of_the_left(i: Rel, o: Rel, c: Rel) -> Rel:
    return i.left_join(o, on=lambda i, o: i.order == o.id)


def counted_with_none(i: Rel, o: Rel, c: Rel) -> Rel:
    pairs = o.left_join(i, on=lambda o, i: i.order == o.id)
    return pairs.group_by(lambda o, i: o.id).aggregate(Sum(lambda o, i: 0 if i is None else 1))


def three(i: Rel, o: Rel, c: Rel) -> Rel:
    two = o.join(c, on=lambda o, c: o.customer == c.id)
    return two.join(i, on=lambda o, c, i: i.order == o.id)


def circle(i: Rel, o: Rel, c: Rel) -> Rel:
    closed = three(i, o, c).where(lambda o, c, i: c.nation == i.part)
    return closed.group_by(lambda o, c, i: c.nation).aggregate(Sum(lambda o, c, i: i.price))


def circle_listed(i: Rel, o: Rel, c: Rel) -> Rel:
    return three(i, o, c).where(lambda o, c, i: c.nation == i.part)


def with_errors(i: Rel, o: Rel, c: Rel) -> Rel:
    return i.join(o, on=lambda i, o: i.price == 1 and i.order + 0 == o.id)


def with_itself(i: Rel, o: Rel, c: Rel) -> Rel:
    return o.join(o, on=lambda o, p: o.customer == p.id)


def both_have_it(i: Rel, o: Rel, c: Rel) -> Rel:
    return i.semi_join(o, on=lambda i, o: i.order == o.id)


QUERIES: list[Callable[[Rel, Rel, Rel], Rel]] = [
    listed,
    listed_from_the_other_side,
    grouped,
    all_rows_of_the_left,
    counted_with_none,
    three,
    circle,
    circle_listed,
    with_errors,
    with_itself,
    both_have_it,
]
KEYS = st.sampled_from([0, 1, 2, 1.0, None, "a", NAN])
NUMBERS = st.integers(0, 2)


def rows(keys: st.SearchStrategy[Any]) -> list[st.SearchStrategy[Any]]:
    return [
        st.builds(Item, keys, keys, NUMBERS),
        st.builds(Order, keys, keys),
        st.builds(Customer, keys, keys),
    ]


STATEMENT = st.sampled_from([0, 1, 2]).flatmap(
    lambda table: st.tuples(
        st.just(table),
        st.sampled_from(["add", "add", "remove"]),
        st.lists(rows(KEYS)[table], min_size=1, max_size=4),
    )
)
COMMIT = st.tuples(st.lists(STATEMENT, min_size=1, max_size=3), st.booleans())


class Failed(Exception):
    """Exception that aborts a transaction."""


def tables(db: Database) -> tuple[Any, Any, Any]:
    return db.table(Item, name="i"), db.table(Order, name="o"), db.table(Customer, name="c")


def do(table: Any, verb: str, given: list[Any]) -> None:
    if verb == "add":
        table.add_all(given)
        return
    for row in given:
        table.discard(row)


@pytest.mark.long
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.__name__)
@examples(40)
@given(st.lists(COMMIT, max_size=8), st.integers(0, 8), st.booleans())
def test_views_are_their_queries_whichever_side_changes_first(
    query: Callable[..., Rel], commits: list[Any], late: int, optimize: bool
) -> None:
    db = Database(optimize=optimize)
    all_tables = tables(db)
    views = [query(*all_tables).materialize()] if late else []
    for number, (statements, fails) in enumerate(commits):
        if number == late:
            views.append(query(*all_tables).materialize())
        with suppress(Failed, TypeError), db.transaction():
            for place, verb, given in statements:
                do(all_tables[place], verb, given)
            if fails:
                raise Failed
        for view in views:
            view.verify()


@pytest.mark.parametrize("query", [listed, grouped, circle, circle_listed, counted_with_none])
def test_a_commit_that_fails_after_an_index_was_made_leaves_all_as_it_was(
    query: Callable[..., Rel],
) -> None:
    db = Database()
    items, orders, customers = tables(db)
    view = query(items, orders, customers).materialize()
    customers.add_all([Customer(0, 0), Customer(1, 1)])
    items.add_all([Item(n % 5, n % 2, n) for n in range(40)])
    picky = orders.select(lambda o: 1 // (o.customer - 7)).materialize()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), db.transaction():
            orders.add_all([Order(0, 0), Order(1, 7)])
            items.remove(Item(0, 0, 0))
            items.add(Item(1, 1, 100))
        view.verify()
        picky.verify()
        orders.add(Order(0, 0))
        view.verify()
    items.remove(Item(0, 0, 0))
    view.verify()


def indexes(view: Any) -> dict[str, int]:
    """Return the number of rows in each index below a view, by the text of the index."""
    lines = str(view.explain(analyze=True)).splitlines()
    found = [line.strip().partition("  [") for line in lines if "index by" in line]
    return {name: int(rest.split()[0].replace(",", "")) for name, _, rest in found}


def test_an_index_that_nobody_looks_up_is_not_made() -> None:
    db = Database()
    items, orders, _ = tables(db)
    view = grouped_by_price(items, orders).materialize()
    orders.add_all([Order(n, n % 3) for n in range(10)])
    items.add_all([Item(n % 10, 0, n) for n in range(100)])
    items.add_all([Item(n % 10, 0, n) for n in range(100, 200)])
    items.remove(Item(0, 0, 0))
    assert indexes(view) == {"index by i.order": 0, "index by o.id": 10}
    orders.add(Order(11, 0))
    assert indexes(view) == {"index by i.order": 199, "index by o.id": 11}
    view.verify()


def grouped_by_price(items: Rel, orders: Rel) -> Rel:
    pairs = items.join(orders, on=lambda i, o: i.order == o.id)
    return pairs.select(lambda i, o: (i.price, o.customer))


def test_what_is_loaded_at_once_is_joined_by_the_larger_side() -> None:
    db = Database()
    items, orders, customers = tables(db)
    view = circle(items, orders, customers).materialize()
    with db.transaction():
        items.add_all([Item(n % 10, n % 3, n) for n in range(100)])
        orders.add_all([Order(n, n % 3) for n in range(10)])
        customers.add_all([Customer(n, n) for n in range(3)])
    view.verify()
    assert sorted(indexes(view).values())[-2:] == [3, 10] or 100 not in indexes(view).values()


def test_a_view_over_rows_that_are_there_makes_no_index_of_its_left() -> None:
    db = Database()
    items, orders, _ = tables(db)
    orders.add_all([Order(n, n % 3) for n in range(10)])
    items.add_all([Item(n % 10, 0, n) for n in range(100)])
    view = grouped_by_price(items, orders).materialize()
    assert indexes(view) == {"index by i.order": 0, "index by o.id": 10}
    assert len(view) == 100


def test_a_key_that_cannot_be_hashed_raises_though_no_index_is_made() -> None:
    names = IndexBy(lambda row: [row], table=lambda: [("anna", 1)])
    with pytest.raises(TypeError, match="unhashable"):
        names.step([("anna", 1)])
    assert not names.is_made


def test_an_index_that_could_not_be_made_is_made_by_the_next_who_asks() -> None:
    given: list[Pair] = [("anna", 1), ("otto", 1), ("eva", 1)]
    raises = True

    def rows_of_table() -> list[Pair]:
        if raises:
            raise KeyboardInterrupt
        return given

    names = IndexBy(len, table=rows_of_table)
    names.step(given)
    names.commit()
    with pytest.raises(KeyboardInterrupt):
        names.find(before=False)
    assert not names.is_made
    raises = False
    assert list(names.index.pairs(3)) == [("eva", 1)]
    assert names.is_made


def test_undoing_takes_back_what_an_index_was_made_with() -> None:
    given: list[Pair] = [("anna", 1)]
    names = IndexBy(len, table=lambda: list(given))
    names.step(list(given))
    names.commit()
    given.append(("otto", 1))
    names.step([("otto", 1)])
    assert list(names.index.pairs(4)) == [("anna", 1), ("otto", 1)]
    names.undo()
    assert list(names.index.pairs(4)) == [("anna", 1)]
