"""Fields of values in SQL: of structs and objects, and what names with dots say of them.

Cost: O(fields).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlglot import exp

from optimizer.expr import Attribute, Item, Parameter, constant, tuple_of
from reactive.languages.sql.terms.types import SqlType, fields_of
from reactive.languages.sql.terms.values import TypedValue, as_optional


def field_of(value: TypedValue, name: str, *, folded: bool) -> TypedValue | None:
    """Return a field of a struct or object; None if it has none of the name.

    If `folded`, upper and lower case are the same.
    """
    fields = fields_of(value.type)
    found = name if name in fields else _find_folded(name, fields) if folded else None
    if found is None:
        return None
    if value.type.record is not None:
        read: Any = Attribute(value.expr, found)
    else:
        read = Item(value.expr, constant(value.type.names.index(found)))
    return TypedValue(read, fields[found], (*value.nulls, read))


def row_of_columns(columns: Sequence[tuple[str, TypedValue]], *, of_postgres: bool) -> TypedValue:
    """Return columns as one struct.

    In Postgres it is NULL for a row that a join has put in the place of a missing one.
    """
    names, values = zip(*columns, strict=True)
    kind = SqlType("struct", items=tuple(value.type for value in values), names=names)
    missing = {value.nulls[:1] for value in values}
    is_outer = len(missing) == 1 and isinstance(next(iter(*missing), None), Parameter)
    nulls = next(iter(missing)) if is_outer and of_postgres else ()
    return TypedValue(tuple_of(*map(as_optional, values)), kind, nulls)


def _find_folded(name: str, fields: dict[str, SqlType]) -> str | None:
    """Return the field that has a name in upper or lower case; None if there is none."""
    return next((each for each in fields if each.casefold() == name.casefold()), None)


def columns_with_fields(column: Any) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield what names with dots say if the last of them are fields: a column, and their names.

    >>> node = exp.column("city", "home", "a")
    >>> [(column.sql(), *names) for column, names in columns_with_fields(node)]
    [('a.home', 'city'), ('a', 'home', 'city')]
    """
    first, *more = column.parts
    if len(more) > 1:
        yield exp.Column(this=more[0].copy(), table=first.copy()), _names_of_parts(more[1:])
    if more:
        yield exp.Column(this=first.copy()), _names_of_parts(more)


def _names_of_parts(parts: list[Any]) -> tuple[str, ...]:
    return tuple(part.name for part in parts)
