"""Sort keys of window partitions: one object per row, the value itself where that can be.

    order by a                   5          the value, not copied
    order by a desc              -5         reversed
    order by a, b                (5, "x")   a tuple of the parts
    NULL, NaN                    objects before or behind all values
    no order                     ()         all rows have equal keys

Rows with equal keys are peers. Their order is a second criterion (`tie_of`), which is computed only
for rows that have peers.

State: none; 8 bytes per row in the lists that hold the keys, if the values need no copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import neg
from typing import Any

from optimizer.kinds.fields import compared_names
from reactive.engine.collections.order import FIRST, LAST, sort_key
from reactive.engine.collections.sorted_copies import value_key
from reactive.engine.collections.sorting import reversed_key
from reactive.engine.collections.value_order import Directions, rank, rank_of


class EndKey:
    """A key before or behind all values, and in order among its like by its level.

    >>> sorted([3, NULL_LAST, 1, NAN_LAST, NULL_FIRST]) == [NULL_FIRST, 1, 3, NAN_LAST, NULL_LAST]
    True
    """

    __slots__ = ("level",)

    def __init__(self, level: int) -> None:
        self.level = level

    def __lt__(self, other: object) -> bool:
        return self.level < (other.level if other.__class__ is EndKey else 0)

    def __gt__(self, other: object) -> bool:
        return self.level > (other.level if other.__class__ is EndKey else 0)

    def __neg__(self) -> EndKey:
        """Return the opposite, with which a reversed key compares its own value."""
        return END_KEYS[-self.level]

    def __repr__(self) -> str:
        return f"EndKey({self.level})"


END_KEYS = {level: EndKey(level) for level in (-3, -2, -1, 1, 2, 3)}
_, NULL_FIRST, NAN_FIRST, NAN_LAST, NULL_LAST, BEHIND = END_KEYS.values()
"""Behind all keys, also of rows that begin with a given key."""


class SortKeys:
    """The sort keys of rows whose key values have these directions.

    >>> keys = SortKeys(((True, False),))
    >>> sorted([2, None, 3], key=lambda n: keys.of((n,)))
    [3, 2, None]
    """

    __slots__ = ("_is_ascending", "directions", "is_descending")

    def __init__(self, directions: Directions) -> None:
        self.directions = directions
        self._is_ascending = not any(descending for descending, _ in directions)
        self.is_descending = bool(directions) and directions[0][0]
        """True if the first key is descending."""

    def of(self, values: tuple[Any, ...]) -> Any:
        """Return the sort key of a row from its key values."""
        directions = self.directions
        if len(directions) == 1:
            return _part(values[0], *directions[0])
        if self._is_ascending:
            for value in values:
                if value.__class__ not in PLAIN:
                    break
            else:
                return values
        return tuple([_part(value, *each) for value, each in zip(values, directions, strict=False)])

    def of_many(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the sort keys of rows, each given by its key values."""
        directions = self.directions
        if len(directions) == 1:
            return _parts([values[0] for values in rows], *directions[0])
        if not directions:
            return [()] * len(rows)
        columns = zip(*rows, strict=True)
        parts = [_parts(list(c), *each) for c, each in zip(columns, directions, strict=False)]
        return list(zip(*parts, strict=True))

    def at(self, value: Any) -> Any:
        """Return a key before all rows whose first key is `value`, but behind all lesser ones."""
        part = _part(value, *self.directions[0])
        return part if len(self.directions) == 1 else (part,)

    def behind(self, value: Any) -> Any:
        """Return the last key of rows whose first key is `value`, or one behind it."""
        part = _part(value, *self.directions[0])
        return part if len(self.directions) == 1 else (part, BEHIND)


def _part(value: Any, descending: bool, nulls_first: bool | None) -> Any:
    """Return the sort key of one value; None is compared like any value without a place."""
    kind = value.__class__
    if kind is int or (kind is float and value == value):
        return -value if descending else value
    if value is None and nulls_first is not None:
        return NULL_FIRST if nulls_first else NULL_LAST
    if descending:
        key = reversed_key(rank(value))
        return NAN_FIRST if key is FIRST else key
    if kind is str:
        return value
    key = sort_key(rank(value))
    return NAN_LAST if key is LAST else key


def _parts(values: list[Any], descending: bool, nulls_first: bool | None) -> list[Any]:
    """Return the sort keys of values; plain values are not looked at one by one."""
    kinds = set(map(type, values))
    if kinds == _INTS:
        return list(map(neg, values)) if descending else values
    if kinds == _TEXTS and not descending:
        return values
    return [_part(value, descending, nulls_first) for value in values]


PLAIN = frozenset([int, str])
"""Classes of values that are their own sort keys, if ascending."""
_INTS, _TEXTS = frozenset([int]), frozenset([str])


def tie_of(head: Any, cell: Any) -> Any:
    """Return what orders peers, whatever their order of arrival: records are by their fields."""
    return _tie(head), _tie(cell)


def _tie(value: Any) -> Any:
    if isinstance(value, tuple):
        return ("tuple", tuple(map(_tie, value)))
    if compared_names(type(value)):
        return (type(value).__name__, value_key(value))
    return rank_of(value)


def hash_of(head: Any, cell: Any) -> Any:
    """Return what puts equal rows beside each other, if the order of peers is of no account."""
    return hash(head)
