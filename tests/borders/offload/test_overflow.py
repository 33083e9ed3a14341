"""Automatic moves above a threshold, writers that wait, and flushes in the background."""

from __future__ import annotations

import re
import threading
from collections import Counter
from typing import Any

import pytest

from reactive import Count, Database, OffloadError, Sum
from reactive.engine.operators.loops.cyclic_count import CyclicCount
from tests.borders.offload.elsewhere import Elsewhere, InOneBucket, Together
from tests.replica import Replica

Orders = tuple[Database, Any, Any]


def orders(offload: Elsewhere) -> Orders:
    db = Database(offload=offload)
    table: Any = db.table(tuple, name="orders")
    totals = table.group_by(lambda o: o[0]).aggregate(Count(), Sum(lambda o: o[1]))
    return db, table, totals.materialize("totals")


def settle(db: Database) -> None:
    assert db._offloading.overflow is not None
    db._offloading.overflow.background.settle()


def fill(table: Any, start: int, end: int) -> None:
    for customer in range(start, end):
        table.add((customer, 1))


def test_an_operator_above_the_threshold_moves_by_itself_and_below_half_of_it_comes_back() -> None:
    db, table, view = orders(Elsewhere(threshold_rows=100))
    fill(table, 0, 100)
    settle(db)
    assert not db.offload_status()
    fill(table, 100, 150)
    settle(db)
    (line,) = db.offload_status()
    assert line.view == "view 'totals'" and line.rows >= 101
    fill(table, 150, 200)
    view.verify()
    for customer in range(200):
        table.remove((customer, 1))
        table.add((0, 1))
    settle(db)
    view.verify()
    fill(table, 300, 340)
    settle(db)
    table.replace_all([(0, 1)])
    fill(table, 0, 45)
    settle(db)
    assert not db.offload_status()
    view.verify()
    assert view.read(stale_ok=True) == view.read()


@pytest.mark.long
def test_the_threshold_can_be_one_of_bytes() -> None:
    db, table, view = orders(Elsewhere(threshold_bytes=1))
    table.add_all([(customer, 1) for customer in range(20_000)])
    settle(db)
    assert len(db.offload_status()) == 1
    view.verify()


def test_only_the_operator_that_is_too_large_moves() -> None:
    offload = Elsewhere(threshold_rows=100)
    db = Database(offload=offload)
    left, right = db.table(tuple, name="left"), db.table(tuple, name="right")
    joined = left.join(right, on=lambda a, b: a[0] == b[0])
    view = joined.group_by(lambda a, b: a[1]).aggregate(Count()).materialize("few")
    left.add_all([(n, n % 3) for n in range(90)])
    right.add_all([(n, 0) for n in range(90)])
    settle(db)
    (line,) = db.offload_status()
    assert line.operator.startswith("join")
    left.add((1, 2))
    view.verify()


def test_what_has_grown_moves_together_and_what_has_not_stays() -> None:
    offload = Together(threshold_rows=100)
    db = Database(offload=offload)
    left, right = db.table(tuple, name="left"), db.table(tuple, name="right")
    joined = left.join(right, on=lambda a, b: a[0] == b[0])
    many = joined.group_by(lambda a, b: a[0]).aggregate(Count())
    few = many.group_by(lambda key, n: key % 3).aggregate(Count()).materialize("few")
    one = joined.aggregate(Count()).materialize("one")
    left.add_all([(n, n % 3) for n in range(150)])
    right.add_all([(n, 0) for n in range(150)])
    settle(db)
    (part,) = (remote._part for remote in offload.begun if isinstance(remote, InOneBucket))
    assert [type(node).__name__ for node in part.of] == ["Aggregate", "Join"]
    left.add((1, 2))
    for view in (few, one):
        view.verify()
    left.clear()
    right.replace_all([(n, 0) for n in range(40)])
    for n in range(60):
        left.add((n % 5, n))
    settle(db)
    for n in range(60):
        left.remove((n % 5, n))
    settle(db)
    for view in (few, one):
        view.verify()


