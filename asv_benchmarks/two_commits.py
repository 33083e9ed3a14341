"""A transaction that commits SQL too, beside a plain transaction and then a plain commit of SQL.

python -m asv_benchmarks.two_commits      microseconds of each, and the ratio, in one process

Each is an order written to a table with a grouped view, and to SQL: a file of SQLite in WAL mode,
one in memory, a session of SQLAlchemy if that is installed. What differs is the road of the commit.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

from asv_benchmarks.turns import Beside
from reactive import Count, Database, Sum

ROWS, ROUNDS, EACH = 1_000, 15, 200


class Way(NamedTuple):
    """The `commit_with` argument, the function that writes an order, and the plain commit."""

    given: Any
    insert: Callable[[int], object]
    commit: Callable[[], object]


@contextmanager
def of_sqlite(file: str) -> Iterator[Way]:
    """Yield a connection of `sqlite3`."""
    sql = sqlite3.connect(file)
    sql.execute("pragma journal_mode = wal")
    sql.execute("create table orders(id integer primary key, customer text, total integer)")
    statement = "insert into orders values (?, 'ann', 5)"
    yield Way(sql, lambda number: sql.execute(statement, (number,)), sql.commit)
    sql.close()


@contextmanager
def of_sqlalchemy(file: str) -> Iterator[Way]:
    """Yield a session of SQLAlchemy."""
    from sqlalchemy import create_engine, text
    from sqlalchemy.orm import Session

    engine = create_engine(f"sqlite:///{file}")
    with Session(engine) as session:
        session.execute(text("create table orders(id integer primary key, c text, total integer)"))
        session.commit()
        statement = text("insert into orders values (:id, 'ann', 5)")
        insert = lambda number: session.execute(statement, {"id": number})  # noqa: E731
        yield Way(session, insert, session.commit)
    engine.dispose()


class Side:
    """A table with a view, and rows to insert."""

    def __init__(self) -> None:
        self.db = Database()
        self.orders: Any = self.db.table(tuple, name="orders", key=lambda o: o[0])
        grouped = self.orders.group_by(lambda o: o[1])
        self.view: Any = grouped.aggregate(Count(), Sum(lambda o: o[2])).materialize()
        self.orders.add_all([(-n, f"c{n % 50}", 5) for n in range(1, ROWS)])


def together(side: Side, way: Way, number: int) -> None:
    with side.db.transaction(commit_with=way.given):
        way.insert(number)
        side.orders.add((number, "ann", 5))


def apart(side: Side, way: Way, number: int) -> None:
    with side.db.transaction():
        side.orders.add((number, "ann", 5))
    way.insert(number)
    way.commit()


def measure(way: Way) -> Beside:
    """Microseconds of processor time for an order, both commits as one and one after the other."""
    sides, numbers = (Side(), Side()), count(1)
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(ROUNDS):
        for place in (0, 1) if turn % 2 else (1, 0):
            act = together if place == 0 else apart
            began = process_time()
            for _ in range(EACH):
                act(sides[place], way, next(numbers))
            times[place].append((process_time() - began) / EACH * 1e6)
    return Beside.of(*(median(found) for found in times))


def main() -> None:
    """Print a line for each kind of SQL."""
    with tempfile.TemporaryDirectory() as folder:
        ways = {
            "sqlite3, a file": of_sqlite(str(Path(folder) / "plain.db")),
            "sqlite3, in memory": of_sqlite(":memory:"),
        }
        try:
            import sqlalchemy  # noqa: F401
        except ImportError:
            print("sqlalchemy is not installed", file=sys.stderr)
        else:
            ways["SQLAlchemy, a file"] = of_sqlalchemy(str(Path(folder) / "session.db"))
        for name, entered in ways.items():
            with entered as way:
                found = measure(way)
            text = f"{found.engine:7.1f} us as one, {found.twin:7.1f} us apart, {found.ratio:.2f}x"
            print(f"{name:20}{text}")


if __name__ == "__main__":
    main()
