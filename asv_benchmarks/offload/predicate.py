"""One predicate over a table that lives on Spark: lifted, in the JVM; opaque, in Python workers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from asv_benchmarks.offload.cases import Order
from asv_benchmarks.offload.flush import timed
from asv_benchmarks.offload.sides import spark
from reactive import Database

KEPT = 1_000
"""The number of rows per kept row, so that fetching the result costs nothing."""
PARTS = 8
"""Files of the table."""


def predicate_figures(size: int, rounds: int) -> dict[str, float]:
    """Rows per second that each looks at, over Parquet files; and how many it keeps."""
    with spark() as offload, tempfile.TemporaryDirectory() as folder:
        columns = ("id", f"id % {size // 2} AS customer", "CAST(id AS double) / 3 AS amount")
        rows = offload.session.spark.range(size, numPartitions=PARTS).selectExpr(*columns)
        rows.write.parquet(f"{folder}/orders")
        db = Database(offload=offload)
        orders = db.spark_table(f"{folder}/orders", Order)
        found: dict[str, float] = {}
        for name, test in (("lifted", _lifted), ("opaque", _opaque)):
            _look(orders, test)
            seconds = [timed(partial(_look, orders, test)) for _ in range(rounds)]
            found[name], found[f"{name} kept"] = size / median(seconds), _look(orders, test)
        db.close()
    return found


def _look(orders: Any, test: Callable[[Order], bool]) -> int:
    """Evaluate from scratch: a view that is made, read and dropped."""
    view = orders.where(test).materialize()
    found = len(view)
    view.close()
    return found


def _lifted(order: Order) -> bool:
    return order.customer % 1_000 == 7 and order.amount >= 0.0


def _opaque(order: Order) -> bool:
    for value in (order.customer,):  # a loop is not lifted
        if value % 1_000 != 7:
            return False
    return order.amount >= 0.0
