"""A recursion that is recomputed has the same result as one that follows the change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Table, fixpoint
from reactive.engine.operators.fixpoint.fixpoint import Fixpoint
from tests.budget import examples, stride
from tests.engine.operators.fixpoint.graphs import Edge, Road, chain, reached
from tests.engine.operators.fixpoint.play import Stage, play
from tests.engine.operators.fixpoint.test_faults import KINDS, Rig, calls_of_a_change
from tests.engine.operators.fixpoint.test_invariants import Watching
from tests.engine.operators.fixpoint.test_keep import Dist, Map
from tests.engine.operators.fixpoint.watched import elsewhere, same_generation
from tests.random_queries.programs import Case, cases
from tests.thresholds import NEVER, Settings, thresholds

Rel = Any

FEW = "reactive.engine.operators.loop.loop_recomputation.FEW"
ALWAYS: Settings = {
    FEW: 0,
    "reactive.engine.operators.fixpoint.fixpoint.RATIO": NEVER,
    "reactive.engine.operators.fixpoint.fixpoint.MANY": 1,
    "reactive.engine.operators.fixpoint.fixpoint.ASKED": 1,
}
"""Thresholds that recompute as soon as a derivation vanishes."""
FOLLOWED: Settings = {FEW: NEVER}
WAYS = {"anew": ALWAYS, "followed": FOLLOWED}
ways = pytest.mark.parametrize("way", WAYS)


@pytest.fixture
def always() -> Iterator[None]:
    with thresholds(ALWAYS):
        yield


def evaluations(db: Database) -> int:
    """Return the number of recomputations of recursions."""
    operators = [node.operator for node in db._engine.graph.nodes()]
    return sum(each.evaluated for each in operators if isinstance(each, Fixpoint))


def from_zero(edges: Rel, **options: Any) -> Rel:
    return fixpoint(
        lambda seen: edges.where(lambda e: e.src == 0).union(
            seen.join(edges, on=lambda s, e: s.dst == e.src).select(lambda s, e: Edge(0, e.dst))
        ),
        **options,
    )


# Generated programs and histories.


@ways
def test_programs_equal_their_naive_evaluation_after_every_commit(way: str) -> None:
    @examples(30)
    @given(case=cases())
    def run(case: Case) -> None:
        with thresholds(WAYS[way]):
            play(case)

    run()


@ways
def test_programs_that_raise_in_a_round_are_rolled_back(way: str) -> None:
    @examples(20)
    @given(case=cases(2, raising=True))
    def run(case: Case) -> None:
        with thresholds(WAYS[way]):
            play(case)

    run()


@pytest.mark.long
@pytest.mark.usefixtures("always")
def test_derivations_are_counted_as_if_all_rows_had_come_at_once() -> None:
    @examples(10)
    @given(case=cases())
    def run(case: Case) -> None:
        Watching(case, [Stage(case.queries, "optimized")]).run()

    run()


NODES = st.integers(0, 4)
ROADS = st.builds(Road, NODES, NODES, st.sampled_from([0, 1, 1, 2]))


@pytest.mark.usefixtures("always")
def test_the_best_rows_are_those_of_all_roads() -> None:
    @examples(30)
    @given(edits=st.lists(st.tuples(st.booleans(), ROADS), min_size=4, max_size=25))
    def run(edits: list[tuple[bool, Road]]) -> None:
        graph = Map()
        graph.starts.add(Dist(0, 0))
        for is_new, road in edits:
            if is_new or road not in graph.roads:
                graph.roads.add(road)
            else:
                graph.roads.remove(road)
            graph.check()

    run()


# Queries that raise, and undone changes.


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimize", [True, False])
def test_each_call_may_raise(kind: str, optimize: bool) -> None:
    rig = Rig(kind, optimize=optimize)
    calls = calls_of_a_change(kind, optimize=optimize)
    for at in range(0, calls, stride(calls, 12)):
        if not rig.fails(rig.change, at + 1):
            rig.change_back()
    rig.change()
    rig.view.verify()


def counted(edges: Rel) -> Rel:
    """Count the nodes reached from 0; a node that is reached alone raises."""
    reach = from_zero(edges)
    return reach.group_by(lambda e: e.src).aggregate(Count()).select(lambda _, n: 60 // (n - 1))


@pytest.mark.usefixtures("always")
def test_what_raises_after_it_leaves_all_as_it_was() -> None:
    db = Database()
    edges: Table[Edge] = db.table(Edge, name="edges")
    edges.add_all(chain(0, 1, 2, 3, 4, 5))
    reach: Any = from_zero(edges).materialize()
    view: Any = counted(edges).materialize()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            edges.remove(Edge(1, 2))
        assert ({e.dst for e in reach}, list(view)) == ({1, 2, 3, 4, 5}, [15])
        edges.remove(Edge(4, 5))
        assert ({e.dst for e in reach}, list(view)) == ({1, 2, 3, 4}, [20])
        edges.add(Edge(4, 5))
        reach.verify()
        view.verify()
    assert evaluations(db) >= 2


@pytest.mark.usefixtures("always")
def test_what_needs_too_many_rounds_anew_is_followed() -> None:
    db = Database()
    edges: Table[Edge] = db.table(Edge, name="edges")
    view: Any = from_zero(edges, max_rounds=20).materialize()
    for edge in chain(*range(41)):
        edges.add(edge)
    edges.remove(Edge(35, 36))
    assert {e.dst for e in view} == set(range(1, 36))
    assert evaluations(db) == 0
    edges.remove(Edge(15, 16))
    assert {e.dst for e in view} == set(range(1, 16))
    assert evaluations(db) == 1


@pytest.mark.usefixtures("always")
def test_rows_that_flow_through_are_not_asked_for_again() -> None:
    db = Database()
    edges: Table[Edge] = db.table(Edge, name="edges", stored=False)
    view: Any = from_zero(edges).materialize()
    edges.add_all(chain(0, 1, 2, 3))
    edges.remove(Edge(1, 2))
    assert {e.dst for e in view} == {1}
    assert evaluations(db) == 0


@pytest.mark.usefixtures("always")
def test_rows_of_a_transaction_count_that_views_below_have_not_yet() -> None:
    """A view of an input of the recursion steps before the recursion, or later."""
    db = Database()
    edges: Table[Edge] = db.table(Edge, name="edges")
    some = edges.where(lambda e: e.dst != 9)
    below: Any = some.materialize()
    view: Any = from_zero(some).materialize()
    edges.add_all(chain(0, 1, 2, 3))
    late: Any = some.materialize()
    with db.transaction():
        edges.remove(Edge(1, 2))
        edges.add_all([Edge(0, 2), Edge(3, 9), Edge(3, 4)])
    assert {e.dst for e in view} == reached([0], below) - {0}
    assert sorted(below) == sorted(late)
    assert evaluations(db) == 1


# Work.


def watched(count: int) -> tuple[Database, Table[Edge], Any]:
    """Return a view of `count` trees of 31 nodes, each node side by side with its generation."""
    db = Database()
    edges: Table[Edge] = db.table(Edge, name="edges")
    view: Any = same_generation(edges).materialize()
    edges.add_all(
        Edge(100 * tree + (n - 1) // 2, 100 * tree + n)
        for tree in range(count)
        for n in range(1, 31)
    )
    return db, edges, view


def test_what_goes_with_half_of_the_rows_is_not_followed() -> None:
    """Deleting half looks at less than loading all."""
    db, edges, view = watched(60)
    loaded = view.stats().touched
    edges.remove_all([edge for edge in edges if edge.src % 2])
    assert view.stats().touched - loaded < loaded
    assert evaluations(db) == 1
    view.verify()


def test_a_tree_that_goes_is_followed() -> None:
    db, edges, view = watched(60)
    edges.remove_all([edge for edge in edges if edge.src < 100])
    edges.add_all(edges_of_one := [Edge(n // 2, n + 1) for n in range(30)])
    edges.remove_all(edges_of_one)
    assert evaluations(db) == 0
    view.verify()


def test_what_comes_is_followed() -> None:
    db, edges, view = watched(20)
    edges.add_all(elsewhere(200))
    assert evaluations(db) == 0
    view.verify()


def test_a_commit_touches_at_most_half_of_a_load_before_it_is_evaluated() -> None:
    """Remove one edge, with which nearly all reached nodes disappear."""
    db = Database()
    edges: Table[Edge] = db.table(Edge, name="edges")
    view: Any = from_zero(edges).materialize()
    edges.add_all(chain(*range(10_001)))
    before = view.stats().touched
    edges.remove(Edge(2, 3))
    assert view.stats().touched - before < before // 2
    assert (len(view), evaluations(db)) == (2, 1)


def test_explain_says_how_often() -> None:
    _, edges, view = watched(60)
    assert "evaluated anew" not in str(view.explain(analyze=True))
    edges.clear()
    assert "1 times evaluated anew" in str(view.explain(analyze=True))
