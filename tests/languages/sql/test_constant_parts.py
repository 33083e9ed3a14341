"""Constant parts of SQL are evaluated when a query is made; results and errors are the same."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any

import pytest

from optimizer.expr import Call, Constant, Lifted, walk
from optimizer.plan import Node
from optimizer.traverse import functions
from reactive import Database, PlanError
from reactive.languages.sql.postgres import times as of_postgres
from reactive.languages.sql.runtime import times, units
from reactive.languages.sql.terms import scope
from tests.budget import sampled
from tests.counted_calls import calls_of


@dataclass(frozen=True, slots=True)
class Line:
    id: int
    ship: dt.date
    at: dt.datetime
    price: int
    cost: Decimal
    name: str
    due: dt.date | None = None


PARAMETERS: dict[str, Any] = {
    "day": dt.date(1995, 3, 31),
    "moment": dt.datetime(1995, 3, 31, 12),
    "k": 40,
    "no": None,
}
CONDITIONS = {
    "duckdb postgres": (
        "ship < date '1994-01-01' + interval '1' year",
        "ship >= date '1996-02-29' - interval '1' year",
        "ship < date '1995-04-01' - interval '90' day",
        "ship < :day - interval '30' day",
        "ship < :day + interval '1' month",
        "ship + interval '1' month < :day + interval '2' month",
        "due < date '1994-01-01' + interval '1' year or due is null",
        "ship <= cast(:day - interval '1' month as date)",
        "at < :moment - interval '36' hour",
        "at < timestamp '1995-01-01 00:00:00' + interval '1' day",
        "at - interval '1' year < :moment",
        "ship = date '1995-01-01' - 5",
        "price > date '1995-01-01' - date '1994-12-01'",
        "price > extract(year from date '1995-01-01') - 1950",
        "price > :k + 1 and price < :k * 2",
        "cost between 0.06 - 0.01 and 0.06 + 40",
        "ship < date '9999-01-01' + interval '1000' year",
        "ship < date '9999-12-31' + interval '1' day or price > 50",
        "name = 'name ' || '1'",
        "ship in (date '1995-01-01', date '1995-01-01' + 1)",
        "case when price > :k then ship else date '1995-01-01' + 1 end < :day - interval '1' day",
    ),
    "duckdb": (
        "year(ship) = year(date '1994-01-01' + interval '1' year)",
        "date_trunc('year', ship) = date_trunc('year', date '1995-05-05')",
        "ship < :no + interval '1' day",
        "ship < make_date(1995, 2, 31)",
        "price > 2147483647 + 1",
        "date_diff('month', date '1995-01-31', ship) > date_diff('day', date '1995-01-01', :day)",
    ),
    "postgres": (
        "date_part('year', ship) = date_part('year', date '1994-01-01' + interval '1' year)",
        "ship < make_date(1995, 2, 31) or price > 50",
        "price > 2147483647 + 1",
        "price > 0.5 * 81",
    ),
    "sqlite": (
        "price > :k + 1",
        "cost > 0.06 + 1",
        "name = lower('NAME ') || '1'",
        "name < date('1994-01-01', '+1 year')",
    ),
}
CASES = [
    (dialect, condition)
    for dialects, conditions in CONDITIONS.items()
    for dialect in dialects.split()
    for condition in conditions
]


def drawn(random: Random, number: int) -> Line:
    """A line around the dates of the conditions."""
    day = dt.date(1994, 11, 1) + dt.timedelta(random.randrange(200))
    moment = dt.datetime(1995, 3, 20) + dt.timedelta(hours=random.randrange(400))
    due = random.choice([None, day + dt.timedelta(random.randrange(60))])
    cost = Decimal(random.randrange(300)) / 100
    return Line(number, day, moment, random.randrange(100), cost, f"name {number % 3}", due)


def made_of(dialect: Any, condition: str, on_error: Any) -> tuple[Database, Any, Any]:
    """A database, its table, and a view of the condition and of a column beside it."""
    db = Database(dialect=dialect)
    table = db.table(Line, name="lines")
    given = {name: value for name, value in PARAMETERS.items() if f":{name}" in condition}
    query = db.sql(f"select id, price, {condition} as found from lines where {condition}", **given)
    return db, table, query.materialize(on_error=on_error)


def history_of(dialect: str, condition: str, on_error: str) -> list[Any]:
    """The rows of a view after each commit of a drawn history, or the error of the commit."""
    _, table, view = made_of(dialect, condition, on_error)
    random, rows = Random(3), list[Any]()
    found: list[Any] = []
    for number in range(30):
        try:
            if number % 3 == 2:
                table.remove(rows.pop(random.randrange(len(rows))))
            elif number % 5 == 4:
                table.update(rows[0], replace(rows[0], price=random.randrange(100)))
                rows[0] = next(row for row in table if row.id == rows[0].id)
            else:
                rows.append(drawn(random, number))
                table.add(rows[-1])
            view.verify()
        except Exception as error:
            rows = list(table)
            found.append((type(error), str(error).partition("\n")[0]))
        found.append(sorted(view, key=repr))
    return found


@sampled
@pytest.mark.parametrize(("dialect", "condition"), CASES)
@pytest.mark.parametrize("on_error", ["drop", "raise"])
def test_folded_conditions_are_the_same(
    dialect: str, condition: str, on_error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded = history_of(dialect, condition, on_error)
    monkeypatch.setattr(scope, "with_folded_constants", lambda expr: expr)
    assert folded == history_of(dialect, condition, on_error)


def nodes_of(node: Node) -> list[Node]:
    return [node, *(inner for each in node.inputs() for inner in nodes_of(each))]


def functions_of(dialect: Any, condition: str) -> set[str]:
    """The names of the functions that the condition calls for each row."""
    db = Database(dialect=dialect)
    db.table(Line, name="lines")
    given = {name: value for name, value in PARAMETERS.items() if f":{name}" in condition}
    plan = db.sql(f"select id from lines where {condition}", **given).plan
    every = (function for node in nodes_of(plan) for function in functions(node))
    lifted = (function for function in every if isinstance(function, Lifted))
    calls = (part for each in lifted for part in walk(each.body) if isinstance(part, Call))
    constants = (call.function for call in calls if isinstance(call.function, Constant))
    return {getattr(each.value, "__name__", "") for each in constants}


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize(
    "condition",
    [
        "ship < date '1994-01-01' + interval '1' year",
        "ship < :day - interval '30' day",
        "ship < cast(:day - interval '1' month as date)",
        "price > date '1995-01-01' - date '1994-12-01'",
        "price > extract(year from date '1995-01-01')",
    ],
)
def test_no_constant_part_is_left_to_rows(dialect: str, condition: str) -> None:
    assert functions_of(dialect, condition) <= {"as_timestamp"} | {"Row", ""}


def test_part_that_raises_stays() -> None:
    assert "later" in functions_of("duckdb", "ship < date '9999-12-31' + interval '1' day")


# Units.


class Day(dt.date):
    """A date that no table of short functions is for."""


class Moment(dt.datetime):
    """A timestamp that no table of short functions is for."""


def moments() -> list[tuple[Any, Any]]:
    """Drawn dates and timestamps, and the same as instances of classes of their own."""
    random, found = Random(7), list[tuple[Any, Any]]()
    for year in (1, 2, 99, 100, 101, 1000, 1001, 1900, 1969, 1970, 2000, 2001, 2024, 9999):
        for month, day in ((1, 1), (12, 31), (random.randint(1, 12), random.randint(1, 28))):
            found.append((dt.date(year, month, day), Day(year, month, day)))
            clock = random.choice(
                [(0, 0, 0, 0), (23, 59, 59, 999_999), (random.randrange(24), 7, 8, 1_999)]
            )
            found.append((dt.datetime(year, month, day, *clock), Moment(year, month, day, *clock)))
    return found


def result_of(function: Any, *arguments: Any) -> Any:
    try:
        found = function(*arguments)
    except Exception as error:
        return type(error), str(error)
    is_moment = isinstance(found, dt.datetime)
    return (found.isoformat(), None) if is_moment else (found, type(found))


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (times.truncated, {*units.STARTS, "nonsense"}),
        (times.extracted, {*times.PARTS, "nonsense"}),
        (of_postgres.truncated, set(of_postgres.TRUNCATED)),
        (of_postgres.extracted, {*of_postgres.FIELDS, "nonsense"}),
        (of_postgres.field, {*of_postgres.FIELDS, "nonsense"}),
    ],
)
def test_short_functions_of_units_are_the_same(function: Any, names: set[str]) -> None:
    for name in names:
        for plain, other in moments():
            found, expected = result_of(function, name, plain), result_of(function, name, other)
            assert found == expected, (name, plain)


@pytest.mark.parametrize("name", sorted(units.STARTS))
def test_date_trunc_costs_few_calls(name: str) -> None:
    for moment in (dt.date(2024, 5, 6), dt.datetime(2024, 5, 6, 7, 8, 9, 10)):
        assert calls_of(partial(times.truncated, name, moment)) <= 9


@pytest.mark.parametrize(
    "query",
    [
        "select ntile(1 + 1) over (order by x), lag(x, 1 + 0, 0 - 1) over (order by x) from t",
        "select nth_value(x, 3 - 1) over (order by x) from t",
        "select sum(x) over (order by x rows between 1 + 0 preceding and current row) from t",
        "select quantile_cont(x, 0.25 + 0.25), string_agg(s, ',' || ' ' order by x) from t",
        "select max(x, 1 + 1), array_to_string([x, 1], ',' || ';') from t group by x",
        "select round(x * 1.55, 2 - 1), left(s, 3 - 2) from t limit 1 + 1 offset 2 - 2",
    ],
)
def test_arguments_may_be_constant_expressions(query: str) -> None:
    from tests.languages.sql.test_duckdb import assert_alike

    assert_alike(
        query, ["create table t (x int, s varchar)", "insert into t values (1, 'ab'), (3, 'c')"]
    )


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("select case when true then generate_series(1, 2) end", "may stand in case"),
        ("select sum(generate_series(1, 2))", "gives rows"),
        ("select 1 where generate_series(1, 2) = 1", "gives rows"),
    ],
)
def test_rows_of_a_function_in_the_place_of_a_value_are_refused(query: str, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        Database(dialect="postgres").sql(query)
