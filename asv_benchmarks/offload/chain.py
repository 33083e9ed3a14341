"""A chain on Spark: orders joined with clients, then counted and summed by region, rows never here.

first load      from the files until the view is ready, beside Spark from scratch and the writing
                of the same rows by bucket
a flush         of n inserted and deleted orders, as a DataFrame, beside Spark from scratch
least           Spark's own join of two empty bucketed tables, then the sum
read            a view of the joined rows, counted and summed by `to_spark()`, beside Parquet files
                of the same rows

All kinds are measured in turn, in one run; the view is compared with Spark from scratch at the end.

python -m asv_benchmarks.offload.chain [--rows 5000000] [--changes 1 100 10000] [--rounds 12]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from asv_benchmarks.offload.cases import Client, Order
from asv_benchmarks.offload.meter import Meter
from asv_benchmarks.table import machine
from reactive import Count, Database, Sum
from spark_backend import SparkOffload

REGIONS = 1_000
CLIENTS = 10
"""Orders per client."""
SEVERAL = 100_000
"""The number of changed rows from which a flush is measured in few rounds."""
FEW = 3
"""The rounds of long work."""
LEAST, SCRATCH, WRITTEN, LOAD = "least", "from scratch", "written by bucket", "first load"
PARQUET, READ, READ_LATER = "Parquet read", "to_spark()", "to_spark(), after flushes"


class Chain:
    """The tables in files, and the query both ways.

    Parameters
    ----------
    rows: of orders; there is a client for every ten of them.
    """

    def __init__(self, spark: Any, rows: int, folder: Path) -> None:
        self.spark, self.rows, self.folder = spark, rows, folder
        spark.conf.set("spark.sql.adaptive.enabled", "true")
        spark.conf.set("spark.sql.shuffle.partitions", "8")
        self._orders(0, rows).write.parquet(str(folder / "orders"))
        clients = spark.range(rows // CLIENTS).selectExpr("id", f"id % {REGIONS} as region")
        clients.write.parquet(str(folder / "clients"))
        for name, key in (("orders", "customer"), ("clients", "id")):
            empty = spark.read.parquet(str(folder / name)).limit(0).write.bucketBy(8, key)
            empty.option("path", str(folder / f"empty-{name}")).saveAsTable(f"empty_{name}")

    def scratch(self) -> None:
        """Evaluate the query from the files; the result is not written."""
        read = (self.spark.read.parquet(str(self.folder / n)) for n in ("orders", "clients"))
        _nowhere(_totals(*read))

    def least(self) -> None:
        """Evaluate the query over two tables by bucket that have no rows."""
        _nowhere(_totals(*(self.spark.table(f"empty_{n}") for n in ("orders", "clients"))))

    def bucketed(self) -> None:
        """Write the rows of both tables by bucket of their key, as state is."""
        for name, key in (("orders", "customer"), ("clients", "id")):
            rows = self.spark.read.parquet(str(self.folder / name))
            buckets = max(1, min(512, self.rows // 100_000))
            placed = rows.selectExpr("*", f"pmod(xxhash64({key}), {buckets}) as b")
            target = str(self.folder / f"bucketed-{name}")
            placed.repartition("b").write.mode("overwrite").partitionBy("b").parquet(target)
            shutil.rmtree(target)

    def added(self, number: int, count: int) -> Any:
        """Return `count` more orders, as a DataFrame."""
        return self._orders(self.rows + number * count, count)

    def check(self, view: Any) -> None:
        """Raise if the view differs from Spark's result from scratch."""
        read = (self.spark.read.parquet(str(self.folder / n)) for n in ("orders", "clients"))
        expected = {tuple(row) for row in _totals(*read).collect()}
        if set(view) != expected:
            raise AssertionError("the view differs from Spark from scratch")

    def _orders(self, first: int, count: int) -> Any:
        clients = self.rows // CLIENTS
        columns = [
            "id",
            f"id * 7919 % {clients} as customer",
            "cast(id % 1000 as double) / 8 as amount",
        ]
        return self.spark.range(first, first + count, numPartitions=2).selectExpr(*columns)


def tables_of(db: Database, folder: Path) -> tuple[Any, Any]:
    """Return the table of orders, and orders with their clients."""
    orders = db.spark_table(str(folder / "orders"), Order, name="orders")
    clients = db.spark_table(str(folder / "clients"), Client, name="clients")
    return orders, orders.join(clients, on=lambda o, c: o.customer == c.id)


def loaded(db: Database, folder: Path) -> tuple[Any, Any]:
    """Return the table of orders, and the view of the chain once it is there."""
    orders, joined = tables_of(db, folder)
    totals = joined.group_by(lambda o, c: c.region).aggregate(Count(), Sum(lambda o, c: o.amount))
    view = totals.materialize("totals")
    len(view)
    return orders, view


