"""A replica that also checks that deltas are those of a set: net, and no row twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

from reactive import Delta
from tests.replica import Replica


class Follower(Replica):
    """Follow a view, and compare it with its expected rows."""

    def __init__(self, view: Any) -> None:
        self.heard = 0
        super().__init__(view)

    def receive(self, delta: Delta[Any]) -> None:
        self.heard += 1
        changed = [row for row, _ in delta.items()]
        assert changed or delta.is_snapshot, "told of nothing"
        assert len(changed) == len(set(changed)), "a row came and went in one delta"
        assert not set(delta.added) & set(delta.removed)
        super().receive(delta)

    def agree(self, wanted: Counter[Any]) -> None:
        """View, deltas and the rows that there should be are the same."""
        found = Counter(dict(self.view.zset().items()))
        assert found == wanted, f"missing {wanted - found}, not wanted {found - wanted}"
        self.check()
