"""Work follows the derivations that a change affects; state is gone when the rows are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from reactive import Table, fixpoint
from tests.engine.operators.fixpoint.graphs import Edge, chain, cycle
from tests.engine.operators.fixpoint.test_shapes import left_linear
from tests.engine.operators.fixpoint.watched import COMPONENT, QUERIES, Watched, elsewhere

Rel = Any


EDITS: tuple[Callable[[Table[Edge]], object], ...] = (
    lambda t: t.add(Edge(8, 9)),
    lambda t: t.remove(Edge(8, 9)),
    lambda t: t.remove(Edge(3, 4)),
    lambda t: t.remove(Edge(2, 4)),
    lambda t: t.add(Edge(3, 4)),
    lambda t: t.update(Edge(7, 5), Edge(7, 2)),
    lambda t: t.update(Edge(7, 2), Edge(7, 5)),
    lambda t: t.remove(Edge(1, 2)),
    lambda t: t.add(Edge(1, 2)),
    lambda t: t.add(Edge(1, 2)),
    lambda t: t.replace_all([*t, Edge(3, 3), Edge(8, 1)]),
)


@pytest.mark.parametrize("name", QUERIES)
def test_unrelated_components_do_not_change_what_an_edit_touches(name: str) -> None:
    few = Watched(QUERIES[name], (*COMPONENT, *elsewhere(1)))
    many = Watched(QUERIES[name], (*COMPONENT, *elsewhere(100)))
    assert few.work(*EDITS[:-1]) == many.work(*EDITS[:-1])
    few.view.verify()


@pytest.mark.parametrize("name", QUERIES)
def test_all_state_is_gone_when_all_rows_are(name: str) -> None:
    watched = Watched(QUERIES[name], ())
    empty = watched.view.stats().rows
    watched.edges.add_all((*COMPONENT, *elsewhere(1)))
    watched.work(*EDITS)
    assert watched.view.stats().rows > empty
    for edge in list(watched.edges)[::2]:
        watched.edges.remove(edge)
    watched.view.verify()
    watched.edges.clear()
    assert (list(watched.view), watched.view.stats().rows) == ([], empty)
    watched.edges.add_all(COMPONENT)
    watched.view.verify()


@pytest.mark.parametrize("name", QUERIES)
def test_a_change_and_its_opposite_in_one_commit_touch_next_to_nothing(name: str) -> None:
    watched = Watched(QUERIES[name], (*COMPONENT, *elsewhere(3)))

    def there_and_back(edges: Table[Edge]) -> None:
        with watched.db.transaction():
            edges.remove(Edge(2, 3))
            edges.add(Edge(9, 9))
            edges.add(Edge(2, 3))
            edges.remove(Edge(9, 9))

    assert watched.work(there_and_back) == [0]


# Deletions.


def reached(edges: Rel) -> Rel:
    """Return the edges from 0 to each node that is reached from 0."""
    return fixpoint(
        lambda seen: edges.where(lambda e: e.src == 0).union(
            seen.join(edges, on=lambda s, e: s.dst == e.src).select(lambda s, e: Edge(0, e.dst))
        )
    )


TWO_WAYS = (*chain(0, 1, 3), *chain(0, 2, 3), *chain(3, 4))
ARRIVALS: dict[str, tuple[tuple[Edge, ...], ...]] = {
    "at_once": (TWO_WAYS,),
    "one_after_the_other": (chain(0, 1, 3), chain(0, 2), chain(2, 3)),
    "both_starts_first": (chain(0, 1), chain(0, 2), chain(1, 3), chain(2, 3)),
}


def removal_of_one_of_two(arrival: Iterable[Iterable[Edge]], tail: int, gone: Edge) -> int:
    watched = Watched(reached, chain(*range(3, 3 + tail)))
    for edges in arrival:
        watched.edges.add_all(edges)
    (work,) = watched.work(lambda t: t.remove(gone))
    assert {e.dst for e in watched.view} == {1, 2, *range(3, 3 + tail)}
    return work


@pytest.mark.parametrize("gone", [Edge(1, 3), Edge(2, 3)])
@pytest.mark.parametrize("arrival", ["at_once", "both_starts_first"])
def test_the_loss_of_one_of_two_supports_touches_a_handful(arrival: str, gone: Edge) -> None:
    assert removal_of_one_of_two(ARRIVALS[arrival], 5, gone) <= 12
    assert removal_of_one_of_two(ARRIVALS[arrival], 500, gone) <= 12


@pytest.mark.parametrize("gone", [Edge(1, 3), Edge(2, 3)])
def test_support_that_came_late_costs_no_more_than_what_depends_on_the_row(gone: Edge) -> None:
    arrival = ARRIVALS["one_after_the_other"]
    assert removal_of_one_of_two(arrival, 500, gone) <= 12 * 500


def test_removing_a_copy_of_a_row_touches_a_handful() -> None:
    watched = Watched(left_linear, (*chain(*range(50)), Edge(10, 11)))
    assert watched.work(lambda t: t.remove(Edge(10, 11)))[0] <= 8


@pytest.mark.parametrize("size", [10, 200])
def test_a_ring_that_loses_its_start_is_gone_in_proportion(size: int) -> None:
    ring = cycle(*range(1, size + 1))
    watched = Watched(reached, (Edge(0, 1), *ring))
    assert len(watched.view) == size
    (work,) = watched.work(lambda t: t.remove(Edge(0, 1)))
    assert list(watched.view) == []
    assert work <= 20 * size


def test_a_leaf_of_a_tree_costs_what_it_is_worth() -> None:
    """The pairs of a leaf are the pairs with its ancestors, however many nodes there are."""

    def tree(levels: int) -> list[Edge]:
        return [Edge(n // 2, n) for n in range(2, 2**levels)]

    def work(levels: int) -> int:
        watched = Watched(left_linear, tree(levels))
        (leaf,) = watched.work(lambda t: t.remove(Edge(2 ** (levels - 1) // 2, 2 ** (levels - 1))))
        return leaf

    assert work(10) <= 2 * work(5) + 10
