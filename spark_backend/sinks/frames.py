"""Changes as DataFrames, for functions that write with Spark.

    batch n: (row, weight), ...  -->  function(DataFrame of the row's columns and `weight`, n)

Source: Spark's `foreachBatch`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reactive.collections.zset import Pair
from spark_backend.cluster.session import Session
from spark_backend.sinks.rows import WEIGHT, RowColumns


class Framed:
    """A function of batches that calls one of DataFrames.

    Parameters
    ----------
    function: callable, (DataFrame, number).
    """

    def __init__(
        self, session: Session, function: Callable[[Any, int], object], row_type: Any
    ) -> None:
        self._session = session
        self._function = function
        self._columns = RowColumns(row_type, (WEIGHT,))

    def __call__(self, number: int, changes: Sequence[Pair]) -> None:
        if not self._session.is_alive():
            self._session.restart()
        table = self._columns.weighted(changes)
        self._function(self._session.spark.createDataFrame(table), number)
