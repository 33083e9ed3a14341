"""Rows as what they add to the sums of their groups: in the process, and in Python workers.

(group, values...), weight  --pack-->  group as bytes, values  --added_up-->  sums by group
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from reactive.collections.zset import Row
from reactive.remote.remote import Entry
from spark_backend.codec.codec import Codec, loads
from spark_backend.parts.groups import encode, is_itself
from spark_backend.parts.sum_tables import Key, table_of
from spark_backend.parts.sums import Held, Sums, nothing
from spark_backend.tables.worker import adopt

Packed = tuple[bytes, bytes | None, tuple[Any, ...]]
"""The bytes of a group, the group pickled if they do not tell it, and the values to be summed, or
what is `Held` of it."""
MANY = 100_000
"""Entries that are added up at a time, where nobody asks for each group's change."""


def pack(row: Row, summed: Sequence[int], codec: Codec) -> tuple[int, Packed]:
    """The bucket of the group of a row, and what it adds."""
    group = row[0]
    shown = None if is_itself(group) else codec.dumps(group)
    return codec.bucket(group), (encode(group), shown, tuple([row[at] for at in summed]))


def added_up(entries: Iterable[Entry], count: int, codec: Codec) -> dict[Key, Sums]:
    """The sums of the entries of each group; without groups whose sums are all zero."""
    changes: dict[Key, Sums] = {}
    for _, bucket, (group, shown, values), weight in entries:
        sums = changes.get((bucket, group))
        if sums is None:
            sums = changes[bucket, group] = nothing(count, shown)
        if type(values) is Held:
            sums.add_held(values, weight)
        else:
            sums.add(values, weight, codec)
    return {key: sums.narrowed(codec) for key, sums in changes.items() if sums}


def sums(
    classes: dict[str, bytes],
    summed: list[int],
    number: int,
    stable: bool,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """What runs in workers: entries with pickled rows to tables of sums."""
    adopt(classes)
    codec = Codec(stable=stable)
    for table in tables_of(_entries(batches, summed, codec), number, len(summed), codec):
        yield from table.to_batches()


def tables_of(
    entries: Iterable[Entry], number: int, count: int, codec: Codec
) -> Iterator[pa.Table]:
    """Tables of sums that together are what the entries come to; at least one."""
    entries = iter(entries)
    some = list(islice(entries, MANY))
    while True:
        yield table_of(added_up(some, count, codec).items(), number, count)
        some = list(islice(entries, MANY))
        if not some:
            return


def _entries(batches: Iterable[pa.RecordBatch], summed: list[int], codec: Codec) -> Iterator[Entry]:
    for batch in batches:
        columns = batch.column("row").to_pylist(), batch.column("weight").to_pylist()
        for data, weight in zip(*columns, strict=True):
            yield (0, *pack(loads(data), summed, codec), weight)
