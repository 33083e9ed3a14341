"""Column types of rows on Spark: typed columns if these store the rows exactly, else pickled bytes.

    class Order(NamedTuple):        struct<number: bigint, customer: string, price: double>
        number: int
        customer: str | None
        price: float

    UUID, Enum, time, timedelta     text, which is equal if and only if the values are
    frozenset[str]                  array<string>, in order
    list[str]                       binary: pickled, since a list has no hash

Sound:  a value decoded from a typed column equals the encoded value and has the same types. Other
        values (an integer beyond 64 bits, True among integers) are refused.

`infer_type` infers the types of undeclared rows from a sample.

Cost:   O(rows in the sample).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Context, Decimal
from enum import Enum, Flag
from functools import reduce
from itertools import islice
from types import NoneType
from typing import Any, TypeAlias

from optimizer.expressions.attempts import Fault, Outcome
from optimizer.expressions.knowledge import constructor, readable_fields
from optimizer.expressions.text import Level, RowsOf, row_inside
from optimizer.kinds.kind import (
    ANYTHING,
    KINDS,
    NONE,
    Choice,
    Either,
    Items,
    Kind,
    Members,
    Places,
    Scalar,
    Struct,
    is_uuid,
    kind_of,
    name_of,
    places_of,
    without_none,
)
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.inner_changes import is_nested_class
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.storage.rows import written_class_name
from reactive.errors import OffloadError

LEAST, LARGEST = -(2**63), 2**63 - 1
"""The range of a column of integers."""
WIDEST = 10**38 - 1
"""The largest integer in a column of computed integers."""
PLACES = 18
"""The digits of a Decimal behind the point; 20 may stand before it."""
_DIGITS = Context(prec=60)
PLAIN: frozenset[type] = frozenset({int, float, str, bytes, bool, date, datetime, Decimal})


@dataclass(frozen=True, slots=True)
class Plain:
    """One value in one column; NoneType is the type of a value that is always None.

    An integer lies from `low` to `high`, both included.
    """

    kind: type
    optional: bool = False
    low: int = LEAST
    high: int = LARGEST

    @property
    def is_wide(self) -> bool:
        """True for an integer that 64 bits may not hold."""
        return self.kind is int and (self.low < LEAST or self.high > LARGEST)


@dataclass(frozen=True, slots=True)
class Record:
    """A tuple, named tuple or dataclass in a struct of columns, named as its fields."""

    kind: Any
    names: tuple[str, ...]
    fields: tuple[Typed, ...]
    optional: bool = False

    def field(self, name: str) -> Typed:
        """Return the type of a field."""
        return self.fields[self.names.index(name)]


class Digits:
    """The kind of a `Whole` that is a Decimal."""


class Instant:
    """The kind of a `Whole` that is a datetime with a time zone."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A value of any length, in one column.

    `kind` is `Bag`, of values of a type: an array of values with weights, in order; `tuple`: an
    array of values; `frozenset`: an array of values in order. Other kinds are text: `Digits`, a
    Decimal of any number of digits; `Instant`, a datetime shown in `zone`; `UUID`, `time`,
    `timedelta` and classes of enumerations.

    A bag that `is_listed` is an array that repeats its values, as outside of state tables. A tuple
    that `is_inner` is the result of an order inside a nest: a `LongTuple` if it has many rows.
    """

    kind: type[Any]
    of: Typed | None = None
    optional: bool = False
    is_listed: bool = False
    is_inner: bool = False
    zone: tzinfo | None = None

    @property
    def is_counted(self) -> bool:
        """True if its array has values with weights."""
        return self.kind is Bag and not self.is_listed


@dataclass(frozen=True, slots=True)
class Pickled:
    """A row in one column of bytes, and why it has no type on Spark."""

    reason: str


Typed: TypeAlias = Plain | Record | Whole
Kept: TypeAlias = Plain | Record | Whole | Pickled


NOTHING = Plain(NoneType)
"""The type of the values of an empty bag or sequence."""
_NAMES: dict[Any, str] = {Digits: "Decimal", Instant: "datetime"}


class Untyped(Exception):
    """The reason why a value has no Spark type."""


def kept_as(row_type: Any) -> Kept:
    """Return how rows of a type are encoded.

    Parameters
    ----------
    row_type: a frozen dataclass or named tuple, `tuple[...]` of given length, or one of int, float,
        str, bytes, bool, date, time, datetime, timedelta, Decimal, UUID and classes of
        enumerations; with fields of these types, and `tuple[T, ...]`, `frozenset[T]` and `Bag[T]`
        of them, each perhaps `| None`. `Annotated[datetime, zone]` is a datetime with a time zone,
        `datetime` one without. Other types are pickled.

    >>> kept_as(tuple[int, str | None]).fields[1]
    Plain(kind=<class 'str'>, optional=True, low=-9223372036854775808, high=9223372036854775807)
    >>> kept_as(dict[str, int])
    Pickled(reason='dict[str, int] has no Spark type')
    """
    try:
        return column_type(row_type)
    except Untyped as untyped:
        return Pickled(str(untyped))


def column_type(annotation: Any, inside: frozenset[type] = frozenset()) -> Typed:
    """Return the column type of an annotation, inside records of the given classes.

    Raises
    ------
    Untyped: no column stores such values exactly.
    """
    kind = kind_of(annotation)
    match kind:
        case Either(kinds) if NONE in kinds and len(kinds) == 2:
            return replace(column_type(without_none(kind), inside), optional=True)
        case Either():
            raise Untyped(f"{_annotation_name(annotation)} is of several types")
        case Scalar(python, None) if python in PLAIN:
            return Plain(python)
        case Scalar(python, None) if python in (time, timedelta) or is_uuid(python):
            return Whole(python)
        case Scalar(python, zone) if python is datetime and zone is not None:
            return Whole(Instant, zone=zone)
        case Members(python):
            return _enum_type(python)
        case Choice(values) if len({*map(type, values)}) == 1 and isinstance(values[0], Enum):
            return _enum_type(type(values[0]))
        case Choice(values) if len(of := {*map(type, values)} - {NoneType}) == 1 and of <= PLAIN:
            return Plain(of.pop(), optional=None in values)
        case Places(items) if items:
            return tuple_of(tuple(column_type(item, inside) for item in items))
        case Places():
            raise Untyped("the empty tuple has no columns")
        case Items(python, item) if python in (tuple, frozenset, Bag) and item != ANYTHING:
            return Whole(python, column_type(item, inside))
        case Items(python) if python is list and not isinstance(annotation, type):
            name = _annotation_name(annotation)
            raise Untyped(f"{name} has no hash; Bag[...] and tuple[..., ...] are lists on Spark")
        case Struct():
            return _record_type(kind, inside)
        case _:
            raise Untyped(f"{_annotation_name(annotation)} has no Spark type")


def _enum_type(kind: type[Enum]) -> Whole:
    """Return the type of members of an enumeration, which are stored by their names.

    Raises `Untyped` if members equal other values, or a worker could not import the class.
    """
    if kind.__eq__ is not object.__eq__ or issubclass(kind, Flag):
        raise Untyped(f"members of {kind.__name__} are equal to values that are no members")
    module: Any = sys.modules.get(kind.__module__)
    found = module
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    if found is not kind:
        raise Untyped(f"no worker could import {kind.__qualname__}")
    return Whole(kind)


def _annotation_name(annotation: Any) -> str:
    if isinstance(annotation, KINDS):
        return name_of(annotation)
    return annotation if isinstance(annotation, str) else written_class_name(annotation)


def tuple_of(fields: tuple[Typed, ...]) -> Record:
    """Return the type of a plain tuple of such values."""
    return Record(tuple, tuple(f"_{place}" for place in range(1, len(fields) + 1)), fields)


def record_of(kind: type, fields: tuple[Typed, ...]) -> Record:
    """Return the type of a record of a class with fields of these types.

    Raises
    ------
    Untyped: the fields do not determine the object.
    """
    names = constructor(kind)
    reason = _more_than_fields(kind, names)
    if reason is not None or names is None:
        raise Untyped(f"{kind.__name__} {reason}")
    return Record(kind, names, fields)


def outcome_of(result: Typed) -> Record:
    """Return the type of an `Outcome` whose results are of a type."""
    fault = replace(record_of(Fault, (Plain(str), Plain(str))), optional=True)
    return record_of(Outcome, (replace(result, optional=True), fault))


def describe_encoding(kept: Kept) -> str:
    """Describe how rows are encoded.

    >>> describe_encoding(kept_as(tuple[int, str])), describe_encoding(kept_as(list))
    ('columns _1: int, _2: str', 'pickled in a binary column (list has no Spark type)')
    """
    match kept:
        case Pickled(reason):
            return f"pickled in a binary column ({reason})"
        case Record(_, names, fields):
            shown = (f"{name}: {type_name(f)}" for name, f in zip(names, fields, strict=True))
            return f"columns {', '.join(shown)}"
        case _:
            return f"a column of {type_name(kept)}"


def type_name(of: Typed) -> str:
    """Return a type as an annotation would name it."""
    if isinstance(of, Whole):
        name = _NAMES.get(of.kind, of.kind.__name__)
        name += f" of {of.zone}" if of.zone is not None else ""
        name += f"[{_inside_name(of)}]" if of.of is not None else ""
    elif isinstance(of, Record) and of.kind is tuple:
        name = f"tuple[{', '.join(map(type_name, of.fields))}]"
    else:
        name = "None" if of.kind is NoneType else of.kind.__name__
    return f"{name} | None" if of.optional and name != "None" else name


def common_type(left: Typed, right: Typed) -> Typed:
    """Return a type whose columns store the values of both types.

    Raises
    ------
    Untyped: there is no such type.
    """
    for one, other in ((left, right), (right, left)):
        if one.kind is NoneType:
            return replace(other, optional=True)
    optional = left.optional or right.optional
    if isinstance(left, Plain) and isinstance(right, Plain) and left.kind is right.kind:
        return Plain(left.kind, optional, min(left.low, right.low), max(left.high, right.high))
    if isinstance(left, Record) and isinstance(right, Record) and _is_same_record(left, right):
        both = zip(left.fields, right.fields, strict=True)
        return replace(left, optional=optional, fields=tuple(common_type(a, b) for a, b in both))
    if isinstance(left, Whole) and isinstance(right, Whole) and left.kind is right.kind:
        is_inner = left.is_inner or right.is_inner
        inside = common_inside_type(left.of, right.of)
        return replace(left, of=inside, optional=optional, is_inner=is_inner)
    raise Untyped(f"it is {type_name(left)} or {type_name(right)}")


def may_be_read(of: Record, name: str) -> bool:
    """Return True if reading the attribute returns the field and does nothing else."""
    is_plain = is_nested_class(of.kind) or (
        of.kind is not tuple and name in readable_fields(of.kind)
    )
    return name in of.names and is_plain


def is_field_of_first_row(of: Record, name: str) -> bool:
    """Return True if reading the attribute of a nested row reads a field of its first row."""
    if not is_nested_class(of.kind) or hasattr(of.kind, name):
        return False
    row = of.fields[0]
    return isinstance(row, Record) and not row.optional and may_be_read(row, name)


def fits_decimal(value: Decimal) -> bool:
    """Return True if the column of decimals stores the value."""
    if not value.is_finite():
        return False
    scaled = _DIGITS.scaleb(value, PLACES) if abs(value.adjusted()) < 40 else Decimal("0.5")
    return not value or (scaled == scaled.to_integral_value() and scaled.copy_abs() <= WIDEST)


def is_text(value: str) -> bool:
    """Return True if the text can be encoded as UTF-8: it has no surrogate."""
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)


def _inside_name(of: Whole) -> str:
    """Return the name of the element type of a whole value; an empty text if it has no elements."""
    assert of.of is not None
    if of.of == NOTHING:
        return ""
    return f"{type_name(of.of)}{', ...' if of.kind is tuple else ''}"


def common_inside_type(left: Typed | None, right: Typed | None) -> Typed | None:
    """Return the common type of the values inside two containers.

    An empty container (None or `NOTHING`) has no values: the type is that of the other one. Raises
    `Untyped` if two types have none in common.
    """
    if left is None or right is None or NOTHING in (left, right):
        return left if right in (None, NOTHING) else right
    return common_type(left, right)


def _is_same_record(left: Record, right: Record) -> bool:
    return left.kind is right.kind and left.names == right.names


def _record_type(of: Struct, inside: frozenset[type]) -> Record:
    """Return the record type of a struct; `inside` are the classes that contain it.

    Raises `Untyped` if it contains itself.
    """
    kind = of.python
    if kind in inside:
        raise Untyped("it contains itself")
    names = record_of(kind, ()).names
    fields = of.fields
    return record_of(
        kind, tuple(_record_field_type(kind, name, fields[name], inside) for name in names)
    )


def _record_field_type(kind: type, name: str, hint: Kind, inside: frozenset[type]) -> Typed:
    """Return the type of a field of a class.

    Raises `Untyped`, with the name of the field, if it has no column type.
    """
    try:
        return column_type(hint, inside | {kind})
    except Untyped as untyped:
        raise Untyped(f"{kind.__name__}.{name}: {untyped}") from None


def _more_than_fields(kind: Any, names: tuple[str, ...] | None) -> str | None:
    """Return the reason why the fields of a record do not determine it, or None."""
    if names is None:
        return "does more than keep its fields"
    if not names:
        return "has no fields"
    if len({name.casefold() for name in names}) < len(names):
        return "has two fields whose names differ in case only"
    if is_dataclass(kind):
        code = getattr(kind.__eq__, "__code__", None)
        generated = code is not None and code.co_filename == "<string>"
        compared = all(f.compare for f in fields(kind))
        return None if generated and compared else "is not equal by its fields"
    same: Any = tuple
    is_plain = kind.__eq__ is same.__eq__ and kind.__hash__ is same.__hash__
    return None if is_plain else "is not equal by its fields"


SAMPLE = 1_000
"""The number of rows that are read to infer the types of columns."""


def infer_type(rows: Iterable[Pair], row_type: Any, *, sample: int | None = SAMPLE) -> Typed:
    """Return the column types of rows: from a row type, or inferred from the first rows.

    Parameters
    ----------
    sample: the number of rows to read; None for all.

    Raises
    ------
    OffloadError: no columns store the rows.
    """
    try:
        if row_type is not None:
            return _require_typed(kept_as(row_type))
        found = {_infer_value_type(row): None for row, _ in islice(rows, sample)}
        return reduce(common_type, found) if found else Plain(str, optional=True)
    except Untyped as untyped:
        raise OffloadError(
            f"the rows fit no columns: {untyped}\n"
            "  select what does, or say of what type they are: row_type=RowType"
        ) from None


def _require_typed(kept: Kept) -> Typed:
    """Return the type of columns. Raises `Untyped` if rows are pickled."""
    if isinstance(kept, Pickled):
        raise Untyped(kept.reason)
    return kept


def fill_unknown(found: Typed, known: Typed) -> Typed:
    """Return `found` with the parts that have only been None replaced by the known types.

    Parts of different structure stay as they are.
    """
    if found.kind is NoneType:
        return replace(known, optional=True)
    if isinstance(found, Whole) and isinstance(known, Whole) and found.of and known.of:
        return replace(found, of=fill_unknown(found.of, known.of))
    if not isinstance(found, Record) or not isinstance(known, Record):
        return found
    if len(found.fields) != len(known.fields):
        return found
    both = zip(found.fields, known.fields, strict=True)
    return replace(found, fields=tuple(fill_unknown(a, b) for a, b in both))


def expected_type(annotation: Any) -> Typed:
    """Return the type that an annotation tells; NoneType for parts that it does not tell.

    >>> [field.kind.__name__ for field in expected_type(tuple[int, Any]).fields]
    ['int', 'NoneType']
    """
    if isinstance(annotation, Level):
        inside = expected_type(row_inside(annotation))
        if isinstance(inside, Record) and annotation.kind is not None:
            inside = replace(inside, kind=annotation.kind)
        return Whole(tuple if annotation.is_sequence else Bag, inside)
    if isinstance(annotation, RowsOf):
        parts = (*annotation.types, *annotation.levels)
        return Record(tuple, annotation.names, tuple(map(expected_type, parts)))
    items = places_of(annotation)
    if items is not None:
        return tuple_of(tuple(map(expected_type, items)))
    try:
        return column_type(annotation)
    except Untyped:
        return Plain(NoneType, optional=True)


def _infer_value_type(row: Row) -> Typed:
    """Return the type of a value; for a tuple, from its parts.

    Raises `Untyped` if no columns store it.
    """
    kind = type(row)
    if row is None:
        return Plain(NoneType, optional=True)
    if kind in (Bag, frozenset):
        return _infer_list_type(row)
    if kind is datetime and row.tzinfo is not None:
        return Whole(Instant, zone=row.tzinfo)
    if kind is tuple and row:
        return tuple_of(tuple(map(_infer_value_type, row)))
    if is_nested_class(kind):
        return _infer_nested_type(row)
    declared = kept_as(kind)
    if not hasattr(kind, "_fields"):
        return _require_typed(declared)
    if not isinstance(declared, Record):
        return record_of(kind, tuple(map(_infer_value_type, row)))
    both = zip(declared.fields, row, strict=True)
    found = tuple(of if isinstance(of, Whole) else _infer_value_type(value) for of, value in both)
    return fill_unknown(record_of(kind, found), declared)


def _infer_list_type(values: Any) -> Whole:
    """Return the type of one bag, set or sequence, from the values in it.

    Raises `Untyped` if these have no common type.
    """
    found: Typed | None = NOTHING
    for of in dict.fromkeys(map(_infer_value_type, values)):
        found = common_inside_type(found, of)
    return Whole(type(values) if type(values) in (Bag, frozenset) else tuple, found)


def _infer_nested_type(row: Any) -> Typed:
    """Return the type of a nested row, whose inner rows are bags or sequences."""
    first, inside = row[: row.roots], row[row.roots :]
    return record_of(type(row), (*map(_infer_value_type, first), *map(_infer_list_type, inside)))
