"""What passes over rows without weights make: values by group, and rows by key.

State:  none.
Cost:   O(rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optimizer.expr import Expr, Lifted
from reactive.engine.codegen.emitter import Emitter, RowPipeline
from reactive.engine.collections.index import Rows
from reactive.engine.collections.zset import Row


class Gathering:
    """Takes what an aggregate reads of each row into a list for each group."""

    result = "groups"

    def __init__(self, key: Expr | None, values: Sequence[Expr]) -> None:
        self._key = key
        self._values = list(values)
        self.bound: dict[str, Any] = {}

    def exprs(self) -> list[Expr]:
        return [*([] if self._key is None else [self._key]), *self._values]

    def prologue(self) -> list[str]:
        return []

    def epilogue(self) -> list[str]:
        return []

    def write(self, body: Emitter, weight: str) -> None:
        values = [body.use(value) for value in self._values]
        value = values[0] if len(values) == 1 else f"({', '.join(values)})"
        key = "()" if self._key is None else body.canonical(self._key)
        body.line(f"groups[{key}].append({value})")


def value_of(pipeline: RowPipeline, value: Any) -> Expr:
    """What an aggregate reads of the rows of a pipeline."""
    if value is None:
        return pipeline.value()
    assert isinstance(value, Lifted)
    return pipeline.take(value.body)


def indexed(keys: Sequence[Any], rows: Sequence[Row]) -> dict[Any, Rows]:
    """Rows by their keys."""
    found: dict[Any, Rows] = {}
    get = found.get
    for key, row in zip(keys, rows, strict=True):
        bucket = get(key)
        if bucket is None:
            found[key] = bucket = Rows()
        bucket.append(row)
    return found
