"""Cyclic joins whose rows are only counted are right at every weight, and can be undone."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Count, Database, Sum
from reactive.engine.collections.neighbour_rows import Neighbours
from reactive.engine.operators.loops.cyclic_count import CyclicCount
from tests.budget import seeds


def state(held: Neighbours) -> Any:
    return copy.deepcopy((held.onward, held.back, held.times))


class Late:
    """An end that can be hashed `times` times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __hash__(self) -> int:
        self.times -= 1
        if self.times == 0:
            raise ArithmeticError
        return 7


@pytest.mark.parametrize("weights", [(0, 1), (0, 1, 2, -3)])
def test_a_pair_has_the_weight_that_it_was_given(weights: tuple[int, ...]) -> None:
    random, held, known = Random(1), Neighbours(), dict[tuple[int, int], int]()
    for _ in range(200):
        pair, weight = (random.randrange(4), random.randrange(4)), random.choice(weights)
        held.put(*pair, weight)
        known[pair] = weight
        assert all(held.weight(*each) == known.get(each, 0) for each in known)
        assert held.footprint()[0] == sum(map(bool, known.values()))
    for pair in known:
        held.put(*pair, 0)
    assert state(held) == ({}, {}, {})


@pytest.mark.parametrize("times", range(1, 30))
@pytest.mark.parametrize("is_first", [True, False])
def test_a_pair_that_was_added_partially_is_undone(times: int, is_first: bool) -> None:
    db = Database()
    edges = db.table(Edge)
    view = count(edges).materialize()
    if not is_first:
        edges.add_all([Edge(1, 2), Edge(2, 2), Edge(2, 2), Edge(2, 1)])
    (counted,) = (n.operator for n in db._engine.graph.nodes())
    assert isinstance(counted, CyclicCount)
    (held,) = counted._held
    before, value, end = state(held), view.value, Late(times)
    new = [Edge(2, 1), Edge(1, 3), Edge(1, end), Edge(end, 1)]
    try:
        edges.add_all(new)
    except ArithmeticError:
        assert state(held) == before
        assert view.value == value
    end.times = 0
    view.verify()


@dataclass(frozen=True, slots=True)
class Edge:
    src: Any
    dst: Any
    label: Any = 0


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
    assert CyclicCount in operators(db) or not optimize
    with pytest.raises(ZeroDivisionError):
        edges.add((1, 1, 0))
    edges.add((1, 1, 1))
    assert view.value == 1
    view.verify()


JOINS: list[Any] = [
    lambda a, b, c: a.join(b, on=lambda x, y: x.dst == y.src).join(
        c, on=lambda x, y, z: y.dst == z.dst and x.src == z.src
    ),
    lambda a, b, c: a.join(b, on=lambda x, y: x.dst == y.dst).join(
        c, on=lambda x, y, z: y.src == z.src and x.src == z.dst and z.label == 1 and x.label != 0
    ),
    lambda a, b, c: a.join(b, on=lambda x, y: x.src == y.src).join(
        c, on=lambda x, y, z: y.src == z.src and y.dst == z.dst and x.dst == z.dst
    ),
    lambda a, b, c: (
        a.join(b, on=lambda x, y: x.dst == y.src)
        .join(c, on=lambda x, y, z: y.dst == z.dst and x.src == z.src)
        .join(b, on=lambda x, y, z, w: w.label == x.dst)
    ),
    lambda a, b, c: (
        a.join(b, on=lambda x, y: x.dst == y.src)
        .join(c, on=lambda x, y, z: y.dst == z.src)
        .join(a, on=lambda x, y, z, w: z.dst == w.src and w.dst == x.src)
    ),
    lambda a, b, c: (
        a.join(b, on=lambda x, y: x.dst == y.dst)
        .join(c, on=lambda x, y, z: y.src == z.src)
        .join(a, on=lambda x, y, z, w: z.dst == w.dst and w.src == x.src)
    ),
    lambda a, b, c: (
        a.join(b, on=lambda x, y: x.dst == y.src)
        .join(c, on=lambda x, y, z: y.dst == z.dst and x.src == z.src)
        .join(a, on=lambda x, y, z, u: u.src == x.src)
        .join(b, on=lambda x, y, z, u, v: v.src == y.src and v.dst == u.dst)
        .join(c, on=lambda x, y, z, u, v, w: w.src == z.dst and w.dst == u.dst)
    ),
]
"""Triangles in other directions, with labels, with parallel edges and with one more edge; cycles of
four; a clique of four."""


def both_ways(edges: Any) -> Any:
    return edges.select_many(lambda e: [e, Edge(e.dst, e.src, e.label)])


MADE: list[Any] = [
    lambda edges: edges,
    lambda edges: edges,
    lambda edges: edges.where(lambda e: e.label != 2),
    lambda edges: edges.select(lambda e: Edge(e.dst, e.src, e.label)),
    both_ways,
    lambda edges: edges.distinct(),
]


@pytest.mark.long
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("join", JOINS)
def test_a_cycle_is_counted_in_every_place_of_every_table(join: Any, several: bool) -> None:
    for seed in seeds(8):
        random, db = Random(seed), Database()
        tables: list[Any] = [db.table(Edge, name=name) for name in ("abc" if several else "a")]
        made = [random.choice(MADE)] * 3 if random.random() < 0.5 else random.choices(MADE, k=3)
        joined = join(*(make(table) for make, table in zip(made, (tables * 3)[:3], strict=True)))
        view = joined.aggregate(Count(), Sum(lambda *_: 2)).materialize()
        counted = joined.aggregate(Count()).materialize()
        assert CyclicCount in operators(db) or made[1] is both_ways  # whose pairs sums count
        ends = [*range(random.choice((3, 6))), *random.choice(([], [None, float("nan"), True]))]
        held: list[tuple[Any, Edge]] = []
        for _ in range(random.choice((6, 40))):
            with db.transaction():
                for _ in range(random.choice((1, 1, 4))):
                    if held and random.random() * 20 < len(held):
                        table, edge = held.pop(random.randrange(len(held)))
                        table.remove(edge)
                        continue
                    edge = Edge(random.choice(ends), random.choice(ends), random.randrange(3))
                    held.append((random.choice(tables), edge))
                    held[-1][0].add(edge)
            counted.verify()
        view.verify()
        late = joined.aggregate(Count()).materialize()
        late.verify()
        for table in tables:
            table.clear()
        assert counted.value == 0
        assert counted.stats().rows == late.stats().rows <= 2


def test_nothing_leads_back_from_rows_of_one_end() -> None:
    db = Database()
    edges, labels = db.table(Edge, name="edges"), db.table(int, name="labels")
    triangles = JOINS[0](edges, edges, edges)
    view = triangles.join(labels, on=lambda x, y, z, n: n == y.dst).aggregate(Count()).materialize()
    (counted,) = (n.operator for n in db._engine.graph.nodes())
    labels.add_all(range(1_000))
    edges.add_all([Edge(1, 2), Edge(2, 3), Edge(1, 3)])
    labels.add(3)
    assert view.value == 2
    assert sum(len(held.back) for held in counted._held) == 2
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
