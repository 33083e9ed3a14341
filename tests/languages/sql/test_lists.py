"""Functions of lists in DuckDB, and UNNEST of several levels: equal to DuckDB after each change."""

from __future__ import annotations

from typing import Any

import pytest

from reactive import Database, PlanError
from tests.languages.sql.oracles import DuckDB, Refused
from tests.languages.sql.test_duckdb import assert_alike

CONSTANTS = (
    "select flatten([[1],null,[2]]), flatten([[[1]]]), flatten([[null]]), flatten([]),"
    " flatten([null]), flatten(null)",
    "select list_zip([1,2],['a']), list_zip([1,2],['a'],true), list_zip([1],[2],[3])[1][2],"
    " list_zip(null::int[],[1]), list_zip([1,2], true), array_zip([1],[2])",
    "select list_where([1,2],[true]), list_where(null,[true]), list_where([1],null),"
    " list_where([1],[true,true]), list_where([]::int[],[true]), array_where([1,2],[false,true])",
    "select list_select([1,2,3],[3,1,5,-1,0]), list_select(null,[1]), array_select(['a'],[1])",
    "select list_resize([1],3), list_resize([1,2,3],2,0), list_resize(null::int[],2),"
    " list_resize(['a'],2,'z'), list_resize([1],2,1.5), list_resize([1],null::int)",
    "select list_grade_up([3,1,null,2]), list_grade_up([3,1],'desc'),"
    " list_grade_up([3,1,null,2],'desc'), array_grade_up([3,1,null],'asc','nulls first')",
    "select list_inner_product([1.0,2.0],[3.0,4.0]), list_dot_product([1,2],[3,4]),"
    " list_negative_dot_product([1.0],[2.0]), list_distance([1,2],[3,4]),"
    " list_cosine_similarity([1.0,2.0],[2.0,1.0]), list_cosine_distance([1.0,2.0],[2.0,1.0]),"
    " list_cosine_similarity([]::double[],[]::double[]), list_distance([]::int[],[]::int[])",
)
UNNESTED = (
    "select unnest([[1,2],null,[3]], recursive := true)",
    "select unnest([[1,2],[3]], max_depth := 2), 5",
    "select unnest([[[1]],[[2,3]]], max_depth := 2) as x",
    "select unnest([[1]], recursive := false)",
    "select unnest([[1,2]], recursive := true) + 1",
    "select unnest({'a': 1, 'b': {'c': 2}}, recursive := true)",
    "select unnest({'a': 1, 'b': {'c': 2}}, max_depth := 1)",
    "select unnest([{'a': 1, 'b': [1,2]}], recursive := true)",
    "select unnest([{'a': {'b': 1}}, null], recursive := true)",
    "select unnest([{'a': 1}, {'a': 2}], max_depth := 2) as q",
)
REFUSED = (
    "select flatten([1,2])",
    "select list_zip(1)",
    "select unnest([[1]], max_depth := 0)",
    "select unnest([[1]], depth := 1)",
    "select list_grade_up([1], 'up')",
)


@pytest.mark.parametrize("text", [*CONSTANTS, *UNNESTED])
def test_lists_are_those_of_duckdb(text: str) -> None:
    assert_alike(text)


@pytest.mark.parametrize("text", REFUSED)
def test_lists_that_duckdb_refuses_are_refused(text: str) -> None:
    with pytest.raises(Refused):
        DuckDB().ask(text)
    with pytest.raises(PlanError):
        Database().sql(text)


@pytest.mark.parametrize("nested", ["[{'a': 1}]", "[[1]]"])
def test_several_levels_are_unnested_alone(nested: str) -> None:
    text = f"select unnest({nested}, recursive := true), unnest([1])"
    with pytest.raises(PlanError, match="beside no other unnest"):
        Database().sql(text)


TABLE = "create table t (id int, a int[], b int[][], c varchar[], s struct(x int, y varchar)[])"
ROWS = (
    "(1, [3,1,2], [[1],[2,3]], ['x','y'], [{'x': 1, 'y': 'p'}])",
    "(2, null, null, null, null)",
    "(3, [], [], [], [])",
    "(4, [1,null], [null,[4]], [null], [null, {'x': 2, 'y': null}])",
)
QUERIES = (
    "select id, flatten(b), list_zip(a, c), list_resize(a, 2, 9), list_grade_up(a) from t",
    "select id, list_select(c, [2, 1]), list_where(c, [true]) from t",
    "select id, unnest(b, recursive := true) as e from t",
    "select id, unnest(s, recursive := true) from t",
    "select id, sum(e) from (select id, unnest(b, recursive := true) as e from t) group by id",
)


def test_lists_of_rows_follow_changes() -> None:
    engine, db = DuckDB(), Database()
    for run in (engine.run, db.execute):
        run(TABLE)
    views = [(text, db.sql(text).materialize()) for text in QUERIES]
    changes = [f"insert into t values {row}" for row in ROWS]
    changes += ["update t set b = [[7, 8], [9]] where id = 3", "delete from t where id = 1"]
    for change in changes:
        engine.run(change)
        db.execute(change)
        for text, view in views:
            assert _sorted(view) == _sorted(engine.ask(text)), text
    for _, view in views:
        view.verify()


def _sorted(rows: Any) -> list[Any]:
    return sorted(map(tuple, rows), key=repr)
