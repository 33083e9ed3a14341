"""Durable tables beside their twins, in one run: `python -m asv_benchmarks.durable [ROWS]`.

    logged     a commit of one row, beside the same in memory and an autocommit INSERT of as many
               bytes by `sqlite3`
    group      the same, 100 commits in one transaction of the file, beside the same in memory; and
               as many as a thread finds after 10 ms (`durability="group"`)
    restart    opening a file with rows, and five views over them, beside `add_all` of these rows
               and the same views

Times are processor seconds, the least of some turns, of the twins by turns.
"""

from __future__ import annotations

import gc
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import msgspec

from reactive import Count, Database, Max, Sum

TURNS = 7
COMMITS = 2000
MANY_COMMITS = 20_000
GROUP = 100


class Order(msgspec.Struct, frozen=True):
    """A row of three fields."""

    id: int
    customer: int
    total: float


class Followed:
    """A table of orders with a view over it."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.table = db.table(Order, key="id", name="orders")
        by_customer = self.table.group_by(lambda o: o.customer)
        self.view = by_customer.aggregate(Count(), Sum(lambda o: o.total)).materialize()
        self._next = 0
        self.add(200)

    def rows(self, count: int) -> list[Order]:
        """Rows that are new."""
        first, self._next = self._next, self._next + count
        return [Order(n, n % 500, 1.5) for n in range(first, first + count)]

    def add(self, count: int) -> None:
        """Add rows, each in its own commit."""
        add = self.table.add
        for row in self.rows(count):
            add(row)


class Inserted:
    """Rows in a table of SQLite, one transaction per row."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = normal")
        self._connection.execute("create table orders (id primary key, customer, total)")
        self._next = 0

    def add(self, count: int) -> None:
        """Insert rows, each in its own transaction."""
        execute = self._connection.execute
        for n in range(self._next, self._next + count):
            execute("insert into orders values (?, ?, ?)", (n, n % 500, 1.5))
        self._next += count


def seconds(act: Callable[[], Any]) -> float:
    """Return the seconds of a call, without the garbage of others."""
    gc.collect()
    began = process_time()
    act()
    return process_time() - began


def least(acts: Sequence[Callable[[], Any]]) -> list[float]:
    """Return the least time of each, by turns."""
    times = [[seconds(act) for act in acts] for _ in range(TURNS)]
    return [min(each) for each in zip(*times, strict=True)]


def logged(folder: Path) -> tuple[float, float, float]:
    """Microseconds of a commit: in the file, in memory, and of an INSERT."""
    durable, memory = Followed(Database(folder / "logged.db")), Followed(Database())
    twin = Inserted(folder / "twin.db")
    sides = (durable, memory, twin)
    found = least([lambda side=side: side.add(COMMITS) for side in sides])  # type: ignore[misc]
    durable.db.close()
    return tuple(1e6 * each / COMMITS for each in found)  # type: ignore[return-value]


def grouped(folder: Path) -> tuple[float, float, float]:
    """Return the microseconds of a commit with 100 commits in one transaction of the file.

    The second figure is for the transactions of the thread, every 10 ms, the third for memory.
    """
    durable = Followed(Database(folder / "grouped.db", durability="exit"))
    by_itself = Followed(Database(folder / "by_itself.db", durability="group"))
    memory = Followed(Database())

    def of_100(side: Followed, end: Callable[[], object]) -> None:
        for _ in range(COMMITS // GROUP):
            side.add(GROUP)
            end()

    def many() -> None:
        by_itself.add(MANY_COMMITS)
        by_itself.db.flush()

    acts = (lambda: of_100(durable, durable.db.flush), many, lambda: of_100(memory, int))
    found = least(acts)
    durable.db.close()
    by_itself.db.close()
    counts = (COMMITS, MANY_COMMITS, COMMITS)
    return tuple(1e6 * each / n for each, n in zip(found, counts, strict=True))  # type: ignore[return-value]


def five_views(table: Any) -> list[Any]:
    """Views of several kinds."""
    by_customer = table.group_by(lambda o: o.customer)
    return [
        by_customer.aggregate(Count(), Sum(lambda o: o.total)).materialize(),
        by_customer.aggregate(Max(lambda o: o.total)).materialize(),
        table.where(lambda o: o.total > 900_000).materialize(),
        table.aggregate(Sum(lambda o: o.total)).materialize(),
        table.order_by(lambda o: -o.total).limit(10).materialize(),
    ]


def restart(folder: Path, rows: int) -> tuple[float, float, float, float]:
    """Seconds to open a file and read its rows, to make views; to `add_all`, to make views."""
    path = folder / "restart.db"
    made = [Order(n, n % 50_000, float(n)) for n in range(rows)]
    with Database(path) as db:
        db.table(Order, key="id", name="orders").add_all(made)
    found: dict[str, Any] = {}

    def opened() -> None:
        found["db"] = Database(path)
        found["table"] = found["db"].table(Order, key="id", name="orders")

    def viewed() -> None:
        found["views"] = five_views(found["table"])

    def added() -> None:
        found["table"] = Database().table(Order, key="id", name="orders")
        found["table"].add_all(made)

    times = [seconds(opened), seconds(viewed)]
    found.pop("db").close()
    found.clear()
    times += [seconds(added), seconds(viewed)]
    return tuple(times)  # type: ignore[return-value]


def main(rows: int) -> None:
    """Print all of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        durable, memory, insert = logged(folder)
        ratio = durable / (memory + insert)
        print(f"logged   {durable:.1f} us; memory {memory:.1f} + INSERT {insert:.1f}: {ratio:.2f}x")
        durable, by_itself, memory = grouped(folder)
        print(
            f"group    {durable:.1f} us; by itself {by_itself:.1f} us; memory {memory:.1f}: "
            f"{durable / memory:.2f}x; {by_itself / memory:.2f}x"
        )
        read, views, added, again = restart(folder, rows)
        print(
            f"restart  {rows:,} rows {read:.2f} s, views {views:.2f} s, together "
            f"{read + views:.2f} s; add_all {added:.2f} s, views {again:.2f} s: "
            f"{(read + views) / (added + again):.2f}x; without views {read / added:.2f}x"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
