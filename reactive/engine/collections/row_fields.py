"""Copies of rows with other values in fields, built by their classes."""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

from optimizer.kinds.fields import MODEL
from reactive.engine.collections.zset import Row


def with_field(row: Row, name: Any, value: Any) -> Row:
    """Return a copy of the row with another value in a field, built by its class.

    >>> with_field((1, "a"), 1, "b")
    (1, 'b')
    """
    if isinstance(row, tuple) and not isinstance(name, str):
        return _with_item(row, name, value)
    return copy_with_fields(row, {name: value})


def copy_with_fields(row: Row, fields: Mapping[str, Any]) -> Row:
    """Return a copy of the row with other values in fields, built by its class."""
    kind: Any = type(row)
    if isinstance(row, tuple):
        return row._replace(**fields)  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(row):
        return dataclasses.replace(row, **fields)  # type: ignore[type-var]
    if hasattr(kind, "__struct_fields__"):
        return sys.modules["msgspec"].structs.replace(row, **fields)
    if hasattr(kind, "__attrs_attrs__"):
        named = {each.name: each.alias for each in kind.__attrs_attrs__}
        return sys.modules["attr"].evolve(row, **{named[name]: fields[name] for name in fields})
    if hasattr(kind, MODEL):
        return row.model_copy(update=fields)
    replaced: Any = getattr(copy, "replace")  # from Python 3.13 on  # noqa: B009
    return replaced(row, **fields)


def _with_item(row: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    """Return a copy of a tuple with `value` at `place`; a named tuple stays one."""
    names = getattr(row, "_fields", None)
    if names is not None:
        return row._replace(**{names[place]: value})  # type: ignore[attr-defined, no-any-return]
    items = list(row)
    items[place] = value
    return tuple(items)
