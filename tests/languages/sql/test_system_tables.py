"""System tables: clients' own statements have the rows that they have in Postgres and DuckDB."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import psycopg2
import pytest
import sqlalchemy
from sqlalchemy.dialects.postgresql.base import PGDialect

from reactive import Database, PlanError
from reactive.languages.sql.dbapi import names
from reactive.sql import connect

SETUP = (
    "create schema app",
    "create table t (id int primary key, a text not null default 'x', d numeric(8,2), "
    "v varchar(10), ts timestamp, unique(a, d), check (id > 0))",
    "create table app.u (id bigint, t int references t(id), b boolean, f double precision, "
    "dt date, tz timestamptz, by bytea, j jsonb, uu uuid, ar int[])",
    "create view w as select id, a from t where id > 1",
    "create index i_a on t (a)",
    "create materialized view mv as select a from t",
)
PSQL = re.findall(
    r"-- .*\n([^;]+(?:;'[^;]+)*);\n", (Path(__file__).parent / "psql.sql").read_text()
)
NUMBERS = "select relname, oid from pg_class where relname in ('t', 'u', 'w', 'i_a')"
QUERIES = (
    "select * from pg_tables where schemaname in ('public', 'app')",
    "select * from pg_indexes where schemaname = 'public'",
    "select schemaname, viewname, viewowner from pg_views where schemaname = 'public'",
    "select * from information_schema.columns where table_name in ('t', 'u')",
    "select * from information_schema.table_constraints where table_schema = 'public' "
    "and constraint_name not like '%not_null'",
    "select * from information_schema.key_column_usage where table_schema in ('public', 'app')",
    "select * from information_schema.referential_constraints",
    "select * from information_schema.constraint_column_usage where table_schema = 'public'",
    "select 't'::regclass",
    "select 'app.u'::regclass::text, 'int4'::regtype",
    "select to_regclass('nope'), to_regclass('app.u')::text",
    "select format_type(1043, 14), format_type(23, null), format_type(1231, -1)",
    "select attname from pg_attribute where attrelid = 't'::regclass and attnum > 0",
    "select relname from pg_class where oid = 'app.u'::regclass",
    "select pg_table_is_visible('t'::regclass), pg_table_is_visible('app.u'::regclass)",
    "select conname, conrelid::regclass, confrelid::regclass, pg_get_constraintdef(oid) "
    "from pg_constraint where connamespace = 'app'::regnamespace",
    "select current_schemas(true), current_schemas(false), has_table_privilege('t', 'select')",
    "select a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid "
    "and a.attnum = any(i.indkey) where i.indrelid = 't'::regclass and i.indisprimary",
    "select setting from pg_settings where name = 'search_path'",
    "select typname, oid, typarray from pg_type where typname in ('int4', '_text', 'hstore')",
    "select 'nope'::regclass",
    "select exists (select from pg_tables where tablename = 't')",
    "select pg_typeof(1)::text, pg_typeof('a'::text)",
    "select set_config('application_name', 'shop', false)",
    "show application_name",
)


class DialectOfPostgres(PGDialect):
    """SQLAlchemy's own dialect of Postgres, over connections of this library."""

    supports_statement_cache = True
    default_paramstyle = "named"

    @classmethod
    def import_dbapi(cls) -> Any:
        return names


@pytest.fixture(scope="module")
def server(postgres: Any) -> str:
    dsn: str = postgres.new_database()
    with psycopg2.connect(dsn) as connection, connection.cursor() as cursor:
        for text in SETUP:
            cursor.execute(text)
    return dsn


@pytest.fixture
def own() -> Any:
    made = connect(Database(dialect="postgres"))
    for text in SETUP:
        made.execute(text)
    return made


