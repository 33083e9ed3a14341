"""What runs in Python workers for a chain of linear nodes: row by row, with weights.

Pure functions over Arrow batches with the columns `row` and `weight`; Spark is not needed to try
them. What a callable raises goes on as an exception that names the row.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import compress
from typing import Any

import pyarrow as pa

from optimizer import plan
from optimizer.plans.explain import headline
from optimizer.plans.extended import row_of
from optimizer.plans.properties import bindings
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.remote.fragments import part_of
from reactive.errors import OffloadError
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.codec import Codec, loads
from spark_backend.codec.schema import Kept, Pickled
from spark_backend.tables.worker import adopt

RAISED = "a callable of the query raised: "
"""What stands before the exception of a callable in the message of the worker's."""
PACKED = pa.schema([("row", pa.binary()), ("weight", pa.int64())])
ENTRIES = pa.schema(
    [
        ("bucket", pa.int64()),
        ("side", pa.int8()),
        ("row", pa.binary()),
        ("weight", pa.int64()),
    ]
)
Weighted = tuple[list[Row], list[int]]
Batches = Iterable[pa.RecordBatch]


def kept_rows(
    shipped: bytes, classes: dict[str, bytes], kept_as: bytes, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """The batches without the rows that a chain of `where` drops; rows stay as they are."""
    adopt(classes)
    chain, kept = _chain(shipped), pickle.loads(kept_as)
    for batch in batches:
        rows = unpacked(kept, batch)
        yield batch.filter(pa.array(_mask(chain, rows), pa.bool_()))


def packed_rows(
    shipped: bytes, classes: dict[str, bytes], kept_as: bytes, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """What a chain makes of the batches, as pickled rows with weights."""
    adopt(classes)
    chain, kept, codec = _chain(shipped), pickle.loads(kept_as), Codec(stable=False)
    for batch in batches:
        rows, weights = _run(chain, _weighted(kept, batch))
        packed = [codec.dumps(row) for row in rows]
        yield pa.record_batch(
            [pa.array(packed, pa.binary()), pa.array(weights, pa.int64())], schema=PACKED
        )


def typed_rows(
    shipped: bytes, classes: dict[str, bytes], kept_as: bytes, wanted: bytes, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """What a chain makes of the batches, as columns of a type that its last node is known to give;
    a row of another type raises."""
    adopt(classes)
    chain, kept, of = _chain(shipped), pickle.loads(kept_as), pickle.loads(wanted)
    for batch in batches:
        rows, weights = _run(chain, _weighted(kept, batch))
        try:
            array = to_arrow(of, rows)
        except OffloadError as error:
            what = str(error).partition("\n")[0]
            raise RuntimeError(
                f"{RAISED}OffloadError: {what}; annotate what {headline(chain[-1])} calls as it is"
            ) from None
        yield pa.record_batch([array, pa.array(weights, pa.int64())], names=["row", "weight"])


def entries(
    shipped: bytes,
    classes: dict[str, bytes],
    kept_as: bytes,
    onto: bytes,
    place: int,
    stable: bool,
    batches: Batches,
) -> Iterator[pa.RecordBatch]:
    """What a chain makes of the batches, as entries of an input of a part."""
    adopt(classes)
    chain, kept, codec = _chain(shipped), pickle.loads(kept_as), Codec(stable=stable)
    prepare = part_of(_loaded(onto)).prepare[place]
    for batch in batches:
        rows, weights = _run(chain, _weighted(kept, batch))
        found = [(*p, weight) for p, weight in zip(map(prepare, rows), weights, strict=True) if p]
        columns: tuple[list[Any], ...] = (
            [codec.bucket(key) for key, _, _ in found],
            [place] * len(found),
            [codec.dumps(row) for _, row, _ in found],
            [weight for _, _, weight in found],
        )
        yield _batch(ENTRIES, *columns)


def unpacked(kept: Kept, batch: Any) -> list[Row]:
    """The rows of a batch or table, whatever they are kept as."""
    column = batch.column("row")
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(kept, Pickled):
        return [loads(data) for data in column.to_pylist()]
    return from_arrow(kept, column)


def _batch(schema: pa.Schema, *columns: list[Any]) -> pa.RecordBatch:
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def _weighted(kept: Kept, batch: pa.RecordBatch) -> Weighted:
    return unpacked(kept, batch), batch.column("weight").to_pylist()


def _run(chain: list[plan.Node], weighted: Weighted) -> Weighted:
    """What the nodes make of rows, one after the other."""
    for node in chain:
        weighted = _step(node, *weighted)
    return weighted


def _mask(chain: list[plan.Node], rows: list[Row]) -> list[bool]:
    """Which rows pass all predicates; each asks only for those that passed the ones before."""
    there = list(range(len(rows)))
    for node in chain:
        assert isinstance(node, plan.Where)
        passed = _each(node, node.predicate, [rows[place] for place in there])
        there = list(compress(there, passed))
    mask = [False] * len(rows)
    for place in there:
        mask[place] = True
    return mask


def _step(node: plan.Node, rows: list[Row], weights: list[int]) -> Weighted:
    match node:
        case plan.Where(_, predicate):
            passed = _each(node, predicate, rows)
            return list(compress(rows, passed)), list(compress(weights, passed))
        case plan.Select(_, function):
            return list(map(canonical, _each(node, function, rows))), weights
        case plan.Extend():
            return list(map(canonical, _each(node, row_of(node), rows))), weights
        case plan.SelectMany(_, function):
            return _many(weights, _each(node, function, rows, list))
        case plan.Unnest(source, function):
            alone = bindings(source) == 1
            found = _each(node, function, rows, list)
            pairs = [
                [(row, e) if alone else (*row, e) for e in elements]
                for row, elements in zip(rows, found, strict=True)
            ]
            return _many(weights, pairs)
        case _:
            raise TypeError(f"{type(node).__name__} is not done row by row")


def _many(weights: list[int], found: list[list[Any]]) -> Weighted:
    rows = [canonical(row) for several in found for row in several]
    each = (weight for several, weight in zip(found, weights, strict=True) for _ in several)
    return rows, list(each)


def _each(
    node: Any, function: Any, rows: list[Row], finish: Callable[[Any], Any] | None = None
) -> list[Any]:
    """What a callable says of each row."""
    call, alone, out = callable_of(function), bindings(node.input) == 1, []
    finish = finish or (bool if isinstance(node, plan.Where) else None)
    row = None
    try:
        for row in rows:
            found = call(row) if alone else call(*row)
            out.append(found if finish is None else finish(found))
    except (Exception, SystemExit) as error:
        kind = type(error).__name__
        raise RuntimeError(
            f"{RAISED}{kind}: {error}; in {headline(node)}, on row {row!r:.200}"
        ) from error
    return out


@lru_cache(maxsize=16)
def _loaded(shipped: bytes) -> plan.Node:
    node: plan.Node = pickle.loads(shipped)
    return node


def _chain(shipped: bytes) -> list[plan.Node]:
    """The nodes of a chain, the first to see a row first."""
    found, node = [], _loaded(shipped)
    while not isinstance(node, plan.Recursive):
        found.append(node)
        node = node.inputs()[0]
    return found[::-1]
