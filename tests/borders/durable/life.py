"""A history with other events between the commits of its database.

Transactions fail, rows are refused, the group is flushed, another connection reads for a while or
checkpoints the log, and the database is closed and reopened, at last with other classes of rows.
All events are drawn from the seed; the commits are those of `history.states`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from reactive.errors import DurabilityError, TableError
from tests.borders.durable.history import LENGTH, Model, Order, Tables, commit, states, store

LEVELS = ("commit", "commit", "group", "exit")
Connect = Callable[..., sqlite3.Connection]


@dataclass(frozen=True, slots=True)
class Life:
    """The options of a life.

    later: the number of commits before the classes change, if they do.
    checkpoint: pages of the log that trigger a checkpoint; None: the default of the library.
    """

    seed: int
    level: str
    synchronous: Any
    keep: int
    later: int | None
    checkpoint: int | None

    def opened(self, path: str, connect: Connect, level: str, *, later: bool) -> Tables:
        """Open the database of the life."""
        there = store(path, synchronous=self.synchronous, connect=connect)
        return Tables(there, level, views=False, later=later, keep=self.keep)


def drawn_life(seed: int, level: str | None = None) -> Life:
    """Draw the life of a seed."""
    random = Random(f"life {seed}")
    return Life(
        seed,
        level or random.choice(LEVELS),
        random.choice(["normal", "full"]),
        random.choice([0, 0, 3, 100]),
        random.choice([None, random.randrange(LENGTH)]),
        random.choice([None, 3, 10, 30]),
    )


class Living:
    """Run a life.

    told: called with the number of commits that are acknowledged.
    changes: called before classes change.
    """

    def __init__(
        self,
        life: Life,
        path: str,
        connect: Connect,
        told: Callable[[int], object],
        changes: Callable[[], object] = lambda: None,
    ) -> None:
        self._life = life
        self._path = path
        self._connect = connect
        self._told = told
        self._changes = changes
        self._random = Random(f"events {life.seed}")
        self._model = Model()
        self._is_later = False
        self._wanted = states(life.seed)
        self._reading: tuple[sqlite3.Connection, list[Any]] | None = None
        self._following: list[Any] = []

    def live(self) -> None:
        """Run the life from the creation of the file to its closing."""
        random = Random(self._life.seed)
        self._open()
        for number in range(LENGTH):
            if number == self._life.later:
                self._close()
                self._changes()
                self._is_later = True
                self._open()
            for _ in range(self._random.choice([0, 0, 1, 2])):
                self._random.choice(EVENTS)(self)
            commit(self._tables, self._model, random)
            if self._life.level == "commit":
                self._told(number + 1)
        self._close()
        if self._reading is not None:
            self._read()

    def give_up(self) -> None:
        """Release the database and the reader after an error."""
        with suppress(DurabilityError, AttributeError):
            self._tables.db.close()
        if self._reading is not None:
            self._reading[0].close()

    def _open(self) -> None:
        life = self._life
        self._tables = life.opened(self._path, self._connect, life.level, later=self._is_later)
        if life.checkpoint is not None:
            connection = self._tables.db._engine.journal.store._connection
            connection.execute(f"pragma wal_autocheckpoint = {life.checkpoint}")
        if life.level == "commit":
            tables = self._tables
            self._following = [
                table.subscribe(lambda delta: self._told(delta.version))
                for table in (tables.orders, tables.words, tables.parts, tables.patterns)
            ]

    def _close(self) -> None:
        for each in self._following:
            each.close()
        self._tables.db.close()
        self._told(self._model.version)

    def _reopen(self) -> None:
        self._close()
        self._open()

    def _flush(self) -> None:
        self._tables.db.flush()
        self._told(self._model.version)

    def _fail(self) -> None:
        with suppress(ZeroDivisionError), self._tables.db.transaction():
            self._tables.words.add("never", 3)
            self._tables.orders.upsert(self._tables.order(Order(99, None, 1.0)))
            _ = 1 / 0

    def _be_refused(self) -> None:
        with suppress(TableError), self._tables.db.transaction():
            self._tables.words.add("never")
            self._tables.words.remove("nowhere")

    def _wait(self) -> None:
        if self._life.level == "group":
            time.sleep(0.015)

    def _checkpoint(self) -> None:
        mode = self._random.choice(["passive", "full", "restart", "truncate"])
        other = self._connect(self._path, timeout=0)
        with closing(other):
            other.execute(f"pragma wal_checkpoint({mode})")

    def _read(self) -> None:
        """Begin to read, or check that the reader still sees the same rows."""
        if self._reading is not None:
            reader, seen = self._reading
            assert _seen(reader) == seen
            reader.close()
            self._reading = None
            return
        reader = self._connect(self._path, isolation_level=None, timeout=0)
        reader.execute("begin")
        seen = _seen(reader)
        orders, _, _, _, version = self._wanted[seen[0][0]]
        assert dict(seen[1:]) == {k: o.total for k, o in orders.items()}
        assert version == self._model.version or self._life.level != "commit"
        self._reading = reader, seen


EVENTS: tuple[Callable[[Living], None], ...] = (
    Living._reopen,
    Living._flush,
    Living._fail,
    Living._be_refused,
    Living._wait,
    Living._checkpoint,
    Living._read,
    Living._read,
)


def _seen(reader: sqlite3.Connection) -> list[Any]:
    """Return the version and the orders that another program reads."""
    version = reader.execute("select value from reactive_state where name = 'version'").fetchall()
    return version + reader.execute("select id, total from orders order by id").fetchall()
