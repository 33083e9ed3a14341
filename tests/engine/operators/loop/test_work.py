"""Rows that a change of a loop reads: the reached rows, once that pays; or all rows."""

from __future__ import annotations

from typing import Any

import pytest

from examples.graphs.edges import Edge as Link
from examples.graphs.k_means import Center, Point, k_means
from examples.graphs.page_rank import page_rank
from reactive import Database, Table
from reactive.engine.operators.loop.loop_recomputation import RATIO
from tests.properties.test_loops import DATABASES, Edge, edges_of, labels, ranks

WORDS: dict[str, dict[str, Any]] = {
    "times": {"times": 4},
    "settled": {
        "until": "settled",
        "tolerance": 1e-3,
        "of": lambda r: r.rank,
        "contraction": 0.85,
        "norm": "sum",
    },
}


def components(count: int) -> list[Edge]:
    return [Edge(10 * n + a, 10 * n + (a + 1) % 5) for n in range(count) for a in range(5)]


def touched_by_a_change(count: int, words: dict[str, Any]) -> int:
    """Return the rows touched by one more edge, among `count` components, after similar changes."""
    edges = edges_of()
    edges.add_all(components(count))
    view = ranks(edges, **words).materialize()
    for _ in range(RATIO + 1):
        edges.add(Edge(0, 2))
        edges.remove(Edge(0, 2))
    before: int = view.stats().touched
    edges.add(Edge(0, 2))
    view.verify()
    return int(view.stats().touched - before)


@pytest.mark.long
@pytest.mark.parametrize("how", WORDS)
def test_other_components_do_not_change_what_a_change_looks_at(how: str) -> None:
    few, many = (touched_by_a_change(count, WORDS[how]) for count in (100, 1_000))
    assert few == many < 2_000


def test_a_change_that_reaches_all_is_evaluated_anew_and_no_rounds_are_held() -> None:
    """State is that of the inputs and the result, however many rounds there are."""
    edges: Table[Edge] = edges_of()
    edges.add_all([Edge(n, (n + 1) % 50) for n in range(50)])
    edges.add_all([Edge(n, (7 * n + 3) % 50) for n in range(50)])
    held = []
    for times in (3, 30):
        view = ranks(edges, times=times).materialize()
        edges.add(Edge(1, 9))
        edges.remove(Edge(1, 9))
        held.append(view.stats().rows)
        view.verify()
    assert held[1] <= 2 * held[0]


@pytest.mark.long
def test_a_failed_transaction_leaves_a_loop_that_is_followed_as_it_was() -> None:
    edges = edges_of()
    edges.add_all(components(100))
    views = [ranks(edges, **words).materialize() for words in WORDS.values()]
    views.append(labels(edges, until="settled").materialize())
    for number in range(2 * RATIO):
        edges.add(Edge(0, 2 + number % 3))
        before = [dict(view.zset().items()) for view in views]
        with pytest.raises(ZeroDivisionError), _database(edges).transaction():
            edges.add(Edge(number % 5, 3))
            edges.remove(Edge(0, 1))
            raise ZeroDivisionError
        assert [dict(view.zset().items()) for view in views] == before
        edges.remove(Edge(0, 2 + number % 3))
    for view in views:
        view.verify()


def test_a_callable_that_raises_undoes_a_loop_that_is_followed() -> None:
    edges = edges_of()
    edges.add_all(components(100))
    views = [ranks(edges, **words).materialize() for words in WORDS.values()]
    guard = edges.where(lambda e: 1 // (e.src - 999) < 5).materialize()
    for number in range(2 * RATIO):
        edges.add(Edge(0, 2))
        before = [dict(view.zset().items()) for view in views]
        with pytest.raises(ZeroDivisionError), _database(edges).transaction():
            edges.add(Edge(number % 5, 3))
            edges.add(Edge(999, 0))
        assert [dict(view.zset().items()) for view in views] == before
        edges.remove(Edge(0, 2))
    for view in (*views, guard):
        view.verify()


def _database(edges: Table[Edge]) -> Database:
    return DATABASES[id(edges)]


def test_loops_in_which_all_depends_on_all_have_rounds_of_their_own() -> None:
    db = Database()
    points, starts, links = db.table(Point), db.table(Center), db.table(Link)
    for query in (k_means(points, starts), page_rank(links)):
        assert "rounds of iterate" in str(query.explain())
