"""A program that knows Spark by the URL of a server only; a test runs it: it has no JVM to ask."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from pyspark.sql import functions as F

from reactive import Collect, Count, Database, OffloadError, Sum
from spark_backend import SparkOffload
from spark_backend.direct import flush


@dataclass(frozen=True, slots=True)
class Order:
    """A row."""

    town: int
    amount: int


def run(url: str) -> None:
    """Print the facts that hold of a server, one per line."""
    from pyspark.sql import SparkSession

    spark: Any = SparkSession.builder.remote(url).create()
    spark.range(3).createOrReplaceTempView("theirs")
    before = dict(spark.conf.getAll), spark.catalog.listTables()
    views_are_their_queries(spark)
    nests_are_their_queries(spark)
    tables_are_on_spark(spark)
    streams_are_told_and_snapshots_are_read(spark)
    assert (dict(spark.conf.getAll), spark.catalog.listTables()) == before
    assert spark.table("theirs").count() == 3
    print("the session that was given is as it was")
    spark.stop()


def bits(number: int) -> int:
    """A callable that no column can express."""
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


def nests_are_their_queries(spark: Any) -> None:
    """Outer joins below others, whose changes are worked out by jobs of their own."""
    with Database(offload=SparkOffload(session=spark, threshold_rows=None)) as db:
        towns, orders = db.table(int, name="towns"), db.table(Order, name="orders")
        parts = db.table(Order, name="parts")
        view = towns.nest(
            orders=lambda t: orders.where(lambda o: o.town == t).nest(
                parts=lambda o: parts.where(lambda p: p.town == o.amount)
            )
        ).materialize("nest")
        towns.add_all([1, 2])
        orders.add_all([Order(1, 7), Order(1, 8), Order(2, 7)])
        parts.add(Order(7, 1))
        view.offload()
        for direct in (flush.MOST_DIRECT, -1):
            with patch.object(flush, "MOST_DIRECT", direct):
                parts.add(Order(8, direct))
                orders.remove(Order(2, 7) if direct < 0 else Order(1, 7))
                view.verify()
        assert [dict(o.parts.items()) for o in view[1].orders] == [
            {Order(8, flush.MOST_DIRECT): 1, Order(8, -1): 1}
        ]
        print("nests are their queries")


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


def streams_are_told_and_snapshots_are_read(spark: Any) -> None:
    """Streams that the server runs never reach this process; snapshots are read here."""
    with Database(offload=SparkOffload(session=spark)) as db:
        try:
            db.spark_stream(lambda s: s.readStream.format("rate").load(), Order, name="orders")
        except OffloadError as error:
            assert "cannot follow a stream with Spark Connect" in str(error), error
        given = spark.range(6).selectExpr("id % 3 as town", "id as amount")
        table = db.spark_stream(
            given, Order, name="orders", changes="snapshot", trigger="available now"
        )
        table.source.wait(token=0, timeout=60)
        assert sorted((o.town, o.amount) for o in table) == sorted((n % 3, n) for n in range(6))
        print("streams are told, and snapshots are read")


if __name__ == "__main__":
    run(*sys.argv[1:])
