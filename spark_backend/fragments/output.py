"""Readers of a state table that holds the output of a fragment, as rows for a sink.

    rows       the table as of a flush
    changes    what flushes have added to it since

Both are read when somebody writes them, from files that are kept until then (`state/holds.py`).

State:  which files.
Cost:   none here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame

from spark_backend.cluster.session import Session
from spark_backend.codec.schema import Typed
from spark_backend.sinks.frame_rows import FrameRows, columns
from spark_backend.state.manifest import Segment
from spark_backend.state.tables import StateTables, TableSpec, united
from spark_backend.state.whole import whole


@dataclass(frozen=True, slots=True)
class Output:
    """A state table of rows with weights, and what its rows are."""

    session: Session
    tables: StateTables
    spec: TableSpec
    kept: Typed
    is_set: bool
    is_net: bool
    """As of `whole`."""
    is_over: Callable[[], bool]
    """Whether it is given up."""


class TableReader:
    """What one reader has read of a table: a `reactive.engine.remote.following.Following`."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._hold = output.tables.hold(output.spec)
        self._first = self._hold.first
        self._taken: tuple[Segment, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether it has to begin anew."""
        return self._hold.is_over or self._output.is_over()

    @property
    def waiting(self) -> int:
        """How many changed rows it has not read, at most."""
        return sum(segment.rows for segment in self._hold.later)

    def rows(self) -> FrameRows:
        """All rows as of when it began."""
        return self._given(self._first, partial(self._whole, self._first), is_net=True)

    def changes(self) -> FrameRows | None:
        """What flushes have added since; None for nothing."""
        self._taken = self._hold.later
        if not self._taken:
            return None
        return self._given(self._taken, partial(self._added, self._taken), is_net=False)

    def forget(self) -> None:
        """What `rows` and the last `changes` have given was read."""
        self._first = ()
        self._hold.forget(self._taken)

    def close(self) -> None:
        """It reads no more."""
        self._hold.close()

    def _given(
        self, segments: tuple[Segment, ...], made: Callable[[Typed], DataFrame], *, is_net: bool
    ) -> FrameRows:
        output = self._output
        rows = sum(segment.rows for segment in segments)
        return FrameRows(output.session, output.kept, rows, (made,), is_net)

    def _whole(self, segments: tuple[Segment, ...], of: Typed) -> DataFrame:
        o = self._output
        found = whole(o.tables, o.spec, is_set=o.is_set, is_net=o.is_net, held=segments)
        if found is None:
            found = o.session.spark.createDataFrame([], o.spec.schema)
        return columns(found, o.kept, of)

    def _added(self, segments: tuple[Segment, ...], of: Typed) -> DataFrame:
        o = self._output
        parts = o.tables.split(o.spec, held=segments).values()
        names = o.spec.schema.names
        return columns(united([part.select(*names) for part in parts]), o.kept, of)
