"""ALTER TABLE: as SQLite does it, in memory and in a file; killed at any write, old or new."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reactive import Database, PlanError, TableError, TransactionError
from reactive.borders.durable.store import MemoryStore
from tests.budget import seeds

DIALECTS = ["duckdb", "postgres", "sqlite"]


def drawn(rnd: Random, columns: list[str], table: str) -> str:
    """Return a statement about a table; it may be one that is refused."""
    column = rnd.choice([*columns, "nope"])
    new = f"c{rnd.randrange(6)}"
    match rnd.randrange(9):
        case 0 | 1:
            kind = rnd.choice(
                ["integer", "text", "integer default 7", "integer not null default 5"]
            )
            return f"alter table {table} add column {new} {kind}"
        case 2:
            return f"alter table {table} drop column {column}"
        case 3:
            return f"alter table {table} rename column {column} to {new}"
        case 4:
            return f"alter table {table} rename to {'u' if table == 't' else 't'}"
        case 5 | 6:
            number = rnd.randrange(9)
            return f"insert into {table} ({columns[0]}) values ({number})"
        case 7:
            return f"update {table} set {column} = {rnd.randrange(5)}"
        case _:
            return f"delete from {table} where {column} = {rnd.randrange(5)}"


@pytest.mark.parametrize("seed", seeds(12))
def test_tables_are_altered_as_sqlite_alters_them(seed: int, tmp_path: Path) -> None:
    rnd = Random(seed)
    path = [str(tmp_path / "t.db")] if seed % 3 == 0 else []
    db, other = Database(*path, dialect="sqlite"), sqlite3.connect(":memory:", isolation_level=None)
    table, altered = "t", 0
    made = "create table t (id integer primary key, a integer default 3 check (a > 0), b text)"
    db.execute(made)
    other.execute(made)
    for _ in range(30):
        columns = [row[1] for row in other.execute(f"pragma table_info({table})")]
        text, found = drawn(rnd, columns, table), []
        for run in (other.execute, db.execute):
            try:
                run(text)
                found.append(True)
            except (sqlite3.Error, PlanError, TableError):
                found.append(False)
        assert found[0] == found[1], text
        altered += found[0] and text.startswith("alter")
        if found[0] and "rename to" in text:
            table = "u" if table == "t" else "t"
        if path and rnd.random() < 0.3:
            db.close()
            db = Database(*path, dialect="sqlite")
        query = f"select * from {table} order by 1"
        view = db.sql(query).materialize()
        assert list(view) == other.execute(query).fetchall(), text
        described = [column[0] for column in other.execute(query).description]
        assert [*db.tables()[-1].row_type._fields] == described
        view.close()
    assert altered
    other.close()


SCRIPT = [
    "create table p (id int primary key, code text)",
    "create table t (id int primary key, a int check (a > 0), of int references p (id))",
    "create unique index i on t (a)",
    "create table s (x int, y int)",
    "insert into s values (1, 1), (1, 1), (2, 1)",
    "insert into p values (1, 'x'), (2, 'y')",
    "insert into t values (1, 5, 1), (2, 6, 2)",
]
CHANGES = [
    "alter table t add column z int default 7",
    "alter table t drop column of",
    "alter table t rename column a to n",
    "alter table t rename to u",
    "alter table t alter column a set default 9",
    "alter table t alter column a type smallint using a * 10",
    "alter table s alter column x type smallint using x - 1",
    "alter table t add constraint few check (a < 9)",
    "alter table t drop constraint t_a_check",
    "alter table p rename column code to kode",
    "drop table t",
    "create table r (x int)",
]


class _Killed(BaseException):
    """Stands for the end of the process."""


class _Mortal(MemoryStore):
    """A store whose process ends at a write."""

    left = 10**9

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ("write", "create", "drop"):
            return found

        def act(*arguments: Any) -> Any:
            if self.left <= 0:
                raise _Killed
            self.left -= 1
            return found(*arguments)

        return act


def opened(store: Any) -> Database:
    store._is_open = False
    store.left = 10**9
    return Database(store=store, dialect="postgres")


def described(db: Database) -> Any:
    """Return the columns and rows of the tables, and which of some rows are then refused."""
    found: list[Any] = []
    for name in ("t", "u", "p", "s", "r"):
        try:
            relation: Any = db.sql(f"select * from {name}")
        except PlanError:
            found.append(None)
            continue
        assert relation.schema is not None
        with relation.materialize() as view:
            rows = sorted(map(tuple, view))
        refused = []
        for row in ((3, -1, 1, 7), (4, 5, 1, 7), (5, 8, 9, 7), (6, 9, 1, 7), (7, 7, 2, 7)):
            values = ", ".join(map(str, row[: len(relation.schema.names)]))
            try:
                db.execute(f"insert into {name} values ({values})")
                refused.append(False)
            except TableError:
                refused.append(True)
        found.append(([(c.name, c.type) for c in relation.schema.columns], rows, refused))
    return found


def after(statements: list[str], change: str | None) -> Any:
    """Return a database in memory, described, after statements and a change."""
    db = Database(dialect="postgres")
    for text in [*statements, *([] if change is None else [change])]:
        db.execute(text)
    return described(db)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_is_killed_at_a_write_is_made_or_not(change: str) -> None:
    old, new = after(SCRIPT, None), after(SCRIPT, change)
    assert old != new or "default" in change
    writes, seen = 0, set()
    while True:
        store = _Mortal()
        db = opened(store)
        for text in SCRIPT:
            db.execute(text)
        if writes % 2:
            db = opened(store)
        db.sql("select * from t")
        store.left = writes
        try:
            db.execute(change)
            is_whole = True
        except _Killed:
            is_whole = False
        found = described(opened(store))
        assert found == (new if is_whole else old) or found == new, writes
        seen.add(found == new)
        opened(store)
        if is_whole:
            break
        writes += 1
    assert writes and True in seen


@pytest.mark.parametrize("dialect", DIALECTS)
def test_rows_views_and_other_tables_follow_or_are_named(dialect: Any) -> None:
    db = Database(dialect=dialect)
    for text in SCRIPT:
        db.execute(text)
    db.execute("create view v as select id, a from t where a > 5")
    db.execute("create materialized view m as select sum(a) as n from v")
    db.execute("create view w as select n + 1 as more from m")
    db.execute("alter table t add column z int default 7")
    db.execute("insert into t (id, a) values (3, 7)")
    assert list(db.sql("select more from w").materialize()) == [(14,)]
    table = db.tables()[-1]
    assert table.row_type(9, 9, None, z=7) == (9, 9, None, 7)
    for text, told in [
        ("drop column a", "view 'v' would not fit: there is no column 'a'|index 'i' reads 'a'"),
        ("rename column a to b", "view 'v' would not fit: there is no column 'a'"),
        ("rename to u", "view 'v' would not fit: there is no table or view 't'"),
        ("rename to p", "there is a table or view 'p' already"),
        ("rename column z to a", "a column 'a' already"),
        ("drop column id", "constraint 't_pkey'"),
        ("drop constraint nope", "there are t_pkey, t_a_check, t_of_fkey"),
        ("add column q nonsense", "no type|already"),
        ("add constraint k check (q > 1)", "no column 'q'"),
    ]:
        if dialect == "sqlite" and "nonsense" in text:
            continue
        with pytest.raises(PlanError, match=told):
            db.execute(f"alter table t {text}")
    for text, told in [
        ("add column q int not null", "NOT NULL"),
        ("add constraint k check (a > 6)", r"a > 6 is false \(k\)"),
        ("add constraint k unique (z)", r"unique \(z\) has it twice"),
        ("alter column of set not null", "NOT NULL"),
    ]:
        with pytest.raises(TableError, match=told):
            db.execute(f"alter table t {text}")
    assert db.tables()[-1] is table
    assert list(db.sql("select more from w").materialize()) == [(14,)]
    with pytest.raises(PlanError, match="a constraint of 't' would not fit"):
        db.execute("alter table p rename to q")
    db.execute("alter table p add column more text")
    with pytest.raises(TableError, match="references 'p'"):
        db.execute("delete from p")
    db.execute("drop view m")
    db.verify()


def test_views_of_python_over_an_altered_table_are_named() -> None:
    db = Database()
    db.execute("create table t (a int)")
    db.execute("create table u as select 1 as b, 'x' as c")
    view = db.tables()[0].materialize("mine")
    with pytest.raises(PlanError, match="cannot be altered: it is read by view 'mine'"):
        db.execute("alter table t add column b int")
    view.close()
    with pytest.raises(TransactionError, match="in no transaction"), db.transaction():
        db.execute("alter table t add column b int")
    db.execute("alter table if exists nope add column b int")
    db.execute("alter table u add column d int")
    assert list(db.sql("from u").materialize()) == [(1, "x", None)]
    db.table(int, name="numbers")
    with pytest.raises(PlanError, match="not made by CREATE TABLE"):
        db.execute("alter table numbers add column b int")


def test_a_column_of_another_type_is_cast() -> None:
    db = Database(dialect="postgres")
    db.execute("create table t (a text)")
    db.execute("insert into t values ('1'), ('2')")
    db.execute("alter table t alter column a type int using cast(a as int) + 1")
    assert sorted(db.sql("select a from t").materialize()) == [(2,), (3,)]
    with pytest.raises(PlanError, match="no cast of INTEGER to DATE"):
        db.execute("alter table t alter column a type date")


def test_a_file_has_tables_with_constraints_and_views(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with Database(path) as db:
        for text in [*SCRIPT, "create view v as select id, a from t"]:
            db.execute(text)
    with Database(path) as db:
        assert sorted(db.sql("from v").materialize()) == [(1, 5), (2, 6)]
        for text, told in [
            ("insert into t values (3, -1, 1)", "check"),
            ("insert into t values (3, 5, 1)", "twice"),
            ("insert into t values (3, 7, 9)", "references 'p'"),
            ("delete from p", "references 'p'"),
        ]:
            with pytest.raises(TableError, match=told):
                db.execute(text)
        for text in SCRIPT[:3]:
            db.execute(text)  # as the file has it
    with Database(path) as db, pytest.raises(TableError, match="references 'p'"):
        db.execute("delete from p")  # which opens the table that references it
    with Database(path) as db:
        db.execute("create table p (id int primary key, code text)")
        db.execute("drop view v")
        db.execute("create or replace table t (id int primary key)")
    with Database(path) as db:
        db.execute("insert into t values (7)")
        with pytest.raises(PlanError, match="no table or view 'v'"):
            db.sql("from v")


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
def test_a_file_has_tables_of_queries(tmp_path: Path, dialect: Any) -> None:
    path = str(tmp_path / "shop.db")
    with Database(path, dialect=dialect) as db:
        db.execute("create table t (a int, d decimal(6, 2), s text)")
        db.execute("insert into t values (3, 1.5, 'x'), (4, null, null)")
        for number, text in enumerate(
            [
                "a / 2.0 as h, d, null as z, a is null as b, 'x' as y from t",
                "count(*) as n, sum(a) as s, min(a) as m, avg(d) as v, max(s) as x from t",
            ]
        ):
            db.execute(f"create table w{number} as select {text}")
        db.execute("create table twice as select a, a from t")
        assert len(db.sql("select * from twice").materialize()) == 2
        made = [sorted(db.sql(f"select * from w{n}").materialize(), key=repr) for n in range(2)]
    for _ in range(2):
        with Database(path, dialect=dialect) as db:
            for n in range(2):
                assert sorted(db.sql(f"select * from w{n}").materialize(), key=repr) == made[n]
            db.verify()


def test_rows_of_a_file_are_converted_though_their_class_stays(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with Database(path) as db:
        db.execute("create table t (a int, b int)")
        db.execute("insert into t values (2, 3)")
        db.execute("alter table t alter column a type double")
        db.execute("alter table t alter column b type bigint using b * 10")
    with Database(path) as db:
        query = "select a::varchar as a, b from t"
        assert list(db.sql(query).materialize()) == [("2.0", 30)]
        db.execute("alter table t alter column b type bigint using b * 10")
        assert list(db.sql(query).materialize()) == [("2.0", 300)]
    with Database(path) as db:
        assert list(db.sql(query).materialize()) == [("2.0", 300)]
