"""Rows that hold plain values only, and the field that tells rows apart: found by one pass.

    Order(id=7, town="Bonn")      its class, int, str      needs no further check

Such a row is hashable, holds no NaN, and equals another row if and only if their fields are equal.
So its table need not call methods of its class, and finds it by a field.

The test is one generated loop over all rows, for the classes that some sample rows have.

Cost: O(fields) per row, 10 ns each; O(fields) to generate the loop, once per class and shape.
"""

from __future__ import annotations

import dataclasses
import datetime
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from operator import attrgetter, eq, itemgetter
from types import MemberDescriptorType
from typing import Any

from optimizer.kinds.fields import by_class, compared_names
from optimizer.record import record
from reactive.engine.codegen.functions import BoundValues, build
from reactive.engine.collections.zset import Row
from reactive.engine.runtime.interrupts import reraise_asynchronous

MIXED: frozenset[type] = frozenset(
    {int, float, str, bytes, bool, type(None), datetime.date, datetime.timedelta, Decimal}
)
"""Classes whose instances are hashable and comparable with anything, without user code."""
PLAIN = MIXED | {datetime.datetime}
"""`MIXED`, and datetimes without a time zone; these only in fields with no other class."""
TELLING: tuple[type, ...] = (int, str)
"""Classes of the fields that may serve as keys, the faster one first."""
SAMPLED = 64
"""Number of sample rows for a test."""
COMPARED = 4096
"""Number of rows that a field must tell apart to be chosen.

As many adjacent rows are compared, and as many from all over.
"""

Shape = tuple[frozenset[type], ...]
"""The classes of the values in each field."""
Admitted = Callable[[int, Any], Shape]
"""Returns the classes that each field may have, given the number of fields and the row class.

Empty if every class is allowed (`row_check.py`).
"""


def admit_all(width: int, kind: Any) -> Shape:
    """Allow every class in each field; return (), a shape without conditions."""
    return ()


class OtherClass(Exception):
    """A row has another class than the field was chosen for."""


@record
class RowText:
    """Source text of tests of a row of `Kind`, for generated code.

    unpacked: lines to run first, if the parts of a row need names; for a row of another length they
              raise `ValueError`.
    is_odd: an expression that is true if the row is not plain.
    part: the value of the field.
    by_name: the objects that the text names.
    parts: of each field, its value and the classes allowed in a plain row.
    """

    unpacked: Sequence[str]
    is_odd: str
    part: str
    by_name: Mapping[str, Any]
    parts: Sequence[tuple[str, frozenset[type]]]


@record
class RowField:
    """A field that can serve to find rows of a class.

    kind: the class.
    of: returns its value in a row of that class.
    place: returns its value in any row; it raises `OtherClass`, or the error of the row's hash.
    have_equal: returns True if a row equals the row in its place in other rows with the same values
                of the field; None stands for no row.
    text: the source text of tests of a row.
    """

    kind: type
    of: Callable[[Row], Any]
    place: Callable[[Row], Any]
    have_equal: Callable[[Sequence[Row | None], Sequence[Row]], bool]
    text: RowText


@record
class PlainTest:
    """A test for rows that have one class and are all plain.

    kind: the class of the rows.
    is_odd: True if one row is not plain.
    fields: the fields with only one class in plain rows, by name or position.
    shape: the classes of all fields.
    """

    kind: Any
    are_plain: Callable[[Sequence[Row]], bool]
    is_odd: Callable[[Row], bool]
    fields: Mapping[Any, type]
    shape: Shape


