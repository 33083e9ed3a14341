"""A key with half of the rows, beside keys with equally many rows each.

even            orders are spread evenly over the clients
skewed          half of all orders are of one client, and so of one region; changed orders, too

by region       orders joined with clients by key, then counted and summed by region
by customer     orders counted and summed by customer, without a join

first load      from the files until the view is complete
a flush         of n inserted and deleted orders; up to 10,000 as rows, which need no job
a client        a client changes its region
half            clients with half of the orders change their regions: the heavy one, or even ones
                with as many orders together

All are measured in turn, in one run; views are compared with Spark from scratch at the end. Beside
seconds and CPU (of the process, the JVM and workers) are the longest tasks of all stages together,
which is the time of the jobs with as many cores as tasks, and the rows of the task with the most
rows beside those of the median task of its stage.

python -m asv_benchmarks.offload.skew [--rows 1000000] [--changes 1 100] [--rounds 6] [--loads 3]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from asv_benchmarks.offload.cases import Client, Order
from asv_benchmarks.offload.chain import CLIENTS, REGIONS
from asv_benchmarks.offload.cpu import Took, took
from asv_benchmarks.offload.tasks import Spread, Tasks
from asv_benchmarks.table import machine
from reactive import Count, Database, Sum
from spark_backend import SparkOffload

EVEN, SKEWED = "even", "skewed"
BY_REGION, BY_CUSTOMER = "by region", "by customer"
HEAVY = 0
"""The client with half of the orders, where one has them."""
SOME = 5
"""A client with few orders."""
MOST_ROWS = 10_000
"""The most changed orders that are rows of this process; more are a DataFrame."""
LOAD, CLIENT = "first load", "flush of a client"
HALF = "flush of clients with half of the orders"


@dataclass(frozen=True, slots=True)
class Found:
    """The cost of a piece of work, and its spread over tasks."""

    took: Took
    spread: Spread


class Side:
    """A query over even or skewed orders: its view, which can be loaded repeatedly.

    Parameters
    ----------
    rows: the number of orders; there is a client for every ten of them.
    """

    def __init__(
        self, query: str, layout: str, rows: int, folder: Path, options: Mapping[str, Any]
    ) -> None:
        self.query, self.layout = query, layout
        self._rows, self._options = rows, options
        self._source, self._state = folder / layout, folder / f"state {query} {layout}"
        self._db: Database | None = None
        self._orders: Any = None
        self._clients: Any = None
        self._view: Any = None

    @property
    def db(self) -> Database:
        """The database of the view."""
        assert self._db is not None
        return self._db

    def begin(self) -> None:
        """Be without state."""
        self.close()
        offload = SparkOffload(threshold_rows=None, checkpoint=str(self._state), **self._options)
        self._db = Database(offload=offload)

    def load(self) -> None:
        """Load the view from the files."""
        self._orders = self.db.spark_table(str(self._source / "orders"), Order, name="orders")
        self._clients = self.db.spark_table(str(self._source / "clients"), Client, name="clients")
        make = _by_region if self.query == BY_REGION else _by_customer
        self._view = make(self._orders, self._clients).materialize(self.query)
        len(self._view)

    def change(self, spark: Any, number: int, count: int) -> None:
        """Insert orders if the number is even, and delete them if it is odd."""
        first = self._rows + number // 2 * count
        if count > MOST_ROWS:
            frame = orders_of(spark, self.layout, self._rows, first, count)
            (self._orders.remove_frame if number % 2 else self._orders.add_frame)(frame)
        else:
            rows = [_order(self.layout, self._rows, n) for n in range(first, first + count)]
            (self._orders.remove_all if number % 2 else self._orders.add_all)(rows)

    def move(self, clients: Iterable[int], number: int) -> None:
        """Let clients be of another region."""
        with self.db.transaction():
            for client in clients:
                before, after = ((client + (number + n) % 2) % REGIONS for n in range(2))
                self._clients.remove(Client(client, before))
                self._clients.add(Client(client, after))

    def half(self) -> Iterable[int]:
        """Clients with half of the orders."""
        return [HEAVY] if self.layout == SKEWED else range(self._rows // CLIENTS // 2)

    def check(self, spark: Any) -> None:
        """Raise if the view differs from Spark's result from scratch."""
        orders, clients = (spark.read.parquet(str(self._source / n)) for n in ("orders", "clients"))
        key = "customer"
        if self.query == BY_REGION:
            orders = orders.join(clients.withColumnRenamed("id", "customer"), "customer")
            key = "region"
        found = orders.groupBy(key).agg({"id": "count", "amount": "sum"})
        expected = {tuple(row) for row in found.select(key, "count(id)", "sum(amount)").collect()}
        if set(self._view) != expected:
            raise AssertionError(f"the {self.layout} view {self.query} differs from Spark")

    def close(self) -> None:
        """Give the view up, with its state."""
        if self._db is not None:
            self._db.close()
            self._db = None
        shutil.rmtree(self._state, ignore_errors=True)


