"""Many rounds of a row each: no limit of recursion, and no quadratic work."""

from __future__ import annotations

from typing import Any

import pytest

from reactive import Database, Table, fixpoint
from tests.engine.operators.fixpoint.graphs import Edge, chain

Rel = Any


def counted(numbers: Rel, limit: int) -> Rel:
    return fixpoint(
        lambda count: numbers.union(count.where(lambda n: n < limit).select(lambda n: n + 1)),
        max_rounds=200_000,
    )


def rounds_of(limit: int) -> list[int]:
    """Return the rows touched to insert a chain, to cut it at its end, and to delete it."""
    numbers: Table[int] = Database().table(int, name="numbers")
    view: Any = counted(numbers, limit).materialize()
    counts, before = [], view.stats().touched
    for change, number in (("add", 0), ("add", limit - 5), ("remove", limit - 5), ("remove", 0)):
        getattr(numbers, change)(number)
        counts.append(view.stats().touched - before)
        before = view.stats().touched
    assert (len(view), view.stats().rows) == (0, 0)
    return counts


def test_rounds_cost_what_they_bring_and_no_more() -> None:
    small, large = rounds_of(500), rounds_of(5_000)
    assert large[0] <= 10.2 * small[0]
    assert large[3] <= 10.2 * small[3]
    assert large[1] <= 2 * small[1] + 20
    assert max(small[1:3] + large[1:3]) <= 200


@pytest.mark.long
def test_a_hundred_thousand_rounds() -> None:
    counts = rounds_of(100_000)
    assert counts[0] <= 20 * 100_000
    assert counts[3] <= 20 * 100_000


def test_a_deep_chain_of_joins() -> None:
    length = 20_000
    db = Database()
    edges: Table[Edge] = db.table(Edge, name="edges")
    view: Any = fixpoint(
        lambda seen: edges.where(lambda e: e.src == 0).union(
            seen.join(edges, on=lambda s, e: s.dst == e.src).select(lambda s, e: Edge(0, e.dst))
        ),
        max_rounds=100_000,
    ).materialize()
    edges.add_all(chain(*range(length + 1)))
    assert len(view) == length
    before = view.stats().touched
    edges.remove(Edge(length - 10, length - 9))
    edges.add(Edge(length - 10, length - 9))
    assert view.stats().touched - before <= 500
    edges.remove(Edge(length // 2, length // 2 + 1))
    assert len(view) == length // 2
    edges.add(Edge(length // 2, length // 2 + 1))
    assert len(view) == length
    assert view.stats().touched - before <= 20 * length
    edges.clear()
    assert view.stats().rows == 0
