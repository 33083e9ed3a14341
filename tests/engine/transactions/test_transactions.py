"""A transaction is its statements and one commit: it costs little beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Sum
from reactive.engine.dataflow.schedule import LATEST
from tests.counted_calls import calls_of
from tests.thresholds import WAYS, thresholds

Row = tuple[int, int]
MOST = 34
"""Calls that a transaction of one statement may need beyond the statement."""


def tables(rows: int = 10) -> tuple[Database, Any, Any, Any]:
    """Two tables and a view of both, after all code that use generates is generated."""
    db = Database()
    a: Any = db.table(tuple, name="a")
    b: Any = db.table(tuple, name="b")
    joined = a.join(b, on=lambda x, y: x[0] == y[0])
    view = joined.group_by(lambda x, y: x[0]).aggregate(Sum(lambda x, y: y[1]), Count())
    live = view.materialize()
    a.add_all([(n, 0) for n in range(rows)])
    b.add_all([(n, n) for n in range(rows)])
    for _ in range(3 * LATEST):
        a.add((1, 1))
        a.remove((1, 1))
    with db.transaction():
        pass
    return db, a, b, live


@pytest.mark.parametrize("rows", [10, 1_000])
def test_a_transaction_of_a_statement_is_a_few_calls_more_than_the_statement(rows: int) -> None:
    db, a, _, _ = tables(rows)

    def statement() -> None:
        a.add((2, 2))

    def transaction() -> None:
        with db.transaction():
            a.add((3, 3))

    assert calls_of(transaction) <= calls_of(statement) + MOST


def test_each_further_statement_costs_less_than_one_by_itself() -> None:
    db, a, _, _ = tables()

    def of(many: int) -> Callable[[], None]:
        def transaction() -> None:
            with db.transaction():
                for number in range(many):
                    a.add((number, many))

        return transaction

    alone = calls_of(lambda: a.add((5, 5)))
    assert calls_of(of(12)) - calls_of(of(2)) <= 10 * alone


def test_commits_of_two_tables_become_one_function_when_they_are_in_use() -> None:
    db, a, b, view = tables()

    def change() -> None:
        with db.transaction():
            a.add((4, 4))
            b.add((4, 4))
        with db.transaction():
            b.remove((4, 4))
            a.remove((4, 4))

    first = calls_of(change)
    for _ in range(LATEST):
        change()
    assert calls_of(change) < 0.75 * first
    view.verify()


changes = st.lists(
    st.tuples(st.sampled_from("ab"), st.booleans(), st.integers(0, 2), st.integers(-1, 2)),
    max_size=6,
)


@pytest.mark.long
@pytest.mark.parametrize("ways", sorted(WAYS))
@given(transactions=st.lists(changes, max_size=8))
def test_transactions_of_two_tables_equal_a_counter_whatever_comes_and_goes_again(
    ways: str, transactions: list[list[tuple[str, bool, int, int]]]
) -> None:
    with thresholds(WAYS[ways]):
        _equal_a_counter(transactions)


def _equal_a_counter(transactions: list[list[tuple[str, bool, int, int]]]) -> None:
    db = Database()
    held: dict[str, Counter[Row]] = {"a": Counter(), "b": Counter()}
    both: dict[str, Any] = {name: db.table(tuple, name=name) for name in held}
    a, b = both["a"], both["b"]
    view = a.join(b, on=lambda x, y: x[0] == y[0]).select(lambda x, y: 6 // (x[1] + 1) + y[1])
    live = view.materialize()
    heard: Counter[int] = Counter()
    hearing = live.subscribe(lambda delta: heard.update(dict(delta.items())))
    for statements in transactions:
        before = {name: rows.copy() for name, rows in held.items()}
        try:
            with db.transaction():
                for name, adds, key, value in statements:
                    row = (key, value)
                    if adds:
                        both[name].add(row)
                        held[name][row] += 1
                    elif held[name][row]:
                        both[name].remove(row)
                        held[name][row] -= 1
        except ZeroDivisionError:
            held = before
        for name, table in both.items():
            assert Counter(table) == +held[name]
        live.verify()
        assert +heard == Counter(dict(live.zset().items()))
    hearing.close()


@pytest.mark.parametrize("tables", [1, 2])
def test_what_a_commit_in_use_raises_says_in_which_query_and_on_which_row(tables: int) -> None:
    db = Database()
    a, b = db.table(int, name="a"), db.table(int, name="b")
    view = a.order_by(lambda n: 1 // (9 - n)).limit(3).materialize("ranked")
    assert view is not None

    def change(n: int) -> None:
        with db.transaction():
            a.add(n)
            if tables == 2:
                b.add(n)

    for _ in range(4 * LATEST):
        change(1)
    with pytest.raises(ZeroDivisionError) as caught:
        change(9)
    note = "".join(caught.value.__notes__)
    assert "view 'ranked'" in note
    assert "on row 9" in note
    assert (9 in a, 9 in b) == (False, False)


@pytest.mark.parametrize("removes", ["remove", "remove_all", "discard", "clear", "replace_all"])
def test_a_row_that_comes_again_in_a_transaction_is_the_object_that_it_was(removes: str) -> None:
    db = Database()
    table: Any = db.table(tuple)
    row: tuple[int, ...] = tuple(range(2))
    again: tuple[int, ...] = tuple(range(2))
    table.add(row)
    with db.transaction():
        if removes == "clear":
            table.clear()
        elif removes == "replace_all":
            table.replace_all([])
        else:
            getattr(table, removes)([again] if removes == "remove_all" else again)
        table.add((0, 0))
        table.add(again)
    assert next(kept for kept in table if kept == row) is row


def test_another_thread_may_end_a_transaction_that_it_is_handed() -> None:
    db, a, _, view = tables()
    transaction = db.transaction()
    transaction.__enter__()
    a.add((7, 7))
    thread = Thread(target=transaction.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    assert (db._engine.pending, db._engine.db_lock.owner, (7, 7) in a) == (None, None, True)
    view.verify()
