"""A named subscription continues after a restart at its position.

So does a sink that writes after each commit.
"""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reactive import Count, Database, Delta, NamedSubscription, PlanError, TransactionError
from reactive.borders.durable.postgres_store import PostgresStore
from reactive.borders.durable.store import MemoryStore
from tests.borders.durable.recording import can_record
from tests.borders.durable.told import Receiver, refused_everywhere, told_everywhere
from tests.budget import seeds, stride

recorded = pytest.mark.skipif(not can_record(), reason="the library of SQLite is out of reach")
raises = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


class Device(NamedTuple):
    """A row of a table."""

    id: int
    heat: int


@pytest.mark.long
@recorded
@pytest.mark.parametrize("level", ["commit", "group", "exit"])
def test_after_an_end_at_any_write_what_was_told_comes_to_the_view(level: str) -> None:
    for seed in seeds(6, 6):
        assert told_everywhere(seed, level, stride(2, 6), "subscription") > 5


@recorded
@pytest.mark.parametrize("level", ["commit", "group"])
def test_after_a_write_that_fails_what_was_told_comes_to_the_view(level: str) -> None:
    for seed in seeds(6, 6):
        assert refused_everywhere(seed, level, stride(6, 4), "subscription") > 3


Told = list[tuple[int | None, tuple[Any, ...]]]


def telling(told: Told) -> Callable[[Delta[Any]], object]:
    return lambda delta: told.append((delta.number, tuple(sorted(delta.items()))))


def test_it_is_told_from_where_it_was(tmp_path: Path) -> None:
    told: Told = []
    for process in ("first", "second"):
        with Database(tmp_path / "x.db") as db:
            words = db.table(str, name="words")
            if process == "second":
                words.add_all(["while", "away"])
            subscription = words.materialize("words").subscribe(telling(told), name="alerts")
            assert isinstance(subscription, NamedSubscription)
            words.add(process)
            with db.transaction():
                words.add("a")
                words.remove(process)
        assert subscription.closed
    assert told == [
        (1, (("first", 1),)),
        (2, (("a", 1), ("first", -1))),
        (3, (("away", 1), ("while", 1))),
        (4, (("second", 1),)),
        (5, (("a", 1), ("second", -1))),
    ]


def test_a_new_name_is_told_of_the_rows_that_are_there_if_it_asks(tmp_path: Path) -> None:
    with Database(tmp_path / "x.db") as db:
        words = db.table(str, name="words")
        words.add("to")
        deltas: list[Delta[str]] = []
        words.subscribe(deltas.append, name="without")
        words.subscribe(deltas.append, name="with", snapshot=True)
        assert [(d.number, d.is_snapshot, d.added) for d in deltas] == [(0, True, ("to",))]
    deltas.clear()
    with Database(tmp_path / "x.db") as db:
        words = db.table(str, name="words")
        words.subscribe(deltas.append, name="without", snapshot=True)
        words.subscribe(deltas.append, name="with", snapshot=True)
        assert not deltas, "they know it"


def test_without_a_name_nothing_is_different(tmp_path: Path) -> None:
    with Database(tmp_path / "x.db") as db:
        words = db.table(str, name="words")
        deltas: list[Delta[str]] = []
        with words.subscribe(deltas.append):
            words.add("to")
        assert [type(d) for d in deltas] == [Delta]
        assert deltas[0].number is None
        assert not db._engine.sinks
    assert [*MemoryStore().tables()] == []


