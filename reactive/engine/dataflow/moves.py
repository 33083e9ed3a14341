"""Moves: which row came in the place of which other row.

    a -> b, b -> c  =  a -> c          updates of a commit are composed
    a -> b, b -> a  =  nothing

A delta says what came and what went; moves say which of it belongs together. They are told beside
the delta and never change it: a move stands only while its old row is among what goes and its new
row among what comes, each as often as moves need it. All others are what they are without moves: a
row that went and a row that came.

Law:    sum of the moves that stand, (old, -1) and (new, +1), and of the rest  =  the delta.
Cost:   O(moves), and O(delta) where there are any.
Source: [i3ql] section 3, the event `updated`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from reactive.engine.collections.zset import Pair, Row

Move = tuple[Row, Row]
"""An old row, and the new one in its place."""
Moves = Callable[[], Sequence[Move]]
"""Finds moves when somebody asks for them."""
Moved = Mapping[Any, Moves]
"""What moves in a commit, by the source of the graph."""


class Lineage(Protocol):
    """Follows moves of tables to what a leaf gives out."""

    def traced(self, moved: Moved) -> Moves | None:
        """What becomes of them there; None if they do not lead there."""
        ...

    def renew(self) -> None:
        """The leaf reads another node."""
        ...

    def end(self) -> None:
        """Nobody wants to know any more."""
        ...


class Chains:
    """Moves one after the other, each composed with what led to its old row.

    >>> chains = Chains([("a", "b"), ("x", "y"), ("b", "c"), ("y", "x")])
    >>> chains.moves()
    [('a', 'c')]
    """

    __slots__ = ("_olds",)

    def __init__(self, moves: Iterable[Move] = ()) -> None:
        self._olds: dict[Row, list[Row]] = {}  # by the new row
        for old, new in moves:
            self.move(old, new)

    def __bool__(self) -> bool:
        return bool(self._olds)

    def move(self, old: Row, new: Row) -> None:
        """Another move."""
        start = self._taken(old, old)
        if start != new:
            self._olds.setdefault(new, []).append(start)

    def remove(self, row: Row) -> None:
        """A row went, and nothing came in its place: neither for what it came for."""
        self._taken(row, None)

    def moves(self) -> list[Move]:
        return [(old, new) for new, olds in self._olds.items() for old in olds]

    def _taken(self, row: Row, default: Row) -> Row:
        olds = self._olds.get(row)
        if olds is None:
            return default
        old = olds.pop()
        if not olds:
            del self._olds[row]
        return old


def standing(moves: Sequence[Move], pairs: Sequence[Pair]) -> tuple[list[Move], Sequence[Pair]]:
    """The moves that stand in a consolidated delta, and what is left of it.

    >>> standing([("a", "b"), ("x", "y")], [("a", -2), ("b", 1), ("y", 1)])
    ([('a', 'b')], [('a', -1), ('y', 1)])
    """
    found: list[Move] = []
    if not moves:
        return found, pairs
    left, held = dict(pairs), {row: row for row, _ in pairs}
    for old, new in moves:
        if left.get(old, 0) < 0 < left.get(new, 0):
            left[old] += 1
            left[new] -= 1
            found.append((held[old], held[new]))
    return found, [pair for pair in left.items() if pair[1]] if found else pairs


def by_key(
    key: Callable[[Row], Hashable], pairs: Sequence[Pair]
) -> tuple[Sequence[Move], Sequence[Pair]]:
    """The rows of a delta that came in the place of another one of their key, and the rest of it.

    >>> by_key(len, [("to", -1), ("be", 1), ("not", 1)])
    ([('to', 'be')], [('not', 1)])
    """
    if len(pairs) < 2:
        return (), pairs
    old = {key(row): row for row, weight in pairs if weight == -1}
    if not old:
        return (), pairs
    new = {key(row): row for row, weight in pairs if weight == 1}
    both = old.keys() & new.keys()
    if not both:
        return (), pairs
    moves = [(row, new[k]) for k, row in old.items() if k in both]
    gone = {id(row) for move in moves for row in move}
    return moves, [pair for pair in pairs if id(pair[0]) not in gone]
