"""Files of state tables: write them by a job or by this process, net their rows, read them.

- `SortedBases`: copies of bases, sorted by a column, to find rows by bisection.
- `combine_rows`: the rows that one flush adds to all tables, as one frame for one job.
- `net_table`: the net rows of a table, computed by this process.
- `write_segments`: small files written by this process, without a job.
- `read_segment_frame`, `read_segment_rows`: the rows of files, as a DataFrame or in the driver.
- `TableSpec`: the columns of a state table, and their names in files.

Sorted base. Keys are spread over all buckets, so that a look-up of many keys reads most of a base.
The second such look-up copies the base, sorted, into an unnamed Arrow file that is mapped into
memory; it disappears with the process, and the system can evict its pages.

    base/left/.../b=0, b=1, ...  --sorted by row.customer-->  a file of Arrow, mapped into memory
    10,000 customers             --bisection-->               their rows

State:  a copy for each base that is looked through repeatedly, as large as its rows.
Cost:   O(keys * log rows) for a look-up; O(rows * log rows) once for each base.

One job. Each row is written once; two small reads per file then give the entry in the manifest.

    t      left_row  left_weight  right_row  right_weight  b
    left   (1, 2)    1                                     3      b: in bases, the bucket
    right                         (1, "x")   -1            0

Net rows. Rows are grouped by the leaves of their values, and by whether optional records are null.
Equal values with different bits, as 0.0 and -0.0, stay separate: readers net rows again.

    row        weight          row      weight
    (1, "x")        2          (1, "x")      1
    (1, "x")       -1    ->    (2, "y")      1
    (2, "y")        1
    (3, None)       1
    (3, None)      -1

Sound:  only rows whose columns have the same bits are summed.
Cost:   O(rows).

Written here. A file is written in one request and not read again, and no folder is created in
object stores, because each of these is a request.

    rows --> bytes --> end of the file        the entry in the manifest
               `-----> flush/000000000012-5f/t=left/part-00000.parquet

State:  on disk.
Cost:   O(rows); one write for each table with rows.

Read. Spark and this process write files of one table with different nullability, so that the schema
is that of the `TableSpec`. Each page is checked against its checksum.

    left: row, weight       t=left/part-...parquet: left_row, left_weight
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from spark_backend.cluster.files import list_parquet, with_literal_paths
from spark_backend.cluster.paths import reading
from spark_backend.codec.schema import LARGEST, LEAST
from spark_backend.state.ends import VERIFIED, VERIFY, end_of_data, merge_bounds, read_end
from spark_backend.state.manifest import Segment, discard_folder

MOST_SORTED = 1 << 27
"""The maximum bytes of all copies of a state."""
MOST_PACKED = 1 << 25
"""The maximum bytes of the files of a base that is copied."""
FEW_SOUGHT = 100_000
"""The most rows of a base that each look-up reads again."""
Column = tuple[str, ...]
"""The path of a column."""


@dataclass(frozen=True, slots=True)
class SortedBase:
    """Rows sorted by a column of integers; `keys` are its values that are not null."""

    rows: pa.Table
    keys: npt.NDArray[np.int64]

    def having(self, values: pa.Array) -> pa.Table:
        """Return the rows whose sorted column has one of the values."""
        asked = np.sort(values.to_numpy(zero_copy_only=False))
        start = np.searchsorted(self.keys, asked, "left")
        count = np.searchsorted(self.keys, asked, "right") - start
        before = np.cumsum(count) - count
        return self.rows.take(np.repeat(start - before, count) + np.arange(count.sum()))


class SortedBases:
    """The sorted copies of a state, one per table."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[str, Column]] = {}
        self._made: dict[str, tuple[tuple[str, Column], SortedBase | None]] = {}

    def near(
        self,
        table: str,
        segments: Sequence[Segment],
        near: Sequence[Segment],
        column: Column,
        read: Callable[[Sequence[Segment]], pa.Table],
    ) -> SortedBase | None:
        """Return the sorted copy of the base of a table; None if there is none.

        The copy is made when much of the base is read again.

        Parameters
        ----------
        near: the segments that the look-up reads.
        """
        bases = [s for s in segments if s.is_base]
        if len(bases) != 1 or bases[0].bytes > MOST_PACKED:
            return None
        rows = sum(s.rows for s in near if s.is_base)
        is_much = rows >= FEW_SOUGHT and 2 * rows >= bases[0].rows
        return self.of(table, bases[0].folder, column, partial(read, bases) if is_much else None)

    def of(
        self, table: str, folder: str, column: Column, read: Callable[[], pa.Table] | None
    ) -> SortedBase | None:
        """Return the copy of a base; None at the first request, or if no copy is possible.

        Parameters
        ----------
        folder: the folder of the base; a table has one base at a time.
        read: reads the rows of the base; None if no copy is to be made now.
        """
        of = folder, column
        made = self._made.get(table)
        if made is not None and made[0] == of:
            return made[1]
        if made is not None and made[0][0] != folder:
            del self._made[table]
        if read is None:
            return None
        if self._asked.get(table) != of:
            self._asked[table] = of
            return None
        self._made.pop(table, None)
        found = self._copy(read(), column)
        self._made[table] = of, found
        return found

    def _copy(self, rows: pa.Table, column: Column) -> SortedBase | None:
        """Return a copy of the rows, sorted by a column, on disk and mapped to memory.

        Return None if the column is not of integers, the copies would be too large, or the disk is
        full.
        """
        taken = sum(copy.rows.nbytes for _, copy in self._made.values() if copy is not None)
        leaf = _leaf_column(rows, column)
        if leaf.type != pa.int64() or taken + rows.nbytes > MOST_SORTED:
            return None
        order = pc.sort_indices(leaf)  # nulls sort last
        with suppress(OSError):  # the disk may be full
            mapped = _map_to_memory(rows.take(order).combine_chunks())
            keys = _leaf_column(mapped, column).combine_chunks()
            return SortedBase(mapped, keys.slice(0, len(keys) - keys.null_count).to_numpy())
        return None


