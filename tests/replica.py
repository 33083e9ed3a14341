"""A second copy of a view, maintained only from the deltas of its subscribers."""

from __future__ import annotations

from collections import Counter
from typing import Any

from reactive import Delta, OrderedView


class Replica:
    """Add up deltas, and for an ordered view apply its edits to a list."""

    def __init__(self, view: Any) -> None:
        self.view = view
        self.rows: Counter[Any] = Counter()
        self.sequence: list[Any] = []
        self.version = -1
        self.subscription = view.subscribe(self.receive, snapshot=True)

    def receive(self, delta: Delta[Any]) -> None:
        assert delta.version > self.version
        self.version = delta.version
        if delta.is_snapshot:
            self.rows, self.sequence = Counter(), []
        for row, weight in delta.items():
            assert weight
            self.rows[row] += weight
            if not self.rows[row]:
                del self.rows[row]
        for edit in delta.edits:
            position, row, weight = edit
            if position is None or edit.path:
                continue
            if weight > 0:
                assert 0 <= position <= len(self.sequence)
                self.sequence.insert(position, row)
            else:
                assert is_same(self.sequence.pop(position), row)
        self.check_parts(delta)

    def check_parts(self, delta: Delta[Any]) -> None:
        """`added`, `removed` and `updated` say the same as `items`."""
        parts: Counter[Any] = Counter()
        parts.update(delta.added)
        parts.subtract(delta.removed)
        for old, new in delta.updated:
            parts[new] += 1
            parts[old] -= 1
        assert {r: w for r, w in parts.items() if w} == dict(delta.items())

    def check(self) -> None:
        """The copy equals the view."""
        assert self.subscription.error is None, self.subscription.error
        assert self.rows == Counter(dict(self.view.zset().items()))
        assert len(self.view) == sum(weight for weight in self.rows.values() if weight > 0)
        if isinstance(self.view, OrderedView):
            assert self.sequence == list(self.view)


def is_same(row: Any, other: Any) -> bool:
    """Return True if these are copies of one row.

    A NaN is one object in all rows, unequal to itself.
    """
    return row is other or bool(row == other)
