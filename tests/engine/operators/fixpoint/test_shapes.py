"""Every shape of a graph that recursion has been seen to get wrong, in several orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Max, Table, fixpoint
from tests.budget import examples, sampled
from tests.engine.operators.fixpoint import graphs
from tests.engine.operators.fixpoint.follow import Follower
from tests.engine.operators.fixpoint.graphs import SHAPES, Edge, Shape, chain, closure, path_sets

Rel = Any


def step(paths: Rel, more: Rel) -> Rel:
    """Extend paths by edges that begin at their ends."""
    return paths.join(more, on=lambda p, e: p.dst == e.src).select(lambda p, e: Edge(p.src, e.dst))


def right_linear(edges: Rel) -> Rel:
    return fixpoint(lambda reach: edges.union(step(edges, reach)))


def left_linear(edges: Rel) -> Rel:
    return fixpoint(lambda reach: edges.union(step(reach, edges)))


def non_linear(edges: Rel) -> Rel:
    return fixpoint(lambda reach: edges.union(step(reach, reach)))


def by_rules(edges: Rel) -> Rel:
    """Build a closure with other `max_rounds`, so that it is not kept as bits."""
    return fixpoint(lambda reach: edges.union(step(reach, edges)), max_rounds=9_999)


def by_rules_of_two(edges: Rel) -> Rel:
    return fixpoint(lambda reach: edges.union(step(reach, reach)), max_rounds=9_999)


def mutual(edges: Rel) -> Rel:
    """Define two relations by each other, with one edge more."""
    ahead, back = fixpoint(
        lambda ahead, back: (edges.union(step(edges, back)), edges.union(step(ahead, edges)))
    )
    return ahead.union(back)


def odd_and_even(edges: Rel) -> Rel:
    odd, even = fixpoint(lambda odd, even: (edges.union(step(even, edges)), step(odd, edges)))
    return odd.union(even)


def reversed_and_back(edges: Rel) -> Rel:
    """The recursive relation is on the right of an intersection, a semi-join and a union_all."""
    return fixpoint(
        lambda reach: (
            edges.union_all(step(edges, reach).semi_join(edges, on=lambda p, e: p.src == e.src))
            .intersection(edges.union(step(edges, reach)))
            .distinct()
        )
    )


CLOSURES: dict[str, Callable[[Rel], Rel]] = {
    "right_linear": right_linear,
    "left_linear": left_linear,
    "non_linear": non_linear,
    "by_rules": by_rules,
    "by_rules_of_two": by_rules_of_two,
    "mutual": mutual,
    "odd_and_even": odd_and_even,
    "reversed_and_back": reversed_and_back,
}


class Graph:
    """A table of edges, a plain list of them, and a view of their consequences."""

    def __init__(
        self, query: Callable[[Rel], Rel], wanted: Callable[[list[Edge]], Iterable[Any]]
    ) -> None:
        self.db = Database()
        self.table: Table[Edge] = self.db.table(Edge, name="edges")
        self.edges: list[Edge] = []
        self.wanted = wanted
        self.follower = Follower(query(self.table).materialize())

    def add(self, *edges: Edge) -> None:
        self.edges += edges
        self.table.add_all(edges)
        self.check()

    def remove(self, *edges: Edge) -> None:
        for edge in edges:
            self.edges.remove(edge)
        self.table.remove_all(edges)
        self.check()

    def update(self, old: Edge, new: Edge) -> None:
        self.edges[self.edges.index(old)] = new
        self.table.update(old, new)
        self.check()

    def check(self) -> None:
        self.follower.agree(Counter(set(self.wanted(self.edges))))


@pytest.mark.long
@sampled
@pytest.mark.parametrize("kind", CLOSURES)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_closure_is_right_after_every_edge_that_comes_or_goes(kind: str, shape: Shape) -> None:
    graph = Graph(CLOSURES[kind], closure)
    for order in shape.orders():
        for edge in order:
            graph.add(edge)
        for edge in shape.cuts:
            graph.remove(edge)
        graph.add(*shape.cuts)
        for edge in order:
            graph.remove(edge)
    graph.follower.view.verify()
    assert graph.follower.view.stats().rows == 0


@pytest.mark.long
@sampled
@pytest.mark.parametrize("kind", CLOSURES)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_closure_is_right_after_edges_that_come_and_go_at_once(kind: str, shape: Shape) -> None:
    graph = Graph(CLOSURES[kind], closure)
    graph.add(*shape.edges)
    graph.remove(*shape.cuts)
    graph.add(*shape.cuts)
    for edge in shape.edges:
        graph.update(edge, Edge(edge.dst, edge.src))
    graph.remove(*graph.edges)
    graph.follower.view.verify()
    assert graph.follower.view.stats().rows == 0


NODES = st.integers(1, 6)
EDGES = st.builds(Edge, NODES, NODES)


@pytest.mark.parametrize("kind", CLOSURES)
def test_closures_of_random_graphs(kind: str) -> None:
    @examples(15)
    @given(edges=st.lists(EDGES, min_size=4, max_size=10), data=st.data())
    def run(edges: list[Edge], data: Any) -> None:
        graph = Graph(CLOSURES[kind], closure)
        graph.add(*edges)
        for _ in range(8):
            if graph.edges and data.draw(st.booleans()):
                graph.remove(data.draw(st.sampled_from(sorted(graph.edges))))
            elif graph.edges and data.draw(st.booleans()):
                graph.update(data.draw(st.sampled_from(sorted(graph.edges))), data.draw(EDGES))
            else:
                graph.add(*data.draw(st.lists(EDGES, max_size=2)))

    run()


@pytest.mark.parametrize("number", [0, 1])
def test_walks_of_odd_and_of_even_length_are_told_apart(number: int) -> None:
    def one(edges: Rel) -> Rel:
        return fixpoint(lambda odd, even: (edges.union(step(even, edges)), step(odd, edges)))[
            number
        ]

    graph = Graph(one, lambda edges: graphs.by_length(edges)[number])
    for shape in SHAPES:
        graph.add(*shape.edges)
        graph.remove(*shape.cuts)
        graph.remove(*graph.edges)


# Rows that are sets.


def test_a_union_of_sets_by_recursion_forgets_what_is_gone() -> None:
    """{a}; b adds {a, b}; after the deletion of a, {b} is left."""
    db = Database()
    letters: Table[str] = db.table(str, name="letters")
    single = letters.select(lambda letter: frozenset((letter,)))
    sets: Rel = fixpoint(lambda sets: single.union(sets.join(sets).select(lambda a, b: a | b)))
    largest = sets.aggregate(Max(len)).materialize()
    view = Follower(sets.materialize())
    letters.add("a")
    view.agree(Counter([frozenset("a")]))
    letters.add("b")
    view.agree(Counter(map(frozenset, ("a", "b", "ab"))))
    assert largest.value == 2
    letters.add("c")
    assert (largest.value, len(view.view)) == (3, 7)
    letters.remove("c")
    letters.remove("a")
    view.agree(Counter([frozenset("b")]))
    assert largest.value == 1
    letters.clear()
    view.agree(Counter())


def sets_of_paths(edges: Rel) -> Rel:
    paths = fixpoint(
        lambda paths: edges.select(lambda e: (e.dst, frozenset(e))).union(
            paths.join(edges, on=lambda p, e: p[0] == e.src).select(
                lambda p, e: (e.dst, p[1] | {e.dst})
            )
        )
    )
    return paths.select(lambda p: p[1]).distinct()


CYCLIC = tuple(Edge(*e) for e in ((1, 2), (2, 3), (3, 2), (2, 4)))
MORE_CYCLIC = (*CYCLIC, Edge(1, 3), Edge(4, 5), Edge(5, 4))


@pytest.mark.parametrize(("edges", "count"), [(CYCLIC, 7), (MORE_CYCLIC, 13)])
def test_sets_of_nodes_on_the_paths_of_a_cyclic_graph(edges: tuple[Edge, ...], count: int) -> None:
    graph = Graph(sets_of_paths, path_sets)
    for order in (edges, edges[::-1]):
        for edge in order:
            graph.add(edge)
        assert len(graph.follower.view) == count
        for edge in order:
            graph.remove(edge)
            graph.add(edge)
        assert len(graph.follower.view) == count
        for edge in order:
            graph.remove(edge)


# A unit cycle in a grammar.


def test_a_unit_cycle_of_a_grammar_comes_and_goes() -> None:
    """Categories of words: a rule NP -> X makes an X an NP, and X -> NP an NP an X."""
    db = Database()
    words: Table[Any] = db.table(tuple, name="words")
    rules: Table[Any] = db.table(tuple, name="rules")
    spans: Rel = fixpoint(
        lambda spans: words.union(
            spans.join(rules, on=lambda s, r: s[1] == r[1]).select(lambda s, r: (s[0], r[0]))
        )
    )
    view = Follower(spans.materialize())
    words.add_all([(0, "Noun"), (1, "Verb")])
    rules.add_all([("NP", "Noun"), ("S", "NP")])
    alone = Counter([(0, "Noun"), (1, "Verb"), (0, "NP"), (0, "S")])
    view.agree(alone)
    rules.add_all([("NP", "X"), ("X", "NP")])
    view.agree(alone + Counter([(0, "X")]))
    rules.remove(("NP", "Noun"))
    view.agree(Counter([(0, "Noun"), (1, "Verb")]))
    rules.add(("X", "Noun"))
    view.agree(alone + Counter([(0, "X")]))
    with db.transaction():
        rules.remove_all([("NP", "X"), ("X", "NP"), ("X", "Noun")])
        rules.add(("NP", "Noun"))
    view.agree(alone)


# Deltas.


def test_what_has_another_derivation_is_not_announced() -> None:
    graph = Graph(left_linear, closure)
    graph.add(*chain(1, 2, 4), *chain(1, 3, 4), Edge(4, 5))
    heard = graph.follower.heard
    graph.remove(Edge(2, 4))
    assert graph.follower.heard == heard + 1
    deltas: list[Any] = []
    with graph.follower.view.subscribe(deltas.append):
        graph.add(Edge(2, 4))
        graph.update(Edge(1, 3), Edge(3, 2))
    assert [sorted(delta.added) for delta in deltas] == [
        [Edge(2, 4), Edge(2, 5)],
        [Edge(3, 2)],
    ]
    assert [sorted(delta.removed) for delta in deltas] == [[], [Edge(1, 3)]]


def test_a_second_copy_of_a_row_is_no_news() -> None:
    graph = Graph(non_linear, closure)
    graph.add(*chain(1, 2, 3))
    heard = graph.follower.heard
    graph.add(Edge(1, 2), Edge(1, 3))
    graph.remove(Edge(1, 2))
    graph.remove(Edge(1, 3))
    assert graph.follower.heard == heard


def test_strata_and_recursions_that_share_an_input_move_together() -> None:
    """Counts of a closure, pairs without a way back, and a closure of these."""
    db = Database()
    edges: Table[Edge] = db.table(Edge, name="edges")
    reach = left_linear(edges)
    counts = reach.group_by(lambda p: p.src).aggregate(Count()).materialize()
    one_way = reach.anti_join(reach, on=lambda p, q: p.src == q.dst and p.dst == q.src)
    chains = non_linear(one_way)
    views = [Follower(view.materialize()) for view in (one_way, chains)]
    for shape in SHAPES:
        for change in (edges.add_all, edges.remove_all):
            for edge in shape.edges:
                change([edge])
                pairs = closure(edges)
                wanted = {p for p in pairs if Edge(p.dst, p.src) not in pairs}
                views[0].agree(Counter(wanted))
                views[1].agree(Counter(closure(wanted)))
                assert dict(counts) == Counter(p.src for p in pairs)
