"""Monitoring of a service: metrics, and a line of the log per commit."""

from __future__ import annotations

import gc
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import patch

import pytest

from reactive import ClosedError, Count, Database, Metrics, Queue
from reactive.engine.transactions import commit as times

LONG = 20.0


def test_metrics_count_what_there_is() -> None:
    db = Database()
    words, names = db.table(str, name="words"), db.table(str, name="names")
    view = words.distinct().materialize("all")
    held = [view.subscribe(print), view.changes(), names.subscribe(lambda d: None, every=1000)]
    dropped = words.materialize()
    closed = view.subscribe(print)
    closed.close()
    words.add("be")
    with db.transaction():
        words.add("to")
        names.add("ann")
    del dropped
    gc.collect()
    found = db.metrics()
    assert (found.commits, found.tables, found.views, found.subscribers) == (2, 2, 1, 3)
    assert found.seconds > 0
    assert found.undelivered == 0
    db.close()
    with pytest.raises(ClosedError):
        db.metrics()
    del held


def test_queues_are_named_and_the_longest_comes_first() -> None:
    db = Database()
    words = db.table(str, name="words")
    go_on = threading.Event()
    top = words.order_by(len).materialize("top")
    with ThreadPoolExecutor(1) as pool:
        block = pool.submit(go_on.wait, LONG)
        held = [
            top.changes(latest=True),
            words.materialize("all").changes(),
            words.aggregate(Count()).materialize("count").subscribe(lambda d: None, on=pool),
            words.subscribe(lambda d: None),
        ]
        for word in "abc":
            words.add(word)
        found = db.metrics()
        assert found.queues == (
            Queue("view 'all'", 3),
            Queue("view 'count'", 3),
            Queue("view 'top'", 1),
        )
        assert found.waiting == 7
        assert str(found).splitlines()[1:] == [
            "1 table, 3 views, 4 subscribers",
            "7 deltas wait to be delivered",
            "  3 for view 'all'",
            "  3 for view 'count'",
            "  1 for view 'top'",
        ]
        go_on.set()
        block.result(LONG)
        end = time.monotonic() + LONG
        while db.metrics().waiting > 4:
            assert time.monotonic() < end
    del held


def test_what_a_slow_subscriber_keeps_from_being_told_is_undelivered() -> None:
    db = Database()
    words = db.table(str)
    inside, go_on = threading.Event(), threading.Event()

    def slow(delta: Any) -> None:
        inside.set()
        assert go_on.wait(LONG)

    with words.subscribe(slow):
        writers = [threading.Thread(target=words.add, args=(word,)) for word in "abc"]
        for writer in writers:
            writer.start()
        assert inside.wait(LONG)
        while db.version < 3:
            time.sleep(0.001)
        assert db.metrics().undelivered == 3
        go_on.set()
        for writer in writers:
            writer.join(LONG)
        assert db.metrics().undelivered == 0


def test_metrics_are_data_that_prints() -> None:
    found = Metrics(1, 0.0012, 1, 2, 1, 1, ())
    assert str(found) == (
        "1 commit in 1.2 ms\n1 table, 2 views, 1 subscriber\n1 delta waits to be delivered"
    )
    assert repr(found).startswith("Metrics(commits=1, seconds=0.0012, ")


# Time.


class Clock:
    """A clock by which each commit takes a given time."""

    def __init__(self) -> None:
        self.takes = 1.0
        self._now = 0.0
        self._is_end = False

    def __call__(self) -> float:
        self._now += self.takes if self._is_end else 0.0
        self._is_end = not self._is_end
        return self._now


def test_seconds_are_those_of_all_commits_though_few_are_timed() -> None:
    clock = Clock()
    db = Database()
    numbers = db.table(int)
    view = numbers.aggregate(Count()).materialize()
    with patch("reactive.engine.transactions.commit.perf_counter", clock):
        for n in range(200):
            numbers.add(n)
        assert db.metrics().seconds == pytest.approx(200)
        clock.takes = 5.0
        for n in range(1000):
            numbers.add(n)
        assert db.metrics().seconds == pytest.approx(200 + 5000)
        clock.takes = 100.0
        numbers.add_all(range(100))
        assert db.metrics().seconds == pytest.approx(5300)
        before = clock._now
        for n in range(1000):
            numbers.add(n)
        assert (clock._now - before) / 100 == times.SAMPLES
        assert db.metrics().seconds == pytest.approx(5300 + 100_000)
        assert db.metrics().seconds == pytest.approx(5300 + 100_000)
    assert view.value == 2300


def test_nothing_is_timed_while_nobody_asks() -> None:
    db = Database()
    numbers = db.table(int)
    view = numbers.aggregate(Count()).materialize()
    for n in range(200):
        numbers.add(n)
    with patch(
        "reactive.engine.transactions.commit.perf_counter",
        side_effect=AssertionError("it was timed"),
    ):
        for n in range(300):
            numbers.add(n)
    assert view.value == 500


def test_nor_because_somebody_asks_another_database() -> None:
    other = Database()
    other.metrics()
    test_nothing_is_timed_while_nobody_asks()
    assert other.metrics().commits == 0


def test_nor_where_loggers_are_disabled() -> None:
    logger = logging.getLogger("reactive")
    logger.disabled = True
    try:
        test_nothing_is_timed_while_nobody_asks()
    finally:
        logger.disabled = False


# The log.


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno == logging.DEBUG]


def test_each_commit_is_logged_with_its_tables(caplog: pytest.LogCaptureFixture) -> None:
    db = Database()
    words, names = db.table(str, name="words"), db.table(str, name="names")
    with caplog.at_level(logging.DEBUG, "reactive"):
        words.add("a")
        words.add_all(["b", "c"])
        with db.transaction():
            words.remove("a")
            names.add("ann")
            names.add("bob")
        words.discard("zzz")
        with pytest.raises(LookupError):
            words.remove("zzz")
    texts = [line.rpartition(" in ")[0] for line in lines(caplog)]
    assert texts == [
        "commit 1 (words: 1 row)",
        "commit 2 (words: 2 rows)",
        "commit 3 (words: 1 row, names: 2 rows)",
    ]
    assert all(line.endswith(" ms") for line in lines(caplog))
    assert {r.name for r in caplog.records} == {"reactive"}


@pytest.mark.parametrize("logger", ["reactive", None])
def test_a_level_that_changes_holds_from_the_next_commit_on(
    caplog: pytest.LogCaptureFixture, logger: str | None
) -> None:
    db = Database()
    words = db.table(str, name="words")
    view = words.aggregate(Count()).materialize()
    for n in range(300):
        words.add(str(n))
    assert lines(caplog) == []
    with caplog.at_level(logging.DEBUG, logger):
        words.add("a")
        words.add("b")
    words.add("c")
    assert [line.partition(" in ")[0] for line in lines(caplog)] == [
        "commit 301 (words: 1 row)",
        "commit 302 (words: 1 row)",
    ]
    assert view.value == 303


def test_a_commit_that_fails_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    words = Database().table(str, name="words")
    view = words.select(lambda w: w[0]).materialize()
    with caplog.at_level(logging.DEBUG, "reactive"):
        with pytest.raises(IndexError):
            words.add("")
        words.add("be")
    assert len(lines(caplog)) == 1 and list(view) == ["b"]
