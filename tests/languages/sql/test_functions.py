"""Every function, operator, cast, aggregate and window function equals the databases."""

from __future__ import annotations

import os
import re
from random import Random
from typing import Any

import pytest

from reactive import Database, PlanError
from reactive.languages.sql import functions
from reactive.languages.sql.aggregates import kinds as aggregates
from reactive.languages.sql.postgres.functions import TABLE as of_postgres
from reactive.languages.sql.sqlite.functions import TABLE as of_sqlite
from tests.languages.sql.player import play
from tests.languages.sql.script import read
from tests.languages.sql.tpch import FOLDER

SCRIPTS = FOLDER.parent / "scripts"


@pytest.mark.long
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
        ("select round(a, 1, 2) from t", r"round\(\) takes 1 or 2 arguments, and got 3 at line 1"),
        ("select ceil() from t", r"ceil\(\) takes 1 argument, and got 0 at line 1"),
        ("select century(day, a) from t", r"century\(\) takes 1 argument, and got 2 at line 1"),
        ("select date_part(a) from t", r"date_part\(\) does not take these arguments at line 1"),
        ("select count(a, s) from t", r"count\(\) takes 0 or 1 argument, and got 2"),
        ("select rank(a) over (order by s) from t", r"rank\(\): its arguments are not supported"),
        ("select all from t order by all", "SELECT names no columns at line 1"),
        ("select gcd(a) from t", r"gcd\(\) takes 2 arguments, and got 1 at line 1"),
        ("select extract(yaer from day) from t", "no part 'YAER' of a time; did you mean 'year'"),
        ("select date_trunc('mnth', day) from t", "no unit of time 'MNTH'; did you mean 'month'"),
        ("select s + day from t", r"duckdb has no \+ for VARCHAR and DATE"),
        ("select cast(a as quaternion) from t", "no type"),
        ("select a from t where s < a", "cast\\(... as"),
        ("select now() from t", "clock of its database was not set at line 1, column 8"),
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


NAMES = {
    "duckdb": (*functions.NAMES, *aggregates.NAMES),
    "postgres": tuple(name for name in of_postgres if isinstance(name, str)),
    "sqlite": tuple(name for name in of_sqlite if isinstance(name, str)),
}
OF_COUNTS = re.compile(r"positional argument|takes .* given|missing \d")
FEW = 15
"""Names that are tried at each run; all with EXAMPLES=1."""