def _leaf_column(rows: pa.Table, column: Column) -> pa.ChunkedArray:
    """Return the column at a path: a name, and fields of records below it."""
    name, *path = column
    return pc.struct_field(rows[name], path) if path else rows[name]


def _map_to_memory(rows: pa.Table) -> pa.Table:
    """Return the same rows, mapped from a file without a name."""
    with tempfile.NamedTemporaryFile(delete=False) as file:
        pass
    try:
        with pa.ipc.new_file(file.name, rows.schema) as out:
            out.write_table(rows)
        return pa.ipc.open_file(pa.memory_map(file.name)).read_all()
    finally:
        with suppress(OSError):  # Windows does not delete a mapped file
            Path(file.name).unlink()


MOST_COUNTED = 2_000
"""The maximum number of partitions whose sizes Spark knows; it estimates the others."""


def combine_rows(
    specs: Mapping[str, TableSpec],
    added: Mapping[str, DataFrame] | TaggedRows,
    buckets: Mapping[str, int],
    tasks: Callable[[], int],
) -> DataFrame:
    """Return the rows of all tables as one frame, split into the tasks that write it.

    Parameters
    ----------
    buckets: the number of buckets of each table that is written as a base.
    tasks: returns the number of tasks; not called for bases, nor for tagged rows, which stay in the
        tasks that made them.
    """
    if isinstance(added, TaggedRows):
        return _place_tagged(specs, added, buckets)
    if buckets and len(added) == 1:
        (name,) = added
        return _base_rows(specs[name], added[name], buckets[name])
    frames = [_place_rows(specs, names, frame, buckets) for names, frame in group_by_frame(added)]
    whole = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)
    if not buckets:
        return whole.coalesce(tasks())
    return _gather_buckets(whole, sum(buckets[name] for name in added), TABLE, BUCKET)


def _gather_buckets(rows: DataFrame, buckets: int, *by: str) -> DataFrame:
    """Put the rows of a bucket into one task, or into several if they are many
    (`Session.adaptive`)."""
    return rows.hint("rebalance", min(MOST_COUNTED, buckets), *by)


