"""Queries and statements of the default dialect have the results of DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any, Literal

import pytest
from sqlglot import exp

from reactive import Database, PlanError
from reactive.languages.sql.terms.scope import Scope
from tests.budget import TIMES, drawing
from tests.languages.sql import duckdb_cases
from tests.languages.sql.duckdb_cases import GROUPS, is_known
from tests.languages.sql.oracles import DuckDB, Refused
from tests.languages.sql.postgres_player import Played, play

NUMBERS = "(values (1), (3), (2), (null), (3)) t(x)"


def both(text: str, statements: Sequence[str] = ()) -> tuple[list[Any], list[Any]]:
    """The rows of a query here and in DuckDB, after some statements."""
    engine, db = DuckDB(), Database()
    engine.run("set timezone = 'UTC'")
    for statement in statements:
        engine.run(statement)
        db.execute(statement)
    view = db.sql(text).materialize()
    assert not list(view.errors)
    return [tuple(row) for row in view], engine.ask(text)


def assert_alike(text: str, statements: Sequence[str] = ()) -> None:
    mine, theirs = both(text, statements)
    assert sorted(mine, key=repr) == sorted(map(_in_utc, theirs), key=repr)


def _in_utc(row: tuple[Any, ...]) -> tuple[Any, ...]:
    from datetime import UTC, datetime

    def plain(value: Any) -> Any:
        if isinstance(value, tuple):
            return _in_utc(value)
        is_zoned = isinstance(value, datetime) and value.tzinfo is not None
        return value.astimezone(UTC) if is_zoned else value

    return tuple(map(plain, row))


INTEGERS = {
    name: bits
    for bits, names in {
        8: ("tinyint", "utinyint"),
        16: ("smallint", "usmallint"),
        32: ("integer", "uinteger"),
        64: ("bigint", "ubigint"),
        128: ("hugeint", "uhugeint"),
    }.items()
    for name in names
}


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_have_the_range_of_their_type(kind: str) -> None:
    bits = INTEGERS[kind]
    ends = (0, 1 << bits) if kind.startswith("u") else (-(1 << bits - 1), 1 << bits - 1)
    near = [end + step for end in ends for step in (-1, 0, 1)]
    numbers = [n for n in near if -(1 << 127) <= n < 1 << 127]
    forms = [f"'{n}'" for n in near] + [f"'{n}'::hugeint" for n in numbers]
    forms += ["1.5", "-0.5", "2.5::double", "'2.5'", "true", "'x'", "1e40::double", "'nan'::double"]
    forms += [f"{f}::{other}" for f in ("100", "1") for other in INTEGERS]
    assert_alike(f"select {', '.join(f'try_cast({form} as {kind})' for form in forms)}")


@pytest.mark.parametrize("kind", ["tinyint", "usmallint", "integer", "decimal(4, 1)"])
def test_a_cast_out_of_range_is_an_error_of_its_row(kind: str) -> None:
    db = Database()
    db.execute("create table t (a hugeint)")
    view = db.sql(f"select a::{kind} as x from t").materialize()
    db.execute("insert into t values (7), (99999999999), (-99999999999), (null)")
    assert sorted((row.x for row in view), key=str) == [7, None]
    assert len(view.errors) == 2


def test_values_that_are_inserted_have_the_range_of_their_column() -> None:
    db = Database()
    db.execute("create table t (id integer primary key, a tinyint)")
    db.execute("insert into t values (1, 100)")
    for statement in ("insert into t values (2, 300)", "insert into t select 2, 300"):
        with pytest.raises(Exception, match="300 is out of the range of TINYINT"):
            db.execute(statement)
    with pytest.raises(Exception, match="200 is out of the range of TINYINT"):
        db.execute("update t set a = a + 100")
    assert [tuple(row) for row in db.sql("select * from t").materialize()] == [(1, 100)]


@pytest.mark.parametrize(
    "expression",
    [
        "cast({'a': 1, 'b': 2} as struct(b int, a int))",
        "cast({'a': 1} as struct(a int, b varchar))",
        "cast({'a': 1, 'c': 3} as struct(a varchar))",
        "cast({'A': 1, 'b': 2} as struct(a int))",
        "cast(row(1, 2) as struct(a varchar, b int))",
        "cast([{'a': 1, 'b': '2'}] as struct(b int, a varchar)[])",
        "cast({'a': {'x': 1}} as struct(a struct(y int, x varchar)))",
        "try_cast({'a': 'x', 'b': '4'} as struct(a int, b int))",
        "try_cast(['1', 'x', null] as int[])",
        "cast({'a': null, 'b': 2} as struct(b int, a int))",
        "cast(null as struct(a int))",
    ],
)
def test_structs_are_cast_by_the_names_of_their_fields(expression: str) -> None:
    assert_alike(f"select {expression} as x")


@pytest.mark.parametrize(
    "expression",
    [
        "[a] || [null]",
        "cast([null] as timestamptz[])",
        "cast(['2024-01-01 10:00+02'] as timestamptz[])",
        "cast('[2024-01-01 00:00:00+01]' as timestamptz[])",
        "cast([timestamp '2024-01-01'] as timestamptz[])",
        "cast([a] as varchar[])",
        "cast([a] as date[])",
        "cast({'v': a} as struct(v date))",
    ],
)
def test_instants_inside_of_arrays_and_structs_are_cast(expression: str) -> None:
    created = "create table t (a timestamptz)"
    both_rows = both(
        f"select {expression} as x from t",
        [created, "insert into t values ('2024-01-31 12:00:00+02')"],
    )
    mine, theirs = ([_in_utc(row) for row in rows] for rows in both_rows)
    assert mine == theirs


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("cast({'x': 1} as struct(a int))", "has no field 'a' at line 1, column"),
        ("cast(row(1) as struct(a int, b int))", "a row of 1 values cannot be a struct of 2"),
    ],
)
def test_structs_without_a_common_field_are_not_cast(expression: str, message: str) -> None:
    with pytest.raises(Refused):
        DuckDB().ask(f"select {expression}")
    with pytest.raises(PlanError, match=message):
        Database().sql(f"select {expression}")


@pytest.mark.long
@pytest.mark.parametrize("over", ["order by x desc", "order by x", "order by -x nulls first"])
@pytest.mark.parametrize(
    "call",
    [
        "list(x)",
        "list(distinct x)",
        "list(x) filter (where x > 1)",
        "list(x order by x)",
        "list(x order by x desc nulls first)",
        "string_agg(x::varchar, '-')",
        "first(x)",
        "last(x)",
        "any_value(x)",
        "arg_max(x, -x)",
    ],
)
def test_values_of_a_window_come_in_its_order(call: str, over: str) -> None:
    assert_alike(f"select x, {call} over ({over}) as v from {NUMBERS}")
    frame = "rows between 1 preceding and 1 following"
    assert_alike(f"select x, {call} over (partition by x > 1 {over} {frame}) as v from {NUMBERS}")


@pytest.mark.long
@pytest.mark.parametrize("rows", ["select 1 as x where false", "select 1 as x", "select null as x"])
@pytest.mark.parametrize(
    "query",
    [
        "count(*), sum(x) from t group by ()",
        "1 from t group by ()",
        "count(*) from t group by () having count(*) > 1",
        "count(*) from t group by () having count(*) < 1",
        "x, count(*) from t group by grouping sets ((x), ())",
        "x, count(*), grouping(x) from t group by rollup (x)",
        "x, count(*) from t group by x, ()",
        "count(*) from t group by (), ()",
        "count(*) from t group by grouping sets ((), ())",
        "count(*) from t group by all",
        "max(x) from t group by all",
    ],
)
def test_groups_by_nothing_have_one_row(query: str, rows: str) -> None:
    assert_alike(f"with t as ({rows}) select {query}")


ENDS = {
    "date": ("date '2024-01-31'", "date '2024-05-30'"),
    "timestamp": ("timestamp '2024-01-31 12:30:00'", "timestamp '2024-03-31 12:30:00'"),
    "instant": ("timestamptz '2024-03-30 01:30+00'", "timestamptz '2024-04-02 01:30+00'"),
    "mixed": ("date '2024-02-27'", "timestamp '2024-03-01'"),
    "equal": ("date '2024-02-27'", "date '2024-02-27'"),
    "none": ("timestamp '2024-01-01'", "null"),
    "integer": ("3", "11"),
}
STEPS = (
    *("interval 1 day", "interval 1 month", "interval '36 hours'", "interval '1 month 1 day'"),
    *("interval '0 day'", "null"),
)


@pytest.mark.long
@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("function", ["range", "generate_series"])
def test_series_are_those_of_duckdb(function: str, ends: str) -> None:
    start, end = ENDS[ends]
    integers = ends == "integer"
    for step in ("1", "4", "-1", "0", "null") if integers else STEPS:
        assert_alike(f"select {function}({start}, {end}, {step}) as x")
        assert_alike(f"select {function}({end}, {start}, {step}) as x")
        if not integers and step != "null":
            assert_alike(f"select {function}({end}, {start}, {step} * -1) as x")
        if "0" not in (step, step[10:11]):
            assert_alike(f"select x from {function}({start}, {end}, {step}) t(x)")


def test_a_series_is_no_longer_than_a_limit() -> None:
    for text in (
        "select * from range(10000000000000) limit 3",
        "select x * 2 as y from range(10000000000000) t(x) limit 3 offset 4",
        "select x from range(100, -100000000000000, -7) t(x) limit 3",
        "select x from generate_series(timestamp '2024-01-01', timestamp '9999-01-01',"
        " interval '1 microsecond') t(x) limit 2",
    ):
        assert_alike(text)
    view = Database().sql("select count(*) as n from range(10000000000000) limit 3").materialize()
    assert "a series of more than 10,000,000 elements" in str(list(view.errors))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select range(1.5, 3)", r"no range of DECIMAL\(2,1\), INTEGER"),
        ("select range(date '2024-01-01', date '2024-01-03')", "no range of DATE, DATE"),
        ("select range(time '10:00', time '12:00', interval 1 hour)", "no range of TIME, TIME"),
        ("select * from range(0, 5, 0)", "step of a series in FROM cannot be 0"),
    ],
)
def test_series_that_duckdb_has_not_are_refused(text: str, message: str) -> None:
    with pytest.raises(Refused):
        DuckDB().ask(text)
    with pytest.raises(PlanError, match=message):
        Database().sql(text)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz", "time"])
def test_times_have_a_mean_and_quantiles(kind: str) -> None:
    moments = "('1960-01-01 00:00:00.000001'), ('1970-03-04 23:00'), ('2024-01-31 10:00:00.5')"
    rows = f"(select v::timestamp::{kind} as x from (values {moments}, (null)) t(v))"
    rows = f"(select *, row_number() over (order by x) as n from {rows})"
    calls = ["avg(x)", "avg(distinct x)", "avg(x) filter (where n < 3)", "min(x)", "max(x)"]
    calls += ["median(x)", "quantile_cont(x, 0.25)", "quantile_disc(x, 0.5)", "list(x order by x)"]
    for call in calls:
        assert_alike(f"select {call} as v from {rows}")
    assert_alike(f"select n, avg(x) over (order by n) as v from {rows}")
    assert_alike(f"select avg(x) as v from {rows} where false")


def test_a_mean_of_times_follows_its_rows() -> None:
    db = Database()
    db.execute("create table t (id integer primary key, at timestamp)")
    view = db.sql("select avg(at) as x from t").materialize()
    db.execute("insert into t values (1, '2024-01-01'), (2, '2024-01-03'), (3, null)")
    assert str(view.value.x) == "2024-01-02 00:00:00"
    db.execute("delete from t where id = 1")
    assert str(view.value.x) == "2024-01-03 00:00:00"
    db.execute("delete from t")
    assert view.value.x is None
    with pytest.raises(PlanError, match="postgres has no avg of DATE"):
        Database(dialect="postgres").sql("select avg(date '2024-01-01')")


@pytest.mark.parametrize(
    "query",
    [
        "select x from t order by x desc limit 2",
        "select 1 union select x from t order by 1 desc",
        "select x from t union all select 7",
        "select x from t except select 3 order by x",
        "select x from t intersect all select 3",
        "(select x from t order by x limit 1) union all (select 9 limit 1) order by 1",
        "select 1 where false union select 2 where false",
        "values (1), (2)",
    ],
)
def test_arrays_are_made_of_queries_of_any_form(query: str) -> None:
    assert_alike(f"with t as (select * from {NUMBERS}) select list_sort(array({query})) as x")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["timestamp_s", "timestamp_ms", "timestamp_ns"])
def test_timestamps_have_the_digits_of_their_type(kind: str) -> None:
    texts = [f"{y}-05-06 10:00:{s}" for y in (1960, 2024) for s in ("00.5", "01.4995", "01.1245")]
    for text in texts:
        assert_alike(f"select '{text}'::{kind} as a, timestamp '{text}'::{kind} as b")
    statements = [f"create table t (a {kind})", f"insert into t values ('{texts[1]}'), (null)"]
    assert_alike("select a, a + interval 1 day as b, a > timestamp '2000-01-01' from t", statements)


MADE = [
    "create table t (id int primary key, a int default 5, b int)",
    "insert into t values (1, 1, 1), (2, 2, 2)",
]


@pytest.mark.long
@pytest.mark.parametrize(
    "statement",
    [
        "insert or replace into t (id, b) values (1, 9), (3, 8)",
        "insert or replace into t (id) values (2), (4)",
        "insert or replace into t values (2, 7, null), (5, 5, 5)",
        "insert or replace into t (b, id) select 70 + x, x from range(4) r(x)",
        "insert or ignore into t (id, b) values (1, 9), (3, 8)",
        "insert into t (id, b) values (1, 7), (3, 3) on conflict do update set b = excluded.b",
        "insert into t (id, b) values (1, 77) on conflict do update set a = excluded.a",
        "insert into t (id) values (1) on conflict (id) do update set b = 3 where t.a > 1000",
        "insert into t (id, a) values (2, 7), (6, 7) on conflict do nothing",
        "insert into t by name select 7 as b, 4 as id",
        "insert into t by name select 4 as ID, null as a",
        "insert or replace into t by name select 2 as id, 44 as a",
        "insert into t (id, a) values (6, default)",
        "update t set a = default where id = 1",
        "update t set id = id + 10, a = id, b = a",
        "delete from t where a = 1 or b is null",
    ],
)
def test_statements_change_what_they_change_in_duckdb(statement: str) -> None:
    assert_alike("select * from t", [*MADE, statement])


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("insert into t by name select 7 as zz, 4 as id", "no column 'zz'"),
        ("insert into t by name values (1)", "takes the columns of a SELECT"),
        ("insert into t (id, id) values (1, 2)", "column 'id' is named twice"),
    ],
)
def test_columns_of_inserts_are_checked(statement: str, message: str) -> None:
    engine, db = DuckDB(), Database()
    engine.run(MADE[0])
    db.execute(MADE[0])
    with pytest.raises(Refused):
        engine.run(statement)
    with pytest.raises(PlanError, match=message):
        db.execute(statement)


@pytest.mark.parametrize(
    "text",
    [
        "'abc'[0], 'abc'[-1], 'abc'[1], 'abc'[5], ('ab' || 'c')[-3]",
        "[1, null, 3]::varchar, ['a b', '', 'null', null, 'it''s', 'a,b', ' x']::varchar",
        "{'a': 1, 'b': ['x', null]}::varchar, row(1, 'a')::varchar, [[1], []]::varchar",
        "0.1::real::varchar, 1e30::real::varchar, (time '12:05:09.5')::varchar",
        "'\\xDE\\xADbe'::blob::varchar",
        "(interval '-1 day')::varchar, (interval '-00:00:01.5')::varchar",
        "'[1, 2]'::integer[], '[a, ''b, c'', NULL, [x, y]]'::varchar[], '[[1], []]'::integer[][]",
        "try_cast('[1, x]' as integer[]), try_cast('[1' as integer[]), '0x1f'::integer",
        "0.1::real + 1, 16777216::real + 1.5::real, 1::real / 3, 0.1::real * 3::double",
        "extract(second from interval '-00:00:01.5'), extract(quarter from interval '14 months')",
        "extract(epoch from interval '1 year'), extract(julian from timestamp '2024-01-01 06:00')",
        "date_trunc('hour', '-1 day -01:30:00'::interval), date_trunc('week', interval '-10 days')",
        "[null, 2] < [3, 1], [1, null] >= [1, 2], date_diff('century', date '0001-01-01', "
        "date '1999-12-31')",
        "9999999999999999999999999999999999.9999::decimal(38,4) - 1::hugeint",
    ],
)
def test_expressions_are_what_duckdb_gives(text: str) -> None:
    assert_alike(f"select {text}")


@pytest.mark.long
@pytest.mark.parametrize(
    ("kinds", "text"),
    [
        (("tinyint", "tinyint"), "a + b"),
        (("tinyint", "tinyint"), "a * b"),
        (("tinyint", "tinyint"), "a - 100"),
        (("tinyint", "tinyint"), "-a"),
        (("integer", "tinyint"), "a * b"),
        (("utinyint", "utinyint"), "a - b"),
        (("utinyint", "tinyint"), "a + b"),
        (("bigint", "bigint"), "a * b * b"),
        (("hugeint", "bigint"), "a + b"),
        (("tinyint", "tinyint"), "a + b - b"),
        (("tinyint", "tinyint"), "1 + (a - (b - a))"),
        (("tinyint", "tinyint"), "(a + b) * 2 - (a - b)"),
    ],
)
def test_results_of_integers_have_the_range_of_their_type(
    kinds: tuple[str, str], text: str
) -> None:
    engine, db = DuckDB(), Database()
    ends = {
        kind: (-1 if kind.startswith("u") else 1) * (1 << bits - (not kind.startswith("u")))
        for kind, bits in INTEGERS.items()
    }
    for made in (engine.run, db.execute):
        made(f"create table t (id integer primary key, a {kinds[0]}, b {kinds[1]})")
    cells = [[0, 1, 100, abs(ends[kind]) - 1, min(0, -ends[kind])] for kind in kinds]
    rows = [(a, b) for a in cells[0] for b in cells[1]]
    for number, (a, b) in enumerate(rows):
        statement = f"insert into t values ({number}, '{a}', '{b}')"
        engine.run(statement)
        db.execute(statement)
    mine = {row.id: row.x for row in db.sql(f"select id, {text} as x from t").materialize()}
    for number in range(len(rows)):
        try:
            ((wanted,),) = engine.ask(f"select {text} from t where id = {number}")
        except Refused:
            wanted = None
        assert mine.get(number) == wanted, (text, rows[number])


def test_intervals_with_months_stand_among_those_without() -> None:
    made = "('1 month'), ('40 days'), ('1 day'), ('2 months'), (null)"
    statements = ("create table t (x interval)", f"insert into t values {made}")
    assert_alike("select max(x)::varchar, min(x)::varchar from t", statements)
    assert_alike("select x::varchar, row_number() over (order by x) from t", statements)


@pytest.mark.parametrize(
    "form",
    [
        "insert or replace into t values (1, 1), (1, 2), (2, 3)",
        "insert into t values (1, 1), (1, 2) on conflict do update set v = excluded.v",
        "insert into t values (1, 1), (1, 2), (2, 1), (2, 2) on conflict do nothing",
    ],
)
@pytest.mark.parametrize("before", [(), ("insert into t values (1, 0)",)])
def test_of_two_rows_with_one_key_the_first_stays(form: str, before: tuple[str, ...]) -> None:
    made = "create table t (id integer primary key, v integer)"
    assert_alike("select * from t", (made, *before, form))


LIMIT, CONSTANTS, SHARE = (40, 4, 1) if TIMES else (5, 1, 40)


@pytest.mark.long
@pytest.mark.parametrize("group", GROUPS)
def test_patterns_are_what_duckdb_gives(group: str) -> None:
    engine, played = duckdb_cases.DuckDB(), Played()
    random = drawing() if TIMES else Random(1)
    patterns = GROUPS[group]
    for pattern in random.sample(patterns, -(-len(patterns) // SHARE)):
        found = play(engine, pattern, LIMIT, random, CONSTANTS)
        found.wrong = [each for each in found.wrong if not is_known(each)]
        played.add(found)
    assert played.cases > len(patterns) // SHARE
    wrong = "\n".join(played.wrong[:20])
    assert not wrong, f"{len(played.wrong)} of {played.cases} differ:\n{wrong}"


@pytest.mark.parametrize(
    ("pattern", "known"),
    [
        ("{float} % {int}", duckdb_cases.LOOSE),
        ("'inf'::timestamp", duckdb_cases.INFINITE),
        ("{huge} + {dec}", duckdb_cases.HUGE),
    ],
)
def test_each_known_kind_is_still_different(pattern: str, known: Any) -> None:
    played = play(duckdb_cases.DuckDB(), pattern, 200, Random(1), 10)
    assert any(known.search(each) for each in played.wrong), "take it out"


@pytest.mark.parametrize(
    "text",
    [
        *("upper('straße ŉ ﬁ')", "lower('ΑΣ İ')", "reverse('ab🇩🇪🇫🇷👍🏽')"),
        *("string_split('abc', null)", "array_to_string([1, null], ',')", "'' || .50"),
        *("array_to_string([null], ',')", "typeof(null::tinyint + 1)", "x'1f'", "~5::utinyint"),
        *("116777220::real::varchar", "0.15::real::varchar", "round(12.55::decimal(10,2), 5)"),
        *("5.5 // 2", "-(-128)::tinyint", "1 = any(null::int[])", "1 <> all(null::int[])"),
        *("list_has_all([1], [null])", "'10000-01-01'::time", "round(-2.55::decimal(5,2), -1)"),
        *("(cast('[4, 5]' as integer[]))[cast('2' as integer)]", "log2(5)", "log(2, 5)"),
        "case when true then {'a': 1, 'b': 2} else {'b': 3, 'c': 4} end::varchar",
        "if(false, {'a': 1}, {'b': 3})::varchar",
        "case when true then {'a': 1} when false then {'d': 1} else {'b': 3} end::varchar",
    ],
)
def test_a_constant_is_what_duckdb_gives(text: str) -> None:
    assert_alike(f"select {text}")


@pytest.mark.parametrize(
    "frame", ["interval '49:00:00' {}", "interval '1 day' {}", "interval 2 day {}"]
)
def test_a_frame_by_an_interval_without_a_unit(frame: str) -> None:
    statements = (
        "create table t (a integer, ts timestamp)",
        "insert into t values (1, '2024-01-01'), (2, '2024-01-02'), (3, '2024-01-04 01:00')",
    )
    for words in ("between {} and current row", "between current row and {}", "{}"):
        side = "following" if words.endswith("{}") and words != "{}" else "preceding"
        asked = f"range {words.format(frame.format(side))}"
        assert_alike(f"select a, sum(a) over (order by ts {asked}) from t", statements)


AGGREGATES = ("count", "sum", "avg", "min", "max", "stddev", "bit_or", "median", "product")


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_order_inside_of_an_aggregate_changes_nothing(name: str) -> None:
    statements = ("create table t (a integer, b integer)", "insert into t values (1, 2), (3, 1)")
    assert_alike(
        f"select {name}(a order by b desc, a), {name}(distinct a order by a) from t", statements
    )


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("count(distinct a, b)", r"has no count\(DISTINCT\) of 2 values"),
        ("count(distinct a order by b)", "ORDER"),
        ("count(* order by b)", "ORDER"),
    ],
)
def test_a_count_that_no_engine_has_is_refused(
    call: str, message: str, dialect: Literal["duckdb", "postgres", "sqlite"]
) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (a integer, b integer)")
    with pytest.raises(PlanError, match=message):
        db.sql(f"select {call} from t")


def test_a_wrong_function_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from reactive.languages.sql.functions import TABLE

    monkeypatch.setitem(TABLE, exp.Upper, TABLE[exp.Lower])
    assert play(duckdb_cases.DuckDB(), "upper({text})", 20, Random(1), 5).wrong


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("upper(5)", r"duckdb has no upper\(\) of INTEGER"),
        ("length(5)", r"duckdb has no length\(\) of INTEGER"),
        ("extract(day from time '10:00')", "duckdb has no part 'day' of TIME"),
        ("hash(1)", r"the function hash\(\) of duckdb is not supported"),
        ("cast(date '2024-01-02' as time)", "duckdb has no cast of DATE to TIME"),
        ("cast(time '10:00' as integer[])", r"duckdb has no cast of TIME to INTEGER\[\]"),
        ("cast(1 as timestamptz)", "duckdb has no cast of INTEGER to TIMESTAMP"),
        ("'3' + 4", r"duckdb has no \+ for VARCHAR and INTEGER"),
        ("-'3'", "duckdb has no - for VARCHAR"),
        ("octet_length('a')", r"duckdb has no octet_length\(\) of VARCHAR"),
        ("to_base64('a'::varchar)", r"duckdb has no to_base64\(\) of VARCHAR"),
        ("element_at([1], 1)", r"INTEGER\[\] is no MAP"),
        ("nvl2(1, 2, 3)", "there is no function 'nvl2'"),
        ("0x1f", "duckdb has no numbers in hexadecimal digits"),
    ],
)
def test_what_duckdb_has_not_is_refused_with_its_name(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Database().sql(f"select {text} as x")


@pytest.mark.parametrize(
    "text",
    [
        "try_cast('10000-01-01' as date)",
        "try_cast('24:00' as time)",
        "timestamp_ns '2024-01-02 03:04:05.123456789'",
    ],
)
def test_a_value_that_python_has_not_is_an_error_and_not_null(text: str) -> None:
    view = Database().sql(f"select {text} as x").materialize()
    assert not len(view) and len(view.errors) == 1


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_an_interval_is_read_whole(dialect: Literal["duckdb", "postgres"]) -> None:
    view = Database(dialect=dialect).sql("select interval '1 day 01:30:00' as x").materialize()
    assert view.value.x == timedelta(days=1, hours=1, minutes=30)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize(
    "form", ["(select {})", "array(select {})", "array[{}]", "(select {} from t)"]
)
def test_queries_within_each_other_are_translated_once(
    form: str, dialect: Literal["duckdb", "postgres"]
) -> None:
    def nodes(levels: int) -> int:
        text = "a"
        for _ in range(levels):
            text = form.format(text)
        db = Database(dialect=dialect)
        db.execute("create table t (a integer)")
        asked, read = 0, Scope._value

        def counted(scope: Scope, node: exp.Expr) -> Any:
            nonlocal asked
            asked += 1
            return read(scope, node)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Scope, "_value", counted)
            db.sql(f"select {text} as x from t")
        return asked

    assert nodes(8) <= 3 * nodes(4)
