"""The views of each example equal a plain evaluation from scratch, after every commit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.graphs.closure import closure
from examples.graphs.edges import Edge, parse
from examples.graphs.k_means import Center, Point, k_means, members
from examples.graphs.longest_chain import Needs, longest_chains
from examples.graphs.page_rank import page_rank
from examples.graphs.same_generation import Parent, same_generation
from examples.graphs.shortest_paths import Road, shortest_paths, used_roads
from reactive import Database, Table, View
from tests.budget import examples

from . import plain
from .histories import History, histories, play

SETTINGS = examples(60)
NODES = st.sampled_from("abcdef")
EDGES = st.builds(Edge, NODES, NODES)
ROADS = st.builds(Road, NODES, NODES, st.sampled_from([0, 1, 2, 0.1, 0.7]))
POINTS = st.builds(Point, *[st.sampled_from([0.0, 0.1, 1.0, 3.0, 7.5])] * 2)


def same(view: View[Any], expected: set[Any]) -> None:
    """The view holds these rows, each once."""
    assert sorted(view) == sorted(expected)


@SETTINGS
@given(history=histories(EDGES))
def test_closure(history: History) -> None:
    db = Database()
    edges: Table[Edge] = db.table(Edge)
    reach = closure(edges).materialize()
    for _ in play(db, [edges], history):
        same(reach, plain.closure(edges))
    reach.verify()


@SETTINGS
@given(history=histories(st.builds(Parent, NODES, NODES)))
def test_same_generation(history: History) -> None:
    db = Database()
    parents: Table[Parent] = db.table(Parent)
    pairs = same_generation(parents).materialize()
    for _ in play(db, [parents], history):
        same(pairs, plain.same_generation(parents))
    pairs.verify()


@SETTINGS
@given(history=histories(NODES, ROADS, ROADS))
def test_shortest_paths(history: History) -> None:
    db = Database()
    starts, roads = db.table(str), db.table(Road)
    best = shortest_paths(starts, roads).materialize()
    used = used_roads(best.relation, roads).materialize()
    for _ in play(db, [starts, roads, roads], history):
        expected = plain.shortest_paths(starts, roads)
        same(best, expected)
        cost = {(row.start, row.place): row.cost for row in expected}
        assert sorted(used) == sorted(
            (row.start, road)
            for row in expected
            for road in roads
            if road.src == row.place and row.cost + road.cost == cost[row.start, road.dst]
        )


@SETTINGS
@given(history=histories(st.builds(Needs, NODES, NODES)), bound=st.integers(1, 9))
def test_longest_chains(history: History, bound: int) -> None:
    db = Database()
    needs: Table[Needs] = db.table(Needs)
    depths = longest_chains(needs, bound).materialize()
    for _ in play(db, [needs], history):
        same(depths, plain.longest_chains(needs, bound))
    depths.verify()


@SETTINGS
@given(history=histories(EDGES), rounds=st.integers(0, 9), digits=st.sampled_from([3, 15]))
def test_page_rank(history: History, rounds: int, digits: int) -> None:
    db = Database()
    links: Table[Edge] = db.table(Edge)
    ranks = page_rank(links, rounds, digits).materialize()
    for _ in play(db, [links], history):
        same(ranks, plain.page_rank(links, rounds, digits))
    ranks.verify()


@SETTINGS
@given(history=histories(POINTS), rounds=st.integers(0, 5))
def test_k_means(history: History, rounds: int) -> None:
    db = Database()
    points, starts = db.table(Point), db.table(Center)
    starts.add_all([Center(1, 0, 0), Center(2, 3, 1), Center(3, 3, 8)])
    centers = k_means(points, starts, rounds)
    found, nearest = centers.materialize(), members(points, centers).materialize()
    for number, _ in enumerate(play(db, [points], history)):
        starts.update(min(starts), Center(1, number % 3, 0))
        expected = plain.k_means(points, starts, rounds)
        same(found, expected)
        same(nearest, plain.members(points, expected))


def touched_by_an_edge(others: int) -> int:
    """Return the rows touched by closing and opening a circle, among `others` other chains."""
    db = Database()
    edges: Table[Edge] = db.table(Edge)
    for number in range(others):
        edges.add_all(parse(f"x{number}-y{number}-z{number}"))
    edges.add_all(parse("a-b-c-d"))
    reach = closure(edges).materialize()
    before = reach.stats().touched
    edges.add(Edge("d", "a"))
    edges.remove(Edge("b", "c"))
    return reach.stats().touched - before


def test_the_work_of_an_edge_does_not_depend_on_other_parts_of_the_graph() -> None:
    assert touched_by_an_edge(1) == touched_by_an_edge(100) < 200


@pytest.mark.long
def test_a_change_of_rank_that_cannot_be_seen_goes_no_further() -> None:
    db = Database(optimize=False)  # rounds are operators, and none is recomputed
    links: Table[Edge] = db.table(Edge)
    links.add_all(parse("-".join(f"p{n}" for n in range(30))))
    links.add_all(Edge(f"p{n}", f"only{n}.{leaf}") for n in range(30) for leaf in range(3))
    touched = {}
    for digits in (2, 12):
        ranks = page_rank(links, 20, digits).materialize()
        before = ranks.stats().touched
        links.add(Edge("p0", "p7"))
        touched[digits] = ranks.stats().touched - before
        links.remove(Edge("p0", "p7"))
    assert touched[2] < touched[12] / 2
