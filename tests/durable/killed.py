"""Histories that are killed at every call of SQLite, and what is there when they are opened again.

A history runs in a child of this process, which tells of each commit that has returned (of a group,
of each flush) through a pipe, and kills itself before a call, or after a COMMIT.

What is opened again is a prefix with every commit that was told of; it goes on from there to the
end.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from tests.durable.faulty import Faults, die
from tests.durable.history import LENGTH, Tables, go_on, states, store

LEVELS = ("commit", "commit", "group", "exit")
GOES_ON = 4
"""Of so many kills, one after which views are looked at, and the history goes on."""


def killed_everywhere(seed: int, level: str | None = None, step: int = 1) -> int:
    """Run a history to the end of each of its calls; how many kills there were."""
    level = level or Random(seed).choice(LEVELS)
    wanted, kills = states(seed), 0
    for at, after in _moments(seed, level, step):
        with _folder() as folder:
            path = str(folder / "shop.db")
            told = _in_child(path, seed, level, at, after)
            _check(path, seed, wanted, told, (seed, level, at, after), goes_on=at % GOES_ON == 0)
        kills += 1
    return kills


def _moments(seed: int, level: str, step: int) -> Iterator[tuple[int, bool]]:
    faults = Faults(0, die)
    with _folder() as folder:
        tables = Tables(store(str(folder / "shop.db"), connect=faults.connect), level, views=False)
        _run(tables, seed, level, lambda _: None)
        tables.db.close()
    commits = set(faults.commits)
    for at in range(1 + seed % step, faults.calls + 1, step):
        yield at, False
        if at in commits:
            yield at, True


def _run(tables: Tables, seed: int, level: str, told: Any) -> None:
    """Tell of what is acknowledged."""
    if level == "commit":
        go_on(tables, seed, 0, told)
        return
    flushes = Random(seed)

    def maybe(number: int) -> None:
        if flushes.random() < 0.4:
            tables.db.flush()
            told(number)

    go_on(tables, seed, 0, maybe)
    tables.db.close()
    told(LENGTH)


def _in_child(path: str, seed: int, level: str, at: int, after: bool) -> int:
    """Run it in a child that is killed; the last commit that it has told of."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _as_child(path, seed, level, at, after, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told[-1] if told else 0


def _as_child(path: str, seed: int, level: str, at: int, after: bool, writing: int) -> None:
    try:
        faults = Faults(at, die, after=after)
        tables = Tables(store(path, connect=faults.connect), level, views=False)
        _run(tables, seed, level, lambda number: os.write(writing, bytes([number])))
    finally:
        os._exit(0)


def _check(path: str, seed: int, wanted: list[Any], told: int, of: Any, *, goes_on: bool) -> None:
    tables = Tables(store(path), views=False)
    try:
        found = tables.state()
        assert found in wanted, f"{of}: no prefix: {found}"
        done = wanted.index(found)
        assert done >= told, f"{of}: commit {told} was acknowledged, and {done} is the last one"
        if goes_on:
            tables.make_views()
            tables.check_views()
            go_on(tables, seed, done, lambda _: None)
            assert tables.state() == wanted[-1], of
            tables.check_views()
    finally:
        tables.db.close()


class _folder:
    """A folder for a moment."""

    def __enter__(self) -> Path:
        self._path = tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        return Path(self._path)

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self._path)
