"""The rows of a view as a DataFrame, with a column per field.

Rows that are kept on Spark pickled are made columns in Python workers, and do not come by. Rows
that are in the process go there in Arrow batches.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from reactive.collections.zset import Pair, Row, consolidate
from reactive.errors import OffloadError
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import arrow_type, to_arrow
from spark_backend.codec.codec import loads
from spark_backend.codec.schema import (
    Kept,
    Pickled,
    Plain,
    Typed,
    Untyped,
    in_common,
    kept_as,
    record_of,
    tuple_of,
)
from spark_backend.codec.serialization import serialized_classes
from spark_backend.codec.values import spark_type
from spark_backend.state.tables import united
from spark_backend.tables import worker
from spark_backend.tables.chain import Weighted
from spark_backend.tables.frames import as_columns

SAMPLE = 1_000
"""Rows that are looked at to find the types of columns."""
TOGETHER = 10_000
"""Rows of a batch that goes to Spark, or more of one bucket."""


def typed_as(rows: Iterable[Pair], row_type: Any) -> Typed:
    """The types of columns for rows: those of a row type, or what the first rows are.

    Raises
    ------
    OffloadError: no columns hold them.
    """
    try:
        if row_type is not None:
            return _declared(kept_as(row_type))
        found = [_type_of(row) for row, _ in islice(rows, SAMPLE)]
        return reduce(in_common, found) if found else Plain(str, optional=True)
    except Untyped as untyped:
        raise OffloadError(
            f"the rows fit no columns: {untyped}\n"
            "  select what does, or say of what type they are: view.to_spark(RowType)"
        ) from None


def of_packed(session: Session, parts: Sequence[DataFrame], kept: Typed) -> DataFrame:
    """Pickled rows with their buckets and weights, not added up, as columns."""
    if not parts:
        return of_pairs(session, (), kept)
    rows = united(parts).repartition("bucket").sortWithinPartitions("bucket")
    given = (serialized_classes(), pickle.dumps(kept))
    run = worker.shipped(session.paths, "spark_backend.tables.results", "typed_rows", *given)
    return as_columns(Weighted(rows.mapInArrow(run, _schema(kept)), kept))


def of_pairs(session: Session, pairs: Iterable[Pair], kept: Typed) -> DataFrame:
    """Rows that are in the process, as columns."""
    given = list(pairs)
    table = pa.table(
        {
            "row": to_arrow(kept, [row for row, _ in given]),
            "weight": pa.array([weight for _, weight in given], pa.int64()),
        }
    )
    return as_columns(Weighted(session.outer.createDataFrame(table, _schema(kept)), kept))


def typed_rows(
    classes: dict[str, bytes], kept_in: bytes, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In a worker: packed rows, sorted by bucket, as what they are, each once."""
    worker.adopt(classes)
    kept = pickle.loads(kept_in)
    schema = pa.schema([("row", arrow_type(kept)), ("weight", pa.int64())])
    for pairs in _by_bucket(batches):
        rows = to_arrow(kept, [row for row, _ in pairs])
        weights = pa.array([weight for _, weight in pairs], pa.int64())
        yield pa.record_batch([rows, weights], schema=schema)


def _by_bucket(batches: Iterable[pa.RecordBatch]) -> Iterator[list[Pair]]:
    """The rows of some buckets, whole, wherever batches end."""
    some: list[Pair] = []
    for _, entries in groupby(_entries(batches), itemgetter(0)):
        some += consolidate((loads(row), weight) for _, row, weight in entries)
        if len(some) >= TOGETHER:
            yield some
            some = []
    yield some


def _entries(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes, int]]:
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("bucket", "row", "weight"))
        yield from zip(*columns, strict=True)


def _schema(kept: Typed) -> T.StructType:
    fields = [T.StructField("row", spark_type(kept)), T.StructField("weight", T.LongType())]
    return T.StructType(fields)


def _declared(kept: Kept) -> Typed:
    if isinstance(kept, Pickled):
        raise Untyped(kept.reason)
    return kept


def _type_of(row: Row) -> Typed:
    """What a value is kept as; of a plain tuple, what its parts are."""
    if type(row) is tuple:
        return tuple_of(tuple(map(_type_of, row)))
    if hasattr(type(row), "_fields"):
        return record_of(type(row), tuple(map(_type_of, row)))
    return _declared(kept_as(type(row)))
