"""Tuples of a declared width: the table sees to it, so that queries read items without fear."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, PlanError, TableError
from tests.budget import examples

FROM_LIST = "x[0] == y[0] and y[1] == z[1] and z[0] == 5"


class Pair(NamedTuple):
    a: int
    b: int


def test_keys_of_a_from_list_are_found() -> None:
    db = Database()
    a, b, c = (db.table(tuple[int, int], name=name) for name in "abc")
    listed = a.join(b).join(c)
    query = listed.where(lambda x, y, z: x[0] == y[0] and y[1] == z[1] and z[0] == 5)
    assert "unless_raises" not in str(query.explain())
    view = query.materialize()
    for table in (a, b, c):
        table.add_all((n, n) for n in range(200))
    assert list(view) == [((5, 5), (5, 5), (5, 5))]
    view.verify()
    a.add((5, 7))  # makes indexes that are looked up for the first time
    before = view.stats().touched
    a.add((5, 8))
    assert view.stats().touched - before < 10


ITEMS = st.sampled_from([0, 1, 5, None, 2.5])
HISTORIES = st.lists(
    st.lists(st.tuples(st.booleans(), st.integers(0, 2), ITEMS, ITEMS), max_size=4), max_size=5
)


@examples(150)
@given(history=HISTORIES, optimize=st.booleans())
def test_they_are_joined_as_tuples_are(history: Any, optimize: bool) -> None:
    db = Database(optimize=optimize)
    tables = [db.table(tuple[int | None, Any], name=name) for name in "abc"]
    a, b, c = tables
    view = (
        a.join(b).join(c).where(lambda x, y, z: x[0] == y[0] and y[1] == z[1] and z[0] == 5)
    ).materialize()
    for commit in history:
        with db.transaction():
            for comes, which, one, other in commit:
                table = tables[which]
                (table.add if comes else table.discard)((one, other))
        expected = [
            (x, y, z)
            for x in a
            for y in b
            for z in c
            if x[0] == y[0] and y[1] == z[1] and z[0] == 5
        ]
        assert Counter(view) == Counter(expected)
        view.verify()


WRONG = r"table 'pairs' takes rows of tuple\[int, int\], not one of 3 items: \(1, 2, 3\)\n  declare"


@pytest.mark.parametrize("held", [0, 3, 500])
def test_rows_of_other_lengths_are_refused(held: int) -> None:
    db = Database()
    pairs: Any = db.table(tuple[int, int], name="pairs")
    pairs.add_all([(n, n) for n in range(held)])
    for n in range(held, held + 5):
        pairs.add((n, n))
    with pytest.raises(TableError, match=WRONG):
        pairs.add((1, 2, 3))
    with pytest.raises(TableError, match=WRONG):
        pairs.add_all([*[(n, n) for n in range(900, 1200)], (1, 2, 3)])
    with pytest.raises(TableError, match="takes rows of"):
        pairs.add([1, 2])
    assert len(pairs) == held + 5 and (1, 2, 3) not in pairs
    pairs.add(Pair(-1, -1))
    assert (-1, -1) in pairs


def test_items_that_are_not_there_are_refused_when_the_query_is_made() -> None:
    pairs = Database().table(tuple[int, str])
    with pytest.raises(PlanError, match="a tuple of 2 items has no item 2"):
        pairs.where(lambda p: p[2] > 1)  # type: ignore[misc]


@pytest.mark.parametrize("annotation", [tuple, tuple[int, ...], object])
def test_other_tuples_are_of_any_length(annotation: Any) -> None:
    rows = Database().table(annotation)
    rows.add_all([(1,), (1, 2), ()])
    assert len(rows) == 3


def test_a_keyed_table_has_a_width_too() -> None:
    pairs: Any = Database().table(tuple[int, str], name="pairs", key=lambda p: p[0])
    pairs.add((1, "a"))
    with pytest.raises(TableError, match="not one of 1 items"):
        pairs.add((2,))
    assert pairs[1] == (1, "a")
