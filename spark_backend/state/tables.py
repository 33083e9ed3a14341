"""State tables: the state of the operators of a plan on Spark, as plain Parquet files.

    flush n     one job writes the rows added to all tables; the manifest of n makes them count
    flush 0     of many rows: writes bases, with a separate job for each independent table
    put n       as flush n, for few rows of this process, which writes them itself (`one_job.py`)
    base        the net rows of a table, in one or more files per bucket of its key

A table is read as its base and the small later files. A join with few keys reads only the buckets
of these keys (Spark's dynamic partition pruning). More than `MOST_SEGMENTS` later files are merged,
and later rows above `SHARE` of the base start a new base, so that both the files and the work of a
look-up stay bounded. Few rows are merged without a job.

`find_merge_start` chooses the segments to merge:

    base 1,000,000 | 48,000 | 9,000 | 700 | 16 | 1 | 1 | 1        rows of each, the oldest first

A run of the youngest segments is merged when there are too many. The run reaches back while the
segment before it has at most `FACTOR` times the rows of the run. Sizes then fall by a factor, and a
row is rewritten about log(rows) times.

State:  on disk.
Cost:   a flush O(rows added); segments <= `most` + 1; rows rewritten O(rows log rows).
Source: log-structured merge trees, tiered; state partitioned like its changes, as in [mrql].
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import partial, reduce
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_backend.cluster.files import locate
from spark_backend.cluster.paths import MAKE_ANEW, writing
from spark_backend.cluster.session import Session
from spark_backend.state.ends import check_ends
from spark_backend.state.manifest import (
    BASE,
    FLUSH,
    MANIFESTS,
    MERGED,
    Hold,
    Holds,
    Manifest,
    Manifests,
    Segment,
    discard_folder,
    flush_prefix,
    new_job_folder,
    sweep_folders,
)
from spark_backend.state.one_job import (
    BUCKET,
    TABLE,
    SortedBases,
    TableSpec,
    TaggedRows,
    combine_rows,
    net_table,
    read_segment,
    read_segment_frame,
    read_segment_rows,
    write_segments,
)

MOST_SEGMENTS = 16
"""The number of later segments that are merged."""
SHARE = 0.3
"""The share of the rows of the base that later rows need to start a new base."""
PER_BUCKET = 100_000
MOST_BUCKETS = 512
ROWS_OF_GROUP = 8
"""The assumed number of first rows per group."""
MOST_AS_PLANNED = 100_000
"""The most rows of a flush whose tasks are not split: changes are broadcast to all tasks."""
MOST_HERE, MOST_BYTES = 100_000, 1 << 25
"""Later segments of at most this many rows and bytes are merged in this process."""
NOTHING: Mapping[str, int] = MappingProxyType({})


class FlushRefused(Exception):
    """A flush added nothing, because rows were to be added to its `refused` table."""

    def __init__(self, found: pa.Table) -> None:
        super().__init__("a flush said that it has failed")
        self.found = found


class StateTables:
    """The state tables in a folder.

    Parameters
    ----------
    folder: a path, or a URI of a file system that Spark knows.
    plan: identifies the plan that owns the state.
    specs: the tables, by name.
    pickled: True if a table has a column of pickled rows.
    trust: True if pickled rows of an earlier process may be read.

    Raises
    ------
    OffloadError: the state belongs to another plan, has been changed, is incomplete, or is pickled
        and not trusted.
    """

    def __init__(
        self,
        session: Session,
        folder: str,
        plan: str,
        specs: Mapping[str, TableSpec],
        *,
        pickled: bool = False,
        trust: bool = False,
    ) -> None:
        self._session = session
        found = locate(folder, session)
        self._files, self._root, self._uri = found.files, found.root, found.uri
        self._manifests = Manifests(self._files, self._root, plan, pickled=pickled, trust=trust)
        self.manifest: Manifest = self._manifests.last()
        self._is_sure = True
        self.check("restore it, or give an empty folder as the checkpoint")
        sweep_folders(self._files, self._root, self.manifest)
        self._holds = Holds(self._files, self._root, self.manifest)
        self._specs = specs
        self._sorted = SortedBases()

    @property
    def number(self) -> int | None:
        """The number of the last flush that counts; None before the first one."""
        return self.manifest.number

    def check(self, advice: str = MAKE_ANEW) -> None:
        """Check that all files of the manifest exist unchanged.

        Raises
        ------
        OffloadError: a file is missing or changed.
        """
        segments = [s for found in self.manifest.tables.values() for s in found]
        given = [
            (f"{self._root}/{s.folder}/{name}", end)
            for s in segments
            for name, end in zip(s.files, s.ends, strict=True)
        ]
        check_ends(self._files, given, f"the state tables of a query are kept in it\n  {advice}")

    def parts(self, spec: TableSpec) -> list[DataFrame]:
        """Return the frames of a table as of the last flush: its base, with the column `b`, and its
        later rows. Copies of a row are not added up; the list is empty for an empty table."""
        return list(self.split(spec).values())

    def split(self, spec: TableSpec, held: Sequence[Segment] | None = None) -> dict[str, DataFrame]:
        """Return the frames of `parts` by name, `base` and `later`; a name without files is left
        out.

        Parameters
        ----------
        held: segments that a reader holds, in place of the current ones.
        """
        segments = self._segments(spec) if held is None else held
        parts = {
            "base": [s for s in segments if s.is_base],
            "later": [s for s in segments if not s.is_base],
        }
        return {
            name: self._read_segments(spec, some, with_bucket=name == "base")
            for name, some in parts.items()
            if any(one.files for one in some)
        }

    def near(self, spec: TableSpec, hashes: Collection[int] | None = None) -> DataFrame:
        """Return the rows of all files that can contain the given key hashes.

        Parameters
        ----------
        hashes: hashes of keys; None for all rows.
        """
        segments = [s for s in self._segments_near(spec, hashes) if s.files]
        if not segments:
            empty: DataFrame = self._session.spark.createDataFrame([], spec.schema)
            return empty
        return self._read_segments(spec, segments, with_bucket=False)

    def rows_near(self, spec: TableSpec, hashes: Collection[int] | None = None) -> int:
        """Return the number of rows that `near` reads."""
        return sum(segment.rows for segment in self._segments_near(spec, hashes))

    def is_added_up(self, spec: TableSpec, held: Sequence[Segment] | None = None) -> bool:
        """Return True if each row is in the base once: the base was merged from earlier
        segments."""
        segments = self._segments(spec) if held is None else held
        return all(s.folder.startswith(f"{BASE}/") for s in segments if s.is_base)

    def buckets(self, spec: TableSpec) -> int:
        """Return the number of buckets of the base of a table."""
        found = [s.buckets for s in self.manifest.tables.get(spec.name, ()) if s.is_base]
        return found[0] if found else 1

    def flush(
        self,
        number: int,
        added: Mapping[str, DataFrame] | TaggedRows,
        *,
        rows: int = 0,
        apart: Mapping[str, int] = NOTHING,
        tokens: Mapping[str, Any] | None = None,
        refused: str | None = None,
        tasks: int | None = None,
        gone: Collection[str] = (),
    ) -> None:
        """Add rows to tables in one job. A flush whose number already counts adds nothing.

        Parameters
        ----------
        rows: the approximate number of rows of each table. Many rows in the first flush are written
            as bases.
        apart: the independent tables, with their numbers of rows. Their bases are written by
            separate jobs, without the columns of other tables.
        gone: tables to drop.
        tokens: of sources, the positions that this flush reaches.
        refused: a table that must stay empty: rows for it make the whole flush fail.
        tasks: the number of writing tasks; by default as many as run concurrently.

        Raises
        ------
        Refused: with the rows for the table `refused`.
        """
        if self._is_flushed(number):
            return
        names = added.tables if isinstance(added, TaggedRows) else tuple(added)
        is_first = self.manifest.tables.keys().isdisjoint(names) and rows > PER_BUCKET
        buckets = self._first_buckets(names, rows, apart) if is_first else NOTHING
        of = FLUSH, number, added, rows, buckets, tasks
        found = self._write(*of, apart if is_first else ()) if names else {}
        if refused is not None and refused in found:
            told = FlushRefused(self._fetch_rows(self._specs[refused], [found[refused]]))
            self._holds.drop(found.values())
            raise told
        self._add(number, found, tokens, {*gone, *(n for n, s in self._specs.items() if s.is_here)})

    def put(
        self,
        number: int,
        added: Mapping[str, pa.Table],
        *,
        tokens: Mapping[str, Any] | None = None,
        gone: Collection[str] = (),
    ) -> None:
        """Add few rows of this process to tables, as `flush` does, but without a job.

        Parameters
        ----------
        added: rows with the columns of their table's schema.

        Raises
        ------
        OffloadError: the files cannot be written; nothing has been added.
        """
        if not self._is_flushed(number):
            with writing(self._root):
                found = self._write_here(FLUSH, number, added)
            self._add(number, found, tokens, gone)

    def _is_flushed(self, number: int) -> bool:
        """Return True if a flush already counts."""
        self._recover_manifest()
        return self.number is not None and number <= self.number

    def _add(
        self,
        number: int,
        found: Mapping[str, Segment],
        tokens: Mapping[str, Any] | None,
        gone: Collection[str],
    ) -> None:
        """Publish a flush with the segments that were written for it."""
        before = self.manifest
        self._count(before.with_flush(number, found, tokens or {}).drop_tables(gone))
        self._drop(before, gone)

    def drop(self, gone: Collection[str], tokens: Mapping[str, Any]) -> None:
        """Drop tables that are not needed, and record tokens."""
        before = self.manifest
        if before.number is not None:
            self._count(before.with_flush(before.number, {}, tokens).drop_tables(gone))
            self._drop(before, gone)

    def _drop(self, before: Manifest, gone: Collection[str]) -> None:
        self._holds.drop([s for name in gone for s in before.tables.get(name, ())])

    def as_new(self) -> StateTables:
        """Return a copy of the tables that starts empty; the tables themselves stay unchanged."""
        found = copy(self)
        found.manifest = Manifest(self.manifest.plan, pickled=self.manifest.pickled)
        return found

    def hold(self, spec: TableSpec) -> Hold:
        """Keep the current files of a table, and the files of later flushes, for a slow reader."""
        return self._holds.begin(spec.name)

    def written(self, number: int, spec: TableSpec) -> pa.Table | None:
        """Return the rows that the flush `number` added to a table, in the driver.

        Return None for no rows.
        """
        found = [s for s in self._segments(spec) if s.folder.startswith(flush_prefix(number))]
        return self._fetch_rows(spec, found) if found else None

    def all_rows(self, spec: TableSpec) -> pa.Table:
        """Return all rows of a table in the driver; copies of a row are not added up."""
        return self._fetch_rows(spec, self._segments(spec))

    def look_up(self, spec: TableSpec, hash_of: int) -> pa.Table:
        """Return the rows with a key hash, in the driver; copies of a row are not added up."""
        assert spec.hashed is not None
        segments = self._segments_near(spec, [hash_of])
        return self._fetch_rows(spec, segments, pc.field(spec.column(spec.hashed)) == hash_of)

    def sought(
        self,
        spec: TableSpec,
        hashes: Collection[int] | None,
        among: tuple[Sequence[str], pa.Array] | None,
    ) -> pa.Table:
        """Return the rows of the files that can contain some key hashes, in the driver; copies of a
        row are not added up.

        Parameters
        ----------
        among: the path of a column, and the values that the wanted rows have in it.
        """
        near = self._segments_near(spec, hashes)
        if among is None:
            return self._fetch_rows(spec, near)
        (first, *path), values = among
        where = pc.is_in(pc.field((spec.column(first), *path)), value_set=values)
        copy = self._sorted.near(
            spec.name, self._segments(spec), near, (first, *path), partial(self._fetch_rows, spec)
        )
        if copy is None:
            return self._fetch_rows(spec, near, where)
        later = self._fetch_rows(spec, [s for s in near if not s.is_base], where)
        return pa.concat_tables([copy.having(values), later])

    def pieces(self, spec: TableSpec) -> Iterator[pa.Table]:
        """Yield all rows in the driver, bucket by bucket: a bucket has all rows of its hashes.

        Copies of a row are not added up.
        """
        assert spec.hashed is not None
        count = self.buckets(spec)
        of = pc.field(spec.column(spec.hashed))
        for place in range(count):
            left = of - (of / count) * count  # as in C: with the sign of the hash
            here = (left == place) | (left == place - count) if count > 1 else None
            yield self._fetch_rows(spec, self._segments_of_buckets(spec, [place]), here)

    def _segments_near(self, spec: TableSpec, hashes: Collection[int] | None) -> Sequence[Segment]:
        """Return the later segments, and the base segments of the buckets of some hashes, or of
        all."""
        if hashes is None:
            return self._segments(spec)
        count = self.buckets(spec)
        return self._segments_of_buckets(spec, {hash_of % count for hash_of in hashes})

    def _segments_of_buckets(self, spec: TableSpec, places: Collection[int]) -> list[Segment]:
        """Return the later segments, and the base segments with only the files of some buckets."""
        starts = {f"{BUCKET}={place}" for place in places}
        return [
            s.of(lambda file: file.partition("/")[0] in starts) if s.is_base else s
            for s in self._segments(spec)
        ]

    def _fetch_rows(
        self, spec: TableSpec, segments: Sequence[Segment], where: Any = None
    ) -> pa.Table:
        """Read the rows of segments into the driver.

        Raises
        ------
        OffloadError: a file cannot be read.
        """
        return read_segment_rows(self._files, self._root, spec, segments, where)

    def compact(self, last: Mapping[str, int] = NOTHING) -> None:
        """Merge files where there are too many.

        The files of the last flush stay, because its delta may be read again.

        Parameters
        ----------
        last: of a table, the number of the flush to treat as the last one.
        """
        self._recover_manifest()
        for spec in self._specs.values():
            segments = self._segments_before(spec, last.get(spec.name, self.number))
            first = find_merge_start(
                [s.rows for s in segments],
                has_base=bool(segments) and segments[0].is_base,
                most=MOST_SEGMENTS,
                share=SHARE,
                least=PER_BUCKET,
            )
            if first is not None:
                self._merge(spec, segments[first:], is_base=first == 0)

    def _segments_before(self, spec: TableSpec, number: int | None) -> Sequence[Segment]:
        """Return the segments of a table without the segment of the flush `number`."""
        segments = self._segments(spec)
        last = flush_prefix(number)
        return segments[:-1] if segments and segments[-1].folder.startswith(last) else segments

    def bytes(self, names: Collection[str] | None = None) -> int:
        """Return the size of all files, or of the files of some tables."""
        selector = fs.FileSelector(self._root, allow_not_found=True, recursive=True)
        found = self._files.get_file_info(selector)
        if names is None:
            return sum(info.size or 0 for info in found)
        of = {f"{TABLE}={name}" for name in names}
        return sum(info.size or 0 for info in found if not of.isdisjoint(info.path.split("/")))

    def delete(self) -> None:
        """Delete everything that can be deleted, the manifests first. Readers start again."""
        self._holds.close()
        self._sorted = SortedBases()
        discard_folder(self._files, f"{self._root}/{MANIFESTS}")
        discard_folder(self._files, self._root)

    def _merge(self, spec: TableSpec, gone: Sequence[Segment], *, is_base: bool) -> None:
        """Merge segments into one that replaces them."""
        rows = sum(segment.rows for segment in gone)
        count = self._buckets(spec, rows) if is_base else 0
        kind = f"{BASE if is_base else MERGED}/{spec.name}"
        found: dict[str, Segment] = {}
        if not is_base and _are_few(gone):
            here = net_table(spec, self._fetch_rows(spec, gone))
            if spec.dropping is not None:
                here = spec.dropping.left(here)
            found = self._write_here(kind, self.number or 0, {spec.name: here})
        elif any(s.files for s in gone):
            net = net_frame(spec, self._read_segments(spec, gone, with_bucket=False))
            if spec.dropping is not None:
                net = spec.dropping.left_on_spark(net, self._session.paths)
            buckets = {spec.name: count} if is_base else {}
            given = {spec.name: net if is_base else net.coalesce(1)}
            found = self._write(kind, self.number or 0, given, rows, buckets)
        none = Segment(f"{kind}/none/{TABLE}={spec.name}", (), (), (), count)
        self._replace(spec, gone, found.get(spec.name, none))

    def _first_buckets(
        self, names: Sequence[str], rows: int, apart: Mapping[str, int]
    ) -> dict[str, int]:
        """Return the number of buckets of each first base, whose size is not known yet."""
        found = {}
        for spec in (self._specs[name] for name in names):
            guess = rows // ROWS_OF_GROUP if spec.of_groups else rows
            found[spec.name] = self._buckets(spec, apart.get(spec.name, guess))
        return found

    def _buckets(self, spec: TableSpec, rows: int) -> int:
        """Return the number of buckets for a base of `rows` rows."""
        return max(1, min(MOST_BUCKETS, rows // PER_BUCKET)) if spec.bucket else 1

    def _replace(self, spec: TableSpec, gone: Sequence[Segment], now: Segment) -> None:
        """Replace the segments `gone` by the segment `now`, and delete their files."""
        kept = [now if s is gone[0] else s for s in self._segments(spec) if s not in gone[1:]]
        self._count(self.manifest.with_segments(spec.name, tuple(kept)))
        self._holds.drop(gone)

    def _count(self, manifest: Manifest) -> None:
        """Publish a manifest, which makes its flush count.

        If that fails, it is unknown whether the flush counts.
        """
        self._is_sure = False
        self._manifests.put(manifest)
        self._holds.counts(manifest)
        self.manifest, self._is_sure = manifest, True

    def _recover_manifest(self) -> None:
        """Read the current manifest again if writing one was interrupted."""
        if not self._is_sure:
            last = self._manifests.last()
            self._holds.counts(last)
            self.manifest, self._is_sure = last, True

    def _segments(self, spec: TableSpec) -> Sequence[Segment]:
        return self.manifest.tables.get(spec.name, ())

    def _read_segments(
        self, spec: TableSpec, segments: Sequence[Segment], *, with_bucket: bool
    ) -> DataFrame:
        """Return the rows of segments.

        `with_bucket`: all segments are of one base; adds the bucket, which is in the path of a
        file.
        """
        spark = self._session.spark
        return read_segment_frame(spark, self._uri, spec, segments, with_bucket=with_bucket)

    def _write(
        self,
        kind: str,
        number: int,
        added: Mapping[str, DataFrame] | TaggedRows,
        rows: int,
        buckets: Mapping[str, int],
        tasks: int | None = None,
        alone: Collection[str] = (),
    ) -> dict[str, Segment]:
        """Write rows in one job to a folder of its own and return the segments; with `buckets` they
        are bases. Each table in `alone` has a separate job."""
        names = added.tables if isinstance(added, TaggedRows) else tuple(added)
        folder = new_job_folder(kind, number)
        found: dict[str, Segment | None] = {}
        try:
            with self._spread(rows, buckets):
                for some in _split_jobs(added, alone):
                    self._job(folder, some, buckets, tasks)
            found = {n: self._segment(folder, n, buckets) for n in names}
        finally:
            if not any(found.values()):
                discard_folder(self._files, f"{self._root}/{folder}")
        return {name: segment for name, segment in found.items() if segment is not None}

    def _spread(self, rows: int, buckets: Mapping[str, int]) -> AbstractContextManager[None]:
        """Set how a job is split into tasks: a job of few rows runs as planned."""
        if not buckets and rows <= MOST_AS_PLANNED:
            return nullcontext()
        return self._session.adaptive(max(1, rows // (PER_BUCKET * MOST_BUCKETS)))

    def _job(
        self,
        folder: str,
        added: Mapping[str, DataFrame] | TaggedRows,
        buckets: Mapping[str, int],
        tasks: int | None,
    ) -> None:
        """Write the rows added to tables."""
        by = (BUCKET,) if buckets else ()
        whole = combine_rows(self._specs, added, buckets, lambda: tasks or self.tasks())
        whole.write.mode("append").partitionBy(TABLE, *by).parquet(f"{self._uri}/{folder}")

    def _write_here(
        self, kind: str, number: int, added: Mapping[str, pa.Table]
    ) -> dict[str, Segment]:
        """Write rows in this process to a folder of its own, and return the segments."""
        given = {name: (self._specs[name], rows) for name, rows in added.items()}
        return write_segments(self._files, self._root, new_job_folder(kind, number), given)

    def _segment(self, folder: str, name: str, buckets: Mapping[str, int]) -> Segment | None:
        """Return the segment of a table that the job of a folder wrote; None for no rows."""
        spec = self._specs[name]
        return read_segment(self._files, self._root, folder, spec, buckets.get(name, 0))

    def tasks(self) -> int:
        """Return the number of tasks of a job."""
        return self._session.tasks


def _split_jobs(
    added: Mapping[str, DataFrame] | TaggedRows, alone: Collection[str]
) -> list[Mapping[str, DataFrame] | TaggedRows]:
    """Split the added rows into jobs, first the one that may raise."""
    if isinstance(added, TaggedRows):
        return [added]
    others = {name: frame for name, frame in added.items() if name not in alone}
    each = [{name: frame} for name, frame in added.items() if name in alone]
    return [*([others] if others else []), *each]


def _are_few(segments: Sequence[Segment]) -> bool:
    """Return True if this process merges the segments faster than a job."""
    rows = sum(segment.rows for segment in segments)
    return rows <= MOST_HERE and sum(segment.bytes for segment in segments) <= MOST_BYTES


def union_frames(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all frames, which have the same columns."""
    return reduce(lambda a, b: a.unionByName(b), frames)


def net_frame(spec: TableSpec, rows: DataFrame) -> DataFrame:
    """Return equal rows once: their `added` columns are summed, and rows whose sums are all 0 are
    dropped."""
    sums = [F.sum(name).alias(name) for name in spec.added]
    left = reduce(lambda a, b: a | b, [F.col(name) != 0 for name in spec.added])
    return rows.groupBy(*spec.by).agg(*sums).filter(left).select(*spec.schema.names)


FACTOR = 2
"""A segment before a run joins it if it has at most this many times the rows of the run."""


def find_merge_start(
    rows: Sequence[int], *, has_base: bool, most: int, share: float, least: int
) -> int | None:
    """Return the position of the first segment to merge; None for none.

    Parameters
    ----------
    rows: the rows of each segment, the oldest first; `has_base` says that the first is the base.
    most: the maximum number of later segments.
    share, least: start a new base (position 0) when the later rows exceed this share of the rows of
        the base, or of `least`.
    """
    base = rows[0] if has_base else 0
    if sum(rows) - base > share * max(base, least):
        return 0
    if len(rows) - has_base <= most:
        return None
    first = has_base + most // 2
    while first > has_base and rows[first - 1] <= FACTOR * sum(rows[first:]):
        first -= 1
    return first
