"""Values as Arrow arrays, and rows with weights as tables: records are structs, collections lists.

    Order(id: int, lines: Bag[Line])        struct<id: int64, lines: list<struct<what: string>>>
    tuple[int, str]                         struct<0: int64, 1: string>
    Level("orders", ...)                    list<struct<..., lines: list<...>>>, as nest makes them
    Colour.RED                              dictionary<string>: its name

Annotations decide the type, even of empty columns; without annotations, the values do. Every column
may hold nulls. A struct of values of several classes has the fields of all.

`weighted_table` adds the column `weight`, or `weight_` if the rows have a column of that name.

Sound:  `arrow_array(values).to_pylist()` equals the values as `plain` has them, except that tuples
        become structs. What Arrow would round, cut or reinterpret is refused: 1.5 among integers, a
        time zone among times without one.
Cost:   O(values), some 0.1 to 1 us for each.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from itertools import accumulate, islice
from operator import attrgetter
from types import NoneType
from typing import Any
from uuid import UUID

import pyarrow as pa

from optimizer.errors import PlanError
from optimizer.expressions.text import Level, RowsOf, row_inside
from optimizer.kinds.fields import is_record
from optimizer.kinds.kind import (
    ANYTHING,
    Choice,
    Items,
    Kind,
    Members,
    Places,
    Scalar,
    Struct,
    inside_of,
    kind_of,
    without_none,
)
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.inner_changes import is_nested_class
from reactive.engine.collections.instants import name_of_zone
from reactive.engine.collections.long_tuple import LongTuple
from reactive.engine.collections.zset import Pair

BLOCK = 4096
"""The number of values of which all fields are read before those of others."""
PLACES = 18
"""The digits of a Decimal after the point; 20 may precede it."""
_COLLECTIONS = (Bag, LongTuple, frozenset, tuple)
_REFUSALS = (pa.ArrowException, OverflowError, UnicodeError, TypeError, ValueError)
_TYPES: dict[Any, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    date: pa.date32(),
    datetime: pa.timestamp("us"),
    time: pa.time64("us"),
    timedelta: pa.duration("us"),
    Decimal: pa.decimal128(38, PLACES),
    UUID: pa.uuid(),
}
_IN_BLOCKS = frozenset({bool, int, float, str, bytes, date})
"""The classes whose columns are made block by block."""
_CHOSEN = frozenset({bool, int, str, bytes})
"""The classes of the values of a `Literal` that have a column type."""


class UnfitColumnValue(Exception):
    """A value that does not fit its column: its position, its field, and the reason."""

    def __init__(self, place: int, path: tuple[str, ...], reason: str) -> None:
        super().__init__(reason)
        self.place, self.path, self.reason = place, path, reason


Columns = dict[str, pa.Array]


def arrow_array(values: Sequence[Any], annotation: Any = Any) -> pa.Array:
    """Convert values of an annotation to an array.

    Raises
    ------
    UnfitColumnValue: a value does not fit the annotation, or Arrow cannot hold it.

    >>> arrow_array([Bag("a"), None], Bag[str]).to_pylist()
    [['a'], None]
    >>> arrow_array([], tuple[int, float | None]).type
    StructType(struct<0: int64, 1: double>)
    """
    if isinstance(annotation, Level):
        return _list(values, row_inside(annotation))
    if isinstance(annotation, RowsOf):
        return _struct(values, columns(values, annotation))
    match without_none(kind_of(annotation)):
        case Items(_, item):
            return _list(values, item)
        case Places(items):
            return _struct(values, _tuple_columns(values, items))
        case Scalar(_, zone) if zone is not None:
            return _zoned_array(values, zone)
        case Scalar(python) if python in _TYPES:
            return _plain_array(values, python)
        case Members(python):
            return _enum(values, python)
        case Struct() as struct:
            return _of_class(values, struct)
        case Choice(choices) if len(kinds := {*map(type, choices)}) == 1 and kinds <= _CHOSEN:
            return _plain_array(values, kinds.pop())
        case _:
            return _of_class(values, None)


def make_table(of: Columns) -> pa.Table:
    """Make a table from columns."""
    return pa.table(of)


def type_empty_columns(of: Columns, hints: Mapping[str, Any]) -> Columns:
    """Give columns without any value the type of their annotation.

    >>> found = type_empty_columns({"a": pa.nulls(2), "b": pa.nulls(0)}, {"a": int})
    >>> found["a"].type, found["b"].type
    (DataType(int64), DataType(null))
    """
    return {
        name: pa.nulls(len(found), arrow_array([], hints[name]).type)
        if pa.types.is_null(found.type) and name in hints
        else found
        for name, found in of.items()
    }


def columns(rows: Sequence[Any], of: RowsOf) -> Columns:
    """Return one column for each name.

    A single binding with inner levels has its fields instead.
    """
    width = len(of.types)
    parts = [_read_place(rows, place) for place in range(len(of.names))]
    if width == 1 and of.levels:
        made = of_binding(parts[0], of.types[0], of.names[0])
    else:
        made = {
            n: _field_array(n, v, a) for n, v, a in zip(of.names, parts, of.types, strict=False)
        }
    inside = zip(of.names[width:], parts[width:], of.levels, strict=True)
    return made | {name: _field_array(name, values, level) for name, values, level in inside}


def of_binding(values: Sequence[Any], annotation: Any, name: str) -> Columns:
    """Return the columns of one binding: its fields if it is a record, else one of this name."""
    kind = kind_of(annotation) if not isinstance(annotation, Level | RowsOf) else ANYTHING
    declared = without_none(kind)
    of = _value_classes(values, declared if isinstance(declared, Struct) else None)
    if of and all(map(is_record, of)):
        return _record_columns(values, of, declared)
    return {name: _field_array(name, values, annotation)}


def of_tuples(rows: Sequence[Any], annotation: Any) -> Columns | None:
    """Return the columns of rows that are plain tuples, one for each place; None for other rows."""
    if isinstance(annotation, Level | RowsOf):
        return None
    kind = without_none(kind_of(annotation))
    if isinstance(kind, Places) and kind.items:
        return _tuple_columns(rows, kind.items)
    if kind in (ANYTHING, Items(tuple, ANYTHING)):
        is_of_tuples = set(map(type, rows)) == {tuple} and _widths(rows)
        return _tuple_columns(rows, ()) if is_of_tuples else None
    return None


def _field_array(name: str, values: Sequence[Any], annotation: Any) -> pa.Array:
    """Convert the values of a field. An `UnfitColumnValue` that is raised names the field."""
    try:
        return arrow_array(values, annotation)
    except UnfitColumnValue as misfit:
        raise UnfitColumnValue(misfit.place, (name, *misfit.path), misfit.reason) from None


def _read_place(rows: Sequence[Any], place: int) -> list[Any]:
    return [None if row is None else row[place] for row in rows]


def _value_classes(values: Iterable[Any], declared: Struct | None) -> dict[Any, None]:
    """Return the classes of values, the declared one first."""
    kinds = {} if declared is None else {declared.python: None}
    return kinds | {kind: None for kind in dict.fromkeys(map(type, values)) if kind is not NoneType}


def _of_class(values: Sequence[Any], declared: Struct | None) -> pa.Array:
    """Convert values without a declared type; their class decides it."""
    kinds = _value_classes(values, declared)
    is_empty = all(value is None for value in values)
    if not kinds or (is_empty and declared is not None and _holds_itself(declared)):
        return pa.nulls(len(values))
    if all(map(is_record, kinds)):
        return _struct(values, _record_columns(values, kinds, declared))
    if all(issubclass(kind, _COLLECTIONS) and not is_record(kind) for kind in kinds):
        is_mixed = set(kinds) == {tuple} and _are_unnamed_records(values)
        return _struct(values, _tuple_columns(values, ())) if is_mixed else _list(values, ANYTHING)
    if len(kinds) == 1 and next(iter(kinds)) in _TYPES:
        return _plain_array(values, *kinds)
    if len(kinds) == 1 and issubclass(next(iter(kinds)), Enum):
        return _enum(values, *kinds)
    if set(kinds) == {int, float}:
        return _plain_array(values, float)
    return _raw_array(values, None)


def _enum(values: Sequence[Any], kind: type) -> pa.Array:
    """Convert members: numbers and texts as such, others as a dictionary of their names.

    Raises `UnfitColumnValue` for a value that is no member.
    """
    for place, value in enumerate(values):
        if not (value is None or isinstance(value, kind)):
            raise UnfitColumnValue(
                place, (), f"{_short_repr(value)} is no member of {kind.__name__}"
            )
    for plain in (int, str):
        if issubclass(kind, plain):
            return _plain_array(values, plain)
    names: list[str] = list(getattr(kind, "__members__"))  # noqa: B009
    places = {name: place for place, name in enumerate(names)}
    found = [None if value is None else places[value.name] for value in values]
    return pa.DictionaryArray.from_arrays(pa.array(found, pa.int32()), pa.array(names, pa.string()))


def _holds_itself(of: Struct) -> bool:
    """Return True if a record may contain records of its class: its type is then infinite."""
    waiting: list[Kind] = [*of.fields.values()]
    found: list[Kind] = []
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, Struct) and kind.python is of.python:
            return True
        if kind not in found:
            found.append(kind)
            waiting += inside_of(kind)
    return False


def _are_unnamed_records(values: Iterable[Any]) -> bool:
    """Return True if tuples are records without names: of one length, with several classes."""
    kinds = {type(item) for value in values if value is not None for item in value}
    return _widths(values) == 1 and len(kinds - {NoneType}) > 1


def _widths(values: Iterable[Any]) -> int:
    return len({len(value) for value in values if value is not None})


def _record_columns(values: Sequence[Any], classes: Iterable[Any], declared: Any) -> Columns:
    """Return the fields of records of several classes.

    A nested row has the columns of its bindings, and of its inner levels.
    """
    kinds: dict[str, Kind] = {}
    for each in classes:
        if is_nested_class(each):
            inside = len(each._fields) - each.roots
            return columns(values, RowsOf((Any,) * each.roots, each._fields, (Any,) * inside))
        is_declared = isinstance(declared, Struct) and declared.python is each
        of = declared if is_declared else Struct(each)
        for name, found in of.fields.items():
            kinds[name] = found if kinds.get(name, found) == found else ANYTHING
    plain = _plain_columns(values, kinds)
    return {
        name: plain[name] if name in plain else _field_array(name, _read_field(values, name), kind)
        for name, kind in kinds.items()
    }


def _plain_columns(values: Sequence[Any], kinds: Mapping[str, Kind]) -> Columns:
    """Return the columns of the fields whose values are all of one plain class.

    All fields of a few thousand values are read before those of the next, while the processor's
    caches have them: values of an ordered view lie anywhere in memory.
    """
    classes = {
        name: found.python
        for name, kind in kinds.items()
        if isinstance(found := without_none(kind), Scalar) and found.python in _IN_BLOCKS
    }
    pieces: dict[str, list[pa.Array]] = {name: [] for name in classes}
    waiting = iter(values)
    while block := list(islice(waiting, BLOCK)):
        for name in [*pieces]:
            read = _read_field(block, name)
            try:
                if set(map(type, read)) - {classes[name], NoneType}:
                    raise TypeError
                pieces[name].append(pa.array(read, _TYPES[classes[name]]))
            except _REFUSALS:
                del pieces[name]
    return {name: pa.concat_arrays(some) for name, some in pieces.items() if some}


def _read_field(values: Sequence[Any], name: str) -> list[Any]:
    if "." not in name:  # which attrgetter takes for a path
        try:
            return [*map(attrgetter(name), values)]
        except AttributeError:
            pass
    return [getattr(value, name, None) for value in values]


def _tuple_columns(values: Sequence[Any], kinds: Sequence[Kind]) -> Columns:
    """Return the items of plain tuples of equal length, one column for each place.

    Raises `UnfitColumnValue` for a tuple of another length.
    """
    widths = (len(value) for value in values if value is not None)
    width = len(kinds) or next(widths, 0)
    for place, value in enumerate(values):
        if value is not None and len(value) != width:
            raise UnfitColumnValue(
                place, (), f"{_short_repr(value)} has {len(value)} items, not {width}"
            )
    given = kinds or (ANYTHING,) * width
    return {
        str(place): _field_array(str(place), _read_place(values, place), k)
        for place, k in enumerate(given)
    }


def _struct(values: Sequence[Any], fields: Columns) -> pa.Array:
    """Return columns as one struct column, null where a value of `values` is None."""
    mask = [value is None for value in values]
    if not fields:
        return pa.array([None if gone else {} for gone in mask], pa.struct([]))
    return pa.StructArray.from_arrays(
        list(fields.values()), names=list(fields), mask=pa.array(mask, pa.bool_())
    )


def _list(values: Sequence[Any], item: Any) -> pa.Array:
    """Return lists as one list column, null where a value is None.

    Raises `UnfitColumnValue` with the place of the list that holds the unfit item.
    """
    ends = [0, *accumulate(0 if value is None else len(value) for value in values)]
    every = [part for value in values if value is not None for part in value]
    try:
        inside = arrow_array(every, item)
    except UnfitColumnValue as misfit:
        place = bisect_right(ends, misfit.place) - 1
        raise UnfitColumnValue(place, misfit.path, misfit.reason) from None
    begins = [None if v is None else n for v, n in zip(values, ends, strict=False)]
    return pa.ListArray.from_arrays(pa.array([*begins, ends[-1]], pa.int32()), inside)


def _plain_array(values: Sequence[Any], kind: type) -> pa.Array:
    """Return values as a column of `kind`, to which values of other classes are converted.

    Times with zones are in UTC. Raises `UnfitColumnValue` for a time of day with a zone.
    """
    if set(map(type, values)) - {kind, NoneType}:
        values = [_convert_value(kind, value, place) for place, value in enumerate(values)]
    of = _TYPES[kind]
    if kind in (datetime, time) and _has_zones(values):
        if kind is time:
            raise UnfitColumnValue(
                0, (), "a time of day with a time zone is nothing that Arrow has"
            )
        of = pa.timestamp("us", "UTC")
    return _integers(values) if kind is int else _raw_array(values, of)


def _zoned_array(values: Sequence[Any], zone: tzinfo) -> pa.Array:
    """Convert instants to a zone. Raises `UnfitColumnValue` for a datetime without a zone."""
    if set(map(type, values)) - {datetime, NoneType}:
        values = [_convert_value(datetime, value, place) for place, value in enumerate(values)]
    for place, value in enumerate(values):
        if value is not None and value.tzinfo is None:
            raise UnfitColumnValue(
                place, (), f"{_short_repr(value)} has no time zone, and its field has one"
            )
    return _raw_array(values, pa.timestamp("us", name_of_zone(zone)))


def _integers(values: Sequence[Any]) -> pa.Array:
    """Convert integers to 64 bits: signed if possible, else unsigned."""
    for of in (pa.int64(), pa.uint64()):
        try:
            return pa.array(values, of)
        except OverflowError:
            continue
    return _raw_array(values, pa.int64())


def _convert_value(kind: Any, value: Any, place: int) -> Any:
    """Convert a value to a class. Raises `UnfitColumnValue` if its class is not compatible."""
    if value is None or type(value) is kind:
        return value
    if kind is float and isinstance(value, int):
        return int(value)
    if kind is Decimal and type(value) is int:  # the sum of no rows
        return Decimal(value)
    is_kind = isinstance(value, kind) and not (kind is date and isinstance(value, datetime))
    if not is_kind:
        name = type(value).__name__
        raise UnfitColumnValue(
            place, (), f"{_short_repr(value)} is of type {name}, not {kind.__name__}"
        )
    return _BARE[kind](value) if kind in _BARE else value


_BARE: dict[Any, Callable[[Any], Any]] = {int: int, float: float, str: str.__str__, bytes: bytes}
"""The functions that convert a value of a subclass, such as an `IntEnum`, to its plain class."""


def _has_zones(values: Sequence[Any]) -> bool:
    """Return True if times have time zones; raises if only some have."""
    zoned = [v.tzinfo is not None for v in values if v is not None]
    if len(set(zoned)) < 2:
        return any(zoned)
    place = next(n for n, v in enumerate(values) if v is not None and v.tzinfo is not None)
    raise UnfitColumnValue(
        place, (), f"{_short_repr(values[place])} has a time zone, and others have none"
    )


def _raw_array(values: Sequence[Any], of: pa.DataType | None) -> pa.Array:
    """Return values as a column of type `of`; None: of the type that Arrow infers.

    Raises `UnfitColumnValue` with the place of the value that Arrow refuses.
    """
    try:
        return pa.array(values, of)
    except _REFUSALS as error:
        raise _misfit(values, of, error) from None


def _misfit(values: Sequence[Any], of: pa.DataType | None, error: Exception) -> UnfitColumnValue:
    """Return the error for the first value that Arrow refuses by itself.

    If it refuses none, they are of several types.
    """
    for place, value in enumerate(values):
        try:
            pa.array([value], of)
        except _REFUSALS as own:
            return UnfitColumnValue(place, (), f"{_short_repr(value)}: {own}")
    return UnfitColumnValue(0, (), f"values of several types: {error}")


def _short_repr(value: Any) -> str:
    return f"{value!r:.100}"


ONE = "value"
"""The column of rows that are neither records nor tuples."""
WEIGHT = "weight"
"""The column with the weights of rows: copies inserted, or deleted if negative."""


def weighted_table(pairs: Sequence[Pair]) -> Any:
    """Return rows with weights as a table; the classes and values of the rows decide the columns.

    Raises `PlanError` if Arrow cannot hold a value.

    >>> weighted_table([("to", 1), ("be", -2)]).to_pylist()
    [{'value': 'to', 'weight': 1}, {'value': 'be', 'weight': -2}]
    """
    rows = [row for row, _ in pairs]
    try:
        found = of_tuples(rows, Any) or of_binding(rows, Any, ONE)
    except UnfitColumnValue as misfit:
        raise PlanError(
            f"the changes are no Arrow table: column {'.'.join(misfit.path) or ONE!r}: "
            f"{misfit.reason}\n  the row is {rows[misfit.place]!r:.200}"
        ) from None
    return with_weights(make_table(found), pairs)


def with_weights(table: Any, pairs: Sequence[Pair]) -> Any:
    """Append the weights as a column."""
    name = WEIGHT
    while name in table.column_names:
        name += "_"
    return table.append_column(name, pa.array([weight for _, weight in pairs], pa.int64()))
