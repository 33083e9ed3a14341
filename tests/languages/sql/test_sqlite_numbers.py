"""Row numbers without an INTEGER PRIMARY KEY: in constant time, and in the requested order."""

from __future__ import annotations

from typing import Any

import pytest

from reactive import Database
from tests.languages.sql.sqlite_player import Both

ORDERED = (
    "insert into t (a) select a from s order by a",
    "insert into t (a) select a from s order by a desc",
    "insert into t (a) select a from s order by a limit 3",
    "insert into t (a) select a from s order by a desc limit 3 offset 1",
    "insert into t (a) select a from s union select 'm' order by 1",
    "insert into t (a) select a || b from s where a is not null order by b, a desc",
    "insert into t select null, a from s order by b, a",
    "insert into t (a) select b from s group by b order by count(*), b",
    "insert or ignore into t select null, a from s order by a desc",
    "insert into t (a) with c as (select a from s) select a from c order by a desc",
)


@pytest.mark.parametrize("text", ORDERED)
def test_rows_are_numbered_in_the_order_of_the_query(text: str) -> None:
    both = Both(
        "create table t (id integer primary key, a)",
        "create table s (k integer primary key, a, b)",
        "insert into s values (1, 'x', 1), (2, 3, 2), (3, 'a', 2), (4, null, 1), (5, 'é', 3)",
        "insert into s values (6, x'61', 1), (7, -2.5, 3)",
    )
    for _ in range(2):
        both.execute(text)
        both.ask("select id, a from t order by id")
    assert not both.wrong, both.wrong


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_the_last_in_the_order_replaces_the_others(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (k integer primary key, v integer)")
    db.execute("create table s (v integer)")
    db.execute("insert into s values (3), (1), (2)")
    end = "on conflict (k) do update set v = excluded.v"
    db.execute(f"insert into t select 1, v from s where true order by v {end}")
    first = [tuple(row) for row in db.sql("select * from t").materialize()]
    assert first == [(1, 3 if dialect == "sqlite" else 1)]


def test_single_rows_are_numbered_without_reading_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from reactive.languages.sql.statements import target

    db = Database(dialect="sqlite")
    db.execute("create table t (id integer primary key, a)")
    db.execute("create table s (id integer primary key, a)")
    looked = []
    real = target.greatest_key

    def counted(*given: Any) -> Any:
        looked.append(given)
        return real(*given)

    monkeypatch.setattr(target, "greatest_key", counted)
    for n in range(30):
        db.execute(f"insert into t (a) values ({n})")
        db.execute(f"insert into s values (null, {n})")
    assert len(looked) == 2
    db.execute("insert into t values (100, 1)")
    db.execute("insert into t (a) values (2)")
    assert len(looked) == 2
    db.execute("delete from t where id > 99")
    db.execute("insert into t (a) values (3)")
    table = db.tables()[0]
    table.add(table.row_type(500, 1))
    db.execute("insert into t (a) values (4)")
    with db.transaction():
        db.execute("insert into t (a) values (5)")
        db.execute("insert into t (a) values (6)")
    db.execute("insert into t (a) values (7)")
    assert [row.id for row in table] == [*range(1, 32), 500, 501, 502, 503, 504]


def test_a_row_that_is_left_out_takes_no_number() -> None:
    both = Both("create table t (id integer primary key, a not null)")
    both.execute("insert or ignore into t values (null, 1), (null, null), (90, null), (null, 2)")
    both.ask("select id, a from t order by id")
    assert not both.wrong, both.wrong
