"""Threads that notify subscribers of a commit, threads that wait, and the bounds of queues."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any

import pytest

from reactive import Database, Delta, PlanError, TransactionError
from reactive.engine.dataflow import delivery_queue
from tests.budget import drawing

LONG = 20.0


@contextmanager
def running(*targets: Callable[[], object]) -> Iterator[list[threading.Thread]]:
    """Threads that are over at the end, without an exception."""
    raised: list[BaseException] = []

    def guarded(target: Callable[[], object]) -> None:
        try:
            target()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(each,), daemon=True) for each in targets]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        for thread in threads:
            thread.join(LONG)
        assert not any(thread.is_alive() for thread in threads)
        assert raised == []


class Gate:
    """A callback that waits until it is opened."""

    def __init__(self) -> None:
        self.is_inside, self.opens = threading.Event(), threading.Event()
        self.told: list[Delta[Any]] = []
        self.threads: list[str] = []

    def __call__(self, delta: Delta[Any]) -> None:
        self.is_inside.set()
        assert self.opens.wait(LONG)
        self.told.append(delta)
        self.threads.append(threading.current_thread().name)


def eventually(is_so: Callable[[], object]) -> bool:
    end = time.monotonic() + LONG
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def waiters(db: Database) -> int:
    return len(db._engine.delivery_queue._writers)


# Writers in threads.


def test_a_writer_goes_on_when_its_own_commit_is_told() -> None:
    db, seed = Database(), drawing()
    numbers = db.table(int, name="numbers")
    told: list[int] = []
    seeds = [seed.random() for _ in range(4)]

    def slow(delta: Delta[int]) -> None:
        time.sleep(0.0003)
        told.extend(delta.added)

    def write(writer: int) -> None:
        random = Random(seeds[writer])
        for place in range(60):
            number = writer * 1000 + place
            if random.random() < 0.3:
                with db.transaction():
                    numbers.add(number)
            else:
                numbers.add(number)
            assert number in told
            assert len(db._engine.delivery_queue) <= 4

    with numbers.subscribe(slow) as subscription:
        with running(*(lambda n=n: write(n) for n in range(4))):
            pass
        assert subscription.error is None
    assert len(told) == 240 and set(told) == set(numbers)


def test_nobody_tells_for_others_without_end() -> None:
    db = Database()
    numbers, stop = db.table(int), threading.Event()
    told: Counter[str] = Counter()

    def slow(delta: Delta[int]) -> None:
        told[threading.current_thread().name] += 1
        time.sleep(0.0003)

    def write() -> None:
        number = 0
        while not stop.is_set():
            numbers.add(number)
            number += 1

    with numbers.subscribe(slow), running(write, write):
        assert eventually(lambda: sum(told.values()) > 20)
        before = told[threading.current_thread().name]
        numbers.add(-1)
        with numbers.subscribe(slow, snapshot=True):
            assert told[threading.current_thread().name] <= before + 2 * 4
        stop.set()


def test_writers_are_served_in_turn() -> None:
    db = Database()
    numbers, stop = db.table(int), threading.Event()
    made: Counter[int] = Counter()

    def write(writer: int) -> None:
        while not stop.is_set():
            numbers.add(writer)
            made[writer] += 1

    with (
        numbers.subscribe(lambda delta: time.sleep(0.0005)),
        running(*(lambda n=n: write(n) for n in range(3))),
    ):
        assert eventually(lambda: sum(made.values()) > 150)
        stop.set()
    assert max(made.values()) <= 2 * min(made.values()) + 5


def test_deltas_come_in_order_and_one_at_a_time() -> None:
    db = Database()
    numbers, inside, versions = db.table(int), [0], list[int]()

    def heard(delta: Delta[int]) -> None:
        inside[0] += 1
        assert inside[0] == 1
        time.sleep(0.0002)
        versions.append(delta.version)
        inside[0] -= 1

    def write() -> None:
        for number in range(50):
            numbers.add(number)

    with numbers.subscribe(heard) as subscription, running(*[write] * 3):
        pass
    assert subscription.error is None
    assert versions == list(range(1, 151))


def test_what_a_callback_writes_never_waits_and_is_told_after_it() -> None:
    db = Database()
    words, echo = db.table(str, name="words"), db.table(str, name="echo")
    order: list[str] = []

    def reply(delta: Delta[str]) -> None:
        echo.add_all(word + "!" for word in delta.added)
        order.extend(delta.added)
        time.sleep(0.0003)

    def write(word: str) -> None:
        for _ in range(30):
            words.add(word)

    with (
        words.subscribe(reply) as first,
        echo.subscribe(lambda delta: order.extend(delta.added)) as second,
        running(lambda: write("a"), lambda: write("b")),
    ):
        pass
    assert eventually(lambda: len(order) == 120)
    assert (first.error, second.error) == (None, None)
    for word in "ab":
        own = [each for each in order if each[0] == word]
        assert all(own[: n + 1].count(word) >= own[: n + 1].count(f"{word}!") for n in range(60))


def test_callbacks_that_write_each_others_database_do_not_wait_for_each_other() -> None:
    one, other = Database(), Database()
    left, right = one.table(int), other.table(int)
    both = threading.Barrier(2, timeout=LONG)

    def across(to: Any) -> Callable[[Delta[int]], None]:
        def write(delta: Delta[int]) -> None:
            if 1 in delta.added:
                both.wait()
                to.add(2)

        return write

    told: list[int] = []
    with (
        left.subscribe(across(right)) as a,
        right.subscribe(across(left)) as b,
        left.subscribe(lambda delta: told.extend(delta.added)),
        right.subscribe(lambda delta: told.extend(delta.added)),
    ):
        with running(lambda: left.add(1), lambda: right.add(1)):
            pass
        assert eventually(lambda: sorted(told) == [1, 1, 2, 2])
        assert (a.error, b.error) == (None, None)


# For how long.


def test_a_wait_may_be_bounded() -> None:
    db = Database(deliver_timeout=0.01)
    numbers, gate = db.table(int), Gate()
    with numbers.subscribe(gate), running(lambda: numbers.add(1)):
        assert gate.is_inside.wait(LONG)
        numbers.add(2)
        with db.transaction(deliver_timeout=0):
            numbers.add(3)
        assert gate.told == [] and db.metrics().late == 2
        gate.opens.set()
        assert eventually(lambda: len(gate.told) == 3)
    assert [delta.added for delta in gate.told] == [(1,), (2,), (3,)]


def test_a_callback_that_waits_for_what_its_writer_holds_is_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(delivery_queue, "SLOW", 0.02)
    monkeypatch.setattr(delivery_queue, "STUCK", 0.1)
    db = Database()
    numbers, lock = db.table(int, name="numbers"), threading.Lock()
    is_inside, told = threading.Event(), list[int]()

    def wants(delta: Delta[int]) -> None:
        is_inside.set()
        with lock:
            told.extend(delta.added)

    with caplog.at_level(logging.WARNING, "reactive"), numbers.subscribe(wants):
        other = threading.Thread(target=numbers.add, args=(1,), daemon=True)
        with lock:
            other.start()
            assert is_inside.wait(LONG)
            numbers.add(2)
        other.join(LONG)
        assert eventually(lambda: sorted(told) == [1, 2])
    assert "waits for the callback of Subscription" in caplog.text
    assert "goes on without the callback" in caplog.text
    assert db.metrics().late == 1


def test_ctrl_c_ends_a_wait_and_the_commit_is_told_later() -> None:
    db = Database()
    numbers, gate = db.table(int), Gate()

    def interrupt() -> None:
        assert eventually(lambda: waiters(db) == 1)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with numbers.subscribe(gate), running(lambda: numbers.add(1)):
        assert gate.is_inside.wait(LONG)
        with running(interrupt), pytest.raises(KeyboardInterrupt):
            numbers.add(2)
        assert 2 in numbers
        gate.opens.set()
        assert eventually(lambda: len(gate.told) == 2)


# Event loops.


def test_a_statement_in_an_event_loop_does_not_wait() -> None:
    db = Database()
    numbers, gate = db.table(int), Gate()

    async def serve() -> None:
        assert await asyncio.to_thread(gate.is_inside.wait, LONG)
        numbers.add(2)
        assert gate.told == []
        gate.opens.set()
        while len(gate.told) < 2:
            await asyncio.sleep(0.001)

    with numbers.subscribe(gate), running(lambda: numbers.add(1)):
        asyncio.run(asyncio.wait_for(serve(), LONG))
    assert [delta.added for delta in gate.told] == [(1,), (2,)]
    assert gate.threads[1] == threading.current_thread().name


def test_a_transaction_of_a_task_is_told_before_it_goes_on_while_others_run() -> None:
    db = Database()
    numbers, gate, ticks = db.table(int), Gate(), [0]

    async def tick() -> None:
        while True:
            ticks[0] += 1
            if ticks[0] == 20:
                gate.opens.set()
            await asyncio.sleep(0.001)

    async def serve() -> None:
        ticking = asyncio.create_task(tick())
        assert await asyncio.to_thread(gate.is_inside.wait, LONG)
        async with db.transaction():
            numbers.add(2)
        assert len(gate.told) == 2 and ticks[0] >= 20
        ticking.cancel()

    with numbers.subscribe(gate), running(lambda: numbers.add(1)):
        asyncio.run(asyncio.wait_for(serve(), LONG))


@pytest.mark.parametrize("how", ["cancelled", "timeout", "the loop ends"])
def test_a_task_that_waits_no_longer_has_its_commit_told_later(how: str) -> None:
    db = Database()
    numbers, gate = db.table(int), Gate()

    async def write() -> None:
        async with db.transaction(deliver_timeout=0.01 if how == "timeout" else None):
            numbers.add(2)

    async def serve() -> None:
        assert await asyncio.to_thread(gate.is_inside.wait, LONG)
        task = asyncio.create_task(write())
        if how == "timeout":
            await task
        else:
            while waiters(db) < 2:
                await asyncio.sleep(0.001)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        assert 2 in numbers and gate.told == []
        if how != "the loop ends":
            gate.opens.set()
            while len(gate.told) < 2:
                await asyncio.sleep(0.001)

    with numbers.subscribe(gate), running(lambda: numbers.add(1)):
        asyncio.run(asyncio.wait_for(serve(), LONG))
        gate.opens.set()
        assert eventually(lambda: len(gate.told) == 2)
    assert [delta.added for delta in gate.told] == [(1,), (2,)]


# In the background.


@pytest.mark.parametrize("of", ["database", "transaction"])
def test_a_thread_of_the_database_may_tell(of: str) -> None:
    db = Database(deliver="background" if of == "database" else "writer")
    numbers, gate = db.table(int), Gate()
    with numbers.subscribe(gate):
        for number in range(5):
            with db.transaction(deliver="background"):
                numbers.add(number)
        assert gate.told == []
        gate.opens.set()
        assert eventually(lambda: len(gate.told) == 5)
    assert set(gate.threads) == {"reactive timer"}
    assert [delta.added for delta in gate.told] == [(number,) for number in range(5)]


def test_a_subscriber_that_writes_what_it_hears_of_ends_in_the_background_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery_queue, "MOST_ROUNDS", 50)
    db = Database(deliver="background")
    numbers = db.table(int)
    endless = numbers.subscribe(lambda delta: numbers.add(delta.version))
    numbers.add(-1)
    assert eventually(lambda: endless.closed)
    assert "50 times in a row" in str(endless.error)
    assert eventually(lambda: db.metrics().undelivered == 0) and len(numbers) == 52


def test_a_writer_waits_where_more_would_wait_than_may() -> None:
    db = Database(deliver="background", max_waiting=10)
    numbers, most = db.table(int), 0

    with numbers.subscribe(lambda delta: time.sleep(0.0003)):
        for number in range(200):
            numbers.add(number)
            most = max(most, db.metrics().undelivered)
    assert most <= 12 and db.metrics().blocked > 0


def test_bytes_are_bounded_as_well() -> None:
    db = Database(deliver="background", max_waiting_bytes=10_000_000)
    words = db.table(str)
    with words.subscribe(lambda delta: time.sleep(0.001)):
        for number in range(300):
            words.add(f"{number:03}" * 50_000)
    assert db.metrics().blocked > 0


@pytest.mark.parametrize("in_loop", [False, True])
def test_deltas_may_be_merged(in_loop: bool) -> None:
    when_full: Any = "block" if in_loop else "merge"
    how: Any = "writer" if in_loop else "background"
    db = Database(deliver=how, max_waiting=10, when_full=when_full)
    numbers, gate, other = db.table(int), Gate(), list[int]()
    evens = numbers.where(lambda n: n % 2 == 0)

    def write() -> None:
        for number in range(100):
            numbers.add(number)
            if number % 10 == 9:
                numbers.remove(number)

    async def serve() -> None:
        write()

    with numbers.subscribe(gate), evens.subscribe(lambda delta: other.extend(delta.added)):
        with running(lambda: numbers.add(1000)):
            assert gate.is_inside.wait(LONG)
            asyncio.run(serve()) if in_loop else write()
            assert db.metrics().undelivered <= 25 and db.metrics().merged > 50
            gate.opens.set()
            assert eventually(lambda: db.metrics().undelivered == 0)
        total: Counter[int] = Counter()
        for delta in gate.told:
            for row, weight in delta:
                total[row] += weight
        assert +total == Counter(numbers) and sorted(other) == sorted(evens.materialize())
        versions = [delta.version for delta in gate.told]
        assert versions == sorted(versions) and len(versions) < 60


def test_a_subscriber_that_is_too_slow_may_be_closed() -> None:
    db = Database(deliver="background", max_waiting=10, when_full="close")
    numbers, gate, others = db.table(int), Gate(), list[int]()
    slow = numbers.subscribe(gate)
    with numbers.subscribe(lambda delta: others.extend(delta.added)):
        numbers.add(-1)
        assert gate.is_inside.wait(LONG)
        for number in range(50):
            numbers.add(number)
        assert slow.closed and isinstance(slow.error, TransactionError)
        assert "is too slow: " in str(slow.error)
        gate.opens.set()
        assert eventually(lambda: len(others) == 51)
    assert len(gate.told) == 1


@pytest.mark.parametrize(
    "given",
    [
        {"deliver": "later"},
        {"deliver_timeout": -1},
        {"deliver_timeout": "1"},
        {"max_waiting": 0},
        {"max_waiting_bytes": 1.5},
        {"when_full": "drop"},
    ],
    ids=str,
)
def test_what_says_nothing_is_refused(given: Any) -> None:
    (name,) = given
    with pytest.raises(PlanError, match=name):
        Database(**given)


# Executors and readers.


class Later:
    """An executor that runs its jobs on request."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], object]] = []

    def submit(self, job: Callable[[], object]) -> Later:
        self.jobs.append(job)
        return Later()

    def add_done_callback(self, call: object) -> None:
        """Ignore the call: no job is cancelled here."""

    def run(self) -> None:
        jobs, self.jobs = self.jobs, []
        for job in jobs:
            job()


