"""An exception that is thrown into a thread, at any moment of its work on a database."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from typing import Any

import pytest

from reactive import Database, Max, Sum
from reactive.engine.compiler.queries import MANY_READERS
from reactive.engine.dataflow.delta import Delta
from reactive.engine.dataflow.schedule import LATEST
from tests.budget import stride
from tests.moments import Moments

Rows = list[tuple[Any, Any]]
EVERY = stride(19)
"""One moment in `EVERY` is tried, beginning with another moment in each case."""


class OutOfTime(Exception):
    """Exception that a job queue throws into the thread of a job that takes too long."""


class Fails(Exception):
    """Exception that ends a transaction."""


class Side:
    """A database with views, and the deltas of their subscribers."""

    def __init__(self, *, optimize: bool, in_use: bool, readers: int = 0) -> None:
        self.db = Database(optimize=optimize)
        left: Any = self.db.table(tuple, name="left")
        right: Any = self.db.table(tuple, name="right")
        self.tables = (left, right)
        queries = [
            left.join(right, on=lambda a, b: a[0] == b[0]).select(lambda a, b: b[1]).distinct(),
            left.group_by(lambda a: a[0]).aggregate(Sum(lambda a: a[1]), Max(lambda a: a[1])),
            left.order_by(lambda a: a[1]).limit(2),
            left.select(lambda a: a[1] + 0).difference(right.select(lambda b: b[0])),
        ]
        queries += [left.where(_is(number % 4)).select(lambda a: a[1]) for number in range(readers)]
        self.views = [query.materialize() for query in queries]
        self.heard: list[Counter[Any]] = [Counter() for _ in queries]
        pairs = zip(self.views, self.heard, strict=True)
        self.following = [view.subscribe(_into(heard)) for view, heard in pairs]
        left.add_all([(1, 2), (2, 3), (3, 1)])
        right.add_all([(1, 1), (3, 3)])
        for _ in range(LATEST if in_use else 0):  # its commits are a function by now
            left.add((9, 9))
            left.remove((9, 9))

    def rows(self) -> list[Rows]:
        return [sorted(table) for table in self.tables]

    def check(self, where: str | None) -> None:
        """Check that the gate is open, and that views and subscribers equal the tables."""
        with self.db.transaction():
            pass  # reports the remaining changes
        for view, heard in zip(self.views, self.heard, strict=True):
            view.verify()
            assert Counter(view) == +heard, where


def _is(number: int) -> Callable[[tuple[Any, Any]], bool]:
    return lambda row: row[0] == number


def _into(heard: Counter[Any]) -> Callable[[Delta[Any]], None]:
    def hear(delta: Delta[Any]) -> None:
        tracing = sys.gettrace()
        sys.settrace(None)  # exceptions thrown in here are not the library's
        if delta.is_snapshot:
            heard.clear()
        for row, weight in delta.items():
            heard[row] += weight
        sys.settrace(tracing)

    return hear


def update(side: Side) -> None:
    side.tables[0].update((1, 2), (1, 0))


def raises(side: Side) -> None:
    with suppress(TypeError):
        side.tables[0].add((1, "x"))


def replace(side: Side) -> None:
    side.tables[0].replace_all([(1, 2), (7, 7)])


def together(side: Side) -> None:
    left, right = side.tables
    with side.db.transaction():
        left.add((1, 1))
        with side.db.transaction():
            right.remove((3, 3))
        left.remove((2, 3))


def together_failing(side: Side) -> None:
    left, right = side.tables
    with suppress(Fails), side.db.transaction():
        left.add((1, 1))
        right.remove((3, 3))
        raise Fails


CASES = [
    (optimize, in_use, error, act)
    for optimize, in_use in ((True, True), (True, False), (False, False))
    for error in (OutOfTime, KeyboardInterrupt)
    for act in (update, raises, replace, together, together_failing)
]
MANY = [(True, False, OutOfTime, update)]
"""Cases with many readers of one value each, which are found by it."""


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("case", range(len(CASES + MANY)))
def test_at_any_moment_it_leaves_all_or_nothing(
    case: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "reactive")  # a step that is not undone is repaired
    optimize, in_use, error, act = (CASES + MANY)[case]
    readers = MANY_READERS + 1 if case >= len(CASES) else 0
    done = Side(optimize=optimize, in_use=in_use, readers=readers)
    act(done)
    every = stride(3) if readers else EVERY
    moment = case % every
    where: str | None = ""

    def late() -> None:
        raise error

    with ThreadPoolExecutor(1) as thread:
        while where is not None:
            side = Side(optimize=optimize, in_use=in_use, readers=readers)
            before = side.rows()
            moments = Moments(moment, late)

            def commit(side: Side = side, moments: Moments = moments) -> None:
                with moments:
                    act(side)

            with suppress(error):
                thread.submit(commit).result()
            where = moments.where
            assert side.rows() in (before, done.rows()), where
            side.check(where)
            side.tables[0].add((3, 5))
            side.check(where)
            moment += every
    assert moment > 20


@pytest.mark.long
@pytest.mark.parametrize("is_open", [False, True])
def test_an_update_that_subscribers_hear_of_is_taken_back_at_any_moment(is_open: bool) -> None:
    """Undo it alone, or as a statement of an open transaction: it is noted after the change."""

    def out_of_time() -> None:
        raise OutOfTime

    moment, where, noted = 0, "", 0
    while where is not None:
        heard: Counter[Any] = Counter()
        db = Database()
        table: Any = db.table(tuple)
        view = table.select(lambda row: row[1]).materialize()
        subscription = view.subscribe(_into(heard))
        table.add_all([(1, 1), (2, 2)])
        moments = Moments(moment, out_of_time)
        with db.transaction() if is_open else nullcontext():
            with suppress(OutOfTime), moments:
                table.update((1, 1), (1, 3))
            if is_open:
                table.add((4, 4))
        table.add((5, 5))
        view.verify()
        assert subscription.error is None and +heard == Counter(view), moments.where
        is_first = set(table) >= {(1, 1), (2, 2), (5, 5)}
        assert is_first or set(table) >= {(1, 3), (2, 2), (5, 5)}, moments.where
        assert len(table) == 3 + is_open, moments.where
        noted += "record in" in (moments.where or "")
        where, moment = moments.where, moment + 1  # type: ignore[assignment]
    assert noted


@pytest.mark.long
def test_the_lock_is_given_back_by_what_takes_it_twice() -> None:
    """A statement that reads its table: `delete` of a key, in a transaction."""

    class OutOfTime(Exception):
        """Exception of the time limit of a job."""

    def out_of_time() -> None:
        raise OutOfTime

    moment, where = 0, ""
    while where is not None:
        db = Database()
        table: Any = db.table(tuple, key=lambda row: row[0])
        view = table.where(lambda row: row[1] > 0).materialize()
        table.add_all([(1, 1), (2, 2)])
        moments = Moments(moment, out_of_time)
        with suppress(OutOfTime), moments, db.transaction():
            table.delete(1)
            table.delete(2)
        where, moment = moments.where, moment + 1  # type: ignore[assignment]
        lock: Any = db._engine.db_lock.lock
        assert not lock._is_owned(), where
        with ThreadPoolExecutor(1) as pool:
            pool.submit(table.add, (3, 3)).result(10)
        assert set(view) in ({(3, 3)}, {(1, 1), (2, 2), (3, 3)}), where
    assert moment > 20


@pytest.mark.long
def test_a_delta_that_waits_for_an_executor_is_not_lost() -> None:
    moment, where = 0, ""
    while where is not None:
        heard: Counter[int] = Counter()

        def hear(delta: Delta[int], heard: Counter[int] = heard) -> None:
            if delta.is_snapshot:
                heard.clear()
            heard.update(dict(delta.items()))

        table = Database().table(int)
        view = table.where(lambda n: n > 0).materialize()
        with ThreadPoolExecutor(1) as pool:
            subscription = view.subscribe(hear, on=pool)
            moments = Moments(moment)
            with suppress(KeyboardInterrupt), moments:
                table.add(1)
            table.add(2)
        assert subscription.error is None and +heard == Counter(view), moments.where
        where, moment = moments.where, moment + 1  # type: ignore[assignment]
    assert moment > 20
