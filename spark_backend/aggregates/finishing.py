"""What runs in Python workers for groups that hold odd values: their sums, as Python has them.

Pure functions over Arrow batches; Spark is not needed to try them.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from reactive.engine.collections.zset import canonical
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.limbs import total
from spark_backend.codec.schema import Digits, Record, Typed

ODD = "odd_values"
_BITS = 32


@dataclass(frozen=True, slots=True)
class Result:
    """What is shown: a "count", the "sum" of a name or its "avg", or a "value" as it is."""

    kind: str
    name: str
    of: Typed
    count: str = "n"
    """The column that says how many values there are."""


@dataclass(frozen=True, slots=True)
class Finishing:
    """How rows are made of sums: the types of key and row, the sums, and what is shown of them.

    Without a `key` there is one group.
    """

    key: Typed | None
    kept: Typed
    sums: tuple[tuple[str, bool], ...]
    results: tuple[Result, ...]


def finished(shipped: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows before and after of groups with their sums."""
    of: Finishing = pickle.loads(shipped)
    for batch in batches:
        before, after = (_rows(of, batch, when) for when in ("b_", "a_"))
        rows: list[Any] = []
        weights: list[int] = []
        for was, now in zip(before, after, strict=True):
            if was == now:
                continue
            for shown, weight in ((was, -1), (now, 1)):
                if shown is not None:
                    rows.append(shown[0])
                    weights.append(weight)
        arrays = [to_arrow(of.kept, rows), pa.array(weights, pa.int64())]
        yield pa.record_batch(arrays, names=["row", "weight"])


def _rows(of: Finishing, batch: pa.RecordBatch, when: str) -> list[tuple[Any] | None]:
    """The row of each group, alone in a tuple; None of a group that is not there."""
    keys = None if of.key is None else from_arrow(of.key, batch.column("key"))
    values = [_values(result, batch, when) for result in of.results]
    names = [n for n in batch.schema.names if n.startswith(when) or n == ODD]
    found: list[tuple[Any] | None] = []
    for place, sums in enumerate(batch.select(names).to_pylist()):
        if not sums[f"{when}is"]:
            found.append(None)
            continue
        totals = {name: _total(name, is_float, sums, when) for name, is_float in of.sums}
        results = [
            _result(result, totals, sums, when) if value is None else value[place]
            for result, value in zip(of.results, values, strict=True)
        ]
        found.append((made_of(of.kept, results if keys is None else [keys[place], *results]),))
    return found


def _values(result: Result, batch: pa.RecordBatch, when: str) -> list[Any] | None:
    """Of each group what is shown as it is."""
    if result.kind != "value":
        return None
    found = from_arrow(result.of, batch.column(f"{when}{result.name}"))
    zero = {int: 0, Digits: Decimal(0)}.get(result.of.kind)
    return found if result.of.optional or zero is None else [v or zero for v in found]


def made_of(kept: Typed, items: Sequence[Any]) -> Any:
    """The row of the output that has these items; one alone is the row."""
    if len(items) == 1 or not isinstance(kept, Record):
        return items[0]
    return tuple(items) if kept.kind is tuple else kept.kind(*items)


def _result(result: Result, totals: dict[str, Any], sums: dict[str, Any], when: str) -> Any:
    count = sums[f"{when}{result.count}"]
    if result.kind == "count":
        return count
    total_of = totals[result.name]
    if result.kind == "sum":
        return total_of
    return canonical(total_of / count) if count > 0 else None


def _total(name: str, is_float: bool, sums: dict[str, Any], when: str) -> Any:
    limbs = [sums[f"{when}{name}_{place}"] for place in range(5 if is_float else 2)]
    number = sum(limb << (_BITS * place) for place, limb in enumerate(limbs))
    odd = [(one.get(f"{name}_odd"), one[f"{when}n"]) for one in sums[ODD]]
    odd = [(value, n) for value, n in odd if value is not None and n]
    count = sums.get(f"{when}{name}_c", sums[f"{when}n"])
    return total_of(number, count, odd, is_float=is_float)


def total_of(number: int, count: int, odd: Sequence[tuple[Any, int]], *, is_float: bool) -> Any:
    """A sum: of what limbs are the number of, and of odd values with their weights, `count` values
    in all."""
    if not is_float:
        return number + sum(int(value) * n for value, n in odd)
    floats = count - sum(n for _, n in odd)
    return float(total((number, floats, 0, 0, 0), odd))
