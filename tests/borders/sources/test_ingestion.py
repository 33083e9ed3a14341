"""Sources at work: their reports, how they stop, fail, and continue."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from random import Random
from typing import Any

import pytest

from reactive import (
    Batch,
    ClosedError,
    Database,
    Ingestion,
    PlanError,
    SourceError,
    Table,
    TableError,
    TransactionError,
    from_rows,
    poll,
)
from tests.counted_calls import calls_of

PATIENCE = 30


class Numbers:
    """Yield the numbers to `end`, one by one; fail once before each number of `fails`."""

    def __init__(self, end: int, fails: tuple[int, ...] = (), name: str = "numbers") -> None:
        self.name = name
        self.end = end
        self.fails = list(fails)
        self.given = 0

    def batches(self, since: Any, stop: threading.Event) -> Iterator[Batch[int]]:
        for number in range(since or 0, self.end):
            if number in self.fails:
                self.fails.remove(number)
                raise OSError(f"lost at {number}")
            self.given = number + 1
            yield Batch([number], token=number + 1, made=1.0)

    def waiting(self) -> int:
        return self.end - self.given


class Pushed:
    """Yield the items of its queue, until it is stopped."""

    name = "pushed"

    def __init__(self) -> None:
        self.queue: Queue[Batch[Any]] = Queue()
        self.closed = threading.Event()

    def batches(self, since: Any, stop: threading.Event) -> Iterator[Batch[Any]]:
        try:
            while not stop.wait(0.001):
                while not self.queue.empty():
                    yield self.queue.get()
        finally:
            self.closed.set()


def database() -> tuple[Database, Table[int]]:
    db = Database()
    return db, db.table(int, name="numbers")


def test_a_source_that_fails_goes_on_from_its_token_exactly_once() -> None:
    db, table = database()
    source = Numbers(9, fails=(0, 4, 8))
    reading = db.ingest(source, table)
    for at in (0, 4, 8):
        with pytest.raises(OSError, match=f"lost at {at}"):
            reading.wait(timeout=PATIENCE)
        assert (reading.state, sorted(table)) == ("failed", [*range(at)])
        assert (reading.token or 0) == at
        reading.start()
    reading.wait(timeout=PATIENCE)
    assert sorted(table) == [*range(9)]
    assert (reading.state, reading.error, db.tokens) == ("ended", None, {"numbers": 9})
    assert (reading.batches, reading.rows, reading.lag.waiting) == (9, 9, 0)
    assert reading.lag.seconds is not None
    assert reading.lag.seconds > 1


def test_a_source_goes_on_in_another_ingestion_of_its_name() -> None:
    db, table = database()
    db.ingest(Numbers(3), table).wait(timeout=PATIENCE)
    db.ingest(Numbers(5), table).wait(timeout=PATIENCE)
    assert sorted(table) == [*range(5)]
    with pytest.raises(SourceError, match="is at token 5, not at 3"):
        db.ingest(Numbers(5), table, since=3)
    with pytest.raises(SourceError, match="feeds numbers, and its token is that of their rows"):
        db.ingest(Numbers(5), db.table(int, name="others"))


def test_a_token_may_be_given_that_the_database_does_not_have() -> None:
    db, table = database()
    reading = db.ingest(Numbers(5), table, since=3, start=False)
    assert (reading.token, db.tokens, reading.state) == (3, {}, "new")
    reading.run()
    assert sorted(table) == [3, 4]


def test_one_source_fails_and_others_go_on() -> None:
    db, table = database()
    halves = table.where(lambda n: n < 100).select(lambda n: 6 // n).materialize()
    others = db.table(str, name="others")
    pushed = Pushed()
    good = db.ingest(pushed, others)
    bad = db.ingest(from_rows([3, 2, 0, 1], size=1), table)
    with pytest.raises(ZeroDivisionError):
        bad.wait(timeout=PATIENCE)
    assert (sorted(table), sorted(halves), bad.token) == ([2, 3], [2, 3], 2)
    pushed.queue.put(Batch(["still"], token="a"))
    good.wait("a", timeout=PATIENCE)
    assert (list(others), good.state) == (["still"], "running")
    table.add(1)
    assert len(halves) == 3
    db.close()


def test_views_have_a_batch_when_its_token_is_there() -> None:
    db, table = database()
    view = table.select(lambda n: n + 1).materialize()
    heard: list[Any] = []
    subscription = view.subscribe(lambda delta: heard.extend(delta.added))
    pushed = Pushed()
    reading = db.ingest(pushed, table)
    for number in range(50):
        pushed.queue.put(Batch([number], token=number))
        reading.wait(number, timeout=PATIENCE)
        assert len(view) == number + 1
        assert reading.token == number
    reading.wait(3)  # the row was read before
    reading.stop()
    assert sorted(heard) == [*range(1, 51)]
    subscription.close()


def test_several_threads_and_writers_by_hand_lose_nothing() -> None:
    db, table = database()
    total = table.select(lambda n: n).materialize()
    sources = [Numbers(100, name=f"numbers {n}") for n in range(4)]
    readings = [db.ingest(source, table) for source in sources]
    for number in range(100):
        table.add(number)
    for reading in readings:
        reading.wait(timeout=PATIENCE)
    assert sorted(total) == sorted([*range(100)] * 5)
    assert db.tokens == {source.name: 100 for source in sources}
    total.verify()


def test_a_source_that_waits_is_stopped() -> None:
    db, table = database()
    pushed = Pushed()
    with db.ingest(pushed, table) as reading:
        assert reading.state == "running"
    assert (reading.state, pushed.closed.is_set()) == ("stopped", True)
    reading.stop()
    reading.start()
    pushed.queue.put(Batch([1], token=1))
    reading.wait(1, timeout=PATIENCE)
    db.close()
    assert (reading.state, reading.token) == ("stopped", 1)
    assert "stopped, 1 batch, 1 row, token 1" in repr(reading)


def test_a_source_that_does_not_heed_is_told_of_and_commits_no_more() -> None:
    db, table = database()
    go_on = threading.Event()

    def deaf(since: Any, stop: threading.Event) -> Iterator[Batch[int]]:
        go_on.wait(PATIENCE)
        yield Batch([1], token=1)

    reading = db.ingest(deaf, table)
    with pytest.raises(SourceError, match="source 'deaf' has not stopped within"):
        reading.stop(timeout=0.01)
    with pytest.raises(SourceError, match="is running already"):
        reading.start()
    go_on.set()
    reading.stop()
    assert (reading.state, list(table), reading.token) == ("stopped", [], None)


def test_a_database_is_closed_while_a_source_does_not_heed() -> None:
    db, table = database()
    go_on, over = threading.Event(), threading.Event()

    def deaf(since: Any, stop: threading.Event) -> Iterator[Batch[int]]:
        try:
            go_on.wait(PATIENCE)
            yield Batch([1], token=1)
        finally:
            over.set()

    reading = db.ingest(deaf, table)
    db.close()
    go_on.set()
    assert over.wait(PATIENCE)
    reading.stop()
    assert reading.state == "stopped"
    with pytest.raises(ClosedError):
        reading.start()
    with pytest.raises(ClosedError):
        reading.take(Batch([1]))


def test_it_is_stopped_by_a_subscriber_in_its_own_thread() -> None:
    db, table = database()
    found: list[Ingestion[Any]] = []
    subscription = table.subscribe(lambda delta: found[0].stop())
    found.append(db.ingest(Numbers(10), table, start=False))
    found[0].run()
    assert (list(table), found[0].state, found[0].token) == ([0], "stopped", 1)
    subscription.close()


def test_what_is_no_batch_stops_a_source() -> None:
    db, table = database()
    reading = db.ingest(lambda since, stop: iter([7]), table, name="x", start=False)  # type: ignore[arg-type,return-value]
    with pytest.raises(SourceError, match="source 'x' gave 7, which is no batch"):
        reading.run()
    assert reading.state == "failed"
    assert "failed: SourceError" in repr(reading)


def test_ctrl_c_leaves_a_run_where_it_was() -> None:
    db, table = database()

    def interrupted(since: Any, stop: threading.Event) -> Iterator[Batch[int]]:
        yield Batch([1], token=1)
        if since is None:
            raise KeyboardInterrupt
        yield Batch([2], token=2)

    reading = db.ingest(interrupted, table, start=False)
    with pytest.raises(KeyboardInterrupt):
        reading.run()
    assert (reading.state, reading.error, reading.token) == ("stopped", None, 1)
    assert not db._engine.ingestions


def test_batches_are_taken_while_no_source_runs() -> None:
    db, table = database()
    reading = db.ingest(None, table, name="pushed")
    reading.take(Batch([1, 2], token="a"))
    assert (sorted(table), reading.state, reading.token) == ([1, 2], "new", "a")
    with pytest.raises(SourceError, match="has no batches of its own"):
        reading.start()
    with pytest.raises(SourceError, match="has not been started"):
        reading.wait()
    with pytest.raises(TimeoutError, match="has not come to token 'b' in"):
        reading.wait("b", timeout=0.01)
    other = db.ingest(Pushed(), table)
    with pytest.raises(SourceError, match="cannot take a batch: its source is running"):
        other.take(Batch([1]))
    with pytest.raises(SourceError, match="'pushed' is running already"):
        db.ingest(Pushed(), table)
    db.close()


def test_waiting_for_what_does_not_come_says_so() -> None:
    db, table = database()
    reading = db.ingest(Numbers(2), table)
    with pytest.raises(SourceError, match="has ended before token 7\n  it came to 2"):
        reading.wait(7, timeout=PATIENCE)


@pytest.mark.parametrize(
    "verb",
    [lambda r: r.take(Batch([1])), lambda r: r.run(), lambda r: r.stop(), lambda r: r.wait()],
)
def test_nothing_is_done_inside_a_transaction(verb: Callable[[Any], object]) -> None:
    db, table = database()
    reading = db.ingest(Numbers(2), table, start=False)
    with pytest.raises(TransactionError, match="inside a transaction"), db.transaction():
        verb(reading)
    with pytest.raises(TransactionError, match="inside a transaction"), db.transaction():
        db.ingest(Numbers(2), table)
    assert (list(table), reading.state) == ([], "new")


def test_a_source_waits_for_the_transaction_of_a_task() -> None:
    db, table = database()
    pushed = Pushed()
    reading = db.ingest(pushed, table)

    async def writes() -> None:
        async with db.transaction():
            table.add(1)
            pushed.queue.put(Batch([2], token=1))
            await asyncio.sleep(0.05)
            with pytest.raises(TransactionError, match=r"wait\(\) inside a transaction"):
                reading.wait(1)
            assert (list(table), reading.token) == ([1], None)
        await asyncio.to_thread(reading.wait, 1, PATIENCE)

    asyncio.run(writes())
    assert (sorted(table), reading.token, db.version) == ([1, 2], 1, 2)
    db.close()


def test_wrong_arguments_are_told() -> None:
    db, table = database()
    other = Database().table(int, name="other")
    for arguments, message in [
        ((7, table), "ingest takes a source, not 7"),
        ((lambda since, stop: (), table), "a source needs a name"),
        ((None, table), "a source needs a name"),
        ((Numbers(1), other), "takes a table of its database"),
        ((Numbers(1), [table]), "takes a table of its database"),
        ((Numbers(1), {}), "each table once"),
        ((Numbers(1), {int: table, str: table}), "each table once"),
    ]:
        with pytest.raises(PlanError, match=message):
            db.ingest(*arguments)  # type: ignore[call-overload]
    with pytest.raises(PlanError, match="on_error='skip' is no policy"):
        db.ingest(Numbers(1), table, on_error="skip")  # type: ignore[call-overload]
    with pytest.raises(PlanError, match="leaves no rows out"):
        _ = db.ingest(Numbers(1), table, start=False).errors
    with pytest.raises(PlanError, match="is no number of rows"):
        from_rows([1], size=0)
    with pytest.raises(PlanError, match="is no interval"):
        poll(list, every=0, name="x")


def test_polled_rows_change_by_their_difference() -> None:
    db, table = database()
    answers = [[1, 2], [2, 3], [2, 3], [3]]
    polled = db.ingest(poll(lambda: answers.pop(0), every=0.001, name="x"), table)
    with pytest.raises(IndexError):
        polled.wait(timeout=PATIENCE)
    assert (list(table), db.version, polled.origins) == ([3], 3, {"x": (3,)})


def test_nobody_holds_what_nobody_reads() -> None:
    pushed = Pushed()

    def begun() -> list[weakref.ref[Any]]:
        db, table = database()
        view = table.materialize()
        reading = db.ingest(pushed, table, on_error="drop")
        pushed.queue.put(Batch([1], token=1))
        reading.wait(1, timeout=PATIENCE)
        return [weakref.ref(one) for one in (db, table, view, reading)]

    found = begun()
    for _ in range(100):
        gc.collect()
        if pushed.closed.wait(0.05):
            break
    gc.collect()
    assert [one() for one in found] == [None] * 4
    assert pushed.closed.is_set()


def test_it_goes_on_while_only_a_view_is_held() -> None:
    pushed = Pushed()
    db, table = database()
    view = table.materialize()
    db.ingest(pushed, table)
    del db, table
    gc.collect()
    pushed.queue.put(Batch([1], token=1))
    for _ in range(PATIENCE * 1000):
        if len(view) or pushed.closed.wait(0.001):
            break
    assert list(view) == [1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_does_not_have_it() -> None:
    db, table = database()
    reading = db.ingest(None, table, name="x")
    process, reading._process = reading._process, -1
    with pytest.raises(SourceError, match="the process that this one was forked from"):
        reading.take(Batch([1]))
    reading._process = process
    reading.take(Batch([1]))


PROGRAM = """
import threading
from reactive import Batch, Database
db = Database()
numbers = db.table(int, name="numbers")
def endless(since, stop):
    yield Batch([1], token=1)
    threading.Event().wait()
