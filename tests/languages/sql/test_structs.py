"""Functions of STRUCT of DuckDB: equal to DuckDB after each change; what it refuses is refused."""

from __future__ import annotations

from random import Random

import pytest

from reactive import Database, PlanError
from tests.budget import seeds
from tests.languages.sql.oracles import DuckDB, Refused

TABLE = "create table t (a int primary key, n int, s struct(x int, y varchar), u struct(z int[]))"
EXPRESSIONS = [
    *("struct_insert(s, n := n)", "struct_insert(s, p := n + 1, q := s.y || '!')", "(n, s.x)[2]"),
    *("struct_update(s, x := s.y)", "struct_update(s, X := n, w := a)", "row(n, s.y, a)[1]"),
    *("struct_concat(s, u)", "struct_concat(row(n), row(a, s.x))", "struct_concat(s, {'k': n})"),
    *("struct_keys(s)", "struct_values(s)", "struct_extract(s, 'X')", "struct_extract_at(u, 1)"),
    *("struct_extract(row(a, n), 2)", "struct_contains(row(a, n), 1)", "struct_has(row(n), n)"),
    *(
        "struct_position(row(a, n, 2), 2)",
        "struct_indexof((n, s.x), s.x)",
        "struct_pack(a, k := n)",
    ),
    *("row(n, a) < row(2, 3)", "row(s.x) = row(n)"),
    *("s = {'x': n, 'y': 'x'}", "s < {'x': n, 'y': 'x'}", "s is distinct from row(n, 'x')"),
    *("s in ({'x': 1, 'y': 'x'}, {'y': 'z', 'x': 2})", "s::struct(y varchar, k int)", "u.z[1]"),
    *("s::varchar", "{'in': s, 'n': n}.in.y", "struct_insert(u, k := s).k.x", "s['y']"),
    *("greatest(s, {'x': 2, 'y': 'b'})", "coalesce(s, {'x': a})", "typeof(row(n, s.y))"),
    *(
        "case when n > 1 then s end",
        "to_json(struct_insert(s, k := n))",
        "[s, {'x': a, 'y': null}]",
    ),
]
QUERIES = [
    f"select {', '.join(f'{each} as c{n}' for n, each in enumerate(EXPRESSIONS))} from t",
    "select a, s.*, unnest(u) from t",
    "select unnest(struct_concat(s, u)) from t",
    "select s, count(*), max(u) from t group by s",
    "select t.a, v.a as b from t join t v on t.s = struct_update(v.s, x := t.s.x)",
    "select struct_insert(s, k := row_number() over (order by a)) from t",
    "select distinct struct_insert(u, k := n) from t",
]


def _drawn_row(rnd: Random, number: int) -> str:
    x, y = rnd.choice(["null", "1", "2"]), rnd.choice(["null", "'x'", "'b'"])
    s = rnd.choice([f"{{'x': {x}, 'y': {y}}}", f"{{'x': {x}, 'y': {y}}}", "null"])
    u = rnd.choice(["{'z': [1, null]}", "{'z': []}", "{'z': null}", "null"])
    return f"{number}, {rnd.choice(['null', '1', '2'])}, {s}, {u}"


@pytest.mark.parametrize("seed", seeds(6))
def test_structs_are_those_of_duckdb(seed: int) -> None:
    rnd = Random(seed)
    db, other = Database(), DuckDB()
    for run in (db.execute, other.run):
        run(TABLE)
    views = [(text, db.sql(text).materialize()) for text in QUERIES]
    for _ in range(6):
        number = rnd.randrange(4)
        changes = [f"delete from t where a = {number}"]
        if rnd.random() < 0.85:
            changes.append(f"insert into t values ({_drawn_row(rnd, number)})")
        if rnd.random() < 0.3:
            changes.append("update t set s = struct_update(s, x := n) where a < 2")
        for text in changes:
            for run in (db.execute, other.run):
                run(text)
        for text, view in views:
            assert sorted(map(tuple, view), key=repr) == sorted(other.ask(text), key=repr), text
    for text, view in views:
        assert not list(view.errors), text
        view.verify()


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("struct_insert({'a': 1}, A := 2)", "two fields 'A'"),
        ("struct_insert({'a': 1}, 2)", "values with names"),
        ("struct_insert(row(1), b := 2)", "a struct with names"),
        ("struct_concat({'a': 1}, {'a': 2})", "two fields 'a'"),
        ("struct_concat(row(1), {'a': 2})", "and not both"),
        ("struct_concat({'a': 1}, null)", "takes a STRUCT"),
        ("struct_extract({'a': 1}, 1)", "is read by its name"),
        ("struct_extract(row(1, 2), 3)", "no field 3 in a row of 2"),
        ("struct_extract({'a': 1}, 'b')", "no field 'b'"),
        ("row(1, 2)[0]", "no field 0"),
        ("{'a': 1, 'A': 2}", "two fields 'A'"),
        ("struct_pack(1)", "values with names"),
        ("row(a := 1)", "a row has no names"),
        ("struct_contains({'a': 1}, 1)", "takes a row"),
    ],
)
def test_structs_that_duckdb_refuses_are_refused(expression: str, told: str) -> None:
    with pytest.raises(Refused):
        DuckDB().ask(f"select {expression}")
    with pytest.raises(PlanError, match=told):
        Database().sql(f"select {expression}")
