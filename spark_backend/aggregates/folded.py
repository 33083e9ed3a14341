"""Aggregates that Python works out, of all values of each group that changed.

    values of a group, with weights, before and after  --accumulator, in a worker-->  two results

A worker knows nothing from one flush to the next: the values are in a table. They come in one
order, so that a result that is worked out again is the same.

    Sum, Avg of Decimal     exact, of as many digits as it takes
    Aggregate, Monoid       a callable of one's own, whose result is of a known type
    Min, Max                of what Spark orders otherwise than Python

Cost:   O(values of the groups that changed), and a call for each value.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from optimizer import plan
from optimizer.expressions.attempts import Outcome
from reactive.engine.collections.zset import canonical
from reactive.engine.operators.tolerant import Tolerant
from reactive.errors import OffloadError
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.schema import Digits, Typed, Whole
from spark_backend.tables.stateless import RAISED
from spark_backend.tables.worker import adopt

VALUES = "values"
"""The values of a group: structs of `value`, `b` and `a`, how often each is there."""


@dataclass(frozen=True, slots=True)
class Folding:
    """What is made of the values of a type: in the column of each name, a result of a type.

    `of_nothing`: whether there is a result of no values.
    """

    value: Typed
    names: tuple[str, ...]
    results: tuple[Typed, ...]
    of_nothing: bool


def folded(
    shipped: bytes, classes: dict[str, bytes], of_values: bytes, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The batches with the results before and after in the place of the values.

    Parameters
    ----------
    shipped: an aggregate with one accumulator for each result.
    """
    adopt(classes)
    node: plan.Aggregate = pickle.loads(shipped)
    of: Folding = pickle.loads(of_values)
    for batch in batches:
        groups = _groups(of, batch)
        columns = {n: batch.column(n) for n in batch.schema.names if n != VALUES}
        for when in ("b", "a"):
            for name, kept, each in zip(of.names, of.results, node.aggregates, strict=True):
                results = [_result(each, group[when], of) for group in groups]
                columns[f"{when}_{name}"] = _array(kept, results, each)
        yield pa.record_batch(list(columns.values()), names=list(columns))


def _groups(of: Folding, batch: pa.RecordBatch) -> list[dict[str, list[tuple[Any, int]]]]:
    """Of each group the values that are there before and after, with how often."""
    lists = batch.column(VALUES)
    inside = lists.flatten()
    values = from_arrow(of.value, inside.field("value"))
    weights = {when: inside.field(when).to_pylist() for when in ("b", "a")}
    found, start = [], 0
    for length in lists.value_lengths().to_pylist():
        places = range(start, start + length)
        found.append(
            {when: [(values[p], n[p]) for p in places if n[p] > 0] for when, n in weights.items()}
        )
        start += length
    return found


def _result(folded: plan.Folded, values: Sequence[tuple[Any, int]], of: Folding) -> Any:
    if not values and not of.of_nothing:
        return None
    accumulator = folded.accumulator
    try:
        state = accumulator.zero()
        for value, weight in values:
            state = accumulator.add(state, value, weight)
        return result_held(accumulator, accumulator.result(state))
    except (Exception, SystemExit) as error:
        shown = ", ".join(f"{value!r:.60}" for value, _ in values[:3])
        raise RuntimeError(
            f"{RAISED}{type(error).__name__}: {error}; in {folded.name}, on values {shown}"
        ) from error


def result_held(accumulator: Any, result: Any) -> Any:
    """Return a result as its column holds it."""
    found = canonical(result)
    return Outcome.of(found) if isinstance(accumulator, Tolerant) else found


def _array(kept: Typed, results: list[Any], folded: plan.Folded) -> pa.Array:
    if isinstance(kept, Whole) and kept.kind is Digits:
        results = [None if r is None else Decimal(r) for r in results]
    try:
        return to_arrow(replace(kept, optional=True), results)
    except OffloadError as error:
        what = str(error).partition("\n")[0]
        raise RuntimeError(
            f"{RAISED}OffloadError: {what}; annotate what {folded.name} gives as it is"
        ) from None
