"""Lives of durable sinks and named subscriptions that end at every write, and their receivers.

One run records the calls of SQLite on the files, and the calls of the receiver. An end after each
call leaves a file and a receiver; the next process makes the same sink. All batches together must
add up to the view: no number is missing, a repeated number has the same changes, and no batch is of
a commit that the file lacks.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from reactive import Database, Delta, DurabilityError
from reactive.borders.durable.sqlite_store import SqliteStore
from tests.borders.durable.crashed import Folder, failing, noted, written
from tests.borders.durable.disk import Disk
from tests.borders.durable.recording import Recording
from tests.borders.sinks.histories import PRICES, TOWNS, VIEWS, Sale, bag

STEPS = 14
"""Steps of a life."""


@dataclass
class Receiver:
    """Record batches; fail on request.

    calls: the number of calls on files when each batch arrived.
    """

    recording: Recording = field(default_factory=Recording)
    batches: list[tuple[int, list[Any]]] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    fails: bool = False

    def __call__(self, number: int, changes: list[Any]) -> None:
        if self.fails:
            raise ConnectionError("nobody is there")
        self.batches.append((number, changes))
        self.calls.append(len(self.recording.calls))

    def take(self, delta: Delta[Any]) -> None:
        """Receive a delta as a subscriber."""
        assert delta.number is not None and delta.is_snapshot == (delta.number == 0)
        self(delta.number, list(delta.items()))

    def upto(self, calls: int, *, at: bool) -> Receiver:
        """Return the receiver after `calls` calls, with or without the batch that arrived then."""
        pairs = zip(self.batches, self.calls, strict=True)
        return Receiver(batches=[b for b, n in pairs if n < calls or (at and n == calls)])

    def content(self) -> Counter[Any]:
        """Return the sum of the batches, each counted once."""
        once: dict[int, list[Any]] = {}
        for number, changes in self.batches:
            assert repr(once.setdefault(number, changes)) == repr(changes), (
                "it comes again as it was"
            )
        assert [*once] == [*range(len(once))], "one after the other"
        found: Counter[Any] = Counter()
        for changes in once.values():
            for row, weight in changes:
                for shown in bag([row]):
                    found[shown] += weight
            assert not found or min(found.values()) >= 0
        return +found


class Process:
    """A database with a view that a sink or a subscription (`way`) reports."""

    def __init__(
        self, store: SqliteStore, seed: int, receiver: Receiver, level: Any, way: str
    ) -> None:
        random = Random(f"process {seed}")
        keep = random.choice([0, 3, 100])
        self.db = Database(store=store, durability=level, keep=keep)
        self.receiver = receiver
        try:
            self.sales = self.db.table(Sale, name="sales")
            self.view = random.choice([*VIEWS])(self.sales)
            self.sink: Any = (
                self.view.changes_to(receiver, name="told")
                if way == "sink"
                else self.view.subscribe(receiver.take, name="told", snapshot=True)
            )
        except BaseException:
            self.db.close()
            raise

    def change(self, random: Random) -> None:
        """Make a commit."""
        with self.db.transaction():
            for _ in range(random.randrange(1, 4)):
                rows = sorted(self.sales, key=repr)
                if rows and random.random() < 0.4:
                    self.sales.remove(random.choice(rows))
                else:
                    self.sales.add(Sale(random.choice(TOWNS), random.choice(PRICES)))

    def flush(self) -> None:
        """Tell, if the receiver is there."""
        with suppress(ConnectionError):
            (self.db if len(self.receiver.batches) % 2 else self.sink).flush()
            assert self.receiver.content() == bag(self.view)

    def check(self, random: Random) -> None:
        """Go on: all reported batches must add up to the view."""
        at = self.sink.position
        assert at is None or at.version <= self.db.version, "it was told of what is not there"
        self.flush()
        assert at is None or self.sink.position.batch in (at.batch, at.batch + 1)
        for _ in range(2):
            self.change(random)
            self.flush()


def live(seed: int, level: str, path: str, receiver: Receiver, way: str) -> None:
    """A life until it ends, or an error of the file ends it."""
    random = Random(seed)

    def begun() -> Process:
        connect = receiver.recording.connect
        store = SqliteStore(path, synchronous=synchronous, connect=connect)
        return Process(store, seed, receiver, level, way)

    synchronous: Any = random.choice(["normal", "full"])
    process = begun()
    try:
        for _ in range(STEPS):
            receiver.fails = random.random() < 0.2
            if random.random() < 0.6:
                process.change(random)
            if random.random() < 0.6:
                process.flush()
            if random.random() < 0.15:
                process.db.close()
                process = begun()
    finally:
        with suppress(DurabilityError):
            process.db.close()


def told_everywhere(seed: int, level: str, step: int = 1, way: str = "sink") -> int:
    """End a life at every `step`th call, by kill -9 or power loss; return the number of ends."""
    receiver = Receiver()
    with Folder() as folder:
        live(seed, level, f"{folder}/shop.db", receiver, way)
    disk, random, found = Disk(), Random(f"ends {seed}"), 0
    for number, call in enumerate(receiver.recording.calls, 1):
        disk.make(call)
        if (number + seed) % step:
            continue
        for kind, left in (("kill", disk.killed()), ("power", disk.without_power(random))):
            had = receiver.upto(number, at=random.random() < 0.5)
            with noted(f"seed {seed}, {level}, {way}: {kind} after call {number}"):
                go_on(left, seed, level, had, random, way, is_dark=kind == "power")
            found += 1
    return found


def go_on(
    left: Any, seed: int, level: str, had: Receiver, random: Random, way: str, *, is_dark: bool
) -> None:
    """Open the files that are left, and report the remaining batches."""
    with written(left) as path:
        try:
            process = Process(SqliteStore(str(path)), seed, had, level, way)
        except DurabilityError:
            assert is_dark and not had.batches, "nothing but the head of a file is left"
            return
        try:
            process.check(random)
        finally:
            process.db.close()
        process = Process(SqliteStore(str(path)), seed, had, level, way)
        before = len(had.batches)
        process.flush()
        process.db.close()
        assert len(had.batches) == before, "all has been told"


def refused_everywhere(seed: int, level: str, step: int = 1, way: str = "sink") -> int:
    """Fail every `step`th call, alone or with all later calls, which ends the life.

    Return the number of failures.
    """
    whole, found = Receiver(), 0
    with Folder() as folder:
        live(seed, level, f"{folder}/shop.db", whole, way)
    for at in range(seed % step, len(whole.recording.calls), step):
        random = Random(f"{seed} {at}")
        receiver = Receiver(Recording(fails=failing(at, random.choice([1, 10**9]))))
        with Folder() as folder, noted(f"seed {seed}, {level}, {way}: from call {at} on"):
            with suppress(DurabilityError, sqlite3.Error):
                live(seed, level, f"{folder}/shop.db", receiver, way)
            disk = Disk()
            for call in receiver.recording.calls:
                disk.make(call)
            if disk.killed():
                go_on(disk.killed(), seed, level, receiver, random, way, is_dark=True)
            found += 1
    return found
