"""`previous()` if commits are interrupted, undone, made in two phases or repeated.

Its rows must equal the rows recorded after the commit before, by hand and by `verify()`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from reactive import Count, Database, VerificationError
from reactive.engine.dataflow.schedule import LATEST
from reactive.engine.transactions.transaction import Transaction
from tests.budget import stride
from tests.moments import Moments

Rows = Counter[Any]


class Refused(Exception):
    """Exception raised by the other system, or by a callable."""


def refuse() -> None:
    raise Refused


def least(row: int) -> int:
    if row == 99:
        raise Refused
    return row


class Side:
    """Two tables, rows of one as they were, and the states that these are to have."""

    def __init__(self, *, commits: int = 0) -> None:
        self.db = Database()
        self.a: Any = self.db.table(int, name="a")
        self.b: Any = self.db.table(int, name="b")
        before = self.a.previous()
        self.guard = self.a.select(least).materialize()
        self.views: list[Any] = [
            before.materialize(),
            before.previous().materialize(),
            self.a.difference_all(before).materialize(),
            before.aggregate(Count()).materialize(),
            self.a.order_by(lambda n: -n).limit(2).previous().materialize(),
        ]
        for _ in range(commits):
            self.a.add(5)
            self.a.remove(5)
        self.b.add_all([0])
        self.b.add(0)
        self.states = [Counter(self.a)] * 3
        self.check("the first")
        self.a.add_all([1, 2])
        self.noted()

    def noted(self) -> None:
        """Record a commit."""
        self.states = [*self.states[1:], Counter(self.a)]

    def check(self, where: str) -> None:
        older, old, now = self.states
        found = [list(view) for view in self.views]
        assert [Counter(found[0]), Counter(found[1]), Counter(found[2])] == [
            *(old, older, now - old),
        ], where
        assert found[3:] == [[old.total()], sorted(old.elements())[::-1][:2]], where
        for view in self.views:
            view.verify()


def add(side: Side) -> None:
    side.a.add(3)


def other(side: Side) -> None:
    side.b.add(1)


def together(side: Side) -> None:
    with side.db.transaction():
        side.a.add(3)
        side.b.add(1)
        side.a.remove(1)


def nested(side: Side) -> None:
    with side.db.transaction():
        side.a.add(3)
        with side.db.transaction():
            side.a.remove(2)


def nested_fails(side: Side) -> None:
    with suppress(Refused), side.db.transaction():
        side.a.add(3)
        with side.db.transaction():
            side.a.remove(2)
            refuse()


def callable_fails(side: Side) -> None:
    with suppress(Refused):
        side.a.add(99)


def in_two_phases(side: Side) -> None:
    with Transaction(side.db._engine, int):
        side.a.add(3)
        side.b.add(1)


def refused_between(side: Side) -> None:
    with suppress(Refused), Transaction(side.db._engine, refuse):
        side.a.add(3)


def interrupted_between(side: Side) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt), Transaction(side.db._engine, interrupt):
        side.a.add(3)


ACTS: list[Callable[[Side], None]] = [
    *(add, other, together, nested, in_two_phases),
    *(nested_fails, callable_fails, refused_between, interrupted_between),
]


@pytest.mark.parametrize("commits", [0, LATEST])
def test_a_commit_that_does_not_stand_is_none(commits: int) -> None:
    side = Side(commits=commits)
    for act in [*ACTS, *reversed(ACTS)]:
        if act is nested or act is together:
            side.a.add_all([1, 2])
            side.noted()
        version = side.db.version
        act(side)
        if side.db.version > version:
            side.noted()
        side.check(act.__name__)


EVERY = stride(7)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("number", range(len(ACTS) * 2))
def test_an_interrupt_at_any_moment_leaves_what_was_before(number: int) -> None:
    act, commits = ACTS[number // 2], LATEST * (number % 2)
    moment, where = number % EVERY, "the first"
    while where:
        side = Side(commits=commits)
        if moment % 2:
            side.check(where)
        version = side.db.version
        with Moments(moment) as moments, suppress(KeyboardInterrupt):
            act(side)
        where = moments.where or ""
        with side.db.transaction():
            pass
        if side.db.version > version:
            side.noted()
        side.check(where)
        side.b.add(7)
        side.noted()
        side.check(where)
        moment += EVERY


def test_what_subscribers_write_and_raise_is_a_commit_of_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    side = Side()

    def write(delta: Any) -> None:
        if 3 in delta.added:
            side.a.add(4)
            side.noted()
            side.check("inside")
            raise Refused

    side.states = [*side.states[1:], side.states[-1] + Counter([3])]
    with side.a.subscribe(write):
        side.a.add(3)
    side.check("after")
    assert "Refused" in caplog.text


def test_verify_compares_with_rows_that_it_has_kept() -> None:
    """It does not compare with changes reported by the engine."""
    db = Database()
    table, other = db.table(int, name="table"), db.table(int, name="other")
    view = table.previous().materialize()
    table.add(1)
    view.verify()
    (moment,) = db._engine.moments.values()
    db._engine.graph.past[db._engine.graph.version][moment] = [(1, 1), (7, 1)]
    table.add(2)
    assert sorted(view.zset().items()) == [(1, 1), (7, 1)]
    with pytest.raises(VerificationError, match="not in the query: 7"):
        view.verify()
    for _ in range(3):
        other.add(1)
    assert not db._engine.graph.kept and not db._engine.graph.past


def test_a_view_that_begins_again_begins_with_the_rows_of_now() -> None:
    db = Database()
    table = db.table(int, name="table")
    before = table.previous()
    view = before.materialize()
    view.verify()
    view.close()
    table.add(1)
    again = before.materialize()
    again.verify()
    assert list(again) == [1]


def test_views_that_compute_it_in_several_ways_all_hear_of_what_was_before() -> None:
    db = Database()
    table: Any = db.table(tuple, name="table")
    first = table.where(lambda p: p[0] == 1).previous().materialize()
    others = [
        table.where(lambda p, n=n: p[0] == n).select(lambda p: p[1]).materialize() for n in range(9)
    ]
    late = table.where(lambda p: p[0] == 1).previous().select(lambda p: p[1]).materialize()
    for n in range(4):
        table.add((1, n))
        first.verify()
        late.verify()
        assert sorted(late) == list(range(n)) and len(others[1]) == n + 1


@pytest.mark.parametrize("commits", [0, LATEST])
def test_what_changed_before_the_last_commit_is_not_held(commits: int) -> None:
    db = Database()
    table, other = db.table(int, name="table"), db.table(int, name="other")
    view = table.previous().materialize()
    for _ in range(commits):
        table.add(1)
        other.add(1)
    table.add(2)
    other.add(1)
    assert not db._engine.graph.past and 2 in view
