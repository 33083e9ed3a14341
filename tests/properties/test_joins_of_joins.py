"""Aggregates of joins of joins, with any conditions, equal the plan as written."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given

from reactive import Database
from tests.budget import examples
from tests.random_queries.drawn import SEEDS, commit, draw
from tests.random_queries.histories import Held
from tests.random_queries.plans import Switches

TABLES = (Held("D"), Held("N", "id"), Held("D"))


@examples(200, share=8)
@given(seed=SEEDS)
def test_they_equal_the_plan_as_written(seed: int) -> None:
    drawn = draw(seed, Switches(joins_only=True), tables=TABLES, modes=("ints",), steps=12)
    sides: list[tuple[Database, list[Any], Any]] = []
    for optimize in (True, False):
        db = Database(optimize=optimize)
        tables = drawn.open(db)
        (relation,) = drawn.relations(tables)
        sides.append((db, tables, relation.materialize()))
    for calls in drawn.script():
        for db, tables, _ in sides:
            commit(db, tables, calls)
        shown = [Counter(dict(view.zset().items())) for _, _, view in sides]
        assert shown[0] == shown[1], drawn
