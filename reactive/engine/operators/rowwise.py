"""Tolerate: pass a row on when its value differs enough from the last one that was.

    shown(key)  =  row           if |value(row) - value(shown(key))| >= least, or the key is new
                   shown(key)    otherwise

So what it shows differs from its input by less than `least` in each value, and which of the rows
within that distance it shows depends on the history. Of each key there is one row.

State:  two rows for each key: the one that is there, and the one that was passed on.
Cost:   O(|dL|).
Source: differential dataflow's advice for numerical loops, to quantize; here without a grid, at
        whose lines values would flicker.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reactive.engine.collections.zset import Pair, Pairs, Row, canonical
from reactive.errors import FixpointError

Held = tuple[Row, Row]
"""The row of a key, and the one that was passed on for it."""
Changes = dict[Any, dict[Row, int]]


class Tolerate:
    """Passes on rows whose value has moved by `least` since a row of their key was passed on.

    >>> tolerate = Tolerate(lambda row: row[0], lambda row: row[1], 0.5)
    >>> tolerate.step([(("a", 1.0), 1)])
    [(('a', 1.0), 1)]
    >>> tolerate.step([(("a", 1.0), -1), (("a", 1.4), 1)])
    []
    >>> tolerate.step([(("a", 1.4), -1), (("a", 1.6), 1)])
    [(('a', 1.0), -1), (('a', 1.6), 1)]
    """

    __slots__ = ("_before", "_by", "_former", "_least", "_value", "held", "touched")

    def __init__(self, by: Callable[[Row], Any], value: Callable[[Row], Any], least: float) -> None:
        self._by = by
        self._value = value
        self._least = least
        self.held: dict[Any, Held] = {}
        self._before: dict[Any, Held | None] = {}
        self._former: dict[Any, Held] | None = None
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        self.touched += len(delta)
        decided = [(key, self._now(key, rows)) for key, rows in self._changes(delta).items()]
        out: list[Pair] = []
        for key, now in decided:
            was = self.held.get(key)
            self._before.setdefault(key, was)
            if now is None:
                self.held.pop(key, None)
            else:
                self.held[key] = now
            _tell(out, was, now)
        return out

    def reset(self, rows: Iterable[Row]) -> None:
        """Begin anew with these rows, each of which is passed on."""
        held = {self.key(row): (row, row) for row in rows}
        if self._former is None:
            self._undo_keys()
            self._former = self.held
        self.held = held

    def undo(self) -> None:
        """Take all steps since the last commit back."""
        if self._former is not None:
            self.held, self._former = self._former, None
        self._undo_keys()

    def _undo_keys(self) -> None:
        for key, was in self._before.items():
            if was is None:
                self.held.pop(key, None)
            else:
                self.held[key] = was
        self._before = {}

    def commit(self) -> None:
        self._before, self._former = {}, None

    def key(self, row: Row) -> Any:
        """What tells a row apart."""
        return canonical(self._by(row))

    def contents(self) -> Iterable[Pair]:
        return [(shown, 1) for _, shown in self.held.values()]

    def there(self) -> Iterable[Pair]:
        """The rows that came, each of which is near the one that was passed on."""
        return [(row, 1) for row, _ in self.held.values()]

    def state(self) -> dict[str, Any]:
        """The rows that are there, and those that are shown for them if they differ."""
        there, shown = (
            [row for row, _ in self.held.values()],
            [row for _, row in self.held.values()],
        )
        return {"there": there, "shown": None if there == shown else shown}

    def restore(self, there: Sequence[Row], shown: Sequence[Row] | None) -> None:
        """Hold what another one has told as its state."""
        pairs = zip(there, there if shown is None else shown, strict=True)
        self.held.update((self.key(row), (row, other)) for row, other in pairs)

    def footprint(self) -> tuple[int, int]:
        return len(self.held), sys.getsizeof(self.held) + 56 * len(self.held)

    def _changes(self, delta: Pairs) -> Changes:
        """The rows of each key that change, with how often."""
        by = self._by
        found: Changes = {}
        for row, weight in delta:
            rows = found.setdefault(canonical(by(row)), {})
            rows[row] = rows.get(row, 0) + weight
        return found

    def _now(self, key: Any, changes: dict[Row, int]) -> Held | None:
        """The row that a key has now, and the one that is passed on for it."""
        was = self.held.get(key)
        if was is not None:
            changes[was[0]] = changes.get(was[0], 0) + 1
        rows = [(row, weight) for row, weight in changes.items() if weight]
        if not rows:
            return None
        (row, weight), *others = rows
        if others or weight != 1:
            raise _ambiguous(key, [row, *(other for other, _ in others)], weight)
        return row, row if was is None or self._moves(row, was[1]) else was[1]

    def _moves(self, row: Row, shown: Row) -> bool:
        return not abs(self._value(row) - self._value(shown)) < self._least


def _tell(out: list[Pair], was: Held | None, now: Held | None) -> None:
    if was is not None and now is not None and was[1] == now[1]:
        return
    if was is not None:
        out.append((was[1], -1))
    if now is not None:
        out.append((now[1], 1))


def _ambiguous(key: Any, rows: list[Row], weight: int) -> FixpointError:
    shown = " and ".join(f"{row!r:.60}" for row in rows[:2])
    often = f", {weight} times" if len(rows) == 1 else ""
    return FixpointError(
        f"tolerance= needs one row of each key, and key {key!r:.60} has several\n"
        f"  they are {shown}{often}\n"
        "  by= says which rows correspond from round to round"
    )
