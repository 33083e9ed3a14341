"""An error at every call of the connection, an exception from outside at every moment, kill -9.

Whatever happens, tables and file agree as soon as anybody can look: `python -m
tests.borders.two_commits COUNT SEED` does it at all moments.
"""

from __future__ import annotations

import gc
import random
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reactive import TransactionError
from tests.borders.two_commits.shop import Faulty, Order, Shop
from tests.borders.two_commits.test_two_commits import Refused, change
from tests.budget import cases, sampled, seeds, stride
from tests.moments import Moments

ROOT = Path(__file__).parent.parent.parent.parent
MOMENTS = 61
"""Every so manieth one is looked at in the tests."""
STEPS = 40
TWICE = (20, 40, 41)
"""Histories with an exception from outside while a refusal by SQL is handled."""


class Lost(ConnectionError):
    """The connection is gone."""


class TimeLimit(Exception):
    """Exception raised by a signal handler."""


def ring(*given: Any) -> None:
    raise TimeLimit


def lose() -> None:
    raise Lost


def refuse() -> None:
    raise sqlite3.OperationalError("no such thing")


def interrupt() -> None:
    raise KeyboardInterrupt


def signalled() -> None:
    signal.raise_signal(signal.SIGALRM)


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


ERRORS = (Lost, sqlite3.Error, TransactionError, KeyboardInterrupt, TimeLimit, Refused)


ACTS: list[Callable[[], object]] = [int, int, lose, refuse, interrupt, signalled]


def buy(shop: Shop, sql: Any, *, fails: bool = False) -> None:
    """A transaction of two orders, and a note."""
    with shop.db.transaction(commit_with=sql):
        shop.put(Order(1, "bob", 7), sql)
        shop.put(Order(2, "bob", 6), sql)
        shop.notes.add("bought")
        if fails:
            raise Refused


def right(shop: Shop, old: Any, new: Any, *, left: bool = False) -> None:
    """Check that all of the transaction is there, or none, and that the next transaction works.

    `left` allows that the library did not learn the outcome: the order exists, but not the note.
    """
    gc.collect()
    orders = Counter(shop.read())
    assert orders in (old[0], new[0])
    assert left or shop.state() in (old, new)
    shop.check()
    assert shop.db.in_doubt == {}
    for number in (8, 9):
        with shop.db.transaction(commit_with=shop.sql):
            shop.put(Order(number, "eve", 5))
        shop.check()
    rest = Counter({Order(8, "eve", 5): 1, Order(9, "eve", 5): 1})
    assert Counter(shop.orders) == (orders + rest)


def states(tmp_path: Path) -> tuple[Any, Any]:
    """Return the states before and after the purchase."""
    shop = made(tmp_path / "states.db")
    old = shop.state()
    buy(shop, shop.sql)
    new = shop.state()
    shop.close()
    return old, new


def made(file: Path) -> Shop:
    file.unlink(missing_ok=True)
    shop = Shop(file)
    with shop.db.transaction(commit_with=shop.sql):
        shop.put(Order(1, "ann", 5))
    return shop


@sampled
@pytest.mark.parametrize("act", [lose, refuse, interrupt, signalled, ctrl_c])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_error_at_any_call_of_the_connection(
    tmp_path: Path, act: Callable[[], object], after: bool, fails: bool
) -> None:
    was = signal.signal(signal.SIGALRM, ring)
    old, new = states(tmp_path)
    try:
        at = 0
        while True:
            shop = made(tmp_path / "shop.db")
            faulty = Faulty(shop.sql, at, act, after=after)
            with suppress(*ERRORS):
                buy(shop, faulty, fails=fails)
            if faulty.calls <= at:
                break
            if faulty.names[at] == "rollback":
                shop.sql.rollback()  # the transaction failed, and its owner knows
            right(shop, old, new, left=faulty.names[at] == "commit")
            shop.close()
            at += 1
        assert at == 3
    finally:
        signal.signal(signal.SIGALRM, was)


def test_ctrl_c_in_the_middle_of_the_commit_comes_when_both_have_committed(tmp_path: Path) -> None:
    for after in (False, True):
        shop = made(tmp_path / "shop.db")
        with pytest.raises(KeyboardInterrupt):
            buy(shop, Faulty(shop.sql, 0, ctrl_c, after=after, of="commit"))
        assert list(shop.notes) == ["bought"] and len(shop.orders) == 2
        assert shop.db._engine.broken is None
        shop.check()
        shop.close()


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_from_outside_at_any_moment(tmp_path: Path, fails: bool) -> None:
    assert moments(tmp_path, fails, stride(MOMENTS, 2)) > 200


