"""Callbacks that run elsewhere: on an executor, in an event loop, at intervals."""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from reactive import Count, Database, Delta, Subscription, Table
from reactive.api.subscriptions.observe import Relay
from reactive.engine.dataflow.discrimination import QueueLimits
from reactive.engine.runtime import timer as timers
from reactive.engine.runtime.timer import Timer
from tests.errors.golden import place, refused
from tests.replica import Replica

LONG = 20.0
"""Seconds after which a test has failed."""


@pytest.fixture
def db() -> Iterator[Database]:
    db = Database()
    yield db
    db.close()


@pytest.fixture
def words(db: Database) -> Table[str]:
    return db.table(str, name="words")


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.001)


def waits(subscription: Subscription[Any]) -> int:
    """Return the number of deltas that wait for a callback."""
    assert subscription._queue is not None
    return len(subscription._queue)


class Heard:
    """A callback that records its deltas, and the thread."""

    def __init__(self) -> None:
        self.rows: Counter[Any] = Counter()
        self.versions: list[int] = []
        self.threads: set[str] = set()

    def __call__(self, delta: Delta[Any]) -> None:
        for row, weight in delta.items():
            self.rows[row] += weight
        self.threads.add(threading.current_thread().name)
        self.versions.append(delta.version)


# Asynchronous callbacks.


async def on_change(delta: Delta[Any]) -> None:
    raise AssertionError("nobody awaits it")


def test_an_asynchronous_callback_is_refused_with_what_to_do(words: Table[str]) -> None:
    with refused(
        """
        PlanError: subscribe: on_change (<on_change>) is asynchronous, and nobody would await it
          `async for delta in relation.changes()`, or on=loop, the event loop that is to run it
        """,
        on_change=place(on_change),
    ):
        words.subscribe(on_change)


class Asynchronous:
    async def __call__(self, delta: Delta[Any]) -> None: ...
    async def method(self, delta: Delta[Any]) -> None: ...
    async def each(self, delta: Delta[Any]) -> Any:
        yield delta


@pytest.mark.parametrize(
    "callback",
    [
        Asynchronous(),
        Asynchronous().method,
        Asynchronous().each,
        functools.partial(on_change),
    ],
)
@pytest.mark.parametrize("where", ["relation", "view"])
def test_however_it_is_written(words: Table[str], callback: Any, where: str) -> None:
    thing = words if where == "relation" else words.materialize()
    with pytest.raises(ValueError, match="is asynchronous, and nobody would await it"):
        thing.subscribe(callback)
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="is asynchronous"):
        thing.subscribe(callback, on=pool, every=1)
    assert not words._engine.feeds


def test_an_observer_with_an_asynchronous_method_is_refused(words: Table[str]) -> None:
    class Log:
        def added(self, row: str) -> None: ...
        async def removed(self, row: str) -> None: ...

    with pytest.raises(ValueError, match=r"observe: Log.removed \(test_relay.py:\d+\) is async"):
        words.observe(Log())


