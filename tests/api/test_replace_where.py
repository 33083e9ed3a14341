"""`replace_where`: replace the rows of a condition; only the difference is a change."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, Delta, Sum, Table, TableError
from reactive.engine.transactions.transaction import Transaction
from tests.budget import examples
from tests.errors.golden import place, refused

ROWS = st.tuples(st.integers(0, 3), st.integers(0, 3))


@dataclass(frozen=True, slots=True)
class Price:
    shop: str
    item: str
    cents: int


def prices(key: Any = None) -> Table[Price]:
    table = Database().table(Price, name="prices", key=key)
    table.add_all([Price("a", "tea", 3), Price("a", "milk", 1), Price("b", "tea", 4)])
    return table


@examples(200)
@given(
    before=st.lists(ROWS, max_size=8),
    shop=st.integers(0, 3),
    after=st.lists(ROWS, max_size=8),
    inside=st.booleans(),
)
def test_it_is_the_removal_of_some_rows_and_the_addition_of_others(
    before: Any, shop: int, after: Any, inside: bool
) -> None:
    db = Database()
    table = db.table(tuple)
    view = table.group_by(lambda r: r[0]).aggregate(Sum(lambda r: r[1])).materialize()
    table.add_all(before)
    new = [(shop, value) for _, value in after]
    heard: list[Delta[Any]] = []
    with table.subscribe(heard.append):
        if inside:
            with db.transaction():
                table.replace_where(lambda r: r[0] == shop, new)
        else:
            table.replace_where(lambda r: r[0] == shop, new)
    kept = [row for row in before if row[0] != shop]
    assert Counter(table) == Counter([*kept, *new])
    view.verify()
    difference = Counter(new)
    difference.subtract(Counter(row for row in before if row[0] == shop))
    told = Counter(dict(heard[0].items())) if heard else Counter()
    assert told == Counter({row: n for row, n in difference.items() if n})
    assert len(heard) <= 1


def test_only_the_difference_is_a_change() -> None:
    table = prices()
    heard: list[Delta[Price]] = []
    with table.subscribe(heard.append):
        table.replace_where(lambda p: p.shop == "a", [Price("a", "tea", 3), Price("a", "milk", 2)])
        table.replace_where(lambda p: p.shop == "a", (p for p in table if p.shop == "a"))
        table.replace_where(lambda p: p.shop == "z", [])
    (delta,) = heard
    assert (delta.removed, delta.added) == (
        (Price("a", "milk", 1),),
        (Price("a", "milk", 2),),
    )


def test_a_keyed_table_tells_updates() -> None:
    table = prices(key=lambda p: (p.shop, p.item))
    heard: list[Delta[Price]] = []
    with table.subscribe(heard.append):
        table.replace_where(lambda p: p.shop == "a", [Price("a", "tea", 5), Price("a", "rye", 7)])
    (delta,) = heard
    assert delta.updated == ((Price("a", "tea", 3), Price("a", "tea", 5)),)
    assert (delta.removed, delta.added) == ((Price("a", "milk", 1),), (Price("a", "rye", 7),))
    assert table["a", "tea"].cents == 5 and table.get(("a", "milk")) is None


def test_a_row_that_the_predicate_does_not_hold_for_is_refused() -> None:
    table = prices()

    def of_a(price: Price) -> bool:
        return price.shop == "a"

    with refused(
        """
        TableError: replace_where of table 'prices': Price(shop='b', item='rye', cents=1) \
is no row of which of_a (<of_a>) is true
          it would not be replaced the next time; add() it, or change the predicate
        """,
        of_a=place(of_a),
    ):
        table.replace_where(of_a, [Price("a", "tea", 9), Price("b", "rye", 1)])
    assert len(table) == 3


def test_a_key_that_another_row_has_is_refused() -> None:
    table = Database().table(Price, name="prices", key="item")
    table.add_all([Price("a", "tea", 3), Price("b", "rye", 4)])
    with pytest.raises(TableError, match="its key is taken by Price"):
        table.replace_where(lambda p: p.shop == "a", [Price("a", "milk", 1), Price("a", "rye", 1)])
    with pytest.raises(TableError, match="its key is taken by Price"):
        table.replace_where(lambda p: p.shop == "a", [Price("a", "x", 1), Price("a", "x", 2)])
    assert sorted(p.item for p in table) == ["rye", "tea"]
    assert table["tea"] == Price("a", "tea", 3)


def test_rows_of_another_class_and_what_is_no_predicate_are_refused() -> None:
    table: Any = prices()
    with pytest.raises(TableError, match="takes rows of Price, not the int 7"):
        table.replace_where(lambda p: True, [7])
    with pytest.raises(ValueError, match=r"replace_where takes a callable, row -> true or false"):
        table.replace_where("shop", [])
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'q'"):
        table.replace_where(lambda p, q: True, [])
    assert len(table) == 3


def test_a_predicate_that_raises_changes_nothing_and_is_named() -> None:
    table = prices()

    def broken(price: Price) -> bool:
        return 1 // (price.cents - 4) > 0

    with refused(
        """
        ZeroDivisionError: integer division or modulo by zero
          broken (<broken>) in replace_where of table 'prices', \
on row Price(shop='b', item='tea', cents=4)
          the table is unchanged
        """,
        broken=place(broken),
    ):
        table.replace_where(broken, [])
    assert len(table) == 3 and table._engine.version == 1


def test_a_predicate_cannot_change_tables() -> None:
    table = prices()

    def sly(price: Price) -> bool:
        table.clear()
        return True

    with pytest.raises(RuntimeError, match="cannot change tables"):
        table.replace_where(sly, [])
    assert len(table) == 3
    table.clear()
    assert len(table) == 0


def test_a_table_that_is_not_stored_is_refused() -> None:
    flowing = Database().table(int, name="flowing", stored=False)
    with pytest.raises(TableError, match="of table 'flowing': its rows are not stored"):
        flowing.replace_where(lambda n: True, [])


def test_inside_a_transaction_it_sees_the_changes_so_far() -> None:
    table = prices()
    view = table.materialize()
    with pytest.raises(KeyError), Transaction(table._engine):
        table.add(Price("a", "rye", 8))
        table.replace_where(lambda p: p.shop == "a", [Price("a", "rye", 9)])
        assert sorted(p.item for p in table) == ["rye", "tea"]
        raise KeyError
    assert len(table) == len(view) == 3
    with Transaction(table._engine):
        table.add(Price("a", "rye", 8))
        table.replace_where(lambda p: p.shop == "a", [Price("a", "rye", 8)])
    assert sorted(p.item for p in view) == ["rye", "tea"]


def test_a_predicate_is_asked_once_and_now_so_that_it_may_look_at_anything() -> None:
    db = Database()
    table = db.table(tuple, name="leases")
    gone = db.table(int, name="gone")
    table.add_all([(1, 0.0), (2, time.time() + 1000), (3, 0.0)])
    gone.add(3)
    late = gone.materialize()
    table.replace_where(lambda lease: lease[1] < time.time() and lease[0] not in late, [])
    assert sorted(lease[0] for lease in table) == [2, 3]
