"""Lives of sinks of `write_to` on a durable database, which end at every write to its files.

The target stores its own position. The states of the target are kept for each life: after a batch
was staged, and after it was delivered. An end leaves the files of the database after one of their
calls, and the target in its state at that call; the next process must write exactly the missing
batches.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq

from reactive import Database, DurabilityError
from reactive.borders.durable.sqlite_store import SqliteStore
from reactive.borders.sinks.durable_outbox import ChangeBatch, ChangedRows, Position
from reactive.engine.collections.zset import Pair, consolidate
from spark_backend import ChangesFolder, RowsFolder
from tests.borders.durable.crashed import Folder, noted, written
from tests.borders.durable.disk import Disk
from tests.borders.durable.recording import Recording
from tests.borders.sinks.histories import PRICES, TOWNS, VIEWS, Sale, bag, named, the_rows
from tests.borders.sinks.histories import Town as NamedTown

STEPS = 14
"""Steps of a life."""
CLASSES: dict[Any, type] = {the_rows: Sale, named: NamedTown}
"""Row classes of the views whose query does not state them."""


class SqlTarget:
    """A table of SQLite with the rows of a view, and one with the position.

    Both change in one transaction.
    """

    def __init__(self, folder: Path, row_type: Any) -> None:
        self._path = folder / "target.db"
        with closing(self._connect()) as sql, sql:
            sql.execute("create table if not exists rows (row text primary key, weight int)")
            sql.execute("create table if not exists staged (row text, weight int)")
            sql.execute("create table if not exists position (number int, version int, done int)")
        self._made: dict[str, Any] = {}

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path)

    def open(self, plan: str) -> Position | None:
        with closing(self._connect()) as sql:
            found = sql.execute("select number, version from position").fetchone()
        return None if found is None else Position(*found)

    def difference(self, rows: Iterable[Pair]) -> ChangedRows:
        with closing(self._connect()) as sql:
            query = "select row, weight from rows union all select row, weight from staged"
            there = [(text, -weight) for text, weight in sql.execute(query)]
        pairs = [(self._text(row), weight) for row, weight in rows]
        return [(self._made.get(t, t), n) for t, n in consolidate([*pairs, *there])]

    def stage(self, batch: ChangeBatch) -> None:
        with closing(self._connect()) as sql, sql:
            at = sql.execute("select number from position").fetchone()
            assert batch.number == (0 if at is None else at[0] + 1)
            assert sql.execute("select count(*) from staged").fetchone() == (0,)
            sql.execute("delete from position")
            sql.execute("insert into position values (?, ?, 0)", (batch.number, batch.version))
            lines = [(self._text(row), weight) for row, weight in batch.changes]
            sql.executemany("insert into staged values (?, ?)", lines)

    def deliver(self) -> None:
        with closing(self._connect()) as sql, sql:
            sql.execute(
                "insert into rows select row, sum(weight) from staged where true group by row "
                "on conflict do update set weight = rows.weight + excluded.weight"
            )
            assert not sql.execute("select * from rows where weight < 0").fetchall()
            sql.execute("delete from rows where weight = 0")
            sql.execute("delete from staged")
            sql.execute("update position set done = 1")

    def content(self) -> Counter[Any]:
        with closing(self._connect()) as sql:
            return Counter(dict(sql.execute("select row, weight from rows").fetchall()))

    def _text(self, row: Any) -> str:
        if type(row) is str and row in self._made:
            return row
        text = row if type(row) is str and row.startswith("[") else text_of(row)
        self._made.setdefault(text, row)
        return text


def text_of(row: Any) -> str:
    """A row as text; rows that are alike are the same."""
    ((shown, _),) = bag([row]).items()
    return json.dumps(shown)


def in_rows(folder: Path) -> Counter[Any]:
    """Return the rows that a folder holds."""
    if not (folder / "out" / "_spark_metadata" / "0").exists():
        return Counter()
    table = RowsFolder(folder / "out").read()
    return bag(zip(*(table.column(n).to_pylist() for n in table.column_names), strict=True))


def in_changes(folder: Path) -> Counter[Any]:
    """Return the rows that the batches of a folder add up to."""
    found: Counter[Any] = Counter()
    for path in sorted(folder.glob("out/batch=*/*.parquet")):
        table = pq.ParquetFile(path).read()
        for *row, weight in zip(*(c.to_pylist() for c in table.columns), strict=True):
            ((shown, _),) = bag([tuple(row)]).items()
            found[shown] += weight
        assert not found or min(found.values()) >= 0, "nothing goes that is not there"
    return +found


KINDS: dict[str, tuple[Callable[[Path, Any], Any], Callable[[Path], Counter[Any]]]] = {
    "rows": (lambda at, of: RowsFolder(at / "out", row_type=of), in_rows),
    "changes": (lambda at, of: ChangesFolder(at / "out", row_type=of), in_changes),
    "sql": (SqlTarget, lambda at: SqlTarget(at, None).content()),
}
"""Each kind of target: a function that makes it, and one that reads its contents."""


class Process:
    """A database with a view that is written to a folder."""

    def __init__(self, store: SqliteStore, seed: int, kind: str, folder: Path, level: Any) -> None:
        random = Random(f"process {seed}")
        self.kind, self.folder = kind, folder
        self.db = Database(store=store, durability=level, keep=random.choice([0, 3]))
        try:
            self.sales = self.db.table(Sale, name="sales")
            make_view = random.choice([*VIEWS])
            self.view = make_view(self.sales)
            of = VIEWS[make_view] or CLASSES[make_view]
            self.target = KINDS[kind][0](folder, of)
            self.sink = self.view.write_to(self.target)
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
        """Flush the sink, and check the target."""
        self.sink.flush()
        rows = Counter(map(text_of, self.view)) if self.kind == "sql" else bag(self.view)
        assert KINDS[self.kind][1](self.folder) == rows


class Noting:
    """Copy a target after each of its steps.

    recording: the calls on the files of the database.
    """

    def __init__(self, recording: Recording, folder: Path, copies: Path) -> None:
        self._recording, self._folder, self._copies = recording, folder, copies
        self.states: list[tuple[int, Path]] = []
        self.note()

    def note(self) -> None:
        """Copy the target as it is."""
        copy = self._copies / f"{len(self.states)}"
        shutil.copytree(self._folder, copy)
        self.states.append((len(self._recording.calls), copy))

    def watch(self, target: Any) -> None:
        """Copy it after each step of a target."""
        for name in ("stage", "deliver"):
            step = getattr(target, name)

            def noting(*given: Any, _step: Any = step) -> Any:
                found = _step(*given)
                self.note()
                return found

            setattr(target, name, noting)

    def at(self, calls: int) -> list[Path]:
        """Return the states of the target at a call: at most two, before and after a batch."""
        before = [path for n, path in self.states if n < calls][-1:]
        return before + [path for n, path in self.states if n == calls][-1:]


def live(seed: int, level: str, kind: str, path: str, noting: Noting, recording: Recording) -> None:
    """A life until it ends."""
    random = Random(seed)
    synchronous: Any = random.choice(["normal", "full"])

    def begun() -> Process:
        store = SqliteStore(path, synchronous=synchronous, connect=recording.connect)
        process = Process(store, seed, kind, noting._folder, level)
        noting.watch(process.target)
        return process

    process = begun()
    try:
        for _ in range(STEPS):
            if random.random() < 0.6:
                process.change(random)
            if random.random() < 0.5:
                process.flush()
            if random.random() < 0.15:
                process.db.close()
                process = begun()
    finally:
        process.db.close()


def written_everywhere(seed: int, level: str, kind: str, step: int = 1) -> int:
    """End a life at every `step`th call, by kill -9 or a loss of power; return how many ended."""
    recording = Recording()
    with Folder() as folder, tempfile.TemporaryDirectory() as beside:
        (at := Path(beside) / "target").mkdir()
        (copies := Path(beside) / "copies").mkdir()
        noting = Noting(recording, at, copies)
        live(seed, level, kind, f"{folder}/shop.db", noting, recording)
        disk, random, found = Disk(), Random(f"ends {seed}"), 0
        for number, call in enumerate(recording.calls, 1):
            disk.make(call)
            if (number + seed) % step:
                continue
            for end, left in (("kill", disk.killed()), ("power", disk.without_power(random))):
                had = random.choice(noting.at(number))
                text = f"seed {seed}, {level}, {kind}: {end} after call {number}, {had.name}"
                with noted(text), tempfile.TemporaryDirectory() as there:
                    shutil.copytree(had, there, dirs_exist_ok=True)
                    go_on(left, seed, level, kind, Path(there), random)
                found += 1
        return found


def go_on(left: Any, seed: int, level: str, kind: str, had: Path, random: Random) -> None:
    """Open the files that are left, and write the missing batches."""
    is_new = not KINDS[kind][1](had)
    with written(left) as path:
        with suppress(DurabilityError):
            process = Process(SqliteStore(str(path)), seed, kind, had, level)
            try:
                at = process.sink.position
                assert at is None or at.version <= process.db.version, "the target is ahead"
                process.flush()
                last = process.sink.position
                assert at is None or last.batch in (at.batch, at.batch + 1)  # type: ignore[union-attr]
                for _ in range(2):
                    process.change(random)
                    process.flush()
                last = process.sink.position
            finally:
                process.db.close()
            process = Process(SqliteStore(str(path)), seed, kind, had, level)
            process.flush()
            assert process.sink.position == last, "nothing is missing"
            process.db.close()
            return
        assert is_new, "nothing but the head of a file is left"
