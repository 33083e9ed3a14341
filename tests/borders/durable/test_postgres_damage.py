"""A damaged schema of Postgres is opened with an error that names the table and the row.

There is never another exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg2
import pytest

from reactive import Batch, Database, DurabilityError, ReactiveError
from tests.borders.durable.test_damage import ROW, Wide, made
from tests.budget import share_of
from tests.postgres_server import PostgresServer

NOT_WRITTEN: dict[str, tuple[Any, ...]] = {
    "text": (
        *(None, "", "x", "1", "null", "{}", "[", "[]", '"x"', "i", "ix", "bz", "nothing", "f1e999"),
        *("s\udcff".encode("utf-8", "replace").decode(), '{"0": "i1"}', '{"9": "i1"}', '{"x": 1}'),
        *('{"columns": [], "key": "id", "about": ""}', '{"columns": [[1]], "key": 1, "about": 2}'),
    ),
    "bigint": (None, 0, -1, 2**40),
    "integer": (None, 0, -1),
    "double precision": (None, 0.0, -1e300, float("nan"), float("inf")),
    "bytea": (None, b"", b"x"),
    "ARRAY": (None, [], ["x"], [None, "x"], ["x"] * 9),
}


@pytest.fixture(scope="module")
def whole(postgres: PostgresServer) -> str:
    """The name of a database with a schema that is not damaged."""
    name = postgres.new_database().rpartition("=")[2]
    url: Any = postgres.url(name)
    made(url)
    with Database(url, keep=10) as db:
        db.table(Wide, key="id", name="wide").add(ROW)
        words = db.table(tuple, name="words")
        words.add(("to",), 2)
        words.add(("be",))
        db.ingest(None, words, name="words").take(Batch([("or",)], token=1))
    made(url)
    return name


def _columns(postgres: PostgresServer, name: str) -> Iterator[tuple[str, str, Any]]:
    found = postgres.execute(
        postgres.dsn(name),
        "select table_name, column_name, data_type from information_schema.columns "
        "where table_schema = 'reactive' order by 1, 2",
    )
    for table, column, kind in found:
        for value in NOT_WRITTEN[kind]:
            yield table, column, value


def test_damage_is_told(postgres: PostgresServer, whole: str) -> None:
    every = list(_columns(postgres, whole))
    assert len(every) > 200
    told = 0
    for table, column, value in share_of(every, "damage in Postgres", 40):
        copy = _copy(postgres, whole)
        try:
            _damage(postgres.dsn(copy), table, column, value)
        except psycopg2.Error:  # a key that is no key
            continue
        url: Any = postgres.url(copy)
        try:
            made(url)
        except ReactiveError as error:
            told += 1
            assert isinstance(error, DurabilityError) or "\n" in str(error)
            if table in ("state", "tables") and "damaged" in str(error):
                assert repr(table) in str(error)
        except BaseException as error:
            error.add_note(f"{table}.{column} = {value!r:.50}")
            raise
    assert told > 5


def _copy(postgres: PostgresServer, whole: str) -> str:
    """Make a copy of a database, in the place of the last one; return its name."""
    name = f"{whole}_copy"
    postgres.execute(postgres.dsn(), f"drop database if exists {name}")
    postgres.execute(postgres.dsn(), f"create database {name} template {whole}")
    return name


def _damage(dsn: str, table: str, column: str, value: Any) -> None:
    connection = psycopg2.connect(dsn)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(f'update reactive."{table}" set "{column}" = %s', (value,))
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("update reactive.tables set text = '{}' where name = '\"wide\"'", "'tables'.*wide"),
        ("update reactive.tables set columns = '{}'", "'tables'.*wide"),
        ("update reactive.state set value = 'x' where name = 'version'", "'state'.*version.*x"),
        ("update reactive.wide set colour = 'x'", "'wide'.*x.*damaged"),
        ("update reactive.words set _count = 0 where _count = 2", "'words'.*0.*damaged"),
        ("update reactive.reactive_changes set row = '{'", "'reactive_changes'.*damaged"),
    ],
)
def test_the_table_and_the_row_are_named(
    postgres: PostgresServer, whole: str, statement: str, named: str
) -> None:
    copy = _copy(postgres, whole)
    postgres.execute(postgres.dsn(copy), statement)
    url: Any = postgres.url(copy)
    with pytest.raises(DurabilityError, match=f"cannot read table {named}"):
        made(url)
