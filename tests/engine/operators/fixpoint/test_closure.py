"""Closures kept as bits equal the rules, and fall back to these where bits cannot serve."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Table, TableError, fixpoint
from reactive.engine.operators.fixpoint.closure import Closure
from tests.budget import examples
from tests.engine.operators.fixpoint.follow import Follower
from tests.engine.operators.fixpoint.graphs import Edge, chain, closure
from tests.engine.operators.fixpoint.test_shapes import left_linear, non_linear, right_linear, step

Rel = Any


@dataclass(frozen=True, slots=True)
class Link:
    src: Any
    dst: Any


class Road(NamedTuple):
    src: Any
    dst: Any
    miles: int


def linked(links: Rel) -> Rel:
    return fixpoint(
        lambda reach: links.union(
            reach.join(links, on=lambda p, e: p.dst == e.src).select(
                lambda p, e: Link(p.src, e.dst)
            )
        )
    )


def pairs(edges: Rel) -> Rel:
    return fixpoint(
        lambda reach: edges.select(lambda e: (e.src, e.dst)).union(
            edges.join(reach, on=lambda e, p: e.dst == p[0]).select(lambda e, p: (e.src, p[1]))
        )
    )


def both_ways(edges: Rel) -> Rel:
    return fixpoint(lambda r: edges.union(step(r, r)).union(step(edges, r)).union(step(r, edges)))


KINDS: dict[str, tuple[type, Callable[[Rel], Rel], Callable[[Any, Any], Any]]] = {
    "left_linear": (Edge, left_linear, Edge),
    "right_linear": (Edge, right_linear, Edge),
    "non_linear": (Edge, non_linear, Edge),
    "both_ways": (Edge, both_ways, Edge),
    "dataclasses": (Link, linked, Link),
    "tuples of roads": (Road, pairs, lambda a, b: (a, b)),
}


def closures_in(db: Database) -> list[Closure]:
    operators = [node.operator for node in db._engine.graph._nodes.values()]
    return [operator for operator in operators if isinstance(operator, Closure)]


def made(kind: type, ends: tuple[Any, Any], number: int) -> Any:
    return Road(*ends, number) if kind is Road else kind(*ends)


NODES = st.one_of(st.integers(1, 5), st.sampled_from(["a", None, (1, 2)]))
CHANGES = st.lists(
    st.tuples(st.lists(st.tuples(NODES, NODES), max_size=5), st.integers(0, 3), st.booleans()),
    max_size=12,
)


@pytest.mark.parametrize("name", KINDS)
def test_a_closure_is_right_after_every_commit(name: str) -> None:
    """Insert rows, several with the same ends too, and delete some present rows."""
    kind, query, make = KINDS[name]

    @examples(25)
    @given(changes=CHANGES, random=st.randoms(use_true_random=False))
    def run(changes: list[tuple[list[tuple[Any, Any]], int, bool]], random: Random) -> None:
        db = Database()
        table: Table[Any] = db.table(kind, name="edges")
        follower, there = Follower(query(table).materialize()), list[Any]()
        assert closures_in(db)
        for number, (came, removed, is_kept) in enumerate(changes):
            gone = random.sample(there, min(removed, len(there)))
            new = [made(kind, ends, number % 2) for ends in came]
            if is_kept:
                there = [*there, *new]
                for row in gone:
                    there.remove(row)
            commit(db, table, new, gone, fails=not is_kept)
            follower.agree(Counter(make(*p) for p in closure(Edge(r.src, r.dst) for r in there)))
        follower.view.verify()
        table.clear()
        assert follower.view.stats().rows == 0
        (operator,) = closures_in(db)
        assert operator.footprint()[0] == 0 and not operator._numbering.numbers

    run()


class Failed(Exception):
    pass


def commit(
    db: Database, table: Any, came: Iterable[Any], gone: Iterable[Any], *, fails: bool
) -> None:
    try:
        with db.transaction():
            table.remove_all(gone)
            table.add_all(came)
            if fails:
                raise Failed
    except Failed:
        pass


def test_rows_come_back_if_what_reads_the_closure_raises() -> None:
    db = Database()
    edges: Table[Edge] = db.table(Edge, name="edges")
    reach = left_linear(edges)
    view = Follower(reach.materialize())
    shares = reach.select(lambda p: 1 // (p.dst - 4)).materialize()
    edges.add_all(chain(1, 2, 3))
    wanted = Counter(closure(edges))
    with pytest.raises(ZeroDivisionError):
        edges.add(Edge(3, 4))
    view.agree(wanted)
    with pytest.raises(ZeroDivisionError), db.transaction():
        edges.remove(Edge(1, 2))
        edges.add_all([Edge(7, 8), Edge(8, 4)])
    view.agree(wanted)
    edges.remove(Edge(2, 3))
    view.agree(Counter(closure(edges)))
    assert len(list(shares)) == 1 and closures_in(db)


# What a closure may not be.


class Far(Edge):
    """A row that equals one of its base class, with more to it."""

    __slots__ = ()
    miles = 7


class Sour:
    """A node that at times does not let itself be compared."""

    is_sour = False

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        if Sour.is_sour:
            raise ArithmeticError("sour")
        return isinstance(other, Sour) and other.number == self.number


ODD: dict[str, list[Edge]] = {
    "not_a_number": [Edge(1, math.nan), Edge(math.nan, 2), Edge(2, 1)],
    "equal_values_of_two_classes": [Edge(1, 2), Edge(2.0, 3), Edge(True, 0)],
    "rows_of_a_subclass": [Edge(1, 2), Far(2, 3)],
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("is_early", [True, False])
def test_rules_take_over_where_bits_would_not_do(name: str, is_early: bool) -> None:
    """The representative of equal rows is the same as without rewriting, for every reader."""
    found = []
    for optimize in (True, False):
        db = Database(optimize=optimize)
        edges: Table[Edge] = db.table(Edge, name="edges")
        if is_early:
            edges.add_all(ODD[name])
        view = left_linear(edges).materialize()
        kinds = left_linear(edges).select(lambda p: repr(p)).materialize()
        edges.add_all(chain(7, 8, 9))
        for edge in ODD[name] * (not is_early):
            edges.add(edge)
        view.verify()
        kinds.verify()
        assert not closures_in(db)
        edges.remove(ODD[name][0])
        kinds.verify()
        found.append(Counter(kinds))
    assert found[0] == found[1]


def test_a_node_that_does_not_let_itself_be_compared_changes_nothing() -> None:
    db = Database()
    edges: Table[Link] = db.table(Link, name="links")
    view = Follower(linked(edges).materialize())
    nodes = [Sour(number) for number in range(4)]
    edges.add_all([Link(nodes[0], nodes[1]), Link(nodes[1], nodes[2])])
    wanted = Counter([Link(nodes[a], nodes[b]) for a, b in ((0, 1), (0, 2), (1, 2))])
    view.agree(wanted)
    try:
        Sour.is_sour = True
        with pytest.raises(TableError, match="comparing them raises") as raised:
            edges.add(Link(nodes[2], nodes[3]))
        assert type(raised.value.__cause__) is ArithmeticError
    finally:
        Sour.is_sour = False
    view.agree(wanted)
    edges.add(Link(nodes[2], nodes[3]))
    assert len(view.view) == 6
    view.view.verify()


# Reading.


def test_a_view_of_a_closure_has_its_rows_and_no_others() -> None:
    db = Database()
    edges: Table[Edge] = db.table(Edge, name="edges")
    links: Table[Link] = db.table(Link, name="links")
    view, other = left_linear(edges).materialize(), linked(links).materialize()
    edges.add_all(chain(1, 2, 3))
    links.add_all([Link(1, 2), Link(2, 3)])
    assert len(view) == 3 and Edge(1, 3) in view and (1, 3) in view
    assert not any(row in view for row in [Edge(3, 1), Edge(1, 9), (1, 3, 5), (), "ab", Link(1, 3)])
    assert Link(1, 3) in other and (1, 3) not in other and Link(3, 1) not in other
    assert {type(row) for row in view} == {Edge} and {type(row) for row in other} == {Link}
    with pytest.raises(TypeError, match="unhashable"):
        assert [1, 3] in view
    late = left_linear(edges).group_by(lambda p: p.src).aggregate(Count()).materialize()
    assert dict(late) == {1: 2, 2: 1}


# Work.


def touched(query: Callable[[Rel], Rel], edges: Sequence[Edge], edge: Edge) -> list[int]:
    db = Database()
    table: Table[Edge] = db.table(Edge, name="edges")
    view = query(table).materialize()
    table.add_all(edges)
    found = []
    for act in (table.remove, table.add):
        before = view.stats().touched
        act(edge)
        found.append(view.stats().touched - before)
    return found


@pytest.mark.long
@pytest.mark.parametrize("query", [left_linear, right_linear, non_linear])
def test_work_follows_the_nodes_above_an_edge_and_not_the_pairs(
    query: Callable[[Rel], Rel],
) -> None:
    edges = chain(*range(400))
    assert max(touched(query, edges, edges[200])) <= 3 * 201
    assert max(touched(query, edges, edges[2])) <= 3 * 3
    assert max(touched(query, [*edges, *chain(*range(1000, 3000))], edges[2])) <= 3 * 3


def test_an_edge_within_a_ring_with_a_chord_touches_the_ring_once() -> None:
    ring = [*chain(*range(300), 0), Edge(10, 12), Edge(10, 13)]
    assert max(touched(left_linear, ring, Edge(10, 13))) <= 2 * 301


def test_a_load_numbers_nodes_in_the_order_of_the_paths_through_them() -> None:
    """A node of a tree then reaches one run of bits, whatever the order of the rows."""
    db = Database()
    edges: Table[Edge] = db.table(Edge, name="edges")
    view = left_linear(edges).materialize()
    rows = [Edge((n - 1) // 3, n) for n in range(1, 4000)]
    Random(1).shuffle(rows)
    edges.add_all([*rows, Edge(9000, 9001), Edge(9001, 9000)])
    (operator,) = closures_in(db)
    blocks = sum(len(bits) for bits in operator._graph.reach.values())
    assert blocks <= 2 * len(operator._graph.reach)
    assert len(view) == sum(len(set(above(n))) for n in range(1, 4000)) + 4


def above(node: int) -> Iterable[int]:
    while node:
        node = (node - 1) // 3
        yield node
