"""A SQL view never stops those who write: what does not compare is an error row."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from reactive import Database, PlanError

QUERIES = [
    *(f"select k, {of} as v from t group by k" for of in ("min(x)", "max(x)", "bit_or(x)")),
    "select k, arg_max(k, x) as v from t group by k",
    "select x from t order by x",
    "select k, x from t order by x desc limit 2",
    "select distinct on (k) k, x from t order by k, x",
    "select k from t where x = (select max(x) from t)",
    "select x from t union select k from t order by 1",
]
NO_COMMON_TYPE = QUERIES[-1]
"""A query that unites `x` with an integer: refused where `x` is a struct or a list."""
KINDS: dict[str, tuple[str, list[Any]]] = {
    "a text among integers": ("int", [3, 5, "a"]),
    "NULL among integers": ("int", [3, 5, None]),
    "a struct with NULL": ("struct(a int)", [(3,), (5,), (None,)]),
    "a list with NULL": ("int[]", [(3,), (5,), (None,)]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("policy", ["drop", "null"])
def test_no_value_stops_a_writer(query: str, kind: str, policy: Any) -> None:
    declared, values = KINDS[kind]
    if query == NO_COMMON_TYPE and declared != "int":
        db = Database()
        db.execute(f"create table t (k int, x {declared})")
        with pytest.raises(PlanError, match="no common type"):
            db.sql(query)
        return
    found = []
    for order in permutations(values):
        db = Database()
        db.execute(f"create table t (k int, x {declared})")
        view = db.sql(query).materialize(on_error=policy)
        (table,) = db.tables()
        rows = [table.row_type(1, value) for value in order]
        for row in rows:
            table.add(row)
            view.verify()
        found.append((sorted(map(repr, view)), sorted(map(repr, view.errors))))
        view.errors.verify()
        for row in rows:
            table.remove(row)
            view.verify()
        assert list(view.errors) == []
    assert all(each == found[0] for each in found)  # in any order of arrival


def test_of_values_without_a_declared_kind_most_are_shown() -> None:
    db = Database()
    rows = db.table(tuple[int, Any], name="rows")
    view = rows.order_by(lambda row: row[1]).materialize(on_error="drop")
    rows.add_all([(1, "b"), (2, 7), (3, "a")])
    assert list(view) == [(3, "a"), (1, "b")]
    assert [error.row for error in view.errors] == [(2, 7)]
    rows.add_all([(4, 5), (5, 6)])
    view.verify()
    view.errors.verify()
    assert list(view) == [(4, 5), (5, 6), (2, 7)]
    rows.remove_all([(1, "b"), (3, "a")])
    assert list(view.errors) == []


def test_two_recursions_beside_each_other_are_apart() -> None:
    db = Database()
    db.execute("create table e (a int, b int)")
    db.execute("insert into e values (1, 2), (2, 3), (3, 0)")
    text = """
        with recursive
          x(a, b) as (select a, 10 % b from e where b > 0 union
            select x.a, 10 % e.b from x join e on x.a = e.a where e.b > 0),
          y(a, b) as (select a, 25 % b from e union
            select y.a, 25 % e.b from y join e on y.a = e.a)
        select 'x' as k, a, b from x union all select 'y', a, b from y"""
    view = db.sql(text).materialize(on_error="drop")
    rows = sorted(map(tuple, view))
    assert rows == [("x", 1, 0), ("x", 2, 1), ("y", 1, 1), ("y", 2, 1)]
    assert {error.error.kind for error in view.errors} == {"ZeroDivisionError"}
    view.verify()