def flushes(meter: Meter, of: Chain, db: Database, changes: Sequence[int], rounds: int) -> None:
    """Measure the first load, and flushes of inserted and deleted rows."""
    for _ in range(FEW):
        meter.measure(SCRATCH, of.scratch)
    meter.measure(WRITTEN, of.bucketed)
    orders, view = meter.measure(LOAD, lambda: loaded(db, of.folder))
    for number in range(rounds):
        for count in changes:
            if count < SEVERAL or number < 2 * FEW:
                frame = of.added(number // 2, count)
                change = orders.remove_frame if number % 2 else orders.add_frame
                meter.measure(f"commit of {count:,}", partial(change, frame))
                meter.measure(f"flush of {count:,}", db.flush)
        meter.measure(LEAST, of.least)
        if number < FEW:
            meter.measure(SCRATCH, of.scratch)
    if rounds % 2 == 0:
        of.check(view)


def reads(meter: Meter, of: Chain, db: Database, rounds: int) -> None:
    """Measure reading a view of all orders with their clients, and Parquet of as many rows."""
    orders, joined = tables_of(db, of.folder)
    view = joined.materialize("joined")
    db.flush()
    target = str(of.folder / "joined")
    view.to_spark().write.parquet(target)
    for name in (READ, READ_LATER):
        for _ in range(rounds):
            meter.measure(PARQUET, lambda: _counted(of.spark.read.parquet(target)))
            meter.measure(name, lambda: _counted(view.to_spark()))
        for number in range(rounds if name == READ else 0):
            orders.add_frame(of.added(number, 1_000))
            db.flush()


def measure(
    rows: int, changes: Sequence[int], rounds: int, read: int, config: Mapping[str, str]
) -> list[str]:
    """Return the figures, a line each."""
    lines = []
    if rows:
        with _run(rows, config) as (of, db, meter):
            flushes(meter, of, db, changes, rounds)
        lines += _told(meter, rows)
    if read:
        with _run(read, config) as (of, db, meter):
            reads(meter, of, db, rounds)
        lines += _told(meter, read)
    return lines


@contextmanager
def _run(rows: int, config: Mapping[str, str]) -> Iterator[tuple[Chain, Database, Meter]]:
    """Yield the tables, a database for the view, and a meter of both."""
    folder = Path(tempfile.mkdtemp(prefix="reactive-chain-"))
    state = str(folder / "state")
    places = {"spark.driver.memory": "6g", "spark.sql.warehouse.dir": str(folder / "warehouse")}
    offload = SparkOffload(threshold_rows=None, checkpoint=state, config={**places, **config})
    db = Database(offload=offload)
    try:
        spark = offload.session.spark
        yield Chain(spark.newSession(), rows, folder), db, Meter(spark)
    finally:
        db.close()
        shutil.rmtree(folder, ignore_errors=True)


def _told(meter: Meter, rows: int) -> list[str]:
    """Return the time of each kind of work, and its ratio to others."""
    lines = [
        f"| {rows:,} rows | runs | s | CPU s | executions | jobs | stages | tasks |",
        "|---|" + "---:|" * 7,
    ]
    for name, runs in meter.found.items():
        of = meter.median(name)
        counts = " | ".join(f"{n:.0f}" for n in (of.executions, of.jobs, of.stages, of.tasks))
        lines.append(f"| {name} | {len(runs)} | {of.seconds:.2f} | {of.processor:.2f} | {counts} |")
    lines += ["", "| times | s | CPU |", "|---|---:|---:|"]
    for name in meter.found:
        for others, is_gain in _beside(name):
            lines.append(_ratio(meter, name, others, is_gain=is_gain))
    return [*lines, ""]


def _beside(name: str) -> list[tuple[tuple[str, ...], bool]]:
    """Return the kinds of work to compare with, and whether this one should take less."""
    if name.startswith("flush"):
        return [((SCRATCH,), True), ((LEAST,), False)]
    if name in (READ, READ_LATER):
        return [((PARQUET,), False)]
    return [((SCRATCH, WRITTEN), False)] if name == LOAD else []


def _ratio(meter: Meter, name: str, others: Sequence[str], *, is_gain: bool) -> str:
    """Return the time of a kind of work over that of others together, or the inverse for a gain."""
    of, beside = meter.median(name), [meter.median(other) for other in others]
    seconds = of.seconds / sum(one.seconds for one in beside)
    processor = of.processor / max(0.01, sum(one.processor for one in beside))
    if is_gain:
        seconds, processor = 1 / seconds, 1 / max(0.01, processor)
    said = " + ".join(others)
    shown = f"{said} / {name}" if is_gain else f"{name} / ({said})"
    return f"| {shown} | {seconds:.2f} | {processor:.2f} |"


def _totals(orders: Any, clients: Any) -> Any:
    """Return the query on Spark: region, count, sum."""
    from pyspark.sql import functions as F

    joined = orders.join(clients.withColumnRenamed("id", "customer"), "customer")
    return joined.groupBy("region").agg(F.count("id"), F.sum("amount"))


def _nowhere(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _counted(frame: Any) -> Any:
    """Count and sum."""
    return frame.selectExpr("count(*)", "sum(_1.amount)").first()


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.offload.chain", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000, help="of orders; 0 for no flushes")
    parser.add_argument("--changes", type=int, nargs="*", default=[1, 100, 10_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--read", type=int, default=1_000_000, help="rows of a view; 0 for none")
    parser.add_argument("--config", nargs="*", default=[], help="settings of our session, a=b")
    options = parser.parse_args()
    config = dict(setting.split("=", 1) for setting in options.config)
    lines = measure(options.rows, options.changes, options.rounds, options.read, config)
    print("\n".join([*lines, machine()]))


if __name__ == "__main__":
    main()