reading = db.ingest(endless, numbers)
reading.wait(1, timeout=30)
print(list(numbers), reading.state)
"""


def test_a_program_ends_while_a_source_waits() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    assert (ran.stdout, ran.stderr) == ("[1] running\n", "")


def test_a_batch_costs_as_much_beside_many_origins_as_beside_few() -> None:
    def calls(origins: int) -> int:
        db, table = database()
        reading = db.ingest(None, table, name="x")
        reading.take(Batch(origins={n: [n, -n] for n in range(origins)}, token=0))
        for token in range(80):  # until its commits have their generated function
            reading.take(Batch(origins={1: [token]}, token=token))
        return calls_of(lambda: reading.take(Batch(origins={1: [1, 2]}, token=100)))

    few, many = calls(10), calls(1000)
    assert few == many


def test_it_is_not_copied() -> None:
    db, table = database()
    with pytest.raises(TypeError, match="cannot copy source 'x'"):
        copy.copy(db.ingest(None, table, name="x"))


@pytest.mark.parametrize("seed", range(10))
def test_a_token_that_is_a_dictionary_is_told_by_its_changes(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    path = tmp_path / "a.db" if seed % 2 else None
    since = {"a": 7, "b": 8} if seed % 3 else None
    db = Database(path)
    reading = db.ingest(None, db.table(str, name="words"), since=since, name="s")
    wanted: Any = dict(since or {})
    for _ in range(30):
        if random.random() < 0.1:
            wanted = {"whole": random.randrange(9)}
            reading.take(Batch(token=wanted))
        else:
            keys = random.sample("abcdef", random.randrange(1, 4))
            changes = {key: random.choice([None, 1, (2, "x")]) for key in keys}
            reading.take(Batch(["w"], token_changes=changes))
            wanted = {k: v for k, v in {**wanted, **changes}.items() if v is not None}
        assert reading.token == db.tokens["s"] == wanted
        if path is not None and random.random() < 0.2:
            db.close()
            assert reading.token == wanted
            db = Database(path)
            reading = db.ingest(None, db.table(str, name="words"), name="s")
            assert reading.token == wanted
    reading.wait(wanted, timeout=10)
    db.close()


def test_changes_are_those_of_a_dictionary_only() -> None:
    db = Database()
    reading = db.ingest(None, db.table(str), name="s")
    reading.take(Batch(token=7))
    with pytest.raises(SourceError, match="is at token 7, which is no dictionary"):
        reading.take(Batch(token_changes={"a": 1}))
    with pytest.raises(TableError, match="and not both"):
        reading.take(Batch(token=8, token_changes={"a": 1}))
    assert reading.token == 7
