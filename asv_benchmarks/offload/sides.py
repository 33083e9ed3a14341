"""A database with the view of a case: in the process, or moved to Spark; and their turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from time import perf_counter
from typing import Any

from asv_benchmarks.offload.cases import Case, Change
from reactive import Database, Delta
from spark_backend import SparkOffload

MEMORY = {"spark.driver.memory": "3g"}
CHUNK = 100_000
"""Rows of one commit while tables are filled."""


class Side:
    """The tables of a case, and its view with a subscriber."""

    def __init__(self, case: Case, offload: SparkOffload | None = None) -> None:
        self.db = Database(offload=offload)
        self._tables: list[Any] = [self.db.table(kind, name=kind.__name__) for kind in case.shares]
        self.view = case.view(self._tables)
        self._heard: Counter[Any] = Counter()
        self._subscription = self.view.subscribe(self._hear)

    def load(self, case: Case, size: int) -> None:
        """Fill the tables, which are the only ones to hold the rows."""
        for table, rows in case.rows(size):
            for chunk in _chunks(rows):
                self._tables[table].add_all(chunk)
        self._heard.clear()

    def commit(self, *changes: Change) -> float:
        """Return the seconds until the changes are made, and local subscribers notified."""
        start = perf_counter()
        with self.db.transaction():
            for table, rows, weight in changes:
                verb = self._tables[table].add_all if weight > 0 else self._tables[table].remove_all
                verb(rows)
        return perf_counter() - start

    def flush(self) -> float:
        """Return the seconds until the subscribers are notified of all commits."""
        start = perf_counter()
        self.db.flush()
        return perf_counter() - start

    def heard(self) -> dict[Any, int]:
        """Return the net deltas of the subscriber since the last call."""
        heard, self._heard = self._heard, Counter()
        return {row: weight for row, weight in heard.items() if weight}

    def close(self) -> None:
        self.db.close()

    def _hear(self, delta: Delta[Any]) -> None:
        for row, weight in delta.items():
            self._heard[row] += weight


@contextmanager
def spark() -> Iterator[SparkOffload]:
    """Yield a place to move to, whose JVM is there."""
    offload = SparkOffload(threshold_rows=None, config=MEMORY)
    offload.open()
    try:
        offload.session.spark.range(10).count()
        yield offload
    finally:
        offload.close()


def moved(case: Case, size: int, offload: SparkOffload) -> Side:
    """Return a side that has been filled in the process and then moved."""
    side = Side(case, offload)
    side.load(case, size)
    side.view.offload()
    return side


def check_same(case: Case, one: Side, other: Side) -> None:
    """Raise if two sides did not tell the same."""
    if one.heard() != other.heard():
        raise AssertionError(f"{case.name}: Spark and the process tell different changes")


def _chunks(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while chunk := list(islice(rows, CHUNK)):
        yield chunk
