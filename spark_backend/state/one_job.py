"""What is added to state tables as one job of Spark: the rows of all tables, in one frame.

    t      left_row  left_weight  right_row  right_weight  b
    left   (1, 2)    1                                     3      b: in bases, the bucket
    right                         (1, "x")   -1            0

State:  none.
Cost:   a job writes each row once; two small reads a file for what is to be said of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_backend.cluster.files import parquet_in
from spark_backend.state.ends import around, end_of
from spark_backend.state.manifest import Segment
from spark_backend.state.spec import BUCKET, TABLE, TableSpec
from spark_backend.state.tagged import Tagged, by_frame

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
