"""The dialect "sqlite" behaves as SQLite: stored values, comparisons, order, statements."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from reactive import Database, PlanError, TableError
from tests.budget import TIMES, drawing, share_of
from tests.languages.sql.sqlite_player import Both

TYPES = (
    *("", "integer", "int", "unsigned big int", "text", "varchar(3)", "native character(70)"),
    *("real", "double precision", "float", "numeric", "decimal(10, 2)", "date", "datetime"),
    *("boolean", "blob", "floating point", "string", "any thing"),
)
VALUES = (
    *(
        "null",
        "1",
        "-1",
        "0",
        "2.7",
        "3.0",
        "1e20",
        "'1'",
        "'x'",
        "''",
        "' 12 '",
        "'12 a'",
        "'3.0'",
    ),
    *("'1e3'", "'2024-01-31'", "x'31'", "x''", "9223372036854775807", "'9223372036854775808'"),
    *("true", "'é'", "'X'", "'x '", "'10'", "10", "-2.5", "'-0'", "'0x10'", "9.5e15"),
)
COLUMNS = ("i integer", "t text", "r real", "n numeric", "b", "d date")


def _share(cases: list[Any], count: int) -> list[Any]:
    return cases if TIMES else drawing().sample(cases, min(count, len(cases)))


def _filled() -> Both:
    both = Both(f"create table v (id integer primary key, {', '.join(COLUMNS)})")
    for number, value in enumerate(VALUES):
        both.execute(f"insert into v values ({number}, {', '.join([value] * len(COLUMNS))})")
    return both


@pytest.mark.long
def test_values_are_stored_by_affinity() -> None:
    both = Both()
    for number, declared in enumerate(TYPES):
        both.execute(f"create table t{number} (id integer primary key, x {declared})")
        for place, value in enumerate(VALUES):
            both.execute(f"insert into t{number} values ({place}, {value})")
            both.execute(f"insert into t{number} select {place + 100}, {value}")
        both.execute(f"update t{number} set x = (x || '0') where id > 110")
        both.execute(f"update t{number} set x = '7' where id = 111")
        both.ask(f"select id, x, typeof(x) from t{number} order by id")
    assert not both.wrong, "\n".join(both.wrong)


SIGNS = ("=", "<>", "<", "<=", ">", ">=", "is", "is not")


@pytest.mark.long
def test_a_column_is_compared_with_constants_by_its_affinity() -> None:
    both = _filled()
    names = [column.split()[0] for column in COLUMNS]
    for name, sign, value in _share(list(product(names, SIGNS, VALUES)), 150):
        both.ask(f"select id, {name} {sign} {value} as x from v order by id")
        both.ask(f"select id from v where {name} {sign} {value}")
        both.ask(f"select id from v where not ({value} {sign} +{name})")
    assert not both.wrong, "\n".join(both.wrong[:10])


@pytest.mark.long
def test_columns_and_expressions_are_compared_by_their_affinities() -> None:
    both = _filled()
    sides = [
        *("a.i", "a.t", "a.r", "a.n", "a.b", "+a.i", "+a.t", "a.i + 0", "a.t || ''"),
        *("cast(a.b as text)", "cast(a.t as integer)", "cast(a.b as blob)", "(a.t)"),
        "(select max(c.i) from v c where c.id = a.id)",
        "(select c.t from v c where c.id = a.id)",
        "case when a.id > 3 then a.i else a.t end",
        "coalesce(a.t, a.i)",
    ]
    others = [side.replace("a.", "b.") for side in sides]
    every = [(x, s, y) for x, s, y in product(sides, SIGNS, others) if "select" not in x + y]
    for one, sign, other in _share(every, 60):
        both.ask(f"select a.id, b.id from v a join v b on {one} {sign} {other}")
    for one, sign, other in _share(list(product(sides, SIGNS, sides)), 60):
        both.ask(f"select id, {one} {sign} {other} as x from v a order by id")
    assert not both.wrong, "\n".join(both.wrong[:10])


FORMS = (
    "select id, {a} in ({x}, {y}) as z from v order by id",
    "select id, {a} in ({x}) as z from v order by id",
    "select id, {a} not in ({x}, {b}) as z from v order by id",
    "select id from v where {a} between {x} and {y}",
    "select id from v where {a} not between {b} and {y}",
    "select id, case {a} when {x} then 1 when {b} then 2 else 3 end as z from v order by id",
    "select id from v where {a} in (select {b} from v where id > 5)",
    "select id from v where {a} not in (select {b} from v where {b} is not null)",
    "select id, {x} in (select {b} from v) as z from v order by id",
    "select id, (select count(*) from v w where w.{b} = v.{a}) as z from v order by id",
    "select a.id, b.id from v a left join v b on a.{a} = b.{b} where a.id < 9",
    "select id from v where exists (select 1 from v w where w.{a} = v.{b} and w.id <> v.id)",
    "select id, nullif({a}, {x}) as z, nullif({a}, {b}) as y from v order by id",
    "select id, max({a}, {b}) as z, min({a}, {x}, {b}) as y from v order by id",
    "select id, ({a}, {b}) = ({x}, {y}) as z, ({a}, {b}) < ({b}, {x}) as y from v order by id",
    "select max({a}) as x, min({a}) as n, count({a}) as c, count(distinct {a}) as d from v",
    "select {b}, max({a}) as x, min({a}) as n from v group by {b}",
    "select {a} as z, typeof({a}) as y from v order by {a}, id",
    "select id from v order by {a} desc, {b}, id",
    "select {a} as z from v union select {x} as z",
    "select {a} as z from v except select {b} as z from v",
    "select {a} as z from v intersect select {b} as z from v",
    "select sum({a}) as s, total({a}) as t, avg({a}) as a, typeof(sum({a})) as y from v "
    "where id < 16",
    "select id, sum({a}) over (order by id rows 2 preceding) as s from v where id not in "
    "(6, 8, 17, 18, 28) order by id",
    "select id, max({a}) over (order by id rows 2 preceding) as s from v order by id",
    "select id, rank() over (order by {a}) as s, lag({a}, 1, {x}) over (order by id) as l "
    "from v order by id",
    "select z.p, z.p = {x} as q from (select {a} as p from v) z",
    "select count(*) as n from (select distinct {a} from v)",
    "select w.id, v.id from v join (select id, {b} as {a} from v) w using ({a})",
    "select id from v where {a}",
    "select id, not {a} as x, {a} and {b} as y, {a} or {x} as z, {a} is true as w from v "
    "order by id",
    "with recursive r(n, s) as (select 1, {a} from v where id = 3 union all select n + 1, "
    "n || s from r where n < 4) select n, s from r",
)


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_queries_compare_as_sqlite_does(form: str) -> None:
    both = _filled()
    names = [column.split()[0] for column in COLUMNS]
    every = [
        each
        for each in product(names, names, VALUES[1:], VALUES[1:])
        if "using" not in form or each[0] != each[1]
    ]
    texts = {form.format(a=a, b=b, x=x, y=y) for a, b, x, y in drawing().sample(every, 40)}
    for text in sorted(texts)[: 40 if TIMES else 5]:
        both.ask(text)
    assert not both.wrong, "\n".join(both.wrong[:10])


OPERATORS = ("+", "-", "*", "/", "%", "&", "|", "<<", ">>", "||")


@pytest.mark.long
def test_arithmetic_is_of_numbers_of_64_bits() -> None:
    both = _filled()
    names = [column.split()[0] for column in COLUMNS]
    every = list(product(names, OPERATORS, (*names, *VALUES)))
    for one, sign, other in _share(every, 120):
        both.ask(f"select id, {one} {sign} {other} as x from v where id < 26 order by id")
    for text in ("-{0}", "~{0}", "+{0}", "not {0}", "-(-{0})", "cast({0} as text)"):
        for name in names:
            both.ask(f"select id, {text.format(name)} as x from v order by id")
    assert not both.wrong, "\n".join(both.wrong[:10])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'3abc' + 1", 4),
        ("9223372036854775807 + 1", 9.223372036854775807e18),
        ("7 / 2", 3),
        ("1 / 0", None),
        ("1e20 || ''", "1.0e+20"),
        ("typeof(true)", "integer"),
        ("cast('12abc' as integer)", 12),
        ("1 < 'a'", 1),
        ("'a' < x'00'", 1),
    ],
)
def test_a_constant_is_what_sqlite_gives(text: str, expected: object) -> None:
    (value,) = Database(dialect="sqlite").sql(f"select {text} as x").materialize().value
    assert value == expected and type(value) is type(expected)


def test_rows_of_a_table_admit_what_sqlite_admits() -> None:
    db = Database(dialect="sqlite")
    db.execute("create table t (id integer primary key, i integer not null, r real, s text)")
    table = next(iter(db.tables()))
    table.add(table.row_type(1, "x", b"", b"y"))
    db.execute("insert into t values ('2', 2.5, 1, 3)")
    assert set(table) == {(1, "x", b"", b"y"), (2, 2.5, 1.0, "3")}
    with pytest.raises(TableError, match="takes int, and 'x' is none"):
        db.execute("insert into t values ('x', 1, 1, 1)")
    with pytest.raises(TableError, match="NOT NULL"):
        db.execute("insert into t values (4, null, 1, 1)")


def test_an_empty_blob_is_an_argument_of_a_window() -> None:
    both = Both("create table t (id integer primary key, a)", "insert into t values (1, 2), (2, 3)")
    both.ask("select id, lag(a, 1, x'') over (order by id) as z from t order by id")
    both.ask("select replace(x'61', '', 'b') as z, typeof(replace(x'61', x'', 1)) as y")
    assert not both.wrong, both.wrong


def test_what_sqlite_has_not_is_refused_with_its_name() -> None:
    db = Database(dialect="sqlite")
    for text in ("list_sum(1)", "strpos('a', 'b')", "median(1)", "greatest(1, 2)"):
        with pytest.raises(PlanError, match="in sqlite"):
            db.sql(f"select {text}")
    for text in ("date('now')", "strftime('%Y', 'now')", "json_each('1')", "soundex('a')"):
        with pytest.raises(PlanError, match="of sqlite is not supported"):
            db.sql(f"select {text}")
    with pytest.raises(PlanError, match="use INSERT OR REPLACE INTO"):
        db.execute("replace into t values (1)")


TEXTS = ("'a'", "'A'", "'b '", "'b'", "'É'", "'é'", "null", "1", "x'61'", "'a  '", "'ab'", "''")
COLLATED = (
    "select id from w where n {s} {x} order by id",
    "select id from w where {x} {s} n order by id",
    "select id from w where r {s} {x} order by id",
    "select id from w where p collate {c} {s} {x} order by id",
    "select id from w where n {s} p collate {c} order by id",
    "select id from w where n {s} p order by id",
    "select id from w where p {s} n order by id",
    "select id from w where r {s} n order by id",
    "select id, (p collate {c} || 'x') {s} ({x} || 'X') as z from w order by id",
    "select id from w where n in ({x}, 'B') order by id",
    "select id from w where p in ({x} collate {c}, 'B') order by id",
    "select id from w where n between 'A' and {x} order by id",
    "select id, case n when {x} then 1 else 2 end as z, nullif(n, {x}) as y from w order by id",
    "select id, max(n, {x}) as z, min(p, n) as y, max(r, p) as u from w order by id",
    "select id from w order by n, id",
    "select id from w order by p collate {c} desc, id",
    "select count(*) as k, lower(rtrim(n)) as m from w group by n, lower(rtrim(n))",
    "select count(*) as k from w group by r",
    "select count(*) as k, count(distinct n) as d, count(distinct p) as e from w",
    "select count(*) as k from (select distinct n, r from w)",
    "select count(*) as k from (select distinct p collate {c} from w)",
    "select lower(max(n)) as z, lower(min(n)) as y, rtrim(max(p collate {c})) is null as x from w",
    "select id, count(*) over (partition by n) as z from w order by id",
    "select id, rank() over (order by n) as z from w order by id",
    "select a.id, b.id from w a join w b using (n)",
    "select a.id, b.id from w a join w b on a.p {s} b.n",
    "select id from w where n in (select p from w where id > 3) order by id",
    "select id from w where p in (select n from w where id > 3) order by id",
)


@pytest.mark.long
def test_texts_are_compared_by_their_collation() -> None:
    both = Both(
        "create table w (id integer primary key, n text collate nocase, r collate rtrim,"
        " p text collate binary)"
    )
    for number, value in enumerate(TEXTS):
        other = TEXTS[(number * 5 + 3) % len(TEXTS)]
        both.execute(f"insert into w values ({number}, {value}, {value}, {other})")
    every = product(COLLATED, ("=", "<", ">=", "<>"), TEXTS[:7], ("nocase", "rtrim", "binary"))
    texts = {form.format(s=s, x=x, c=c) for form, s, x, c in every}
    for text in _share(sorted(texts), 150):
        both.ask(text)
    assert not both.wrong, "\n".join(both.wrong[:10])


SUBQUERIES = (
    "(select w.n) = 'A'",
    "(select n from c) = 'A'",
    "(select 'a' collate nocase) = 'A'",
    "n = (select 'A')",
    "'A' in (select n from c)",
    "n in (select 'A')",
    "p in (select n from c)",
)


@pytest.mark.parametrize("test", SUBQUERIES)
def test_a_sub_query_has_no_collation_of_its_own(test: str) -> None:
    both = Both("create table w (id integer primary key, n text collate nocase, p text)")
    both.execute("insert into w values (1, 'a', 'A'), (2, 'B', 'b')")
    both.execute("create table c (n text collate nocase)")
    both.execute("insert into c values ('a')")
    both.ask(f"select id, {test} as x from w order by id")
    assert not both.wrong, both.wrong


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_a_bare_column_of_do_update_is_that_of_the_row_there(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (id int primary key, v int)")
    db.execute("insert into t values (1, 5)")
    db.execute("insert into t values (1, 7) on conflict (id) do update set v = v + excluded.v")
    assert [*db.sql("select v from t").materialize()] == [(12,)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select 'a' collate german", "no collation 'german' in sqlite"),
        ("create table t (a text collate german)", "no collation 'german' in sqlite"),
        (
            "with recursive r(x) as (select 'a' collate nocase union select upper(x) from r) "
            "select x from r",
            "recursive 'r' is a UNION of texts",
        ),
    ],
)
def test_collations_that_cannot_be_are_refused(text: str, message: str) -> None:
    db = Database(dialect="sqlite")
    with pytest.raises(PlanError, match=message):
        db.execute(text) if text.startswith("create") else db.sql(text)


FUNCTIONS = (
    *("abs({})", "round({})", "round({}, {})", "sign({})", "ceil({})", "floor({})", "trunc({})"),
    *("sqrt({})", "exp({})", "ln({})", "log({})", "log({}, {})", "log10({})", "log2({})"),
    *("pow({}, {})", "mod({}, {})", "degrees({})", "radians({})", "sin({})", "acos({})"),
    *("atan2({}, {})", "upper({})", "lower({})", "length({})", "substr({}, {})", "pi()"),
    *("substr({}, {}, {})", "substring({}, {})", "instr({}, {})", "trim({})", "trim({}, {})"),
    *("ltrim({})", "rtrim({}, {})", "replace({}, {}, {})", "unicode({})", "char({}, {})"),
    *("hex({})", "quote({})", "typeof({})", "nullif({}, {})", "ifnull({}, {})", "coalesce({}, {})"),
    *("iif({}, {}, {})", "max({}, {}, {})", "min({}, {})", "likely({})", "like({}, {})"),
    *("glob({}, {})", "{} like {}", "{} not like {}", "{} glob {}", "{} like {} escape '!'"),
    *("cast({} as text)", "cast({} as int)", "cast({} as real)", "cast({} as numeric)"),
    *("cast({} as blob)", "cast({} as varchar(3))", "{} is true", "{} is not false", "not {}"),
    *("{} between {} and {}", "{} in ({}, {})", "case {} when {} then {} end"),
)
ARGUMENTS = (
    *("null", "0", "1", "-1", "2", "-3", "3.7", "-2.5", "0.5", "1e20", "-1e-7", "1e308", "''"),
    *("9223372036854775807", "-9223372036854775808", "'a'", "'Äpfel é'", "'a%b_!%'", "'*[a-c]?'"),
    *(
        "'12'",
        "' -3.5x'",
        "'1e3'",
        "x''",
        "x'6162ff'",
        "x'61'",
        "'  pad '",
        "true",
        "123456.75",
    ),
)


@pytest.mark.long
@pytest.mark.parametrize("function", share_of([*FUNCTIONS], "functions of sqlite", 2))
def test_functions_are_what_sqlite_gives(function: str) -> None:
    random, count = drawing(), function.count("{}")
    both = Both("create table f (id integer primary key, a, b, c)")
    given = [[random.choice(ARGUMENTS) for _ in range(3)] for _ in range(40)]
    given += [[each, random.choice(ARGUMENTS), random.choice(ARGUMENTS)] for each in ARGUMENTS]
    if "like" in function or "glob" in function:  # builds of SQLite differ there for blobs
        given = [each for each in given if not any(value.startswith("x'") for value in each)]
    for number, each in enumerate(given):
        expr = function.format(*each[:count])
        try:
            both.other.execute(f"select {expr}").fetchall()
        except Exception:
            continue  # an error there, of this row
        both.execute(f"insert into f values ({number}, {', '.join(each)})")
        if number % 8 == 0:
            both.ask(f"select {expr} as x")
    both.ask(f"select id, {function.format(*'abc')} as x from f order by id")
    assert not both.wrong, "\n".join(both.wrong[:10])


NUMBERED = (
    "insert into t (a) values ('x')",
    "insert into t default values",
    "insert into t values (null, 'n'), ({n}, 'k'), (null, 'n')",
    "insert into t (id, a) select null, 'all' from t where id > {n}",
    "insert into t (a) select 'few' from t where id in ({n}, {n} + 1)",
    "insert or replace into t values ({n}, 'r'), (null, 's')",
    "insert or ignore into t values ({n}, 'i'), (null, 'j')",
    "insert into t values ({n}, 'u'), (null, 'v') on conflict (id) do update set a = 'w'",
    "insert into t values (null, 'v'), ({n}, 'u') on conflict do nothing",
    "delete from t where id >= {n}",
    "update t set id = id + 20 where id = {n}",
    "insert into t values ('{n}', 'text'), (null, 'v')",
)


@pytest.mark.parametrize(
    "key", ["id integer primary key default 7, a", "id integer, a, primary key (id)"]
)
def test_an_integer_primary_key_is_numbered(key: str) -> None:
    random = drawing()
    for _ in range(40 if TIMES else 6):
        both = Both(f"create table t ({key})")
        for _ in range(25):
            both.execute(random.choice(NUMBERED).format(n=random.randint(-3, 12)))
            both.ask("select id, a from t")
            assert not both.wrong, both.wrong


def test_numbers_of_keys_end() -> None:
    db = Database(dialect="sqlite")
    db.execute("create table t (id integer primary key, a)")
    db.execute("insert into t values (9223372036854775807, 1)")
    with pytest.raises(TableError, match="is the greatest key there is"):
        db.execute("insert into t (a) values (2)")
    db.execute("delete from t")
    with pytest.raises(PlanError, match="DO UPDATE of 'id' beside rows without one"):
        db.execute("insert into t values (-3, 1), (null, 2) on conflict (id) do update set id = 5")


def test_other_keys_are_not_numbered() -> None:
    db = Database(dialect="sqlite")
    db.execute("create table t (id int primary key, a)")
    with pytest.raises(TableError, match="'id' of table 't' is NOT NULL"):
        db.execute("insert into t (a) values (2)")
