"""Rows that are read again when a trigger tells their keys."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import date
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Database, NotifySource, PlanError, SourceError
from tests.postgres.history import SCHEMA, Account, History, Line, by_place
from tests.postgres.killing import ENDED
from tests.postgres_server import PostgresServer

PATIENCE = 30


def until(holds: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_tables_come_to_what_the_server_has(
    postgres: PostgresServer, database: str, seed: int
) -> None:
    postgres.execute(database, SCHEMA)
    db = Database()
    tables: dict[str, Any] = {
        "accounts": db.table(Account, key="id"),
        "lines": db.table(Line, key=by_place),
    }
    sources = [NotifySource(database, name, backoff=(0.02, 0.1)) for name in tables]
    random = Random(seed)
    history = History(database, random)
    history.connect()
    for _ in range(10):
        history.step()
    history.settle()
    for source in sources:
        for _ in range(2):
            postgres.execute(database, source.trigger_sql())
    readings = [db.ingest(source, tables[source.name]) for source in sources]
    for _ in range(3):
        for _ in range(25):
            history.step()
        postgres.execute(database, ENDED)
        for _ in range(25):
            history.step()
        wanted = history.settle()
        until(lambda wanted=wanted: Counter(tables["accounts"]) == wanted[Account])  # type: ignore[misc]
        until(lambda wanted=wanted: Counter(tables["lines"]) == wanted[Line])  # type: ignore[misc]
    history.close()
    for reading in readings:
        reading.stop()


class Page(NamedTuple):
    """A row with a key that may be long."""

    path: str
    size: int


def test_keys_that_are_too_long_to_be_told_keep_nobody_from_writing(
    postgres: PostgresServer, database: str
) -> None:
    postgres.execute(database, "create table pages (path text primary key, size int not null)")
    pages = (db := Database()).table(Page, key="path")
    source = NotifySource(database, "pages")
    postgres.execute(database, source.trigger_sql())
    with db.ingest(source, pages):
        postgres.execute(database, "insert into pages values (repeat('ab', 4500), 1)")
        until(lambda: [page.size for page in pages] == [1])
        postgres.execute(database, "delete from pages")
        until(lambda: not pages)


def test_only_the_rows_of_keys_that_were_told_are_read(
    postgres: PostgresServer, database: str
) -> None:
    postgres.execute(database, SCHEMA)
    postgres.execute(database, "insert into accounts values (1, 'a', 0, null), (2, 'b', 0, null)")
    db = Database()
    accounts = db.table(Account, key="id")
    source = NotifySource(database, "accounts")
    with db.ingest(source, accounts) as reading:
        until(lambda: "listening" in repr(source))
        postgres.execute(database, "update accounts set owner = 'x'")  # sends no notification
        postgres.execute(database, """notify accounts_changed, '["2"]'""")
        until(lambda: reading.batches == 2)
        assert [account.owner for account in sorted(accounts)] == ["a", "x"]
        assert reading.lag.seconds is not None


class Day(NamedTuple):
    """A row that some texts do not fit."""

    id: int
    day: date | None


def test_rows_that_cannot_be_made_are_left_out(postgres: PostgresServer, database: str) -> None:
    postgres.execute(database, "create table days (id int primary key, day date)")
    source = NotifySource(database, "days", backoff=(0.02, 0.1))
    postgres.execute(database, source.trigger_sql())
    postgres.execute(database, "insert into days values (1, 'infinity'), (2, '2026-01-01')")
    db = Database()
    days = db.table(Day, key="id")

    def left_out() -> list[str]:
        return sorted(error.row for error in reading.errors)

    with db.ingest(source, days, on_error="drop") as reading:
        until(lambda: left_out() == ["id=1, day='infinity'"])
        postgres.execute(database, "update days set day = 'infinity' where id = 2")
        until(lambda: left_out() == ["id=1, day='infinity'", "id=2, day='infinity'"])
        assert list(days) == []
        postgres.execute(database, "update days set day = null where id = 1")
        until(lambda: list(days) == [(1, None)])
        assert left_out() == ["id=2, day='infinity'"]
        postgres.execute(database, "delete from days where id = 2")
        until(lambda: left_out() == [])
        postgres.execute(database, "insert into days values (3, 'infinity')")
        until(lambda: left_out() == ["id=3, day='infinity'"])
        postgres.execute(database, "truncate days")
        until(lambda: not days and not left_out())


def test_what_cannot_be_told_is_refused(postgres: PostgresServer, database: str) -> None:
    postgres.execute(database, SCHEMA)
    with pytest.raises(SourceError, match="no primary key"):
        NotifySource(database, "notes").trigger_sql()
    with pytest.raises(SourceError, match="no table 'never'"):
        NotifySource(database, "never").trigger_sql()
    with pytest.raises(PlanError, match="one table with a key"):
        db = Database()
        db.ingest(NotifySource(database, "lines"), db.table(Line))
    with pytest.raises(PlanError, match="name of a table"):
        NotifySource(database, "")
