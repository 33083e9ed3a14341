"""The class of the rows of a frame, made of its schema: a frozen dataclass with slots.

    id: int64 not null, town: string, lines: list<struct<what: string>>
    Row(id: int, town: str | None, lines: tuple[Lines, ...])

A column is `| None` if it has nulls, or has no rows yet and its schema allows them. Lists are
tuples; structs are records of their own. Names that are no identifiers are mended as at all
borders (`optimizer/kinds/names.py`): "unit price" is the field `unit_price`.

The same schema makes the same class, and rows pickle with it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import field as field_with
from dataclasses import make_dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from keyword import iskeyword
from types import NoneType
from typing import Annotated, Any
from uuid import UUID

from optimizer.expressions.declared import zone_of
from optimizer.kinds.class_facts import class_maker
from optimizer.kinds.kind import ANYTHING, Scalar, hints_of, kind_of, may_be_none, without_none
from optimizer.kinds.names import field_names
from reactive.borders.frames.reading import with_types
from reactive.borders.frames.rows import KINDS
from reactive.engine.collections.instants import name_of_zone, zone_named
from reactive.errors import TableError

Spec = tuple[Any, ...]
"""What a type is made of: ("record", name, ((field, spec), ...)), ("tuple", spec), ("or None",
spec), ("plain", class), ("zoned", name of a time zone)."""


def row_class(table: Any, name: str, keys: Collection[str] = ()) -> Any:
    """The class of the rows of a table of plain columns.

    Parameters
    ----------
    name: what the class is called after.
    keys: columns that have no None, also of no rows.

    >>> import pyarrow as pa
    >>> kind = row_class(pa.table({"id": [1, 2], "unit price": [1.5, None]}), "sales")
    >>> kind(1, None), kind.__annotations__["unit_price"]
    (Sales(id=1, unit_price=None), float | None)
    """
    names = field_names(table.column_names)
    fields = []
    for column, field, called in zip(table.columns, table.schema, names, strict=True):
        spec = _spec(field.type, called, [column])
        may_lack = column.null_count or (not len(column) and field.nullable)
        fields.append((called, ("or None", spec) if may_lack and called not in keys else spec))
    return type_of(("record", _class_name(name), tuple(fields)))


def _spec(of: Any, name: str, columns: list[Any]) -> Spec:
    """What the values of a type are."""
    import pyarrow as pa

    if pa.types.is_struct(of):
        names = field_names(of.field(place).name for place in range(of.num_fields))
        fields = [
            (called, ("or None", _spec(of.field(place).type, called, [])))
            for place, called in enumerate(names)
        ]
        return ("record", _class_name(name), tuple(fields))
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return ("tuple", ("or None", _spec(of.value_type, name, [])))
    if pa.types.is_timestamp(of) and of.tz is not None:
        return ("zoned", of.tz)
    return ("plain", _plain(of))


def _plain(of: Any) -> Any:
    """The class of the values of a type."""
    import pyarrow as pa
    from pyarrow import types

    if of == pa.uuid():
        return UUID

    return next((kind for test, kind in KINDS.items() if getattr(types, test)(of)), object)


def type_of(spec: Spec) -> Any:
    """The type that is meant, the same for equal ones."""
    match spec:
        case ("plain", kind):
            return kind
        case ("or None", ("plain", kind)) if kind is object or kind is NoneType:
            return kind
        case ("or None", inner):
            return type_of(inner) | None
        case ("zoned", name):
            zone = zone_of_arrow(name)
            return datetime if zone is None else Annotated[datetime, zone]
        case ("tuple", inner):
            item: Any = type_of(inner)
            return tuple[item, ...]
        case _:
            return _record(spec)


@class_maker
def _record(spec: Spec) -> Any:
    _, name, fields = spec
    typed = [(field, type_of(inner)) for field, inner in fields]
    names = [field for field, _ in fields]

    def reduced(row: Any) -> Any:
        return _unpickled, (spec, [getattr(row, name) for name in names])

    # a field of its own each, as a class has attributes that would be taken for defaults: `mro`
    apart = [(field, of, field_with()) for field, of in typed]
    made: Any = make_dataclass(name, apart, frozen=True, slots=True)
    made.__module__, made.__reduce__ = __name__, reduced
    made.__doc__ = f"A row with the columns {', '.join(names)}."
    return made


def zone_of_arrow(name: str) -> tzinfo | None:
    """Return the time zone that Arrow calls so; None of one that this machine does not know."""
    offset = re.fullmatch(r"([+-])(\d\d):(\d\d)", name)
    if offset is not None:
        length = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-length if offset[1] == "-" else length)
    try:
        return zone_named(name)
    except ValueError:
        return None


def _unpickled(spec: Spec, values: Any) -> Any:
    return type_of(spec)(*values)


def _class_name(name: str) -> str:
    """`unit prices` -> `UnitPrices`."""
    words = re.findall(r"[^\W_]+", name)
    found = "".join(word[:1].upper() + word[1:] for word in words)
    return found if found.isidentifier() and not iskeyword(found) else "Row"


def with_names(table: Any) -> Any:
    """A table whose columns, and the fields inside of them, are called as those of its class."""
    import pyarrow as pa

    types = [_type(pa, field.type) for field in table.schema]
    return with_types(table, field_names(table.column_names), types)


def fitted(table: Any, kind: Any) -> Any:
    """A table of plain columns as rows of a class are made of it: of one made here, with its names.

    Raises
    ------
    TableError: of a class that was made here, a column has nulls where its field has no None, or
        is of another type, and one of its values is none of the field's.
    """
    if getattr(kind, "__module__", None) != __name__:
        return table
    found = with_names(table)
    for name, of in hints_of(kind).items():
        has_none = kind_of(of) == ANYTHING or may_be_none(kind_of(of))
        if not has_none and name in found.column_names and found[name].null_count:
            called = getattr(of, "__name__", of)
            raise TableError(
                f"column {name!r} has nulls, and {kind.__name__}.{name} is {called}: the "
                "frame that its table was made of had none\n"
                "  fill them, or make the table anew, with replace=True"
            )
        if name in found.column_names:
            found = _with_kind(found, name, of, kind)
    return found


def _with_kind(table: Any, name: str, of: Any, row_type: Any) -> Any:
    """A table whose column is of the class that its field is of: whole floats are integers."""
    import pyarrow as pa

    kind = without_none(kind_of(of))
    column, own = table[name], _spec(table[name].type, name, [])
    declared = {kind.python} if isinstance(kind, Scalar) else {object}
    if own[0] == "zoned" or zone_of(of) is not None:
        return _with_zone(table, name, of, row_type)
    is_plain = declared <= {*KINDS.values(), UUID}
    if not is_plain or own[-1] in declared or column.null_count == len(column):
        return table
    meant = {int: pa.int64(), float: pa.float64()}.get(next(iter(declared)))
    try:
        if meant is None or own[-1] not in (int, float):
            raise pa.ArrowInvalid(f"there is {column.drop_null()[0].as_py()!r:.60}")
        return table.set_column(table.column_names.index(name), name, column.cast(meant))
    except pa.ArrowInvalid as error:
        raise TableError(
            f"column {name!r} is of {column.type}, and {row_type.__name__}.{name} is "
            f"{getattr(of, '__name__', of)}: {error}\n"
            "  cast it, or make the table anew, with replace=True"
        ) from None


def _with_zone(table: Any, name: str, of: Any, row_type: Any) -> Any:
    """Return a table whose column of instants has the time zone that its field is declared with."""
    import pyarrow as pa

    column, zone = table[name], zone_of(of)
    own = column.type.tz if pa.types.is_timestamp(column.type) else None
    if column.null_count == len(column):
        return table
    if zone is None or own is None:
        raise TableError(
            f"column {name!r} is of {column.type}, and {row_type.__name__}.{name} is of "
            f"{'datetimes without a time zone' if zone is None else f'instants of {zone}'}\n"
            "  give the column a zone, or take it away, as the frame of the table had it; or make "
            "the table anew, with replace=True"
        )
    zoned = column.cast(pa.timestamp("us", name_of_zone(zone)))
    return table.set_column(table.column_names.index(name), name, zoned)


def _type(pa: Any, of: Any) -> Any:
    """A type whose fields have the names of those of a class."""
    if pa.types.is_struct(of):
        fields = [of.field(place) for place in range(of.num_fields)]
        names = field_names(field.name for field in fields)
        return pa.struct([(name, _type(pa, f.type)) for name, f in zip(names, fields, strict=True)])
    return pa.list_(_type(pa, of.value_type)) if pa.types.is_list(of) else of
