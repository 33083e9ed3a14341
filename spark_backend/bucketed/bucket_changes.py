"""Compute the output changes of an operator by buckets, in Python workers.

    entries of a bucket, before  +  new entries  =  after
    d part  =  part(after) - part(before)

Buckets without new entries are skipped. The state of a group of sums is its sums
(`grouped_sums.py`); of all other operators, their rows (`kept_rows.py`).

Pure functions over Arrow batches; Spark is not needed to try them.
"""

from __future__ import annotations

import json
import pickle
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, Protocol

import pyarrow as pa

from optimizer import plan
from reactive.engine.collections.zset import Row
from spark_backend.bucketed import grouped_sums, kept_rows
from spark_backend.bucketed.kept_rows import Bucket, Net, drop_zeros, subtract_nets
from spark_backend.codec.codec import Codec
from spark_backend.tables.stateless import adopt_classes

ROWS, OUTPUT, FAILED = "rows", "output", "failed"
"""The state tables of the results; the last one for an error."""
CHANGES = pa.schema(
    [
        ("t", pa.string()),
        ("bucket", pa.int64()),
        ("side", pa.int8()),
        ("row", pa.binary()),
        ("weight", pa.int64()),
    ]
)
CHANGES_DDL = "t string, bucket long, side byte, row binary, weight long"
TOGETHER = 5_000
"""The minimum number of entries processed in one call; a bucket is never split."""
FROM_SCRATCH = "reactive.engine.reference."
"""The prefix of the modules that evaluate from scratch."""
Entry = tuple[int, bool, int, bytes, int]
"""Bucket, whether it is new, input, packed row, weight."""


class BucketState(Protocol):
    """The state that a module keeps of the rows of a bucket."""

    def normal(self, node: plan.Node, before: Net, new: Net) -> Net:
        """Return the entries after a change, with equal entries merged."""
        ...

    def deltas(self, node: plan.Node, buckets: Sequence[Bucket]) -> Iterator[tuple[int, Row, int]]:
        """Yield the changes of the output of each bucket: its number, row, weight."""
        ...


class BucketEntries(NamedTuple):
    """The entries of a bucket: the existing and the new ones."""

    number: int
    before: Net
    new: Net


def bucket_changes(
    shipped: bytes, classes: dict[str, bytes], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows to add to the state tables, given entries sorted by bucket."""
    adopt_classes(classes)
    try:
        node = _load_plan(shipped)
        for some in _group_buckets(_read_buckets(batches)):
            yield _change_batch(compute_bucket_changes(node, some))
    except (Exception, SystemExit) as error:
        said = json.dumps(describe_failure(error)).encode()
        yield _change_batch([(FAILED, 0, 0, said, 1)])


def compute_bucket_changes(
    node: plan.Node, buckets: list[BucketEntries]
) -> list[tuple[str, int, int, bytes, int]]:
    """Return the rows to add to the tables `ROWS` and `OUTPUT`."""
    of = state_of_plan(node)
    done = [Bucket(n, before, of.normal(node, before, new)) for n, before, new in buckets]
    found = [
        (ROWS, number, side, row, weight)
        for number, before, after in done
        for (side, row), weight in subtract_nets(after, before).items()
    ]
    dumps = _row_codec().dumps
    out = of.deltas(node, done)
    return [*found, *((OUTPUT, number, 0, dumps(row), weight) for number, row, weight in out)]


def state_of_plan(node: plan.Node) -> BucketState:
    """Return the module that defines the state of a part."""
    return grouped_sums if grouped_sums.is_sums_only(node) else kept_rows


def describe_failure(error: BaseException) -> tuple[str, str, str | None]:
    """Return the type and message of an exception, and the row that it was about, if found."""
    found = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__", "").startswith(FROM_SCRATCH):
            names = ("arguments", "row", "member", "value")
            found = next((frame.f_locals[n] for n in names if n in frame.f_locals), found)
    return type(error).__name__, str(error), None if found is None else f"{found!r:.200}"


def _read_buckets(batches: Iterable[pa.RecordBatch]) -> Iterator[BucketEntries]:
    """Yield the buckets with new entries, whole, across the ends of batches."""
    for number, entries in groupby(_read_entries(batches), itemgetter(0)):
        before, new = Counter[tuple[int, bytes]](), Counter[tuple[int, bytes]]()
        has_new = False
        for _, is_new, side, row, weight in entries:
            (new if is_new else before)[side, row] += weight
            has_new = has_new or is_new
        if has_new:
            yield BucketEntries(number, drop_zeros(before), drop_zeros(new))


def _read_entries(batches: Iterable[pa.RecordBatch]) -> Iterator[Entry]:
    """Yield the entries of batches as tuples of Python values."""
    for batch in batches:
        columns = ("bucket", "is_new", "side", "row", "weight")
        yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)


def _group_buckets(buckets: Iterable[BucketEntries]) -> Iterator[list[BucketEntries]]:
    """Yield the buckets in lists, each of at least `TOGETHER` entries except the last one."""
    some: list[BucketEntries] = []
    size = 0
    for bucket in buckets:
        some.append(bucket)
        size += len(bucket.before) + len(bucket.new)
        if size >= TOGETHER:
            yield some
            some, size = [], 0
    if some:
        yield some


def _change_batch(found: list[tuple[str, int, int, bytes, int]]) -> pa.RecordBatch:
    """Return the rows to add to the state tables as a batch; an empty batch for none."""
    columns = zip(*found, strict=True) if found else ((),) * len(CHANGES)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, CHANGES, strict=True)]
    return pa.record_batch(arrays, schema=CHANGES)


@lru_cache(maxsize=1)
def _row_codec() -> Codec:
    return Codec(stable=False)


@lru_cache(maxsize=16)
def _load_plan(data: bytes) -> plan.Node:
    node: plan.Node = pickle.loads(data)
    return node
