"""Fields of structs and of objects: `(a.home).city`, in DuckDB also `home.city` and `a.home.city`.

The parser reads dots between names as a column with its table, schema and catalog. Where there is
no such column, DuckDB takes the first name or two for a column and the rest for fields of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from optimizer.expr import Attribute, Item, constant
from reactive.languages.sql.terms.types import SqlType, fields_of
from reactive.languages.sql.terms.values import Value


def field_of(value: Value, name: str, *, folded: bool) -> Value | None:
    """Return a field of a struct or object, its name in any case if `folded`; None if it has none
    of the name."""
    fields = fields_of(value.type)
    found = name if name in fields else _folded(name, fields) if folded else None
    if found is None:
        return None
    if value.type.record is not None:
        read: Any = Attribute(value.expr, found)
    else:
        read = Item(value.expr, constant(value.type.names.index(found)))
    return Value(read, fields[found], (*value.nulls, read))


def _folded(name: str, fields: dict[str, SqlType]) -> str | None:
    return next((each for each in fields if each.casefold() == name.casefold()), None)


def columns_with_fields(column: Any) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield what names with dots say if the last of them are fields: a column, and their names.

    >>> node = exp.column("city", "home", "a")
    >>> [(column.sql(), *names) for column, names in columns_with_fields(node)]
    [('a.home', 'city'), ('a', 'home', 'city')]
    """
    first, *more = column.parts
    if len(more) > 1:
        yield exp.Column(this=more[0].copy(), table=first.copy()), _names(more[1:])
    if more:
        yield exp.Column(this=first.copy()), _names(more)


def _names(parts: list[Any]) -> tuple[str, ...]:
    return tuple(part.name for part in parts)