class Meter:
    """Measure pieces of work, by their side and kind."""

    def __init__(self, spark: Any) -> None:
        self._tasks = Tasks(spark)
        self.found: dict[tuple[str, str, str], list[Found]] = {}

    def measure(self, side: Side, kind: str, work: Callable[[], object]) -> None:
        """Do a piece of work."""
        self._tasks.spread()
        found = Found(took(work), self._tasks.spread())
        self.found.setdefault((side.query, kind, side.layout), []).append(found)

    def kinds(self) -> list[tuple[str, str]]:
        """Return the queries and kinds of work that were measured of both layouts."""
        return list(dict.fromkeys((query, kind) for query, kind, _ in self.found))


def measure(
    rows: int, changes: Sequence[int], rounds: int, loads: int, options: Mapping[str, Any]
) -> list[str]:
    """Return the figures, a line each."""
    with _run(rows, options) as (spark, sides):
        meter = Meter(spark)
        for number in range(loads):
            for side in _in_turn(sides, number):
                side.begin()
                meter.measure(side, LOAD, side.load)
        for number in range(rounds):
            for count in changes:
                for side in _in_turn(sides, number // 2):
                    side.change(spark, number, count)
                    meter.measure(side, f"flush of {count:,}", side.db.flush)
            for side in _in_turn(sides[:2], number // 2):
                side.move([SOME], number)
                meter.measure(side, CLIENT, side.db.flush)
            for side in _in_turn(sides[:2], number // 2):
                side.move(side.half(), number)
                meter.measure(side, HALF, side.db.flush)
        if rounds % 2 == 0:
            for side in sides:
                side.check(spark)
        return _told(meter, rows)


def _in_turn(sides: Sequence[Side], number: int) -> Sequence[Side]:
    """None of them is always the first."""
    return sides[::-1] if number % 2 else sides


@contextmanager
def _run(rows: int, options: Mapping[str, Any]) -> Iterator[tuple[Any, list[Side]]]:
    """Yield a session and the sides; sides with a join first."""
    folder = Path(tempfile.mkdtemp(prefix="reactive-skew-"))
    keeper = Database(offload=(offload := SparkOffload(threshold_rows=None, **options)))
    sides = [
        Side(query, layout, rows, folder, options)
        for query in (BY_REGION, BY_CUSTOMER)
        for layout in (EVEN, SKEWED)
    ]
    try:
        spark = offload.session.spark.newSession()
        for layout in (EVEN, SKEWED):
            orders_of(spark, layout, rows, 0, rows).write.parquet(str(folder / layout / "orders"))
            clients = spark.range(rows // CLIENTS).selectExpr("id", f"id % {REGIONS} as region")
            clients.write.parquet(str(folder / layout / "clients"))
        yield spark, sides
    finally:
        for side in sides:
            side.close()
        keeper.close()
        shutil.rmtree(folder, ignore_errors=True)


def orders_of(spark: Any, layout: str, rows: int, first: int, count: int) -> Any:
    """Return `count` orders, as a DataFrame."""
    clients = rows // CLIENTS
    of = f"id * 7919 % {clients}"
    if layout == SKEWED:
        of = f"if(id % 2 = 0, {HEAVY}, (id div 2) * 7919 % {clients})"
    columns = ["id", f"{of} as customer", "cast(id % 1000 as double) / 8 as amount"]
    return spark.range(first, first + count, numPartitions=2).selectExpr(*columns)


def _order(layout: str, rows: int, number: int) -> Order:
    """Return the same order as a row."""
    clients = rows // CLIENTS
    of = number * 7919 % clients
    if layout == SKEWED:
        of = HEAVY if number % 2 == 0 else number // 2 * 7919 % clients
    return Order(number, of, number % 1000 / 8)


def _by_region(orders: Any, clients: Any) -> Any:
    joined = orders.join(clients, on=lambda o, c: o.customer == c.id)
    return joined.group_by(lambda o, c: c.region).aggregate(Count(), Sum(lambda o, c: o.amount))


def _by_customer(orders: Any, clients: Any) -> Any:
    return orders.group_by(lambda o: o.customer).aggregate(Count(), Sum(lambda o: o.amount))


def _told(meter: Meter, rows: int) -> list[str]:
    """Return the cost of each kind of work in both layouts, and their ratios."""
    lines = [
        f"| {rows:,} rows | runs | s | CPU s | longest tasks, s | most rows / median |",
        "|---|" + "---:|" * 5,
    ]
    for (query, kind, layout), found in meter.found.items():
        took, longest, share = _middle(found)
        shown = f"{took.seconds:.2f} | {took.cpu:.2f} | {longest:.2f} | {share}"
        lines.append(f"| {query}, {kind}, {layout} | {len(found)} | {shown} |")
    lines += ["", "| skewed / even | s | CPU | longest tasks |", "|---|" + "---:|" * 3]
    for query, kind in meter.kinds():
        lines.append(f"| {query}, {kind} | {_ratios(meter, query, kind)} |")
    return [*lines, ""]


def _ratios(meter: Meter, query: str, kind: str) -> str:
    skewed, even = (_middle(meter.found[query, kind, layout]) for layout in (SKEWED, EVEN))
    pairs = (
        (skewed[0].seconds, even[0].seconds),
        (skewed[0].cpu, even[0].cpu),
        (skewed[1], even[1]),
    )
    return " | ".join(f"{a / b:.2f}" if b else "" for a, b in pairs)


def _middle(found: Sequence[Found]) -> tuple[Took, float, str]:
    """The medians, and the rows of tasks in the last one; the first of many is to warm up."""
    some = found[1:] if len(found) > 2 else found
    took = Took(median(f.took.seconds for f in some), median(f.took.cpu for f in some))
    spread = some[-1].spread
    share = f"{spread.most:,} / {spread.middle:,.0f}" if spread.most else ""
    return took, median(f.spread.longest for f in some), share


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.offload.skew", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of orders")
    parser.add_argument("--changes", type=int, nargs="*", default=[1, 100, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=6, help="of flushes")
    parser.add_argument("--loads", type=int, default=3, help="rounds of first loads")
    parser.add_argument("--master", default="local[2]", help="where Spark runs")
    parser.add_argument("--config", nargs="*", default=[], help="settings of our session, a=b")
    given = parser.parse_args()
    config = dict(setting.split("=", 1) for setting in given.config)
    config = {"spark.driver.memory": "3g", **config}
    options = {"master": given.master, "config": config}
    lines = measure(given.rows, given.changes, given.rounds, given.loads, options)
    print("\n".join([*lines, machine()]))


if __name__ == "__main__":
    main()
