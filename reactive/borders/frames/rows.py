"""Rows made from columns, and the row class made from the schema of a frame.

Rows are made column by column, without a dictionary or a Python call for each:

    id: int64, town: string  -->  [7, 8], ["Bonn", None]  -->  [Order(7, "Bonn"), Order(8, None)]

A frozen dataclass with slots and an unchanged generated `__init__` is allocated empty, and its
slots are filled column by column. A class without slots whose constructor takes its fields in order
is called with each row's values. All other rows are made by `arrow_rows`.

The row class of a frame is a frozen dataclass with slots, made from its schema:

    id: int64 not null, town: string, lines: list<struct<what: string>>
    Row(id: int, town: str | None, lines: tuple[Lines, ...])

A column is `| None` if it has nulls, or has no rows yet and its schema allows nulls. Lists become
tuples; structs become records. Names that are not identifiers are adapted as everywhere
(`optimizer/kinds/texts.py`): "unit price" is the field `unit_price`. Equal schemas give the same
class, and its rows can be pickled.

Cost: some 0.2 us for a row of five fields, a third of the time of its constructor.
"""

from __future__ import annotations

import dataclasses
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field as field_with
from dataclasses import make_dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import partial
from inspect import Parameter, signature
from itertools import repeat
from keyword import iskeyword
from types import MemberDescriptorType, NoneType
from typing import Annotated, Any
from uuid import UUID

from optimizer.expressions.simplification import zone_of
from optimizer.kinds.fields import by_class, class_maker, members
from optimizer.kinds.kind import (
    ANYTHING,
    Kind,
    Places,
    Scalar,
    Struct,
    declares_none,
    hints_of,
    kind_of,
    without_none,
)
from optimizer.kinds.texts import field_names
from reactive.borders.frames import reading
from reactive.borders.frames.reading import with_types
from reactive.engine.collections.instants import name_of_zone, zone_named
from reactive.engine.collections.zset import canonical
from reactive.engine.runtime import needs
from reactive.engine.runtime.collector import pause_collector
from reactive.engine.storage import plain_rows
from reactive.errors import TableError

Made = Callable[[Sequence[list[Any]], int], list[Any]]
"""Make rows from the values of their fields, and the number of rows."""


def rows_of(data: Any, row_type: Any, what: str = "add_arrow") -> list[Any]:
    """Return the rows of a frame.

    Raises
    ------
    PlanError: `data` is no frame; or a field without a default has no column, or several.

    >>> rows_of({"0": [1, 2], "1": ["a", None]}, tuple[int, str | None])
    [(1, 'a'), (2, None)]
    """
    needs.check_library(what)
    return rows_of_table(reading.read_frame(data, what, row_type), row_type)


def rows_of_table(table: Any, row_type: Any) -> list[Any]:
    """Return the rows of a `pyarrow.Table` of plain columns."""
    from reactive.borders.frames import arrow_rows

    of = without_none(kind_of(row_type))
    table = rename_to_fields(table, of)
    how = _how_of(of)
    given = _field_columns(table, of)
    with pause_collector():
        if how is None or given is None:
            return arrow_rows.convert_rows(table, row_type)
        return how(
            [_field_values(column, annotation) for column, annotation in given], table.num_rows
        )


def known_plain(table: Any, row_type: Any) -> plain_rows.PlainTest | None:
    """Return the plain-row test that every row of a table of plain columns passes.

    Column types and values must prove it; return None if they do not.
    """
    of = without_none(kind_of(row_type))
    if not isinstance(of, Struct) or _how_of(of) is None:
        return None
    given, python = _field_columns(rename_to_fields(table, of), of), of.python
    if given is None or members(python) != list(plain_rows.plain_fields(python) or ()):
        return None
    kinds = [_kinds(column, kind) for column, kind in given]
    return plain_rows.plain_test_of(python, tuple(kinds)) if all(kinds) else None


