"""Histories of tables with types and collations against SQLite, after each statement."""

from __future__ import annotations

from typing import Any

import pytest

from reactive import Database, TableError
from tests.budget import seeds
from tests.languages.sql.sqlite_histories import History
from tests.languages.sql.sqlite_player import Both


def test_a_history_is_that_of_sqlite() -> None:
    for seed in seeds(1000, share=333):
        history = History(seed)
        history.play(25)
        assert not history.both.wrong, f"seed {seed}\n" + "\n".join(history.both.wrong)
        assert not history.both.refused, f"seed {seed}\n" + "\n".join(history.both.refused)


@pytest.mark.long
@pytest.mark.parametrize("collation", ["nocase", "rtrim"])
def test_a_key_is_compared_by_its_collation(collation: str) -> None:
    both = Both(f"create table t (k text not null collate {collation} primary key, v)")
    for text in (
        "insert into t values ('a', 1), ('b', 2)",
        "insert into t values ('A ', 3)",
        "insert into t values ('A', 3)",
        "insert into t values ('b ', 4)",
        "insert or replace into t values ('B', 5), ('b  ', 6)",
        "insert into t values ('a ', 7), ('A', 8) on conflict (k) do update set v = excluded.v",
        "update t set k = 'A' where k = 'a'",
        "delete from t where k = 'B'",
    ):
        both.execute(text)
        both.ask("select k, v from t order by k collate binary")
    assert not both.wrong, "\n".join(both.wrong)


def test_a_key_of_several_columns_is_compared_by_their_collations() -> None:
    both = Both("create table t (k collate nocase, l collate rtrim, v, primary key (k, l))")
    for key in ("'a', 'a'", "'A', 'a '", "'a', 'A'", "1, x'61'", "'b', 'b'"):
        both.execute(f"insert or replace into t values ({key}, 1)")
        both.execute(f"insert into t values ({key}, 2) on conflict (l, k) do update set v = v + 2")
        both.ask("select k, l, v from t")
    assert not both.wrong, "\n".join(both.wrong)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select n from c union select 'A'", 2),
        ("select 'A' union select n from c", 2),
        ("select p from c union select n from c", 3),
        ("select n from c except select 'A'", 1),
        ("select n from c intersect select 'A'", 1),
        ("select n, p from c intersect select 'A', 'a'", 1),
        ("select n collate binary from c union select 'A'", 4),
        ("select 'B' except select n from c", 0),
    ],
)
def test_sets_are_compared_by_the_first_collation(text: str, expected: int) -> None:
    both = Both(
        "create table c (n collate nocase, p)", "insert into c values ('a', 'a'), ('b', 'B')"
    )
    both.execute("insert into c values ('B', 'b')")
    with both.db.sql(text).materialize() as view:
        assert len(view) == len(both.other.execute(text).fetchall()) == expected


def test_not_null_is_left_out_or_filled_as_the_statement_says() -> None:
    both = Both("create table t (k integer primary key, a not null default 'd', b not null)")
    for text in (
        "insert or ignore into t values (1, null, 1), (2, 1, null), (3, 1, 1)",
        "insert or replace into t values (3, null, 2)",
        "insert or replace into t values (3, 1, null)",
        "insert into t values (3, null, 1) on conflict do nothing",
    ):
        both.execute(text)
        both.ask("select * from t order by k")
    assert not both.wrong, "\n".join(both.wrong)


def test_a_descending_integer_key_is_no_row_id() -> None:
    db: Any = Database(dialect="sqlite")
    db.execute("create table t (id integer primary key desc, v)")
    db.execute("insert into t values ('x', 1)")
    with pytest.raises(TableError, match="'id' of table 't' is NOT NULL"):
        db.execute("insert into t (v) values (1)")
    assert [tuple(row) for row in db.tables()[0]] == [("x", 1)]
