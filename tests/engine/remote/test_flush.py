"""A flush: all that depends on parts elsewhere moves together, once, or not at all."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest

from reactive import Count, Database, OffloadError, Sum
from reactive.engine.remote.flush import Flush
from tests.borders.offload.elsewhere import Elsewhere


def orders() -> tuple[Elsewhere, Database, Any, Any, Any]:
    offload = Elsewhere()
    db = Database(offload=offload)
    table: Any = db.table(tuple, name="orders")
    totals = table.group_by(lambda o: o[0]).aggregate(Count(), Sum(lambda o: o[1]))
    large = totals.where(lambda customer, n, total: total > 10).materialize("large")
    table.add_all([("ann", 5), ("bob", 20)])
    view = totals.materialize("totals")
    return offload, db, table, view, large


def test_views_below_a_moved_part_wait_for_a_flush_and_others_do_not() -> None:
    _, _, table, view, large = orders()
    other = table.where(lambda o: o[1] > 10).materialize()
    view.offload()
    table.add(("ann", 30))
    assert len(other) == 2
    assert sorted(view.read(stale_ok=True)) == [("ann", 1, 5), ("bob", 1, 20)]
    assert sorted(large) == [("ann", 2, 35), ("bob", 1, 20)]
    assert view["ann"] == (2, 35)


def test_subscribers_hear_of_a_flush_once_with_all_its_commits() -> None:
    _, db, table, view, _ = orders()
    heard: list[Any] = []
    subscription = view.subscribe(heard.append)
    view.offload()
    table.add(("ann", 1))
    table.add(("ann", 2))
    table.remove(("bob", 20))
    assert not heard
    db.flush()
    db.flush()
    assert [(d.version, d.updated, d.removed) for d in heard] == [
        (4, ((("ann", 1, 5), ("ann", 3, 8)),), (("bob", 1, 20),))
    ]
    assert not subscription.closed


def test_a_flush_that_fails_changes_nothing_and_can_be_made_again() -> None:
    offload, db, table, view, large = orders()
    view.offload()
    table.add(("ann", 30))
    offload.failures = 2
    for _ in range(2):
        with pytest.raises(ConnectionError):
            db.flush()
        assert sorted(view.read(stale_ok=True)) == [("ann", 1, 5), ("bob", 1, 20)]
    table.add(("cyd", 50))
    assert sorted(view) == [("ann", 2, 35), ("bob", 1, 20), ("cyd", 1, 50)]
    for each in (view, large):
        each.verify()


def test_a_callable_that_raises_above_a_moved_part_raises_at_the_flush() -> None:
    _, db, table, view, _ = orders()
    ratio = view.relation.where(lambda customer, n, total: 100 // total > 5).materialize()
    view.offload()
    table.add_all([("cyd", 0)])
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            db.flush()
        assert ratio.read(stale_ok=True) == [("ann", 1, 5)]
        assert sorted(view.read(stale_ok=True)) == [("ann", 1, 5), ("bob", 1, 20)]
    table.add(("cyd", 10))
    assert sorted(ratio) == [("ann", 1, 5), ("cyd", 2, 10)]
    view.verify()


def test_a_commit_that_fails_sends_nothing() -> None:
    _, db, table, view, _ = orders()
    view.offload()
    with pytest.raises(ZeroDivisionError), db.transaction():
        table.add(("ann", 30))
        raise ZeroDivisionError
    with pytest.raises(IndexError):
        table.add_all([("ann", 1), ()])
    db.flush()
    assert view["ann"] == (1, 5)


def test_what_cannot_be_moved_says_why() -> None:
    _, _, table, view, _ = orders()
    ordered = table.order_by(lambda o: o[1]).materialize("ordered")
    with pytest.raises(OffloadError, match=r"'ordered' cannot be moved: 1 obstacle\n.*one order"):
        ordered.offload()
    plain = Database().table(int).distinct().materialize("plain")
    with pytest.raises(OffloadError, match="nowhere to move"):
        plain.offload()
    assert len(view) == 2


def test_a_view_that_comes_back_follows_every_commit() -> None:
    _, _, table, view, large = orders()
    view.offload()
    table.add(("ann", 30))
    view.recall()
    table.add(("ann", 1))
    assert sorted(view.read(stale_ok=True)) == [("ann", 3, 36), ("bob", 1, 20)]
    large.verify()


def test_a_row_whose_key_raises_is_refused_where_the_join_is_elsewhere() -> None:
    db = Database(offload=Elsewhere())
    left: Any = db.table(tuple, name="left")
    right: Any = db.table(tuple, name="right")
    view = left.join(right, on=lambda a, b: a[1] == b[1]).materialize("pairs")
    view.offload()
    left.add((1, 2))
    with pytest.raises(OffloadError, match=r"raises for \(7,\)"):
        left.add((7,))
    assert sorted(left) == [(1, 2)]
    view.recall()
    left.add((7,))
    assert len(view) == 0


def test_a_key_found_in_a_predicate_is_a_key_elsewhere_too() -> None:
    db = Database(offload=Elsewhere())
    left: Any = db.table(tuple, name="left")
    right: Any = db.table(tuple, name="right")
    view = left.join(right, on=lambda a, b: a[0] == b[0] and b[1] / a[1] > 1).materialize("pairs")
    view.offload()
    left.add_all([(1, 2), (2, 0)])  # the ratio of the second row raises, but no row has its key
    right.add_all([(1, 3), (1, 1), (3, 4)])
    assert list(view) == [((1, 2), (1, 3))]
    view.verify()


@pytest.mark.parametrize("kind", ["join", "left_join", "full_join", "semi_join", "anti_join"])
def test_a_found_key_that_holds_a_nan_matches_as_in_the_process(kind: str) -> None:
    views = []
    for offload in (None, Elsewhere()):
        db = Database(offload=offload)
        left: Any = db.table(tuple, name="left")
        right: Any = db.table(tuple, name="right")
        view = getattr(left, kind)(right, on=lambda a, b: a[0] == b[0]).materialize()
        if offload is not None:
            view.offload()
        for table in (left, right):
            table.add_all([((None, math.nan), 1), (math.nan, 2), (None, 3)])
        views.append(sorted(map(repr, view)))
    assert views[0] == views[1]


class Sized(NamedTuple):
    key: Any
    size: int


ONE_SIDED: dict[str, Any] = {
    "left": lambda a, b: a.size == 1,
    "right": lambda a, b: b.size == 1,
    "both": lambda a, b: a.size == 1 and b.size == 1,
}


@pytest.mark.parametrize("tested", ONE_SIDED)
@pytest.mark.parametrize("optimize", [True, False])
def test_a_key_as_written_matches_elsewhere_whichever_side_has_a_test(
    tested: str, optimize: bool
) -> None:
    db = Database(offload=Elsewhere(), optimize=optimize)
    left: Any = db.table(Sized, name="left")
    right: Any = db.table(Sized, name="right")
    pairs = left.join(right, left_key=lambda a: a.key, right_key=lambda b: b.key)
    view = pairs.where(ONE_SIDED[tested]).materialize("pairs")
    view.offload()
    for table in (left, right):
        table.add_all([Sized("a", 1), Sized("a", 2), Sized("b", 1), Sized(math.nan, 1)])
    assert len(view) == {"left": 3, "right": 3, "both": 2}[tested]
    view.verify()


class Ending(list[Any]):
    """The stages of a flush that another thread finishes while their number is read."""

    def __init__(self, flush: Any, inside: Any) -> None:
        super().__init__(flush._stages)
        self._end: Any = lambda: flush.run(inside)

    def __len__(self) -> int:
        end, self._end = self._end, None
        if end is not None:
            end()
        return super().__len__()


def test_a_flush_may_be_ended_by_another_thread_at_any_moment() -> None:
    _, db, table, view, _ = orders()
    view.offload()
    table.add(("ann", 30))
    engine = db._engine
    with engine.inside():
        flush: Any = Flush(engine.graph, engine.version)
        flush._stages = Ending(flush, engine.inside)
        flush.run(engine.inside)
    assert flush.is_done
    assert view["ann"] == (2, 35)
