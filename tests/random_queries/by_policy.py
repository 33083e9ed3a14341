"""The rows of a plan under an error policy, by the definition of each operator.

A callable is evaluated on the rows that the plan as written evaluates it on. If it raises, or
returns an unhashable value where a hash is needed, the operator skips the row; under the policy
`null`, the callable returns None instead.

Values of an order, of Min and of Max are compared: a row is skipped if its value has no order, or
if most rows of its group have a value of another kind. If two kinds have equally many rows, the
kind whose name is first wins. Each item of a tuple is judged by itself.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.random_queries.nodes import Node
from tests.random_queries.oracle import Inside, Oracle, Rows

KEYED = ("group", "reduce", "through", "top", "each")
OWN = ("Own", "Monoid")
"""Aggregates that cannot leave None out."""
Call = Callable[[Any], Any]
_NO_ORDER = getattr(object, "__lt__")  # noqa: B009


class ByPolicy(Oracle):
    """Evaluate plans under an error policy, `drop` or `null`."""

    def __init__(self, names: Mapping[str, Any], tables: Sequence[Rows], policy: str) -> None:
        super().__init__(names, tables)
        self._null = policy == "null"

    def _input(self, node: Node, inside: Inside) -> Rows:
        needed = [self._raw(name, node) for name in self._needed(node)]
        compared = self._compared(node)
        rows = super()._input(node, inside)
        found = [
            row
            for row in rows
            if all(succeeds(call, row) for call in needed)
            and all(succeeds(call, row, hashes=False) for call in compared)
        ]
        if not compared:
            return found
        is_grouped = "key" in node.calls and node.op != "order"
        groups = [of for _, of in self._groups(node, found)] if is_grouped else [found]
        kept = {id(row) for of in groups for row in _of_most(of, compared)}
        return [row for row in found if id(row) in kept]

    def _compared(self, node: Node) -> list[Call]:
        """Return calls for the kinds of compared values; a value without an order raises."""
        calls = [
            _kinds_of(self._raw(key.of, node), nulls="inside" if key.nulls else "")
            for key in (node.more[0] if node.op in ("order", "top") else ())
        ]
        for fold in node.more if node.op == "group" else ():
            if fold.name in ("Min", "Max"):
                call = _kinds_of(
                    self._raw(fold.of, node), nulls="alone" if fold.skip_none or self._null else ""
                )
                calls.append(_or_none(call) if self._null else call)
        return calls

    def _needed(self, node: Node) -> list[str]:
        """The callables without whose values a row is left out."""
        folds = node.more if node.op == "group" else ()
        own = [fold.of for fold in folds if fold.of and fold.name in OWN]
        keys = [node.calls["key"]] if node.op in KEYED and "key" in node.calls else []
        if self._null:
            return [*keys, *own]
        values = [fold.of for fold in folds if fold.of]
        made = node.calls.values() if node.op in ("select", "extend", "bind") else ()
        return [*keys, *values, *made]

    def _call(self, name: str, node: Node) -> Call:
        call = self._raw(name, node)
        several = node.op in ("select_many", "unnest")
        is_kept = node.op != "where" and name not in _orders(node)

        def asked(row: Any) -> Any:
            try:
                found = tuple(call(row)) if several else call(row)
                hash(found if is_kept else None)
            except Exception:
                return () if several else None
            return found

        return asked

    def _raw(self, name: str, node: Node) -> Call:
        return super()._call(name, node)

    def _of_both(self, name: str, node: Node) -> Callable[..., Any]:
        on = super()._of_both(name, node)

        def asked(*rows: Any) -> Any:
            try:
                return on(*rows)
            except Exception:
                return False

        return asked

    def _both(self, node: Node, inside: Inside) -> tuple[Rows, Rows]:
        left, right = super()._both(node, inside)
        if "left_key" in node.calls:
            mine, theirs = self._keys(node)
            left = [row for row in left if succeeds(mine, row)]
            right = [row for row in right if succeeds(theirs, row)]
        if node.op == "asof" and not self._null:
            at, of = self._times(node)
            left = [row for row in left if succeeds(at, row)]
            right = [row for row in right if succeeds(of, row)]
        return left, right

    def _matches(self, node: Node, inside: Inside) -> tuple[Rows, Rows, list[tuple[int, int]]]:
        left, right, pairs = super()._matches(node, inside)
        if "left_key" in node.calls:
            mine, theirs = self._keys(node)
            here = [succeeds(mine, row) for row in left]
            there = [succeeds(theirs, row) for row in right]
            pairs = [(i, j) for i, j in pairs if here[i] and there[j]]
        if node.op == "asof":
            at, of = self._times(node)
            pairs = [(i, j) for i, j in pairs if succeeds(at, left[i]) and succeeds(of, right[j])]
        return left, right, pairs

    def _keys(self, node: Node) -> tuple[Call, Call]:
        right = super()._of_right(node.calls["right_key"])
        return self._raw(node.calls["left_key"], node), right

    def _times(self, node: Node) -> tuple[Call, Call]:
        return self._raw(node.calls["at"], node), super()._of_right(node.calls["of"])

    def _of_right(self, name: str) -> Call:
        call = super()._of_right(name)

        def asked(row: Any) -> Any:
            return call(row) if succeeds(call, row) else math.nan

        return asked

    def _folds(self, node: Node, rows: Rows) -> list[Any]:
        if self._null:
            skipping = tuple(f._replace(skip_none=f.name not in OWN) for f in node.more)
            node = Node(node.op, node.inputs, node.kinds, node.calls, skipping)
        return super()._folds(node, rows)


def _orders(node: Node) -> list[str]:
    """The callables that rows are ordered by."""
    return [key.of for key in node.more[0]] if node.op in ("order", "top") else []


def succeeds(call: Call, row: Any, *, hashes: bool = True) -> bool:
    """Return True if a callable returns a value, which has a hash."""
    try:
        found = call(row)
        hash(found if hashes else None)
    except Exception:
        return False
    return True


def _kinds_of(call: Call, nulls: str) -> Call:
    return lambda row: _kinds(call(row), nulls, ())


def _or_none(call: Call) -> Call:
    """Return a value without an order in place of an error; under `null` it counts as None."""

    def asked(row: Any) -> Any:
        try:
            return call(row)
        except Exception:
            return {}

    return asked


def _kinds(value: Any, nulls: str, at: tuple[int, ...]) -> dict[tuple[int, ...], str]:
    """The kinds at all places of a value."""
    if value is None and (nulls == "inside" or (nulls and not at)):
        return {}
    found = {at: _kind(value)}
    parts = value if isinstance(value, tuple) else ()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = dataclasses.astuple(value)
        nulls = ""
    for place, part in enumerate(parts):
        found |= _kinds(part, nulls, (*at, place))
    return found


def _kind(value: Any) -> str:
    if isinstance(value, int | float | Decimal | Fraction):
        return "number"
    if isinstance(value, str | tuple):
        return "text" if isinstance(value, str) else "tuple"
    if isinstance(value, list | dict | complex) or value.__class__.__lt__ is _NO_ORDER:
        raise TypeError("no order")
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _of_most(rows: Rows, compared: Sequence[Call]) -> list[Any]:
    """The rows of the kinds that most different rows have."""
    kinds = [[call(row) for call in compared] for row in rows]
    counts: dict[Any, Counter[str]] = {}
    for of in dict(zip(rows, kinds, strict=True)).values():
        for n, places in enumerate(of):
            for at, kind in places.items():
                counts.setdefault((n, at), Counter())[kind] += 1
    most = {at: min(of, key=lambda kind: (-of[kind], kind)) for at, of in counts.items()}
    return [
        row
        for row, of in zip(rows, kinds, strict=True)
        if all(most[n, at] == kind for n, places in enumerate(of) for at, kind in places.items())
    ]
