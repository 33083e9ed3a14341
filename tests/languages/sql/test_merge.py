"""MERGE: drawn statements leave the tables of Postgres, and of DuckDB where it has them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from random import Random
from typing import Any

import duckdb
import psycopg2
import pytest

from reactive import Database, PlanError, TableError
from tests.budget import seeds

TABLES = (
    "create table t (id int primary key, a int default 9, b text)",
    "create table s (id int, a int, b text, y boolean)",
)
MATCHED = (
    "when matched and s.a > 1 then update set a = t.a + s.a, b = default",
    "when matched and s.a is null then delete",
    "when matched then update set (a, b) = (s.a, 'm')",
    "when matched then do nothing",
    "when matched and t.b = 'x' then delete",
)
ADDED = (
    "when not matched then insert (id, a) values (s.id, s.a)",
    "when not matched and s.y then insert values (s.id, s.a, s.b)",
    "when not matched and s.a is null then do nothing",
    "when not matched then insert (id, b, a) values (s.id, coalesce(s.b, 'n'), default)",
    "when not matched and s.a / (s.a - 1) > 0 then insert (id) values (s.id + 100)",
)
LEFT = (
    "when not matched by source then delete",
    "when not matched by source and t.a > 1 then update set b = 'z'",
)
ONE_EACH = "(select id, max(a) as a, min(b) as b, bool_or(y) as y from s group by id) as s"
ON = ("t.id = s.id", "t.id = s.id and t.a = s.a", "s.id = t.id and s.y")


def drawn(random: Random, *, of_duckdb: bool) -> str:
    """Return a statement."""
    number = random.choice(["null", "0", "1", "2", "3"])
    text, truth = random.choice(["null", "'x'", "'y'"]), random.choice(["true", "false", "null"])
    match random.randrange(8):
        case 0 | 1:
            return f"insert into s values ({random.randrange(6)}, {number}, {text}, {truth})"
        case 2:
            return f"delete from s where id = {random.randrange(6)}"
        case 3:
            return f"insert into t values ({random.randrange(6)}, {number}, {text})"
    whens = random.sample(MATCHED, random.choice([0, 1, 2]))
    whens += random.sample(ADDED, random.choice([1, 1, 2]))
    if of_duckdb and random.random() < 0.3:
        whens.append(random.choice(LEFT))
    source = ONE_EACH if of_duckdb else random.choice(["s", ONE_EACH])
    return f"merge into t using {source} on {random.choice(ON)} {' '.join(whens)}"


def play(dialect: Any, seed: int, run: Callable[[str], Any], rows: Callable[[str], Any]) -> None:
    """Compare a history with another engine; a statement that fails does so in both."""
    db, random = Database(dialect=dialect), Random(seed)
    for text in TABLES:
        db.execute(text)
        run(text)
    for _ in range(16):
        text = drawn(random, of_duckdb=dialect == "duckdb")
        try:
            db.execute(text)
        except (PlanError, TableError):
            with pytest.raises((psycopg2.Error, duckdb.Error)):
                run(text)
        else:
            run(text)
        own = [tuple(row) for row in db.sql("select * from t").materialize()]
        assert sorted(own, key=str) == sorted(rows("select * from t"), key=str), text


@pytest.mark.parametrize("seed", seeds(400, 100))
def test_postgres_has_the_same_rows(database: str, seed: int) -> None:
    with closing(psycopg2.connect(database)) as connection:
        connection.autocommit = True
        cursor = connection.cursor()

        def rows(text: str) -> list[Any]:
            cursor.execute(text)
            found: list[Any] = cursor.fetchall()
            return found

        play("postgres", seed, cursor.execute, rows)


@pytest.mark.parametrize("seed", seeds(400, 100))
def test_duckdb_has_the_same_rows(seed: int) -> None:
    other = duckdb.connect()
    play("duckdb", seed, other.execute, lambda text: other.execute(text).fetchall())


def test_what_merge_cannot_do_is_said() -> None:
    db = Database(dialect="postgres")
    for text in (
        *TABLES,
        "insert into t values (1, 1, 'x')",
        "insert into s values (1, 2), (1, 3)",
    ):
        db.execute(text)
    for text, problem in (
        ("when matched then update set a = s.a", r"changes t\(id=1, .* twice: several rows of the"),
        ("when matched then delete when matched then do nothing", "is never reached"),
        ("when matched then insert (id) values (1)", "WHEN MATCHED cannot INSERT"),
        ("when not matched then insert (id, a) values (s.id)", "1 values are inserted into 2"),
        ("when matched then update set c = 1", "table 't' has no column 'c'"),
        ("when matched then delete returning *", "RETURNING of MERGE is not supported"),
    ):
        with pytest.raises((PlanError, TableError), match=problem):
            db.execute(f"merge into t using s on t.id = s.id {text}")
    assert [tuple(row) for row in db.sql("select * from t").materialize()] == [(1, 1, "x")]
    with pytest.raises(PlanError, match="sqlite has no MERGE"):
        Database(dialect="sqlite").execute("merge into t using s on a = b when matched then delete")


RETURNING = (
    "using (values (1, 'm'), (9, 'n')) s(k, v) on t.k = s.k when matched then update set v = s.v"
    " when not matched then insert values (s.k, s.v) returning merge_action, *",
    "using (values (2, 'm'), (10, 'n')) s(k, v) on t.k = s.k when matched then delete"
    " when not matched then insert values (s.k, s.v) returning merge_action, k, v || '!' as w",
    "using (values (1, 'm'), (10, 'n')) s(k, v) on t.k = s.k when matched and s.k = 1 then delete"
    " when matched then update set v = 'z' returning merge_action || '-', t.k",
    "using (values (77, 'm')) s(k, v) on t.k = s.k when matched then delete returning *",
    "using (values (9, 'm')) s(k, v) on t.k = s.k when not matched by source then delete"
    " when matched then do nothing returning merge_action, k",
)


def test_returning_of_merge_is_that_of_duckdb() -> None:
    db, other = Database(), duckdb.connect()
    for text in (
        "create table t (k int primary key, v varchar)",
        "insert into t values (1, 'a'), (2, 'b'), (3, 'c')",
    ):
        db.execute(text)
        other.execute(text)
    for text in RETURNING:
        found = db.execute(f"merge into t {text}")
        expected = other.execute(f"merge into t {text}").fetchall()
        assert sorted(map(tuple, found.rows)) == sorted(expected)
        assert found == len(expected)
    assert sorted(map(tuple, db.table("t"))) == other.execute("from t order by k").fetchall()
