"""Find which part of a row cannot be hashed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any


def reason(row: Any) -> str:
    """Such as `its field 'tags' is a list`."""
    for name, value in _parts(row):
        try:
            hash(value)
        except TypeError:
            inner = reason(value)
            nested = "" if inner.startswith("a ") else f": {inner}"
            return f"{name} is a {type(value).__name__}{nested}"
    if dataclasses.is_dataclass(row):
        return f"a {type(row).__name__} is not hashable; make it @dataclass(frozen=True)"
    return f"a {type(row).__name__} is not hashable"


def _parts(row: Any) -> Iterator[tuple[str, Any]]:
    if dataclasses.is_dataclass(row):
        for field in dataclasses.fields(row):
            yield f"its field {field.name!r}", getattr(row, field.name)
    elif isinstance(row, tuple):
        names = getattr(row, "_fields", None)
        for position, value in enumerate(row):
            yield (f"its field {names[position]!r}" if names else f"its element {position}"), value
