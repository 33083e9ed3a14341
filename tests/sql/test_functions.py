"""Every function, operator, cast, aggregate and window function is what the databases say."""

from __future__ import annotations

from random import Random

import pytest

from reactive import Database, PlanError
from reactive.sql import functions
from reactive.sql.aggregates import kinds as aggregates
from tests.sql.player import play
from tests.sql.script import read
from tests.sql.tpch import FOLDER

SCRIPTS = FOLDER.parent / "scripts"


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("functions", "duckdb"),
        ("functions_sqlite", "sqlite"),
        ("aggregates", "duckdb"),
        ("windows", "duckdb"),
        ("outer_only", "duckdb"),
        ("outer_only", "sqlite"),
    ],
)
def test_functions_are_what_databases_say(name: str, engine: str) -> None:
    report = play(read(SCRIPTS / f"{name}.test"), engine, Random(5), commits=18)
    assert report.queries >= 4
    assert not report.wrong and not report.refused and not report.empty, report


@pytest.fixture
def db() -> Database:
    made = Database()
    made.execute("create table t (id integer primary key, a integer, s varchar, day date)")
    made.execute("insert into t values (1, 4, 'x', '2024-05-06'), (2, null, null, null)")
    return made


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select uper(s) from t", "no function 'uper'; did you mean 'upper'. at line 1, column 8"),
        ("select\n  summ(a) from t", "no function 'summ'; did you mean 'sum'. at line 2, column 3"),
        ("select gcd(a) from t", r"gcd\(\) takes 2 arguments, and got 1 at line 1"),
        ("select extract(yaer from day) from t", "no part 'YAER' of a time; did you mean 'year'"),
        ("select date_trunc('mnth', day) from t", "no unit of time 'MNTH'; did you mean 'month'"),
        ("select s + day from t", "there is no \\+ for VARCHAR and DATE|there is no \\+ for"),
        ("select cast(a as quaternion) from t", "no type"),
        ("select a from t where s < a", "cast\\(... as"),
        ("select now() from t", "another time at each change"),
        ("select random() from t", "another value each time"),
        ("select lag(a, a) over (order by id) from t", "has to be a constant"),
        ("select quantile_cont(a, a) from t", "has to be constant"),
        ("select struct_pack(x := a).y from t", "no field 'y'"),
    ],
)
def test_what_there_is_not_is_refused_with_its_place(db: Database, text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        db.sql(text)


def test_what_raises_leaves_its_row_out_and_is_told() -> None:
    db = Database(dialect="postgres")
    db.execute("create table t (a integer not null)")
    view = db.sql("select 10 / a as x from t").materialize()
    db.execute("insert into t values (3), (0)")
    assert [row.x for row in view] == [3]
    assert len(view.errors) == 1
    db.execute("delete from t where a = 0")
    assert not list(view.errors)


@pytest.mark.parametrize(
    ("dialect", "expected"), [("duckdb", [3.5, float("inf")]), ("sqlite", [3, None])]
)
def test_division_is_of_the_dialect(dialect: str, expected: list[object]) -> None:
    db = Database(dialect=dialect)  # type: ignore[arg-type]
    db.execute("create table t (a integer not null)")
    view = db.sql("select 7 / a as x from t").materialize()
    db.execute("insert into t values (2), (0)")
    assert sorted((row.x for row in view), key=str) == sorted(expected, key=str)


def test_names_are_known_for_messages() -> None:
    assert {"upper", "coalesce", "date_trunc", "substring"} <= set(functions.NAMES)
    assert {"sum", "arg_max", "string_agg", "median"} <= set(aggregates.NAMES)