def test_a_coroutine_that_is_given_back_is_an_error_of_the_callback(
    words: Table[str], pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    lazily: Any = lambda delta: on_change(delta)  # noqa: E731
    held = [words.subscribe(lazily), words.subscribe(lazily, on=pool)]
    with caplog.at_level(logging.ERROR, "reactive"):
        words.add("be")
        until(lambda: all(s.error is not None for s in held))
    for subscription in held:
        assert isinstance(subscription.error, TypeError)
        assert "gave on_change(), which nobody awaits\n  use changes(), or on=loop" in str(
            subscription.error
        )
    assert "nobody awaits" in caplog.text


class Observed:
    def added(self, row: str) -> None: ...


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"on": "loop"}, "on='loop' is neither an executor nor an event loop"),
        ({"on": threading.Thread}, "neither an executor"),
        ({"every": 0}, "every=0 is no interval"),
        ({"every": -1.0}, "every=-1.0 is no interval"),
        ({"every": float("nan")}, "every=nan is no interval"),
        ({"every": True}, "every=True is no interval"),
        ({"every": "1s"}, "every='1s' is no interval"),
    ],
)
def test_what_is_no_place_or_interval_is_refused(
    words: Table[str], given: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        words.subscribe(print, **given)
    with pytest.raises(ValueError, match=text):
        words.materialize().observe(Observed(), **given)


def test_a_process_pool_is_refused(words: Table[str]) -> None:
    with (
        ProcessPoolExecutor(1) as pool,
        pytest.raises(ValueError, match="cannot go to another process"),
    ):
        words.subscribe(print, on=pool)


# Executors.


def test_workers_get_one_delta_after_the_other(words: Table[str], pool: ThreadPoolExecutor) -> None:
    inside: list[int] = []
    heard = Heard()

    def slow(delta: Delta[str]) -> None:
        inside.append(1)
        assert len(inside) == 1
        time.sleep(0.001)
        heard(delta)
        inside.pop()

    with words.subscribe(slow, on=pool) as subscription:
        for n in range(50):
            words.add(str(n))
        until(lambda: len(heard.versions) == 50)
        assert heard.versions == list(range(1, 51))
        assert subscription.error is None
    assert threading.current_thread().name not in heard.threads


def test_the_writer_does_not_wait_for_a_worker(words: Table[str], pool: ThreadPoolExecutor) -> None:
    go_on = threading.Event()
    heard = Heard()

    def slow(delta: Delta[str]) -> None:
        assert go_on.wait(LONG)
        heard(delta)

    with words.subscribe(slow, on=pool):
        words.add("a")
        words.add("b")
        assert heard.versions == []
        go_on.set()
        until(lambda: heard.versions == [1, 2])


def test_a_callback_that_raises_stays_subscribed(
    words: Table[str], pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()

    def fail(delta: Delta[str]) -> None:
        heard(delta)
        raise SystemExit("mine")

    with caplog.at_level(logging.ERROR, "reactive"), words.subscribe(fail, on=pool) as subscription:
        words.add("a")
        words.add("b")
        until(lambda: len(heard.versions) == 2 and caplog.text.count("mine") > 1)
        assert isinstance(subscription.error, SystemExit)
    assert "subscriber of the view made at" in caplog.text


def test_what_a_worker_writes_is_a_transaction_of_its_own(
    db: Database, words: Table[str], pool: ThreadPoolExecutor
) -> None:
    echo = db.table(str, name="echo")
    with words.subscribe(lambda d: echo.add_all(row + "!" for row in d.added), on=pool):
        words.add_all(["a", "b"])
        until(lambda: len(echo) == 2)
    assert sorted(echo) == ["a!", "b!"]


def test_a_closed_subscription_is_told_nothing_that_waits(
    words: Table[str], pool: ThreadPoolExecutor
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    heard = Heard()

    def slow(delta: Delta[str]) -> None:
        begun.set()
        assert go_on.wait(LONG)
        heard(delta)

    subscription = words.subscribe(slow, on=pool)
    for word in "abc":
        words.add(word)
    assert begun.wait(LONG)
    assert waits(subscription) == 2
    subscription.close()
    assert waits(subscription) == 0
    go_on.set()
    words.add("d")
    pool.submit(lambda: None).result(LONG)
    pool.shutdown()
    assert heard.versions == [1]
    assert subscription.error is None


def test_a_subscription_that_nobody_holds_ends(words: Table[str], pool: ThreadPoolExecutor) -> None:
    go_on = threading.Event()
    first, second = Heard(), Heard()
    block = pool.submit(go_on.wait, LONG)
    subscription = words.subscribe(first, on=pool)
    throttled = words.subscribe(second, every=1000)
    words.add("a")
    until(lambda: second.versions == [1])
    words.add("b")
    del subscription, throttled
    gc.collect()
    go_on.set()
    block.result(LONG)
    words.add("c")
    pool.shutdown()
    assert 3 not in first.versions and second.versions == [1]
    assert not words._engine.graph.leaves()


class Manual:
    """An executor that runs its jobs on request."""

    def __init__(self) -> None:
        self.given: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, run: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self.given.append((future, run))
        return future

    def run(self) -> None:
        for future, run in self.given:
            if future.set_running_or_notify_cancel():
                future.set_result(run())
        self.given = []


def test_an_executor_is_given_one_job_however_much_waits(words: Table[str]) -> None:
    heard, manual = Heard(), Manual()
    executor: Any = manual
    with words.subscribe(heard, on=executor, snapshot=True):
        for word in "abc":
            words.add(word)
        assert len(manual.given) == 1
        manual.run()
        assert heard.versions == [0, 1, 2, 3]
        words.add("d")
        assert len(manual.given) == 1
        manual.run()
    assert heard.versions == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("cancels", [True, False])
def test_a_subscription_ends_with_its_executor(
    words: Table[str], caplog: pytest.LogCaptureFixture, cancels: bool
) -> None:
    heard, go_on = Heard(), threading.Event()
    pool = ThreadPoolExecutor(1)
    block = pool.submit(go_on.wait, LONG)
    subscription = words.subscribe(heard, on=pool)
    with caplog.at_level(logging.ERROR, "reactive"):
        if cancels:
            words.add("a")
            pool.shutdown(wait=False, cancel_futures=True)
        else:
            pool.shutdown(wait=False)
            words.add("a")
        words.add("b")
    go_on.set()
    block.result(LONG)
    assert subscription.closed
    assert isinstance(subscription.error, RuntimeError)
    assert waits(subscription) == 0
    assert caplog.text.count("ends, since its executor does not run any more") == 1
    assert heard.versions == []
    assert list(words) == ["a", "b"]


# Event loops.


def test_a_loop_awaits_one_delta_after_the_other(words: Table[str]) -> None:
    heard, inside = Heard(), list[int]()

    async def slow(delta: Delta[str]) -> None:
        inside.append(1)
        assert len(inside) == 1
        await asyncio.sleep(0.001)
        heard(delta)
        inside.pop()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with words.subscribe(slow, on=loop, snapshot=True) as subscription:
            for n in range(30):
                await asyncio.to_thread(words.add, str(n))
            while len(heard.versions) < 31:
                await asyncio.sleep(0.001)
            assert subscription.error is None

    asyncio.run(asyncio.wait_for(main(), LONG))
    assert heard.versions == list(range(31))
    assert heard.threads == {threading.current_thread().name}


def test_a_loop_runs_a_plain_callback_and_lets_others_have_their_turn(words: Table[str]) -> None:
    heard, turns = Heard(), list[int]()

    async def count() -> None:
        while True:
            turns.append(len(heard.versions))
            await asyncio.sleep(0)

    async def main() -> None:
        counting = asyncio.create_task(count())
        with words.subscribe(heard, on=asyncio.get_running_loop()):
            for word in "abcdef":
                words.add(word)
            assert heard.versions == []  # it runs in the loop, which this task holds
            while len(heard.versions) < 6:
                await asyncio.sleep(0)
        counting.cancel()

    asyncio.run(asyncio.wait_for(main(), LONG))
    assert {1, 2, 3, 4, 5} <= set(turns)


def test_an_observer_may_have_methods_of_both_kinds(words: Table[str]) -> None:
    class Log:
        events: list[str] = []

        def added(self, row: str) -> None:
            self.events.append(f"+{row}")

        async def removed(self, row: str) -> None:
            await asyncio.sleep(0)
            self.events.append(f"-{row}")

    async def main() -> None:
        log = Log()
        with words.observe(log, on=asyncio.get_running_loop()) as watching:
            words.add_all(["a", "b"])
            words.replace_all(["c"])
            while len(log.events) < 5:
                await asyncio.sleep(0)
            assert watching.error is None
        assert log.events == ["+a", "+b", "-a", "-b", "+c"]

    asyncio.run(asyncio.wait_for(main(), LONG))


def test_an_asynchronous_callback_that_raises_stays_subscribed(
    words: Table[str], caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()

    async def fail(delta: Delta[str]) -> None:
        heard(delta)
        if delta.added == ("a",):
            raise ValueError("mine")
        gone = asyncio.create_task(asyncio.sleep(LONG))
        gone.cancel()
        await gone

    async def main() -> BaseException | None:
        with words.subscribe(fail, on=asyncio.get_running_loop()) as subscription:
            words.add("a")
            words.add("b")
            words.add("c")
            while len(heard.versions) < 3 or caplog.text.count("stays subscribed") < 3:
                await asyncio.sleep(0)
            return subscription.error

    with caplog.at_level(logging.ERROR, "reactive"):
        error = asyncio.run(asyncio.wait_for(main(), LONG))
    assert isinstance(error, asyncio.CancelledError)
    assert "mine" in caplog.text


@pytest.mark.parametrize("is_told", [True, False])
def test_a_subscription_ends_with_its_loop(
    words: Table[str], caplog: pytest.LogCaptureFixture, is_told: bool
) -> None:
    heard = Heard()
    loop = asyncio.new_event_loop()
    subscription = words.subscribe(heard, on=loop)
    if is_told:
        words.add("a")  # the loop is notified, but never runs
    loop.close()
    with caplog.at_level(logging.ERROR, "reactive"):
        words.add("b")
        words.add("c")
    assert subscription.closed
    assert isinstance(subscription.error, RuntimeError)
    assert waits(subscription) == 0
    assert caplog.text.count("ends, since its event loop does not run any more") == 1
    assert heard.versions == []


def test_a_loop_that_ends_cancels_the_callback_and_the_next_loop_is_another_subscription(
    words: Table[str],
) -> None:
    begun: list[int] = []

    async def never(delta: Delta[str]) -> None:
        begun.append(delta.version)
        await asyncio.sleep(LONG)

    async def main() -> Subscription[Any]:
        subscription = words.subscribe(never, on=asyncio.get_running_loop())
        words.add("a")
        while not begun:
            await asyncio.sleep(0)
        return subscription

    subscription = asyncio.run(asyncio.wait_for(main(), LONG))
    assert not subscription.closed
    words.add("b")
    assert subscription.closed
    heard = Heard()

    async def again() -> None:
        with words.subscribe(heard, on=asyncio.get_running_loop(), snapshot=True):
            while not heard.versions:
                await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(again(), LONG))
    assert heard.rows == Counter(["a", "b"])


# At intervals.


class Later(Timer):
    """A timer and a clock that a test moves on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.due: list[tuple[float, Callable[[], object]]] = []

    def call(self, when: float, job: Callable[[], object]) -> None:
        self.due.append((when, job))

    def until(self, now: float) -> None:
        while self.due and min(when for when, _ in self.due) <= now:
            self.due.sort(key=lambda job: job[0])
            self.now, job = max(self.now, self.due[0][0]), self.due.pop(0)[1]
            job()
        self.now = now


@pytest.fixture
def later() -> Iterator[Later]:
    later = Later()
    with patch("reactive.api.subscriptions.observe.time.monotonic", lambda: later.now):
        yield later


def throttled(words: Table[str], later: Later, callback: Any, on: Any = None) -> Any:
    words._engine.timer = later
    return words.subscribe(callback, every=10, on=on)


def test_at_most_one_call_is_made_in_an_interval(words: Table[str], later: Later) -> None:
    calls: list[tuple[float, Counter[str]]] = []
    heard = Heard()

    def note(delta: Delta[str]) -> None:
        heard(delta)
        calls.append((later.now, heard.rows.copy()))

    with throttled(words, later, note) as subscription:
        for n in range(50):
            later.until(100 + n)
            words.add(str(n))
            assert waits(subscription) <= 1
        later.until(1000)
    times = [moment for moment, _ in calls]
    assert times == [100, 110, 120, 130, 140, 150]
    assert calls[-1][1] == Counter(map(str, range(50)))
    assert calls[1][1] == Counter(map(str, range(10)))


def test_after_a_pause_a_delta_is_told_at_once(words: Table[str], later: Later) -> None:
    heard = Heard()
    with throttled(words, later, heard):
        words.add("a")
        later.until(100)
        later.until(500)
        words.add("b")
        later.until(500)
        assert heard.versions == [1, 2]
        assert not later.due


def test_what_comes_to_nothing_is_not_told(words: Table[str], later: Later) -> None:
    heard = Heard()
    with throttled(words, later, heard):
        words.add("a")
        later.until(100)
        words.add("b")
        words.remove("b")
        later.until(1000)
        assert heard.versions == [1]
        words.add("c")
        later.until(2000)
    assert heard.versions == [1, 4]


def test_an_interval_is_counted_from_call_to_call_also_on_an_executor(
    words: Table[str], later: Later
) -> None:
    heard, manual = Heard(), Manual()
    with throttled(words, later, heard, manual) as subscription:
        words.add("a")
        assert len(manual.given) == 1
        later.until(107)
        words.add("b")
        manual.run()
        assert heard.versions == [2]  # merged while no reader fetched it
        words.add("c")
        later.until(116)
        assert not manual.given
        words.add("d")
        later.until(117)
        assert len(manual.given) == 1 and waits(subscription) == 1
        manual.run()
    assert heard.versions == [2, 4]
    assert heard.rows == Counter("abcd")


def test_a_closed_one_is_not_called_when_it_would_be_due(words: Table[str], later: Later) -> None:
    heard = Heard()
    subscription = throttled(words, later, heard)
    words.add("a")
    later.until(100)
    words.add("b")
    subscription.close()
    later.until(1000)
    assert heard.versions == [1]


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "reactive timer"]


def test_one_daemon_thread_serves_a_database_while_something_is_due() -> None:
    db = Database()
    words = db.table(str)
    heard = [Heard(), Heard()]
    until(lambda: not threads())
    with patch.object(timers, "LINGERS", 0.02):
        held = [words.subscribe(each, every=0.01) for each in heard]
        for n in range(20):
            words.add(str(n))
        assert len(threads()) == 1 and threads()[0].daemon
        until(lambda: all(each.versions[-1:] == [20] for each in heard))
        assert all(each.threads == {"reactive timer"} for each in heard)
        until(lambda: not threads())
        words.add("again")
        until(lambda: all(each.versions[-1:] == [21] for each in heard))
        until(lambda: not threads())
    del held


def test_closing_the_database_ends_the_thread_and_what_was_due() -> None:
    db = Database()
    words = db.table(str)
    heard = Heard()
    subscription = words.subscribe(heard, every=1000)
    words.add("a")
    until(lambda: heard.versions == [1])
    words.add("b")
    assert len(threads()) == 1
    db.close()
    until(lambda: not threads())
    assert subscription.closed and heard.versions == [1]


def test_a_database_that_nobody_holds_leaves_no_thread() -> None:
    with patch.object(timers, "LINGERS", 0.02):
        words = Database().table(str)
        heard = Heard()
        subscription = words.subscribe(heard, every=0.01)
        words.add("a")
        until(lambda: heard.versions)
        del words, subscription
        gc.collect()
        until(lambda: not threads())


def test_a_callback_that_raises_does_not_keep_the_others_from_being_called(
    words: Table[str], caplog: pytest.LogCaptureFixture
) -> None:
    def fail(delta: Delta[str]) -> None:
        raise KeyboardInterrupt

    heard = Heard()
    with (
        caplog.at_level(logging.ERROR, "reactive"),
        words.subscribe(fail, every=0.001) as failing,
        words.subscribe(heard, every=0.001),
    ):
        for n in range(5):
            words.add(str(n))
            until(lambda: heard.versions[-1:] == [n + 1])
        assert isinstance(failing.error, KeyboardInterrupt)


def test_an_observer_hears_at_intervals_too(words: Table[str]) -> None:
    class Log:
        events: list[Any] = []

        def updated(self, old: Any, new: Any) -> None:
            self.events.append((old, new))

    count = words.aggregate(Count()).materialize()
    with count.observe(Log(), every=0.02):
        for n in range(100):
            words.add(str(n))
        until(lambda: Log.events and Log.events[-1][1] == 100)
    assert Log.events[0][0] == 0
    assert all(a[1] == b[0] for a, b in zip(Log.events, Log.events[1:], strict=False))


# All in one delta.


@pytest.mark.parametrize("seed", range(3))
def test_every_way_ends_in_the_same_state(seed: int, pool: ThreadPoolExecutor) -> None:
    db = Database()
    rows = db.table(tuple, key=lambda r: r[0], name="rows")
    view = rows.order_by(lambda r: r[1]).limit(5).materialize()
    loop = asyncio.new_event_loop()
    running = threading.Thread(target=loop.run_forever)
    running.start()
    ways: list[dict[str, Any]] = [
        {},
        {"on": pool},
        {"on": loop},
        {"every": 0.003},
        {"every": 0.003, "on": pool},
        {"every": 0.003, "on": loop},
    ]

    class Listening:
        """A view whose subscriptions go some way."""

        def __init__(self, way: dict[str, Any]) -> None:
            self._way = way

        def subscribe(self, callback: Any, *, snapshot: bool) -> Any:
            return view.subscribe(callback, snapshot=snapshot, **self._way)

        def __getattr__(self, name: str) -> Any:
            return getattr(view, name)

    replicas = [Replica(Listening(way)) for way in ways]

    def write(random: Random) -> None:
        for n in range(60):
            if random.random() < 0.7:
                rows.upsert((random.randrange(12), random.random()))
            else:
                with db.transaction():
                    for key in [r[0] for r in rows][:2]:
                        rows.delete(key)
            if n % 9 == 0:
                time.sleep(0.002)

    writers = [threading.Thread(target=write, args=(Random(seed * 10 + n),)) for n in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    until(lambda: all(replica.rows == Counter(view) for replica in replicas))
    until(lambda: all(replica.sequence == list(view) for replica in replicas))
    assert all(replica.subscription.error is None for replica in replicas)
    db.close()
    loop.call_soon_threadsafe(loop.stop)
    running.join()
    loop.close()


def test_a_relay_says_how_much_waits(later: Later) -> None:
    relay = Relay(print, Manual(), None, later, QueueLimits())
    for version in range(3):
        relay.put(Delta(version, [("a", 1)]))
    assert len(relay) == 3


# Reading with a bound.


@pytest.mark.parametrize(
    ("given", "versions"),
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"latest": True}, [5]),
        ({"maxsize": 1}, [5]),
        ({"maxsize": 3}, [1, 2, 5]),
        ({"maxsize": 9}, [1, 2, 3, 4, 5]),
        ({"maxsize": 2, "snapshot": True}, [0, 5]),
        ({"latest": True, "maxsize": 1, "snapshot": True}, [5]),
    ],
)
@pytest.mark.parametrize("where", ["relation", "view"])
def test_a_reader_that_stalls_finds_as_many_as_may_wait(
    words: Table[str], given: dict[str, Any], versions: list[int], where: str
) -> None:
    async def main() -> list[Delta[str]]:
        thing: Any = words if where == "relation" else words.materialize()
        with thing.changes(**given) as changes:
            for word in "abcde":
                words.add(word)
            changes.close()
            return [delta async for delta in changes]

    heard = asyncio.run(main())
    assert [delta.version for delta in heard] == versions
    assert Counter(word for delta in heard for word in delta.added) == Counter("abcde")
    assert heard[0].is_snapshot == given.get("snapshot", False)


def test_a_reader_is_not_woken_for_nothing(words: Table[str]) -> None:
    async def main() -> Delta[str]:
        with words.changes(latest=True) as changes:
            words.add("a")
            words.remove("a")
            asyncio.get_running_loop().call_later(0.01, words.add, "b")
            return await anext(changes)

    delta = asyncio.run(asyncio.wait_for(main(), LONG))
    assert (delta.version, delta.added) == (3, ("b",))


@pytest.mark.parametrize("maxsize", [0, -1, 1.5, True, "1"])
def test_what_is_no_bound_is_refused(words: Table[str], maxsize: Any) -> None:
    with pytest.raises(ValueError, match="is no number of deltas that may wait"):
        words.changes(maxsize=maxsize)
    with pytest.raises(ValueError, match="latest=True is maxsize=1"):
        words.changes(latest=True, maxsize=2)