def test_what_a_callback_does_not_take_comes_again_under_its_number(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: Told = []
    with Database(tmp_path / "x.db") as db:
        words = db.table(str, name="words")

        def refuse(delta: Delta[str]) -> None:
            telling(told)(delta)
            raise ConnectionError("nobody is there")

        subscription = words.subscribe(refuse, name="alerts")
        words.add("to")
        words.add("be")
        assert isinstance(subscription.error, ConnectionError)
        with pytest.raises(ConnectionError):
            subscription.flush()
        assert "the subscription 'alerts'" in caplog.text or "subscription 'alerts'" in caplog.text
    assert told == [(1, (("to", 1),))] * 3
    told.clear()
    with Database(tmp_path / "x.db") as db:
        words = db.table(str, name="words")
        words.remove("to")
        subscription = words.subscribe(telling(told), name="alerts")
        assert subscription.error is None
    assert told == [(1, (("to", 1),)), (2, (("be", 1), ("to", -1)))]


def test_a_process_that_is_killed_in_a_callback_tells_it_again(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from reactive import Database\n"
        "def tell(delta):\n"
        "    print(delta.number, delta.added, flush=True)\n"
        "    if delta.number == int(sys.argv[2]): os.kill(os.getpid(), signal.SIGKILL)\n"
        "db = Database(sys.argv[1])\n"
        "words = db.table(str, name='words')\n"
        "subscription = words.subscribe(tell, name='alerts')\n"
        "words.add(sys.argv[2])\n"
    )
    lines = []
    for number in ("1", "3", "9"):
        command = [sys.executable, "-c", program, str(tmp_path / "x.db"), number]
        lines += subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    assert lines == ["1 ('1',)", "1 ('1',)", "2 ('3',)", "3 ('9',)"]


def test_rows_that_are_replaced_are_updates_and_a_delta_can_be_pickled(tmp_path: Path) -> None:
    deltas: list[Delta[Any]] = []
    with Database(tmp_path / "x.db") as db:
        devices = db.table(Device, key="id", name="devices")
        counts = devices.group_by("heat").aggregate(Count())
        devices.subscribe(deltas.append, name="devices")
        counts.subscribe(deltas.append, name="counts")
        devices.add_all([Device(1, 7), Device(2, 7)])
        deltas.clear()
        devices.upsert(Device(1, 8))
    assert sorted(map(repr, deltas)) == [
        "Delta(number=2, version=2, added=((8, 1),), updated=(((7, 2), (7, 1)),))",
        "Delta(number=2, version=2, updated=((Device(id=1, heat=7), Device(id=1, heat=8)),))",
    ]
    for delta in deltas:
        again = pickle.loads(pickle.dumps(delta))
        assert (again, again.number, repr(again)) == (delta, delta.number, repr(delta))


@pytest.mark.parametrize("store", ["memory", "postgres"])
def test_other_stores_keep_it_too(store: str, request: pytest.FixtureRequest) -> None:
    told: Told = []
    there: Any = MemoryStore()
    if store == "postgres":
        there = PostgresStore(request.getfixturevalue("database"))
    for word in ("to", "be"):
        with Database(store=there) as db:
            words = db.table(str, name="words")
            words.add(f"{word} before")
            words.subscribe(telling(told), name="alerts")
            words.add(word)
    assert [*told] == [
        (1, (("to", 1),)),
        (2, (("be before", 1),)),
        (3, (("be", 1),)),
    ]


def test_in_memory_it_lives_as_long_as_the_database() -> None:
    told: Told = []
    db = Database()
    words = db.table(str, name="words")
    subscription = words.subscribe(telling(told), name="alerts")
    words.add("to")
    with pytest.raises(PlanError, match="not kept in a durable database"):
        subscription.forget()
    subscription.close()
    words.add("be")
    with words.subscribe(telling(told), name="alerts", snapshot=True):
        pass
    assert told == [(1, (("to", 1),)), (0, (("be", 1), ("to", 1)))]


def test_a_callback_may_write_what_it_listens_to(tmp_path: Path) -> None:
    told: Told = []
    with Database(tmp_path / "x.db") as db:
        numbers = db.table(int, name="numbers")

        def count(delta: Delta[int]) -> None:
            telling(told)(delta)
            if (found := max(delta.added)) < 5:
                numbers.add(found + 1)
            db.flush()

        subscription = numbers.subscribe(count, name="count")
        numbers.add(1)
        assert [changes for _, changes in told] == [((n, 1),) for n in range(1, 6)]
        told.clear()
        numbers.add(-9)
        assert [number for number, _ in told] == [6, *range(7, 7 + len(told) - 1)]
        assert subscription.error is None


def test_threads_that_write_while_another_one_tells_do_not_wait_for_each_other(
    tmp_path: Path,
) -> None:
    told: Told = []
    with Database(tmp_path / "x.db", durability="group") as db:
        numbers = db.table(int, name="numbers")
        others = db.table(int, name="others")

        def slow(delta: Delta[int]) -> None:
            telling(told)(delta)
            others.add(delta.number or 0)
            time.sleep(0.001)

        numbers.subscribe(slow, name="alerts")

        def write(start: int) -> None:
            for number in range(start, start + 15):
                numbers.add(number)
                if number % 5 == 0:
                    db.flush()

        threads = [threading.Thread(target=write, args=(at,), daemon=True) for at in (0, 100, 200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        db.flush()
        assert [number for number, _ in told] == [*range(1, len(told) + 1)]
        rows = [row for _, changes in told for row, _ in changes]
        assert sorted(rows) == sorted(numbers)
        assert sorted(others) == [*range(1, len(told) + 1)]


def test_an_executor_runs_the_callback(tmp_path: Path) -> None:
    told: Told = []
    names = set[str]()

    def note(delta: Delta[int]) -> None:
        names.add(threading.current_thread().name)
        telling(told)(delta)

    with Database(tmp_path / "x.db") as db, ThreadPoolExecutor(1, "teller") as executor:
        numbers = db.table(int, name="numbers")
        subscription = numbers.subscribe(note, name="alerts", on=executor)
        for number in range(20):
            numbers.add(number)
        executor.submit(int).result(5)
        db.flush()
        assert sorted(row for _, changes in told for row, _ in changes) == [*range(20)]
        executor.shutdown()
        numbers.add(99)
        assert subscription.closed
        assert isinstance(subscription.error, RuntimeError)
    assert any(name.startswith("teller") for name in names)


def test_every_merges_what_comes_meanwhile(tmp_path: Path) -> None:
    told: Told = []
    with Database(tmp_path / "x.db") as db:
        numbers = db.table(int, name="numbers")
        numbers.add(-1)
        numbers.subscribe(telling(told), name="alerts", every=0.05)
        for number in range(20):
            numbers.add(number)
        until = time.monotonic() + 10
        while time.monotonic() < until and sum(len(changes) for _, changes in told) < 20:
            time.sleep(0.01)
    assert sorted(row for _, changes in told for row, _ in changes) == [*range(20)]
    assert len(told) < 20


def test_tasks_are_told_of_their_commits(tmp_path: Path) -> None:
    told: Told = []

    async def write(db: Database, start: int) -> None:
        numbers: Any = db.tables()[0]
        for number in range(start, start + 5):
            async with db.transaction():
                numbers.add(number)
                await asyncio.sleep(0)
            numbers.add(number + 50)

    async def main() -> None:
        with Database(tmp_path / "x.db") as db:
            numbers = db.table(int, name="numbers")
            numbers.subscribe(telling(told), name="alerts")
            await asyncio.gather(*(write(db, start) for start in (0, 100, 200)))
            db.flush()
            rows = [row for _, changes in told for row, _ in changes]
            assert sorted(rows) == sorted(numbers)

    asyncio.run(main())
    assert [number for number, _ in told] == [*range(1, len(told) + 1)]


def test_it_ends_with_its_view_and_the_name_is_free_again(tmp_path: Path) -> None:
    told: Told = []
    with Database(tmp_path / "x.db") as db:
        words = db.table(str, name="words")
        view = words.materialize("words")
        subscription = view.subscribe(telling(told), name="alerts")
        with pytest.raises(PlanError, match="cannot make a second sink named 'alerts'"):
            words.subscribe(print, name="alerts")
        with pytest.raises(PlanError, match="cannot make a second sink named 'alerts'"):
            view.changes_to(print, name="alerts")
        view.close()
        assert subscription.closed
        words.add("to")
        again = words.subscribe(telling(told), name="alerts")
        again.forget()
        assert again.closed
        words.subscribe(telling(told), name="alerts", snapshot=True)
    assert told == [(1, (("to", 1),)), (0, (("to", 1),))]


def test_another_query_is_refused_or_its_difference_is_told(tmp_path: Path) -> None:
    told: Told = []

    def begin(limit: int, **how: Any) -> None:
        with Database(tmp_path / "x.db") as db:
            devices = db.table(Device, key="id", name="devices")
            hot = devices.where(lambda d: d.heat > limit).select(lambda d: d.id)
            hot.subscribe(telling(told), name="alerts", **how)
            devices.upsert(Device(1, 50))
            devices.upsert(Device(2, 95))

    begin(90)
    with pytest.raises(PlanError, match=r"cannot go on with .*'alerts'(.|\n)*migrate=True"):
        begin(40)
    begin(40, migrate=True)
    assert told == [(1, ((2, 1),)), (2, ((1, 1),))]


async def asynchronous(delta: Delta[int]) -> None:
    """A callback whose coroutine is never awaited."""


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"name": ""}, "cannot subscribe under the name ''"),
        ({"name": 3}, "cannot subscribe under the name 3"),
        ({"maxsize": 3}, "cannot subscribe with maxsize= under a name"),
        ({"when_full": "merge"}, "cannot subscribe with when_full= under a name"),
        ({"path": (1, "orders")}, "cannot subscribe with path= under a name"),
        ({"every": 1.0, "on": ThreadPoolExecutor(1)}, "cannot subscribe with on= and every="),
        ({"every": -1.0}, "every=-1.0 is no interval"),
        ({"on": 3}, "on=3 is neither an executor"),
        ({"name": None, "migrate": True}, "row_type= and migrate= are of what is kept"),
        ({"callback": asynchronous}, "is asynchronous, and nobody would await it"),
        ({"callback": 3}, "subscribe takes a callable"),
    ],
)
def test_what_a_name_cannot_have_is_refused(how: dict[str, Any], why: str) -> None:
    with Database() as db:
        numbers: Any = db.table(int, name="numbers")
        given = {"name": "alerts", "callback": print} | how
        with pytest.raises(PlanError, match=why):
            numbers.subscribe(**given)
        assert not db._engine.sinks