@pytest.mark.parametrize("dialect", NAMES)
def test_too_many_and_too_few_arguments_are_refused_when_the_query_is_made(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (i integer, s text, f double precision)")
    db.execute("insert into t values (3, 'ab', 1.5)")
    names, refused = sorted(NAMES[dialect]), 0
    chosen = names if os.environ.get("EXAMPLES") else Random().sample(names, min(FEW, len(names)))
    for name in chosen:
        for count in (0, 1, 3, 6):
            for column in "isf":
                text = f"select {name}({', '.join([column] * count)}) from t"
                try:
                    view = db.sql(text).materialize()
                except PlanError as error:
                    refused += 1
                    assert not OF_COUNTS.search(str(error)), text
                    continue
                with view:
                    told = [each.error.message for each in view.errors]
                    assert not any(map(OF_COUNTS.search, told)), (text, told)
    assert refused > len(chosen)


@pytest.mark.parametrize(
    "text",
    [
        "repeat(s, n)",
        "repeat('ab', 5000000000)",
        "lpad(s, n, 'b')",
        "rpad(s, n, 'long')",
        "replace(s, 'a', repeat('z', 90000000))",
        "1::bigint << n",
    ],
)
def test_a_text_or_number_too_large_is_an_error_and_not_made(text: str) -> None:
    db = Database()
    db.execute("create table t (s text, n bigint)")
    view = db.sql(f"select length(({text})::text) as x from t").materialize()
    db.execute("insert into t values ('aaaaaaaaaaaa', 3000000000)")
    assert list(view) == []
    ((error, _),) = view.errors.items()
    assert "too long" in str(error.error) or "out of range" in str(error.error)


WRONG = ("3", "'a'", "true", "2.5", "x'61'")
"""Constants of all dialects."""
TYPED = {
    "duckdb": ("date '2024-01-31'", "interval '1 day'", "[1, 2]", "{'a': 1}", "time '01:02:03'"),
    "postgres": ("date '2024-01-31'", "interval '1 day'", "array[1, 2]", "'a'::bytea"),
    "sqlite": (),
}
NAMES_OF = {
    "duckdb": functions.NAMES,
    "postgres": [name for name in of_postgres if isinstance(name, str)],
    "sqlite": [name for name in of_sqlite if isinstance(name, str)],
}


@pytest.mark.long
@pytest.mark.sampled
@pytest.mark.parametrize("engine", NAMES_OF)
@pytest.mark.parametrize("seed", range(25))
def test_constants_of_a_wrong_type_are_refused_or_taken(engine: Any, seed: int) -> None:
    """No function says at a row that a constant is of the wrong type."""
    random = Random(seed)
    every = (*WRONG, *TYPED[engine])
    for name in sorted(NAMES_OF[engine])[seed::25]:
        db = Database(dialect=engine)
        db.execute("create table t (x integer)")
        db.execute("insert into t values (1)")
        calls = [f"{name}({each})" for each in every]
        calls += [f"{name}({each}, {random.choice(every)})" for each in every]
        for call in calls:
            try:
                view = db.sql(f"select {call} as r from t").materialize()
            except PlanError:
                continue
            kinds = {error.error.kind for error in view.errors}
            assert kinds <= {"ValueError", "OverflowError", "ZeroDivisionError"}, call


@pytest.mark.parametrize(
    ("engine", "call", "message"),
    [
        ("duckdb", "array_min(3)", r"array_min\(\) takes no INTEGER at line 1, column 8"),
        ("duckdb", "array_min(a)", r"array_min\(\) takes no INTEGER"),
        ("duckdb", "century(3)", r"century\(\) takes no INTEGER"),
        ("duckdb", "sqrt('a')", r"sqrt\(\) takes DOUBLE, and 'a' is none"),
        ("duckdb", "year('abc')", r"year\(\) takes TIMESTAMP, and 'abc' is none"),
        ("duckdb", "abs('a')", r"abs\(\) takes no VARCHAR"),
        ("duckdb", "concat_ws([1], 'a')", r"concat_ws\(\) takes no INTEGER\[\]"),
        ("duckdb", "array_cat(3)", r"\(\) takes no INTEGER"),
        ("postgres", "sqrt('a')", r"sqrt\(\) takes DOUBLE, and 'a' is none at line 1, column 8"),
        ("postgres", "abs('a')", r"abs\(\) takes BIGINT, and 'a' is none"),
        ("postgres", "concat_ws(3, 'a')", r"postgres has no concat_ws\(integer, text\)"),
        ("postgres", "format(3)", r"postgres has no format\(integer\)"),
        ("postgres", "array_prepend(1, 2)", r"postgres has no array_prepend\(integer, integer\)"),
    ],
)
def test_a_wrong_type_is_told_when_the_query_is_made(engine: Any, call: str, message: str) -> None:
    db = Database(dialect=engine)
    db.execute("create table t (a integer)")
    with pytest.raises(PlanError, match=message):
        db.sql(f"select {call} as r from t")


@pytest.mark.parametrize("call", ["sqrt('4')", "year('2024-01-31')", "century(day)", "abs(a)"])
def test_constant_texts_are_read_as_the_type(db: Database, call: str) -> None:
    assert len(db.sql(f"select {call} as r from t where a = 4").materialize()) == 1


@pytest.mark.parametrize(
    ("encoding", "found"),
    [
        *(("latin9", "\u20ac"), ("ISO-8859-15", "\u20ac"), ("win1252", "\xa4")),
        *(("koi8", "\u2553"), ("a", "ValueError"), ("ascii", "ValueError")),
        ("euc_jp", "NotSupportedError"),
    ],
)
def test_encodings_of_one_byte_are_read_as_in_postgres(encoding: str, found: str) -> None:
    db = Database(dialect="postgres")
    db.execute("create table t (a text)")
    db.execute("insert into t values (:name)", name=encoding)
    view = db.sql(r"select convert_from('\xa4'::bytea, a) as c from t").materialize()
    assert [*(row.c for row in view), *(each.error.kind for each in view.errors)] == [found]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a[:b]", (1, 2)),
        ("a[:b][:1]", (1,)),
        ("a[b:]", (2, 3)),
        ("a[:last]", 1),  # the parameter is a place
    ],
)
def test_a_slice_ends_at_a_column(dialect: Any, text: str, found: Any) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (a int[], b int)")
    db.execute("insert into t values (array[1, 2, 3], 2)")
    parameters = {"last": 1} if "last" in text else {}
    view = db.sql(f"select {text} as c from t", **parameters)
    assert [row.c for row in view.materialize()] == [found]


@pytest.mark.parametrize(
    "call",
    [
        *("array_replace(a)", "array_replace(a, 1)", "array_replace(a, 1, 2, 3)"),
        *("array_position(a)", "array_remove(a)", "array_append(a)", "array_append(a, 1, 2)"),
    ],
)
def test_functions_of_arrays_take_as_many_arguments_as_in_postgres(call: str) -> None:
    db = Database(dialect="postgres")
    db.execute("create table t (a int[])")
    with pytest.raises(PlanError, match="postgres has no array_"):
        db.sql(f"select {call} from t")
