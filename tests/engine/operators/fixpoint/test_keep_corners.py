"""`keep` with keys and costs out of the ordinary, of several relations, and without end."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, FixpointError, Max, Min, Table, fixpoint
from tests.budget import examples
from tests.engine.operators.fixpoint.follow import Follower
from tests.engine.operators.fixpoint.graphs import Edge, Road, closure, least
from tests.engine.operators.fixpoint.test_keep import Dist, Map, legs, longest, roads, shortest

Rel = Any


# Keys and costs out of the ordinary.


def test_none_is_a_key_and_all_nan_keys_are_one() -> None:
    db = Database()
    rows: Table[Dist] = db.table(Dist, name="rows")
    view: Any = fixpoint(
        lambda best: rows.union(best.where(lambda d: d.cost > 100)),
        keep=Min(lambda d: d.cost),
        by=lambda d: d.node,
    ).materialize()
    rows.add_all([Dist(None, 2), Dist(None, 1), Dist(float("nan"), 4), Dist(float("nan"), 3)])
    assert sorted(d.cost for d in view) == [1, 3]
    rows.remove(Dist(None, 1))
    assert sorted(d.cost for d in view) == [2, 3]
    rows.clear()
    assert (list(view), view.stats().rows) == ([], 0)


@pytest.mark.parametrize(("keep", "best"), [(Min, 1), (Max, "nan")])
def test_a_nan_cost_comes_after_everything(keep: Any, best: Any) -> None:
    db = Database()
    rows: Table[Any] = db.table(tuple, name="rows")
    view: Any = fixpoint(
        lambda kept: rows.union(kept.where(lambda r: False)),
        keep=keep(lambda r: r[1]),
        by=lambda r: r[0],
    ).materialize()
    for row in ((0, math.nan), (0, 2), (0, 1)):
        rows.add(row)
        view.verify()
    assert [str(cost) for _, cost in view] == [str(best)]
    rows.remove((0, 1))
    rows.remove((0, 2))
    assert [str(cost) for _, cost in view] == ["nan"]
    view.verify()


def test_min_of_the_row_itself() -> None:
    """The row is the value: the least cost of a node, and of equal costs the least of the rest."""
    db = Database()
    starts: Table[Any] = db.table(tuple, name="starts")
    edges: Table[Edge] = db.table(Edge, name="edges")
    best: Any = fixpoint(
        lambda best: starts.union(
            best.join(edges, on=lambda b, e: b[1] == e.src).select(lambda b, e: (b[0] + 1, e.dst))
        ),
        keep=Min(lambda b: b),
        by=lambda b: b[1],
    )
    view = best.materialize()
    starts.add_all([(0, "a"), (3, "b")])
    edges.add_all([Edge("a", "b"), Edge("b", "c"), Edge("c", "a")])
    assert sorted(view) == [(0, "a"), (1, "b"), (2, "c")]
    edges.remove(Edge("a", "b"))
    assert sorted(view) == [(0, "a"), (3, "b"), (4, "c")]
    starts.remove((0, "a"))
    assert sorted(view) == [(3, "b"), (4, "c"), (5, "a")]
    view.verify()


# Several relations.


class Door(NamedTuple):
    """A way that is open when the node `needs` can be reached."""

    src: int
    dst: int
    cost: int
    needs: int


def distances_and_keys(starts: Rel, doors: Rel) -> tuple[Rel, Rel]:
    """Distances of nodes, and the nodes that are reached; each needs the other."""
    return fixpoint(
        lambda dist, reached: (
            starts.union(
                dist.join(doors, on=lambda d, w: d.node == w.src)
                .join(reached, on=lambda d, w, n: w.needs == n)
                .select(lambda d, w, n: Dist(w.dst, d.cost + w.cost))
            ),
            dist.select(lambda d: d.node),
        ),
        keep=(Min(lambda d: d.cost), None),
        by=(lambda d: d.node, None),
    )


def opened(starts: list[Dist], doors: list[Door]) -> dict[Any, Any]:
    reached: set[Any] = set()
    while True:
        ways = [Road(d.src, d.dst, d.cost) for d in doors if d.needs in reached]
        found = least(starts, ways)
        if reached == set(found):
            return dict(found)
        reached = set(found)


def test_mutual_recursion_with_the_best_of_one_relation() -> None:
    node = st.integers(0, 4)
    door = st.builds(Door, node, node, st.sampled_from([0, 1, 1, 3]), node)

    @examples(50)
    @given(edits=st.lists(st.tuples(st.booleans(), door), min_size=5, max_size=20))
    def run(edits: list[tuple[bool, Door]]) -> None:
        db = Database()
        starts: Table[Dist] = db.table(Dist, name="starts")
        doors: Table[Door] = db.table(Door, name="doors")
        dist, reached = (r.materialize() for r in distances_and_keys(starts, doors))
        followers = [Follower(dist), Follower(reached)]
        starts.add(Dist(0, 0))
        for is_new, row in edits:
            if is_new or row not in doors:
                doors.add(row)
            else:
                doors.remove(row)
            wanted = opened(list(starts), list(doors))
            assert {d.node: d.cost for d in dist} == wanted
            assert sorted(reached) == sorted(wanted)
            for follower in followers:
                follower.check()
        dist.verify()
        reached.verify()

    run()


def test_what_is_kept_is_an_ordinary_relation_outside() -> None:
    graph = Map()
    near = shortest(graph.starts, graph.roads).where(lambda d: d.cost < 3)
    counts = near.group_by(lambda d: d.cost).aggregate(Count()).materialize()
    far = (
        graph.roads.select(lambda r: r.dst).difference(near.select(lambda d: d.node)).materialize()
    )
    over: Any = fixpoint(
        lambda pairs: (
            near.join(near, on=lambda a, b: a.cost + 1 == b.cost)
            .select(lambda a, b: Edge(a.node, b.node))
            .union(
                pairs.join(pairs, on=lambda p, q: p.dst == q.src).select(
                    lambda p, q: Edge(p.src, q.dst)
                )
            )
        )
    ).materialize()
    graph.starts.add(Dist(0, 0))
    for road in roads((0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 2, 1), (3, 0, 0)):
        graph.roads.add(road)
        costs = {n: c for n, c in graph.costs().items() if c < 3}
        assert dict(counts) == {c: list(costs.values()).count(c) for c in costs.values()}
        assert set(far) == {r.dst for r in graph.roads} - costs.keys()
        steps = [Edge(a, b) for a in costs for b in costs if costs[a] + 1 == costs[b]]
        assert set(over) == closure(steps)
    for view in (counts, far, over):
        view.verify()


@pytest.mark.parametrize("query", [shortest, legs, longest], ids=lambda query: query.__name__)
def test_what_was_beaten_does_not_pile_up(query: Any) -> None:
    """Insert and delete edges of a graph full of cycles; the size of the state is bounded."""
    graph = Map(query)
    graph.starts.add_all([Dist(0, 0), Dist(3, 2)])
    ways = [Road(src, dst, (3 * src + dst) % 3) for src in range(4) for dst in range(4)]
    graph.roads.add_all(ways)
    sizes = []
    for turn in range(6):
        for road in ways[turn % 2 :: 2]:
            graph.roads.remove(road)
            graph.roads.add(road)
        sizes.append(graph.view.stats().rows)
    graph.view.verify()
    assert max(sizes[3:]) <= max(sizes[:3])
    graph.starts.clear()
    assert list(graph.view) == []
    graph.roads.clear()
    assert graph.view.stats().rows == 0


# Costs that never settle.


def test_a_cycle_of_negative_cost_is_refused_and_rolled_back() -> None:
    graph = Map(max_rounds=40)
    graph.starts.add(Dist(0, 0))
    graph.roads.add_all(roads((0, 1, 5), (1, 2, -1)))
    before = graph.costs()
    assert before == {0: 0, 1: 5, 2: 4}
    touched = len(graph.roads)
    with pytest.raises(FixpointError):
        graph.roads.add(Road(2, 1, -1))
    assert (graph.costs(), len(graph.roads)) == (before, touched)
    graph.roads.add(Road(2, 1, 1))
    graph.check()
    with pytest.raises(FixpointError):
        graph.roads.update(Road(2, 1, 1), Road(2, 1, 0))
    graph.check()
    graph.roads.remove(Road(1, 2, -1))
    graph.check()
    graph.view.verify()


def test_a_row_that_is_beaten_by_what_follows_from_it_stays_unseen() -> None:
    numbers: Table[Any] = Database().table(tuple, name="numbers")
    best: Any = fixpoint(
        lambda best: numbers.union(best.where(lambda r: r[1] == 2).select(lambda r: (r[0], 1))),
        keep=Min(lambda r: r[1]),
        by=lambda r: r[0],
        max_rounds=40,
    )
    view = best.materialize()
    numbers.add((7, 3))
    numbers.add((7, 2))
    assert list(view) == [(7, 1)]
    view.verify()
    numbers.add((7, 0))
    assert list(view) == [(7, 0)]
    numbers.remove((7, 0))
    assert list(view) == [(7, 1)]
    view.verify()
    numbers.remove((7, 2))
    assert list(view) == [(7, 3)]
    view.verify()
