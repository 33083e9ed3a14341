"""Processes that are killed in the middle of a life, to check the disk model of `crashed.py`.

A life runs in a child process, which reports each call on the files, and each acknowledged commit,
through a pipe, and is killed after one of the calls. The files must then equal, byte by byte, the
files that the disk model computes from these calls. In every other child a second connection reads
the file, and continues to read while it is reopened.
"""

from __future__ import annotations

import os
import pickle
import signal
import sqlite3
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.borders.durable.crashed import Folder, Lived, check
from tests.borders.durable.disk import Disk
from tests.borders.durable.history import states
from tests.borders.durable.life import Life, Living, drawn_life
from tests.borders.durable.recording import Recording


def killed(seed: int, level: str | None = None, step: int = 1) -> int:
    """Kill a process after every `step`th call of a life; how many were."""
    life = drawn_life(seed, level)
    ends = range(1 + seed % step, len(Lived(life).calls) + 1, step)
    found = 0
    for number, at in enumerate(ends):
        with Folder() as folder:
            found += (_killed_read if number % 2 else _killed)(life, at, folder / "shop.db")
    return found


def _killed(life: Life, at: int, path: Path) -> bool:
    """Return True if the life was killed before it ended; readers and threads can shorten it."""
    disk = Disk()
    was_killed, told, later = _in_child(life, at, path, disk.make, lambda: None)
    left = disk.killed()
    files = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    assert {name: files[name] for name in files if not name.endswith(("-shm", "-lock"))} == left
    check(life, states(life.seed), told, path, later=later, resumes=True)
    return was_killed


def _killed_read(life: Life, at: int, path: Path) -> bool:
    """Kill a life with a reader.

    Only SQLite opens the files here: closing one otherwise releases its locks.
    """
    readers: list[tuple[sqlite3.Connection, list[Any]]] = []

    def read() -> None:
        if not readers:
            reader = sqlite3.connect(path, isolation_level=None)
            reader.execute("begin")
            readers.append((reader, _orders(reader)))

    was_killed, told, later = _in_child(life, at, path, lambda _: None, read)
    check(life, states(life.seed), told, path, later=later, resumes=False)
    for reader, seen in readers:
        assert _orders(reader) == seen
        reader.close()
    check(life, states(life.seed), told, path, later=later, resumes=True)
    return was_killed


def _orders(reader: sqlite3.Connection) -> list[Any]:
    return reader.execute("select * from orders").fetchall()


def _in_child(
    life: Life, at: int, path: Path, made: Callable[[Any], object], acknowledged: Callable[[], None]
) -> tuple[bool, int, bool]:
    """Run the life in a child process, and kill it.

    Return True if the kill hit it, its last reported commit, and True if classes have changed.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _as_child(life, at, path, writing)
    os.close(writing)
    told, later = 0, False
    with os.fdopen(reading, "rb") as pipe:
        while pipe.peek(1):
            kind, value = pickle.load(pipe)
            if kind == "call":
                made(value)
            elif kind == "told":
                told = value
                acknowledged()
            else:
                later = True
    ended = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(ended) or not ended, "the child has failed"
    return os.WIFSIGNALED(ended), told, later


def _as_child(life: Life, at: int, path: Path, writing: int) -> None:
    calls = 0

    def tell(kind: str, value: Any = None) -> None:
        os.write(writing, pickle.dumps((kind, value)))

    def made(call: Any) -> None:
        nonlocal calls
        calls += 1
        tell("call", call)
        if calls == at:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        connect = Recording(made).connect
        told = lambda number: tell("told", number)  # noqa: E731
        Living(life, str(path), connect, told, lambda: tell("later")).live()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
