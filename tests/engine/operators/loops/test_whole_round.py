"""Rounds with outer, semi and anti joins, evaluated whole: exactly the rows of the reference."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Max, Min, Sum, iterate
from reactive.engine.operators.loop.loop_recomputation import AdaptiveLoop
from tests.budget import examples

Rel = Any
KEYS = [0, 1, 2, None, nan, "a"]


class Edge(NamedTuple):
    src: Any
    dst: Any
    weight: int


class Rank(NamedTuple):
    node: Any
    value: Any


@pytest.fixture(autouse=True)
def only_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds are evaluated whole, also where operators would follow changes of so few rows."""
    monkeypatch.setattr(AdaptiveLoop, "_consider", lambda self, changed: None)


def nodes_of(edges: Rel) -> Rel:
    return edges.select_many(lambda e: (e.src, e.dst)).distinct()


def sums_of(edges: Rel, ranks: Rel) -> Rel:
    given = edges.join(ranks, on=lambda e, r: e.src == r.node)
    return given.group_by(lambda e, r: e.dst).aggregate(Sum(lambda e, r: e.weight * r.value % 101))


def left_joined(edges: Rel, ranks: Rel) -> Rel:
    return (
        nodes_of(edges)
        .left_join(sums_of(edges, ranks), on=lambda n, s: n == s[0])
        .select(lambda n, s: Rank(n, 7 if s is None else s[1]))
    )


def left_joined_and_tested(edges: Rel, ranks: Rel) -> Rel:
    """Only some rows of the left have a key; the others are kept."""
    return (
        ranks.left_join(edges, on=lambda r, e: r.value > 2 and r.node == e.src)
        .group_by(lambda r, e: r.node if e is None else e.dst)
        .aggregate(Count(), Max(lambda r, e: r.value))
        .select(lambda node, n, most: Rank(node, (n + most) % 5))
    )


def left_joined_with_a_rest(edges: Rel, ranks: Rel) -> Rel:
    return (
        ranks.left_join(edges, on=lambda r, e: r.node == e.src and r.value % 3 < e.weight)
        .group_by(lambda r, e: r.node if e is None else e.dst)
        .aggregate(Sum(lambda r, e: r.value if e is None else e.weight))
        .select(lambda node, total: Rank(node, total % 13))
    )


def right_joined(edges: Rel, ranks: Rel) -> Rel:
    return (
        edges.right_join(ranks, on=lambda e, r: e.src == r.node and e.weight + r.value < 5)
        .group_by(lambda e, r: r.node)
        .aggregate(Sum(lambda e, r: 1 if e is None else e.weight + r.value))
        .select(lambda node, total: Rank(node, total % 7))
    )


def full_joined(edges: Rel, ranks: Rel) -> Rel:
    """Nodes without edges and edges from nodes without a rank both remain."""
    return (
        edges.full_join(ranks.where(lambda r: r.value % 2 == 1), on=lambda e, r: e.dst == r.node)
        .group_by(lambda e, r: r.node if e is None else e.src)
        .aggregate(Sum(lambda e, r: 2 if r is None else r.value))
        .select(lambda node, total: Rank(node, total % 11))
    )


def left_joined_twice(edges: Rel, ranks: Rel) -> Rel:
    return (
        nodes_of(edges)
        .left_join(edges, on=lambda n, e: n == e.dst)
        .left_join(ranks, on=lambda n, e, r: (None if e is None else e.src) == r.node)
        .group_by(lambda n, e, r: n)
        .aggregate(Sum(lambda n, e, r: 3 if r is None else r.value))
        .select(lambda n, total: Rank(n, total % 17))
    )


def anti_joined(edges: Rel, ranks: Rel) -> Rel:
    """Rows that some test leaves out, and rows without a key, have no partner: they remain."""
    left = ranks.anti_join(edges, on=lambda r, e: r.value > 3 and r.node == e.src)
    return left.union_all(sums_of(edges, ranks).select(lambda node, total: Rank(node, total % 19)))


def semi_joined(edges: Rel, ranks: Rel) -> Rel:
    some = ranks.semi_join(edges, on=lambda r, e: r.node == e.dst)
    return some.union_all(sums_of(edges, ranks).select(lambda node, total: Rank(node, total % 23)))


def nearest(edges: Rel, ranks: Rel) -> Rel:
    """The rows of one side are the groups of a product; copies of a row are one group."""
    return (
        edges.join(ranks)
        .group_by(lambda e, r: e)
        .aggregate(Min(lambda e, r: (abs(r.value - e.weight), r.value)))
        .select(lambda e, best: Rank(e.dst, best[0] + best[1] % 3))
    )


def farthest_of_some(edges: Rel, ranks: Rel) -> Rel:
    """A group may lose all of its pairs, and the other side decides the group."""
    return (
        ranks.join(edges)
        .where(lambda r, e: (r.value + e.weight) % 2 == 0)
        .group_by(lambda r, e: e.src)
        .aggregate(Max(lambda r, e: (r.value * e.weight, e.weight)))
        .select(lambda src, best: Rank(src, best[0] % 9))
        .union_all(ranks.where(lambda r: r.value < 2))
    )


def added_up_over_a_product(edges: Rel, ranks: Rel) -> Rel:
    return (
        ranks.join(edges)
        .where(lambda r, e: r.value != e.weight)
        .group_by(lambda r, e: (e.dst, e.weight))
        .aggregate(Sum(lambda r, e: r.value), Count())
        .select(lambda key, total, n: Rank(key[0], (total + n) % 6))
    )


STEPS = (
    nearest,
    farthest_of_some,
    added_up_over_a_product,
    left_joined,
    left_joined_and_tested,
    left_joined_with_a_rest,
    right_joined,
    full_joined,
    left_joined_twice,
    anti_joined,
    semi_joined,
)
EDGES = st.builds(Edge, *[st.sampled_from(KEYS)] * 2, st.integers(-2, 4))
EDITS = st.lists(st.lists(st.tuples(st.booleans(), EDGES), max_size=5), min_size=1, max_size=8)


@pytest.mark.parametrize("step", STEPS)
def test_rows_are_those_of_the_reference_after_each_commit(
    step: Callable[[Rel, Rel], Rel],
) -> None:
    @examples(30)
    @given(edits=EDITS, times=st.integers(2, 5))
    def run(edits: Any, times: int) -> None:
        db = Database()
        edges = db.table(Edge, name="edges")
        starts = nodes_of(edges).select(lambda n: Rank(n, 1))
        loop = iterate(lambda ranks: step(edges, ranks), starts, times=times)
        assert "rounds of iterate" in str(loop.explain())
        view = loop.materialize()
        for transaction in edits:
            with db.transaction():
                for is_new, edge in transaction:
                    if is_new or edge not in edges:
                        edges.add(edge)
                    else:
                        edges.remove(edge)
            view.verify()

    run()
