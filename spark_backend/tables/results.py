"""The rows of a view as a DataFrame, with a column per field.

Rows that are kept on Spark pickled are made columns in Python workers, and do not come by. Rows
that are in the process go there in Arrow batches.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from reactive.engine.collections.zset import Pair, consolidate
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import arrow_type, to_arrow
from spark_backend.codec.codec import loads
from spark_backend.codec.schema import Typed
from spark_backend.codec.serialization import serialized_classes
from spark_backend.codec.values import spark_type
from spark_backend.state.tables import united
from spark_backend.tables import worker
from spark_backend.tables.chain import Weighted
from spark_backend.tables.frames import as_columns

TOGETHER = 10_000
"""Rows of a batch that goes to Spark, or more of one bucket."""


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
