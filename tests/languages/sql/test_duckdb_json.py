"""JSON of the dialect "duckdb" equals DuckDB after each change."""

from __future__ import annotations

from datetime import date
from random import Random
from typing import Any

import duckdb
import pytest

from reactive import Database, PlanError
from tests.budget import TIMES, drawing
from tests.languages.sql.json_cases import DUCKDB, DUCKDB_QUERIES, draw_document, split_cases

TABLE = (
    "create table t (id int primary key, j json, v varchar, k json, s varchar, n int, d double,"
    " x decimal(5, 2), l int[], day date, st struct(a int, b varchar))"
)
TEXTS = ["a", "b", "aa", "0", "$.a", "$[0]", "/a", "é", "", None, "$.a[0].b", '$."aa"']
Row = tuple[Any, ...]


def draw_values(random: Random, number: int) -> list[str]:
    """Return the values of a row as they are written in SQL."""
    documents = [draw_document(random) if random.random() > 0.1 else None for _ in range(2)]
    one, other = ("NULL" if each is None else f"'{each}'" for each in documents)
    text = random.choice(TEXTS)
    return [
        str(number),
        *(one, one, other),
        "NULL" if text is None else f"'{text}'",
        random.choice(["0", "1", "-1", "2", "NULL", "5"]),
        random.choice(["1.0", "0.1", "1e25", "1e-9", "-0.0", "NULL", "123456.789"]),
        random.choice(["1.50", "2.00", "NULL"]),
        random.choice(["[1, 2]", "[]", "[NULL]", "NULL"]),
        random.choice(["date '2020-01-02'", "NULL"]),
        random.choice(["{'a': 1, 'b': 'x\"y'}", "{'a': NULL, 'b': NULL}", "NULL"]),
    ]


def change_both(random: Random, db: Database, engine: Any, ids: set[int]) -> None:
    """Change some rows of the table of a database and of DuckDB."""
    for number in random.sample(range(25), 8):
        statements = []
        if number in ids:
            statements.append(f"delete from t where id = {number}")
            ids.discard(number)
        if not statements or random.random() < 0.6:
            ids.add(number)
            statements.append(f"insert into t values ({', '.join(draw_values(random, number))})")
        for each in statements:
            engine.execute(each)
            db.execute(each)


def plain(value: Any) -> Any:
    """Return a value with structs and lists as tuples."""
    if isinstance(value, dict):
        value = tuple(value.values())
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else value


def wanted_of(engine: Any, expression: str) -> dict[int, Any]:
    """Return an expression of each row in DuckDB, or an error."""
    query = f"select id, {expression} from t"
    try:
        return dict(engine.execute(query).fetchall())
    except duckdb.Error:
        found: dict[int, Any] = {}
        for (number,) in engine.execute("select id from t").fetchall():
            try:
                found[number] = engine.execute(f"{query} where id = {number}").fetchone()[1]
            except duckdb.Error:
                found[number] = "an error"
        return found


def is_same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other) or (isinstance(one, float) and one == other)


def test_expressions_are_what_duckdb_gives() -> None:
    random, db, engine = drawing(), Database(), duckdb.connect()
    for each in (db, engine):
        each.execute(TABLE)
    ids: set[int] = set()
    for _ in range(3):
        change_both(random, db, engine, ids)
    every, compared = split_cases(DUCKDB), 0
    for expression in every if TIMES else random.sample(every, 60):
        view = db.sql(f"select id, {expression} as found from t").materialize()
        found = {row.id: row.found for row in view}
        for number, wanted in wanted_of(engine, expression).items():
            got = plain(found.get(number, "an error"))
            assert is_same(got, plain(wanted)), (expression, number)
            compared += 1
    assert compared > 300


def test_queries_are_what_duckdb_gives_after_each_change() -> None:
    random, db, engine = drawing(), Database(), duckdb.connect()
    for each in (db, engine):
        each.execute(TABLE)
    views = {query: db.sql(query).materialize() for query in DUCKDB_QUERIES}
    ids: set[int] = set()
    for _ in range(3 * (TIMES or 1)):
        change_both(random, db, engine, ids)
        for query, view in views.items():
            assert list(map(plain, view)) == list(map(plain, engine.execute(query).fetchall()))
            assert not view.errors, query