def plain_test(rows: Sequence[Row], admitted: Admitted = admit_all) -> PlainTest | None:
    """Return the test for rows like the given ones; None if some of them are not plain.

    `admitted` returns the classes that fields may have; a row with another class does not pass.

    >>> test = plain_test([("a", 1), ("b", None)])
    >>> test.are_plain([("c", None)]), test.are_plain([("c", [])]), test.are_plain([("c", 1, 2)])
    (True, False, False)
    >>> test.is_odd(("c", None)), test.is_odd(("c", float("nan")))
    (False, True)
    >>> test.fields
    {0: <class 'str'>}
    """
    kind, shape = _class_of_rows(rows), _sample_shape(rows)
    return None if shape is None else _admitted_test(kind, shape, admitted)


def plain_test_of(kind: Any, shape: Shape, admitted: Admitted = admit_all) -> PlainTest | None:
    """Return the test for rows whose fields have these classes; None if such rows are not plain.

    None, too, if a class is not allowed.
    """
    is_known = plain_fields(kind) is not None and len(plain_fields(kind) or ()) == len(shape)
    is_plain = is_known and shape and all(map(_are_plain_classes, shape))
    return _admitted_test(kind, shape, admitted) if is_plain else None


def _admitted_test(kind: Any, shape: Shape, admitted: Admitted) -> PlainTest | None:
    """Return the test of plain rows of one class; None if a field may hold other classes."""
    some = admitted(len(shape), kind)
    return (
        _build_plain_test(kind, shape, some) if all(map(frozenset.issubset, shape, some)) else None
    )


def _single_class_fields(kind: Any, shape: Shape) -> dict[Any, type]:
    """Return the fields of a plain shape that have one class, each with its class."""
    if kind in PLAIN:
        return {}
    names: list[Any] = list(range(len(shape))) if issubclass(kind, tuple) else []
    found = list(zip(names, shape, strict=False))
    found += zip(plain_fields(kind) or (), shape, strict=False)
    return {name: next(iter(kinds)) for name, kinds in found if len(kinds) == 1}


