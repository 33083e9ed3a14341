"""Files of state tables: their columns, how they are written by a job or by this process, and read.

The base of a table in the order of a column: rows with some values are found by bisection.

    base/left/.../b=0, b=1, ...  --sorted by row.customer-->  a file of Arrow, mapped into memory
    10,000 customers             --bisection-->               their rows

Who looks for many keys has to read most buckets of a base, as keys are spread over all of them. A
base does not change until another takes its place, so that the second such look-up copies it,
sorted, and later ones take no time by its size. The copy has no name, so it goes with the process;
what of it is in memory are pages of a file, which the system takes back as it needs.

State:  a copy for each base that is looked through again and again, as large as its rows.
Cost:   O(keys * log rows) for a look-up; O(rows * log rows) once for each base.

What is added to state tables as one job of Spark: the rows of all tables, in one frame.

    t      left_row  left_weight  right_row  right_weight  b
    left   (1, 2)    1                                     3      b: in bases, the bucket
    right                         (1, "x")   -1            0

State:  none.
Cost:   a job writes each row once; two small reads a file for what is to be said of it.

Rows of a state table that are added up by this process: each once, with the sums.

    row        weight          row      weight
    (1, "x")        2          (1, "x")      1
    (1, "x")       -1    ->    (2, "y")      1
    (2, "y")        1
    (3, None)       1
    (3, None)      -1

Rows are grouped by the values that they are made of, of optional records with whether they are
there. Equal rows may stay apart, as those with 0.0 and -0.0 do: whoever reads rows adds them up.

Sound:  only rows whose columns have the same bits are taken together.
State:  none.
Cost:   O(rows).

Small files of state tables that this process writes, as it has their rows: no job, no Spark.

    rows --> bytes --> end of the file        what the manifest says of it
               `-----> flush/000000000012-5f/t=left/part-00000.parquet

A file is written in one go and not read back, and no folder is made where a store has none: stores
of objects take requests for each of these.

State:  on disk.
Cost:   O(rows); one write for each table with rows.

The rows in files of state tables: as a DataFrame, or in the driver.

Files of one table were written by Spark and by this process; the schema of the table says what is
in them, and each page is checked against its checksum.

State:  none.
Cost:   that of reading the files; a listing of none.

What a state table holds, and how its columns are called and typed in files.

    left: row, weight       t=left/part-...parquet: left_row, left_weight

A job writes the rows of several tables as one frame, so columns say of which table they are. Spark
and this process write them, and each says something else of what may be null; so whoever reads
files says what is in them.

State:  none.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
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

from spark_backend.cluster.files import by_name, parquet_in
from spark_backend.cluster.paths import reading
from spark_backend.codec.schema import LARGEST, LEAST
from spark_backend.state.ends import VERIFIED, VERIFY, around, end_in, end_of
from spark_backend.state.manifest import Segment, discard

MOST_SORTED = 1 << 27
"""Bytes of all copies that a state has."""
MOST_PACKED = 1 << 25
"""Bytes that the files of a base take at most of which there is a copy."""
FEW_SOUGHT = 100_000
"""Rows of a base up to which they are looked through each time."""
Column = tuple[str, ...]
"""A column by its path."""


@dataclass(frozen=True, slots=True)
class SortedBase:
    """Rows in the order of a column of integers, of which `keys` are those that are not null."""

    rows: pa.Table
    keys: npt.NDArray[np.int64]

    def having(self, values: pa.Array) -> pa.Table:
        """The rows that have one of some values in the column."""
        asked = np.sort(values.to_numpy(zero_copy_only=False))
        start = np.searchsorted(self.keys, asked, "left")
        count = np.searchsorted(self.keys, asked, "right") - start
        before = np.cumsum(count) - count
        return self.rows.take(np.repeat(start - before, count) + np.arange(count.sum()))


class SortedBases:
    """The copies of a state, one for a table."""

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
        """The copy of the base of a table, made where much of it is looked through again.

        Parameters
        ----------
        near: what is looked through of the segments.
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
        """The copy of a base; None the first time that it is asked for, or if there can be none.

        Parameters
        ----------
        folder: of the base, of which each table has one at a time.
        read: gives its rows, where they are needed; None if it is not to be made now.
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
        found = self._copied(read(), column)
        self._made[table] = of, found
        return found

    def _copied(self, rows: pa.Table, column: Column) -> SortedBase | None:
        taken = sum(copy.rows.nbytes for _, copy in self._made.values() if copy is not None)
        leaf = _leaf(rows, column)
        if leaf.type != pa.int64() or taken + rows.nbytes > MOST_SORTED:
            return None
        order = pc.sort_indices(leaf)  # nulls come last
        with suppress(OSError):  # there is no room for it
            mapped = _mapped(rows.take(order).combine_chunks())
            keys = _leaf(mapped, column).combine_chunks()
            return SortedBase(mapped, keys.slice(0, len(keys) - keys.null_count).to_numpy())
        return None


def _leaf(rows: pa.Table, column: Column) -> pa.ChunkedArray:
    name, *path = column
    return pc.struct_field(rows[name], path) if path else rows[name]


def _mapped(rows: pa.Table) -> pa.Table:
    """The same rows, of a file that has no name any more."""
    with tempfile.NamedTemporaryFile(delete=False) as file:
        pass
    try:
        with pa.ipc.new_file(file.name, rows.schema) as out:
            out.write_table(rows)
        return pa.ipc.open_file(pa.memory_map(file.name)).read_all()
    finally:
        with suppress(OSError):  # Windows does not let it go
            Path(file.name).unlink()


MOST_COUNTED = 2_000
"""Of how many parts Spark knows the sizes; of more ones it guesses them."""


def rows_of_all(
    specs: Mapping[str, TableSpec],
    added: Mapping[str, DataFrame] | Tagged,
    buckets: Mapping[str, int],
    tasks: Callable[[], int],
) -> DataFrame:
    """The rows of all tables, in the tasks that write them.

    Parameters
    ----------
    buckets: of each table that is written as a base, how many it has.
    tasks: how many they are; not asked for bases, nor for rows that say of which table they are,
        which stay in those that have made them.
    """
    if isinstance(added, Tagged):
        return _tagged(specs, added, buckets)
    if buckets and len(added) == 1:
        (name,) = added
        return _alone(specs[name], added[name], buckets[name])
    frames = [_placed(specs, names, frame, buckets) for names, frame in by_frame(added)]
    whole = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)
    if not buckets:
        return whole.coalesce(tasks())
    return _gathered(whole, sum(buckets[name] for name in added), TABLE, BUCKET)


def _gathered(rows: DataFrame, buckets: int, *by: str) -> DataFrame:
    """The rows of a bucket in one task; in several, if they are many (`Session.adaptive`)."""
    return rows.hint("rebalance", min(MOST_COUNTED, buckets), *by)


def _alone(spec: TableSpec, frame: DataFrame, buckets: int) -> DataFrame:
    """The rows of one base. On their way to the tasks that write them they are as short as can be:
    without the table, and each field of a record by itself."""
    parts = {n: _fields(frame, n) for n in spec.schema.names}
    flat = [F.col(n)[f].alias(f"{n}_{f}") if f else F.col(n) for n, fs in parts.items() for f in fs]
    moved = frame.select(*flat, _place(spec, buckets).alias(BUCKET))
    whole = [
        F.struct(*(F.col(f"{n}_{f}").alias(f) for f in fs)) if fs[0] else F.col(n)
        for n, fs in parts.items()
    ]
    columns = [c.alias(spec.column(n)) for n, c in zip(parts, whole, strict=True)]
    return _gathered(moved, buckets, BUCKET).select(F.lit(spec.name).alias(TABLE), *columns, BUCKET)


def _fields(frame: DataFrame, name: str) -> list[str]:
    """The fields of a column of records, none of which is null; of any other, one without name."""
    field = frame.schema[name]
    kind = field.dataType
    fields = kind.names if isinstance(kind, T.StructType) and not field.nullable else []
    return fields or [""]


def segment_of(files: Any, root: str, folder: str, spec: TableSpec, buckets: int) -> Segment | None:
    """What a job has written of a table; None for nothing."""
    inside = f"{folder}/{TABLE}={spec.name}"
    paths = parquet_in(files, f"{root}/{inside}")
    if not paths:
        return None
    ends = [end_of(files, path, spec.column("weight")) for path in paths]
    names = tuple(path.removeprefix(f"{root}/{inside}/") for path in paths)
    marks, each = tuple(end.mark for end in ends), tuple(end.rows for end in ends)
    return Segment(inside, names, marks, each, buckets, around(end.bounds for end in ends))


def _tagged(specs: Mapping[str, TableSpec], added: Tagged, buckets: Mapping[str, int]) -> DataFrame:
    """They stay in the tasks that have made them."""
    of = [specs[name] for name in added.tables]
    columns = [
        F.when(F.col(TABLE) == spec.name, F.col(name)).alias(spec.column(name))
        for spec in of
        for name in spec.schema.names
    ]
    if buckets:
        places = [
            F.when(F.col(TABLE) == spec.name, _place(spec, buckets[spec.name])) for spec in of
        ]
        columns.append(F.coalesce(*places).alias(BUCKET))
    return added.rows.select(TABLE, *columns)


def _placed(
    specs: Mapping[str, TableSpec],
    names: Sequence[str],
    frame: DataFrame,
    buckets: Mapping[str, int],
) -> DataFrame:
    """Rows with the table that they are of, and their bucket; those of several are made once, and
    are there for each of them."""
    if len(names) > 1:
        each = F.explode(F.array(*map(F.lit, names)))
        return _tagged(specs, Tagged(frame.withColumn(TABLE, each), tuple(names)), buckets)
    spec = specs[names[0]]
    columns = [F.col(c).alias(spec.column(c)) for c in spec.schema.names]
    if buckets:
        columns.append(_place(spec, buckets[spec.name]).alias(BUCKET))
    return frame.select(F.lit(spec.name).alias(TABLE), *columns)


def _place(spec: TableSpec, buckets: int) -> Any:
    """The bucket of a row."""
    key = F.lit(0) if spec.bucket is None else F.pmod(spec.bucket(), F.lit(buckets))
    return key.cast("int")


WIDE = pa.decimal128(38, 0)
"""Has room for the sum of any column of integers."""
BITS = {pa.float64(): pa.int64(), pa.float32(): pa.int32()}
"""What the bits of floats are looked at as."""


def added_up_here(spec: TableSpec, rows: pa.Table) -> pa.Table:
    """The rows of a table, added up: without those of which nothing is left.

    They are given back as they are if what tells them apart cannot be grouped by, such as lists,
    if a column that is added up is not one of integers, or if a sum does not fit its column.
    """
    if not all(rows[name].type == pa.int64() for name in spec.added):
        return rows
    groups = _grouped(spec, rows)
    if groups is None or not all(map(_fits, groups.select(_sums(spec)).columns)):
        return rows
    left = reduce(pc.or_, [pc.fill_null(pc.not_equal(groups[n], 0), False) for n in _sums(spec)])
    groups = groups.filter(left)
    found = rows.take(groups["place_min"])
    for name, total in zip(spec.added, _sums(spec), strict=True):
        place = found.column_names.index(name)
        found = found.set_column(place, found.field(place), groups[total].cast(pa.int64()))
    return found


def _grouped(spec: TableSpec, rows: pa.Table) -> pa.Table | None:
    """Of each row its first place and its sums; None if it cannot be grouped by."""
    keys = [leaf for name in spec.by for leaf in _leaves(rows[name])]
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


def _sums(spec: TableSpec) -> list[str]:
    return [f"n{place}_sum" for place in range(len(spec.added))]


def _leaves(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """The columns that values are made of."""
    if pa.types.is_struct(column.type):
        yield column.is_valid()
        for part in column.flatten():
            yield from _leaves(part)
    elif column.type in BITS:
        bits = BITS[column.type]
        yield pa.chunked_array([chunk.view(bits) for chunk in column.chunks], bits)
    else:
        yield column


def _fits(sums: pa.ChunkedArray) -> bool:
    """Whether a column of integers has room for all of them."""
    ends: Sequence[int | None] = list(pc.min_max(sums).as_py().values())
    return all(end is None or LEAST <= end <= LARGEST for end in ends)


PART = "part-00000.parquet"


def write_here(
    files: Any, root: str, folder: str, added: Mapping[str, tuple[TableSpec, pa.Table]]
) -> dict[str, Segment]:
    """Write the rows of tables to a folder that is new; of those that have any. On an error nothing
    stays.

    Parameters
    ----------
    files, root: a file system of pyarrow, and a folder in it.
    added: by name, of each table its rows, with the columns of its schema.

    Raises
    ------
    OSError: it cannot be written.
    """
    given = {name: one for name, one in added.items() if one[1].num_rows}
    try:
        return {name: _segment(files, root, folder, *one) for name, one in given.items()}
    except BaseException:
        discard(files, f"{root}/{folder}")
        raise


def _segment(files: Any, root: str, folder: str, spec: TableSpec, rows: pa.Table) -> Segment:
    data = _encoded(spec, rows)
    inside = f"{folder}/{TABLE}={spec.name}"
    end = end_in(data, spec.column("weight"))
    _write(files, f"{root}/{inside}", data)
    return Segment(inside, (PART,), (end.mark,), (end.rows,), weights=end.bounds)


def _encoded(spec: TableSpec, rows: pa.Table) -> memoryview:
    """The bytes of a file."""
    typed = rows.select(spec.schema.names).cast(arrow_schema(spec))
    sink = pa.BufferOutputStream()
    named = typed.rename_columns([spec.column(name) for name in spec.schema.names])
    pq.write_table(named, sink, write_page_checksum=True, store_schema=False)
    return memoryview(sink.getvalue())


def _write(files: Any, folder: str, data: memoryview) -> None:
    """Put a file in a folder, which is made if that has to be."""
    path = f"{folder}/{PART}"
    try:
        stream = files.open_output_stream(path)
    except FileNotFoundError:
        files.create_dir(folder, recursive=True)
        stream = files.open_output_stream(path)
    with stream:
        stream.write(data)


def frame_of(
    spark: Any, uri: str, spec: TableSpec, segments: Sequence[Segment], *, with_bucket: bool
) -> DataFrame:
    """The rows of segments in a folder; of a base, with the bucket where that is asked for."""
    fields = [T.StructField(spec.column(f.name), f.dataType) for f in spec.schema.fields]
    if with_bucket:
        fields.append(T.StructField(BUCKET, T.IntegerType()))
    reader = by_name(spark.read).schema(T.StructType(fields)).option(VERIFY, "true")
    if with_bucket:
        reader = reader.option("basePath", f"{uri}/{segments[0].folder}")
    names = [F.col(spec.column(name)).alias(name) for name in spec.schema.names]
    found: DataFrame = reader.parquet(*_paths(uri, segments)).select(
        *names, *([BUCKET] * with_bucket)
    )
    return found


def table_of(
    files: Any, root: str, spec: TableSpec, segments: Sequence[Segment], where: Any = None
) -> pa.Table:
    """The rows of segments in a folder, in the driver.

    Parameters
    ----------
    where: a condition on columns as they are called in files.

    Raises
    ------
    OffloadError: they cannot be read.
    """
    paths = _paths(root, segments)
    if not paths:
        return arrow_schema(spec).empty_table()
    with reading(root):
        found = ds.dataset(paths, file_schema(spec), filesystem=files, format=VERIFIED)
        return found.to_table(filter=where).rename_columns(spec.schema.names)


def _paths(start: str, segments: Sequence[Segment]) -> list[str]:
    return [f"{start}/{s.folder}/{name}" for s in segments for name in s.files]


TABLE, BUCKET = "t", "b"
"""Columns that name folders: of which table, and in a base of which bucket."""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """What a state table holds.

    `by` are the columns that tell rows apart, `added` those that are added up. `bucket` makes the
    hash of a row's key, from which its bucket is taken; None if it is never looked up by one.
    """

    name: str
    schema: T.StructType
    by: tuple[str, ...]
    added: tuple[str, ...]
    bucket: Callable[[], Any] | None = None
    hashed: str | None = None
    """The column that holds this hash, of a table whose rows are also fetched by it."""
    of_groups: bool = False
    """Whether it has a row for a group, of which there are fewer than of rows that come."""
    is_here: bool = False
    """Whether only flushes of this process keep it: a job gives it up."""

    def column(self, name: str) -> str:
        """The name of a column in files, which have those of all tables of a flush."""
        return f"{self.name}_{name}"


def arrow_schema(spec: TableSpec) -> pa.Schema:
    """The columns of a table, as Arrow has them; all may be null, whatever they are part of."""
    return pa.schema([pa.field(f.name, _open(f.type)) for f in to_arrow_schema(spec.schema)])


def file_schema(spec: TableSpec) -> pa.Schema:
    """The same, as they are called in files."""
    return pa.schema([field.with_name(spec.column(field.name)) for field in arrow_schema(spec)])


def _open(of: pa.DataType) -> pa.DataType:
    """A type whose parts may be null."""
    if pa.types.is_struct(of):
        return pa.struct([pa.field(part.name, _open(part.type)) for part in of])
    if pa.types.is_list(of):
        return pa.list_(pa.field("element", _open(of.value_type)))
    return of


# What a flush adds to state tables: rows for each of them, or rows that say for which they are.


@dataclass(frozen=True, slots=True)
class Tagged:
    """What is to be added to several tables of one schema: the column `t` names the table."""

    rows: DataFrame
    tables: tuple[str, ...]


def by_frame(added: Mapping[str, DataFrame]) -> list[tuple[list[str], DataFrame]]:
    """Frames, each with the tables that it is added to."""
    found: dict[int, tuple[list[str], DataFrame]] = {}
    for name, frame in added.items():
        found.setdefault(id(frame), ([], frame))[0].append(name)
    return list(found.values())
