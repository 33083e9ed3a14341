"""Rows, keys and readings that a table refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from reactive import Database, Table
from tests.errors.golden import place, refused


@dataclass(frozen=True)
class Order:
    id: int
    tags: Any = ()


class Line(NamedTuple):
    order: int
    tags: Any


@dataclass
class Mutable:
    id: int


def orders(**options: Any) -> Table[Any]:
    return Database().table(Order, name="orders", **options)


def test_a_row_of_another_type_is_refused() -> None:
    table = orders()
    with refused(
        """
        TableError: table 'orders' takes rows of Order, not the str 'Order 7'
        """
    ):
        table.add("Order 7")


def test_a_class_instead_of_a_row_is_refused() -> None:
    table = orders()
    with refused(
        """
        TableError: table 'orders' takes rows of Order, not the type <class 'tests.errors.\
test_table_errors.Order'>
        """
    ):
        table.add(Order)


def test_a_list_of_rows_instead_of_a_row_is_refused() -> None:
    table = orders()
    with refused(
        """
        TableError: table 'orders' takes rows of Order, not the list [Order(id=1, tags=())]
          add_all(rows) takes several
        """
    ):
        table.add([Order(1)])


def test_parts_of_a_row_instead_of_a_row_are_refused() -> None:
    table = orders()
    with refused(
        """
        TableError: table 'orders' takes rows of Order, not the tuple (1, ())
          Order(*row) makes one
        """
    ):
        table.add((1, ()))
    with refused(
        """
        TableError: table 'orders' takes rows of Order, not the dict {'id': 1}
          Order(**row) makes one
        """
    ):
        table.add({"id": 1})


def test_an_unhashable_field_of_a_dataclass_is_named() -> None:
    table = orders()
    with refused(
        """
        TableError: table 'orders' cannot take Order(id=7, tags=['new']): its field 'tags' is a list
          rows are found by hash; use a frozen dataclass, tuples and frozensets
        """
    ):
        table.add(Order(7, ["new"]))


def test_an_unhashable_part_of_a_field_is_named() -> None:
    table = orders()
    with refused(
        """
        TableError: table 'orders' cannot take Order(id=7, tags=('new', {})): its field 'tags' \
is a tuple: its element 1 is a dict
          rows are found by hash; use a frozen dataclass, tuples and frozensets
        """
    ):
        table.add(Order(7, ("new", {})))


def test_an_unhashable_field_of_a_named_tuple_is_named() -> None:
    table = Database().table(Line, name="lines")
    with refused(
        """
        TableError: table 'lines' cannot take Line(order=7, tags=set()): its field 'tags' is a set
          rows are found by hash; use a frozen dataclass, tuples and frozensets
        """
    ):
        table.add(Line(7, set()))


def test_a_dataclass_that_is_not_frozen_is_named() -> None:
    with refused(
        """
        PlanError: rows of Mutable have no hash, so that no table can find them
          make Mutable a @dataclass(frozen=True)
        """
    ):
        Database().table(Mutable, name="mutables")
    table = Database().table(object, name="mutables")
    with refused(
        """
        TableError: table 'mutables' cannot take Mutable(id=7): a Mutable is not hashable; \
make it @dataclass(frozen=True)
          rows are found by hash; use a frozen dataclass, tuples and frozensets
        """
    ):
        table.add(Mutable(7))


def test_an_unhashable_row_of_a_table_of_anything_is_named() -> None:
    table = Database().table(object, name="things")
    with refused(
        """
        TableError: table 'things' cannot take [7]: a list is not hashable
          rows are found by hash; use a frozen dataclass, tuples and frozensets
        """
    ):
        table.add([7])


def test_removing_an_absent_row_is_refused() -> None:
    table = orders()
    table.add_all([Order(1), Order(2), Order(3)])
    with refused(
        """
        TableError: cannot remove Order(id=7, tags=()) from table 'orders': it is not there
          the table holds 3 rows; discard() removes only what is present
        """
    ):
        table.remove(Order(7))


def test_removing_more_copies_than_there_are_is_refused() -> None:
    table = orders()
    table.add(Order(1), 2)
    with refused(
        """
        TableError: cannot remove Order(id=1, tags=()) from table 'orders': it is there 2 times, \
not 3
          the table holds 2 rows; discard() removes only what is present
        """
    ):
        table.remove(Order(1), 3)


def test_updating_an_absent_row_is_refused() -> None:
    table = orders()
    with refused(
        """
        TableError: cannot remove Order(id=1, tags=()) from table 'orders': it is not there
          the table holds 0 rows; discard() removes only what is present
        """
    ):
        table.update(Order(1), Order(2))


@pytest.mark.parametrize("count", [0, -1, 1.5, "2"])
def test_a_count_that_is_no_count_is_refused(count: Any) -> None:
    table = orders()
    with refused(
        f"""
        TableError: a count of copies is an integer from 1 on, not {count!r}
        """
    ):
        table.add(Order(1), count)


def test_a_duplicate_key_is_refused_and_both_rows_shown() -> None:
    table = orders(key="id")
    table.add(Order(7, "new"))
    with refused(
        """
        TableError: cannot add Order(id=7, tags='paid') to table 'orders': its key is taken by \
