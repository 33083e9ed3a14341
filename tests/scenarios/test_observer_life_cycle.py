"""Views and subscribers start and end; the graph keeps only the nodes that these need."""

from __future__ import annotations

import asyncio
import gc
import warnings
import weakref
from collections import Counter
from typing import Any

import pytest

from reactive import Count, Database, Delta, Sum, Table
from reactive.api.view import AnyView
from tests.scenarios.play import Replica
from tests.scenarios.queries import QUERIES, Query, different, group, value
from tests.scenarios.rows import FULL, SOME, A, B, C, Item


def tables() -> tuple[Database, Table[Item], Table[Item]]:
    db = Database()
    return db, db.table(Item, name="left"), db.table(Item, name="right")


def operators(db: Database) -> int:
    return len(db._engine.graph._nodes)


def readers(db: Database) -> int:
    """Return the number of nodes that read the tables directly."""
    return sum(len(db._engine.queries.source(table.plan).consumers) for table in db.tables())


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.name)
def test_a_view_that_nobody_holds_is_detached(query: Query) -> None:
    """Detaching is immediate: no cycle of references waits for the garbage collector."""
    db, left, right = tables()
    view = query.build(left, right).materialize()
    reference = weakref.ref(view)
    assert readers(db)
    del view
    assert reference() is None
    assert (operators(db), readers(db), db.views()) == (0, 0, [])
    left.add_all(FULL)
    right.add_all(SOME)


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.name)
def test_closing_a_view_leaves_what_another_needs(query: Query) -> None:
    db, left, right = tables()
    base = query.build(left, right)
    other = base.aggregate(Count()).materialize()
    needed = operators(db), readers(db)
    view = different(base).materialize()
    view.close()
    assert (operators(db), readers(db)) == needed
    left.add_all(FULL)
    right.add_all(SOME)
    assert other.value == len(list(query.oracle(list(FULL), list(SOME))))
    other.close()
    assert (operators(db), readers(db)) == (0, 0)


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.name)
def test_a_subscription_that_ends_detaches_its_operators(query: Query) -> None:
    db, left, right = tables()
    with query.build(left, right).subscribe(print):
        assert readers(db)
    assert (operators(db), readers(db)) == (0, 0)


def test_joins_over_several_tables_share_indexes_and_give_them_back() -> None:
    db, left, right = tables()
    third = db.table(Item, name="third")
    first = left.join(right, left_key=group, right_key=group)
    second = first.join(third, left_key=lambda a, b: b.value, right_key=value)
    view = second.materialize()
    anti = third.anti_join(right, left_key=group, right_key=group).materialize()
    with_both = operators(db)
    view.close()
    assert 0 < operators(db) < with_both
    right.add_all(SOME)
    third.add_all(FULL)
    anti.verify()
    anti.close()
    assert operators(db) == 0


def test_a_view_closed_in_a_transaction_is_detached_and_its_neighbour_is_not() -> None:
    db, left, right = tables()
    joined = left.join(right, left_key=group, right_key=group)
    view, other = joined.materialize(), joined.select(lambda a, b: a).materialize()
    with db.transaction():
        left.add(A)
        view.close()
        right.add(A)
    assert list(other) == [A]
    other.close()
    assert operators(db) == 0


def test_a_subscription_holds_its_view() -> None:
    db, left, _ = tables()
    heard: list[Delta[Any]] = []
    subscription = left.where(lambda r: r.value > 0).materialize().subscribe(heard.append)
    gc.collect()
    left.add(A)
    assert [delta.added for delta in heard] == [(A,)]
    subscription.close()
    gc.collect()
    assert operators(db) == 0


