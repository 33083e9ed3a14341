"""`keep=Min(...)` and `keep=Max(...)`: the best row of each key, after any changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, Max, Min, Table, fixpoint
from tests.budget import examples
from tests.engine.operators.fixpoint.follow import Follower
from tests.engine.operators.fixpoint.graphs import Road, least, settled

Rel = Any
CAP = 6
"""Upper limit of the costs of longest ways."""


class Dist(NamedTuple):
    """The distance of a node."""

    node: Any
    cost: Any


def shortest(starts: Rel, roads: Rel, **options: Any) -> Rel:
    return fixpoint(
        lambda dist: starts.union(
            dist.join(roads, on=lambda d, r: d.node == r.src).select(
                lambda d, r: Dist(r.dst, d.cost + r.cost)
            )
        ),
        keep=Min(lambda d: d.cost),
        by=lambda d: d.node,
        **options,
    )


class Map:
    """Roads and starts, and the shortest ways from these."""

    def __init__(self, query: Callable[..., Rel] = shortest, **options: Any) -> None:
        self.db = Database()
        self.starts: Table[Dist] = self.db.table(Dist, name="starts")
        self.roads: Table[Road] = self.db.table(Road, name="roads")
        self.view: Any = query(self.starts, self.roads, **options).materialize("shortest")
        self.follower = Follower(self.view)

    def costs(self) -> dict[Any, Any]:
        assert len({d.node for d in self.view}) == len(self.view), "two rows of a key"
        self.follower.check()
        return {d.node: d.cost for d in self.view}

    def check(self) -> None:
        assert self.costs() == least(self.starts, self.roads)

    def touched_by(self, change: Callable[[], object]) -> int:
        before = self.view.stats().touched
        change()
        self.check()
        return int(self.view.stats().touched - before)


def roads(*rows: tuple[Any, Any, Any]) -> list[Road]:
    return [Road(*row) for row in rows]


NUMBERS: dict[str, Sequence[Any]] = {
    "integers": (0, 0, 1, 1, 2, 5),
    "floats": (0.0, 0.1, 0.2, 0.3, 1.0),
    "mixed": (0, 0.5, 1, 1.0, Fraction(1, 4)),
}


@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
def test_shortest_paths_are_right_after_every_commit(numbers: Sequence[Any]) -> None:
    nodes = st.integers(0, 4)
    road = st.builds(Road, nodes, nodes, st.sampled_from(numbers))
    start = st.builds(Dist, nodes, st.sampled_from(numbers))

    @examples(30)
    @given(first=st.lists(road, min_size=5, max_size=14), begin=start, data=st.data())
    def run(first: list[Road], begin: Dist, data: Any) -> None:
        graph = Map()
        graph.roads.add_all(first)
        graph.starts.add(begin)
        graph.check()
        for _ in range(8):
            with graph.db.transaction():
                for _ in range(data.draw(st.integers(0, 3))):
                    change(graph, data)
            graph.check()
        graph.view.verify()
        late = shortest(graph.starts, graph.roads).materialize()
        assert sorted(late.zset().items()) == sorted(graph.view.zset().items())
        graph.roads.clear()
        graph.starts.clear()
        assert (list(graph.view), graph.view.stats().rows) == ([], 0)

    def change(graph: Map, data: Any) -> None:
        table, new = (
            (graph.starts, start) if data.draw(st.integers(0, 5)) == 0 else (graph.roads, road)
        )
        rows = sorted(table)
        what = data.draw(st.sampled_from(["add", "remove", "remove", "update"]))
        if what == "add" or not rows:
            table.add(data.draw(new))
        elif what == "remove":
            table.remove(data.draw(st.sampled_from(rows)))
        else:
            table.update(data.draw(st.sampled_from(rows)), data.draw(new))

    run()


def test_a_cycle_of_no_cost_does_not_keep_itself_alive() -> None:
    graph = Map()
    graph.starts.add(Dist(0, 0))
    graph.roads.add_all(roads((0, 1, 3), (1, 2, 0), (2, 3, 0), (3, 1, 0)))
    assert graph.costs() == {0: 0, 1: 3, 2: 3, 3: 3}
    graph.roads.remove(Road(0, 1, 3))
    assert graph.costs() == {0: 0}
    graph.roads.add(Road(0, 2, 5))
    assert graph.costs() == {0: 0, 1: 5, 2: 5, 3: 5}


def test_a_cycle_that_lost_its_start_does_not_count_to_infinity() -> None:
    graph = Map(max_rounds=50)
    graph.starts.add(Dist(0, 0))
    graph.roads.add_all(roads((0, 1, 1), (1, 2, 1), (2, 1, 1), (2, 3, 1)))
    assert graph.costs() == {0: 0, 1: 1, 2: 2, 3: 3}
    assert graph.touched_by(lambda: graph.roads.remove(Road(0, 1, 1))) < 100
    assert graph.costs() == {0: 0}


def test_the_second_best_takes_over_and_gives_way_again() -> None:
    graph = Map()
    graph.starts.add(Dist("a", 0))
    graph.roads.add_all(roads(("a", "b", 1), ("a", "c", 9), ("b", "c", 1), ("c", "d", 1)))
    assert graph.costs() == {"a": 0, "b": 1, "c": 2, "d": 3}
    graph.roads.remove(Road("b", "c", 1))
    assert graph.costs() == {"a": 0, "b": 1, "c": 9, "d": 10}
    graph.roads.add(Road("b", "c", 1))
    assert graph.costs() == {"a": 0, "b": 1, "c": 2, "d": 3}
    graph.roads.update(Road("a", "b", 1), Road("a", "b", 20))
    assert graph.costs() == {"a": 0, "b": 20, "c": 9, "d": 10}


def test_a_worse_way_and_a_second_way_of_the_same_cost_are_no_news() -> None:
    graph = Map()
    graph.starts.add(Dist(0, 0))
    graph.roads.add_all(roads((0, 1, 1), (1, 3, 1)))
    heard = graph.follower.heard
    graph.roads.add_all(roads((0, 2, 1), (2, 3, 7)))
    assert graph.follower.heard == heard + 1
    graph.roads.add(Road(2, 3, 1))
    graph.roads.remove(Road(1, 3, 1))
    graph.roads.remove(Road(2, 3, 7))
    assert graph.follower.heard == heard + 1
    graph.check()


class Leg(NamedTuple):
    """The distance of a node, and the node before it."""

    node: Any
    cost: Any
    via: Any


def legs(starts: Rel, roads: Rel) -> Rel:
    return fixpoint(
        lambda leg: starts.select(lambda s: Leg(s.node, s.cost, -1)).union(
            leg.join(roads, on=lambda d, r: d.node == r.src).select(
                lambda d, r: Leg(r.dst, d.cost + r.cost, d.node)
            )
        ),
        keep=Min(lambda d: d.cost),
        by=lambda d: d.node,
    )


def test_of_rows_that_are_equally_good_the_same_one_stays_whatever_came_first() -> None:
    """A view is its query of the current tables, and does not depend on their history."""
    ways = roads((0, 1, 1), (0, 2, 1), (0, 3, 1), (1, 4, 1), (2, 4, 1), (3, 4, 1), (4, 4, 0))
    found = []
    for turn in range(len(ways)):
        graph = Map(legs)
        graph.starts.add(Dist(0, 0))
        for road in ways[turn:] + ways[:turn]:
            graph.roads.add(road)
            graph.check()
            graph.view.verify()
        for road in ways[:3]:
            graph.roads.remove(road)
            graph.view.verify()
            graph.roads.add(road)
            graph.view.verify()
        graph.check()
        found.append(sorted(graph.view))
    assert all(rows == found[0] for rows in found)


def test_the_best_of_a_key_leads_back_to_a_start() -> None:
    """Following `via` from any node costs the distance of the node, after random edits."""
    node, cost = st.integers(0, 5), st.sampled_from([0, 1, 1, 2])

    @examples(25)
    @given(edits=st.lists(st.tuples(st.booleans(), st.builds(Road, node, node, cost)), max_size=30))
    def run(edits: list[tuple[bool, Road]]) -> None:
        graph = Map(legs)
        graph.starts.add(Dist(0, 0))
        for is_new, road in edits:
            if is_new or road not in graph.roads:
                graph.roads.add(road)
            else:
                graph.roads.remove(road)
            graph.check()
            best = {leg.node: leg for leg in graph.view}
            for leg in graph.view:
                if leg.via == -1:
                    assert leg == Leg(0, 0, -1)
                else:
                    assert Road(leg.via, leg.node, leg.cost - best[leg.via].cost) in graph.roads
        graph.view.verify()

    run()


def all_pairs(roads: Rel, keep: Any, cap: int) -> Rel:
    """Ways between all nodes, put together of two ways: both sides are recursive."""
    return fixpoint(
        lambda ways: roads.union(
            ways.join(ways, left_key=lambda v: v.dst, right_key=lambda w: w.src).select(
                lambda v, w: Road(v.src, w.dst, min(v.cost + w.cost, cap))
            )
        ),
        keep=keep(lambda w: w.cost),
        by=lambda w: (w.src, w.dst),
    )


@pytest.mark.parametrize(("keep", "best"), [(Min, min), (Max, max)])
def test_ways_of_two_ways_between_all_nodes(keep: Any, best: Callable[..., Any]) -> None:
    node, cost = st.integers(0, 3), st.sampled_from([0, 1, 1, 2])

    @examples(25)
    @given(edits=st.lists(st.tuples(st.booleans(), st.builds(Road, node, node, cost)), max_size=14))
    def run(edits: list[tuple[bool, Road]]) -> None:
        roads: Table[Road] = Database().table(Road, name="roads")
        follower = Follower(all_pairs(roads, keep, CAP).materialize())
        for is_new, road in edits:
            if is_new or road not in roads:
                roads.add(road)
            else:
                roads.remove(road)
            walks = settled(
                lambda known: {
                    *roads,
                    *(
                        Road(v.src, w.dst, min(v.cost + w.cost, CAP))
                        for v in known
                        for w in roads
                        if v.dst == w.src
                    ),
                }
            )
            ends = {(w.src, w.dst) for w in walks}
            follower.agree(
                Counter(
                    Road(*pair, best(w.cost for w in walks if (w.src, w.dst) == pair))
                    for pair in ends
                )
            )
        follower.view.verify()

    run()


def longest(starts: Rel, roads: Rel) -> Rel:
    """The longest walk, not counting beyond the cap."""
    return fixpoint(
        lambda dist: starts.union(
            dist.join(roads, on=lambda d, r: d.node == r.src).select(
                lambda d, r: Dist(r.dst, min(d.cost + r.cost, CAP))
            )
        ),
        keep=Max(lambda d: d.cost),
        by=lambda d: d.node,
    )


def longest_walks(starts: list[Dist], ways: list[Road]) -> dict[Any, Any]:
    walks = settled(
        lambda known: {
            *((s.node, s.cost) for s in starts),
            *((r.dst, min(c + r.cost, CAP)) for n, c in known for r in ways if r.src == n),
        }
    )
    return {node: max(c for n, c in walks if n == node) for node, _ in walks}


def test_the_longest_chain_with_a_bound() -> None:
    node = st.integers(0, 4)

    @examples(30)
    @given(edits=st.lists(st.tuples(st.booleans(), st.builds(Road, node, node, st.just(1)))))
    def run(edits: list[tuple[bool, Road]]) -> None:
        graph = Map(longest)
        graph.starts.add(Dist(0, 0))
        for is_new, road in edits:
            if is_new or road not in graph.roads:
                graph.roads.add(road)
            else:
                graph.roads.remove(road)
            assert graph.costs() == longest_walks(list(graph.starts), list(graph.roads))
        graph.view.verify()

    run()
