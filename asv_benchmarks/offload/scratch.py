"""A flush, beside Spark that evaluates the query again from all rows, as a DataFrame.

The rows are cached as typed columns, the changed ones are added to them, and the result is
discarded: Spark does not know its changes, and a reader would have to compare it. The fastest of
several settings counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from asv_benchmarks.offload.cases import CHANGED, Case, Changes, Client, Order
from asv_benchmarks.offload.flush import WARM_UP, Times, flushed, pairs, timed
from asv_benchmarks.offload.sides import moved, spark

PARTITIONS = (2, 4, 8)
"""The settings: the numbers of partitions for Spark's groups."""
Frame = Any
COLUMNS = {
    Order: "id, id AS customer, rand(1) * 10000 AS amount",
    Client: "id, id AS region",
}


def scratch_figures(case: Case, size: int, rounds: int) -> Times:
    """Seconds of flushes, and of Spark from scratch with the fastest of its settings."""
    with spark() as offload:
        side, changes = moved(case, size, offload), Changes(case, size)
        evaluations = _evaluations(case, size, changes, offload.session.spark)
        times: list[list[float]] = [[] for _ in evaluations]
        flushes = []
        for change in pairs(changes, CHANGED, WARM_UP + rounds):
            flushes.append(flushed(side, change))
            for evaluation, seconds in zip(evaluations, times, strict=True):
                seconds.append(timed(evaluation))
        side.close()
    fastest = min((seconds[WARM_UP:] for seconds in times), key=median)
    return {"flush": flushes[WARM_UP:], "scratch": fastest}


def _evaluations(case: Case, size: int, changes: Changes, spark: Any) -> list[Callable[[], object]]:
    """Return the functions that evaluate the query in each setting."""
    made = []
    for partitions in PARTITIONS:
        session = spark.newSession()
        session.conf.set("spark.sql.adaptive.enabled", "true")
        session.conf.set("spark.sql.shuffle.partitions", str(partitions))
        first, *others = (_cached(session, *table) for table in case.sizes(size).items())
        added = _added(session, changes.more(0, CHANGED))
        made.append(_evaluation(case, [first.unionByName(added), *others]))
    return made


def _evaluation(case: Case, tables: Sequence[Frame]) -> Callable[[], object]:
    result = QUERIES[case.name](*tables)
    return lambda: result.write.format("noop").mode("overwrite").save()


def _cached(session: Any, kind: type, rows: int) -> Frame:
    """Return the initial rows of a table, cached once for all settings."""
    frame = session.range(rows, numPartitions=2).selectExpr(*COLUMNS[kind].split(", ")).cache()
    frame.count()
    return frame


def _added(session: Any, orders: Sequence[Order]) -> Frame:
    columns = "id long, customer long, amount double"
    frame = session.createDataFrame([(o.id, o.customer, o.amount) for o in orders], columns)
    return frame.coalesce(1).cache()


def _totals(orders: Frame) -> Frame:
    from pyspark.sql import functions as F

    return orders.groupBy("customer").agg(F.count("*"), F.sum("amount"))


def _joined(orders: Frame, clients: Frame) -> Frame:
    named = clients.withColumnRenamed("id", "client")
    return orders.join(named, orders["customer"] == named["client"])


QUERIES: dict[str, Callable[..., Frame]] = {"group": _totals, "join": _joined}
