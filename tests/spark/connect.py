"""A program with a server of Spark Connect of its own; a test runs it.

The server is a JVM whose port the system chooses. The client knows it by its URL only, as one
elsewhere: this process has no JVM to ask.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as F

from reactive import Collect, Count, Database, Sum
from spark_backend import SparkOffload

SERVER = """
import sys
from pyspark.sql import SparkSession
settings = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.port": "0",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.driver.memory": "1g",
}
spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
service = getattr(spark._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
print(getattr(service, "MODULE$").localPort(), flush=True)
sys.stdin.read()
spark.stop()
"""


@dataclass(frozen=True, slots=True)
class Order:
    """A row."""

    town: int
    amount: int


def main() -> None:
    """Say what is true, a line each."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    assert server.stdin is not None and server.stdout is not None
    try:
        run(f"sc://localhost:{int(server.stdout.readline())}")
    finally:
        server.stdin.close()
        server.wait(20)


def run(url: str) -> None:
    """All that is to be true of a server."""
    from pyspark.sql import SparkSession

    spark: Any = SparkSession.builder.remote(url).create()
    spark.range(3).createOrReplaceTempView("theirs")
    before = dict(spark.conf.getAll), spark.catalog.listTables()
    views_are_their_queries(spark)
    tables_are_on_spark(spark)
    assert (dict(spark.conf.getAll), spark.catalog.listTables()) == before
    assert spark.table("theirs").count() == 3
    print("the session that was given is as it was")
    spark.stop()


def bits(number: int) -> int:
    """What is no column."""
    return abs(number).bit_count()


def views_are_their_queries(spark: Any) -> None:
    """A fragment with columns and Python workers, and an operator of Python's own."""
    with Database(offload=SparkOffload(session=spark, threshold_rows=None)) as db:
        left, right = (
            db.table(tuple[int, int], name="left"),
            db.table(tuple[int, int], name="right"),
        )
        joined = left.join(right, left_key=lambda r: r[0], right_key=lambda r: r[0])
        sums = joined.group_by(lambda a, b: bits(a[1])).aggregate(Sum(lambda a, b: a[1]))
        lists = left.group_by(lambda r: r[0]).aggregate(Collect(lambda r: r[1]))
        views = [sums.materialize("sums"), lists.materialize("lists")]
        left.add_all([(n % 5, n) for n in range(50)])
        right.add_all([(n, n % 2) for n in range(5)])
        for view in views:
            view.offload()
        left.add_all([(n % 5, -n) for n in range(10)])
        left.remove((1, 1))
        for view in views:
            view.verify()
        where = views[0].explain()
        assert "one job per flush" in where and "Python workers" in where, where
        rows = views[0].to_spark().join(spark.range(2), F.col("_1") == F.col("id")).collect()
        assert {row["_1"]: row["_2"] for row in rows} == {n: views[0][n] for n in (0, 1)}
        print("views are their queries")


def tables_are_on_spark(spark: Any) -> None:
    """A DataFrame of theirs as a table, and more of its rows."""
    with Database(offload=SparkOffload(session=spark)) as db:
        given = spark.range(100).selectExpr("id % 7 as town", "id as amount")
        table = db.spark_table(given, Order, name="orders")
        view = table.group_by(lambda o: o.town).aggregate(Count()).materialize("per town")
        assert view[3] == 14
        table.add_frame(given.filter("town = 3"))
        table.add(Order(3, 1))
        assert view[3] == 29
        assert table.to_spark().join(given, "town").count() == 2 * 15 * 15 + 4 * 14 * 14 + 29 * 14
        print("tables are on Spark")


if __name__ == "__main__":
    main()
