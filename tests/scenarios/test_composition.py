"""Operators over operators, and views made when rows are there already."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from reactive import Count, Database, Table
from reactive.api.view import AnyView
from tests.scenarios.play import Replica
from tests.scenarios.queries import QUERIES, Query, group, value
from tests.scenarios.rows import FULL, SOME, A, B, C, D, Item


def tables() -> tuple[Database, Table[Item], Table[Item]]:
    db = Database()
    return db, db.table(Item, name="left"), db.table(Item, name="right")


def agree(view: AnyView, wanted: Iterable[Any]) -> None:
    """Check that the view has these rows, and equals its query."""
    assert Counter(view) == Counter(wanted)
    view.verify()


def test_difference_then_join() -> None:
    db, left, right = tables()
    view = (left - right).join(left, left_key=group, right_key=group).materialize()
    left.add_all([A, C, B])
    agree(view, [(A, A), (A, C), (C, A), (C, C), (B, B)])
    right.add(A)
    agree(view, [(C, A), (C, C), (B, B)])
    with db.transaction():
        right.remove(A)
        left.remove(A)
    agree(view, [(C, C), (B, B)])


def test_join_with_a_difference_whose_right_side_is_the_same_table() -> None:
    db, left, right = tables()
    view = left.join(right - left, left_key=group, right_key=group).materialize()
    right.add_all([A, C])
    left.add(A)
    agree(view, [(A, C)])
    left.update(A, C)
    agree(view, [(C, A)])
    with db.transaction():
        left.add(A)
        right.add(Item("x", 8))
    agree(view, [(A, Item("x", 8)), (C, Item("x", 8))])
    left.clear()
    agree(view, [])


def test_a_source_added_twice_against_a_distinct_right_side() -> None:
    _, left, right = tables()
    view = left.union_all(left).difference_all(right.distinct()).materialize()
    left.add(A)
    right.add_all([A, A])
    agree(view, [A])
    left.add(A)
    agree(view, [A, A, A])
    right.remove(A)
    agree(view, [A, A, A])
    right.remove(A)
    agree(view, [A, A, A, A])


@pytest.mark.parametrize("left_first", [True, False])
def test_anti_join_whatever_arrives_first(left_first: bool) -> None:
    _, left, right = tables()
    view = left.anti_join(right, left_key=group, right_key=group).materialize()
    first, second = (left, right) if left_first else (right, left)
    first.add(A)
    second.add(A)
    agree(view, [])
    right.remove(A)
    agree(view, [A])


def test_anti_join_fed_by_one_table_from_both_sides() -> None:
    """The rows of a group without a greater one: its greatest."""
    db, left, _ = tables()
    greatest = left.anti_join(
        left, left_key=group, right_key=group, on=lambda a, b: a.value < b.value
    ).materialize()
    left.add(A)
    agree(greatest, [A])
    left.add(C)
    agree(greatest, [C])
    with db.transaction():
        left.remove(C)
        left.add(B)
    agree(greatest, [A, B])
    left.update(A, C)
    agree(greatest, [C, B])
    left.clear()
    agree(greatest, [])


def test_the_pair_with_itself_counts_once_in_a_self_join() -> None:
    db, left, _ = tables()
    view = left.join(left, left_key=group, right_key=group).materialize()
    replica = Replica(view)
    left.add(A)
    agree(view, [(A, A)])
    left.update(A, B)
    agree(view, [(B, B)])
    left.add(B)
    agree(view, [(B, B)] * 4)
    left.remove(B)
    agree(view, [(B, B)])
    with db.transaction():
        left.add(D)
        left.remove(B)
    agree(view, [(D, D)])
    left.remove(D)
    agree(view, [])
    replica.check()
    assert not replica.net()


@pytest.mark.long
@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.name)
def test_a_view_made_late_equals_one_made_early(query: Query) -> None:
    """Test also indexes built after the first rows, and products of filled inputs."""
    db, left, right = tables()
    early = query.build(left, right).materialize()
    left.add_all(FULL)
    right.add_all(SOME)
    early_rows = Counter(early)
    early.close()
    assert operators(db) == 0
    late = query.build(left, right).materialize()
    assert Counter(late) == early_rows
    with db.transaction():
        left.update(A, D)
        inside = query.build(left, right).materialize()
        assert Counter(inside) == Counter(late) == early_rows
    assert Counter(inside) == Counter(late)
    late.verify()
    inside.verify()


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.name)
def test_two_views_of_one_query_share_their_operators(query: Query) -> None:
    db, left, right = tables()
    relation = query.build(left, right)
    first = relation.materialize()
    alone = operators(db)
    second = relation.materialize()
    assert operators(db) == alone
    first.close()
    assert operators(db) == alone
    left.add_all(FULL)
    right.add_all(SOME)
    second.verify()
    second.close()
    assert operators(db) == 0


def test_of_two_views_that_share_a_part_one_may_go() -> None:
    _, left, right = tables()
    shared = left.join(right, left_key=group, right_key=group)
    pairs = shared.materialize()
    counts = shared.group_by(lambda a, b: a.group).aggregate(Count()).materialize()
    left.add_all(FULL)
    right.add_all(SOME)
    pairs.close()
    left.add(D)
    assert dict(counts) == {"x": 6, "y": 2}
    counts.verify()
    again = shared.materialize()
    agree(again, [(a, b) for a in [*FULL, D] for b in SOME if a.group == b.group])
    counts.close()
    right.remove(A)
    again.verify()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_order_in_which_views_are_made_does_not_matter(order: tuple[int, ...]) -> None:
    _, left, right = tables()
    kept = left.where(lambda r: r.value > 0)
    makers: list[Callable[[], AnyView]] = [
        lambda: kept.join(right, left_key=group, right_key=group).materialize(),
        lambda: kept.anti_join(right, left_key=group, right_key=group).materialize(),
        lambda: kept.full_join(right, left_key=group, right_key=group).materialize(),
    ]
    views = []
    for n, maker in enumerate(order):
        views.append(makers[maker]())
        left.add(FULL[n])
        right.add(SOME[n])
    left.clear()
    right.remove(A)
    left.add_all([A, B])
    for view in views:
        view.verify()


def test_a_diamond_moves_as_one() -> None:
    """Both ways from a table to a join step in one commit: no pair of old and new is seen."""
    _, left, _ = tables()
    low, high = left.where(lambda r: r.value < 4), left.where(lambda r: r.value >= 4)
    view = low.full_join(high, left_key=group, right_key=group).materialize()
    replica = Replica(view)
    left.add(A)
    agree(view, [(A, None)])
    left.update(A, C)
    agree(view, [(None, C)])
    assert replica.deltas == 2
    left.add(A)
    agree(view, [(A, C)])
    replica.check()


def test_late_evaluation_of_a_diamond_asks_each_callable_once() -> None:
    """Ten levels read the level below twice: one evaluation per reader would double each time."""
    calls = 0

    class Asks:
        def __init__(self, wanted: bool) -> None:
            self.wanted = wanted

        def __call__(self, item: Item) -> bool:
            nonlocal calls
            calls += 1
            return (item.value > 3) == self.wanted

    _, left, _ = tables()
    relation: Any = left
    for _ in range(10):
        relation = relation.where(Asks(True)).union_all(relation.where(Asks(False)))
    left.add(A)
    view = relation.materialize()
    at_start, calls = calls, 0
    left.add(B)
    assert list(view) == [A, B]
    assert at_start == calls == 20


def test_order_of_a_join_follows_values_not_arrival() -> None:
    _, left, right = tables()
    view = (
        left.join(right, left_key=group, right_key=group)
        .select(lambda a, b: a.value + b.value)
        .order_by(lambda n: n)
        .limit(2)
        .materialize()
    )
    right.add_all(SOME)
    left.add_all(FULL)
    assert list(view) == sorted(a.value + b.value for a in FULL for b in SOME if same(a, b))[:2]
    left.remove_all([A, A])
    assert list(view) == [5, 6]
    assert value(A) == 1
    view.verify()


def same(a: Item, b: Item) -> bool:
    return a.group == b.group


def operators(db: Database) -> int:
    """Nodes of the graph that are neither tables nor views."""
    return len(db._engine.graph._nodes)
