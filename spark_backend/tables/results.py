"""The rows of a view as a DataFrame, with a column per field.

Of rows that are kept on Spark, the part is worked out where they are, in Python workers, and they
do not come by. Rows that are in the process go there in Arrow batches.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from reactive.collections.zset import Pair, Row
from reactive.errors import OffloadError
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import arrow_type, to_arrow
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
from spark_backend.tables import worker
from spark_backend.tables.chain import Weighted
from spark_backend.tables.frames import as_columns

SAMPLE = 1_000
"""Rows that are looked at to find the types of columns."""


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


def of_logs(session: Session, logs: DataFrame, shipped: bytes, kept: Typed) -> DataFrame:
    """What a part makes of the logs of all buckets, as columns."""
    given = (shipped, serialized_classes(), pickle.dumps(kept))
    run = worker.shipped(session.paths, "spark_backend.tables.results", "typed_rows", *given)
    return as_columns(Weighted(logs.mapInArrow(run, _schema(kept)), kept))


def of_pairs(session: Session, pairs: Iterable[Pair], kept: Typed) -> DataFrame:
    """Rows that are in the process, as columns."""
    given = list(pairs)
    table = pa.table(
        {
            "row": to_arrow(kept, [row for row, _ in given]),
            "weight": pa.array([weight for _, weight in given], pa.int64()),
        }
    )
    return as_columns(Weighted(session.spark.createDataFrame(table, _schema(kept)), kept))


def typed_rows(
    shipped: bytes,
    classes: dict[str, bytes],
    kept_in: bytes,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """In a worker: the output of a part, of buckets with their logs."""
    worker.adopt(classes)
    node, kept = pickle.loads(shipped), pickle.loads(kept_in)
    schema = pa.schema([("row", arrow_type(kept)), ("weight", pa.int64())])
    for batch in batches:
        log = batch.column("log").flatten()
        columns = [log.field(name).to_pylist() for name in ("side", "row", "weight")]
        found = [*worker.output(node, zip(*columns, strict=True)).items()]
        rows = to_arrow(kept, [row for row, _ in found])
        weights = pa.array([weight for _, weight in found], pa.int64())
        yield pa.record_batch([rows, weights], schema=schema)


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
