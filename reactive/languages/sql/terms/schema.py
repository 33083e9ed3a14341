"""The columns of tables and queries: their names in SQL, types, and how they are read of a row.

db.table(Order, name="orders")      id int, total decimal | NULL, from the annotations
create table t (a int, ...)         a named tuple with the fields a, ...
db.table(int, name="numbers")       one column `value`, the row itself
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from optimizer.expr import Attribute, Call, Expr, Item, constant
from optimizer.expressions.knowledge import Shape
from optimizer.kinds.kind import Places, Scalar, Struct, kind_of
from optimizer.kinds.names import field_names as names_of_fields
from optimizer.record import record
from reactive.api.named_rows import row_class
from reactive.languages.sql.terms.types import ANY, SqlType, full_hint_of, type_of_hint
from reactive.languages.sql.terms.values import Value


@record
class Column:
    """A column. `read` is the field or the position in a row; None if the row is the value."""

    name: str
    type: SqlType
    nullable: bool
    read: str | int | None


@record
class Schema:
    """The columns of rows of one binding."""

    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def hints(self) -> dict[str, Any]:
        """The annotations of the columns, by the fields of rows that they are read from."""
        return {str(column.read): full_hint_of(column.type) for column in self.columns}

    def values(self, row: Expr, missing: tuple[Expr, ...] = ()) -> tuple[Value, ...]:
        """The columns of a row, which is not there where one of `missing` is None."""
        made = []
        for column in self.columns:
            expr = _read(row, column.read)
            nulls = (*missing, expr) if column.nullable else missing
            made.append(Value(expr, column.type, tuple(dict.fromkeys(nulls))))
        return tuple(made)


def _read(row: Expr, place: str | int | None) -> Expr:
    if place is None:
        return row
    return Attribute(row, place) if isinstance(place, str) else Item(row, constant(place))


def schema_of_type(row_type: Any) -> Schema:
    """The columns of a table of such rows.

    >>> schema_of_type(tuple[int, str | None]).names
    ('column0', 'column1')
    """
    kind = kind_of(row_type)
    if isinstance(kind, Places) and kind.items:
        places = enumerate(kind.items)
        return Schema(tuple(Column(f"column{n}", *type_of_hint(each), n) for n, each in places))
    if isinstance(kind, Struct) and kind.hints:
        fields = kind.hints.items()
        return Schema(tuple(Column(name, *type_of_hint(each), name) for name, each in fields))
    made = type_of_hint(kind)[0] if isinstance(kind, Scalar) else ANY
    return Schema((Column("value", made, made is ANY, None),))


def schema_of_shape(shape: Shape) -> Schema | None:
    """The columns of a binding of which that is known; None if nothing is."""
    if isinstance(shape, tuple):
        count = range(len(shape))
        return Schema(tuple(Column(f"column{place}", ANY, True, place) for place in count))
    return None if shape is None else schema_of_type(shape)


def schema_of_values(names: Sequence[str], values: Sequence[Value]) -> tuple[Schema, Any]:
    """The columns of a SELECT, and the class of its rows."""
    fields = field_names(names)
    columns = tuple(
        Column(name, value.type, value.nullable, field)
        for name, value, field in zip(names, values, fields, strict=True)
    )
    return Schema(columns), row_class(fields)


def record_of(kind: Any, items: Sequence[Expr]) -> Expr:
    """The row of a class with these fields."""
    return Call(constant(kind), tuple(items))


def field_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of fields for columns of any names, each once.

    >>> field_names(["id", "count(*)", "id", "class"])
    ('id', 'count_star', 'id_1', 'class_')
    """
    plain = [BETWEEN.sub("_", name.replace("*", "star")).strip("_") for name in names]
    return tuple(names_of_fields(plain, of_tuple=True, second=1))


BETWEEN = re.compile(r"[\W_]+")
"""Characters between the words of an expression from which a column's name is made."""
