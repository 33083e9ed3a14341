"""Loops equal plain Python after every commit: n rounds, until settled, of several relations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import fsum
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Avg, Count, Database, Max, Min, Sum, Table, iterate
from tests.budget import examples

Rel = Any
Edges = Counter[Any]


class Edge(NamedTuple):
    src: int
    dst: int


class Rank(NamedTuple):
    node: int
    rank: float


class Label(NamedTuple):
    node: int
    label: int


NODES = st.integers(0, 6)
EDITS = st.lists(
    st.lists(st.tuples(st.booleans(), st.builds(Edge, NODES, NODES)), max_size=4),
    min_size=2,
    max_size=12,
)


def ranks(edges: Rel, **rounds: Any) -> Rel:
    """Rank nodes by floats; copies of an edge count."""
    degrees = edges.group_by(lambda e: e.src).aggregate(Count())
    shares = edges.join(degrees, on=lambda e, d: e.src == d[0]).select(
        lambda e, d: (e.src, e.dst, d[1])
    )
    nodes = edges.select_many(lambda e: (e.src, e.dst)).distinct()
    nothing = nodes.select(lambda n: Rank(n, 0.0))

    def step(ranks: Rel) -> Rel:
        given = shares.join(ranks, left_key=lambda s: s[0], right_key=lambda r: r.node).select(
            lambda s, r: Rank(s[1], r.rank / s[2])
        )
        sums = given.union_all(nothing).group_by(lambda r: r.node).aggregate(Sum(lambda r: r.rank))
        return sums.select(lambda node, total: Rank(node, 0.15 + 0.85 * total))

    return iterate(step, nodes.select(lambda n: Rank(n, 1.0)), **rounds)


def ranked(edges: Edges, times: int) -> dict[int, float]:
    found = dict.fromkeys((node for edge in edges for node in edge), 1.0)
    degrees = Counter[int]()
    for edge, n in edges.items():
        degrees[edge.src] += n
    for _ in range(times):
        given: dict[int, list[float]] = {node: [0.0] for node in found}
        for edge in edges.elements():
            given[edge.dst].append(found[edge.src] / degrees[edge.src])
        found = {node: 0.15 + 0.85 * fsum(values) for node, values in given.items()}
    return found


def labels(edges: Rel, **rounds: Any) -> Rel:
    """The least node that each can be reached from."""
    nodes = edges.select_many(lambda e: (e.src, e.dst)).distinct()
    start = nodes.select(lambda n: Label(n, n))

    def step(known: Rel) -> Rel:
        given = known.join(edges, on=lambda k, e: k.node == e.src).select(
            lambda k, e: Label(e.dst, k.label)
        )
        both = known.union_all(given).group_by(lambda k: k.node).aggregate(Min(lambda k: k.label))
        return both.select(lambda node, label: Label(node, label))

    return iterate(step, start, **rounds)


def labelled(edges: Edges, times: int) -> dict[int, int]:
    found = {node: node for edge in edges for node in edge}
    for _ in range(times):
        before = dict(found)
        for edge in edges:
            found[edge.dst] = min(found[edge.dst], before[edge.src])
    return found


def hubs(edges: Rel, **rounds: Any) -> tuple[Rel, Rel]:
    """Hubs and authorities, with integers."""
    sources = edges.select(lambda e: e.src).distinct().select(lambda n: (n, 1))
    targets = edges.select(lambda e: e.dst).distinct().select(lambda n: (n, 1))

    def step(hubs: Rel, authorities: Rel) -> tuple[Rel, Rel]:
        up = edges.join(authorities, on=lambda e, a: e.dst == a[0]).select(
            lambda e, a: (e.src, a[1])
        )
        down = edges.join(hubs, on=lambda e, h: e.src == h[0]).select(lambda e, h: (e.dst, h[1]))
        return (
            up.group_by(lambda r: r[0]).aggregate(Sum(lambda r: r[1])).select(lambda n, s: (n, s)),
            down.group_by(lambda r: r[0])
            .aggregate(Sum(lambda r: r[1] % 7), Max(lambda r: r[1]))
            .select(lambda n, s, m: (n, s + m)),
        )

    return iterate(step, (sources, targets), **rounds)


def hubs_of(edges: Edges, times: int) -> tuple[dict[int, int], dict[int, int]]:
    hubs, authorities = {e.src: 1 for e in edges}, {e.dst: 1 for e in edges}
    for _ in range(times):
        up, down = dict.fromkeys(hubs, 0), {node: list[int]() for node in authorities}
        for e in edges.elements():
            up[e.src] += authorities[e.dst]
            down[e.dst].append(hubs[e.src])
        hubs = up
        authorities = {n: sum(v % 7 for v in some) + max(some) for n, some in down.items()}
    return hubs, authorities


def play(
    edits: list[list[tuple[bool, Edge]]], edges: Table[Edge], check: Callable[[Edges], None]
) -> None:
    """Play each list as a transaction; an edge to remove must be present."""
    for transaction in edits:
        with _database(edges).transaction():
            for is_new, edge in transaction:
                if is_new or edge not in edges:
                    edges.add(edge)
                else:
                    edges.remove(edge)
        check(Counter(edges))


def _database(edges: Table[Edge]) -> Database:
    return DATABASES[id(edges)]


DATABASES: dict[int, Database] = {}
"""Databases of the tables of this module, by the id of the table."""


def edges_of(**options: Any) -> Table[Edge]:
    db = Database(**options)
    table: Table[Edge] = db.table(Edge, name="edges")
    DATABASES[id(table)] = db
    return table


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("times", [2, 5])
def test_sums_of_floats_are_those_of_plain_loops(times: int, optimize: bool) -> None:
    @examples(30, share=8)
    @given(edits=EDITS)
    def run(edits: list[list[tuple[bool, Edge]]]) -> None:
        edges = edges_of(optimize=optimize)
        view = ranks(edges, times=times).materialize()

        def check(now: Edges) -> None:
            assert {r.node: r.rank for r in view} == ranked(now, times)

        play(edits, edges, check)
        view.verify()
        edges.clear()
        assert (list(view), view.stats().rows) == ([], 0)

    run()


@pytest.mark.parametrize("optimize", [True, False])
def test_least_labels_are_those_of_plain_loops(optimize: bool) -> None:
    @examples(30, share=8)
    @given(edits=EDITS)
    def run(edits: list[list[tuple[bool, Edge]]]) -> None:
        edges = edges_of(optimize=optimize)
        some = labels(edges, times=3).materialize()
        settled = labels(edges, until="settled").materialize()

        def check(now: Edges) -> None:
            assert {r.node: r.label for r in some} == labelled(now, 3)
            assert {r.node: r.label for r in settled} == labelled(now, 9)

        play(edits, edges, check)
        some.verify()
        settled.verify()
        edges.clear()
        assert (list(settled), settled.stats().rows) == ([], 0)

    run()


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("times", [0, 1, 3])
def test_several_relations_go_round_together(times: int, optimize: bool) -> None:
    @examples(30, share=8)
    @given(edits=EDITS)
    def run(edits: list[list[tuple[bool, Edge]]]) -> None:
        edges = edges_of(optimize=optimize)
        views = [each.materialize() for each in hubs(edges, times=times)]

        def check(now: Edges) -> None:
            assert tuple(map(dict, views)) == hubs_of(now, times)

        play(edits, edges, check)
        for view in views:
            view.verify()

    run()


def test_centres_are_the_means_of_the_points_nearest_to_them() -> None:
    """A product in each round, groups over it, and a difference of the remaining rows."""

    @examples(30, share=8)
    @given(edits=EDITS)
    def run(edits: list[list[tuple[bool, Edge]]]) -> None:
        points = edges_of()
        starts: Table[Any] = _database(points).table(tuple, name="starts")
        starts.add_all([(0, 0.0, 0.0), (1, 5.0, 5.0)])

        def step(centres: Rel) -> Rel:
            pairs = points.join(centres).select(
                lambda p, c: (p, ((p.src - c[1]) ** 2 + (p.dst - c[2]) ** 2, c[0]))
            )
            nearest = pairs.group_by(lambda r: r[0]).aggregate(Min(lambda r: r[1]))
            moved = (
                nearest.group_by(lambda p, near: near[1])
                .aggregate(Avg(lambda p, near: p.src), Avg(lambda p, near: p.dst))
                .select(lambda c, x, y: (c, x, y))
            )
            return moved.union_all(centres.anti_join(moved, on=lambda old, new: old[0] == new[0]))

        view = iterate(step, starts, times=4).materialize()
        settled = iterate(step, starts, until="settled", max_rounds=99).materialize()

        def check(now: Edges) -> None:
            centres = {0: (0.0, 0.0), 1: (5.0, 5.0)}
            for _ in range(4):
                centres = means(set(now), centres)
            assert {c: (x, y) for c, x, y in view} == centres
            for _ in range(95):
                centres = means(set(now), centres)
            assert {c: (x, y) for c, x, y in settled} == centres

        play(edits, points, check)
        view.verify()

    run()


def means(points: set[Any], centres: dict[int, Any]) -> dict[int, Any]:
    nearest: dict[int, list[Any]] = {}
    for p in points:
        far = {c: (p.src - x) ** 2 + (p.dst - y) ** 2 for c, (x, y) in centres.items()}
        nearest.setdefault(min(far, key=lambda c: (far[c], c)), []).append(p)
    found = {
        c: (fsum(p.src for p in some) / len(some), fsum(p.dst for p in some) / len(some))
        for c, some in nearest.items()
    }
    return {**centres, **found}
