"""A chain on Spark: orders joined with clients, then counted and summed by region, rows never here.

first load      from the files until the view is there, beside Spark from scratch and the writing
                of the same rows by bucket
a flush         of n orders that come as a DataFrame, beside Spark from scratch over all files
least           Spark's own join of two empty tables in files, by the same settings

python -m asv_benchmarks.offload.chain [--rows 5000000] [--changes 1 100 10000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from asv_benchmarks.offload.cases import Client, Order
from asv_benchmarks.offload.flush import timed
from reactive import Count, Database, Sum
from spark_backend import SparkOffload

REGIONS = 1_000
CLIENTS = 10
"""Orders per client."""


class Chain:
    """The tables in files, and the query both ways.

    Parameters
    ----------
    rows: of orders; there is a client for every ten of them.
    """

    def __init__(self, spark: Any, rows: int, folder: Path) -> None:
        self.spark, self.rows, self.folder = spark, rows, folder
        self._orders(0, rows).write.parquet(str(folder / "orders"))
        clients = spark.range(rows // CLIENTS).selectExpr("id", f"id % {REGIONS} as region")
        clients.write.parquet(str(folder / "clients"))

    def scratch(self, rows: int | None = None) -> None:
        """Evaluate the query from the files; the result goes nowhere."""
        orders = self.spark.read.parquet(str(self.folder / "orders"))
        clients = self.spark.read.parquet(str(self.folder / "clients")).withColumnRenamed(
            "id", "customer"
        )
        joined = (orders if rows is None else orders.limit(rows)).join(clients, "customer")
        result = joined.groupBy("region").agg({"amount": "sum", "id": "count"})
        result.write.format("noop").mode("overwrite").save()

    def bucketed(self) -> None:
        """Write the rows of both tables by bucket of their key, as state is."""
        for name, key in (("orders", "customer"), ("clients", "id")):
            rows = self.spark.read.parquet(str(self.folder / name))
            buckets = max(1, min(512, self.rows // 100_000))
            placed = rows.selectExpr("*", f"pmod(xxhash64({key}), {buckets}) as b")
            target = str(self.folder / f"bucketed-{name}")
            placed.repartition("b").write.mode("overwrite").partitionBy("b").parquet(target)

    def added(self, number: int, count: int) -> Any:
        """So many orders more, as a DataFrame."""
        return self._orders(self.rows + number * count, count)

    def _orders(self, first: int, count: int) -> Any:
        clients = self.rows // CLIENTS
        columns = [
            "id",
            f"id * 7919 % {clients} as customer",
            "cast(id % 1000 as double) / 8 as amount",
        ]
        return self.spark.range(first, first + count, numPartitions=2).selectExpr(*columns)


def view_over(db: Database, folder: Path) -> tuple[Any, Any]:
    """The table of orders, and the view."""
    orders = db.spark_table(str(folder / "orders"), Order, name="orders")
    clients = db.spark_table(str(folder / "clients"), Client, name="clients")
    joined = orders.join(clients, on=lambda o, c: o.customer == c.id)
    totals = joined.group_by(lambda o, c: c.region).aggregate(Count(), Sum(lambda o, c: o.amount))
    return orders, totals.materialize("totals")


def measure(rows: int, changes: Sequence[int], rounds: int) -> dict[str, float]:
    """Seconds, by what they are of."""
    folder = Path(tempfile.mkdtemp(prefix="reactive-chain-"))
    offload = SparkOffload(threshold_rows=None, config={"spark.driver.memory": "6g"})
    db = Database(offload=offload)
    try:
        chain = Chain(offload.session.spark.newSession(), rows, folder)
        chain.spark.conf.set("spark.sql.adaptive.enabled", "true")
        chain.scratch()
        found = {"from scratch": median(timed(chain.scratch) for _ in range(3))}
        found["written by bucket"] = timed(chain.bucketed)
        found["least"] = median(timed(lambda: chain.scratch(0)) for _ in range(5))
        began = perf_counter()
        orders, view = view_over(db, folder)
        len(view)
        found["first load"] = perf_counter() - began
        for count in changes:
            seconds = []
            for number in range(rounds + 1):
                orders.add_frame(chain.added(number + count, count))
                seconds.append(timed(db.flush))
            found[f"flush of {count:,}"] = median(seconds[1:])
        return found
    finally:
        db.close()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.offload.chain", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--changes", type=int, nargs="*", default=[1, 100, 10_000])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found = measure(options.rows, options.changes, options.rounds)
    scratch = found["from scratch"]
    for name, seconds in found.items():
        gain = f"{scratch / seconds:6.1f} times" if name.startswith("flush") else ""
        print(f"{name:24} {seconds:8.2f} s {gain}")


if __name__ == "__main__":
    main()
