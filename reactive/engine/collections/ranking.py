"""Which of two rows is better: the order by which a fixpoint keeps one row of each key.

Least value first, or largest; NaN counts as larger than everything. Rows with equal values stand by
themselves, dataclasses by their fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from reactive.engine.collections.order import sort_key, tie_key
from reactive.engine.collections.zset import Row

Rank = tuple[Any, "Tie"]
"""Less is better."""


class Down:
    """A value whose order is turned round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Down) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Down) and bool(self.value == other.value)

    __hash__ = None  # type: ignore[assignment]


class Tie:
    """Decides between rows of equal value. Nothing is compared until there are such rows."""

    __slots__ = ("row",)

    def __init__(self, row: Row) -> None:
        self.row = row

    def __lt__(self, other: Tie) -> bool:
        return _fields(self.row) < _fields(other.row)


def ranker(value: Callable[[Row], Any], *, largest: bool) -> Callable[[Row], Rank]:
    """The rank of a row by its value.

    >>> rank = ranker(len, largest=True)
    >>> min(["a", "ccc", "bbb"], key=rank)
    'bbb'
    """
    if largest:
        return lambda row: (Down(sort_key(value(row))), Tie(row))
    return lambda row: (sort_key(value(row)), Tie(row))


def _fields(value: Any) -> tuple[Any, ...]:
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        shown = [_fields(getattr(value, f.name)) for f in dataclasses.fields(kind) if f.compare]
        return (6, kind.__qualname__, tuple(shown))
    if isinstance(value, tuple):
        return (5, tuple(map(_fields, value)))
    return tie_key(value)
