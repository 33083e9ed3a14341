"""Histories with a failing SQLite call, a failing call on the files, or an exception from outside.

After each failure the tables must equal the file, which holds all of a commit or nothing of it, and
the views must equal their queries over the tables. Then the history continues.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeVar

from reactive.errors import DurabilityError
from tests.borders.durable.crashed import failing, written
from tests.borders.durable.disk import Disk
from tests.borders.durable.faulty import Faults, full
from tests.borders.durable.history import LENGTH, Model, Tables, drawn, store
from tests.borders.durable.recording import Recording
from tests.moments import Moments


class Stop(BaseException):
    """Exception raised at any moment."""


def raised_everywhere(seed: int, step: int = 1) -> int:
    """Raise at each SQLite call of a history; return the number of runs."""
    calls = _run(seed, Faults(0, full)).calls
    for at in range(1 + seed % step, calls + 1, step):
        _run(seed, Faults(at, full))
        _run(seed, Faults(at, full, after=True))
    return 2 * len(range(1 + seed % step, calls + 1, step))


def refused_everywhere(seed: int, step: int = 1) -> int:
    """Fail each call on the files, alone or with the next calls of its commit; return the number.

    The disk is full, or a sync fails.
    """
    recording = Recording()
    _run(seed, recording)
    calls, found = recording.tried, 0
    for at in range(seed % step, calls, step):
        for many in (1, 5):
            _run(
                seed,
                Recording(fails=failing(at, many)),
                synchronous=("normal", "full")[(at + seed) % 2],
            )
            found += 1
    return found


class Connecting(Protocol):
    """Function that makes the connections of a store."""

    def connect(self, *arguments: Any, **options: Any) -> Any: ...


Faulty = TypeVar("Faulty", bound=Connecting)


def _run(seed: int, faults: Faulty, synchronous: Any = "normal") -> Faulty:
    folder = tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
    path = f"{folder}/shop.db"
    try:
        tables = _opened(path, faults, synchronous)
        model, random, refused = Model(), Random(seed), False
        for _ in range(LENGTH):
            act, note = drawn(model, random)
            try:
                act(tables)
            except DurabilityError as error:
                refused = True
                assert "shop.db" in str(error)
                if "\n  close the database" in str(error):  # the outcome is unknown
                    tables = _again(tables, path)
                    if tables.db.version > model.version:
                        _noted(model, note)
                elif isinstance(faults, Recording):
                    _check_killed(faults, model)
            else:
                _noted(model, note)
            assert tables.state() == model.state()
        tables.check_views()
        _close(tables)
        tables = Tables(store(path))
        assert tables.state() == model.state(), refused
        tables.check_views()
        tables.db.close()
    finally:
        shutil.rmtree(folder)
    return faults


def _check_killed(recording: Recording, model: Model) -> None:
    """Raise if the refused commit were there after a `kill -9`."""
    disk = Disk()
    for call in recording.calls:
        disk.make(call)
    with written(disk.killed()) as path:
        tables = Tables(store(str(path)), views=False)
        assert tables.state() == model.state()
        tables.db.close()


def _noted(model: Model, note: Callable[[], None]) -> None:
    note()
    model.version += 1


def _opened(path: str, faults: Connecting, synchronous: Any) -> Tables:
    """Opened, if need be several times."""
    for _ in range(5):
        try:
            return Tables(store(path, synchronous=synchronous, connect=faults.connect))
        except DurabilityError:
            pass
    return Tables(store(path, synchronous=synchronous, connect=faults.connect))


def _again(tables: Tables, path: str) -> Tables:
    _close(tables)
    return Tables(store(path))


def _close(tables: Tables) -> None:
    try:
        tables.db.close()
    except DurabilityError:
        tables.db._engine.journal.store.close()


def interrupted(seed: int, times: int, level: str = "commit") -> int:
    """Interrupt the commits of a history at drawn lines; return the number of interrupts."""
    folder, came = tempfile.mkdtemp(), 0
    path = f"{folder}/shop.db"
    tables, model, random = Tables(store(path), level), Model(), Random(seed)
    try:
        for _ in range(times):
            act, note = drawn(model, random)
            stop = Moments(random.randint(0, 300), _stop)
            before = tables.db.version
            try:
                with stop:
                    act(tables)
            except Stop:
                came += 1
            if tables.db.version > before:
                _noted(model, note)
            assert tables.state() == model.state(), stop.where
            tables.check_views()
            if random.random() < 0.1:
                tables.db.close()
                tables = Tables(store(path), level)
                assert tables.state() == model.state(), stop.where
    finally:
        tables.db.close()
        shutil.rmtree(folder)
    return came


def _stop() -> None:
    raise Stop
