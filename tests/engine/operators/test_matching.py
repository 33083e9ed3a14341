"""Equal rows of two tables are the same row to a join that counts their partners."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database
from reactive.engine.collections.zset import UniformDelta
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.matching import KeyMatching, anti_join, semi_join
from tests.budget import examples


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("kind", ["semi_join", "left_join"])
def test_a_row_that_two_tables_have_counts_its_partners_once(kind: str, optimize: bool) -> None:
    db = Database(optimize=optimize)
    ours, theirs = db.table(tuple, name="ours"), db.table(tuple, name="theirs")
    others = db.table(int, name="others")
    both = ours.union_all(theirs)
    view = getattr(both, kind)(others, on=lambda row, n: row[0] < n).materialize()
    ours.add((1000, 1))
    theirs.add((1000, 1))
    others.add(2000)
    theirs.remove((1000, 1))
    others.remove(2000)
    view.verify()
    assert len(view) == (kind == "left_join")


class Numbered(NamedTuple):
    key: int
    number: int


KEYS = st.sampled_from([0, 1, 2, 1.0, None, float("nan")])
SIDES = st.tuples(*[st.lists(st.tuples(KEYS, st.integers(0, 3)), max_size=12)] * 2)


@pytest.mark.parametrize("kind", ["semi_join", "anti_join", "left_join", "full_join"])
@given(st.lists(SIDES, min_size=1, max_size=4), st.booleans())
@examples(40)
def test_batches_of_both_sides_change_partners_together(
    kind: str, batches: list[tuple[list[Any], list[Any]]], read: bool
) -> None:
    db = Database()
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    query = getattr(a, kind)(b, on=lambda x, y: x[0] == y[0])
    if kind in ("semi_join", "anti_join"):
        query = query.select(lambda x: x[1]) if read else query
    view = query.materialize()
    for left, right in batches:
        with db.transaction():
            a.add_all(left)
            b.add_all(right)
        view.verify()
    for left, right in batches:  # rows go and come in one commit
        with db.transaction():
            a.remove_all(left)
            b.add_all(right[::2])
        view.verify()
        with db.transaction():
            b.remove_all(right)
            a.add_all(left[::2])
        view.verify()
    db.close()


@pytest.mark.parametrize(("kind", "count"), [("semi_join", 30), ("anti_join", 70)])
def test_a_batch_of_left_rows_makes_a_batch(kind: str, count: int) -> None:
    db = Database()
    a, b = db.table(Numbered, name="a"), db.table(Numbered, name="b")
    view = getattr(a, kind)(b, on=lambda x, y: x.key == y.key).materialize()
    told: list[Any] = []
    with view.subscribe(lambda delta: told.append(delta._pairs)), db.transaction():
        a.add_all([Numbered(n % 10, n) for n in range(100)])
        b.add_all([Numbered(n, 0) for n in range(3)])
    assert [(type(pairs), len(pairs)) for pairs in told] == [(UniformDelta, count)]
    view.verify()


@pytest.mark.parametrize("kind", ["semi_join", "anti_join"])
def test_new_rows_are_touched_once_when_their_partners_come_too(kind: str) -> None:
    matching = KeyMatching((names := IndexBy(len)).index)
    make = semi_join if kind == "semi_join" else anti_join
    join = make(matching)
    left = names.step(UniformDelta([f"name {n:05}" for n in range(1_000)], 1))
    found = join.step(left, [(10, ("other", 1))])
    assert len(found) == (1_000 if kind == "semi_join" else 0)
    assert matching.touched == 1_001
