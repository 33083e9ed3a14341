"""A copy of a view, made only of the deltas of a subscription."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from typing import Any

from tests.random_queries.rows import bag, frozen


class Mirror:
    """Add up deltas, and replay edits. `wrong` describes the first inconsistent delta."""

    def __init__(self, *, in_order: bool) -> None:
        self.rows: Counter[Any] = Counter()
        self.sequence: list[Any] = []
        self.wrong: str | None = None
        self._in_order = in_order
        self._lock = threading.RLock()
        self._version = -1
        self._heard = 0

    def receive(self, delta: Any) -> None:
        """Take a delta in; nothing interrupts that."""
        tracing = sys.gettrace()
        sys.settrace(None)
        try:
            with self._lock:
                self._receive(delta)
        finally:
            sys.settrace(tracing)

    def _receive(self, delta: Any) -> None:
        if delta.version < self._version:
            self.wrong = f"version {delta.version} after {self._version}"
        self._version = delta.version
        self._heard += 1
        if delta.is_snapshot:
            self.rows.clear()
            self.sequence.clear()
        elif self._heard == 1:
            self.wrong = f"{delta!r} came before a snapshot"
        changes = changed(delta)
        self.rows.update(changes)
        self._check_parts(delta, changes)
        self._replay(delta.edits)

    def shows(self, rows: Counter[Any]) -> bool:
        """Return True if the mirror has exactly these rows."""
        with self._lock:
            return {row: weight for row, weight in self.rows.items() if weight} == rows

    def check(self) -> None:
        """Check that the received deltas are consistent."""
        assert self.wrong is None, self.wrong
        rows = {row: weight for row, weight in self.rows.items() if weight}
        assert not self._in_order or rows == bag(self.sequence), (rows, self.sequence)

    def _check_parts(self, delta: Any, changes: Counter[Any]) -> None:
        parts = bag(delta.added)
        parts.subtract(bag(delta.removed))
        for old, new in delta.updated:
            parts.subtract([frozen(old)])
            parts.update([frozen(new)])
        if {r: w for r, w in parts.items() if w} != {r: w for r, w in changes.items() if w}:
            self.wrong = f"added, removed and updated of {delta!r} are not {delta.items()}"
        if not (delta.is_snapshot or delta.items() or delta.edits):
            self.wrong = f"{delta!r} tells nothing"

    def _replay(self, edits: Any) -> None:
        """Replay the edits of ordered rows; other edits are in `items`, too."""
        for edit in edits:
            position, row, weight = edit
            if edit.path or (position is None and not self._in_order):
                continue
            if weight == 1 and 0 <= position <= len(self.sequence):
                self.sequence.insert(position, row)
            elif weight == -1 and frozen(row) in map(frozen, self.sequence[position:][:1]):
                del self.sequence[position]
            else:
                self.wrong = f"edit {(position, row, weight)} of {self.sequence}"


def changed(delta: Any) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row, weight in delta.items():
        found[frozen(row)] += weight
    return found