Order(id=7, tags='new')
          upsert() puts a row in the place of the one with its key
        """
    ):
        table.add(Order(7, "paid"))
    assert list(table) == [Order(7, "new")]


def test_two_copies_of_a_row_of_a_keyed_table_are_refused_for_what_they_are() -> None:
    """The key is free; it is the count that a keyed table cannot take."""
    table = orders(key="id")
    with pytest.raises(Exception) as caught:
        table.add(Order(7), 2)
    assert "its key is taken by" not in str(caught.value)


def test_a_key_that_no_row_has_is_named() -> None:
    table = orders(key="id")
    text = """
        MissingKeyError: table 'orders' has no row with key 7
          the table holds 0 rows
        """
    with refused(text):
        table[7]
    with refused(text):
        table.delete(7)


def test_a_key_that_is_nan_is_refused() -> None:
    table = Database().table(float, name="numbers", key=lambda n: n)
    with refused(
        """
        TableError: the key of nan is NaN
          table 'numbers' could never find it: NaN equals no key, not even itself
        """
    ):
        table.add(float("nan"))


def test_a_key_field_that_does_not_exist_is_named_beside_those_that_do() -> None:
    with refused(
        """
        PlanError: key 'number' of table: Order has no such field
          it has id, tags
        """
    ):
        orders(key="number")


def test_an_exception_of_the_key_says_which_table_and_row() -> None:
    def key(order: Order) -> int:
        return 1 // order.id

    table = orders(key=key)
    with refused(
        """
        ZeroDivisionError: integer division or modulo by zero
          in the key of table 'orders' (<key>), on row Order(id=0, tags=())
        """,
        key=place(key),
    ):
        table.add(Order(0))
    assert len(table) == 0


def test_an_unhashable_key_is_refused_with_table_and_row() -> None:
    table = orders(key=lambda order: [order.id])
    with pytest.raises(Exception) as caught:
        table.add(Order(1))
    assert "orders" in str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))


@pytest.mark.parametrize("method", ["upsert", "upsert_all", "delete", "get"])
def test_a_method_of_keyed_tables_is_refused_by_others(method: str) -> None:
    table = orders()
    with refused(
        f"""
        TableError: {method} of table 'orders', which has no key
          make it with db.table(..., key=...)
        """
    ):
        getattr(table, method)([Order(1)])


def test_subscripting_a_table_without_a_key_is_refused() -> None:
    table = orders()
    with refused(
        """
        TableError: table[key] of table 'orders', which has no key
          make it with db.table(..., key=...)
        """
    ):
        table[0]


READINGS: dict[str, Any] = {
    "len": len,
    "iteration": list,
    "count": lambda table: table.count(Order(1)),
    "items": lambda table: table.items(),
    "discard": lambda table: table.discard(Order(1)),
    "replace_all": lambda table: table.replace_all([]),
}


@pytest.mark.parametrize("what", READINGS)
def test_reading_a_table_that_is_not_stored_is_refused(what: str) -> None:
    table = orders(stored=False)
    with refused(
        f"""
        TableError: {what} of table 'orders': its rows are not stored
          make the table with stored=True, or materialize a view before rows flow
        """
    ):
        READINGS[what](table)


def test_a_late_view_on_a_table_that_is_not_stored_is_refused() -> None:
    table = orders(stored=False)
    table.add(Order(1))
    with refused(
        """
        TableError: table 'orders' is not stored, and rows have flowed already
          nobody holds what became of them in: table orders (not stored)
          query a view that was there before (view.relation), or make the table with stored=True
        """
    ):
        table.materialize()


def test_a_keyed_table_that_is_not_stored_is_refused() -> None:
    with refused(
        """
        PlanError: a keyed table must be stored: its keys are what it is asked for
        """
    ):
        orders(key="id", stored=False)


def test_two_tables_of_one_name_are_refused() -> None:
    db = Database()
    db.table(Order, name="orders")
    with refused(
        """
        PlanError: there is a table 'orders' already
          give this one another name; with replace=True it takes the place of that one
        """
    ):
        db.table(Order, name="orders")


def test_adding_a_relation_to_a_table_is_refused() -> None:
    table = orders()
    relation: Any = table.where(lambda order: order.id > 1)
    with refused(
        """
        TableError: += adds one row, not a relation
          add_all(view) copies the rows of a view
        """
    ):
        table += relation
    with refused(
        """
        TableError: -= removes one row, not a relation
          add_all(view) copies the rows of a view
        """
    ):
        table -= relation


def test_adding_all_of_a_relation_is_refused() -> None:
    table = orders()
    relation: Any = table.where(lambda order: order.id > 1)
    with refused(
        """
        PlanError: a relation is a query and has no rows to iterate over
          materialize() it first; the view has them
        """
    ):
        table.add_all(relation)