def test_the_view_of_a_relation_that_fails_leaves_nothing_behind() -> None:
    db, left, right = tables()
    left.add(A)
    right.add(A)
    joined = left.join(right, left_key=group, right_key=group)
    with pytest.raises(ZeroDivisionError):
        joined.select(lambda a, b: a.value // 0).distinct().materialize()
    assert (operators(db), readers(db), db.views()) == (0, 0, [])


def test_dropping_a_view_in_its_own_subscriber_is_safe() -> None:
    db, left, _ = tables()
    views: list[AnyView] = [left.select(group).materialize()]
    heard: list[str] = []

    def once(delta: Delta[Any]) -> None:
        heard.extend(delta.added)
        subscription.close()
        views.pop().close()

    subscription = views[0].subscribe(once)
    left.add(A)
    left.add(B)
    assert heard == ["x"]
    assert operators(db) == 0


def test_subscribers_are_told_in_the_order_of_commits() -> None:
    db, left, _ = tables()
    heard: list[tuple[str, int]] = []
    view = left.select(value).materialize()
    with (
        view.subscribe(lambda delta: heard.append(("first", delta.version))),
        view.subscribe(lambda delta: heard.append(("second", delta.version))),
    ):
        left.add(A)
        with db.transaction():
            left.add(B)
            left.add(C)
    assert heard == [("first", 1), ("second", 1), ("first", 2), ("second", 2)]


def test_of_one_commit_removals_come_before_updates_before_additions() -> None:
    _, left, _ = tables()
    left.add_all([A, B])
    heard: list[str] = []

    class Log:
        def added(self, row: tuple[str, int]) -> None:
            heard.append(f"+{row[0]}")

        def removed(self, row: tuple[str, int]) -> None:
            heard.append(f"-{row[0]}")

        def updated(self, old: tuple[str, int], new: tuple[str, int]) -> None:
            heard.append(f"{old[0]}:{old[1]}->{new[1]}")

    with left.group_by(group).aggregate(Sum(value)).observe(Log()):
        left.replace_all([Item("z", 1), C])
    assert heard == ["-y", "x:1->4", "+z"]


def test_what_a_subscriber_writes_is_the_next_commit_for_everybody() -> None:
    _, left, right = tables()
    heard: list[tuple[str, int]] = []
    with (
        left.subscribe(lambda delta: right.add_all(delta.added)),
        left.subscribe(lambda delta: heard.append(("left", delta.version))),
        right.subscribe(lambda delta: heard.append(("right", delta.version))),
    ):
        left.add(A)
        left.add(B)
    assert heard == [("left", 1), ("right", 2), ("left", 3), ("right", 4)]
    assert list(right) == [A, B]


def test_an_observer_that_raises_leaves_everything_consistent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _, left, right = tables()
    view = left.join(right, left_key=group, right_key=group).materialize("pairs")
    replica = Replica(view)
    error = ZeroDivisionError("in the observer")

    def fail(delta: Delta[Any]) -> None:
        raise error

    with view.subscribe(fail) as failing:
        last = Replica(view)
        left.add(A)
        right.add(A)
        assert failing.error is error
        assert not failing.closed
        right.add(C)
    assert [record.message for record in caplog.records] == [
        "subscriber of view 'pairs' raised; it stays subscribed"
    ] * 2
    assert Counter(view) == Counter([(A, A), (A, C)])
    view.verify()
    replica.check()
    last.check()
    assert replica.deltas == last.deltas == 2


def test_a_snapshot_that_raises_gives_that_error_and_no_warning_beside_it() -> None:
    """A subscription that was never made must not warn that it has no reference."""
    db, left, _ = tables()
    left.add(A)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(ZeroDivisionError):
            left.select(lambda r: r.value // 0).subscribe(print, snapshot=True)
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
    assert (operators(db), readers(db)) == (0, 0)


def test_closing_the_database_closes_views_and_subscriptions() -> None:
    """`Database.close`: "End it: views and subscriptions with it"."""
    db, left, _ = tables()
    view = left.select(value).materialize()
    to_view, to_relation = view.subscribe(print), left.subscribe(print)
    db.close()
    closed = view.closed, to_view.closed, to_relation.closed
    to_view.close()
    to_relation.close()
    assert closed == (True, True, True)


@pytest.mark.parametrize("what", ["view", "relation"])
def test_closing_the_database_ends_the_iteration_over_changes(what: str) -> None:
    async def main() -> list[object]:
        db, left, _ = tables()
        view = left.materialize()
        changes = view.changes() if what == "view" else left.changes()
        with changes:
            left.add(A)
            db.close()
            return await asyncio.wait_for(_all(changes), timeout=0.2)

    assert len(asyncio.run(main())) == 1


def test_closing_a_view_ends_the_iteration_over_its_changes() -> None:
    async def main() -> list[object]:
        _, left, _ = tables()
        view = left.materialize()
        with view.changes() as changes:
            left.add(A)
            view.close()
            return await asyncio.wait_for(_all(changes), timeout=0.2)

    assert len(asyncio.run(main())) == 1


async def _all(changes: Any) -> list[object]:
    return [delta async for delta in changes]
