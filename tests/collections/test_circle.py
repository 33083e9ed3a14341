"""Ways around are counted as by going all of them, at every weight; and undone to the last edge."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

import pytest

from reactive import Count, Database
from reactive.collections.triangle_count import TriangleCount
from reactive.operators.generated.cyclic_count import CyclicCount


def ways(edges: Counter[tuple[Any, Any]]) -> int:
    """All ways of three steps back to where they began, each gone."""
    ends = {end for edge in edges for end in edge}
    return sum(edges[u, v] * edges[v, x] * edges[x, u] for u, v, x in product(ends, ends, ends))


def state(circle: TriangleCount) -> Any:
    return copy.deepcopy((circle._targets, circle._sources, circle._times))


@pytest.mark.parametrize("weights", [(1, -1), (1, 1, 1, -1, 2, -2, 5), (1, 2, 3)])
@pytest.mark.parametrize("seed", range(5))
def test_it_counts_what_a_change_adds(weights: tuple[int, ...], seed: int) -> None:
    random, circle, edges, total = Random(seed), TriangleCount(), Counter[tuple[int, int]](), 0
    for _ in range(60):
        was, held = state(circle), edges.copy()
        if random.random() < 0.5:
            circle.begin()
        found = 0
        for _ in range(random.choice((1, 1, 4))):
            u, v = random.randrange(5), random.randrange(5)
            weight = random.choice(weights)
            found += circle.turn(u, v, weight)
            edges[u, v] += weight
        assert total + found == ways(edges)
        assert circle.footprint()[0] == sum(map(bool, edges.values()))
        if random.random() < 0.3:
            circle.undo()
            assert state(circle) == was
            edges = held
        else:
            circle.commit()
            total += found
    for (u, v), weight in edges.items():
        if weight:
            total += circle.turn(u, v, -weight)
    assert total == 0
    assert state(circle) == ({}, {}, {})


class Late:
    """An end that can be hashed so many times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __hash__(self) -> int:
        self.times -= 1
        if self.times == 0:
            raise ArithmeticError
        return 7


@pytest.mark.parametrize("times", range(1, 12))
@pytest.mark.parametrize("is_first", [True, False])
def test_an_edge_that_was_added_by_half_is_undone(times: int, is_first: bool) -> None:
    circle = TriangleCount()
    if not is_first:
        circle.turn(1, 2, 1)
        circle.turn(2, 2, 3)
        circle.commit()
    before, end = state(circle), Late(times)
    circle.begin()
    try:
        for u, v in ((2, 1), (1, end), (end, 1)):
            circle.turn(u, v, 1)
    except ArithmeticError:
        circle.undo()
        assert state(circle) == before
    else:
        assert times > 6


@dataclass(frozen=True, slots=True)
class Edge:
    src: Any
    dst: Any


def count(edges: Any) -> Any:
    two = edges.join(edges, on=lambda x, y: x.dst == y.src)
    return two.join(edges, on=lambda x, y, z: y.dst == z.src and z.dst == x.src).aggregate(Count())


def operators(db: Database) -> set[type[Any]]:
    return {type(node.operator) for node in db._engine.graph.nodes()}


def test_ends_that_have_no_hash_are_compared_as_written() -> None:
    db = Database()
    edges = db.table(Edge)
    two = edges.join(edges, on=lambda x, y: x.dst == y.src)
    view = (
        two.join(edges, on=lambda x, y, z: y.dst == z.src and z.dst == x.src)
        .where(lambda x, y, z: [x.dst] == [y.src])
        .aggregate(Count())
        .materialize()
    )
    assert CyclicCount not in operators(db)  # something is read
    edges.add_all(Edge(*pair) for pair in ((1, 2), (2, 3), (3, 1)))
    assert view.value == 3
    other = count_of_lists(edges).materialize()
    assert CyclicCount not in operators(db)  # it was tried
    edges.add(Edge(3, 3))
    assert other.value == view.value == 4
    other.verify()


def count_of_lists(edges: Any) -> Any:
    two = edges.join(edges, on=lambda x, y: [x.dst] == [y.src])
    return two.join(edges, on=lambda x, y, z: [y.dst] == [z.src] and [z.dst] == [x.src]).aggregate(
        Count()
    )


SELECTED = [
    lambda edges: edges.select(lambda e: Edge(e.src % 4, e.dst % 4)),
    lambda edges: edges.select(lambda e: (e.src + 1, e.dst)).select(lambda p: Edge(p[1], p[0])),
    lambda edges: edges.select(lambda e: Edge(e.dst, e.src)).distinct(),
    lambda edges: edges.where(lambda e: e.src != 2).select(lambda e: Edge(e.src, e.dst + 1)),
    lambda edges: edges.select_many(lambda e: [Edge(e.src, e.dst), Edge(e.dst, e.src)]),
]


@pytest.mark.parametrize("made", SELECTED)
def test_edges_may_be_made_of_rows(made: Any) -> None:
    random, db = Random(4), Database()
    edges = db.table(Edge)
    view = count(made(edges)).materialize()
    assert CyclicCount in operators(db)
    for _ in range(40):
        came = [Edge(random.randrange(5), random.randrange(5)) for _ in range(3)]
        with db.transaction():
            edges.add_all(came)
            edges.remove(random.choice(list(edges)))
        view.verify()


@pytest.mark.parametrize("optimize", [True, False])
def test_inputs_that_ask_in_another_order_may_raise_for_other_rows(optimize: bool) -> None:
    db = Database(optimize=optimize)
    edges: Any = db.table(tuple, name="edges")
    one = edges.where(lambda e: e[2] != 0).where(lambda e: 6 // e[2] > 1)
    other = edges.where(lambda e: 6 // e[2] > 1).where(lambda e: e[2] != 0)
    two = one.join(other, on=lambda a, b: a[1] == b[0])
    joined = two.join(one, on=lambda a, b, c: b[1] == c[0] and c[1] == a[0])
    view = joined.aggregate(Count()).materialize()
    assert CyclicCount not in operators(db)
    with pytest.raises(ZeroDivisionError):
        edges.add((1, 1, 0))
    edges.add((1, 1, 1))
    assert view.value == 1
    view.verify()


def test_a_failing_commit_leaves_the_circle_as_it_was() -> None:
    db = Database()
    edges = db.table(Edge)
    view = count(edges).materialize()
    checked = edges.select(lambda e: 1 // e.src).materialize()
    edges.add_all(Edge(*pair) for pair in ((1, 2), (2, 3)))
    for _ in range(100):  # the commits of a table in use are a function of their own
        edges.add(Edge(9, 9))
        edges.remove(Edge(9, 9))
    with pytest.raises(ZeroDivisionError):
        edges.add_all([Edge(3, 1), Edge(1, 3), Edge(0, 0)])
    with pytest.raises(ZeroDivisionError):
        edges.add(Edge(0, 0))
    edges.add(Edge(3, 1))
    assert view.value == 3
    assert len(checked) == 3
    view.verify()


def test_its_size_is_told() -> None:
    db = Database()
    edges = db.table(Edge)
    view = count(edges).materialize()
    edges.add_all(Edge(n, n + 1) for n in range(50))
    told = view.stats()
    assert told.rows >= 50
    assert told.bytes > 50 * 200  # two sets of each
