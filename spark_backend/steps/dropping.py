"""Rows of state tables that are dropped below a watermark, when their files are merged.

    base (12, "a"), (31, "b")    later (33, "c")        watermark 30 at the last flush
    new base (31, "b"), (33, "c")

The value of a row, and the frontier that it is compared with, are those by which the process drops
its state (`reactive/engine/operators/closing.py`). A row below the frontier stays in its file until
a merge rewrites it, and no flush asks for it: so it may be dropped from some files of a table while
others still have it, or its deletion.

Sound:  the frontier is that of the last finished flush, so that no entry of a later one is below.
State:  none.
Cost:   of a merge, a comparison per row: in columns, or in Python where these differ.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from optimizer.expr import Item, Lifted, Operation, constant
from reactive.engine.collections.zset import canonical
from reactive.engine.operators.frontiers import Frontier
from reactive.engine.operators.plain import spread_bindings
from spark_backend.codec.arrow import from_arrow
from spark_backend.codec.codec import serialize_classes, serialize_plan
from spark_backend.codec.columns import truth_of
from spark_backend.codec.schema import Typed
from spark_backend.codec.values import Inexact, Value
from spark_backend.steps.keys import row_bindings
from spark_backend.tables.stateless import adopt_classes, worker_function

Closes = tuple[Lifted, Frontier]
"""The value by which rows or groups close, and its frontier at commits (`closing_value`)."""


@dataclass(frozen=True, slots=True)
class Dropping:
    """The rows of a state table that no later change reads: those below a frontier.

    Parameters
    ----------
    column: the column with the value, of the type `kept`.
    value: the bindings of the column -> the value to compare.
    frontier: of the changes that come with flushes (`Frontier.at_flush`).
    """

    column: str
    kept: Typed
    value: Lifted
    frontier: Frontier

    def left(self, rows: pa.Table) -> pa.Table:
        """Return the rows that stay; `rows` itself if all do."""
        low = self.frontier.low()
        if low is None or not rows.num_rows:
            return rows
        stays = self._test(low)
        kept = [stays(row) for row in from_arrow(self.kept, rows[self.column].combine_chunks())]
        return rows if all(kept) else rows.filter(pa.array(kept, pa.bool_()))

    def left_on_spark(self, rows: DataFrame, paths: list[str]) -> DataFrame:
        """Return the rows that stay, by columns if these compare as Python does.

        Parameters
        ----------
        paths: the folders that workers add to their import path.
        """
        low = self.frontier.low()
        if low is None:
            return rows
        try:
            return rows.filter(~truth_of(self._is_closed(low), self._bindings()))
        except Inexact:
            shipped = serialize_plan((self, low))
            run = worker_function(
                paths, "spark_backend.steps.dropping", "drop_rows", shipped, serialize_classes()
            )
            return rows.mapInArrow(run, rows.schema)

    def _is_closed(self, low: Any) -> Lifted:
        """Return the test for the values before a bound, or at it."""
        value = self.value.body
        if self.frontier.is_of_windows:
            value = Item(value, constant(1))
        order = "<=" if self.frontier.is_beyond else "<"
        return self.value.with_body(Operation(order, (value, constant(low))))

    def _bindings(self) -> list[Value]:
        return row_bindings(Value(F.col(self.column), self.kept), self.value.parameters)

    def _test(self, low: Any) -> Callable[[Any], bool]:
        """Return the test for a value of the column that stays; one without a value does."""
        read, frontier = spread_bindings(self.value, self.value.parameters), self.frontier
        return lambda row: not frontier.is_past(frontier.value(canonical(read(row))), low)


def dropping_of(column: str, kept: Typed, closing: Closes | None) -> Dropping | None:
    """Return the rows of a table that are dropped when they close; None if they do not."""
    return None if closing is None else Dropping(column, kept, closing[0], closing[1].at_flush())


def drop_rows(
    shipped: bytes, classes: dict[str, bytes], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Drop the rows of batches that are below a bound, in a Python worker."""
    adopt_classes(classes)
    of, low = pickle.loads(shipped)
    stays = of._test(low)
    for batch in batches:
        rows = from_arrow(of.kept, batch.column(of.column))
        yield batch.filter(pa.array([stays(row) for row in rows], pa.bool_()))