def _kinds(column: Any, kind: Kind) -> frozenset[type]:
    """Return the classes of the values of a column; the empty set if a value may not be plain."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from reactive.borders.frames import arrow_rows

    of, types = column.type, pa.types
    if types.is_floating(of) and pc.any(pc.is_nan(column)).as_py():
        return frozenset()
    if not arrow_rows.is_as_it_is(kind) or (types.is_timestamp(of) and of.tz is not None):
        return frozenset()
    python = next((each for is_such, each in KINDS.items() if getattr(types, is_such)(of)), None)
    if python is None:
        return frozenset()
    return frozenset({python, NoneType} if column.null_count else {python})


KINDS: dict[str, type] = {
    "is_integer": int,
    "is_floating": float,
    "is_string": str,
    "is_large_string": str,
    "is_boolean": bool,
    "is_binary": bytes,
    "is_date32": date,
    "is_timestamp": datetime,
    "is_duration": timedelta,
    "is_decimal": Decimal,
    "is_time": time,
    "is_null": NoneType,
}
"""The class of the values of an Arrow type, by the name of its test in `pyarrow.types`."""


def _field_columns(table: Any, of: Kind) -> list[tuple[Any, Kind]] | None:
    """Return the column and kind of each field; None if a field has no column."""
    if isinstance(of, Places):
        same = len(of.items) == table.num_columns
        return list(zip(table.columns, of.items, strict=True)) if same else None
    if not isinstance(of, Struct) or any(name not in table.column_names for name in of.fields):
        return None
    return [(table.column(name), kind) for name, kind in of.fields.items()]


def rename_to_fields(table: Any, of: Kind) -> Any:
    """Move the columns that match fields of a class to the front, under the names of the fields.

    For a kind that is no class with fields, the table is unchanged.

    Raises
    ------
    PlanError: several columns match one field.
    """
    if not isinstance(of, Struct):
        return table
    names = table.column_names
    found = reading.places_of(members(of.python), names)
    if all(names[place] == field for field, place in found.items()) and len({*names}) == len(names):
        return table
    others = [place for place in range(len(names)) if place not in found.values()]
    free = [place for place in others if names[place] not in found]
    chosen = table.select([*found.values(), *free])
    return chosen.rename_columns([*found, *(names[place] for place in free)])


def _field_values(column: Any, kind: Kind) -> list[Any]:
    """Return the values of a column as its field holds them."""
    import pyarrow as pa

    from reactive.borders.frames import arrow_rows

    values: list[Any] = column.to_pylist()
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return list(map(canonical, values))
    if pa.types.is_nested(column.type) or not arrow_rows.is_as_it_is(kind):
        return list(map(arrow_rows.value_maker(kind), values))
    return values


def _how_of(of: Kind) -> Made | None:
    """Return the function that makes rows of a kind from columns.

    Return None if rows must be made one at a time.
    """
    match of:
        case Places():
            return _tuples
        case Struct(python):
            return _how(python)
        case _:
            return None


@by_class
def _how(of: Any) -> Made | None:
    """Return the function that makes rows of a class from columns.

    Return None if rows must be made one at a time.
    """
    if issubclass(of, tuple):
        return partial(_named_tuples, of) if _is_plain_named_tuple(of) else None
    setters = _setters(of)
    if setters is not None:
        return partial(_fill_slots, of, setters)
    return partial(_call_constructor, of) if _takes_fields_in_order(of) else None


def _tuples(columns: Sequence[list[Any]], count: int) -> list[Any]:
    return list(zip(*columns, strict=True)) if columns else [()] * count


def _named_tuples(kind: Any, columns: Sequence[list[Any]], count: int) -> list[Any]:
    """Make `count` rows of a named tuple class, without calling its constructor."""
    parts = zip(*columns, strict=True) if columns else repeat((), count)
    return list(map(tuple.__new__, repeat(kind), parts))  # new tuples, as `zip` reuses its own


def _call_constructor(kind: Any, columns: Sequence[list[Any]], count: int) -> list[Any]:
    return list(map(kind, *columns)) if columns else [kind() for _ in range(count)]


def _fill_slots(
    kind: Any,
    setters: Iterable[Callable[[Any, Any], None]],
    columns: Sequence[list[Any]],
    count: int,
) -> list[Any]:
    """Make `count` rows without calling the class, and set their fields from the columns."""
    rows = list(map(object.__new__, repeat(kind, count)))
    for fill, values in zip(setters, columns, strict=True):
        deque(map(fill, rows, values), 0)
    return rows


def _is_plain_named_tuple(kind: Any) -> bool:
    return kind.__mro__[1] is tuple and "_make" in vars(kind) and "__reduce__" not in vars(kind)


def _setters(kind: Any) -> list[Callable[[Any, Any], None]] | None:
    """Return the setter of each field, if the constructor only assigns fields; else None."""
    if not dataclasses.is_dataclass(kind) or kind.__new__ is not object.__new__:
        return None
    fields = dataclasses.fields(kind)
    if hasattr(kind, "__post_init__") or not _has_generated_init(kind, len(fields)):
        return None
    slots = [_slot(kind, field.name) for field in fields if field.init]
    is_whole = len(slots) == len(fields) and all(slot is not None for slot in slots)
    return [slot.__set__ for slot in slots if slot is not None] if is_whole else None


def _slot(kind: Any, name: str) -> Any:
    """Return the slot descriptor of an attribute; None if the attribute is no slot."""
    found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    return found if isinstance(found, MemberDescriptorType) else None


def _has_generated_init(kind: Any, count: int) -> bool:
    """Return True if the `__init__` of a frozen dataclass is generated, for its own fields."""
    made: Any = getattr(kind, "__dataclass_params__", None)
    code = getattr(vars(kind).get("__init__"), "__code__", None)
    if code is None or made is None or not (made.init and made.frozen):
        return False
    taken = code.co_argcount + code.co_kwonlyargcount - 1
    return code.co_filename == "<string>" and bool(taken == count)


def _takes_fields_in_order(kind: Any) -> bool:
    """Return True if a constructor takes exactly the fields, by position and in order."""
    try:
        taken = list(signature(kind).parameters.values())
    except (TypeError, ValueError):
        return False
    by_place = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    names = [parameter.name for parameter in taken if parameter.kind in by_place]
    return names == members(kind) and len(names) == len(taken)


Spec = tuple[Any, ...]
"""The description of a type.