SPELLED = [
    *("3", " 3", "3 ", "3.7", "3.", ".5", "3e2", "1_000", "0x10", "+3", "-3", "01", "-0"),
    *("007", "nan", "-nan", "\N{ARABIC-INDIC DIGIT THREE}", "2020-01-0\N{FULLWIDTH DIGIT ONE}"),
]
NUMBERS = ["18446744073709551615", "18446744073709551616", "-9223372036854775809", "0", "1.5"]
CASTS = ["int", "hugeint", "ubigint", "double", "real", "decimal(10, 2)", "boolean", "date"]
REPEATED = [
    """select json_transform_strict('{"a": 1, "a": 2}', '{"a": "INTEGER"}')""",
    """select json_transform_strict('{"a": 1, "b": 2, "b": 3}', '{"a": "INTEGER"}')""",
    """select json_transform('{"a": 1, "a": 2}', '{"a": "INTEGER"}')""",
    """select '{"a": 1, "a": 2}'::json::struct(a int)""",
    """select '{"a": 1, "a": 2}'::json::map(varchar, int)""",
    """select try_cast('[{"a": 1, "a": 2}]'::json as map(varchar, int)[])""",
    """select '{"1": 1, "01": 2}'::json::map(int, int)""",
]


def test_casts_take_the_texts_that_duckdb_takes() -> None:
    """A number in a text of JSON is written as JSON has it, and its digits are those of ASCII."""
    engine, db = duckdb.connect(), Database()
    sources = [f"""'"{text}"'::json""" for text in SPELLED] + [f"'{text}'" for text in SPELLED]
    sources += [f"'{number}'::json" for number in NUMBERS]
    of = [f"try_cast({source} as {kind})" for source in sources for kind in CASTS]
    of += [f"json_type('{number}')" for number in NUMBERS]
    query = "select " + ", ".join(f"{each} as c{number}" for number, each in enumerate(of))
    found = db.sql(query).materialize(on_error="raise").value
    for each, got, wanted in zip(of, found, *engine.execute(query).fetchall(), strict=True):
        assert is_same(got, wanted), each


def test_repeated_keys_are_refused_where_duckdb_does() -> None:
    engine = duckdb.connect()
    for query in REPEATED:
        view = Database().sql(f"{query} as f").materialize(on_error="drop")
        try:
            wanted = engine.execute(query).fetchall()[0][0]
        except duckdb.Error:
            assert not list(view) and view.errors, query
        else:
            assert plain(view.value.f) == plain(wanted), query


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("select n -> 'a' from t", "is no JSON in duckdb"),
        ("select j -> '$.' from t", "JSON path error"),
        ("select json_type(j, '$.*') from t", "wildcards"),
        ("select from_json(j, s) from t", "has to be a constant"),
        ("select from_json(j, '{}') from t", "no structure"),
        ("select from_json(j, '\"NOTYPE\"') from t", "no type"),
        ("select json_object(1, 2) from t", "VARCHAR"),
        ("select j::jsonb from t", "there is no type"),
        ("select jsonb_agg(j) from t", "in duckdb"),
        ("select j + 1 from t", "there is no +"),
    ],
)
def test_errors_name_what_is_wrong(text: str, told: str) -> None:
    db = Database()
    db.execute(TABLE)
    with pytest.raises(PlanError, match=told):
        db.sql(text)


def test_texts_that_are_no_json_are_errors_of_their_rows() -> None:
    db = Database()
    db.execute("create table raw (id int primary key, v varchar)")
    view = db.sql("select id, v ->> 'a' as a from raw").materialize()
    db.execute("""insert into raw values (1, '{"a": 1}'), (2, 'x'), (3, NULL)""")
    assert sorted(view) == [(1, "1"), (3, None)] and len(view.errors) == 1
    db.execute("""update raw set v = '{"a": [1 , 2]}' where id = 2""")
    assert sorted(view) == [(1, "1"), (2, "[1,2]"), (3, None)] and not view.errors
    with pytest.raises(PlanError):
        db.execute("create table typed (j json); insert into typed values ('x')")
    assert (
        date(2020, 1, 2) == db.sql("select '\"2020-01-02\"'::json::date as d").materialize().value.d
    )