def test_what_is_too_large_and_cannot_move_is_told() -> None:
    db = Database(offload=Elsewhere(threshold_rows=10))
    table: Any = db.table(int, name="numbers")
    view = table.order_by(lambda n: n).materialize("ordered")
    table.add_all(range(100))
    settle(db)
    (line,) = db.offload_status()
    assert line.where.startswith("in process: its rows are in one order")
    assert len(view) == 100


def test_commits_go_on_while_a_flush_is_under_way() -> None:
    offload = Elsewhere()
    db, table, view = orders(offload)
    view.offload()
    heard: list[Any] = []
    subscription = view.subscribe(heard.append)
    table.add(("ann", 1))
    offload.applying.clear()
    offload.let.clear()
    flushing = threading.Thread(target=db.flush)
    flushing.start()
    assert offload.applying.wait(30)
    table.add(("ann", 2))  # neither waits, nor is part of that flush
    offload.let.set()
    flushing.join()
    assert [(d.version, d.added) for d in heard] == [(1, (("ann", 1, 1),))]
    assert view["ann"] == (2, 3)
    assert [d.version for d in heard] == [1, 2]
    assert not subscription.closed


def test_a_thread_inside_a_transaction_carries_on_the_flush_of_another() -> None:
    offload = Elsewhere()
    db, table, view = orders(offload)
    view.offload()
    table.add(("ann", 1))
    offload.applying.clear()
    offload.let.clear()
    flushing = threading.Thread(target=db.flush)
    flushing.start()
    assert offload.applying.wait(30)
    with db.transaction():
        table.add(("bob", 5))
        offload.let.set()
        assert sorted(view) == [("ann", 1, 1)]
    flushing.join()
    assert sorted(view) == [("ann", 1, 1), ("bob", 1, 5)]


def test_a_writer_waits_when_too_much_is_waiting() -> None:
    offload = Elsewhere(max_waiting=10)
    db, table, view = orders(offload)
    view.offload()
    for n in range(35):
        table.add((n, 1))
        assert db.offload_status()[0].lag <= 10
    assert db.offload_status()[0].flushes >= 3
    view.verify()


def test_flushes_come_by_themselves_at_intervals() -> None:
    db, table, view = orders(Elsewhere(flush_interval=0.01))
    view.offload()
    heard = threading.Event()
    subscription = view.subscribe(lambda delta: heard.set())
    table.add(("ann", 1))
    assert heard.wait(30)
    assert view.read(stale_ok=True) == [("ann", 1, 1)]
    assert not subscription.closed
    db.close()


def test_when_nobody_can_be_reached_the_error_names_the_views_and_others_go_on() -> None:
    offload = Elsewhere(max_waiting=10)
    db, table, view = orders(offload)
    other = table.where(lambda o: o[1] > 1).materialize("other")
    count = table.aggregate(Count()).materialize("count")
    table.add(("ann", 1))
    view.offload()
    offload.gone = True
    for n in range(30):
        table.add((n, 2))
    with pytest.raises(OffloadError, match=r"gone for good\n.*not up to date: view 'totals'; all"):
        len(view)
    assert len(other) == 30 and count.value == 31
    assert db.offload_status()[0].error
    heard: list[Any] = []
    subscription = view.subscribe(heard.append)
    view.recall()
    assert len(view) == 31 and not db.offload_status()[0].view
    view.verify()
    table.add(("ann", 4))
    assert view["ann"] == (2, 5)
    assert len(heard) == 2
    assert not subscription.closed


def test_a_failed_flush_sends_the_same_again_and_the_rest_after_it() -> None:
    offload = Elsewhere()
    db, table, view = orders(offload)
    view.offload()
    table.add(("ann", 1))
    offload.failures = 1
    with pytest.raises(ConnectionError):
        db.flush()
    table.add(("ann", 2))
    assert view["ann"] == (2, 3)
    remote: Any = offload.begun[0]
    assert remote.numbers == [0, 1]


