"""Find which part of a row cannot be hashed, and which row cannot be compared with another."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from reactive.engine.runtime.interrupts import reraise_asynchronous


def reason(row: Any) -> str | None:
    """Such as `its field 'tags' is a list`; None if the row can be hashed."""
    return None if _is_hashable(row) else _reason(row)


def _reason(row: Any) -> str:
    for name, value in _parts(row):
        if not _is_hashable(value):
            inner = _reason(value)
            nested = "" if inner.startswith("a ") else f": {inner}"
            return f"{name} is a {type(value).__name__}{nested}"
    hint = "; make it @dataclass(frozen=True)" if dataclasses.is_dataclass(row) else ""
    return f"a {type(row).__name__} is not hashable{hint}"


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except Exception:
        return False
    return True


def _parts(row: Any) -> Iterator[tuple[str, Any]]:
    if dataclasses.is_dataclass(row):
        for field in dataclasses.fields(row):
            yield f"its field {field.name!r}", getattr(row, field.name)
    elif isinstance(row, tuple):
        names = getattr(row, "_fields", None)
        for position, value in enumerate(row):
            yield (f"its field {names[position]!r}" if names else f"its element {position}"), value


def clash(
    rows: Iterable[Any], others: Iterable[Any], of: Callable[[Any], Any]
) -> tuple[Any, Any] | None:
    """Return a row, and another row of which `of` gives a value of the same hash whose `==` raises:
    one of `rows`, or of `others`. Return None if there are no two.

    Cost: O(rows and others).
    """
    by_hash: dict[int, list[tuple[Any, Any]]] = {}
    for row in rows:
        value = of(row)
        if not _is_hashable(value):
            continue
        same = by_hash.setdefault(hash(value), [])
        for other, its in same:
            if not _compare(value, its):
                return row, other
        same.append((row, value))
    for other in others:
        its = of(other)
        for row, value in by_hash.get(hash(its), ()):
            if not _compare(value, its):
                return row, other
    return None


def _compare(row: Any, other: Any) -> bool:
    try:
        return row is other or bool(row == other) or bool(other == row) or True
    except Exception as error:
        reraise_asynchronous(error)
        return False
