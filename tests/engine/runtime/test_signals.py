"""Ctrl-C waits for the commit in progress; other exceptions from outside are repaired."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reactive import ClosedError, Count, Database, Delta, Max, Sum, fixpoint
from reactive.engine.runtime.interrupts import SIGINT, is_asynchronous
from tests.budget import stride
from tests.moments import Moments

ROOT = Path(__file__).parents[3]


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


class Numbers:
    """A table with views, one of which runs a function on request while it steps."""

    def __init__(self, *, optimize: bool = True) -> None:
        self.db = Database(optimize=optimize)
        self.table: Any = self.db.table(int, name="numbers")
        self.act: Callable[[], object] = int
        self.sum = self.table.aggregate(Sum(lambda n: n)).materialize()
        self.even = self.table.where(self._passes).materialize("even")
        self.groups: Any = self.table.group_by(lambda n: n % 3).aggregate(Count()).materialize()
        self.table.add_all(range(5))

    def _passes(self, number: int) -> bool:
        if number == 100:
            self.act()
        return number % 2 == 0

    def check(self) -> None:
        self.act, act = int, self.act
        rows = list(self.table)
        assert self.sum.value == sum(rows)
        assert Counter(self.even) == Counter(n for n in rows if n % 2 == 0)
        for view in self.db.views():
            view.verify()
        self.act = act


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("commits", [0, 70])
@pytest.mark.parametrize("how", ["add", "add_all", "transaction", "update"])
def test_ctrl_c_comes_when_the_commit_is_done(optimize: bool, commits: int, how: str) -> None:
    side = Numbers(optimize=optimize)
    for n in range(commits):
        side.table.add(n)
    heard: list[Any] = []
    side.act = interrupt
    with side.even.subscribe(heard.append), pytest.raises(KeyboardInterrupt):
        if how == "add":
            side.table.add(100)
        elif how == "add_all":
            side.table.add_all([100, 101])
        elif how == "update":
            side.table.update(1, 100)
        else:
            with side.db.transaction():
                side.table.add(100)
    assert 100 in side.table and 100 in side.even
    assert [100 in delta.added for delta in heard] == [True]
    side.check()


def test_ctrl_c_comes_at_once_between_the_statements_of_a_transaction() -> None:
    side = Numbers()
    with pytest.raises(KeyboardInterrupt), side.db.transaction():
        side.table.add(7)
        interrupt()
        side.table.add(8)
    assert sorted(side.table) == [0, 1, 2, 3, 4]
    side.check()


def test_a_second_ctrl_c_comes_at_once_and_the_commit_is_taken_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    side = Numbers()
    heard: list[Delta[int]] = []
    reached: list[int] = []

    def twice() -> None:
        interrupt()
        reached.append(1)
        interrupt()
        reached.append(2)

    side.act = twice
    with side.even.subscribe(heard.append), caplog.at_level(logging.WARNING, "reactive"):
        with pytest.raises(KeyboardInterrupt):
            side.table.add(100)
        assert reached == [1]
        side.act = int
        assert sorted(side.even) == [0, 2, 4]
        assert "3 views were computed again" in caplog.text
        side.table.add(102)
    assert [(d.is_snapshot, sorted(d.added)) for d in heard] == [(True, [0, 2, 4]), (False, [102])]
    side.check()


def test_the_handler_that_was_found_is_called_afterwards() -> None:
    heard: list[int] = []
    ours = signal.getsignal(signal.SIGINT)
    assert ours == SIGINT._handle
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        side = Numbers()  # puts ours before it
        assert signal.getsignal(signal.SIGINT) == ours
        during: list[int] = []

        def act() -> None:
            interrupt()
            during.append(len(heard))

        side.act = act
        side.table.add(100)
        assert (during, heard) == ([0], [signal.SIGINT])
        interrupt()
        assert len(heard) == 2
        side.check()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        Database()
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_another_handler_may_take_the_place_of_ours() -> None:
    side = Numbers()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        side.act = interrupt
        with pytest.raises(KeyboardInterrupt):
            side.table.add(100)
        side.act = int
        assert 100 not in side.table
        side.check()
    finally:
        Database()


def test_ctrl_c_does_not_wait_for_a_commit_of_another_thread() -> None:
    side = Numbers()
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        assert go_on.wait(30)

    side.act = wait
    writer = threading.Thread(target=side.table.add, args=(100,))
    writer.start()
    try:
        assert inside.wait(30)
        with pytest.raises(KeyboardInterrupt):
            interrupt()
    finally:
        go_on.set()
        writer.join()
    side.check()


def test_ctrl_c_in_a_finalizer_comes_when_that_is_over() -> None:
    class Finalized:
        def __del__(self) -> None:
            for _ in range(3):  # the second one would be lost as well
                interrupt()
            over.append(self)

    side, over = Numbers(), list[Any]()
    with pytest.raises(KeyboardInterrupt):
        Finalized()
        assert over
        time.sleep(30)
    time.sleep(0.01)
    side.check()


class OutOfTime(Exception):
    """Exception of a time limit; it is an `Exception` like those of callables."""


@contextmanager
def time_limit() -> Iterator[None]:
    """A signal whose handler raises, as time limits of test runners and job queues have."""

    def expire(number: int, frame: Any) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGUSR1, expire)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("commits", [0, 70])
def test_a_time_limit_is_not_swallowed_by_what_goes_on_after_exceptions(
    optimize: bool, commits: int
) -> None:
    side = Numbers(optimize=optimize)
    for n in range(commits):
        side.table.add(n)
    before = Counter(side.table)
    with time_limit():
        side.act = lambda: signal.raise_signal(signal.SIGUSR1)
        statements: list[Callable[[], object]] = [
            lambda: side.table.add(100),
            lambda: side.table.add_all(range(80, 150)),
            lambda: side.table.update(1, 100),
        ]
        for statement in statements:
            with pytest.raises(OutOfTime):
                statement()
            assert Counter(side.table) == before
            side.check()
        with pytest.raises(OutOfTime), side.db.transaction():
            side.table.remove(1)
            side.table.add(100)
        assert Counter(side.table) == before
    side.act = int
    side.table.add(100)
    side.check()


def test_a_time_limit_while_subscribers_are_told_is_the_writers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    db = Database()
    table: Any = db.table(int, name="numbers")
    heard: list[str] = []

    def slow(delta: Delta[Any]) -> None:
        heard.append("slow")
        signal.raise_signal(signal.SIGUSR1)

    def other(delta: Delta[Any]) -> None:
        heard.append("other")

    with time_limit(), table.subscribe(slow) as first, table.subscribe(other) as second:
        with pytest.raises(OutOfTime):
            table.add(1)
        assert (first.error, second.error) == (None, None)
        with pytest.raises(OutOfTime):
            table.add(2)
    assert heard == ["slow", "other", "slow"]
    assert sorted(table) == [1, 2]


def test_what_came_from_outside_is_known_by_its_handler() -> None:
    class Limit:
        def __call__(self, number: int, frame: Any) -> None:
            raise OutOfTime

        def method(self, number: int, frame: Any) -> None:
            raise OutOfTime

    def raised(act: Callable[[], object]) -> BaseException:
        try:
            act()
        except BaseException as error:
            return error
        raise AssertionError

    kinds: list[Any] = [Limit(), Limit().method, partial(Limit.method, Limit())]
    for handler in kinds:
        before = signal.signal(signal.SIGUSR1, handler)
        try:
            found = raised(lambda: signal.raise_signal(signal.SIGUSR1))
            assert is_asynchronous(found)
        finally:
            signal.signal(signal.SIGUSR1, before)
    assert not is_asynchronous(raised(lambda: kinds[0](1, None)))  # no handler is left
    assert is_asynchronous(KeyboardInterrupt()) and not is_asynchronous(OutOfTime())
    assert not is_asynchronous(raised(lambda: 1 // 0)) and not is_asynchronous(None)


def test_a_view_over_rows_that_are_not_kept_is_closed_with_the_reason() -> None:
    db = Database()
    events: Any = db.table(int, name="events", stored=False)
    kept: Any = db.table(int, name="kept")
    side = Numbers()
    counted = events.group_by(lambda n: n % 2).aggregate(Count()).materialize("counted")
    passing: list[Any] = []
    following = events.where(lambda n: n > 0).subscribe(passing.append)
    sums = kept.aggregate(Sum(lambda n: n)).materialize()
    busy = kept.where(side._passes).materialize()
    events.add_all([1, 2, 3])
    kept.add_all([1, 2])
    with time_limit():
        side.act = lambda: signal.raise_signal(signal.SIGUSR1)
        with pytest.raises(OutOfTime):
            kept.add(100)
    side.act = int
    assert sums.value == 3 and list(busy) == [2]
    message = "view 'counted' is closed: an exception from outside broke a commit off, and table"
    with pytest.raises(ClosedError, match=message):
        len(counted)
    passing.clear()
    events.add(5)  # a view that keeps nothing continues
    assert [d.added for d in passing if not d.is_snapshot] == [(5,)]
    following.close()


# An interrupt at every kind of moment, loops going back among them.


def pairs() -> list[tuple[int, int]]:
    return [(i % 6, i % 5) for i in range(10)]


def reachable(a: Any, b: Any) -> Any:
    return fixpoint(
        lambda q: a.union(q.join(a, on=lambda p, e: p[1] == e[0]).select(lambda p, e: (p[0], e[1])))
    )


QUERIES: dict[str, Callable[[Any, Any], Any]] = {
    "distinct": lambda a, b: a.distinct(),
    "groups": lambda a, b: a.group_by(lambda x: x[0]).aggregate(
        Count(), Sum(lambda x: x[1] * 0.1), Max(lambda x: x[1])
    ),
    "sums": lambda a, b: a.group_by(lambda x: x[0]).aggregate(Count(), Sum(lambda x: x[1] * 0.1)),
    "join": lambda a, b: (
        a.join(b, on=lambda x, y: x[0] == y[0])
        .group_by(lambda x, y: y[1])
        .aggregate(Sum(lambda x, y: x[1]))
    ),
    "order": lambda a, b: a.order_by(lambda x: x[1]).limit(4, 1),
    "full": lambda a, b: a.full_join(b, on=lambda x, y: x[0] == y[1]),
    "difference": lambda a, b: a.difference_all(b),
    "recursion": reachable,
}


def in_transaction(db: Any, a: Any, b: Any) -> None:
    with db.transaction():
        a.add((1, 1))
        b.upsert((1, 4))
        a.remove((2, 2))


STATEMENTS: dict[str, Callable[[Any, Any, Any], None]] = {
    "add": lambda db, a, b: a.add((1, 1)),
    "upsert": lambda db, a, b: b.upsert((1, 5)),
    "add_all": lambda db, a, b: a.add_all([(5, 1), (1, 2), (5, 5), (0, 3)]),
    "clear": lambda db, a, b: a.clear(),
    "transaction": in_transaction,
}
EVERY = stride(61)
"""One moment in `EVERY` is tried, beginning with another moment in each case."""


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_at_no_moment_can_a_view_be_left_wrong(query: str, statement: str) -> None:
    act, moment = STATEMENTS[statement], len(query + statement) * 7 % EVERY
    done = Sides(query)
    act(done.db, done.a, done.b)
    where: str | None = ""
    while where is not None:
        side = Sides(query)
        before = side.rows()
        with Moments(moment) as moments, suppress(KeyboardInterrupt):
            act(side.db, side.a, side.b)
        where = moments.where
        assert side.rows() in (before, done.rows()), where
        side.view.verify()
        side.a.add((9, 9))
        side.b.upsert((9, 9))
        side.view.verify()
        moment += EVERY


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("statement", STATEMENTS)
def test_at_no_moment_can_a_strict_table_be_left_wrong(statement: str) -> None:
    act, moment = STATEMENTS[statement], 0
    done = Sides("distinct", strict=True)
    act(done.db, done.a, done.b)
    where: str | None = ""
    while where is not None:
        side = Sides("distinct", strict=True)
        before = side.rows()
        with Moments(moment) as moments, suppress(KeyboardInterrupt):
            act(side.db, side.a, side.b)
        where = moments.where
        assert side.rows() in (before, done.rows()), where
        moment += 7


@pytest.mark.long
def test_at_no_moment_is_what_subscribers_are_to_hear_lost() -> None:
    moment, where = 0, "the first"
    while where:
        side = Sides("distinct")
        heard: list[Delta[Any]] = []
        with side.view.subscribe(heard.append, snapshot=True):
            with Moments(moment) as moments, suppress(KeyboardInterrupt), side.db.transaction():
                side.a.remove_all(pairs()[:3])
                side.a.add((7, 7))
            with side.db.transaction():
                pass  # reports the remaining changes
        rows: Counter[Any] = Counter()
        for delta in heard:
            if delta.is_snapshot:
                rows.clear()
            rows.update(dict(delta.items()))
        where = moments.where or ""
        assert +rows == Counter(side.view), where
        moment += 1


def given_up(side: Sides) -> None:
    with suppress(ZeroDivisionError), side.db.transaction():
        side.a.add_all([(7, 1), (7, 2), (1, 1)])
        side.b.upsert((1, 7))
        side.a.update((1, 1), (8, 8))
        side.b.add_all([(7, 7), (8, 8)])
        side.a.remove((7, 2))
        raise ZeroDivisionError


@pytest.mark.long
@pytest.mark.parametrize("strict", [False, True])
def test_at_no_moment_can_the_end_of_an_aborted_transaction_leave_a_table_wrong(
    strict: bool,
) -> None:
    """Run in a separate process: CPython 3.11 may crash while it is traced by opcodes.

    A crashed run is repeated, because it shows nothing about the library.
    """
    program = f"from {__name__} import end_at_all_moments; end_at_all_moments(strict={strict})"
    command = [sys.executable, "-c", program]
    for _ in range(5):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != -signal.SIGSEGV or sys.version_info >= (3, 12):
            break
    assert (done.returncode, done.stdout) == (0, "all of them\n"), done.stderr


def end_at_all_moments(*, strict: bool) -> None:
    """Interrupt the end of an aborted transaction at each fourth moment."""
    moment, where = 0, "the first"
    while where:
        side = Sides("groups", strict=strict)
        before = side.rows()
        with Moments(moment) as moments, suppress(KeyboardInterrupt):
            given_up(side)
        where = moments.where or ""
        assert side.rows() == before, where
        side.view.verify()
        moment += 4
    print("all of them")


class Sides:
    """Two tables with a view, whose commits have been many."""

    def __init__(self, query: str, *, strict: bool = False) -> None:
        self.db = Database(strict=strict)
        self.a: Any = self.db.table(tuple, name="a")
        self.b: Any = self.db.table(tuple, name="b", key=lambda row: row[0])
        self.view = QUERIES[query](self.a, self.b).materialize()
        self.a.add_all(pairs())
        self.b.add_all([(1, 2), (2, 3)])
        for _ in range(33):
            self.a.add((9, 9))
            self.a.remove((9, 9))

    def rows(self) -> tuple[Counter[Any], Counter[Any]]:
        return Counter(self.a), Counter(self.b)


def test_ctrl_c_ends_a_program_that_only_writes(tmp_path: Path) -> None:
    """Ctrl-C also ends a program that spends nearly all of its time in commits."""
    program = tmp_path / "busy.py"
    program.write_text(
        textwrap.dedent("""
        import os, signal, threading, time
        from reactive import Count, Database
        db = Database()
        table = db.table(int)
        view = table.group_by(lambda n: n % 7).aggregate(Count()).materialize()
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            for n in range(100_000_000):
                table.add(n)
        except KeyboardInterrupt:
            view.verify()
            assert len(table) == sum(count for _, count in view)
            print("ended", db._engine.broken is None)
        """)
    )
    found = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout.split() == ["ended", "True"]


async def in_asynchronous_transaction(side: Sides) -> None:
    async with side.db.transaction():
        in_transaction(side.db, side.a, side.b)


TRANSACTIONS: list[Callable[[Sides], None]] = [
    lambda side: in_transaction(side.db, side.a, side.b),
    lambda side: asyncio.run(in_asynchronous_transaction(side)),
]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("transaction", TRANSACTIONS)
def test_at_no_moment_does_ctrl_c_leave_a_transaction_open_for_who_keeps_the_traceback(
    transaction: Callable[[Sides], None],
) -> None:
    moment, where = 0, "the first"
    while where:
        side, kept = Sides("distinct"), list[BaseException]()
        gc.disable()  # else the interrupt may fall into a finalizer
        with Moments(moment, interrupt) as moments:
            try:
                transaction(side)
            except KeyboardInterrupt as error:
                kept.append(error)
        gc.enable()
        where = moments.where or ""
        assert len(kept) == (where != ""), where
        assert (side.db._engine.pending, side.db._engine.db_lock.owner) == (None, None), where
        side.view.verify()
        side.a.add((9, 9))
        assert (9, 9) in side.view, where
        moment += 1