def moments(tmp_path: Path, fails: bool, stride: int, first: int = 0) -> int:
    """Interrupt it at moments that are so far from each other; the last one there is."""
    old, new = states(tmp_path)
    moment, where = first, "the first"
    while where:
        shop = made(tmp_path / "shop.db")
        with Moments(moment, interrupt) as at, suppress(*ERRORS):
            buy(shop, shop.sql, fails=fails)
        where = at.where or ""
        try:
            right(shop, old, new, left=True)
        except BaseException as error:
            error.add_note(f"moment {moment}, {where}")
            raise
        shop.close()
        moment += stride
    return moment


class Twice:
    """Refuse a commit, then raise an exception from outside while the refusal is handled."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.calls: list[str] = []

    def commit(self) -> None:
        self.calls.append("commit")
        if len(self.calls) == 1:
            raise sqlite3.IntegrityError
        self.connection.commit()

    def rollback(self) -> None:
        self.calls.append("rollback")
        if len(self.calls) == 2:
            raise KeyboardInterrupt
        self.connection.rollback()


def test_what_was_broken_off_twice_is_no_part_of_the_next_transaction(tmp_path: Path) -> None:
    shop = made(tmp_path / "shop.db")
    twice = Twice(shop.sql)
    with pytest.raises(KeyboardInterrupt), shop.db.transaction(commit_with=twice):
        shop.put(Order(2, "bob", 6))
    assert shop.sql.in_transaction
    with shop.db.transaction(commit_with=twice):
        shop.put(Order(3, "cy", 7))
    assert twice.calls == ["commit", "rollback", "rollback", "commit"]
    assert {order.id for order in shop.orders} == {1, 3}
    shop.check()
    shop.close()


PROGRAM = """
import os, signal, sys
from pathlib import Path
from tests.borders.two_commits.shop import Faulty, Order, Shop
from tests.borders.two_commits.test_faults import buy
shop = Shop(Path(sys.argv[1]), path=Path(sys.argv[2]) if sys.argv[4] == "durable" else None)
if len(shop.orders) == 0:
    with shop.db.transaction(commit_with=shop.sql):
        shop.put(Order(1, "ann", 5))
kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
buy(shop, Faulty(shop.sql, 0, kill, after=sys.argv[3] == "after", of="commit"))
"""


@pytest.mark.long
@sampled
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("where", ["memory", "durable"])
def test_a_process_killed_at_the_commit_begins_with_what_the_file_has(
    tmp_path: Path, when: str, where: str
) -> None:
    file, path = tmp_path / "shop.db", tmp_path / "live.db"
    command = [sys.executable, "-c", PROGRAM, str(file), str(path), when, where]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    shop = Shop(file, path=path if where == "durable" else None)
    assert len(shop.orders) == (2 if when == "after" else 1)
    shop.check()
    shop.close()


def history(tmp_path: Path, rng: random.Random, steps: int) -> None:
    """Transactions with an act at a random call, and with exceptions from outside."""
    file = tmp_path / "history.db"
    file.unlink(missing_ok=True)
    shop = Shop(file)
    faulty = Faulty(shop.sql)
    for _ in range(steps):
        act = rng.choice(ACTS)
        faulty.begin_anew(rng.randint(0, 5), act, after=rng.random() < 0.5)
        moment = rng.choice([10**9, rng.randint(0, 4000)])
        with (
            Moments(moment, interrupt),
            suppress(*ERRORS, ZeroDivisionError),
            shop.db.transaction(commit_with=faulty),
        ):
            change(shop, rng, faulty)
            if rng.random() < 0.1:
                raise Refused
        gc.collect()
        if "rollback" in faulty.names[faulty.at : faulty.at + 1]:
            shop.sql.rollback()
        if shop.db.in_doubt:  # two things went wrong, the second while it was read again
            shop.db.reread()
        shop.check()
        assert shop.db.in_doubt == {}
    shop.close()


@pytest.mark.long
@pytest.mark.parametrize("seed", [*cases(*TWICE), *seeds(8)])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_after_any_history_tables_are_those_of_the_file(tmp_path: Path, seed: int) -> None:
    was = signal.signal(signal.SIGALRM, ring)
    try:
        history(tmp_path, random.Random(seed), STEPS)
    finally:
        signal.signal(signal.SIGALRM, was)
