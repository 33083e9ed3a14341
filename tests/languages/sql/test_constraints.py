"""CHECK, UNIQUE, REFERENCES and indexes: refused as SQLite refuses, whoever makes the change."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reactive import Database, PlanError, TableError
from reactive.sql import connect
from tests.budget import seeds

DIALECTS = ["duckdb", "postgres", "sqlite"]
PARENT = "create table p (id int primary key, code text, unique (code))"
CHILD = """create table t (id int primary key, a int check (a > 0), b int, c text unique,
    of int references p (id) deferrable initially deferred, code text, up int,
    constraint few check (b < a), constraint pairs unique (a, b),
    foreign key (code) references p (code) deferrable initially deferred,
    foreign key (up) references t (id) deferrable initially deferred)"""


def drawn(rnd: Random) -> tuple[str, tuple[Any, ...]]:
    """Return a statement about one row, and its values."""
    few = [None, None, *range(-1, 4)]
    texts = [None, None, "x", "y", "z"]
    match rnd.randrange(8):
        case 0 | 1:
            return "insert into p values (?, ?)", (rnd.randrange(4), rnd.choice(texts))
        case 2:
            return "delete from p where id = ?", (rnd.randrange(4),)
        case 3:
            values = (rnd.choice(texts), rnd.randrange(4))
            return "update p set code = ? where id = ?", values
        case 4 | 5:
            row = (rnd.randrange(6), rnd.choice(few), rnd.choice(few), rnd.choice(texts))
            links = (rnd.choice(few), rnd.choice(texts), rnd.choice(few))
            return "insert into t values (?, ?, ?, ?, ?, ?, ?)", (*row, *links)
        case 6:
            column = rnd.choice(["a", "b", "of", "up"])
            return f"update t set {column} = ? where id = ?", (rnd.choice(few), rnd.randrange(6))
        case _:
            return "delete from t where id = ?", (rnd.randrange(6),)


@pytest.mark.parametrize("seed", seeds(60))
def test_rows_are_refused_as_sqlite_refuses_them(seed: int) -> None:
    rnd = Random(seed)
    db = Database(dialect="sqlite")
    other = sqlite3.connect(":memory:", isolation_level=None)
    other.execute("pragma foreign_keys = on")
    for text in (PARENT, CHILD):
        db.execute(text)
        other.execute(text)
    refused = 0
    for _ in range(60):
        text, values = drawn(rnd)
        found = []
        for run in (lambda t, v: other.execute(t, v), lambda t, v: _run(db, t, v)):
            try:
                run(text, values)
                found.append(True)
            except (sqlite3.IntegrityError, TableError):
                found.append(False)
        assert found[0] == found[1], (text, values)
        refused += not found[0]
        for table in ("p", "t"):
            rows = other.execute(f"select * from {table} order by id").fetchall()
            assert rows == list(db.sql(f"select * from {table} order by id").materialize())
    assert refused
    db.verify()
    other.close()


def _run(db: Database, text: str, values: tuple[Any, ...]) -> None:
    """Run a statement whose question marks stand for values."""
    names = [f"v{place}" for place in range(len(values))]
    for name in names:
        text = text.replace("?", f":{name}", 1)
    db.execute(text, **dict(zip(names, values, strict=True)))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_refused_row_is_told_by_table_row_and_constraint(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute(PARENT)
    db.execute(CHILD)
    db.execute("insert into p values (1, 'x')")
    db.execute("insert into t values (1, 3, 2, 'one', 1, 'x', 1)")
    for row, told in [
        ("(2, -1, null, null, null, null, null)", r"'t' refuses \(2, -1, .*check a > 0 is false"),
        ("(2, 3, 4, null, null, null, null)", r"check b < a is false \(few\)"),
        ("(2, 3, 2, null, null, null, null)", r"\(3, 2\): unique \(a, b\) has it twice \(pairs\)"),
        ("(2, 3, 1, 'one', null, null, null)", r"unique \(c\) has it twice"),
        ("(2, 3, 1, null, 9, null, null)", r"\(of\) references 'p', which has no such row"),
        ("(2, 3, 1, null, null, 'q', null)", r"\(code\) references 'p'"),
        ("(2, 3, 1, null, null, null, 7)", r"\(up\) references 't'"),
    ]:
        with pytest.raises(TableError, match=told):
            db.execute(f"insert into t values {row}")
    with pytest.raises(TableError, match="references 'p'"):
        db.execute("delete from p")
    assert (db.version, len(db.tables()[1])) == (2, 1)
    assert db.execute("insert into t values (2, null, null, null, null, null, null)") == 1


def test_a_transaction_counts_at_its_end_and_so_do_rows_of_python() -> None:
    db = Database()
    db.execute(PARENT)
    db.execute(CHILD)
    parents, children = db.tables()
    with db.transaction():
        children.add((1, 3, 2, None, 1, None, None))
        parents.add((1, None))
    with pytest.raises(TableError, match="references 'p'"):
        parents.remove((1, None))
    with pytest.raises(TableError, match="check a > 0"), db.transaction():
        children.clear()
        children.add((1, 0, None, None, None, None, None))
    with db.transaction():
        parents.remove((1, None))
        children.clear()
    assert (len(parents), len(children), db.version) == (0, 0, 2)
    assert db.views() == []


def test_a_declaration_that_cannot_be_read_makes_nothing() -> None:
    db = Database(dialect="postgres")
    db.execute(PARENT)
    db.execute("create table t (a int)")
    for text, told in [
        ("(a int check (q > 1))", "no column 'q'"),
        ("(a int, unique (b))", "no column 'b'"),
        ("(a int, foreign key (b) references p)", "no column 'b'"),
        ("(a int references nope)", "no table 'nope'"),
        ("(a int references p (nope))", "no column 'nope'"),
        ("(a int, foreign key (a) references p (id, code))", "1 columns reference 2"),
        ("(a int references p on delete cascade)", "ON DELETE CASCADE of REFERENCES"),
        ("(a int references p on update set null)", "ON UPDATE SET NULL of REFERENCES"),
        ("(a int, foreign key (a) references p (id) on delete set default)", "SET DEFAULT"),
        ("(a int unique nulls not distinct)", "NULLS"),
        ("(a int check (a > date '2024-01-01'))", "cannot compare INTEGER and DATE"),
    ]:
        for made in ("create table u", "create or replace table t"):
            if made.startswith("create or"):
                db.execute("delete from t")
            with pytest.raises(PlanError, match=told):
                db.execute(f"{made} {text}")
    assert [table.name for table in db.tables()] == ["p", "t"]
    assert db._engine.graph.leaves() == db._engine.graph.leaves()[:1]  # that of `unique (code)`


def test_a_referenced_table_is_dropped_last() -> None:
    db = Database()
    db.execute(PARENT)
    db.execute(CHILD)
    with pytest.raises(PlanError, match="read by a constraint of table 't'"):
        db.execute("drop table p")
    db.execute("drop table t")
    db.execute("drop table p")
    db.execute(PARENT)
    db.execute(CHILD)
    db.execute("drop table p cascade")
    db.execute("insert into t values (1, 3, 2, null, 9, 'q', null)")
    assert [table.name for table in db.tables()] == ["t"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_index_is_accepted_and_a_unique_one_is_a_constraint(dialect: Any, caplog: Any) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (a int primary key, b int, c text)")
    with caplog.at_level(logging.INFO, "reactive"):
        assert db.execute("create index i on t (b desc, lower(c))") == 0
    assert "index 'i' of table 't' is not needed" in caplog.text
    db.execute("create index if not exists i on t (b)")
    with pytest.raises(PlanError, match="an index 'i' already"):
        db.execute("create index i on t (b)")
    with pytest.raises(PlanError, match="no column 'q'"):
        db.execute("create index j on t (q)")
    db.execute("create unique index k on t (b) where c = 'x'")
    db.execute("insert into t values (1, 1, 'x'), (2, 1, 'y')")
    with pytest.raises(TableError, match=r"unique \(b\) has it twice \(k\)"):
        db.execute("update t set c = 'x'")
    db.execute("drop index k")
    assert db.execute("update t set c = 'x'") == 2
    with pytest.raises(TableError, match="has it twice"):
        db.execute("create unique index k on t (b)")
    with pytest.raises(PlanError, match="no index 'k'"):
        db.execute("drop index k")
    db.execute("drop index if exists k")
    db.execute("drop table t")
    db.execute("create table t (a int)")
    db.execute("create index i on t (a)")


def test_a_check_is_true_or_unknown_and_may_name_the_table_or_ask() -> None:
    db = Database()
    db.execute("create table most (n int)")
    db.execute("create table t (n int check (t.n <= (select max(n) from most)))")
    db.execute("insert into t values (5), (null)")
    with pytest.raises(TableError, match="check"):
        db.execute("insert into most values (4)")
    db.execute("insert into most values (6)")
    with pytest.raises(TableError, match="check"):
        db.execute("insert into t values (7)")


def test_rows_in_the_file_outlive_a_declaration_that_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with Database(path) as db:
        db.execute("create table t (id int primary key, a int)")
        db.execute("insert into t values (1, -1), (2, 2)")
    for wrong in ["check (a > 0)", "check (q > 0)", "references nope"]:
        with Database(path) as db:
            with pytest.raises((TableError, PlanError)):
                db.execute(f"create table t (id int primary key, a int {wrong})")
            assert db.tables() == []
            db.execute("create table t (id int primary key, a int)")  # in the same process
    with Database(path) as db:
        db.execute("create table t (id int primary key, a int check (a > -2))")
        assert list(db.sql("select * from t order by id").materialize()) == [(1, -1), (2, 2)]
        with pytest.raises(TableError, match="a > -2 is false"):
            db.execute("update t set a = -2 where id = 1")


def test_a_table_of_a_query_is_made_once_in_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with Database(path) as db:
        assert db.execute("create table t as select 1 as a") == 1
    with Database(path) as db:
        with pytest.raises(PlanError, match="is durable, and has rows in"):
            db.execute("create table t as select 2 as a")
        assert db.execute("create table if not exists t as select 2 as a") == 0
        assert list(db.sql("from t").materialize()) == [(1,)]
    with Database(path) as db:
        with pytest.raises(PlanError):
            db.execute("create or replace table t (a int check (q > 1))")
        assert db.tables() == []
        assert db.execute("create or replace table t as select 3 as a") == 1
    with Database(path) as db:
        db.execute("create table t (a int)")
        assert list(db.sql("from t").materialize()) == [(3,)]
    with Database(path) as db:
        db.execute("create or replace table t (a int)")
        assert list(db.sql("from t").materialize()) == []
        db.execute("insert into t values (4)")
    with Database(path) as db:
        db.execute("create or replace table t (b text primary key)")
        assert list(db.sql("from t").materialize()) == []


def test_a_table_that_another_references_is_not_replaced() -> None:
    db = Database()
    db.execute("create table p (id int primary key)")
    db.execute("create table t (of int references p)")
    with pytest.raises(PlanError, match="it is read by a constraint of 't'"):
        db.execute("create or replace table p (id int primary key)")
    with pytest.raises(TableError, match="references 'p'"):
        db.execute("insert into t values (1)")
    db.execute("create or replace table t (of int references p)")
    db.execute("drop table t")
    db.execute("create or replace table p (id int primary key)")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_constraints_may_have_names(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute(
        "create table p (x int, y int, constraint both primary key (x, y), constraint q unique (y))"
    )
    db.execute(
        "create table t (x int constraint one primary key, y int constraint there not null,"
        " z int constraint pos check (z > 0), w int constraint up references t (x))"
    )
    db.execute("create unique index if not exists i on t (y)")
    assert db.execute("create unique index if not exists i on t (z)") == 0
    db.execute("insert into p values (1, 2), (2, 3)")
    db.execute("insert into t values (1, 2, 3, 1)")
    for wrong, told in [
        ("p values (1, 2)", "key is taken"),
        ("p values (3, 2)", r"has it twice \(q\)"),
        ("t values (1, 3, 3, 1)", "key is taken"),
        ("t values (2, null, 3, 1)", "NOT NULL"),
        ("t values (2, 3, 0, 1)", r"is false \(pos\)"),
        ("t values (2, 3, 1, 9)", r"no such row \(up\)"),
        ("t values (2, 2, 1, 1)", r"has it twice \(i\)"),
    ]:
        with pytest.raises(TableError, match=told):
            db.execute(f"insert into {wrong}")


def test_an_index_needs_no_name_in_postgres() -> None:
    db = Database(dialect="postgres")
    db.execute("create table t (a int, b int)")
    db.execute("create index on t (a)")
    db.execute("create unique index on t (b)")
    with pytest.raises(TableError, match="has it twice"):
        db.execute("insert into t values (1, 1), (2, 1)")


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("a int, A int", "two columns 'A'"),
        ("a int primary key, b int primary key", "one PRIMARY KEY"),
        ("a int primary key, b int, primary key (b)", "one PRIMARY KEY"),
        ("a text, unique (lower(a))", "a constraint of expressions"),
    ],
)
def test_what_other_databases_refuse_is_refused(columns: str, told: str) -> None:
    db = Database()
    with pytest.raises(PlanError, match=told):
        db.execute(f"create table t ({columns})")
    assert db.tables() == []


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_a_check_that_raises_is_named(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute(
        "create table t (a int, c text, constraint small check (a < 9 and cast(c as int) < 9))"
    )
    db.execute("insert into t values (1, '2'), (null, '3'), (10 - 5, null)")
    told = r"refuses \(1, 'x'\): check .* \(small\) cannot be evaluated: 'x' is no"
    for change in (
        lambda: db.execute("insert into t values (1, 'x')"),
        lambda: db.execute("update t set c = 'x' where a = 1"),
        lambda: db.tables()[0].add((1, "x")),
    ):
        with pytest.raises(TableError, match=told) as raised:
            change()
        assert isinstance(raised.value.__cause__, ValueError)
    with pytest.raises(TableError, match=r"is false \(small\)"):
        db.execute("insert into t values (9, '2')")
    with pytest.raises(TableError, match=r"c AS INT.* \(k\) cannot be evaluated"):
        db.execute("create table u (c text)")
        db.execute("insert into u values ('x')")
        db.execute("alter table u add constraint k check (cast(c as int) > 1)")
    assert len(db.tables()[0]) == 3
    db.verify()


def drawn_upsert(rnd: Random) -> str:
    """Return an INSERT with an action where values are taken, or a statement with RETURNING."""
    rows = ", ".join(
        f"({rnd.choice([1, 2, 3, 4, 'null'])}, {rnd.choice(['null', *map(repr, 'xXyz')])},"
        f" {rnd.choice([1, 2, 7, 'null'])}, {rnd.choice([1, 2, 'null'])})"
        for _ in range(rnd.choice([1, 2, 3]))
    )
    returning = rnd.choice(["", " returning *", " returning id, c as d, n + 1"])
    target = rnd.choice(["", "(id)", "(c)", "(n, m)", "(m, n)"])
    change = rnd.choice(["n = excluded.n", "c = 'q'", "m = t.m + 1, n = 3"])
    where = rnd.choice(["", " where t.n > 1"])
    match rnd.randrange(7):
        case 0 | 1:
            text = f"insert into t values {rows} on conflict {target} do nothing"
        case 2 | 3:
            text = f"insert into t values {rows} on conflict {target} do update set {change}{where}"
        case 4:
            text = f"insert or {rnd.choice(['ignore', 'replace'])} into t values {rows}"
        case 5:
            text = f"insert into t values {rows}"
        case _:
            text = f"delete from t where {rnd.choice(['id = 1', 'n = 7', 'm = 1', 'id > 3'])}"
    return text + returning


@pytest.mark.parametrize("seed", seeds(8))
def test_rows_in_the_way_are_those_of_sqlite(seed: int) -> None:
    rnd, db = Random(seed), Database(dialect="sqlite")
    con, other = connect(db), sqlite3.connect(":memory:", isolation_level=None)
    collation = rnd.choice(["", "collate nocase"])
    for text in (
        f"create table t (id integer primary key, c text {collation} unique, n int, m int)",
        "create unique index pairs on t (n, m)",
        *(["create unique index some on t (m) where n > 3"] if seed % 2 else []),
    ):
        con.execute(text)
        other.execute(text)
    for _ in range(30):
        text, found = drawn_upsert(rnd), list[Any]()
        for run in (other, con):
            try:
                cursor: Any = run.execute(text)
                found.append(sorted(cursor.fetchall() if cursor.description else [], key=repr))
            except (sqlite3.IntegrityError, con.IntegrityError):
                found.append(None)
        found = [None if rows is None else [tuple(row) for row in rows] for rows in found]
        assert found[0] == found[1], text
        query = "select * from t order by id"
        assert list(con.execute(query).fetchall()) == other.execute(query).fetchall(), text
    other.close()


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_conflicts_name_unique_columns_or_constraints(dialect: Any) -> None:
    db = Database(dialect=dialect)
    con = connect(db)
    con.execute("create table t (id int primary key, c text unique, n int default 7)")
    con.execute("insert into t (id, c) values (1, 'x')")
    text = "insert into t (id, c) values (2, 'x') on conflict (c) do update set n = t.n + 1"
    assert con.execute(f"{text} returning n, id as i").fetchall() == [(8, 1)]
    with con:
        con.begin()
        con.execute("insert into t values (3, 'y', 1)")  # which no view has yet
        con.execute("insert into t values (4, 'y', 5) on conflict (c) do update set n = excluded.n")
        assert con.execute("delete from t where id = 1 returning c").fetchall() == [("x",)]
        con.execute("insert into t values (5, 'x', 0) on conflict (c) do nothing")
    assert sorted(con.execute("select * from t").fetchall()) == [(3, "y", 5), (5, "x", 0)]
    with pytest.raises(con.IntegrityError, match=r"unique \(c\) has it twice"):
        con.execute("insert into t values (6, 'x', 0) on conflict (id) do nothing")
    with pytest.raises(
        con.ProgrammingError, match=r"names n, which .*\n.*\n.*\n.*\(id\) and \(c\)"
    ):
        con.execute("insert into t values (6, 'x', 0) on conflict (n) do nothing")
    if dialect == "postgres":
        con.execute("insert into t values (6, 'x', 0) on conflict on constraint t_c_key do nothing")
        with pytest.raises(con.ProgrammingError, match="t_c_key, t_pkey"):
            con.execute("insert into t values (6, 'x', 0) on conflict on constraint k do nothing")
        with pytest.raises(con.ProgrammingError, match="names a key"):
            con.execute("insert into t values (6, 'x', 0) on conflict do update set n = 1")
    with pytest.raises(con.ProgrammingError, match="cannot be evaluated"):
        con.execute("insert into t values (7, 'seven', 0) returning cast(c as int)")
    for refused in ("count(*)", "(select 1)", "row_number() over ()"):
        with pytest.raises(con.ProgrammingError):
            con.execute(f"delete from t returning {refused}")
    assert len(db.tables()[0]) == 2
    assert not db.views()
    con.execute("alter table t drop constraint t_c_key")
    with pytest.raises(con.ProgrammingError, match="not the key"):
        con.execute(text)
    db.verify()
