"""A SQL view never stops those who write: what does not compare is an error row."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from reactive import Database

QUERIES = [
    *(f"select k, {of} as v from t group by k" for of in ("min(x)", "max(x)", "bit_or(x)")),
    "select k, arg_max(k, x) as v from t group by k",
    "select x from t order by x",
    "select k, x from t order by x desc limit 2",
    "select distinct on (k) k, x from t order by k, x",
    "select k from t where x = (select max(x) from t)",
    "select x from t union select k from t order by 1",
]
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
