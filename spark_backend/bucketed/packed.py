"""Rows of an operator by buckets, pickled, with the bucket and the input that each is of, in Arrow.

State:  none.
Cost:   O(rows).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import types as T

from reactive.engine.collections.zset import Pair, Row
from reactive.engine.remote.remote import Entry
from spark_backend.codec.codec import loads

ENTRIES = pa.schema(
    [("bucket", pa.int64()), ("side", pa.int8()), ("row", pa.binary()), ("weight", pa.int64())]
)
SCHEMA = T.StructType(
    [
        T.StructField("bucket", T.LongType()),
        T.StructField("side", T.ByteType()),
        T.StructField("row", T.BinaryType()),
        T.StructField("weight", T.LongType()),
    ]
)


def table_of(entries: Sequence[Entry]) -> pa.Table:
    """Entries as a table of the columns of `ENTRIES`."""
    sides, buckets, rows, weights = zip(*entries, strict=True) if entries else ((),) * 4
    columns = (buckets, sides, rows, weights)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, ENTRIES, strict=True)]
    return pa.table(arrays, schema=ENTRIES)


def pairs(found: pa.Table) -> Iterator[Pair]:
    """The rows of a table with their weights."""
    rows = map(loads, found["row"].to_pylist())
    return zip(rows, found["weight"].to_pylist(), strict=True)


def net(piece: pa.Table) -> Iterable[Pair]:
    """The same, each row of a bucket once; those of several buckets may be equal."""
    found: dict[tuple[int, Row], int] = {}
    for bucket, (row, weight) in zip(piece["bucket"].to_pylist(), pairs(piece), strict=True):
        found[bucket, row] = found.get((bucket, row), 0) + weight
    return [(row, weight) for (_, row), weight in found.items() if weight]
