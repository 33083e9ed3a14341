"""Follow a stream of Spark in the process: the rows of its batches, for tables and streams there.

    readStream --a batch--> checked rows --> Batch(rows, token=number) --> one commit
         ^                                                                    |
         +------------ the next batch, once this one is committed ------------+

State:  the checkpoint of the query, in a temporary folder that lives as long as the source.
Cost:   one job per batch, over its rows, which are then all in memory.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

from pyspark.sql import functions as F

from optimizer.errors import PlanError
from reactive.borders.sources.batch import Batch, Refused, Token
from reactive.engine.remote.remote import StreamOptions
from reactive.errors import TableError
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import from_arrow
from spark_backend.streams.feed import check_runs, stream_frame
from spark_backend.streams.forms import Batches, as_changes
from spark_backend.tables.frames import require_columns

T = TypeVar("T")


class SessionOwner(Protocol):
    """The owner of a Spark session, as `SparkOffload` is one."""

    session: Session


class SparkSource(Generic[T]):
    """The rows that a stream of Spark brings, as a source for `Database.ingest`.

    The rows come into the process, unlike those of `Database.spark_stream`. It feeds a stream of
    events, or a table.

    Parameters
    ----------
    offload: the `SparkOffload` whose session runs the query.
    rows: a streaming `DataFrame`, the path of a folder whose new files are followed, or a callable,
        session -> DataFrame.
    row_type: the class of the rows, as for `Database.spark_table`.
    name: the name of the source.
    trigger: the time between two batches, as for `Database.spark_stream`.
    format: the format of the files of a path.

    A batch of the query is a commit, and its number the token. The query continues after a stop or
    an error; another process reads all rows again.

    Raises
    ------
    OffloadError: rows of the class have no Spark type.
    PlanError: `rows` is no stream.
    TableError: the columns do not fit the class.
    """

    def __init__(
        self,
        offload: SessionOwner,
        rows: Any,
        row_type: type[T],
        *,
        name: str = "spark",
        trigger: str | float = 1.0,
        format: str = "parquet",
    ) -> None:
        self.name = name
        """The name under which the token is stored."""
        self._row_type = row_type
        self._options = StreamOptions(trigger=trigger, format=format)
        self._session = offload.session
        self._kept = require_columns(row_type, name)
        folder = tempfile.mkdtemp(prefix="reactive-source-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        frame = stream_frame(self._session, rows, self._kept, self._options)
        first = frame()
        if not first.isStreaming:
            raise PlanError(
                f"source {name!r} follows a stream, and was given a DataFrame that does not change"
                "\n  give spark.readStream..., or rows to add: table.add_all(frame.collect())"
            )
        check_runs(self._session, first, name)
        as_changes(first, self._kept, None, name, self._options)  # raises if columns do not fit
        self._batches = Batches(self._session, frame, folder, self._options)

    def batches(self, since: Token, stop: threading.Event) -> Iterator[Batch[T]]:
        """Yield the batches after a token; see `Source.batches`."""
        for batch in self._batches.since(since, stop):
            if since is not None and batch.token <= since:  # committed, but Spark does not know
                continue
            rows, refused = self._rows(batch.frame)
            given = {self._row_type: refused} if refused else {}
            yield Batch(rows, refused=given, token=batch.token, made=batch.made)
            since = batch.token

    def waiting(self) -> int | None:
        """Return the number of rows to come, as Spark tells it; None if it does not."""
        return self._batches.waiting()

    def _rows(self, frame: Any) -> tuple[list[T], list[Refused]]:
        """Return the rows of a batch, and the values that are none."""
        changes = as_changes(frame, self._kept, None, self.name, self._options)
        found = changes.select(
            F.when(F.col("unfit").isNull(), F.col("row")).alias("row"), "unfit", "shown"
        ).toArrow()
        unfit = found.column("unfit").to_pylist()
        fits = found.filter([why is None for why in unfit]).column("row").combine_chunks()
        shown = found.column("shown").to_pylist()
        refused = [
            Refused(text, TableError(f"source {self.name!r}: {why}, such as {text!s:.200}"))
            for why, text in zip(unfit, shown, strict=True)
            if why is not None
        ]
        return from_arrow(self._kept, fits), refused

    def __repr__(self) -> str:
        return f"SparkSource({self.name!r}, {self._row_type.__name__})"