def test_a_loop_a_transaction_and_a_reader_are_refused(tmp_path: Path) -> None:
    with Database(tmp_path / "x.db") as db:
        numbers: Any = db.table(int, name="numbers")
        loop = asyncio.new_event_loop()
        with pytest.raises(PlanError, match="in an event loop: it would wait for the disk"):
            numbers.subscribe(print, name="alerts", on=loop)
        loop.close()
        with db.transaction(), pytest.raises(TransactionError):
            numbers.subscribe(print, name="alerts")
        assert not db._engine.sinks
        numbers.subscribe(print, name="alerts").close()
    with Database(tmp_path / "x.db", readonly=True) as db:
        numbers = db.table(int, name="numbers")
        with pytest.raises(PlanError, match="open for reading alone"):
            numbers.subscribe(print, name="alerts")


def test_a_path_of_rows_inside_is_refused_under_a_name() -> None:
    with Database() as db:
        words, letters = db.table(str, name="words"), db.table(str, name="letters")
        begin = letters.nest(words=lambda letter: words.where(lambda w: w[0] == letter))
        for each in (begin, begin.materialize(), begin.order_by(lambda b, w: b).materialize()):
            with pytest.raises(PlanError, match="with path= under a name"):
                each.subscribe(print, path=("t", "words"), name="alerts")
        told: list[Any] = []
        begin.subscribe(lambda delta: told.append((delta.number, len(delta.added))), name="rows")
        letters.add("t")
        assert told == [(1, 1)]


