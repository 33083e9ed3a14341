"""What takes the rows of a loop: it writes lines before it, into it and after it."""

from __future__ import annotations

from typing import Any, Protocol

from optimizer.expr import Expr
from reactive.codegen.body import Body, Plan


class Taker(Protocol):
    """`bound` are the values that its lines call by name."""

    bound: dict[str, Any]

    def exprs(self) -> list[Expr]: ...
    def prologue(self) -> list[str]: ...
    def write(self, body: Body, weight: str) -> None: ...
    def epilogue(self) -> list[str]: ...


class ToList:
    """Takes rows into a list of pairs; of a `batch`, without their weight."""

    def __init__(self, todo: Plan, *, batch: bool = False) -> None:
        self._batch = batch
        self._row = todo.value()
        self._is_input = todo.is_input
        self.bound: dict[str, Any] = {}

    def prologue(self) -> list[str]:
        return ["    out = []", "    append = out.append"]

    def epilogue(self) -> list[str]:
        return ["    return out"]

    def exprs(self) -> list[Expr]:
        return [] if self._is_input else [self._row]

    def write(self, body: Body, weight: str) -> None:
        row = "row" if self._is_input else body.canonical(self._row)
        body.line(f"append({row})" if self._batch else f"append(({row}, {weight}))")


class ToCounts:
    """Counts equal rows of a batch."""

    def __init__(self, todo: Plan) -> None:
        self._row = todo.value()
        self._is_input = todo.is_input
        self.bound: dict[str, Any] = {}

    def prologue(self) -> list[str]:
        return ["    counts = {}", "    get = counts.get"]

    def epilogue(self) -> list[str]:
        return ["    return counts"]

    def exprs(self) -> list[Expr]:
        return [] if self._is_input else [self._row]

    def write(self, body: Body, weight: str) -> None:
        made = "row" if self._is_input else body.variable("made", body.canonical(self._row))
        body.line(f"counts[{made}] = get({made}, 0) + 1")
