"""Corners of recursion: odd values, odd tables, captured variables, odd moments."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from reactive import Count, Database, StaleCaptureError, StaleCaptureWarning, Table, fixpoint
from tests.budget import sampled
from tests.engine.operators.fixpoint.follow import Follower
from tests.engine.operators.fixpoint.graphs import SHAPES, Edge, chain, closure, cycle
from tests.engine.operators.fixpoint.test_shapes import CLOSURES, left_linear, non_linear, step

Rel = Any
MODES = pytest.mark.parametrize("optimize", [True, False])


def edges_of(*, optimize: bool = True, **options: Any) -> tuple[Database, Table[Edge]]:
    db = Database(optimize=optimize)
    return db, db.table(Edge, name="edges", **options)


# Values.


@pytest.mark.parametrize("nan", [float, Decimal], ids=["float", "decimal"])
@MODES
def test_a_nan_that_a_step_makes_anew_is_one_row(nan: Any, optimize: bool) -> None:
    """A new NaN equals no other, and would be derived again and again."""
    numbers: Table[int] = Database(optimize=optimize).table(int, name="numbers")
    view = fixpoint(
        lambda r: numbers.select(lambda n: (n, nan("nan"))).union(
            r.select(lambda p: (p[0] % 3, nan("nan")))
        ),
        max_rounds=20,
    ).materialize()
    numbers.add(7)
    assert sorted(n for n, _ in view) == [1, 7]
    numbers.add(1)
    numbers.remove(7)
    assert [n for n, _ in view] == [1]
    view.verify()
    numbers.clear()
    assert (list(view), view.stats().rows) == ([], 0)


@MODES
def test_equal_rows_of_two_tables_are_one_row_of_their_union(optimize: bool) -> None:
    """The two objects are one row, which supports itself once, not twice."""
    db = Database(optimize=optimize)
    first, second = (db.table(Edge, name=name) for name in ("first", "second"))
    both = first.union_all(second)
    view = fixpoint(lambda r: first.union(r.intersection(both))).materialize()
    for _ in range(2):
        with db.transaction():
            first.add(Edge(1, 2))
            second.add(Edge(1, 2))
    view.verify()
    first.clear()
    assert list(view) == []
    view.verify()


@MODES
def test_nan_nodes_lead_nowhere_and_none_is_a_node(optimize: bool) -> None:
    _, edges = edges_of(optimize=optimize)
    view = left_linear(edges).materialize()
    edges.add_all([Edge(1, math.nan), Edge(math.nan, 2), Edge(1, None), Edge(None, 3)])
    assert len(view) == 5
    assert Edge(1, 3) in view
    view.verify()
    edges.remove(Edge(None, 3))
    assert len(view) == 3
    edges.clear()
    assert len(view) == 0


@MODES
def test_equal_values_of_different_types_are_one_node(optimize: bool) -> None:
    _, edges = edges_of(optimize=optimize)
    view = Follower(non_linear(edges).materialize())
    edges.add_all([Edge(0, 1), Edge(1.0, 2), Edge(True, 3)])
    view.agree(Counter([Edge(0, 1), Edge(1, 2), Edge(1, 3), Edge(0, 2), Edge(0, 3)]))
    edges.remove(Edge(1, 2.0))
    edges.remove(Edge(0, True))
    view.agree(Counter([Edge(1, 3)]))


@MODES
def test_a_row_may_be_nothing_but_its_key(optimize: bool) -> None:
    """Rows that are no tuples: None, texts, frozensets."""
    words: Table[Any] = Database(optimize=optimize).table(object, name="words")
    view = Follower(
        fixpoint(
            lambda r: words.union(
                r.where(lambda w: isinstance(w, str) and len(w) > 1).select(lambda w: w[1:])
            )
        ).materialize()
    )
    words.add_all(["abc", None, frozenset("x"), "bc"])
    view.agree(Counter(["abc", "bc", "c", None, frozenset("x")]))
    words.remove("abc")
    words.remove(None)
    view.agree(Counter(["bc", "c", frozenset("x")]))


# Tables.


@MODES
def test_a_keyed_table_moves_rows_from_place_to_place(optimize: bool) -> None:
    """Every node has one successor: an upsert takes one edge and brings another."""
    _, edges = edges_of(optimize=optimize, key="src")
    followers = [Follower(query(edges).materialize()) for query in CLOSURES.values()]
    for src, dst in ((1, 2), (2, 3), (3, 1), (3, 4), (4, 2), (2, 2), (1, 3), (2, 1)):
        edges.upsert(Edge(src, dst))
        for follower in followers:
            follower.agree(Counter(closure(edges)))
    edges.delete(2)
    for follower in followers:
        follower.agree(Counter(closure(edges)))


@MODES
def test_rows_that_are_not_stored_flow_through_a_recursion(optimize: bool) -> None:
    _, edges = edges_of(optimize=optimize, stored=False)
    view = Follower(left_linear(edges).materialize())
    held: list[Edge] = []
    for edge in (*cycle(1, 2, 3), *chain(3, 4, 5)):
        edges.add(edge)
        held.append(edge)
        view.agree(Counter(closure(held)))
    for edge in held[:3]:
        edges.remove(edge)
    view.agree(Counter(closure(held[3:])))


@MODES
def test_a_recursion_over_no_rows_at_all(optimize: bool) -> None:
    _, edges = edges_of(optimize=optimize)
    nothing = edges.where(lambda e: False)
    view = Follower(fixpoint(lambda r: nothing.union(step(r, edges))).materialize())
    some = Follower(fixpoint(lambda r: edges.union(step(r, nothing))).materialize())
    edges.add_all(cycle(1, 2, 3))
    view.agree(Counter())
    some.agree(Counter(cycle(1, 2, 3)))


@MODES
def test_a_step_that_does_not_read_its_relation_is_no_recursion(optimize: bool) -> None:
    _, edges = edges_of(optimize=optimize)
    view = Follower(fixpoint(lambda r: edges.union_all(edges)).materialize())
    first, second = fixpoint(lambda a, b: (b, edges.select(lambda e: Edge(e.dst, e.src))))
    both = [Follower(first.materialize()), Follower(second.materialize())]
    edges.add_all([Edge(1, 2), Edge(1, 2), Edge(2, 3)])
    view.agree(Counter([Edge(1, 2), Edge(2, 3)]))
    for follower in both:
        follower.agree(Counter([Edge(2, 1), Edge(3, 2)]))
    edges.remove(Edge(1, 2))
    view.agree(Counter([Edge(1, 2), Edge(2, 3)]))


# Filters beside negations.


@MODES
def test_a_where_below_a_negation_holds(optimize: bool) -> None:
    db = Database(optimize=optimize)
    numbers, stops = db.table(int, name="numbers"), db.table(int, name="stops")
    view = Follower(
        fixpoint(
            lambda r: numbers.union(
                r.where(lambda n: n < 5)
                .where(lambda n: n != 3)
                .anti_join(stops, on=lambda n, s: n == s)
                .select(lambda n: n + 1)
            ),
            max_rounds=30,
        ).materialize()
    )
    numbers.add(0)
    view.agree(Counter(range(4)))
    numbers.add(4)
    view.agree(Counter(range(6)))
    stops.add(1)
    view.agree(Counter([0, 1, 4, 5]))
    stops.update(1, 4)
    view.agree(Counter(range(5)))
    stops.clear()
    view.agree(Counter(range(6)))
    view.view.verify()


# Moments.


@sampled
@pytest.mark.parametrize("shape", SHAPES[::3], ids=lambda shape: shape.name)
@pytest.mark.parametrize("kind", CLOSURES)
def test_a_view_made_late_equals_one_made_early_and_goes_on_so(kind: str, shape: Any) -> None:
    db, edges = edges_of()
    early = Follower(CLOSURES[kind](edges).materialize())
    edges.add_all(shape.edges)
    early.view.close()
    late = Follower(CLOSURES[kind](edges).materialize())
    late.agree(Counter(closure(edges)))
    with db.transaction():
        edges.remove_all(shape.cuts)
        inside = Follower(CLOSURES[kind](edges).select(lambda p: p).materialize())
        edges.add(Edge(8, 1))
    for follower in (late, inside):
        follower.agree(Counter(closure(edges)))
    edges.clear()
    for follower in (late, inside):
        follower.agree(Counter())


def test_views_inside_a_transaction_show_the_last_commit() -> None:
    db, edges = edges_of()
    view = left_linear(edges).materialize()
    with db.transaction():
        edges.add_all(cycle(1, 2, 3))
        assert list(view) == []
    with db.transaction():
        edges.clear()
        assert len(view) == 9
    assert list(view) == []


def test_what_a_subscriber_of_a_recursion_writes_is_the_next_commit() -> None:
    """The subscriber closes every chain of three: the recursion is triggered by its own result."""
    _, edges = edges_of()
    view = left_linear(edges).materialize()
    versions: list[int] = []

    def close(delta: Any) -> None:
        versions.append(delta.version)
        for pair in delta.added:
            if pair == Edge(1, 4):
                edges.add(Edge(4, 1))

    with view.subscribe(close):
        edges.add_all(chain(1, 2, 3, 4))
    assert versions == [1, 2]
    assert set(view) == closure(cycle(1, 2, 3, 4))
    view.verify()


# Captured variables.


def test_a_variable_in_a_step_means_what_it_meant_and_its_change_is_told() -> None:
    limit = 3

    def counted(db: Database) -> tuple[Table[int], Any]:
        numbers = db.table(int, name="numbers")
        relation = fixpoint(
            lambda r: numbers.union(r.where(lambda n: n < limit).select(lambda n: n + 1))
        )
        return numbers, relation

    numbers, relation = counted(Database())
    strict, other = counted(Database(strict=True))
    view, refusing = relation.materialize(), other.materialize()
    numbers.add(1)
    assert sorted(view) == [1, 2, 3]
    limit = 5
    with pytest.warns(StaleCaptureWarning, match="'limit'"):
        numbers.add(0)
    assert sorted(view) == [0, 1, 2, 3]
    with pytest.raises(StaleCaptureError, match="'limit'"):
        strict.add(0)
    assert (list(strict), list(refusing)) == ([], [])


def test_a_recursion_counts_once_in_an_aggregate_however_often_it_is_derived() -> None:
    _, edges = edges_of()
    count = left_linear(edges).aggregate(Count()).materialize()
    edges.add_all([*chain(1, 2, 4), *chain(1, 3, 4), *chain(1, 2, 4)])
    assert count.value == 5
    edges.remove(Edge(1, 2))
    edges.remove(Edge(3, 4))
    assert count.value == 4
    edges.remove(Edge(1, 2))
    assert count.value == 2


@pytest.mark.parametrize("optimize", [False, True])
def test_a_row_that_two_ways_derive_in_one_round_enters_once(optimize: bool) -> None:
    db = Database(optimize=optimize)
    edges, banned = db.table(tuple, name="edges"), db.table(tuple, name="banned")

    def reached(found: Any) -> Any:
        again = found.union(found.select(lambda row: (row[0], row[1])))  # the one a batch, one not
        return edges.union(again.difference(banned))

    view: Any = fixpoint(reached).materialize()
    edges.add((0, 0))
    assert list(view) == [(0, 0)]
    edges.remove((0, 0))  # it does not hold itself up
    assert list(view) == []
    view.verify()


@MODES
def test_a_definition_may_read_one_that_has_several_relations_inside(optimize: bool) -> None:
    db = Database(optimize=optimize)
    edges: Any = db.table(object, name="edges")

    def longer(paths: Any) -> Any:
        joined = paths.join(edges, on=lambda a, b: a[1] == b[0])
        return joined.select(lambda a, b: (a[0], b[1]))

    def step(paths: Any, both: Any) -> Any:
        _, found = fixpoint(lambda p, q: (edges.union(q), edges.union(longer(p))))
        return found, fixpoint(lambda r: paths.union(r.select(lambda pair: (pair[1], pair[0]))))

    view = fixpoint(step)[1].materialize()
    edges.add_all([(1, 2), (2, 3)])
    assert sorted(view) == [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)]
    edges.remove((1, 2))
    assert sorted(view) == [(2, 3), (3, 2)]
    view.verify()