def test_a_subscription_without_a_view_goes_with_its_query() -> None:
    offload = Elsewhere()
    db, table, view = orders(offload)
    heard: list[Any] = []
    subscription = view.relation.subscribe(heard.append)
    view.offload()
    table.add(("ann", 1))
    assert not heard
    db.flush()
    assert [d.added for d in heard] == [(("ann", 1, 1),)]
    view.recall()
    table.add(("bob", 1))
    assert [d.added for d in heard] == [(("ann", 1, 1),), (("bob", 1, 1),)]
    assert not subscription.closed


def test_explain_says_where_each_operator_runs() -> None:
    db, table, view = orders(Elsewhere())
    assert "in the process, can move" in view.explain()
    view.offload()
    assert "in memory, apart" in view.explain()
    table.add(("ann", 1))
    db.flush()
    assert re.search(r"in memory, apart.*; last flush \d+\.\d\d s", view.explain())
    assert "in memory, apart" in view.explain(analyze=True)
    ordered = table.order_by(lambda o: o[1]).materialize()
    assert "in the process: its rows are in one order" in ordered.explain()


def test_what_nobody_reads_any_more_is_closed_and_so_is_the_rest_at_the_end() -> None:
    offload = Elsewhere()
    db, table, view = orders(offload)
    large = table.group_by(lambda o: o[1]).aggregate(Count()).materialize("large")
    view.offload()
    large.offload()
    table.add(("ann", 1))
    db.flush()
    view.close()
    db.flush()
    table.add(("bob", 1))
    assert offload.closed == 1
    assert offload.users == 1
    db.close()
    assert offload.closed == 2 and offload.users == 0


def test_a_circle_that_is_counted_moves_as_the_joins_that_it_stands_for() -> None:
    db = Database(offload=Elsewhere(threshold_rows=100))
    edges: Any = db.table(tuple, name="edges")
    two = edges.join(edges, on=lambda a, b: a[1] == b[0])
    view = (
        two.join(edges, on=lambda a, b, c: b[1] == c[0] and c[1] == a[0])
        .aggregate(Count())
        .materialize("circles")
    )
    assert [type(node.operator) for node in db._engine.graph.nodes()] == [CyclicCount]
    edges.add_all({(n % 20, n * n % 17) for n in range(300)})
    settle(db)
    assert all(line.view == "view 'circles'" for line in db.offload_status())
    assert len(db.offload_status()) > 0
    assert view.value > 0
    edges.add((1, 40))
    edges.add_all([(40, 41), (41, 1)])
    view.verify()
    view.recall()
    assert [type(node.operator) for node in db._engine.graph.nodes()] == [CyclicCount]
    view.verify()


@pytest.mark.parametrize("lost", [False, True])
def test_subscribers_of_what_is_recalled_from_nowhere_are_told_no_row_twice(lost: bool) -> None:
    """The difference to the last flush; all rows, as a snapshot, where that cannot be read."""
    offload = Elsewhere()
    db, table, view = orders(offload)
    ordered = view.relation.order_by(lambda name, count, total: count).materialize("ordered")
    large = view.relation.where(lambda name, count, total: count > 1).materialize("large")
    replicas = [Replica(each) for each in (view, ordered, large)]
    told = Counter[Any]()

    def tell(delta: Any) -> None:
        if delta.is_snapshot:
            told.clear()
        told.update(dict(delta.items()))

    tap = view.relation.subscribe(tell)
    view.offload()
    table.add_all([("ann", 1), ("bob", 2), ("bob", 3)])
    db.flush()
    offload.gone, offload.lost = True, lost
    table.add_all([("ann", 5), ("eve", 1)])
    with pytest.raises(OffloadError):
        db.flush()
    view.recall()
    for _ in range(2):
        for replica in replicas:
            replica.check()
        assert {row: n for row, n in told.items() if n} == dict(view.zset().items())
        table.discard(("bob", 3))
    assert not tap.closed