def _base_rows(spec: TableSpec, frame: DataFrame, buckets: int) -> DataFrame:
    """Return the rows of one base.

    The shuffle moves them without the table column, and with each field of a record as a column:
    shorter.
    """
    parts = {n: _struct_fields(frame, n) for n in spec.schema.names}
    flat = [F.col(n)[f].alias(f"{n}_{f}") if f else F.col(n) for n, fs in parts.items() for f in fs]
    moved = frame.select(*flat, _bucket_of_row(spec, buckets).alias(BUCKET))
    whole = [
        F.struct(*(F.col(f"{n}_{f}").alias(f) for f in fs)) if fs[0] else F.col(n)
        for n, fs in parts.items()
    ]
    columns = [c.alias(spec.column(n)) for n, c in zip(parts, whole, strict=True)]
    return _gather_buckets(moved, buckets, BUCKET).select(
        F.lit(spec.name).alias(TABLE), *columns, BUCKET
    )


def _struct_fields(frame: DataFrame, name: str) -> list[str]:
    """Return the fields of a record column that is never null; one empty name for other columns."""
    field = frame.schema[name]
    kind = field.dataType
    fields = kind.names if isinstance(kind, T.StructType) and not field.nullable else []
    return fields or [""]


def read_segment(
    files: Any, root: str, folder: str, spec: TableSpec, buckets: int
) -> Segment | None:
    """Return the segment that a job wrote of a table; None for no rows."""
    inside = f"{folder}/{TABLE}={spec.name}"
    paths = list_parquet(files, f"{root}/{inside}")
    if not paths:
        return None
    ends = [read_end(files, path, spec.column("weight")) for path in paths]
    names = tuple(path.removeprefix(f"{root}/{inside}/") for path in paths)
    marks, each = tuple(end.mark for end in ends), tuple(end.rows for end in ends)
    return Segment(inside, names, marks, each, buckets, merge_bounds(end.bounds for end in ends))


def _place_tagged(
    specs: Mapping[str, TableSpec], added: TaggedRows, buckets: Mapping[str, int]
) -> DataFrame:
    """Return tagged rows, in the tasks that made them."""
    of = [specs[name] for name in added.tables]
    columns = [
        F.when(F.col(TABLE) == spec.name, F.col(name)).alias(spec.column(name))
        for spec in of
        for name in spec.schema.names
    ]
    if buckets:
        places = [
            F.when(F.col(TABLE) == spec.name, _bucket_of_row(spec, buckets[spec.name]))
            for spec in of
        ]
        columns.append(F.coalesce(*places).alias(BUCKET))
    return added.rows.select(TABLE, *columns)


def _place_rows(
    specs: Mapping[str, TableSpec],
    names: Sequence[str],
    frame: DataFrame,
    buckets: Mapping[str, int],
) -> DataFrame:
    """Return rows with their table and their bucket; rows of several tables are computed once, and
    repeated for each table."""
    if len(names) > 1:
        each = F.explode(F.array(*map(F.lit, names)))
        return _place_tagged(
            specs, TaggedRows(frame.withColumn(TABLE, each), tuple(names)), buckets
        )
    spec = specs[names[0]]
    columns = [F.col(c).alias(spec.column(c)) for c in spec.schema.names]
    if buckets:
        columns.append(_bucket_of_row(spec, buckets[spec.name]).alias(BUCKET))
    return frame.select(F.lit(spec.name).alias(TABLE), *columns)


def _bucket_of_row(spec: TableSpec, buckets: int) -> Any:
    """Return the bucket of a row."""
    key = F.lit(0) if spec.bucket is None else F.pmod(spec.bucket(), F.lit(buckets))
    return key.cast("int")


WIDE = pa.decimal128(38, 0)
"""A type with room for the sum of any column of integers."""
BITS = {pa.float64(): pa.int64(), pa.float32(): pa.int32()}
"""The integer types as which the bits of floats are compared."""


