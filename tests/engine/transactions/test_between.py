"""Hooks between the two phases of a commit decide whether the commit is made."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from reactive import Count, Database, Max, Sum, TransactionError
from reactive.engine.dataflow.schedule import LATEST
from reactive.engine.transactions.transaction import Transaction
from tests.moments import Moments

PATIENCE = 30


class Refused(Exception):
    """Exception raised by the other system."""


def refuse() -> None:
    raise Refused


class Side:
    """Two tables with views, and the deltas of their subscribers."""

    def __init__(self, *, optimize: bool = True, commits: int = 0) -> None:
        self.db = Database(optimize=optimize)
        self.a: Any = self.db.table(tuple, name="a")
        self.b: Any = self.db.table(tuple, name="b", key=lambda row: row[0])
        a, b = self.a, self.b
        self.views: list[Any] = [
            a.group_by(lambda r: r[0]).aggregate(Count(), Sum(lambda r: r[1])).materialize(),
            a.group_by(lambda r: r[0]).aggregate(Max(lambda r: r[1])).materialize(),
            a.join(b, on=lambda x, y: x[0] == y[0]).select(lambda x, y: (x[1], y[1])).materialize(),
            a.order_by(lambda r: r[1]).limit(2).materialize(),
            a.select(lambda r: r[1]).distinct().materialize(),
        ]
        self.heard: list[Any] = []
        self.following = [view.subscribe(self.heard.append) for view in self.views]
        a.add_all([(1, 1), (1, 2), (2, 3)])
        b.add_all([(1, 10), (2, 20)])
        for _ in range(commits):
            a.add((9, 9))
            a.remove((9, 9))
        self.heard.clear()

    def state(self) -> Any:
        views = [
            list(view) if i == 3 else dict(view.zset().items()) for i, view in enumerate(self.views)
        ]
        return Counter(self.a), Counter(self.b), views, self.db.version

    def change(self, between: Callable[[], object] | None = None) -> None:
        with Transaction(self.db._engine, between):
            self.a.remove((1, 1))
            self.a.add((2, 0))
            self.b.upsert((1, 11))

    def check(self) -> None:
        for view in self.views:
            view.verify()


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("commits", [0, LATEST])
def test_if_it_raises_everything_is_as_before(optimize: bool, commits: int) -> None:
    side = Side(optimize=optimize, commits=commits)
    before = side.state()
    for _ in range(3):
        with pytest.raises(Refused):
            side.change(refuse)
        assert side.db._engine.broken is None  # undone, not repaired
        assert (side.state(), side.heard) == (before, [])
        side.check()
    side.change()
    assert side.state() != before and side.heard
    side.check()


@pytest.mark.parametrize("commits", [0, LATEST])
def test_a_transaction_of_one_row_is_undone_too(commits: int) -> None:
    side = Side(commits=commits)
    before = side.state()
    with pytest.raises(Refused), Transaction(side.db._engine, refuse):
        side.a.add((5, 5))
    assert (side.state(), side.heard) == (before, [])
    side.a.add((5, 5))
    side.check()


@pytest.mark.parametrize("commits", [0, LATEST])
def test_otherwise_the_commit_is_published_after_it(commits: int) -> None:
    side, plain = Side(commits=commits), Side(commits=commits)
    versions: list[tuple[int, int]] = []
    side.change(lambda: versions.append((side.db.version, len(side.heard))))
    plain.change()
    assert versions == [(2 + 2 * commits, 0)]
    assert side.state() == plain.state()
    assert [(d.version, d.added) for d in side.heard] == [(d.version, d.added) for d in plain.heard]
    side.check()


def test_a_large_commit_is_timed_and_may_be_refused() -> None:
    side = Side()
    before, times = side.state(), side.db.metrics().seconds
    rows = [(n, n) for n in range(100)]
    with pytest.raises(Refused), Transaction(side.db._engine, refuse):
        side.a.add_all(rows)
    assert side.state() == before
    with Transaction(side.db._engine, int):
        side.a.add_all(rows)
    assert len(side.a) == 103 and side.db.metrics().seconds > times
    side.check()


def test_it_is_not_called_if_the_transaction_fails_or_an_operator_raises() -> None:
    side, called = Side(), list[int]()
    fragile = side.a.select(lambda r: 1 // (r[1] + 1)).materialize()
    before = side.state()
    with pytest.raises(Refused), Transaction(side.db._engine, lambda: called.append(1)):
        side.a.add((7, 7))
        raise Refused
    with (
        pytest.raises(ZeroDivisionError),
        Transaction(side.db._engine, lambda: called.append(1)),
    ):
        side.a.add((7, -1))
    assert (called, side.state(), len(fragile)) == ([], before, 3)


def test_it_is_called_without_changes_and_makes_no_version_then() -> None:
    side, called = Side(), list[int]()
    before = side.state()
    with Transaction(side.db._engine, lambda: called.append(1)):
        pass
    with pytest.raises(Refused), Transaction(side.db._engine, refuse):
        pass
    with pytest.raises(Refused), Transaction(side.db._engine, refuse):
        side.a.add((7, 7))
        side.a.remove((7, 7))
    assert (called, side.state()) == ([1], before)
    side.a.add((7, 7))
    side.check()


def test_those_of_nested_transactions_are_called_at_the_end_of_the_outermost() -> None:
    side, called = Side(), list[str]()
    engine = side.db._engine
    with Transaction(engine, lambda: called.append("outer")):
        with Transaction(engine, lambda: called.append("inner")) as inner, inner:
            side.a.add((7, 7))
        assert called == []
    assert called == ["outer", "inner"]
    before = side.state()
    with pytest.raises(Refused), side.db.transaction():
        with Transaction(engine, refuse):
            side.a.add((8, 8))
        side.b.delete(1)
    assert side.state() == before
    side.check()


def test_nothing_can_be_changed_in_it() -> None:
    side = Side()
    before = side.state()
    for act in (lambda: side.a.add((8, 8)), lambda: side.a.materialize(), side.change):
        for rows in ([], [(7, 7)]):
            with pytest.raises(TransactionError), Transaction(side.db._engine, act):
                side.a.add_all(rows)
            assert side.state() == before
    side.check()


@pytest.mark.parametrize("refused", [False, True])
def test_readers_of_other_threads_see_the_old_state_or_the_published_one(refused: bool) -> None:
    side = Side()
    prepared, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        prepared.set()
        assert go_on.wait(PATIENCE)
        if refused:
            raise Refused

    def write() -> bool:
        try:
            with Transaction(side.db._engine, wait):
                side.a.add((1, 5))
                seen.append(pool.submit(read).result(PATIENCE))  # waits for no thread yet
        except Refused:
            return False
        return True

    def read() -> Any:
        return len(side.a), side.views[0][1], list(side.views[4]).count(5)

    old, new, seen = (3, (2, 3), 0), (4, (3, 8), 1), list[Any]()
    with ThreadPoolExecutor(4) as pool:
        written = pool.submit(write)
        assert prepared.wait(PATIENCE)
        readers = [pool.submit(read) for _ in range(2)]
        assert not any(reader.done() for reader in readers)
        go_on.set()
        assert written.result(PATIENCE) is not refused
        assert [reader.result(PATIENCE) for reader in readers] == [old if refused else new] * 2
    assert seen == [old]
    side.check()


def test_ctrl_c_waits_until_the_commit_is_published() -> None:
    side, reached = Side(), list[int]()

    def act() -> None:
        signal.raise_signal(signal.SIGINT)
        reached.append(1)

    with pytest.raises(KeyboardInterrupt):
        side.change(act)
    assert reached == [1] and (2, 0) in side.a
    assert side.db._engine.broken is None and side.heard
    side.check()


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("between", [int, interrupt])
def test_at_no_moment_is_half_of_it_left(between: Callable[[], object]) -> None:
    done = Side()
    before = done.state()[:2]
    done.change()
    after = done.state()[:2]
    moment, where = 0, "the first"
    while where:
        side = Side()
        with Moments(moment) as moments, suppress(KeyboardInterrupt):
            side.change(between)
        where = moments.where or ""
        assert side.state()[:2] in (before, after), where
        side.check()
        side.a.add((9, 9))
        side.check()
        moment += 11
    assert moment > 200
