"""Eleven defects seen in an earlier system of this kind, each as a test that it is not here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from reactive import Count, Database, Delta, Relation, Sum, Table, TableError
from reactive.api.view import AnyView
from tests.scenarios.play import Replica
from tests.scenarios.queries import group, value
from tests.scenarios.rows import A, B, C, D, Item


def tables() -> tuple[Database, Table[Item], Table[Item]]:
    db = Database()
    return db, db.table(Item, name="left"), db.table(Item, name="right")


def net(view: AnyView, *changes: Any) -> dict[Any, int]:
    """The net delta that some changes cause; the replica checks itself on the way."""
    replica = Replica(view)
    with replica.subscription:
        for change in changes:
            change()
            replica.check()
        view.verify()
        return replica.net()


def test_d1_a_join_update_moves_as_many_copies_as_were_updated() -> None:
    """The number of copies does not depend on the other rows with the new key."""
    _, left, right = tables()
    view = left.join(right, left_key=group, right_key=group).materialize()
    left.add_all([A, A, B, B, B])
    right.add_all([C, D, D])
    changes = net(view, lambda: left.update(A, Item("y", 7)))
    assert changes == {(A, C): -1, (Item("y", 7), D): 2}


def test_d2_an_update_is_of_one_occurrence_everywhere() -> None:
    """An update removes and adds one copy in one commit: in tables, indexes and set operators."""
    _, left, right = tables()
    views: list[AnyView] = [
        left.materialize(),
        left.join(right, left_key=group, right_key=group).materialize(),
        left.difference_all(right).materialize(),
        left.group_by(group).aggregate(Count(), Sum(value)).materialize(),
    ]
    left.add_all([A, A, A])
    right.add(A)
    left.update(A, C)
    assert Counter(left) == Counter({A: 2, C: 1})
    for view in views:
        view.verify()
    assert Counter(views[0]) == Counter({A: 2, C: 1})
    assert Counter(views[1]) == Counter({(A, A): 2, (C, A): 1})
    assert Counter(views[2]) == Counter({A: 1, C: 1})
    assert list(views[3]) == [("x", 3, 6)]


@pytest.mark.parametrize("method", ["difference", "difference_all"])
def test_d3_a_batch_of_removals_on_the_right_uncovers_hidden_rows_only(method: str) -> None:
    db, left, right = tables()
    view = getattr(left, method)(right).materialize()
    left.add(A)
    right.add_all([A, A, B, C])

    def batch() -> None:
        with db.transaction():
            right.remove_all([A, B, C])

    assert net(view, batch) == {}
    assert net(view, lambda: right.remove(A)) == {A: 1}


@pytest.mark.parametrize("method", ["difference", "difference_all"])
def test_d4_an_update_on_a_difference_of_a_row_hidden_on_both_sides(method: str) -> None:
    _, left, right = tables()
    view = getattr(left, method)(right).materialize()
    left.add(A)
    right.add(A)
    assert net(view, lambda: left.update(A, B)) == {B: 1}
    assert net(view, lambda: right.update(A, B)) == {B: -1}
    assert list(view) == []


def test_d5_iteration_gives_the_content_that_is_maintained() -> None:
    _, left, right = tables()
    common = left.intersection_all(right).materialize()
    either = (left | right).materialize()
    left.add_all([A, A, A])
    right.add_all([A, A, B, B])
    assert sorted(common) == [A, A]
    assert (len(common), common.count(A)) == (2, 2)
    assert sorted(either) == [A, B]
    assert either.items() == [(A, 1), (B, 1)]


@pytest.mark.parametrize(
    "method", ["intersection", "intersection_all", "union", "difference", "difference_all"]
)
def test_d6_set_operators_lose_no_duplicates_in_a_batch(method: str) -> None:
    db, left, right = tables()
    singles = getattr(left, method)(right).materialize()
    left.add_all([A, A, B])
    right.add_all([A, B, B])
    changes: tuple[Callable[[], object], ...] = (
        lambda: left.remove(A),
        lambda: right.add(A),
        lambda: left.add(B),
        lambda: right.remove(B),
        lambda: right.remove(B),
    )
    one_by_one = net(singles, *changes)
    left.replace_all([A, A, B])
    right.replace_all([A, B, B])

    def batch() -> None:
        with db.transaction():
            for change in changes:
                change()

    assert net(singles, batch) == one_by_one


def test_d7_a_view_made_after_the_rows_has_them_or_is_refused() -> None:
    db, left, _ = tables()
    left.add_all([A, A])
    assert list(left.select(value).materialize()) == [1, 1]
    flowing = db.table(Item, name="flowing", stored=False)
    early = flowing.select(value).materialize()
    flowing.add(A)
    assert list(early) == [1]
    assert list(flowing.select(value).materialize()) == [1]
    early.close()
    with pytest.raises(TableError):
        flowing.select(value).materialize()


def test_d8_set_operators_give_sets_whatever_they_are_given() -> None:
    """Set-ness of inputs may choose a cheaper operator; it may not change a result."""
    _, left, right = tables()
    bag, once = left.select(group), left.select(group).distinct()
    other = right.select(group)
    makers: tuple[Callable[[Relation[str]], Relation[str]], ...] = (
        lambda r: r | other,
        lambda r: r - other,
        lambda r: r & other,
        lambda r: r.distinct(),
        lambda r: r.distinct().distinct(),
    )
    views = [(make(bag).materialize(), make(once).materialize()) for make in makers]
    changes: tuple[Callable[[], object], ...] = (
        lambda: left.add_all([A, C, B]),
        lambda: right.add(A),
        lambda: left.remove(A),
        lambda: right.remove(A),
        lambda: left.remove(C),
    )
    for change in changes:
        change()
        for of_bag, of_set in views:
            assert sorted(of_bag) == sorted(of_set)
            assert max(Counter(of_bag).values(), default=1) == 1


def test_d9_survivors_of_a_deletion_are_not_announced() -> None:
    """Deltas are net per commit: a remaining row is never removed and added again."""
    db, left, right = tables()
    view = left.semi_join(right, left_key=group, right_key=group).distinct().materialize()
    left.add_all([A, A, B])
    right.add_all([A, C])
    heard: list[Delta[Any]] = []
    with view.subscribe(heard.append):
        right.remove(A)
        with db.transaction():
            right.remove(C)
            right.add(A)
        left.remove(A)
        right.update(A, Item("x", 8))
        assert heard == []
        left.update(A, C)
    assert [dict(delta.items()) for delta in heard] == [{A: -1, C: 1}]


def test_d10_an_aggregate_of_no_rows_is_one_row_and_a_group_of_no_rows_is_none() -> None:
    _, left, _ = tables()
    total = left.aggregate(Count(), Sum(value)).materialize()
    groups = left.group_by(group).aggregate(Count(), Sum(value)).materialize()
    assert (list(total), list(groups)) == ([(0, 0)], [])
    assert net(total, lambda: left.add(A)) == {(0, 0): -1, (1, 1): 1}
    assert list(groups) == [("x", 1, 1)]
    assert net(total, left.clear) == {(1, 1): -1, (0, 0): 1}
    assert list(groups) == []


def test_d11_databases_share_nothing() -> None:
    """Same names, same lines of code, same callables: no process-wide cache connects them."""

    def build() -> tuple[Table[Item], AnyView]:
        db = Database()
        table = db.table(Item, name="rows")
        return table, table.where(lambda r: r.value > 0).distinct().materialize("positive")

    (first, of_first), (second, of_second) = build(), build()
    first.add(A)
    assert (list(of_first), list(of_second)) == ([A], [])
    of_first.close()
    second.add(B)
    assert (list(second), list(of_second)) == ([B], [B])
    third, of_third = build()
    assert (list(third), list(of_third)) == ([], [])
