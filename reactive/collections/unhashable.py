"""Find which part of a row cannot be hashed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any


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
    except TypeError:
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
