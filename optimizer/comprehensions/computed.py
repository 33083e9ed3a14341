"""What is computed of the value of a sub-query, as Python's own functions would have it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from optimizer.errors import DuplicateKeyError
from optimizer.expressions.knowledge import Pure
from optimizer.record import record

Sorted = Callable[[Iterable[Any], bool], tuple[Any, ...]]
"""Rows in order, from what was collected of them, and whether greatest first."""


@record
class Needed(Pure):
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


def numbered(values: Iterable[Any]) -> tuple[tuple[int, Any], ...]:
    """The values with their places."""
    return tuple(enumerate(values))


def part(values: tuple[Any, ...], start: Any, stop: Any, step: Any) -> tuple[Any, ...]:
    """A slice of a tuple."""
    return values[start:stop:step]


@record
class InOrder:
    """What was collected, as a tuple in order."""

    order: Sorted
    descending: bool

    def __call__(self, found: Iterable[Any]) -> tuple[Any, ...]:
        return self.order(found, self.descending)
