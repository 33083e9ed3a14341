"""Equal recursions are one operator, which is freed when no query needs it."""

from __future__ import annotations

from typing import Any

import pytest

from reactive import Count, Database, Table, fixpoint
from tests.engine.operators.fixpoint.graphs import Edge
from tests.engine.operators.fixpoint.test_shapes import non_linear, step
from tests.engine.operators.fixpoint.watched import COMPONENT, QUERIES, Watched


def operators(db: Database) -> int:
    return len(db._engine.graph._nodes)


@pytest.mark.parametrize("name", QUERIES)
def test_equal_recursions_are_one(name: str) -> None:
    watched = Watched(QUERIES[name], COMPONENT)
    alone = operators(watched.db)
    other: Any = QUERIES[name](watched.edges).materialize()
    assert operators(watched.db) == alone
    watched.view.close()
    watched.edges.add(Edge(8, 1))
    other.verify()
    other.close()
    assert operators(watched.db) == 0


def test_what_stands_on_one_recursion_shares_it() -> None:
    db = Database()
    edges: Table[Edge] = db.table(Edge, name="edges")
    view: Any = non_linear(edges).materialize()
    edges.add_all(COMPONENT)
    reach = non_linear(edges)
    counts = reach.group_by(lambda p: p.src).aggregate(Count()).materialize()
    loops = reach.where(lambda p: p.src == p.dst).materialize()
    before = view.stats().touched
    edges.add(Edge(8, 9))
    alone = view.stats().touched - before
    before = view.stats().touched
    counts.close()
    loops.close()
    edges.remove(Edge(8, 9))
    edges.add(Edge(8, 9))
    assert view.stats().touched - before <= 3 * alone
    view.close()
    assert operators(db) == 0


def test_a_recursion_that_nobody_holds_is_detached_at_once() -> None:
    db = Database()
    edges: Table[Edge] = db.table(Edge, name="edges")
    odd, even = fixpoint(lambda odd, even: (edges.union(step(even, edges)), step(odd, edges)))
    first, second = odd.materialize(), even.materialize()
    both = operators(db)
    edges.add_all(COMPONENT)
    del first
    assert 0 < operators(db) < both
    edges.add(Edge(8, 9))
    second.verify()
    del second
    assert operators(db) == 0
    assert db.views() == []