def test_a_sink_may_be_told_after_each_commit(tmp_path: Path) -> None:
    told = Receiver()
    for start in (0, 10):
        with Database(tmp_path / "x.db") as db:
            words = db.table(int, name="words")
            words.add(start)
            sink = words.materialize("words").changes_to(told, trigger="commit")
            words.add(start + 1)
            words.add_all([start + 2, start + 3])
            assert sink.lag.waiting == 0
    assert told.batches == [
        *[(0, [(0, 1)]), (1, [(1, 1)]), (2, [(2, 1), (3, 1)])],
        *[(3, [(10, 1)]), (4, [(11, 1)]), (5, [(12, 1), (13, 1)])],
    ]


def test_a_commit_costs_its_changes_whatever_the_view_holds() -> None:
    db = Database(store=MemoryStore())
    words = db.table(int, name="words")
    words.add_all(range(2000))
    seen: list[int] = []
    words.subscribe(lambda delta: seen.append(len(delta)), name="alerts")
    store: Any = db._engine.journal.store
    written: list[int] = []
    write = store.write

    def counting(records: Any) -> None:
        written.append(sum(len(c.gone) + len(c.come) for r in records for c in r.changes))
        write(records)

    store.write = counting
    for word in (-1, -2, -3):
        partial(words.add, word)()
    assert seen == [1, 1, 1]
    assert max(written[3:]) <= 8
    db.close()
