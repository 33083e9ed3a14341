"""What takes the rows of a nest of loops: it writes lines before the loops, in the middle, after.

    ListSink    out        pairs of row and weight; of a batch, rows
    CountSink   counts     equal rows of a batch, counted
    KeySink     out        keys beside pairs; of a batch, keys and rows

Those of aggregates stand beside their operators (`operators/loops`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from optimizer.expr import Expr
from reactive.engine.codegen import join_key
from reactive.engine.codegen.emitter import Emitter, RowPipeline


class Sink(Protocol):
    """`bound` are the values that its lines call by name, `result` what the function returns."""

    bound: dict[str, Any]
    result: str

    def exprs(self) -> list[Expr]: ...
    def prologue(self) -> list[str]: ...
    def write(self, body: Emitter, weight: str) -> None: ...
    def epilogue(self) -> list[str]: ...


class ListSink:
    """Takes rows into a list of pairs; of a `batch`, without their weight."""

    result = "out"

    def __init__(self, pipeline: RowPipeline, *, batch: bool = False) -> None:
        self._batch = batch
        self._row = pipeline.value()
        self._is_input = pipeline.is_input
        self.bound: dict[str, Any] = {}

    def prologue(self) -> list[str]:
        return ["    out = []", "    append = out.append"]

    def epilogue(self) -> list[str]:
        return []

    def exprs(self) -> list[Expr]:
        return [] if self._is_input else [self._row]

    def write(self, body: Emitter, weight: str) -> None:
        row = "row" if self._is_input else body.canonical(self._row)
        body.line(f"append({row})" if self._batch else f"append(({row}, {weight}))")


class CountSink:
    """Counts equal rows of a batch."""

    result = "counts"

    def __init__(self, pipeline: RowPipeline) -> None:
        self._row = pipeline.value()
        self._is_input = pipeline.is_input
        self.bound: dict[str, Any] = {}

    def prologue(self) -> list[str]:
        return ["    counts = {}", "    get = counts.get"]

    def epilogue(self) -> list[str]:
        return []

    def exprs(self) -> list[Expr]:
        return [] if self._is_input else [self._row]

    def write(self, body: Emitter, weight: str) -> None:
        made = "row" if self._is_input else body.variable("made", body.canonical(self._row))
        body.line(f"counts[{made}] = get({made}, 0) + 1")


class KeySink:
    """Puts keys beside the pairs; of a `batch`, makes lists of keys and of rows.

    Where a pair goes on as it came, it is the same object: `pair`.
    """

    def __init__(
        self, pipeline: RowPipeline, key: Sequence[Expr], *, is_written: bool, batch: bool = False
    ) -> None:
        self._pipeline = pipeline
        self._key = list(key)
        self._is_written = is_written
        self._batch = batch
        self.bound: dict[str, Any] = join_key.KEYS
        self.result = "keys, kept" if batch else "out"

    def exprs(self) -> list[Expr]:
        return [*self._key, *([] if self._pipeline.is_input else [self._pipeline.value()])]

    def prologue(self) -> list[str]:
        if self._batch:
            return ["    keys, kept = [], []", "    add_key, add_row = keys.append, kept.append"]
        return ["    out = []", "    append = out.append"]

    def epilogue(self) -> list[str]:
        return []

    def write(self, body: Emitter, weight: str) -> None:
        pipeline = self._pipeline
        key = join_key.key_or_no_match(
            body, self._key, pipeline.shapes, is_written=self._is_written
        )
        row = "row" if pipeline.is_input else body.canonical(pipeline.value())
        if self._batch:
            body.line(f"add_key({key})")
            body.line(f"add_row({row})")
        else:
            pair = "pair" if pipeline.is_input else f"({row}, {weight})"
            body.line(f"append(({key}, {pair}))")
