"""State tables: what the operators of a plan on Spark know, as files that anybody can read.

    flush n     one job writes what is added to all tables; the manifest of n makes it count
    flush 0     of many rows: bases, and a job more for each table that has nothing from the others
    put n       the same of rows that are here and few: this process writes them (`one_job.py`)
    base        all that a table was given, added up, in a file or more per bucket of its key

A table is read as its base, of which a join with few keys looks at the buckets of these keys alone
(Spark's dynamic partition pruning), and the small files that came later. From a number of these on
they are put together, and from a share of the base on a new base is made (`tables.py`), so that
both the files and the work of a look-up stay bounded. Few rows are put together without a job.

State:  on disk.
Cost:   a flush O(what it adds); each row is written anew some log(rows) times.
Source: log-structured merge trees; state that is partitioned as its changes are in [mrql].

Which segments of a state table are put together, so that they stay few after any flushes.

    base 1,000,000 | 48,000 | 9,000 | 700 | 16 | 1 | 1 | 1        rows of each, the oldest first

A run of the youngest is put together as soon as there are too many; it reaches as far back as the
rows before it are not many more than those in it. Sizes fall by a factor then, and a row is written
anew some log(rows) times. A new base is made when what came later is a share of it.

Cost:   segments <= `most` + 1; rows written anew O(rows log rows).
Source: log-structured merge trees, tiered.
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

from spark_backend.cluster.files import located
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
    discard,
    of_flush,
    place_of,
    sweep,
)
from spark_backend.state.one_job import (
    BUCKET as BUCKET,
)
from spark_backend.state.one_job import (
    TABLE as TABLE,
)
from spark_backend.state.one_job import (
    SortedBases,
    Tagged,
    added_up_here,
    frame_of,
    rows_of_all,
    segment_of,
    table_of,
    write_here,
)
from spark_backend.state.one_job import (
    TableSpec as TableSpec,
)

MOST_SEGMENTS = 16
"""So many later segments are put together."""
SHARE = 0.3
"""A new base is made when what came later has this share of its rows."""
PER_BUCKET = 100_000
MOST_BUCKETS = 512
ROWS_OF_GROUP = 8
"""How many of the first rows a group has, by a guess."""
MOST_AS_PLANNED = 100_000
"""Rows of a flush up to which no task is made several: what changes is sent to all of them."""
MOST_HERE, MOST_BYTES = 100_000, 1 << 25
"""Later segments with so many rows, in files of so many bytes, are put together in this process."""
NOTHING: Mapping[str, int] = MappingProxyType({})


class Refused(Exception):
    """Nothing has been added, because of what was to be added to a table."""

    def __init__(self, found: pa.Table) -> None:
        super().__init__("a flush said that it has failed")
        self.found = found


class StateTables:
    """The state tables in a folder.

    Parameters
    ----------
    folder: a path, or a URI of a file system that Spark knows.
    plan: tells whose state it is.
    specs: the tables, by name.
    pickled: whether a table has a column of pickled rows.
    trust: whether pickled rows that an earlier process left may be read.

    Raises
    ------
    OffloadError: what is there is of another plan, has been changed, is incomplete, or is pickled
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
        found = located(folder, session)
        self._files, self._root, self._uri = found.files, found.root, found.uri
        self._manifests = Manifests(self._files, self._root, plan, pickled=pickled, trust=trust)
        self.manifest: Manifest = self._manifests.last()
        self._is_sure = True
        self.check("restore it, or give an empty folder as the checkpoint")
        sweep(self._files, self._root, self.manifest)
        self._holds = Holds(self._files, self._root, self.manifest)
        self._specs = specs
        self._sorted = SortedBases()

    @property
    def number(self) -> int | None:
        """The last flush that counts."""
        return self.manifest.number

    def check(self, advice: str = MAKE_ANEW) -> None:
        """Look whether all files are there that count, as they were.

        Raises
        ------
        OffloadError: one is not.
        """
        segments = [s for found in self.manifest.tables.values() for s in found]
        given = [
            (f"{self._root}/{s.folder}/{name}", end)
            for s in segments
            for name, end in zip(s.files, s.ends, strict=True)
        ]
        check_ends(self._files, given, f"the state tables of a query are kept in it\n  {advice}")

    def parts(self, spec: TableSpec) -> list[DataFrame]:
        """What a table holds, as of the last flush: its base, with the column `b`, and what came
        later. Rows are not added up; without any there is no part."""
        return list(self.split(spec).values())

    def split(self, spec: TableSpec, held: Sequence[Segment] | None = None) -> dict[str, DataFrame]:
        """The same by `base` and `later`, where there is any of it.

        Parameters
        ----------
        held: segments that a reader holds, in the place of those that count.
        """
        segments = self._segments(spec) if held is None else held
        parts = {
            "base": [s for s in segments if s.is_base],
            "later": [s for s in segments if not s.is_base],
        }
        return {
            name: self._read(spec, some, with_bucket=name == "base")
            for name, some in parts.items()
            if any(one.files for one in some)
        }

    def near(self, spec: TableSpec, hashes: Collection[int] | None = None) -> DataFrame:
        """The rows of all files in which those with some hashes are.

        Parameters
        ----------
        hashes: of keys; None for all rows.
        """
        segments = [s for s in self._near(spec, hashes) if s.files]
        if not segments:
            empty: DataFrame = self._session.spark.createDataFrame([], spec.schema)
            return empty
        return self._read(spec, segments, with_bucket=False)

    def rows_near(self, spec: TableSpec, hashes: Collection[int] | None = None) -> int:
        """How many rows `near` reads."""
        return sum(segment.rows for segment in self._near(spec, hashes))

    def is_added_up(self, spec: TableSpec, held: Sequence[Segment] | None = None) -> bool:
        """Whether each row is once in the base, as it was made of what had been written before."""
        segments = self._segments(spec) if held is None else held
        return all(s.folder.startswith(f"{BASE}/") for s in segments if s.is_base)

    def buckets(self, spec: TableSpec) -> int:
        """How many buckets the base of a table has."""
        found = [s.buckets for s in self.manifest.tables.get(spec.name, ()) if s.is_base]
        return found[0] if found else 1

    def flush(
        self,
        number: int,
        added: Mapping[str, DataFrame] | Tagged,
        *,
        rows: int = 0,
        apart: Mapping[str, int] = NOTHING,
        tokens: Mapping[str, Any] | None = None,
        refused: str | None = None,
        tasks: int | None = None,
        gone: Collection[str] = (),
    ) -> None:
        """Add to tables, in one job; done before, with the same number, nothing is added.

        Parameters
        ----------
        rows: about how many there are in each. The first ones, if they are many, are written as
            bases.
        apart: tables whose rows take no work that those of others take as well, and how many they
            are: as bases they are written by a job for each, without the columns of others.
        gone: tables that are not needed any more.
        tokens: of sources, up to where they are taken in with it.
        refused: a table; if there is anything to add to it, nothing is added to any.
        tasks: that write; by default as many as run at a time.

        Raises
        ------
        Refused: with what was to be added to the table `refused`.
        """
        if self._has_happened(number):
            return
        names = added.tables if isinstance(added, Tagged) else tuple(added)
        is_first = self.manifest.tables.keys().isdisjoint(names) and rows > PER_BUCKET
        buckets = self._first_buckets(names, rows, apart) if is_first else NOTHING
        of = FLUSH, number, added, rows, buckets, tasks
        found = self._write(*of, apart if is_first else ()) if names else {}
        if refused is not None and refused in found:
            told = Refused(self._fetched(self._specs[refused], [found[refused]]))
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
        """Add to tables as `flush` does, what is here and is little: this process writes it.

        Parameters
        ----------
        added: rows with the columns of their table's schema.

        Raises
        ------
        OffloadError: it cannot be written; nothing has been added.
        """
        if not self._has_happened(number):
            with writing(self._root):
                found = self._write_here(FLUSH, number, added)
            self._add(number, found, tokens, gone)

    def _has_happened(self, number: int) -> bool:
        """Whether a flush counts."""
        self._ensure()
        return self.number is not None and number <= self.number

    def _add(
        self,
        number: int,
        found: Mapping[str, Segment],
        tokens: Mapping[str, Any] | None,
        gone: Collection[str],
    ) -> None:
        """Let a flush count, with what has been written for it."""
        before = self.manifest
        self._count(before.with_flush(number, found, tokens or {}).without(gone))
        self._drop(before, gone)

    def drop(self, gone: Collection[str], tokens: Mapping[str, Any]) -> None:
        """Give up tables that are not needed any more, and note tokens."""
        before = self.manifest
        if before.number is not None:
            self._count(before.with_flush(before.number, {}, tokens).without(gone))
            self._drop(before, gone)

    def _drop(self, before: Manifest, gone: Collection[str]) -> None:
        self._holds.drop([s for name in gone for s in before.tables.get(name, ())])

    def as_new(self) -> StateTables:
        """The same tables as if nothing had been added to them."""
        found = copy(self)
        found.manifest = Manifest(self.manifest.plan, pickled=self.manifest.pickled)
        return found

    def hold(self, spec: TableSpec) -> Hold:
        """Keep the files of a table as they are, and what flushes add to it, for a reader that
        takes its time."""
        return self._holds.begin(spec.name)

    def written(self, number: int, spec: TableSpec) -> pa.Table | None:
        """What the last flush has added to a table, in the driver; None for nothing."""
        found = [s for s in self._segments(spec) if s.folder.startswith(of_flush(number))]
        return self._fetched(spec, found) if found else None

    def all_rows(self, spec: TableSpec) -> pa.Table:
        """All rows, in the driver; not added up."""
        return self._fetched(spec, self._segments(spec))

    def look_up(self, spec: TableSpec, hash_of: int) -> pa.Table:
        """The rows with a hash, in the driver; not added up."""
        assert spec.hashed is not None
        segments = self._near(spec, [hash_of])
        return self._fetched(spec, segments, pc.field(spec.column(spec.hashed)) == hash_of)

    def sought(
        self,
        spec: TableSpec,
        hashes: Collection[int] | None,
        among: tuple[Sequence[str], pa.Array] | None,
    ) -> pa.Table:
        """The rows of the files in which those with some hashes are, in the driver; not added up.

        Parameters
        ----------
        among: the path of a column, and the values that it has in the rows that are asked for.
        """
        near = self._near(spec, hashes)
        if among is None:
            return self._fetched(spec, near)
        (first, *path), values = among
        where = pc.is_in(pc.field((spec.column(first), *path)), value_set=values)
        copy = self._sorted.near(
            spec.name, self._segments(spec), near, (first, *path), partial(self._fetched, spec)
        )
        if copy is None:
            return self._fetched(spec, near, where)
        later = self._fetched(spec, [s for s in near if not s.is_base], where)
        return pa.concat_tables([copy.having(values), later])

    def pieces(self, spec: TableSpec) -> Iterator[pa.Table]:
        """All rows, in the driver, bucket by bucket: those of a hash are in one. Not added up."""
        assert spec.hashed is not None
        count = self.buckets(spec)
        of = pc.field(spec.column(spec.hashed))
        for place in range(count):
            left = of - (of / count) * count  # as C has it: with the sign of the hash
            here = (left == place) | (left == place - count) if count > 1 else None
            yield self._fetched(spec, self._in_buckets(spec, [place]), here)

    def _near(self, spec: TableSpec, hashes: Collection[int] | None) -> Sequence[Segment]:
        """What later came, and of the base the files of the buckets of some hashes, or all."""
        if hashes is None:
            return self._segments(spec)
        count = self.buckets(spec)
        return self._in_buckets(spec, {hash_of % count for hash_of in hashes})

    def _in_buckets(self, spec: TableSpec, places: Collection[int]) -> list[Segment]:
        """What later came, and of the base the files of some buckets."""
        starts = {f"{BUCKET}={place}" for place in places}
        return [
            s.of(lambda file: file.partition("/")[0] in starts) if s.is_base else s
            for s in self._segments(spec)
        ]

    def _fetched(self, spec: TableSpec, segments: Sequence[Segment], where: Any = None) -> pa.Table:
        """The rows of files, in the driver.

        Raises
        ------
        OffloadError: they cannot be read.
        """
        return table_of(self._files, self._root, spec, segments, where)

    def compact(self, last: Mapping[str, int] = NOTHING) -> None:
        """Put files together where there are too many; not those of the last flush, for which its
        delta may be asked again.

        Parameters
        ----------
        last: the flush that counts as the last one for a table, if it is another.
        """
        self._ensure()
        for spec in self._specs.values():
            segments = self._settled(spec, last.get(spec.name, self.number))
            first = due(
                [s.rows for s in segments],
                has_base=bool(segments) and segments[0].is_base,
                most=MOST_SEGMENTS,
                share=SHARE,
                least=PER_BUCKET,
            )
            if first is not None:
                self._put_together(spec, segments[first:], is_base=first == 0)

    def _settled(self, spec: TableSpec, number: int | None) -> Sequence[Segment]:
        """The segments of a table, without what a flush has added that was the last one."""
        segments = self._segments(spec)
        last = of_flush(number)
        return segments[:-1] if segments and segments[-1].folder.startswith(last) else segments

    def bytes(self, names: Collection[str] | None = None) -> int:
        """What the files take, or those of some tables."""
        selector = fs.FileSelector(self._root, allow_not_found=True, recursive=True)
        found = self._files.get_file_info(selector)
        if names is None:
            return sum(info.size or 0 for info in found)
        of = {f"{TABLE}={name}" for name in names}
        return sum(info.size or 0 for info in found if not of.isdisjoint(info.path.split("/")))

    def delete(self) -> None:
        """Remove all that can be removed: first what makes it count. Readers begin anew."""
        self._holds.close()
        self._sorted = SortedBases()
        discard(self._files, f"{self._root}/{MANIFESTS}")
        discard(self._files, self._root)

    def _put_together(self, spec: TableSpec, gone: Sequence[Segment], *, is_base: bool) -> None:
        """Write segments as one, which takes their place."""
        rows = sum(segment.rows for segment in gone)
        count = self._buckets(spec, rows) if is_base else 0
        kind = f"{BASE if is_base else MERGED}/{spec.name}"
        found: dict[str, Segment] = {}
        if not is_base and _are_few(gone):
            here = added_up_here(spec, self._fetched(spec, gone))
            found = self._write_here(kind, self.number or 0, {spec.name: here})
        elif any(s.files for s in gone):
            net = added_up(spec, self._read(spec, gone, with_bucket=False))
            buckets = {spec.name: count} if is_base else {}
            given = {spec.name: net if is_base else net.coalesce(1)}
            found = self._write(kind, self.number or 0, given, rows, buckets)
        none = Segment(f"{kind}/none/{TABLE}={spec.name}", (), (), (), count)
        self._replace(spec, gone, found.get(spec.name, none))

    def _first_buckets(
        self, names: Sequence[str], rows: int, apart: Mapping[str, int]
    ) -> dict[str, int]:
        """Into how many buckets the first bases are put, whose sizes are not known yet."""
        found = {}
        for spec in (self._specs[name] for name in names):
            guess = rows // ROWS_OF_GROUP if spec.of_groups else rows
            found[spec.name] = self._buckets(spec, apart.get(spec.name, guess))
        return found

    def _buckets(self, spec: TableSpec, rows: int) -> int:
        """Into how many buckets a base is put."""
        return max(1, min(MOST_BUCKETS, rows // PER_BUCKET)) if spec.bucket else 1

    def _replace(self, spec: TableSpec, gone: Sequence[Segment], now: Segment) -> None:
        """Let a segment be in the place of others, and delete the files of those."""
        kept = [now if s is gone[0] else s for s in self._segments(spec) if s not in gone[1:]]
        self._count(self.manifest.with_segments(spec.name, tuple(kept)))
        self._holds.drop(gone)

    def _count(self, manifest: Manifest) -> None:
        self._is_sure = False
        self._manifests.put(manifest)
        self._holds.counts(manifest)
        self.manifest, self._is_sure = manifest, True

    def _ensure(self) -> None:
        """Know what counts, where it was broken off while a manifest was put."""
        if not self._is_sure:
            last = self._manifests.last()
            self._holds.counts(last)
            self.manifest, self._is_sure = last, True

    def _segments(self, spec: TableSpec) -> Sequence[Segment]:
        return self.manifest.tables.get(spec.name, ())

    def _read(
        self, spec: TableSpec, segments: Sequence[Segment], *, with_bucket: bool
    ) -> DataFrame:
        """The rows of segments; of a base, with the bucket where that is asked for."""
        spark = self._session.spark
        return frame_of(spark, self._uri, spec, segments, with_bucket=with_bucket)

    def _write(
        self,
        kind: str,
        number: int,
        added: Mapping[str, DataFrame] | Tagged,
        rows: int,
        buckets: Mapping[str, int],
        tasks: int | None = None,
        alone: Collection[str] = (),
    ) -> dict[str, Segment]:
        """What one job has written, in a folder of its own; with `buckets` these are bases. Tables
        that are to be `alone` have a job each."""
        names = added.tables if isinstance(added, Tagged) else tuple(added)
        folder = place_of(kind, number)
        found: dict[str, Segment | None] = {}
        try:
            with self._spread(rows, buckets):
                for some in _jobs(added, alone):
                    self._job(folder, some, buckets, tasks)
            found = {n: self._segment(folder, n, buckets) for n in names}
        finally:
            if not any(found.values()):
                discard(self._files, f"{self._root}/{folder}")
        return {name: segment for name, segment in found.items() if segment is not None}

    def _spread(self, rows: int, buckets: Mapping[str, int]) -> AbstractContextManager[None]:
        """How a job is spread: one of few rows as it is planned, as no task has many of them."""
        if not buckets and rows <= MOST_AS_PLANNED:
            return nullcontext()
        return self._session.adaptive(max(1, rows // (PER_BUCKET * MOST_BUCKETS)))

    def _job(
        self,
        folder: str,
        added: Mapping[str, DataFrame] | Tagged,
        buckets: Mapping[str, int],
        tasks: int | None,
    ) -> None:
        """Write what is added to tables."""
        by = (BUCKET,) if buckets else ()
        whole = rows_of_all(self._specs, added, buckets, lambda: tasks or self.tasks())
        whole.write.mode("append").partitionBy(TABLE, *by).parquet(f"{self._uri}/{folder}")

    def _write_here(
        self, kind: str, number: int, added: Mapping[str, pa.Table]
    ) -> dict[str, Segment]:
        """What this process has written, in a folder of its own."""
        given = {name: (self._specs[name], rows) for name, rows in added.items()}
        return write_here(self._files, self._root, place_of(kind, number), given)

    def _segment(self, folder: str, name: str, buckets: Mapping[str, int]) -> Segment | None:
        """What the job in a folder has written of a table."""
        spec = self._specs[name]
        return segment_of(self._files, self._root, folder, spec, buckets.get(name, 0))

    def tasks(self) -> int:
        """How many tasks a job is spread over."""
        return self._session.tasks


def _jobs(
    added: Mapping[str, DataFrame] | Tagged, alone: Collection[str]
) -> list[Mapping[str, DataFrame] | Tagged]:
    """What is added, by the jobs that write it: first what may raise."""
    if isinstance(added, Tagged):
        return [added]
    others = {name: frame for name, frame in added.items() if name not in alone}
    each = [{name: frame} for name, frame in added.items() if name in alone]
    return [*([others] if others else []), *each]


def _are_few(segments: Sequence[Segment]) -> bool:
    """Whether this process can put them together sooner than a job."""
    rows = sum(segment.rows for segment in segments)
    return rows <= MOST_HERE and sum(segment.bytes for segment in segments) <= MOST_BYTES


def united(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all frames, which have the same columns."""
    return reduce(lambda a, b: a.unionByName(b), frames)


def added_up(spec: TableSpec, rows: DataFrame) -> DataFrame:
    """Each row once, with the sums; without rows of which nothing is left."""
    sums = [F.sum(name).alias(name) for name in spec.added]
    left = reduce(lambda a, b: a | b, [F.col(name) != 0 for name in spec.added])
    return rows.groupBy(*spec.by).agg(*sums).filter(left).select(*spec.schema.names)


FACTOR = 2
"""What is before a run is left if it has more than this many times its rows."""


def due(rows: Sequence[int], *, has_base: bool, most: int, share: float, least: int) -> int | None:
    """The place of the first segment of those that are to be put together; None for none.

    Parameters
    ----------
    rows: of each segment, the oldest first, which `has_base` says is the base.
    most: how many later ones there may be.
    share, least: a new base is made, which is place 0, when what came later has more rows than
        this share of the base, or of `least` rows.
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
