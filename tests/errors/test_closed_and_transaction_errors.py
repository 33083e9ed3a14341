"""Uses at a time when there can be none: after the end, inside a commit, beside a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from reactive import Count, Database, OrderedView, Table, View
from tests.errors.golden import here, refused


def numbers(**options: Any) -> tuple[Database, Table[int]]:
    db = Database(**options)
    return db, db.table(int, name="numbers")


USES: dict[str, Callable[[Database, Table[int]], object]] = {
    "add": lambda db, table: table.add(1),
    "remove": lambda db, table: table.remove(1),
    "clear": lambda db, table: table.clear(),
    "table": lambda db, table: db.table(str),
    "transaction": lambda db, table: db.transaction().__enter__(),
    "materialize": lambda db, table: table.materialize(),
    "subscribe": lambda db, table: table.subscribe(print),
}


@pytest.mark.parametrize("use", USES)
def test_a_closed_database_is_of_no_use(use: str) -> None:
    db, table = numbers()
    db.close()
    with refused(
        """
        ClosedError: the database is closed
          make another one
        """
    ):
        USES[use](db, table)
    db.close()


def test_a_closed_database_enters_no_asynchronous_transaction() -> None:
    db, _ = numbers()
    db.close()

    async def main() -> None:
        async with db.transaction():
            raise AssertionError("inside")

    with refused(
        """
        ClosedError: the database is closed
          make another one
        """
    ):
        asyncio.run(main())


VIEW_USES: dict[str, Callable[[Any], object]] = {
    "len": len,
    "list": list,
    "in": lambda view: 1 in view,
    "count": lambda view: view.count(1),
    "items": lambda view: view.items(),
    "value": lambda view: view.value,
    "snapshot": lambda view: view.snapshot(),
    "verify": lambda view: view.verify(),
    "stats": lambda view: view.stats(),
    "explain": lambda view: view.explain(),
    "subscribe": lambda view: view.subscribe(print),
    "observe": lambda view: view.observe(Watch()),
    "changes": lambda view: view.changes(),
}


class Watch:
    def added(self, row: int) -> None: ...


@pytest.mark.parametrize("use", VIEW_USES)
@pytest.mark.parametrize("closed_by", ["view", "database"])
def test_a_closed_view_is_of_no_use(use: str, closed_by: str) -> None:
    db, table = numbers()
    view = table.materialize("all")
    (view if closed_by == "view" else db).close()
    with refused(
        """
        ClosedError: view 'all' is closed
          materialize its .relation again
        """
    ):
        VIEW_USES[use](view)


def test_a_closed_view_without_a_name_is_known_by_its_line() -> None:
    _, table = numbers()
    view, line = table.materialize(), here()
    view.close()
    with refused(
        """
        ClosedError: the view made at <line> is closed
          materialize its .relation again
        """,
        line=line,
    ):
        list(view)


def test_closed_views_of_other_kinds_are_of_no_use_either() -> None:
    _, table = numbers()
    text = """
        ClosedError: view 'it' is closed
          materialize its .relation again
        """
    grouped: Any = table.group_by(abs).aggregate(Count()).materialize("it")
    in_order: OrderedView[int] = table.order_by(abs).materialize("it")
    for view in (grouped, in_order):
        view.close()
        with refused(text):
            view[0]
    with refused(text):
        grouped.get(0)
    with refused(text):
        grouped.keys()


def test_a_database_cannot_be_closed_inside_a_transaction() -> None:
    db, table = numbers()
    with db.transaction():
        table.add(1)
        with refused(
            """
            TransactionError: a database cannot be closed inside a transaction
              close it after the `with` block
            """
        ):
            db.close()
    assert list(table) == [1]


def test_a_transaction_with_a_failed_one_in_it_is_rolled_back() -> None:
    db, table = numbers()
    view: View[int] = table.materialize()
    with (
        refused(
            """
            TransactionError: the transaction was rolled back: one nested in it had failed
              let the inner exception pass, or do not nest what may fail
            """
        ),
        db.transaction(),
    ):
        table.add(1)
        with pytest.raises(KeyError), db.transaction():
            table.add(2)
            raise KeyError("inner")
        table.add(3)
    assert (list(table), list(view), db.version) == ([], [], 0)


def test_a_callable_of_a_query_cannot_change_tables() -> None:
    db, table = numbers()
    log = db.table(int, name="log")

    class Logs:
        def __call__(self, row: int) -> bool:
            log.add(row)
            return True

    view = table.where(Logs()).materialize("logged")
    with refused(
        """
        TransactionError: a callable of a query cannot change tables or make views
          subscribe to the view, and make the change in the subscriber
        """
    ):
        table.add(1)
    assert (list(table), list(view), list(log)) == ([], [], [])


def test_a_callable_of_a_query_cannot_make_views_or_transactions() -> None:
    db, table = numbers()

    class Makes:
        def __init__(self, make: Callable[[], object]) -> None:
            self.make = make

        def __call__(self, row: int) -> bool:
            self.make()
            return True

    makers: tuple[Callable[[], object], ...] = (
        lambda: table.materialize(),
        lambda: db.table(str),
        lambda: db.transaction().__enter__(),
        lambda: table.subscribe(print),
    )
    for make in makers:
        with table.where(Makes(make)).materialize("makes"):
            with pytest.raises(Exception) as caught:
                table.add(1)
            assert str(caught.value).startswith("a callable of a query cannot change tables or")
    assert list(table) == []
    table.add(1)


def test_another_task_in_a_transaction_keeps_its_tables() -> None:
    db, table = numbers()

    async def main() -> None:
        inside, done = asyncio.Event(), asyncio.Event()

        async def other() -> None:
            async with db.transaction():
                inside.set()
                await done.wait()

        task = asyncio.create_task(other())
        await inside.wait()
        try:
            with refused(
                """
                TransactionError: another task of this event loop has a transaction open
                  use `async with db.transaction()`, which waits for it to end
                """
            ):
                db.drop(table)
        finally:
            done.set()
            await task

    asyncio.run(main())


def test_a_value_of_a_view_with_other_than_one_row_is_refused() -> None:
    _, table = numbers()
    view = table.materialize("all")
    with refused(
        """
        LookupError: view 'all' has 0 rows, not one value
        """
    ):
        assert view.value
    table.add_all([1, 2])
    with refused(
        """
        LookupError: view 'all' has 2 rows, not one value
        """
    ):
        assert view.value


def test_a_position_outside_an_ordered_view_is_refused() -> None:
    _, table = numbers()
    view = table.order_by(abs).limit(2).materialize()
    table.add_all([1, 2, 3])
    with refused(
        """
        IndexError: position 2 of an ordered view of 2 rows
        """
    ):
        view[2]
