"""The rows of a table on Spark behind the interface of the engine; rows of a view as a DataFrame.

`SparkRows` and `ScanRemote` implement the interfaces of `reactive.engine.remote` over frames.

`packed_to_columns` and `pairs_to_columns` return the rows of a view with a column per field.
Pickled rows on Spark are decoded in Python workers and do not pass through the driver; rows in the
process are sent to Spark in Arrow batches.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from optimizer import plan
from reactive.engine.collections.zset import Pair, Pairs, Row, consolidate
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Adopt, Entry, ExternalInput, Once
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import arrow_type, to_arrow
from spark_backend.codec.codec import loads, serialize_classes
from spark_backend.codec.schema import Typed
from spark_backend.codec.values import spark_type
from spark_backend.state.tables import union_frames
from spark_backend.tables import stateless
from spark_backend.tables.chain import Chain, Weighted, collect_pairs
from spark_backend.tables.frames import Frames, as_columns


class SparkRows:
    """An `ExternalRows` of `reactive.engine.remote.remote` over frames; with `is_kept`, the changes
    outlast the process.

    Cost: a change of rows writes a file; `pairs` and `size` are scans.
    """

    def __init__(self, session: Session, frames: Frames, *, is_kept: bool) -> None:
        self.frames = frames
        self.is_closed = False
        self._is_kept = is_kept
        self._session = session
        self._size: tuple[int, int] = (-1, 0)

    @property
    def version(self) -> int:
        """The number of the last change."""
        return self.frames.version

    def check(self, row: Row) -> None:
        """Raise `OffloadError` for a row that columns cannot store."""
        to_arrow(self.frames.kept, [row])

    def append(self, pairs: Sequence[Pair]) -> int:
        """Insert and delete rows, given with their weights, and return the new version."""
        return self.frames.change(pairs)

    def append_frame(self, frame: DataFrame, weight: int, once: Once | None = None) -> int:
        """Insert the rows of a DataFrame, or delete them if the weight is negative."""
        change = self.frames.add_frame if weight > 0 else self.frames.remove_frame
        return change(frame, once)

    def upsert(self, rows: Any, once: Once | None = None) -> int:
        """Add rows, or the rows of a DataFrame, which replace the rows with their keys."""
        is_frame = isinstance(rows, DataFrame)
        return self.frames.upsert_frame(rows, once) if is_frame else self.frames.upsert_rows(rows)

    def replace(self, frame: DataFrame, once: Once | None = None) -> int:
        """Replace all rows by the rows of a DataFrame, and return the new version."""
        return self.frames.replace_frame(frame, once)

    def pairs(self) -> Iterator[Pair]:
        """Yield all rows, each once with its weight."""
        return iter(consolidate(collect_pairs(self.frames.current())))

    def size(self) -> int:
        """Return the number of rows."""
        version, size = self._size
        if version != self.version:
            total = self.frames.current().frame.agg(F.sum("weight")).first()
            size = int((total and total[0]) or 0)
            self._size = (self.version, size)
        return size

    def steps(self, chain: Sequence[plan.Node]) -> list[str]:
        """Describe for each node of a chain whether it runs as columns or in Python workers, and
        why."""
        none = self.frames.since(self.version, self.version)
        return [str(step) for step in Chain(self._session.paths).run(tuple(chain), none).steps]

    def stop(self) -> None:
        """Close the table; delete the changes unless a later process may continue them."""
        self.is_closed = True
        if not self._is_kept:
            self.frames.close()

    def frame(self) -> DataFrame:
        """Return all rows, a column per field."""
        found: DataFrame = self._session.given(as_columns(self.frames.current()))
        return found


class ScanRemote:
    """A stateless `Remote`: rows of a table, sent through a chain of nodes."""

    resumed: int | None = None
    begun_anew = ""
    adopt: Adopt | None = None

    def __init__(self, session: Session, fragment: Fragment) -> None:
        self._chain = Chain(session.paths)
        self._last: ExternalInput | None = None
        self.is_closed = False

    def bucket(self, key: Any) -> int:
        """Return the one bucket: a scan reads all rows for any key."""
        return 0

    def pack(self, place: int, key: Any, row: Row) -> tuple[int, Row]:
        """Return the row as it is."""
        return 0, row

    def stage(self, number: int, entries: Sequence[Entry]) -> None:
        """Do nothing: the process sends no rows."""

    def apply(
        self,
        number: int,
        entries: Sequence[Entry],
        fed: Sequence[ExternalInput] = (),
        *,
        quiet: bool = False,
    ) -> Pairs:
        """Fetch the changed rows."""
        for source in fed:
            self._last = source
        if quiet:
            return ()
        return [pair for source in fed for pair in collect_pairs(self._run_chain(source))]

    def contents(self) -> Iterator[Pair]:
        """Fetch all rows."""
        return iter(consolidate(collect_pairs(self.current()))) if self._last else iter(())

    def at(self, bucket: int) -> Iterator[Pair]:
        """Fetch all rows: there are no buckets."""
        return self.contents()

    def current(self) -> Weighted:
        """Return all rows, on Spark."""
        assert self._last is not None
        frames = self._last.rows.frames  # type: ignore[attr-defined]
        return self._chain.run(self._last.chain, frames.current(self._last.upto))

    def _run_chain(self, fed: ExternalInput) -> Weighted:
        frames = fed.rows.frames  # type: ignore[attr-defined]
        return self._chain.run(fed.chain, frames.since(fed.after, fed.upto))

    def entries(self) -> Iterator[Entry]:
        """Yield nothing: there is no state."""
        return iter(())

    def footprint(self) -> tuple[int, int]:
        """Return zeros: there is no state."""
        return 0, 0

    def describe(self) -> str:
        """Describe where the rows are."""
        return "Spark, rows of a table"

    def to_spark(self, row_type: Any = None) -> DataFrame:
        """Return all rows, a column per field."""
        return as_columns(self.current())

    def stop(self) -> None:
        """Mark the scan as closed; it has nothing to stop."""
        self.is_closed = True

    def close(self) -> None:
        """Mark the scan as closed; it has nothing to release."""
        self.is_closed = True


TOGETHER = 10_000
"""The minimum number of rows of a batch sent to Spark; a bucket is never split."""


def packed_to_columns(session: Session, parts: Sequence[DataFrame], kept: Typed) -> DataFrame:
    """Return pickled rows as columns: weights of equal rows in `parts` are added up, and each row
    is repeated by its weight.

    The frames in `parts` have a bucket and a weight per row.
    """
    if not parts:
        return pairs_to_columns(session, (), kept)
    rows = union_frames(parts).repartition("bucket").sortWithinPartitions("bucket")
    given = (serialize_classes(), pickle.dumps(kept))
    run = stateless.worker_function(
        session.paths, "spark_backend.tables.table", "decode_rows", *given
    )
    return as_columns(Weighted(rows.mapInArrow(run, _weighted_schema(kept)), kept))


def pairs_to_columns(session: Session, pairs: Iterable[Pair], kept: Typed) -> DataFrame:
    """Return rows of the process as columns."""
    given = list(pairs)
    table = pa.table(
        {
            "row": to_arrow(kept, [row for row, _ in given]),
            "weight": pa.array([weight for _, weight in given], pa.int64()),
        }
    )
    return as_columns(Weighted(session.outer.createDataFrame(table, _weighted_schema(kept)), kept))


def decode_rows(
    classes: dict[str, bytes], kept_in: bytes, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Decode packed rows, sorted by bucket, into columns, each row once; runs in a worker."""
    stateless.adopt_classes(classes)
    kept = pickle.loads(kept_in)
    schema = pa.schema([("row", arrow_type(kept)), ("weight", pa.int64())])
    for pairs in _group_by_bucket(batches):
        rows = to_arrow(kept, [row for row, _ in pairs])
        weights = pa.array([weight for _, weight in pairs], pa.int64())
        yield pa.record_batch([rows, weights], schema=schema)


def _group_by_bucket(batches: Iterable[pa.RecordBatch]) -> Iterator[list[Pair]]:
    """Yield the rows of some whole buckets at a time, across the ends of batches; copies of a row
    are added up."""
    some: list[Pair] = []
    for _, entries in groupby(_packed_entries(batches), itemgetter(0)):
        some += consolidate((loads(row), weight) for _, row, weight in entries)
        if len(some) >= TOGETHER:
            yield some
            some = []
    yield some


def _packed_entries(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes, int]]:
    """Yield bucket, pickled row and weight of each row of the batches."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("bucket", "row", "weight"))
        yield from zip(*columns, strict=True)


def _weighted_schema(kept: Typed) -> T.StructType:
    fields = [T.StructField("row", spark_type(kept)), T.StructField("weight", T.LongType())]
    return T.StructType(fields)
