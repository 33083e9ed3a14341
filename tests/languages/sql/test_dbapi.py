"""Connections of PEP 249: parameters, rows, transactions, errors; by pandas and SQLAlchemy."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import reactive.sql as module
from reactive import Database
from reactive.sql import connect, create_engine

PLACES = {
    "duckdb": [("?, ?, ?", list), ("$1, $2, $3", list), (":a, :b, :c", dict), ("$a,$b,$c", dict)],
    "postgres": [
        *(("%s, %s, %s", list), ("%(a)s,%(b)s,%(c)s", dict), (":a, :b, :c", dict)),
        *(("?, ?, ?", list), ("$a,$b,$c", dict), ("$1, $2, $3", list)),
    ],
    "sqlite": [("?, ?, ?", list), ("?1, ?2, ?3", list), (":a,:b,:c", dict), ("@a, $b, :c", dict)],
}
CASES = [(dialect, places, kind) for dialect, of in PLACES.items() for places, kind in of]


def towns(dialect: Any = "duckdb", **options: Any) -> Any:
    """Return a connection to a database with the table `towns`."""
    con = connect(Database(dialect=dialect), **options)
    con.db.execute("create table towns (name text primary key, people int, note text)")
    return con


@pytest.mark.parametrize(("dialect", "places", "kind"), CASES)
def test_parameters_have_names_or_places(dialect: str, places: str, kind: type) -> None:
    con = towns(dialect)
    for row in (("Bonn", 3, "? $1 :a %s"), ("Ulm", 1, None)):
        values = list(row) if kind is list else dict(zip("abc", row, strict=True))
        cur = con.execute(f"insert into towns values ({places})", values)
        assert (cur.rowcount, cur.description) == (1, None)
    assert con.execute("select * from towns order by name").fetchall() == [
        ("Bonn", 3, "? $1 :a %s"),
        ("Ulm", 1, None),
    ]


@pytest.mark.parametrize("dialect", PLACES)
def test_what_looks_like_a_parameter_in_a_text_or_remark_is_none(dialect: str) -> None:
    con = towns(dialect)
    text = "select '? $1 :n', name as \"?\" from towns /* ? :n $2 */ where people > ? -- ?"
    con.db.execute("insert into towns values ('Bonn', 3, 'x')")
    assert con.execute(text, [2]).fetchall() == [("? $1 :n", "Bonn")]
    if dialect != "sqlite":
        assert con.execute("select $$?$1$$ || $a$'?$a$ || ? as t", ["x"]).fetchall() == [
            ("?$1'?x",)
        ]


def test_a_percent_sign_is_doubled_beside_parameters_only() -> None:
    con = towns("postgres")
    con.execute("insert into towns values ('Bonn', 3, '100%')")
    assert con.execute("select note like '%0%' as l from towns").fetchone() == (True,)
    asked = con.execute("select name from towns where note like '%%0%%' and people = %s", [3])
    assert asked.fetchall() == [("Bonn",)]
    with pytest.raises(module.ProgrammingError, match="is no parameter"):
        con.execute("select '100%' || %s", ["x"])


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        *(("select ?", None), ("select ?", []), ("select ?", [1, 2]), ("select 1", [1])),
        *(("select :n", {}), ("select :n", {"m": 1}), ("select ?", "x"), ("select %s", [1])),
        *(
            ("selec 1", None),
            ("", None),
            ("select a from nowhere", None),
            ("select 1; select 2", None),
        ),
        *(("vacuum", None), ("select ?", 1), ("select ?", 0), ("select ?", {1})),
    ],
)
def test_a_wrong_text_or_number_of_parameters_is_told(text: str, parameters: Any) -> None:
    con = towns()
    cur = con.execute("select 1 as n")
    with pytest.raises(module.ProgrammingError):
        cur.execute(text, parameters)
    assert (cur.rowcount, cur.description) == (-1, None)
    assert con.execute("select 2 as n").fetchall() == [(2,)]


def test_rows_are_fetched_one_by_one_in_part_and_all() -> None:
    cur = connect(Database()).execute("select * from generate_series(1, 9) as s(n) order by n")
    assert (cur.rowcount, cur.fetchone(), cur.fetchmany()) == (9, (1,), [(2,)])
    assert cur.fetchmany(2) == [(3,), (4,)]
    cur.arraysize = 3
    assert cur.fetchmany() == [(5,), (6,), (7,)]
    assert next(cur) == (8,)
    assert [row.n for row in cur] == [9]
    assert (cur.fetchone(), cur.fetchmany(5), cur.fetchall()) == (None, [], [])
    cur.execute("create table t (n int)")
    with pytest.raises(module.ProgrammingError, match="no rows to fetch"):
        cur.fetchone()


def test_columns_are_described_by_name_type_and_null() -> None:
    con = connect(Database())
    con.execute("create table t (a int not null, b decimal(8, 2), c text, d timestamptz, e blob)")
    found = con.execute("select a, b, c, d, e, count(*) over () as n from t").description
    assert found is not None
    assert [(name, kind, nullable) for name, kind, *_, nullable in found] == [
        *(("a", "INTEGER", False), ("b", "DECIMAL(8,2)", True), ("c", "VARCHAR", True)),
        *(("d", "TIMESTAMP WITH TIME ZONE", True), ("e", "BLOB", True), ("n", "BIGINT", False)),
    ]
    kinds = ["NUMBER", "NUMBER", "STRING", "DATETIME", "BINARY", "NUMBER"]
    every = ("NUMBER", "STRING", "DATETIME", "BINARY", "ROWID")
    for column, kind in zip(found, kinds, strict=True):
        assert [name for name in every if getattr(module, name) == column[1]] == [kind]
    assert {len(column) for column in found} == {7}


def test_with_begins_a_query_or_a_statement() -> None:
    con = towns()
    made = con.execute(
        "with new as (select 'Bonn' as name, 3 as people) insert into towns select *, null from new"
    )
    assert made.rowcount == 1
    made = con.execute(
        "-- one\nwith u as (select 'Ulm' as n) insert into towns select n, 1, n from u"
    )
    assert (made.rowcount, con.execute("delete from towns where name = 'Ulm'").rowcount) == (1, 1)
    asked = con.execute("/* all */ with t as (select * from towns) select count(*) as n from t")
    assert asked.fetchall() == [(1,)]
    assert con.execute("(select 1 as n) union all (select 2)").rowcount == 2
    assert con.execute("from towns").rowcount == con.execute("values (1)").rowcount == 1


def test_a_statement_is_a_commit_unless_a_transaction_is_open() -> None:
    con = towns()
    con.execute("insert into towns values ('Bonn', 3, null)")
    assert con.db.version == 1
    con.execute("begin")
    con.execute("insert into towns values ('Ulm', 1, null)")
    assert (con.in_transaction, con.db.version) == (True, 1)
    with pytest.raises(module.OperationalError, match="open already"):
        con.begin()
    with pytest.raises(module.OperationalError, match="does not see"):
        con.execute("select * from towns")
    con.execute("commit")
    assert (con.in_transaction, con.db.version) == (False, 2)
    with con:
        con.begin()
        con.execute("delete from towns")
    assert con.execute("from towns").rowcount == 0


@pytest.mark.parametrize("how", ["rollback()", "text", "block", "close", "del"])
def test_what_is_not_committed_is_undone(how: str) -> None:
    con = towns(autocommit=False)
    db = con.db
    con.execute("insert into towns values ('Bonn', 3, null)")
    assert con.in_transaction
    con.commit()
    con.execute("delete from towns")
    if how == "rollback()":
        con.rollback()
    elif how == "text":
        con.execute("rollback")
    elif how == "block":
        with pytest.raises(KeyError), con:
            raise KeyError
    elif how == "close":
        con.close()
    else:
        del con
    assert len(db.tables()[0]) == 1
    db.execute("delete from towns")  # nothing holds the database
    assert len(db.tables()[0]) == 0


@pytest.mark.parametrize(
    "text",
    [
        *("rollback to a", "rollback to savepoint a", "savepoint a", "release a"),
        *("commit and chain", "begin read only", "commit; select 1", "end a"),
    ],
)
def test_a_part_of_a_transaction_is_not_ended(text: str) -> None:
    con = towns()
    con.begin()
    con.execute("insert into towns values ('Bonn', 3, null)")
    with pytest.raises(module.NotSupportedError, match="there are no savepoints"):
        con.execute(text)
    assert con.in_transaction
    con.execute(" -- now\n Commit work ; -- done")
    assert con.execute("from towns").rowcount == 1


@pytest.mark.parametrize(
    "begin", ["BEGIN", "begin transaction;", "start transaction", "begin immediate", "begin work"]
)
@pytest.mark.parametrize("end", ["abort", "rollback transaction", "ROLLBACK /* all */"])
def test_transactions_are_opened_and_undone_by_other_words(begin: str, end: str) -> None:
    con = towns()
    con.execute(begin)
    con.execute("insert into towns values ('Bonn', 3, null)")
    con.execute(end)
    assert not con.in_transaction
    assert con.execute("from towns").rowcount == 0


def test_another_thread_does_not_end_a_transaction() -> None:
    con = towns()
    con.begin()
    con.execute("insert into towns values ('Bonn', 3, null)")
    refused = []

    def end() -> None:
        for use in (con.commit, con.rollback, lambda: con.execute("from towns")):
            with pytest.raises(module.ProgrammingError, match="another thread has opened"):
                use()
            refused.append(use)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert (len(refused), con.in_transaction, con.db.version) == (3, True, 0)
    con.rollback()
    assert con.execute("from towns").rowcount == 0


def test_a_connection_changes_nothing_in_the_transaction_of_another() -> None:
    own = towns(autocommit=False)
    others = [connect(own.db), connect(own.db, autocommit=False)]
    own.execute("insert into towns values ('Bonn', 3, null)")
    for other in others:
        for use in (
            other.begin,
            lambda con=other: con.execute("delete from towns"),
            lambda con=other: con.execute("create table more (a int)"),
            lambda con=other: con.cursor().executemany("delete from towns where name = ?", [("",)]),
        ):
            with pytest.raises(module.OperationalError, match="another connection of this thread"):
                use()
        other.rollback()
    own.commit()
    assert [other.execute("from towns").rowcount for other in others] == [1, 1]
    own.execute("delete from towns")
    del own
    others[0].execute("insert into towns values ('Ulm', 1, null)")
    assert others[1].execute("from towns").rowcount == 2


@pytest.mark.parametrize("db", ["shop.db", None, "sqlite://"])
def test_a_connection_is_one_to_a_database(db: Any) -> None:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    for make in (connect, create_engine):
        with pytest.raises(module.InterfaceError, match="a Database is needed, not"):
            make(db)


def test_tables_are_made_and_dropped_beside_transactions() -> None:
    con = towns(autocommit=False)
    con.execute("create table more (a int)")
    assert not con.in_transaction
    con.execute("insert into more values (1)")
    con.rollback()
    assert con.execute("from more").rowcount == 0
    con.execute("drop table more")
    assert not con.in_transaction


def test_autocommit_is_not_changed_inside_a_transaction() -> None:
    con = towns()
    assert con.autocommit
    con.begin()
    with pytest.raises(module.ProgrammingError, match="transaction is open"):
        con.autocommit = False
    con.rollback()
    con.autocommit = False
    con.execute("insert into towns values ('Bonn', 3, null)")
    assert con.in_transaction
    con.rollback()


def test_many_sets_of_parameters_are_one_commit() -> None:
    con = towns()
    cur = con.cursor().executemany(
        "insert into towns values (?, ?, ?)", [("a", 1, None), ("b", 2, None)]
    )
    assert (cur.rowcount, con.db.version) == (2, 1)
    with pytest.raises(module.IntegrityError, match="key is taken"):
        cur.executemany("insert into towns values (?, ?, ?)", [("c", 1, None), ("b", 2, None)])
    assert con.execute("from towns").rowcount == 2
    with pytest.raises(module.ProgrammingError, match="not a query"):
        cur.executemany("select ?", [(1,)])
    assert cur.executemany("delete from towns where name = ?", []).rowcount == 0


def test_errors_are_those_of_the_standard_with_the_cause() -> None:
    con = towns("postgres")
    con.execute("insert into towns values ('Bonn', 0, 'x')")
    for text, kind in [
        ("select 1 / people from towns", "DataError"),
        ("insert into towns values ('Bonn', 1, 'y')", "IntegrityError"),
        ("update nowhere set a = 1", "ProgrammingError"),
    ]:
        with pytest.raises(getattr(module, kind)) as told:
            con.execute(text)
        assert told.value.__cause__ is not None
        assert type(told.value).__name__ == kind
        assert issubclass(getattr(con, kind), module.DatabaseError)
    with pytest.raises(module.NotSupportedError, match="no procedure"):
        con.cursor().callproc("f")
    for name in ("Warning", "Error", "InterfaceError", "DatabaseError", "InternalError"):
        assert issubclass(getattr(module, name), Exception)
        assert getattr(con, name) is getattr(module, name)


def test_what_is_closed_is_refused() -> None:
    con = towns()
    cur = con.execute("select 1 as n")
    cur.close()
    for use in (cur.fetchone, lambda: cur.execute("select 1")):
        with pytest.raises(module.InterfaceError, match="cursor is closed"):
            use()
    other = con.execute("select 1 as n")
    con.close()
    con.close()
    for use in (con.cursor, con.commit, con.rollback, con.begin, other.fetchall):
        with pytest.raises(module.InterfaceError, match="connection is closed"):
            use()


def test_other_threads_write_after_the_transaction() -> None:
    con = towns()
    con.begin()
    con.execute("insert into towns values ('Bonn', 3, null)")
    done: list[int] = []

    def write() -> None:
        done.append(con.db.execute("insert into towns values ('Ulm', 1, null)"))

    other = threading.Thread(target=write)
    other.start()
    other.join(0.05)
    assert not done
    con.commit()
    other.join(30)
    assert done == [1]
    assert con.execute("from towns").rowcount == 2


def test_the_module_has_the_names_of_the_standard() -> None:
    assert (module.apilevel, module.threadsafety, module.paramstyle) == ("2.0", 1, "named")
    assert module.DateFromTicks(86_400) == module.Date(1970, 1, 2)
    assert module.TimestampFromTicks(60) == module.Timestamp(1970, 1, 1, 0, 1)
    assert module.TimeFromTicks(60) == module.Time(0, 1)
    assert module.Binary(b"x") == b"x"
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("dialect", PLACES)
def test_pandas_asks_and_writes(dialect: str) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    con = towns(dialect)
    con.db.execute("insert into towns values ('Bonn', 3, 'x'), ('Ulm', 1, null)")
    engine = create_engine(con.db)
    asked = pandas.read_sql(
        "select name, people from towns where people > :n", engine, params={"n": 2}
    )
    assert asked.to_dict("records") == [{"name": "Bonn", "people": 3}]
    assert list(pandas.read_sql_table("towns", engine).columns) == ["name", "people", "note"]
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", None], "c": [1.5, 2.5], "d": [True, False]})
    frame.to_sql("frames", engine, index=False)
    found = con.execute("select a, b, c, d from frames order by a").fetchall()
    assert found == [(1, "x", 1.5, True), (2, None, 2.5, False)]
    with pytest.raises(ValueError, match="exists"):
        frame.to_sql("frames", engine, index=False)
    frame.to_sql("frames", engine, index=False, if_exists="append")
    assert (
        con.execute("from frames" if dialect == "duckdb" else "select * from frames").rowcount == 4
    )
    frame.to_sql("frames", engine, index=False, if_exists="replace")
    assert con.execute("select * from frames").rowcount == 2


def test_an_engine_of_sqlalchemy_commits_undoes_and_looks_up() -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    con = towns()
    engine = create_engine(con.db)
    with engine.begin() as own:
        own.execute(
            sqlalchemy.text("insert into towns values (:n, :p, null)"),
            [{"n": "Bonn", "p": 3}, {"n": "Ulm", "p": 1}],
        )
    with engine.connect() as own:
        own.execute(sqlalchemy.text("delete from towns"))
    with engine.connect() as own, pytest.raises(sqlalchemy.exc.IntegrityError):
        own.execute(sqlalchemy.text("insert into towns values ('Bonn', 1, null)"))
    assert con.execute("from towns").rowcount == 2
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as own:
        own.execute(sqlalchemy.text("update towns set people = 2 where name = 'Bonn'"))
        asked = own.execute(sqlalchemy.text("select people from towns where name = 'Bonn'"))
        assert asked.scalar() == 2
    look = sqlalchemy.inspect(engine)
    assert look.get_table_names() == ["towns"]
    columns = look.get_columns("towns")
    assert [(c["name"], str(c["type"]), c["nullable"]) for c in columns] == [
        *(("name", "VARCHAR", False), ("people", "BIGINT", True), ("note", "VARCHAR", True)),
    ]
    table = sqlalchemy.Table("towns", sqlalchemy.MetaData(), autoload_with=engine)
    query = sqlalchemy.select(table.c.name).where(table.c.people > 1).order_by(table.c.name)
    with engine.connect() as own:
        assert own.execute(query).scalars().all() == ["Bonn"]


@pytest.mark.parametrize("dialect", PLACES)
def test_tables_of_sqlalchemy_are_made_with_constraints(dialect: Any) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    engine = create_engine(Database(dialect=dialect))
    meta, integer = sqlalchemy.MetaData(), sqlalchemy.Integer
    key = sqlalchemy.Column("id", integer, primary_key=True)
    name = sqlalchemy.Column("name", sqlalchemy.String(20), unique=True)
    parents = sqlalchemy.Table("p", meta, key, name, sqlalchemy.CheckConstraint("id > 0"))
    children = sqlalchemy.Table(
        *("c", meta, sqlalchemy.Column("id", integer, primary_key=True)),
        sqlalchemy.Column("of", sqlalchemy.ForeignKey("p.id"), index=True),
        sqlalchemy.Column("n", integer, server_default="3"),
    )
    meta.create_all(engine)
    with engine.begin() as con:
        con.execute(parents.insert(), [{"id": 1, "name": "x"}, {"id": 2, "name": "y"}])
        con.execute(children.insert().values(id=1, of=2))
    for wrong in (
        parents.insert().values(id=0, name="z"),
        parents.insert().values(id=3, name="x"),
        children.insert().values(id=3, of=9),
        parents.delete(),
    ):
        with pytest.raises(sqlalchemy.exc.IntegrityError), engine.begin() as con:
            con.execute(wrong)
    with engine.connect() as con:
        asked = sqlalchemy.select(parents.c.name, children.c.n).join(children)
        assert con.execute(asked).all() == [("y", 3)]
        con.execute(sqlalchemy.text("create view v as select id from p"))
    look = sqlalchemy.inspect(engine)
    assert (look.get_table_names(), look.get_view_names()) == (["p", "c"], ["v"])
    assert [found["column_names"] for found in look.get_unique_constraints("p")] == [["name"]]
    assert [found["sqltext"] for found in look.get_check_constraints("p")] == ["id > 0"]
    assert look.get_indexes("p") == []
    with pytest.raises(sqlalchemy.exc.NoSuchTableError):
        sqlalchemy.Table("nope", sqlalchemy.MetaData(), autoload_with=engine)
    with engine.begin() as con:
        con.execute(sqlalchemy.text("drop view v"))
    meta.drop_all(engine)
    assert sqlalchemy.inspect(engine).get_table_names() == []


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_an_inspector_looks_into_schemas(dialect: Any) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    db = Database(dialect=dialect)
    for text in (
        "create schema app",
        "create table app.p (id int primary key, name text default 'x')",
        "create table c (id int primary key, of int references app.p(id))",
        "create index by_name on app.p (name)",
        "create view app.v as select id from app.p",
    ):
        db.execute(text)
    engine = create_engine(db)
    look = sqlalchemy.inspect(engine)
    usual = "public" if dialect == "postgres" else "main"
    assert look.get_schema_names() == ["app", usual]
    assert [look.get_table_names(schema=s) for s in (None, "app", usual)] == [["c"], ["p"], ["c"]]
    assert (look.get_view_names(), look.get_view_names(schema="app")) == ([], ["v"])
    assert look.get_view_definition("v", schema="app") == "SELECT id FROM app.p"
    assert look.has_table("p", schema="app") and not look.has_table("p")
    assert look.get_columns("p", schema="app")[1]["default"].startswith("'x'")
    assert look.get_indexes("p", schema="app")[0]["column_names"] == ["name"]
    [key] = look.get_foreign_keys("c")
    assert (key["referred_schema"], key["referred_table"]) == ("app", "p")
    tables = sqlalchemy.MetaData()
    tables.reflect(engine, schema="app")
    with engine.begin() as con:
        con.execute(tables.tables["app.p"].insert().values(id=1, name="y"))
    with engine.connect() as con:
        assert con.execute(sqlalchemy.select(tables.tables["app.p"].c.name)).all() == [("y",)]