def net_table(spec: TableSpec, rows: pa.Table) -> pa.Table:
    """Net the rows of a table: sum equal rows, and drop rows whose sums are all 0.

    Return `rows` itself if its columns cannot be grouped by (lists), if a summed column is not of
    integers, or if a sum does not fit its column.
    """
    if not all(rows[name].type == pa.int64() for name in spec.added):
        return rows
    groups = _sum_groups(spec, rows)
    if groups is None or not all(map(_fits_integers, groups.select(_sum_columns(spec)).columns)):
        return rows
    left = reduce(
        pc.or_, [pc.fill_null(pc.not_equal(groups[n], 0), False) for n in _sum_columns(spec)]
    )
    groups = groups.filter(left)
    found = rows.take(groups["place_min"])
    for name, total in zip(spec.added, _sum_columns(spec), strict=True):
        place = found.column_names.index(name)
        found = found.set_column(place, found.field(place), groups[total].cast(pa.int64()))
    return found


def _sum_groups(spec: TableSpec, rows: pa.Table) -> pa.Table | None:
    """Return the first position and the sums of each row; None if rows cannot be grouped."""
    keys = [leaf for name in spec.by for leaf in _leaf_arrays(rows[name])]
    by = [f"by{place}" for place in range(len(keys))]
    columns = {
        **dict(zip(by, keys, strict=True)),
        **{f"n{place}": rows[name].cast(WIDE) for place, name in enumerate(spec.added)},
        "place": pa.array(np.arange(rows.num_rows)),
    }
    asked = [("place", "min"), *((f"n{place}", "sum") for place in range(len(spec.added)))]
    try:
        return pa.table(columns).group_by(by, use_threads=False).aggregate(asked)
    except pa.ArrowNotImplementedError:
        return None


def _sum_columns(spec: TableSpec) -> list[str]:
    return [f"n{place}_sum" for place in range(len(spec.added))]