def test_what_waits_for_an_executor_is_merged_from_some_number_on() -> None:
    later: Any = Later()
    db, told = Database(max_waiting=5), list[Delta[int]]()
    numbers = db.table(int)
    with (
        numbers.subscribe(told.append, on=later) as first,
        numbers.subscribe(told.append, on=later, maxsize=2),
    ):
        for number in range(20):
            numbers.add(number)
        assert sorted(queue.waiting for queue in db.metrics().queues) == [2, 5]
        later.run()
        assert first.error is None
    assert len(told) == 7
    assert sorted(row for delta in told for row in delta.added) == sorted([*range(20)] * 2)


def test_a_subscription_of_an_executor_may_end_when_too_much_waits() -> None:
    db, later, told = Database(), Later(), list[Delta[int]]()
    numbers: Any = db.table(int)
    slow = numbers.subscribe(told.append, on=later, maxsize=3, when_full="close")
    for number in range(5):
        numbers.add(number)
    assert slow.closed and "is too slow: 3 deltas wait" in str(slow.error)
    later.run()
    assert told == []


def test_a_writer_may_wait_for_an_executor() -> None:
    db, later, told = Database(), Later(), list[int]()
    numbers: Any = db.table(int)
    with (
        numbers.subscribe(
            lambda delta: told.extend(delta.added), on=later, maxsize=3, when_full="block"
        ),
        running(lambda: [numbers.add(number) for number in range(9)]),
    ):
        while len(told) < 9:
            later.run()
            time.sleep(0.001)
    assert told == list(range(9))


def test_a_reader_that_does_not_come_has_at_most_so_many_deltas() -> None:
    db = Database(max_waiting=4)
    numbers = db.table(int)

    async def read() -> list[Delta[int]]:
        with numbers.changes() as changes:
            for number in range(30):
                numbers.add(number)
            return [await anext(changes) for _ in range(4)]

    told = asyncio.run(read())
    assert [delta.added for delta in told[:3]] == [(0,), (1,), (2,)]
    assert told[3].added == tuple(range(3, 30))


@pytest.mark.parametrize("given", [{"maxsize": 3}, {"when_full": "close"}], ids=str)
@pytest.mark.parametrize("how", [{}, {"every": 1.0}], ids=str)
def test_limits_are_of_what_waits_for_an_executor(given: Any, how: Any) -> None:
    numbers: Any = Database().table(int)
    with pytest.raises(PlanError, match="maxsize= and when_full="):
        numbers.subscribe(print, **given, **how)
