"""What is computed of the value of a sub-query, as Python's own functions would have it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from optimizer.errors import DuplicateKeyError
from optimizer.record import record

Sorted = Callable[[Iterable[tuple[Any, Any]], bool], tuple[Any, ...]]
"""Rows in the order of keys, from pairs of a key and a row, and whether greatest first."""


@record
class Needed:
    """What was found by `name`, which is None of no rows."""

    name: str

    def __call__(self, found: Any) -> Any:
        if found is None:
            raise ValueError(f"{self.name}() of no rows")
        return found


def value_or(found: Any, default: Any) -> Any:
    """What was found, or a default if it is None, as of no rows."""
    return default if found is None else found


@record
class Only:
    """The only row, which was found by `name`."""

    name: str

    def __call__(self, rows: Iterable[Any]) -> Any:
        for row in rows:
            return row
        raise ValueError(f"{self.name}() of no rows")


def only_or(rows: Iterable[Any], default: Any) -> Any:
    """The only row, or a default if there is none."""
    return next(iter(rows), default)


def found_by(values: Iterable[Any], key: Any) -> Any:
    """The value that a dictionary has for a key."""
    found = list(values)
    if not found:
        raise KeyError(key)
    return _one(found, key)


def found_or(values: Iterable[Any], key: Any, default: Any) -> Any:
    """The value that a dictionary has for a key, or a default if it has none."""
    found = list(values)
    return _one(found, key) if found else default


def _one(found: list[Any], key: Any) -> Any:
    first = found[0]
    if any(other is not first and other != first for other in found):
        raise DuplicateKeyError(
            f"{len(found)} rows have the key {key!r:.100}, with values that differ\n"
            "  a dictionary would keep the last; have one value for each key"
        )
    return first


@record
class InOrder:
    """Rows in the order of keys, all of them or a window."""

    order: Sorted
    descending: bool
    window: slice | None = None

    def __call__(self, pairs: Iterable[tuple[Any, Any]]) -> tuple[Any, ...]:
        found = self.order(pairs, self.descending)
        return found if self.window is None else found[self.window]


@record
class Unpacks:
    """Whether a row has as many items as are asked for; another raises as it does in Python."""

    count: int

    def __call__(self, row: Any) -> bool:
        if isinstance(row, tuple | str | bytes) and len(row) == self.count:
            return True
        if not isinstance(row, tuple | str | bytes):
            raise TypeError(f"cannot unpack {type(row).__name__} object {row!r:.60}")
        raise ValueError(f"cannot unpack {row!r:.60}: {self.count} values are needed")
