"""Changes as DataFrames, for functions that write with Spark.

    batch n: files of the outbox  -->  function(DataFrame of the row's columns and `weight`, n)

What the function is given are the files of the batch, whoever has written them: of a view that is
on Spark no row of it comes by here.

State:  that of the outbox.
Source: Spark's `foreachBatch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from reactive.borders.sinks.target import ChangeBatch, Changed, Position
from reactive.engine.collections.zset import Pair
from spark_backend.cluster.files import by_name
from spark_backend.cluster.session import Session
from spark_backend.sinks.outbox import FileOutbox


class FramesTarget:
    """A `FrameTarget` that calls a function.

    Parameters
    ----------
    function: callable, (DataFrame, number).
    """

    def __init__(
        self, session: Session, function: Callable[[Any, int], object], outbox: FileOutbox
    ) -> None:
        self._session, self._function, self._outbox = session, function, outbox
        self.expect = outbox.expect

    def open(self, plan: str) -> Position | None:
        """Where the outbox is."""
        return self._outbox.open(plan)

    def difference(self, rows: Iterable[Pair]) -> Changed:
        """What the function has not been told of these rows."""
        return self._outbox.difference(rows)

    def difference_frame(self, rows: Any) -> Any:
        """As `difference`, of rows that Spark has."""
        return self._outbox.difference_frame(rows)

    def stage(self, batch: ChangeBatch) -> None:
        """Keep a batch."""
        self._outbox.stage(batch)

    def stage_frame(self, batch: ChangeBatch) -> bool:
        """As `stage`, of changes that Spark has, which writes them."""
        return self._outbox.stage_frame(batch)

    def deliver(self) -> None:
        """Call the function with the batch that is kept, if there is one."""
        found = self._outbox.staged_files()
        if found is not None:
            self._session.restart()
            number, uris = found
            self._function(by_name(self._session.spark.read).parquet(*uris), number)
            self._outbox.delivered()
