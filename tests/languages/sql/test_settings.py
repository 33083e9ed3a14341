"""Settings that clients send at connection: kept, accepted as they hold, or refused."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

import psycopg2
import pytest

from reactive import Database, PlanError, sql


def values(db: Database, text: str) -> list[Any]:
    return [tuple(row) for row in db.sql(text).materialize()]


OF_POSTGRES = (
    *("set application_name to 'shop'", "show application_name", "reset application_name"),
    *("show application_name", "set statement_timeout = 0", "set names 'UTF8'"),
    *("set client_encoding to 'utf-8'", "show client_encoding", "show standard_conforming_strings"),
    *("set datestyle = 'ISO'", "show datestyle", "set session intervalstyle = postgres"),
    *("set search_path to public", "set time zone 'UTC'", "set extra_float_digits = 3"),
    *("set shop.who = 'ann'", "show shop.who", "select current_setting('shop.who')"),
    "select current_setting('shop.nothing', true)",
    "set session characteristics as transaction isolation level read committed",
    "set standard_conforming_strings = true",
    *("show nothing", "set nothing = 1", "select current_setting('nothing')"),
)


def test_postgres_takes_and_refuses_the_same(database: str) -> None:
    db = Database(dialect="postgres")
    with psycopg2.connect(database) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        for text in OF_POSTGRES:
            try:
                cursor.execute(text)
                expected = cursor.fetchall() if cursor.description else 0
            except psycopg2.Error:
                expected = None
            try:
                is_query = text.startswith(("show", "select"))
                found: Any = values(db, text) if is_query else db.execute(text)
            except PlanError as error:
                assert re.search(r"there is no setting '\w+'", str(error))
                found = None
            assert found == expected, text


@pytest.mark.parametrize(
    ("dialect", "text", "problem"),
    [
        (
            "postgres",
            "set timezone = 'Europe/Rome'",
            "is 'UTC' here.*\n.*Database",
        ),
        ("postgres", "set standard_conforming_strings = off", "is 'on' here, and cannot be 'off'"),
        ("postgres", "set datestyle = 'German'", "is 'ISO, MDY' here, and cannot be 'German'"),
        ("duckdb", "set default_null_order = 'nulls_first'", "is 'NULLS_LAST' here"),
        ("duckdb", "use app", "no schema 'app'.*\n  create schema app; there are main"),
        ("duckdb", "set thread = 3", "no setting 'thread'; did you mean 'threads'"),
        ("sqlite", "pragma foreign_keys = off", "foreign_keys is '1' here, and cannot be 'off'"),
        ("sqlite", "pragma nothing", "there is no setting 'nothing'"),
        ("sqlite", "set a = 1", "SET a = 1 is not supported"),
        ("duckdb", "pragma table_info('nothing')", "there is no table or view 'nothing'"),
        ("sqlite", "pragma other.table_info(t)", "there is no schema 'other'"),
    ],
)
def test_what_would_change_a_meaning_is_refused(dialect: Any, text: str, problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        Database(dialect=dialect).execute(text)


def test_settings_of_duckdb_are_kept() -> None:
    db = Database(dialect="duckdb", timezone="Europe/Rome")
    for text in ("set threads = 4", "set timezone = 'Europe/Rome'", "use main", "pragma threads=2"):
        assert db.execute(text) == 0
    assert values(db, "select current_setting('threads'), current_setting('TimeZone')") == [
        ("2", "Europe/Rome")
    ]
    db.execute("set threads = 5")
    assert values(db, "select current_setting('threads'), current_setting('TimeZone')")[0][0] == "5"
    db.execute("reset threads")
    assert values(db, "show threads") == [("1",)]


def test_pragmas_of_sqlite_are_answered() -> None:
    db, other = Database(dialect="sqlite"), sqlite3.connect(":memory:")
    with sql.connect(db) as connection:
        cursor = connection.cursor()
        for text in (
            "create table t (a integer primary key, b text not null default 'x', c real)",
            *("pragma table_info(t)", "pragma main.table_info('t')", "pragma encoding"),
            *("pragma foreign_keys = on", "pragma foreign_keys", "pragma user_version = 7"),
            *("pragma user_version", "pragma journal_mode", "pragma cache_size(100)"),
        ):
            expected = other.execute(text).fetchall()
            cursor.execute(text)
            found = [tuple(row) for row in cursor.fetchall()] if cursor.description else []
            if "table_info" in text:
                found = [(*row[:3], *row[4:]) for row in found]
                expected = [(*row[:3], *row[4:]) for row in expected]
            assert found == expected, text
    db.execute("create view v as select a from t")
    assert [row[1] for row in values(db, "pragma table_info(v)")] == ["a"]