("record", name, ((field, spec), ...)), ("tuple", spec), ("or None", spec), ("plain", class), or
("zoned", name of a time zone).
"""


def frame_row_class(table: Any, name: str, keys: Collection[str] = ()) -> Any:
    """Return the row class of a table of plain columns.

    Parameters
    ----------
    name: the basis of the name of the class.
    keys: columns that never hold None, even if they have no rows.

    >>> import pyarrow as pa
    >>> kind = frame_row_class(pa.table({"id": [1, 2], "unit price": [1.5, None]}), "sales")
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
    """Return the description of an Arrow type; `name` is the basis of the names of records."""
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
    return ("plain", _plain_class(of))


def _plain_class(of: Any) -> Any:
    """Return the class of the values of an Arrow type; `object` if it is not a plain one."""
    import pyarrow as pa
    from pyarrow import types

    if of == pa.uuid():
        return UUID

    return next((kind for test, kind in KINDS.items() if getattr(types, test)(of)), object)


def type_of(spec: Spec) -> Any:
    """Return the type of a description; equal descriptions give the same type."""
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
    """Return the row class of a description; its rows are pickled with the description."""
    _, name, fields = spec
    typed = [(field, type_of(inner)) for field, inner in fields]
    names = [field for field, _ in fields]

    def reduce_row(row: Any) -> Any:
        return _unpickled, (spec, [getattr(row, name) for name in names])

    # a field object each: class attributes such as `mro` would be taken for defaults
    apart = [(field, of, field_with()) for field, of in typed]
    made: Any = make_dataclass(name, apart, frozen=True, slots=True)
    made.__module__, made.__reduce__ = __name__, reduce_row
    made.__doc__ = f"A row with the columns {', '.join(names)}."
    return made


def zone_of_arrow(name: str) -> tzinfo | None:
    """Return the time zone of an Arrow name; None if this machine does not know it."""
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
    """Return a name in camel case: `unit prices` -> `UnitPrices`."""
    words = re.findall(r"[^\W_]+", name)
    found = "".join(word[:1].upper() + word[1:] for word in words)
    return found if found.isidentifier() and not iskeyword(found) else "Row"


def rename_columns(table: Any) -> Any:
    """Rename columns, and the fields inside them, to the field names of their row class."""
    import pyarrow as pa

    types = [_renamed_type(pa, field.type) for field in table.schema]
    return with_types(table, field_names(table.column_names), types)


def adapt_frame(table: Any, kind: Any) -> Any:
    """Adapt a table of plain columns to a row class that this module made; unchanged for others.

    Raises
    ------
    TableError: a column has nulls where its field has no None, or its values cannot be converted to
        the type of the field.
    """
    if getattr(kind, "__module__", None) != __name__:
        return table
    found = rename_columns(table)
    for name, of in hints_of(kind).items():
        has_none = kind_of(of) == ANYTHING or declares_none(kind_of(of))
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
    """Convert the column `name` of a table to the class of its field, which is declared as `of`.

    Whole floats become integers, and integers floats. The table is unchanged if the classes agree,
    the column is all null, or the field is declared with other than plain classes.

    Raises `TableError` if the values are of another class, or not whole.
    """
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
    """Return a table whose column of instants has the time zone that its field is declared with.

    Raises `TableError` if only one of the two has a zone.
    """
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


def _renamed_type(pa: Any, of: Any) -> Any:
    """Return an Arrow type whose fields have the field names of a row class."""
    if pa.types.is_struct(of):
        fields = [of.field(place) for place in range(of.num_fields)]
        names = field_names(field.name for field in fields)
        return pa.struct(
            [(name, _renamed_type(pa, f.type)) for name, f in zip(names, fields, strict=True)]
        )
    return pa.list_(_renamed_type(pa, of.value_type)) if pa.types.is_list(of) else of
