"""The order of an ordered relation: total, and the same whatever the history.

Rows stand by their key. Rows with equal keys stand by themselves where they can be compared (None
before numbers before strings before tuples, element by element; a dataclass only if it was made
with `order=True`), else in order of arrival. A NaN in a key comes after everything. Several keys,
their directions and a place for None make one key: `sorting.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence, Set
from operator import eq, itemgetter
from typing import Any

from reactive.engine.collections.zset import DECIMAL_NAN, Row, canonical, is_nan


class _Last:
    """Greater than everything but itself."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return other is not self


class _First:
    """Less than everything but itself."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return other is not self

    def __gt__(self, other: object) -> bool:
        return False


LAST, FIRST = _Last(), _First()
_NO_ORDER = getattr(object, "__lt__")  # noqa: B009
_EXACT = frozenset([int, str, bytes])


def sort_key(key: Any) -> Any:
    """The key with every NaN in it, or in a tuple of it, replaced by what comes last."""
    if isinstance(key, tuple) and key.__class__.__lt__ is tuple.__lt__:
        for part in key:
            if part.__class__ not in _EXACT:
                return tuple(map(sort_key, key))
        return key
    key = canonical(key)
    return LAST if is_nan(key) else key


class _Placed(tuple[Any, ...]):
    """The sort key of a tuple, with the tuple."""

    value: tuple[Any, ...]


def placed(value: Any) -> Any:
    """What compares in the place of a value: of a tuple with a NaN in it its sort key.

    >>> placed((2, "a")), placed((2, float("nan"))) > (2, 5.0)
    ((2, 'a'), True)
    """
    if not isinstance(value, tuple):
        return value
    key = sort_key(value)
    if key == value:
        return value
    found = _Placed(key)
    found.value = value
    return found


def value_at(place: Any) -> Any:
    """The value of which `placed` is given."""
    return place.value if place.__class__ is _Placed else place


def tie_key(value: Any) -> tuple[Any, ...]:
    """A tuple that compares with that of any other value; equal where no order is known."""
    kind: Any = type(value)
    if value is None:
        return (0,)
    if isinstance(value, int | float):
        return (1, value) if value == value else (2,)
    if canonical(value) is DECIMAL_NAN:
        return (2,)
    if isinstance(value, str):
        return (3, value)
    if isinstance(value, bytes):
        return (4, value)
    if isinstance(value, tuple):
        return (5, tuple(map(tie_key, value)))
    if hasattr(kind, "__dataclass_fields__") and kind.__lt__ is not _NO_ORDER:
        fields = (getattr(value, f.name) for f in dataclasses.fields(kind) if f.compare)
        return (6, kind.__qualname__, tuple(map(tie_key, fields)))
    if kind.__lt__ is _NO_ORDER or isinstance(value, Set | complex):
        return (9,)
    try:
        if value.__lt__(value) is NotImplemented:
            return (9,)
    except TypeError:
        pass  # its parts may not compare, which those who compare it shall hear of
    aware = getattr(value, "tzinfo", None) is not None  # dates and times of two kinds
    return (7, kind.__qualname__, aware, value)


def advise(error: BaseException) -> None:
    """Say what to do about a None among keys that do not compare."""
    if isinstance(error, TypeError) and "'NoneType'" in str(error):
        error.add_note('  nulls="first" or nulls="last" gives None a place')


def compares(kind: Any) -> bool:
    """Whether rows of a class stand by themselves where their keys are equal, or as they came."""
    if kind.__lt__ is _NO_ORDER:
        return kind is type(None)
    return not issubclass(kind, Set | complex)


def compare_plainly(rows: Sequence[Row]) -> bool:
    """Whether rows compare as their tie keys do: tuples, or values, of the same plain classes.

    >>> compare_plainly([("a", 1), ("b", 2)]), compare_plainly([("a", 1), ("b", None)])
    (True, False)
    """
    kinds: set[Any] = set(map(type, rows))
    if len(kinds) != 1:
        return False
    (kind,) = kinds
    if not issubclass(kind, tuple):
        return _is_plain_column(rows)
    width = len(rows[0])
    if kind.__lt__ is not tuple.__lt__ or kind.__eq__ is not tuple.__eq__:
        return False
    if set(map(len, rows)) != {width} or kind.__getitem__ is not tuple.__getitem__:
        return False
    return all(_is_plain_column(list(map(itemgetter(n), rows))) for n in range(width))


def pairs_in_order(
    pairs: Iterable[tuple[Any, Row]], descending: bool, tie: Callable[[Row], Any] | None = None
) -> list[tuple[Any, Row]]:
    """Keys and rows in the order of the keys, as `order_by` has them.

    tie: what rows with equal keys stand by, if it is not themselves.
    """
    every = list(pairs)
    rows = [row for _, row in every] if tie is None else [tie(row) for _, row in every]
    if tie is None or not every:
        every.sort(key=_ROW if compare_plainly(rows) else _tie_of_row)
    else:
        ties = rows if compare_plainly(rows) else list(map(tie_key, rows))
        every = [every[n] for n in sorted(range(len(every)), key=ties.__getitem__)]
    keys = [key for key, _ in every]
    every.sort(key=_KEY if compare_plainly(keys) else _order_of_key, reverse=descending)
    return every


_KEY, _ROW = itemgetter(0), itemgetter(1)


def _order_of_key(pair: tuple[Any, Any]) -> Any:
    return sort_key(pair[0])


def _tie_of_row(pair: tuple[Any, Any]) -> Any:
    return tie_key(pair[1])


def _is_plain_column(values: Sequence[Any]) -> bool:
    kinds = set(map(type, values))
    if kinds == {float}:
        return all(map(eq, values, values))  # no NaN
    return len(kinds) == 1 and kinds <= _EXACT


def precedes(row: Row, other: Row) -> bool:
    """Whether a row stands before another with an equal key, whenever they came.

    As `tie_key(row) < tie_key(other)`; it looks no further than to the first difference.
    """
    kind: Any = row.__class__
    if row is other or (kind is other.__class__ and kind.__lt__ is _NO_ORDER):
        return False
    return _compared(row, other) < 0


def _compared(value: Any, other: Any) -> int:
    """Below 0, 0 or above 0, as the first is less, equal or greater."""
    if value is other:
        return 0
    kind: Any = value.__class__
    if kind is other.__class__:
        if kind in _EXACT:
            return -1 if value < other else int(other < value)
        if kind.__lt__ is _NO_ORDER:
            return 0
        if isinstance(value, tuple):
            for part, its in zip(value, other, strict=False):
                if part is its:
                    continue
                if part.__class__ is its.__class__ and part.__class__ in _EXACT:
                    if part != its:  # as below, without a call
                        return -1 if part < its else 1
                elif found := _compared(part, its):
                    return found
            return len(value) - len(other)
        if hasattr(kind, "__dataclass_fields__"):
            for field in dataclasses.fields(kind):
                if field.compare:
                    found = _compared(getattr(value, field.name), getattr(other, field.name))
                    if found:
                        return found
            return 0
    left, right = tie_key(value), tie_key(other)
    return -1 if left < right else int(right < left)
