"""Transactions that read an older state than the mirror shows: omitted and refused rows.

The tests simulate the rules of Postgres; `tests/borders/mirrors` has been run by hand with a real
Postgres.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from reactive import TransactionError
from reactive.borders.mirrors.touching.touched_rows import (
    TouchedRows,
    commit_over,
    reads_one_state,
    without_old,
)


class Named:
    name = "orders"


TABLE: Any = Named()


def connection(dialect: str = "postgresql", level: str = "REPEATABLE READ") -> Any:
    return SimpleNamespace(
        dialect=SimpleNamespace(name=dialect),
        default_isolation_level="READ COMMITTED",
        get_execution_options=lambda: {"isolation_level": level},
    )


def transaction(dialect: str = "postgresql", *, has_state: bool = True) -> TouchedRows:
    made = TouchedRows(connection(dialect))
    made.is_begun, made.has_state = True, has_state
    return made


def commit(other: TouchedRows, during: Any = lambda: None) -> None:
    commit_over(lambda: [other], {TABLE: [3]}, during)


def test_levels_that_read_one_state_are_known() -> None:
    assert reads_one_state(connection())
    assert reads_one_state(connection(level="serializable"))
    assert not reads_one_state(connection(level="READ COMMITTED"))
    assert not reads_one_state(connection("sqlite", "SERIALIZABLE"))


def test_an_old_row_is_left_out() -> None:
    other = transaction()
    commit(other)
    rows, asked = without_old(other, TABLE, {3: "old", 4: "own"}, [3, 4, 5], {3: "new"})
    assert (rows, asked) == ({4: "own"}, [4, 5])


@pytest.mark.parametrize("dialect", ["postgresql", "mysql"])
def test_a_row_of_which_nobody_knows_is_refused_if_it_differs(dialect: str) -> None:
    other = transaction(dialect, has_state=dialect == "mysql")
    commit(other)
    assert without_old(other, TABLE, {3: "same"}, [3], {3: "same"}) == ({3: "same"}, [3])
    assert without_old(other, TABLE, {}, [3], {}) == ({}, [3])
    for rows, held in (({3: "old"}, {3: "new"}), ({}, {3: "new"}), ({3: "old"}, {})):
        with pytest.raises(TransactionError, match="row 3 of table 'orders'"):
            without_old(other, TABLE, rows, [3], held)


def test_who_begins_afterwards_or_has_ended_is_not_overtaken() -> None:
    late, over = TouchedRows(connection()), transaction()
    over.end()
    for other in (late, over):
        commit(other)
        assert not other.overtaken
        assert not other.doubtful


def test_who_begins_during_a_commit_is_in_doubt() -> None:
    other = transaction(has_state=False)

    def during() -> None:
        other.has_state = True

    commit(other, during)
    assert other.doubtful == {TABLE: {3}}


def test_a_commit_that_is_refused_overtakes_nobody() -> None:
    other = transaction()

    def refused() -> None:
        raise OSError

    with pytest.raises(OSError):
        commit(other, refused)
    assert not other.overtaken
