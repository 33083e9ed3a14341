"""Words of the grammar that are columns without quotes, beside DuckDB, SQLite and Postgres.

word x place   -->   the engine takes the word for the column: so does the view
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlglot
from sqlglot.tokens import Tokenizer

from reactive import Database, PlanError
from tests.budget import TIMES, drawing
from tests.postgres_server import PostgresServer

PLACES = (
    *("select {w} from t", "select t.{w} from t", "select a as {w} from t", "select a {w} from t"),
    *("select a from t where {w} > 3", "select a from t order by {w}", "select {w} + 1 from t"),
    *("select count(*) from t group by {w}", "select max({w}), 1 from t", "select -{w}, a from t"),
    *("select a from t where {w} in (7)", "select a from t where a < {w} and {w} is not null"),
    *("select case when {w} > 3 then {w} else 0 end from t", "select a, {w} as b from t"),
    *("select s.{w} from (select {w} from t) s", "select a from t where {w} between 1 and 9"),
)
LEFT = frozenset(
    (
        *("any", "all", "connect_by_root", "distinct", "from", "if", "map", "not", "select"),
        *("true", "false", "localtime", "localtimestamp", "session_user"),
    )
)
"""Words with a special meaning in sqlglot only; and constants that a column may hide."""
Rows = list[tuple[Any, ...]]


def words() -> list[str]:
    found = {word.lower() for word in Tokenizer.KEYWORDS}
    for name in ("duckdb", "postgres", "sqlite"):
        dialect = sqlglot.Dialect.get_or_raise(name)
        found |= {word.lower() for word in dialect.tokenizer_class.KEYWORDS}
    return sorted(
        word
        for word in found
        if word.isidentifier() and not word.startswith("current_") and word not in LEFT
    )


def differing(dialect: Any, run: Callable[[str], Any], rows: Callable[[str], Rows]) -> list[str]:
    drawn, wrong = drawing().sample(words(), 400 if TIMES else 25), []
    for word in drawn:
        db = Database(dialect=dialect)
        run("drop table if exists t")
        for each in (run, db.execute):
            each(f'create table t ("{word}" integer, a integer)')
            each("insert into t values (7, 1)")
        for text in (place.format(w=word) for place in PLACES):
            try:
                theirs = [tuple(row) for row in rows(text)]
            except Exception:  # each engine has its own class
                continue
            try:
                mine: Any = [tuple(row) for row in db.sql(text).materialize()]
            except PlanError as error:
                mine = str(error).splitlines()[0]
            if mine != theirs:
                wrong.append(f"{text}: {mine}, and {theirs} in {dialect}")
    return wrong


@pytest.mark.long
def test_words_are_columns_where_they_are_in_sqlite() -> None:
    engine = sqlite3.connect(":memory:", isolation_level=None)
    assert not differing("sqlite", engine.execute, lambda text: engine.execute(text).fetchall())


@pytest.mark.long
def test_words_are_columns_where_they_are_in_duckdb() -> None:
    engine = pytest.importorskip("duckdb").connect()
    assert not differing("duckdb", engine.execute, lambda text: engine.execute(text).fetchall())


@pytest.fixture
def cursor(postgres: PostgresServer) -> Iterator[Any]:
    import psycopg2

    connection = psycopg2.connect(postgres.new_database())
    connection.autocommit = True
    yield connection.cursor()
    connection.close()


def test_words_are_columns_where_they_are_in_postgres(cursor: Any) -> None:
    def rows(text: str) -> Rows:
        cursor.execute(text)
        return list(cursor.fetchall())

    assert not differing("postgres", cursor.execute, rows)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
def test_words_of_the_grammar_stay_what_they_are(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (a integer, b integer)")
    db.execute("insert into t values (1, 2), (2, 1), (null, 3)")
    for text, expected in {
        "select a from t where a is not null and a not between 2 and 3": [1],
        "select case when a is null then 0 else a end from t order by b desc limit 1 offset 0": [0],
        "select sum(b) over (order by b rows between 1 preceding and current row) from t "
        "order by 1 limit 1": [1],
        "select a from t where exists (select 1 from t) and not b > 1 group by a having a > 0": [2],
        "select a from t where b not between -2 and 1 and a not in (2)": [1],
        "select count(distinct a) from t cross join (select 1) s": [2],
    }.items():
        assert [row[0] for row in db.sql(text).materialize()] == expected, text
