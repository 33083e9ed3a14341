"""MAP of DuckDB: equal to DuckDB after each change; what it refuses is refused."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from reactive import Database, PlanError
from tests.budget import seeds
from tests.languages.sql.oracles import DuckDB, Refused

TABLE = (
    "create table t (a int primary key, k varchar, n int, m map(varchar, int), w map(int, int[]))"
)
EXPRESSIONS = [
    *("m['x']", "m[k]", "m['z']", "w[n]", "w[1][1]", "m[null]", "map_extract(m, k)"),
    *("element_at(w, n)", "map_extract_value(m, k)", "map_extract_value(w, 2)"),
    *("map_keys(m)", "map_values(w)", "map_entries(m)", "cardinality(m)", "cardinality(w[1])"),
    *("map {coalesce(k, '?'): n}", "map {'p': n, 'q': a + 0.5}", "map {}"),
    *("map([1, 2], [n, a])", "map(map_keys(m), map_values(m))"),
    *("map(case when n > 2 then [1] end, [a])", "map([a], case when n > 2 then [1] end)"),
    *("map_from_entries(map_entries(m))", "map_from_entries([(a, k), (a + 1, 'x')])"),
    *("map_concat(m, map {'x': n})", "map_concat(m, m, map {'v': a})", "map_concat(null, m)"),
    *("map_contains(m, k)", "map_contains_value(m, n)", "map_contains_entry(m, k, n)"),
    *("map_contains(w, n)", "m = map {'x': n}", "m < map {'x': n}", "m >= m"),
    *("m is distinct from map {'x': n}", "m in (map {'x': 1}, map {'y': 2})", "m is null"),
    *("coalesce(m, map {'none': a})", "greatest(m, m)", "m::varchar", "w::varchar"),
    *("cast(m as map(varchar, double))", "{'m': m}", "[m, m]", "typeof(w)", "to_json(w)"),
    *("try_cast(m as map(int, varchar))", "cast(w as map(varchar, varchar))", "to_json(m)"),
    *("cast(to_json(m) as map(varchar, int))", "cast({'p': a, 'q': n} as map(varchar, bigint))"),
    *("[x.value for x in map_entries(m)]", "list_filter(map_keys(m), x -> x <> k)"),
    *("map_entries(w)[1].value", "map {a: m}[a]['x']", "map {[n]: 1}[[1]]", "map {{'f': n}: k}"),
    "try_cast('{x=' || n || ', y=}' as map(varchar, int))",
]
QUERIES = [
    f"select {', '.join(f'{each} as c{n}' for n, each in enumerate(EXPRESSIONS))} from t",
    "select a, map {k: n} as x from t",
    "select a, map([k], [n]) as x from t",
    "select a, map_from_entries([{'p': n, 'q': 1}]) as x from t",
    "select a, e.key, e.value from (select a, unnest(map_entries(m)) as e from t)",
    "select a, unnest(map_keys(m)) as x, unnest(map_values(m)) as y from t",
    "select t.a, u.x from t, unnest(map_keys(t.w)) as u(x)",
    "select m, count(*), min(a) from t group by m",
    "select distinct w from t",
    "select min(m), max(w) from t",
    "select k, histogram(n) from t group by k",
    "select histogram(k), histogram(distinct n), histogram(n) filter (where n > 2) from t",
    "select s.a, t.a from t join t s on s.m = t.m",
    "select a from t where m['x'] > 1 or map_contains(m, 'y')",
    "select list(m order by a) from t",
    "select m from t union select map {'x': a} from t",
    "select a, lag(m) over (order by a) from t",
    "select map_from_entries(list((a, n) order by a)) from t",
]


def _drawn_row(rnd: Random, number: int) -> str:
    """Return a row of the table as text."""

    def some(values: list[Any]) -> str:
        return str(rnd.choice(["null", *values]))

    keys = rnd.sample(["'x'", "'y'", "''", "'a b'"], rnd.randrange(4))
    m = ", ".join(f"{key}: {some([1, 2, 3])}" for key in keys)
    places = rnd.sample([1, 2, 7], rnd.randrange(3))
    w = ", ".join(f"{place}: {some(['[]', '[1, null]', '[5]'])}" for place in places)
    maps = [some([f"map {{{m}}}"] * 4), some([f"map {{{w}}}"] * 4)]
    return ", ".join([str(number), some(["'x'", "'y'"]), some([1, 2, 7]), *maps])


@pytest.mark.parametrize("seed", seeds(6))
def test_maps_are_those_of_duckdb(seed: int) -> None:
    rnd = Random(seed)
    db, other = Database(), DuckDB()
    other.run("set lambda_syntax = 'ENABLE_SINGLE_ARROW'")
    for run in (db.execute, other.run):
        run(TABLE)
    views = [(text, db.sql(text).materialize()) for text in QUERIES]
    for _ in range(6):
        number = rnd.randrange(4)
        changes = [f"delete from t where a = {number}"]
        if rnd.random() < 0.85:
            changes.append(f"insert into t values ({_drawn_row(rnd, number)})")
        if rnd.random() < 0.3:
            changes.append("update t set m = map_concat(m, map {'x': n}) where a < 2")
        for text in changes:
            for run in (db.execute, other.run):
                run(text)
        for text, view in views:
            try:
                expected = other.ask(text)
            except Refused:
                assert list(view.errors), text
                continue
            assert not list(view.errors), (text, list(view.errors))
            assert sorted(map(tuple, view), key=repr) == sorted(expected, key=repr), text
    for _, view in views:
        view.verify()


@pytest.mark.parametrize(
    "expression",
    [
        *("map([1, 1], [2, 3])", "map {null: 1}", "map([1], [1, 2])", "map_from_entries([null])"),
        *("cast('{a=1' as map(varchar, int))", "cast('{a=1, a=2}' as map(varchar, int))"),
        *("cast('{null=1}' as map(varchar, int))", "cast(map {1.2: 1, 1.3: 2} as map(int, int))"),
    ],
)
def test_what_is_no_map_is_an_error_of_its_row(expression: str) -> None:
    with pytest.raises(Refused):
        DuckDB().ask(f"select {expression}")
    view = Database().sql(f"select {expression} as x").materialize()
    assert not list(view)
    assert len(view.errors) == 1


@pytest.mark.parametrize(
    "expression",
    [
        *("cast('{}' as map(int, int))", "cast(' {1=, 2=null} ' as map(int, varchar))"),
        *("cast('{\"a b\"=1, ''c'' = x y}' as map(varchar, varchar))", "map {1.50: true}::varchar"),
        *("cast('{a=[1, 2], b={1=2}}' as map(varchar, varchar))", "map {'nan'::double: 1}"),
        *("cast('{a=b=c}' as map(varchar, varchar))", "map {date '2024-01-01': 1}::json"),
        *("map {'k': {'a': 'x y'}, 'b=c': null}::varchar", "map {1: 2}['1']", "map {1: 2} = map()"),
        *(
            "map {date '2024-01-01': 1}[timestamp '2024-01-01 00:00:00']",
            "map_contains(map(), null)",
        ),
        *("try_cast('{a=x}' as map(varchar, int))", "map_extract(null, 1)", "typeof(map())"),
        *("map {'nan'::double: 1}['nan'::double]", "map_contains_value(map(), null)"),
    ],
)
def test_constant_maps_are_those_of_duckdb(expression: str) -> None:
    text = f"select {expression} as x"
    assert repr([tuple(r) for r in Database().sql(text).materialize()]) == repr(DuckDB().ask(text))


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("map_keys([1])", "BIGINT|INTEGER.* is no MAP"),
        ("unnest(map {1: 2})", "map_entries"),
        ("map_from_entries([1])", "structs of two fields"),
        ("cardinality({'a': 1})", "takes a MAP or a list"),
        ("map {1: 2}[date '2024-01-01']", "cannot mix"),
        ("map_concat(map {1: 2})", "takes 2 or more arguments"),
        ("cast(row(1, 2) as map(varchar, int))", "a row has no names"),
        ("cast(map {1: 2} as int[])", "no cast of MAP"),
        ("map {1: 2} + 1", "there is no \\+ for MAP"),
        ("histogram(a, [1, 2])", "with boundaries"),
    ],
)
def test_what_duckdb_does_not_do_with_a_map_is_refused(expression: str, told: str) -> None:
    db = Database()
    db.execute("create table t (a int)")
    with pytest.raises(PlanError, match=told):
        db.sql(f"select {expression} from t")


def test_a_column_of_maps_keeps_its_type() -> None:
    db = Database()
    db.execute("create table t (a int primary key, m map(varchar, struct(x int)[]))")
    db.execute("create table u as select a, m, map_keys(m) as k from t")
    db.execute("insert into u values (1, map {'p': [{'x': 3}]}, [])")
    table = next(each for each in db.tables() if each.name == "u")
    table.add((2, (("q", ((4,),)),), ()))
    view = db.sql("select a, m['p'][1].x as x, m['q'][1].x as y from u order by a").materialize()
    assert list(view) == [(1, 3, None), (2, None, 4)]
