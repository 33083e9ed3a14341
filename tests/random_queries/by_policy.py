"""The rows of a plan where what raises leaves rows out, by the definition of each operator.

A callable is asked as the plan as written asks it. Where it raises, or gives what has no hash and
should, the row is not there for the operator; or, by the policy `null`, it gives None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.random_queries.nodes import Node
from tests.random_queries.oracle import Inside, Oracle, Rows
from tests.random_queries.orders import in_order

KEYED = ("group", "reduce", "top", "each")
OWN = ("Own", "Monoid")
"""Aggregates that cannot leave None out."""
Call = Callable[[Any], Any]


class ByPolicy(Oracle):
    """Evaluates plans in which rows that raise go by a policy, `drop` or `null`."""

    def __init__(self, names: Mapping[str, Any], tables: Sequence[Rows], policy: str) -> None:
        super().__init__(names, tables)
        self._null = policy == "null"

    def _input(self, node: Node, inside: Inside) -> Rows:
        needed = [self._raw(name, node) for name in self._needed(node)]
        orders = [] if self._null else [self._raw(name, node) for name in _orders(node)]
        rows = super()._input(node, inside)
        return [
            row
            for row in rows
            if all(succeeds(call, row) for call in needed)
            and all(succeeds(call, row, hashes=False) for call in orders)
        ]

    def _needed(self, node: Node) -> list[str]:
        """The callables without whose values a row is left out."""
        folds = node.more if node.op == "group" else ()
        own = [fold.of for fold in folds if fold.of and fold.name in OWN]
        if self._null:
            return own
        keys = [node.calls["key"]] if node.op in KEYED and "key" in node.calls else []
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
        if "left_key" in node.calls and not self._null:
            mine, theirs = self._keys(node)
            left = [row for row in left if succeeds(mine, row)]
            right = [row for row in right if succeeds(theirs, row)]
        return left, right

    def _matches(self, node: Node, inside: Inside) -> tuple[Rows, Rows, list[tuple[int, int]]]:
        left, right, pairs = super()._matches(node, inside)
        if "left_key" in node.calls:
            mine, theirs = self._keys(node)
            here = [succeeds(mine, row) for row in left]
            there = [succeeds(theirs, row) for row in right]
            pairs = [(i, j) for i, j in pairs if here[i] and there[j]]
        return left, right, pairs

    def _keys(self, node: Node) -> tuple[Call, Call]:
        right = super()._of_right(node.calls["right_key"])
        return self._raw(node.calls["left_key"], node), right

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

    def _order(self, node: Node, inside: Inside) -> Rows:
        keyed = [(call, self._last(key)) for call, key in self.keyed(node)]
        rows = in_order(self._input(node, inside), keyed)
        _, limit, offset = node.more
        return rows[offset:] if limit is None else rows[offset : offset + limit]

    def _top(self, node: Node, inside: Inside) -> Rows:
        keys, count, how = node.more
        nulls = "first" if how == "last" else "last"  # which is the other way round then
        if self._null:
            keys = tuple(key._replace(nulls=key.nulls or nulls) for key in keys)
        changed = Node(node.op, node.inputs, node.kinds, node.calls, (keys, count, how))
        return super()._top(changed, inside)

    def _last(self, key: Any) -> Any:
        return key._replace(nulls=key.nulls or "last") if self._null else key


def _orders(node: Node) -> list[str]:
    """The callables that rows are ordered by."""
    return [key.of for key in node.more[0]] if node.op in ("order", "top") else []


def succeeds(call: Call, row: Any, *, hashes: bool = True) -> bool:
    """Whether a callable gives something, which has a hash."""
    try:
        found = call(row)
        hash(found if hashes else None)
    except Exception:
        return False
    return True
