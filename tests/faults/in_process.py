"""An operator by buckets and its state tables, as on Spark, but without Spark.

The code of Python workers runs here, over the same batches, and the output of a job is written
here, to the same folders. All other code is the code that runs on Spark: the manifests, the levels
of files, staged rows, retried flushes, deferred work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Entry, ExternalInput
from spark_backend import SparkOffload
from spark_backend.bucketed import remote
from spark_backend.bucketed import remote as bucketed
from spark_backend.bucketed.bucket_changes import CHANGES, FAILED, OUTPUT, ROWS, bucket_changes
from spark_backend.bucketed.remote import ENTRIES, BucketedRemote
from spark_backend.cluster.session import Session
from spark_backend.codec.codec import serialize_classes
from spark_backend.state import tables
from spark_backend.state.manifest import Segment
from spark_backend.state.one_job import TABLE, TableSpec
from spark_backend.state.tables import StateTables

COLUMNS = ENTRIES.names


class Frame:
    """Stands for a DataFrame: rows that are here."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    def select(self, *names: str) -> Frame:
        return Frame(self.rows.select(list(names)))

    def coalesce(self, tasks: int) -> Frame:
        return self


def united(frames: Sequence[Frame]) -> Frame:
    """The rows of all."""
    return Frame(pa.concat_tables([frame.rows for frame in frames]).combine_chunks())


def added_up(spec: TableSpec, frame: Frame) -> Frame:
    """Sum the weights of each row, and drop rows of weight zero."""
    net: Counter[tuple[Any, ...]] = Counter()
    for *row, weight in zip(*(frame.rows[n].to_pylist() for n in COLUMNS), strict=True):
        net[tuple(row)] += weight
    return Frame(table_of([(*row, n) for row, n in net.items() if n]))


def table_of(entries: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Return a table of entries whose values are in the order of columns."""
    columns = zip(*entries, strict=True) if entries else ((),) * len(ENTRIES)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, ENTRIES, strict=True)], ENTRIES)


class Tables(StateTables):
    """State tables that are read and written here."""

    def _read_segments(self, spec: TableSpec, segments: Sequence[Segment], **more: Any) -> Any:
        return Frame(self._fetch_rows(spec, segments))

    def _job(self, folder: str, added: Any, buckets: Mapping[str, int], tasks: Any) -> None:
        given: Any = (
            {n: f.rows for n, f in added.items()} if isinstance(added, dict) else added.rows
        )
        for name, rows in given.items():
            inside = f"{self._root}/{folder}/{TABLE}={name}"
            self._put(inside, name, rows, buckets.get(name, 0))
        self._files.create_dir(f"{self._root}/{folder}", recursive=True)
        with self._files.open_output_stream(f"{self._root}/{folder}/_SUCCESS"):
            pass

    def _put(self, folder: str, name: str, rows: pa.Table, count: int) -> None:
        """A file per bucket, or one."""
        places: dict[str, list[int]] = {}
        for row, bucket in enumerate(rows["bucket"].to_pylist()):
            places.setdefault(f"{folder}/b={bucket % count}" if count else folder, []).append(row)
        named = rows.rename_columns([f"{name}_{column}" for column in rows.column_names])
        for path, of in places.items():
            self._files.create_dir(path, recursive=True)
            with self._files.open_output_stream(f"{path}/part.parquet") as stream:
                pq.write_table(named.take(of), stream, write_page_checksum=True)


class Operator(BucketedRemote):
    """A `BucketedRemote` whose worker is this process."""

    def _flush(self, number: int, entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> None:
        with patch.object(self._staged, "frames", self._staged_here):
            super()._flush(number, entries, fed)

    def _staged_here(self, spark: Any, number: int, schemas: Any) -> dict[int, Any]:
        staged = self._staged
        files = [f for some in staged._written.values() for f in some]
        if number != staged._number or not files:
            return {}
        paths = [f.removeprefix("file://") for f in files]
        return {0: Frame(pa.concat_tables([pq.read_table(p) for p in paths]))}

    def _changes(self, entries: Sequence[Entry], away: list[Any], rows: int) -> Any:
        """Compute the output of a worker."""
        here = [Frame(remote.entries_to_table(entries))] if entries else []
        new = united([*here, *away])
        parts: list[Any] = [(new, True), *((p, False) for p in self._tables.parts(self._rows))]
        tagged = [
            f.rows.select(COLUMNS).append_column("is_new", pa.array([is_new] * f.rows.num_rows))
            for f, is_new in parts
        ]
        batches = pa.concat_tables(tagged).sort_by("bucket").combine_chunks().to_batches()
        found = pa.Table.from_batches(
            list(bucket_changes(self._shipped, serialize_classes(), batches)), CHANGES
        )
        names = (ROWS, OUTPUT, FAILED)
        return {n: found.filter(pc.equal(found[TABLE], n)).select(COLUMNS) for n in names}


class Here(Session):
    """A placeholder for a session, which no code here uses."""

    spark = None
    paths: list[str] = []

    @contextmanager
    def adaptive(self, times: int = 1) -> Iterator[None]:
        """Do nothing: no task here can have much more data than others."""
        yield

    def is_alive(self) -> bool:
        return True

    def follow(self) -> None: ...


class Offload(SparkOffload):
    """A `SparkOffload` whose operators by buckets run in this process."""

    def __init__(self, checkpoint: str, *, trust: bool = True) -> None:
        with patch("spark_backend.offload.check_spark"):
            super().__init__(checkpoint=checkpoint, threshold_rows=None, trust=trust)
        self.session = Here()

    def apart(self, fragment: Fragment) -> str | None:
        return "one operator at a time"

    def release(self) -> None: ...


@contextmanager
def in_process(*, most_segments: int = 3, per_bucket: int = 8) -> Iterator[None]:
    """Run the whole operator in this process in the block, and compact files early."""
    with (
        patch.object(bucketed, "StateTables", Tables),
        patch.object(bucketed, "BucketedRemote", Operator),  # made by `SparkOffload`
        patch.object(bucketed, "union_frames", united),
        patch.object(tables, "union_frames", united),
        patch.object(tables, "net_frame", added_up),
        patch.object(tables, "MOST_SEGMENTS", most_segments),
        patch.object(tables, "PER_BUCKET", per_bucket),
    ):
        yield
