"""UUID columns against DuckDB and Postgres: made by SQL, and fields of Python rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import duckdb
import psycopg2
import psycopg2.extras
import pytest

from reactive import Database
from reactive.errors import PlanError, ReactiveError
from tests.postgres_server import PostgresServer

ONE = UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
TWO = UUID("00000000-0000-0000-0000-000000000007")
LAST = UUID("ffffffff-ffff-ffff-ffff-ffffffffffff")
ROWS = [(1, ONE, TWO), (2, TWO, None), (3, LAST, LAST), (4, ONE, ONE)]
SETUP = "create table t (id int primary key, u uuid not null, n uuid)"
FORMS = (
    str(ONE),
    str(ONE).upper(),
    f"{{{ONE}}}",
    ONE.hex,
    "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
)
WRONG = ("", "x", f" {ONE}", f"{{{ONE}", f"{ONE}}}", ONE.hex + "0", f"urn:uuid:{ONE}", "é" * 32)
QUERIES = [
    *(f"select id from t where u = '{form}'" for form in FORMS),
    *(f"select id, u {symbol} '{ONE}', n {symbol} u from t" for symbol in ("=", "<", ">=", "<>")),
    f"select id from t where u in ('{ONE}', '{LAST}')",
    f"select id from t where n not in ('{ONE}')",
    f"select id from t where u between '{TWO}' and '{ONE}'",
    "select id from t where u is not distinct from n",
    "select id, u::text, cast(n as text), u::text::uuid, upper(u::text) from t",
    "select u, count(*), count(n), count(distinct n) from t group by u",
    "select a.id, b.id from t a join t b on a.u = b.n",
    "select id, row_number() over (order by u, id), lag(n) over (order by id) from t",
    f"select id, coalesce(n, '{ONE}'), nullif(u, '{ONE}'), greatest(u, n), least(u, n) from t",
    f"select id, case when id = 1 then u else '{LAST}' end from t",
    "select u from t union select n from t",
    "select u from t except select n from t",
    "select id, u || '!' from t",
    f"select '{ONE}'::uuid, cast('{ONE.hex}' as uuid)",
    "select id, (select max(b.id) from t b where b.u = a.n) from t a",
]
REFUSED = ["u::int", "id::uuid", "u = id", "lower(u)", "u::date", "u + 1"]


def view(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows), key=repr)


def literal(value: Any) -> str:
    return "NULL" if value is None else repr(str(value)) if isinstance(value, UUID) else str(value)


TUPLES = ", ".join(f"({', '.join(map(literal, row))})" for row in ROWS)
INSERT = f"insert into t values {TUPLES}"


@dataclass(frozen=True, slots=True)
class Row:
    id: int
    u: UUID
    n: UUID | None


def made_by_sql(dialect: Any) -> Database:
    db = Database(dialect=dialect)
    db.execute(SETUP)
    db.execute(INSERT)
    return db


def made_by_rows(dialect: Any) -> Database:
    db = Database(dialect=dialect)
    db.table(Row, key="id", name="t").add_all(Row(*row) for row in ROWS)
    return db


@pytest.fixture(scope="module")
def engines(postgres: PostgresServer) -> Any:
    connection = psycopg2.connect(postgres.new_database())
    connection.autocommit = True
    psycopg2.extras.register_uuid(conn_or_curs=connection)
    server, duck = connection.cursor(), duckdb.connect()
    for run in (server.execute, duck.execute):
        run(SETUP)
        run(INSERT)

    def of_postgres(text: str) -> Any:
        server.execute(text)
        return server.fetchall()

    yield {"postgres": of_postgres, "duckdb": lambda text: duck.execute(text).fetchall()}
    connection.close()


@pytest.mark.long
@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("made", [made_by_sql, made_by_rows])
def test_queries_are_what_the_engine_says(dialect: str, made: Any, engines: Any) -> None:
    db = made(dialect)
    for text in QUERIES:
        assert view(db.sql(text).materialize()) == view(engines[dialect](text)), text


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("text", WRONG)
def test_a_text_that_is_no_uuid_is_an_error_as_in_the_engine(
    dialect: str, text: str, engines: Any
) -> None:
    with pytest.raises((duckdb.Error, psycopg2.Error)):
        engines[dialect](f"select id from t where u = '{text}'")
    if dialect == "postgres":  # which reads the constant before any row
        with pytest.raises(PlanError, match="as UUID"):
            made_by_sql(dialect).sql(f"select id from t where u = '{text}'")
    else:
        shown = made_by_sql(dialect).sql(f"select id from t where u = '{text}'").materialize()
        assert list(shown) == []
        assert len(shown.errors) == len(ROWS)
    with pytest.raises(ReactiveError):
        made_by_sql(dialect).execute(f"insert into t values (9, '{text}', null)")


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("text", REFUSED)
def test_what_the_engine_refuses_is_refused(dialect: str, text: str, engines: Any) -> None:
    with pytest.raises((duckdb.Error, psycopg2.Error)):
        engines[dialect](f"select {text} from t")
    with pytest.raises(PlanError):
        made_by_sql(dialect).sql(f"select {text} from t")


def test_what_duckdb_alone_has(engines: Any) -> None:
    db = made_by_sql("duckdb")
    for text in (
        "select id, try_cast(u::text || n::text as uuid) from t",
        "select min(u), max(n), arg_max(id, u) from t where id < 4",
        "select id, typeof(u), u::blob from t",
        f"select ['{ONE.hex}'::uuid, '{TWO}'] as l",
        "select list(u order by u) from t",
    ):
        found = [tuple(map(_frozen, row)) for row in engines["duckdb"](text)]
        assert view(db.sql(text).materialize()) == view(found), text


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_statements_find_and_keep_uuids(dialect: str) -> None:
    db = made_by_sql(dialect)
    assert db.execute(f"update t set n = '{ONE.hex}' where u = '{LAST}'") == 1
    assert db.execute("delete from t where u = :u", u=TWO) == 1
    assert db.execute("insert into t select id + 10, n, u from t where n is not null") == 3
    (table,) = db.tables()
    assert {(row.u, row.n) for row in table} == {
        *((ONE, TWO), (LAST, ONE), (ONE, ONE)),
        *((TWO, ONE), (ONE, LAST)),
    }
    db.execute("create table k (u uuid primary key)")
    db.execute(f"insert into k values ('{ONE}')")
    assert db.execute(f"delete from k where u = '{ONE.hex}'") == 1


def test_a_uuid_of_sqlite_is_the_text_that_was_written() -> None:
    db = Database(dialect="sqlite")
    db.execute(SETUP)
    db.execute(INSERT)
    assert list(db.sql(f"select id from t where u = '{TWO}'").materialize()) == [(2,)]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_a_new_uuid_is_refused_as_another_each_time(dialect: str) -> None:
    with pytest.raises(PlanError, match="another value each time"):
        made_by_sql(dialect).sql("select gen_random_uuid() from t")