def listed(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [listed(each) for each in value]
    return [] if value == {} else value


def answer(cursor: Any, text: str) -> Any:
    """Return the sorted rows of a query; None if it is refused."""
    try:
        found = cursor.execute(text) or cursor
    except (psycopg2.Error, duckdb.Error, names.Error):
        return None
    return sorted(map(listed, found.fetchall()), key=str)


def numbered(text: str, cursor: Any) -> str:
    for name, number in answer(cursor, NUMBERS):
        text = text.replace(f"{{{name}}}", str(number))
    return text


def test_statements_of_psql_have_the_rows_of_postgres(own: Any, server: str) -> None:
    assert len(PSQL) > 20
    with psycopg2.connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("alter schema public owner to postgres")
        for text in PSQL:
            found, expected = answer(own.cursor(), numbered(text, own.cursor())), None
            expected = answer(cursor, numbered(text, cursor))
            if "c.oid," in text:
                found, expected = ([row[1:] for row in rows] for rows in (found, expected))
            assert found == expected, text
        connection.rollback()


def test_other_statements_have_the_rows_of_postgres(own: Any, server: str) -> None:
    connection = psycopg2.connect(server)
    connection.autocommit = True
    name = connection.info.dbname
    for text in QUERIES:
        expected = answer(connection.cursor(), text)
        if expected is not None:
            expected = [["postgres" if each == name else each for each in row] for row in expected]
        assert answer(own.cursor(), text) == expected, text
    connection.close()


def test_sqlalchemy_reflects_the_tables_of_postgres(server: str) -> None:
    db = Database(dialect="postgres")
    for text in SETUP:
        db.execute(text)
    sqlalchemy.dialects.registry.register("pgown", __name__, "DialectOfPostgres")
    url = "postgresql+psycopg2://"
    engines = [
        sqlalchemy.create_engine("pgown://", creator=lambda: connect(db)),
        sqlalchemy.create_engine(url, creator=lambda: psycopg2.connect(server)),
    ]
    found = [list(map(repr, reflected(sqlalchemy.inspect(engine)))) for engine in engines]
    assert found[0] == found[1]
    engines[1].dispose()
    db.execute("insert into t (id) values (4)")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.read_sql_table("t", engines[0])
    assert frame.columns.tolist() == ["id", "a", "d", "v", "ts"] and frame.a.tolist() == ["x"]


def reflected(inspector: Any) -> Iterable[Any]:
    yield inspector.get_schema_names()
    yield inspector.get_table_names(), inspector.get_view_names()
    yield inspector.has_table("t"), inspector.has_table("u")
    yield inspector.get_columns("u", schema="app")
    yield inspector.get_pk_constraint("t"), inspector.get_foreign_keys("u", schema="app")
    yield inspector.get_unique_constraints("t"), inspector.get_check_constraints("t")
    yield inspector.get_indexes("t")


OF_DUCKDB = (
    "create schema app",
    "create table t (id integer primary key, a varchar not null default 'x', d decimal(8,2), "
    "r real, ts timestamp, l integer[], check (id > 0), unique (a, d))",
    "create table app.u (a integer primary key, b varchar not null default 'x', c bigint)",
    "create view v as select id, a from t",
    "create view app.w as select a from app.u",
    "create index i on t(a)",
    "create table k (x integer references t(id), y boolean)",
)
ASKED = (
    *("show all tables", "show schemas", "show databases", "show", "describe", "show tables"),
    "select * exclude (sql) from duckdb_tables()",
    "select * from duckdb_columns() where not internal",
    "select * from duckdb_views() where not internal",
    "select * from duckdb_schemas() where database_name = 'memory'",
    *("select * from duckdb_databases()", "select * from duckdb_indexes()"),
    "select * from duckdb_sequences()",
    "select table_name, constraint_type, constraint_text, expression, constraint_column_names, "
    "referenced_table, referenced_column_names from duckdb_constraints()",
    "select * from pragma_table_info('t')",
    "select name, pk from pragma_table_info('app.u') as info where info.pk",
    "select * from pragma_table_info('v')",
    "select * exclude (sql) from sqlite_master",
    "select * from sqlite_master where type in ('view', 'index')",
    "select duckdb_tables.table_name from duckdb_tables() where schema_name = 'main'",
    "select d.table_name, i.name from duckdb_tables() d, pragma_table_info('k') i",
    "select * from information_schema.tables where table_catalog = 'memory'",
    "select * from information_schema.columns where table_catalog = 'memory'",
    "select * from information_schema.schemata",
    "select * from information_schema.views where table_name in ('v', 'w')",
    "select relname from pg_catalog.pg_class where relkind = 'r'",
    "select tablename from pg_tables",
)
NUMBERED = frozenset({"oid", "data_type_id"})


def test_functions_of_duckdb_have_its_columns_and_rows() -> None:
    own, other = connect(Database(dialect="duckdb")), duckdb.connect()
    for text in OF_DUCKDB:
        own.execute(text)
        other.execute(text)
    for text in ASKED:
        cursor, expected = own.execute(text), other.execute(text)
        columns = [(name, str(kind)) for name, kind, *_ in expected.description]
        assert [(name, kind) for name, kind, *_ in cursor.description or ()] == columns, text
        kept = [
            place
            for place, (name, _) in enumerate(columns)
            if name not in NUMBERED and not name.endswith("_oid")
        ]
        found = [
            sorted(([listed(row[place]) for place in kept] for row in rows), key=str)
            for rows in (cursor.fetchall(), expected.fetchall())
        ]
        assert found[0] == found[1], text


def test_sqlite_lists_tables_and_their_columns() -> None:
    own, other = connect(Database(dialect="sqlite")), sqlite3.connect(":memory:")
    for text in (
        "create table t (a integer primary key, b text not null default 'x', c real)",
        "create table k (x int, y int, primary key (y, x))",
        "create table r (a int references t(a), b int, unique (b, a), "
        "foreign key (a, b) references k(y, x))",
        "create index i on t (b)",
        "create unique index j on t (c, b)",
    ):
        own.execute(text)
        other.execute(text)
    for text in (
        "select type, name, tbl_name from sqlite_master",
        "select name from sqlite_temp_master",
        *("pragma table_info(t)", "pragma main.table_xinfo('k')", "pragma temp.table_info(t)"),
        *("pragma table_info(nowhere)", "pragma index_list(t)", 'pragma main.index_list("r")'),
        *("pragma index_info(j)", "pragma foreign_key_list(r)", "pragma foreign_key_list(t)"),
        "select * from pragma_index_info('sqlite_autoindex_k_1')",
        'select m.name, f."table", f."to" from sqlite_master m '
        "join pragma_foreign_key_list(m.name) f",
        "pragma quick_check",
        "select m.name, p.name, p.type, p.pk from sqlite_master m join pragma_table_info(m.name) p",
        "select name, dflt_value from pragma_table_info('t')",
        "select count(*) from pragma_table_info('nothing')",
    ):
        assert answer(own.cursor(), text) == sorted(map(list, other.execute(text)), key=str), text


def test_names_of_the_database_come_first() -> None:
    db = Database(dialect="postgres")
    db.execute("create table pg_own (a int)")
    db.execute("insert into pg_own values (1)")
    assert [tuple(row) for row in db.sql("select a from pg_own").materialize()] == [(1,)]
    with_pg = "with pg_class as (select 2 as oid) select oid from pg_class"
    assert [tuple(row) for row in db.sql(with_pg).materialize()] == [(2,)]
    with pytest.raises(PlanError, match="no table or view 'pg_nothing'"):
        db.sql("select * from pg_catalog.pg_nothing")
    with pytest.raises(PlanError, match="no table 'nope' in information_schema"):
        db.sql("select * from information_schema.nope")


def test_a_query_of_system_tables_tells_of_the_moment_it_is_made() -> None:
    con = connect(Database(dialect="postgres"))
    text = "select relname from pg_class where relname like :name and relkind = 'r'"
    for count in range(3):
        assert len(con.execute(text, {"name": "t%"}).fetchall()) == count
        con.execute(f"create table t{count} (a int)")
    con.execute("drop table t1")
    assert con.execute(text, {"name": "t1"}).fetchall() == []


def test_percent_signs_are_plain_beside_named_parameters() -> None:
    con = connect(Database(dialect="postgres"))
    text = "select :a || '%' as a, 'x%%' as b"
    assert con.execute(text, {"a": "1"}).fetchall() == [("1%", "x%%")]
    assert con.execute("select %(a)s || '%%' as a", {"a": "1"}).fetchall() == [("1%",)]


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy")
def test_pandas_writes_a_frame_by_a_connection(dialect: Any) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    con = connect(Database(dialect=dialect))
    for rows, exists, count in (([1, 2], "replace", 2), ([3], "append", 3), ([4], "replace", 1)):
        pandas.DataFrame({"a": rows}).to_sql("t", con, if_exists=exists, index=False)
        assert len(pandas.read_sql("select a from t where a > ?", con, params=(0,))) == count