def telling_field(rows: Sequence[Row]) -> RowField | None:
    """Return the first field whose value differs in all sampled rows; None if there is none.

    Return None, too, if the rows are not plain records of one class.

    >>> from typing import NamedTuple
    >>> Order = NamedTuple("Order", [("town", str), ("id", int)])
    >>> telling_field([Order("Bonn", 1), Order("Bonn", 2)]).place(Order("Rome", 3))
    3
    """
    kind, shape = _class_of_rows(rows), _sample_shape(rows)
    if shape is None or kind in PLAIN:
        return None
    some = [*rows[:COMPARED], *rows[COMPARED :: max(1, len(rows) // COMPARED)]]
    for wanted in TELLING:
        for number, kinds in enumerate(shape):
            if kinds == {wanted}:
                of = _reader(kind, number)
                if len(set(map(of, some))) == len(some):
                    return _build_row_field(kind, shape, number)
    return None


def named_field(rows: Sequence[Row], name: str | None) -> RowField | None:
    """Return the field of a name; None if plain rows cannot be found by it."""
    kind, shape = _class_of_rows(rows), _sample_shape(rows)
    names = () if shape is None or kind in PLAIN else plain_fields(kind) or ()
    if shape is None or name not in names:
        return None
    number = names.index(name)
    (of, *others) = shape[number]
    return None if others or of not in TELLING else _build_row_field(kind, shape, number)


def _sample_shape(rows: Sequence[Row]) -> Shape | None:
    """Return the classes of the fields of sample rows; None if a value is not plain."""
    kind = _class_of_rows(rows)
    some = rows[:: max(1, len(rows) // SAMPLED)]
    try:
        if kind in PLAIN:
            columns = [some]
        elif kind is tuple:
            columns = list(zip(*some, strict=True))
        elif (names := plain_fields(kind)) is not None:
            columns = [list(map(attrgetter(name), some)) for name in names]
        else:
            return None
    except Exception as error:  # rows of other classes or lengths
        reraise_asynchronous(error)
        return None
    shape = tuple([frozenset(map(type, column)) for column in columns])
    return shape if shape and all(map(_are_plain_classes, shape)) else None


def _are_plain_classes(kinds: frozenset[type]) -> bool:
    return kinds <= (PLAIN if len(kinds) == 1 else MIXED)


def _class_of_rows(rows: Sequence[Row]) -> Any:
    return type(rows[0])


def _reader(kind: Any, number: int) -> Callable[[Row], Any]:
    if issubclass(kind, tuple):
        return itemgetter(number)
    return attrgetter(compared_names(kind)[number])


@by_class
def plain_fields(kind: Any) -> tuple[str, ...] | None:
    """Return the fields of a record whose equality and hash use only them; None for other classes.

    Equality, hash and reading a field must run no user code.
    """
    names = compared_names(kind)
    if not names or kind.__getattribute__ not in (object.__getattribute__, tuple.__getattribute__):
        return None
    if issubclass(kind, tuple):
        own = (kind.__eq__, kind.__hash__, kind.__iter__, kind.__getitem__)
        plain = (tuple.__eq__, tuple.__hash__, tuple.__iter__, tuple.__getitem__)
        return names if own == plain and names == kind._fields else None
    if not all(_is_read_plainly(kind, name) for name in names):
        return None
    if hasattr(kind, "__struct_fields__"):
        struct: Any = sys.modules["msgspec"].Struct
        config: Any = getattr(kind, "__struct_config__")  # noqa: B009
        is_equal = config.eq and config.frozen and kind.__eq__ is struct.__eq__
        return names if is_equal and kind.__hash__ is struct.__hash__ else None
    return names if dataclasses.is_dataclass(kind) and _has_generated(kind) else None


def _is_read_plainly(kind: Any, name: str) -> bool:
    """Return False if reading an attribute calls a property or another data descriptor."""
    for base in kind.__mro__:
        if name in vars(base):
            found = vars(base)[name]
            return isinstance(found, MemberDescriptorType) or not hasattr(type(found), "__set__")
    return True


def _has_generated(kind: Any) -> bool:
    """Return True if a dataclass has the generated `__eq__` and `__hash__` of its fields."""
    fields = [
        (f.name, object, dataclasses.field(hash=f.hash, compare=f.compare))
        for f in dataclasses.fields(kind)
    ]
    made = dataclasses.make_dataclass("Made", fields, frozen=True)
    return all(_has_same_code(getattr(kind, n), getattr(made, n)) for n in ("__eq__", "__hash__"))


def _has_same_code(function: Any, other: Any) -> bool:
    """Return True if both are Python functions of equal code, the first without closure."""
    code, its = getattr(function, "__code__", None), getattr(other, "__code__", None)
    return (
        code is not None
        and its is not None
        and (code.co_code, code.co_consts, code.co_names, code.co_varnames)
        == (its.co_code, its.co_consts, its.co_names, its.co_varnames)
        and function.__closure__ is None
    )


@by_class
def _build_plain_test(kind: Any, shape: Shape, admitted: Shape) -> PlainTest:
    """Generate the test for many rows."""
    values, unpacked, is_odd, _ = _asked_of(kind, shape, admitted)
    each = ["for row in rows:", "    if row.__class__ is not Kind:", "        return False"]
    each += [f"    {line}" for line in unpacked]
    each += [f"    if {is_odd}:", "        return False", "return True"]
    one = ["if row.__class__ is not Kind:", "    return True", *unpacked, f"return {is_odd}"]
    return PlainTest(
        kind=kind,
        are_plain=build("all_plain", careful("all_plain", "rows", each, "False"), values),
        is_odd=build("is_odd", careful("is_odd", "row", one, "True"), values),
        fields=_single_class_fields(kind, shape),
        shape=shape,
    )


@by_class
def _build_row_field(kind: Any, shape: Shape, number: int) -> RowField:
    """Generate the function that returns a field of a row and checks the row."""
    values, unpacked, is_odd, parts = _asked_of(kind, shape)
    mixed = [kinds if len(kinds) == 1 else MIXED for kinds in shape]
    each = list(zip(parts, mixed, strict=True))
    text = RowText(unpacked, is_odd, parts[number], values.by_name, each)
    sure = ["if row.__class__ is not Kind:", "    raise OtherClass"]
    if unpacked:
        sure += ["try:", f"    {unpacked[0]}", "except ValueError:", "    raise OtherClass"]
    sure += [f"if {is_odd}:", "    hash(row)", f"return {parts[number]}"]
    place = build("place", _function_text("place", "row", sure), values)
    return RowField(kind, _reader(kind, number), place, _build_comparison(kind, number), text)


def _build_comparison(kind: Any, number: int) -> Callable[..., bool]:
    """Generate the loop that compares rows by the fields that follow and precede a field.

    It takes a fraction of the time of a generated `__eq__`.
    """
    if issubclass(kind, tuple):
        return _have_equal_tuples
    names = plain_fields(kind) or ()
    asked = [
        f"(row.{name} is other.{name} or row.{name} == other.{name})"
        for name in (*names[number + 1 :], *names[:number])
    ]
    lines = ["for row, other in zip(rows, others):"]
    lines += [f"    if {' and '.join(['row is not None', *asked])}:", "        return True"]
    text = _function_text("have_equal", "rows, others", [*lines, "return False"])
    return build("have_equal", text, BoundValues())


def _have_equal_tuples(rows: Sequence[Row | None], others: Sequence[Row]) -> bool:
    return any(map(eq, rows, others))


def _asked_of(
    kind: Any, shape: Shape, admitted: Shape = ()
) -> tuple[BoundValues, list[str], str, list[str]]:
    """Return the objects by name, the line that unpacks a row, the test, and the parts."""
    values = BoundValues()
    values.by_name |= {"Kind": kind, "MIXED": MIXED, "OtherClass": OtherClass}
    values.by_name["reraise_asynchronous"] = reraise_asynchronous
    parts, unpacked = _part_names(kind, len(shape))
    some = [MIXED & each for each in admitted] or [MIXED] * len(shape)
    asked = [_oddness_test(*of, values) for of in zip(parts, shape, some, strict=True)]
    return values, unpacked, " or ".join(asked), parts


def _part_names(kind: Any, width: int) -> tuple[list[str], list[str]]:
    """Return the names of the parts of a row, and the line that assigns them, if needed."""
    if kind in PLAIN:
        return ["row"], []
    if issubclass(kind, tuple):
        names = [f"part_{number}" for number in range(width)]
        return names, [f"{', '.join(names)}, = row"]
    return [f"row.{name}" for name in plain_fields(kind) or ()], []


def _function_text(name: str, parameter: str, lines: Sequence[str]) -> str:
    return f"def {name}({parameter}):\n" + "".join(f"    {line}\n" for line in lines)


def careful(name: str, parameter: str, lines: Sequence[str], otherwise: str) -> str:
    """Return a test that returns `otherwise` if a row has other fields or another length."""
    tried = ["try:", *(f"    {line}" for line in lines), "except Exception as error:"]
    caught = ["    reraise_asynchronous(error)", f"    return {otherwise}"]
    return _function_text(name, parameter, [*tried, *caught])


def _oddness_test(
    part: str, kinds: frozenset[type], mixed: frozenset[type], values: BoundValues
) -> str:
    """Return an expression that is true if a part of a row has another class, or is a NaN."""
    if len(kinds) > 1:
        name = "MIXED" if mixed == MIXED else values.name(mixed, "Mixed")
        return f"{part}.__class__ not in {name} or {part} != {part}"
    (kind,) = kinds
    is_other = f"{part}.__class__ is not {values.name(kind, kind.__name__)}"
    if kind is float or kind is Decimal:
        return f"{is_other} or {part} != {part}"
    return f"{is_other} or {part}.tzinfo is not None" if kind is datetime.datetime else is_other
