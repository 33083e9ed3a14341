"""Connections of SQLite that raise at a certain call."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

Fault = Callable[[], None]


class Faults:
    """Count the calls of connections, and act at one of them.

    at: the number of the call, from 1 on; 0 for none.
    after: True to make the call before the action.
    """

    def __init__(self, at: int, fault: Fault, *, after: bool = False) -> None:
        self.calls = 0
        self._at = at
        self._fault = fault
        self._after = after

    def connect(self, *arguments: Any, **options: Any) -> Any:
        """Connect in place of `sqlite3.connect`."""
        return Connection(sqlite3.connect(*arguments, **options), self)

    def made(self, call: Callable[[], Any]) -> Any:
        """A call is to be made."""
        self.calls += 1
        is_now = self.calls == self._at
        if is_now and not self._after:
            self._fault()
        done = call()
        if is_now and self._after:
            if done is not None:
                done.close()  # an error gives no cursor
            self._fault()
        return done


class Connection:
    """A connection whose calls are counted."""

    def __init__(self, connection: sqlite3.Connection, faults: Faults) -> None:
        self._connection = connection
        self._faults = faults

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, statement: str, values: Any = ()) -> Any:
        return self._faults.made(lambda: self._connection.execute(statement, values))

    def executemany(self, statement: str, rows: Any) -> Any:
        return self._faults.made(lambda: self._connection.executemany(statement, rows))

    def close(self) -> None:
        self._faults.made(self._connection.close)


def full() -> None:
    """Raise the error of SQLite for a full disk."""
    raise sqlite3.OperationalError("database or disk is full")
