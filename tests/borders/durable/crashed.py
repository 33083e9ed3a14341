"""Lives of databases that end at every write, and the state that is found on reopening.

One run of a life records the calls of SQLite on the files (`recording.py`) and the commits that are
acknowledged at each call. `disk.py` computes from the calls the files that an end leaves:

    kill -9, after a call or in the middle of a write     a prefix, with all acknowledged commits
    loss of power, synchronous="full"                     the same
    loss of power, synchronous="normal"                   a prefix
    kill -9, or close, after a call has failed            a prefix, with all acknowledged commits

SQLite reads every file that is left. Files whose SQL tables have equal contents are opened once as
a database, with the classes of rows; some files more are opened to make further commits.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from reactive.errors import DurabilityError
from tests.borders.durable.disk import Disk, Left
from tests.borders.durable.history import Model, Order, Tables, commit, drawn, states
from tests.borders.durable.life import Life, Living, drawn_life
from tests.borders.durable.recording import FAILS_TO_SYNC, FULL, Call, Fails, Recording, never

CUT = 4
"""One write in `CUT` is also cut off by a kill in its middle."""
DARK = 2
"""One call in `DARK` is also followed by a power loss."""
RESUMED = 24
"""One end in `RESUMED` is inspected closely, and further commits are made."""


class Lived:
    """The calls of a life, and the commits acknowledged at each call.

    fails: decides which calls fail; the life ends after a failure (`Recording.fails`).
    """

    def __init__(self, life: Life, fails: Fails = never) -> None:
        self.life = life
        self.changed: int | None = None
        """The number of calls after which classes have changed."""
        self._told = [(0, 0)]
        self.failed: int | None = None
        """The number of calls after which there was an error."""
        recording = Recording(fails=fails)

        def told(number: int) -> None:
            if number > self._told[-1][1]:
                self._told.append((len(recording.calls), number))

        def changes() -> None:
            self.changed = len(recording.calls)

        with Folder() as folder:
            path = str(folder / "shop.db")
            living = Living(life, path, recording.connect, told, changes)
            try:
                living.live()
            except (DurabilityError, sqlite3.Error):
                self.failed = len(recording.calls)
                living.give_up()
        self.calls = recording.calls

    def acknowledged(self, calls: int) -> int:
        """The number of commits that are, after a number of calls."""
        return self._told[bisect_right(self._told, calls, key=lambda told: told[0]) - 1][1]


def crashed_everywhere(seed: int, level: str | None = None, step: int = 1) -> Counter[str]:
    """End a life at every `step`th of its calls; return the number of ends by kind."""
    lived = Lived(drawn_life(seed, level))
    found, ends = Counter[str](calls=len(lived.calls)), Ends(lived)
    for kind, at, left in _ends(lived, step):
        with noted(f"{lived.life}: {kind} after call {at} of {len(lived.calls)}"):
            ends.check(kind, at, left)
        found[kind] += 1
    return found


def failed_everywhere(seed: int, step: int = 1) -> int:
    """Fail every `step`th call of a life, alone or with all later calls; return their number."""
    life, found = drawn_life(seed), 0
    for at in range(seed % step, len(Lived(life).calls), step):
        for many in (1, 10**9):
            lived = Lived(life, failing(at, many))
            disk, ends = Disk(), Ends(lived)
            for number, call in enumerate(lived.calls):
                disk.make(call)
                if number + 1 in (lived.failed, len(lived.calls)):
                    with noted(f"{life}: {many} calls from {at} on failed"):
                        ends.check("kill", number + 1, disk.killed())
            found += 1
    return found


def failing(at: int, many: int) -> Fails:
    """Fail `many` calls from call `at` on: the disk is full, or a sync fails."""

    def fails(number: int, call: Call) -> int:
        if not at <= number < at + many:
            return 0
        return FAILS_TO_SYNC if call[0] == "sync" else FULL

    return fails


def _ends(lived: Lived, step: int) -> Iterator[tuple[str, int, Left]]:
    disk, random, seed = Disk(), Random(lived.life.seed), lived.life.seed
    for at, call in enumerate(lived.calls):
        if call[0] == "write" and (at + seed) % (CUT * step) == 0:
            yield "cut", at, disk.killed(_cut(call, random))
        disk.make(call)
        if (at + seed) % step == 0:
            yield "kill", at + 1, disk.killed()
        if (at + seed) % (DARK * step) == 0:
            yield "power", at + 1, disk.without_power(random)


def _cut(call: Call, random: Random) -> Call:
    *head, data = call
    return (*head, data[: random.randrange(len(data))])


class Ends:
    """Check that each state left by an ended life is a prefix of its commits."""

    def __init__(self, lived: Lived) -> None:
        self._lived = lived
        self._wanted = states(lived.life.seed)
        self._known: dict[tuple[str, bool], int] = {}
        """Number of commits in a file, by the contents of its SQL tables."""

    def check(self, kind: str, at: int, left: Left) -> None:
        """Raise if it is none, or not as long as is acknowledged."""
        lived = self._lived
        later = lived.changed is not None and (at > lived.changed or at % 2 == 0)
        is_safe = kind != "power" or lived.life.synchronous == "full"
        told, resumes = lived.acknowledged(at) if is_safe else 0, at % RESUMED == 0
        with written(left) as path:
            contents = _contents(path)
        known = self._known.get((contents, later))
        if known is None or resumes:
            with written(left) as path:
                known = check(lived.life, self._wanted, told, path, later=later, resumes=resumes)
            self._known[contents, later] = known
        assert known >= told, f"commit {told} was acknowledged, and {known} is the last one"


def _contents(path: Path) -> str:
    """Return the contents of the SQL tables of a file."""
    other = sqlite3.connect(path)
    tables = other.execute("select name, sql from sqlite_master order by name").fetchall()
    names = [name for name, sql in tables if sql and sql.startswith("CREATE TABLE")]
    rows = [other.execute(f'select * from "{name}"').fetchall() for name in names]
    other.close()
    return repr((tables, rows))


def check(
    life: Life, wanted: list[Any], told: int, path: Path, *, later: bool, resumes: bool
) -> int:
    """Raise unless a file is the state after some commit, not before the acknowledged one.

    Return the number of commits in the file.
    """
    tables = _opened(life, path, later=later)
    try:
        found = tables.state()
        assert found in wanted, f"no prefix: {found}"
        done = wanted.index(found)
        assert done >= told, f"commit {told} was acknowledged, and {done} is the last one"
        kept = [past.version for past in tables.db.history(since=0)]
        assert kept == [*range(done - len(kept) + 1, done + 1)], kept
        if resumes:
            tables.make_views()
            _resume(tables, life.seed, wanted, done)
            tables.check_views()
            resumed = tables.state()
    finally:
        tables.db.close()
    if resumes:
        _check_whole(path)
        tables = _opened(life, path, later=later)
        assert tables.state() == resumed
        tables.db.close()
    return done


def _opened(life: Life, path: Path, *, later: bool) -> Tables:
    return life.opened(str(path), sqlite3.connect, "commit", later=later)


def _resume(tables: Tables, seed: int, wanted: list[Any], done: int) -> None:
    """Make the commit that is next."""
    if done + 1 == len(wanted):
        tables.orders.upsert(tables.order(Order(1000, "Rom", 1.0)))
        return
    model, random = Model(), Random(seed)
    for _ in range(done):
        _, note = drawn(model, random)
        note()
        model.version += 1
    commit(tables, model, random)
    assert tables.state() == wanted[done + 1]


def _check_whole(path: Path) -> None:
    other = sqlite3.connect(path)
    assert other.execute("pragma integrity_check").fetchall() == [("ok",)]
    other.close()


@contextmanager
def noted(of: str) -> Iterator[None]:
    """Add a note with the case to an error of the block."""
    try:
        yield
    except BaseException as error:
        error.add_note(of)
        raise


@contextmanager
def written(left: Left) -> Iterator[Path]:
    """The database that files are, in a folder for a moment."""
    with Folder() as folder:
        for name, held in left.items():
            (folder / name).write_bytes(held)
        yield folder / "shop.db"


class Folder:
    """A folder for a moment, in memory where that can be."""

    def __enter__(self) -> Path:
        self._path = tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        return Path(self._path)

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self._path)
