"""What runs in Python workers for groups that hold odd values: their sums, as Python has them.

Pure functions over Arrow batches; Spark is not needed to try them.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from reactive.collections.zset import canonical
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.limbs import total
from spark_backend.codec.schema import Typed

ODD = "odd_values"
_BITS = 32


@dataclass(frozen=True, slots=True)
class Finishing:
    """How rows are made of sums: the types of key and row, the sums, and what is shown of them."""

    key: Typed
    kept: Typed
    sums: tuple[tuple[str, bool], ...]
    results: tuple[tuple[str, str | None], ...]


def finished(shipped: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows before and after of groups with their sums."""
    of: Finishing = pickle.loads(shipped)
    for batch in batches:
        keys = from_arrow(of.key, batch.column("key"))
        rows: list[Any] = []
        weights: list[int] = []
        for key, sums in zip(keys, batch.to_pylist(), strict=True):
            before, after = (_row(of, key, sums, when) for when in ("b_", "a_"))
            if before == after:
                continue
            for row, weight in ((before, -1), (after, 1)):
                if row is not None:
                    rows.append(row)
                    weights.append(weight)
        arrays = [to_arrow(of.kept, rows), pa.array(weights, pa.int64())]
        yield pa.record_batch(arrays, names=["row", "weight"])


def _row(of: Finishing, key: Any, sums: dict[str, Any], when: str) -> tuple[Any, ...] | None:
    count = sums[f"{when}n"]
    if count <= 0:
        return None
    values = {name: _value(name, is_float, sums, when) for name, is_float in of.sums}
    return (key, *(_result(kind, name, values, count) for kind, name in of.results))


def _result(kind: str, name: str | None, values: dict[str, Any], count: int) -> Any:
    if name is None:
        return count
    return values[name] if kind == "sum" else canonical(values[name] / count)


def _value(name: str, is_float: bool, sums: dict[str, Any], when: str) -> Any:
    limbs = [sums[f"{when}{name}_{place}"] for place in range(5 if is_float else 2)]
    number = sum(limb << (_BITS * place) for place, limb in enumerate(limbs))
    odd = [(one.get(f"{name}_odd"), one[f"{when}n"]) for one in sums[ODD]]
    odd = [(value, n) for value, n in odd if value is not None and n]
    if not is_float:
        return number + sum(int(value) * n for value, n in odd)
    floats = sums[f"{when}n"] - sum(n for _, n in odd)
    return float(total((number, floats, 0, 0, 0), odd))