def _leaf_arrays(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """Yield the leaf columns of a column, and for records whether they are null."""
    if pa.types.is_struct(column.type):
        yield column.is_valid()
        for part in column.flatten():
            yield from _leaf_arrays(part)
    elif column.type in BITS:
        bits = BITS[column.type]
        yield pa.chunked_array([chunk.view(bits) for chunk in column.chunks], bits)
    else:
        yield column


def _fits_integers(sums: pa.ChunkedArray) -> bool:
    """Return True if all sums fit a column of integers."""
    ends: Sequence[int | None] = list(pc.min_max(sums).as_py().values())
    return all(end is None or LEAST <= end <= LARGEST for end in ends)


PART = "part-00000.parquet"


def write_segments(
    files: Any, root: str, folder: str, added: Mapping[str, tuple[TableSpec, pa.Table]]
) -> dict[str, Segment]:
    """Write the rows of non-empty tables to a new folder. On an error, delete the folder.

    Parameters
    ----------
    files, root: a file system of pyarrow, and a folder in it.
    added: the rows of each table, with the columns of its schema.

    Raises
    ------
    OSError: a file cannot be written.
    """
    given = {name: one for name, one in added.items() if one[1].num_rows}
    try:
        return {name: _write_segment(files, root, folder, *one) for name, one in given.items()}
    except BaseException:
        discard_folder(files, f"{root}/{folder}")
        raise


def _write_segment(files: Any, root: str, folder: str, spec: TableSpec, rows: pa.Table) -> Segment:
    """Write rows as a segment of one file, and return it."""
    data = _encode_file(spec, rows)
    inside = f"{folder}/{TABLE}={spec.name}"
    end = end_of_data(data, spec.column("weight"))
    _write_file(files, f"{root}/{inside}", data)
    return Segment(inside, (PART,), (end.mark,), (end.rows,), weights=end.bounds)


def _encode_file(spec: TableSpec, rows: pa.Table) -> memoryview:
    """Return the bytes of a Parquet file of the rows."""
    typed = rows.select(spec.schema.names).cast(arrow_schema(spec))
    sink = pa.BufferOutputStream()
    named = typed.rename_columns([spec.column(name) for name in spec.schema.names])
    pq.write_table(named, sink, write_page_checksum=True, store_schema=False)
    return memoryview(sink.getvalue())


def _write_file(files: Any, folder: str, data: memoryview) -> None:
    """Write a file to a folder, which is created if the file system needs it."""
    path = f"{folder}/{PART}"
    try:
        stream = files.open_output_stream(path)
    except FileNotFoundError:
        files.create_dir(folder, recursive=True)
        stream = files.open_output_stream(path)
    with stream:
        stream.write(data)


def read_segment_frame(
    spark: Any, uri: str, spec: TableSpec, segments: Sequence[Segment], *, with_bucket: bool
) -> DataFrame:
    """Return the rows of segments in a folder.

    `with_bucket`: all segments are of one base; adds the bucket, which is in the path of a file.
    """
    fields = [T.StructField(spec.column(f.name), f.dataType) for f in spec.schema.fields]
    if with_bucket:
        fields.append(T.StructField(BUCKET, T.IntegerType()))
    reader = with_literal_paths(spark.read).schema(T.StructType(fields)).option(VERIFY, "true")
    if with_bucket:
        reader = reader.option("basePath", f"{uri}/{segments[0].folder}")
    names = [F.col(spec.column(name)).alias(name) for name in spec.schema.names]
    found: DataFrame = reader.parquet(*_segment_paths(uri, segments)).select(
        *names, *([BUCKET] * with_bucket)
    )
    return found


def read_segment_rows(
    files: Any, root: str, spec: TableSpec, segments: Sequence[Segment], where: Any = None
) -> pa.Table:
    """Return the rows of segments in a folder, in the driver.

    Parameters
    ----------
    where: a condition on columns by their names in files.

    Raises
    ------
    OffloadError: a file cannot be read.
    """
    paths = _segment_paths(root, segments)
    if not paths:
        return arrow_schema(spec).empty_table()
    with reading(root):
        found = ds.dataset(paths, file_schema(spec), filesystem=files, format=VERIFIED)
        return found.to_table(filter=where).rename_columns(spec.schema.names)


def _segment_paths(start: str, segments: Sequence[Segment]) -> list[str]:
    return [f"{start}/{s.folder}/{name}" for s in segments for name in s.files]


TABLE, BUCKET = "t", "b"
"""Columns that name folders: the table and, in a base, the bucket."""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """The columns of a state table.

    `by` are the columns that identify a row, `added` the columns that are summed. `bucket` computes
    the hash of the key of a row, which gives its bucket; None if no look-up uses a key.
    """

    name: str
    schema: T.StructType
    by: tuple[str, ...]
    added: tuple[str, ...]
    bucket: Callable[[], Any] | None = None
    hashed: str | None = None
    """The column that stores this hash, if rows are also fetched by it."""
    of_groups: bool = False
    """True if the table has a row per group, so fewer rows than its input."""
    is_here: bool = False
    """True if only flushes of this process maintain the table: a job drops it."""
    dropping: Any = field(default=None, compare=False)
    """The rows that merges drop (`dropping.py`); None if all stay."""

    def column(self, name: str) -> str:
        """Return the name of a column in files, which have the columns of all tables of a flush."""
        return f"{self.name}_{name}"


def arrow_schema(spec: TableSpec) -> pa.Schema:
    """Return the columns of a table as an Arrow schema; every value and part may be null."""
    return pa.schema(
        [pa.field(f.name, _nullable_type(f.type)) for f in to_arrow_schema(spec.schema)]
    )


def file_schema(spec: TableSpec) -> pa.Schema:
    """Return the schema of `arrow_schema` with the names of columns in files."""
    return pa.schema([field.with_name(spec.column(field.name)) for field in arrow_schema(spec)])


def _nullable_type(of: pa.DataType) -> pa.DataType:
    """Return the type with nullable parts; a type without parts is unchanged."""
    if pa.types.is_struct(of):
        return pa.struct([pa.field(part.name, _nullable_type(part.type)) for part in of])
    if pa.types.is_list(of):
        return pa.list_(pa.field("element", _nullable_type(of.value_type)))
    return of


# The rows that a flush adds: a frame per table, or one frame that names the table of each row.


@dataclass(frozen=True, slots=True)
class TaggedRows:
    """Rows to be added to several tables of one schema: the column `t` names the table."""

    rows: DataFrame
    tables: tuple[str, ...]


def group_by_frame(added: Mapping[str, DataFrame]) -> list[tuple[list[str], DataFrame]]:
    """Group the tables by the frame that is added to them."""
    found: dict[int, tuple[list[str], DataFrame]] = {}
    for name, frame in added.items():
        found.setdefault(id(frame), ([], frame))[0].append(name)
    return list(found.values())
