"""Rows that hold plain values only, and the field that tells rows apart: found by one pass.

    Order(id=7, town="Bonn")      its class, int, str      nothing in it is to be asked again

Of such a row it is known that it has a hash, holds no NaN, and equals another row if and only if
their fields are equal. So its table need not call its class at all, and finds it by a field.

The test is one generated loop over all rows, made for the classes that a few of them have.

Cost: O(fields) per row, 10 ns each; of making the loop O(fields), once per class and shape.
"""

from __future__ import annotations

import dataclasses
import datetime
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from operator import attrgetter, itemgetter
from types import MemberDescriptorType
from typing import Any

from optimizer.kinds.fields import by_class, compared
from reactive.engine.codegen.functions import BoundValues, build
from reactive.engine.collections.zset import Row
from reactive.engine.runtime.interrupts import reraise_asynchronous

MIXED: frozenset[type] = frozenset(
    {int, float, str, bytes, bool, type(None), datetime.date, datetime.timedelta, Decimal}
)
"""Classes whose instances have a hash and compare with anything, without a call of other code."""
PLAIN = MIXED | {datetime.datetime}
"""The same, and times, if they are of no zone; these are looked for in fields of nothing else."""
TELLING: tuple[type, ...] = (int, str)
"""Classes of fields that rows may be found by, the quicker one first."""
SAMPLED = 64
"""Rows by which a test is made."""
COMPARED = 4096
"""Rows that a field must tell apart to be tried for all: so many that are side by side, and as many
from all over."""

Shape = tuple[frozenset[type], ...]
"""The classes that each field of rows has."""
Admitted = Callable[[int, Any], Shape]
"""The classes that each of so many fields of rows of a class may have; nothing if all may have any
(`row_check.py`)."""


def admit_all(width: int, kind: Any) -> Shape:
    """Admit every class in each field."""
    return ()


class OtherClass(Exception):
    """A row is of another class than a place is for."""


@dataclasses.dataclass(frozen=True, slots=True)
class RowText:
    """What generated code asks of a row of `Kind`, as text.

    unpacked: lines to begin with, if the parts of a row have no names yet; of a row of another
              length they raise `ValueError`.
    is_odd: whether the row is not plain.
    part: the value of the field.
    by_name: what these have by name.
    parts: of each field, its value and the classes that it may have if the row is plain.
    """

    unpacked: Sequence[str]
    is_odd: str
    part: str
    by_name: Mapping[str, Any]
    parts: Sequence[tuple[str, frozenset[type]]]


@dataclasses.dataclass(frozen=True, slots=True)
class RowField:
    """A field that rows of a class may be found by.

    kind: the class.
    of: its value in a row of that class.
    place: the same, of any row; it raises `OtherClass`, or what the row's hash raises.
    text: what a generated function asks of a row.
    """

    kind: type
    of: Callable[[Row], Any]
    place: Callable[[Row], Any]
    text: RowText


@dataclasses.dataclass(frozen=True, slots=True)
class PlainTest:
    """A test whether rows are all of one class and plain.

    kind: the class of the rows.
    is_odd: whether one row is not plain.
    fields: those that have one class in all of them then, by name or place.
    shape: the classes of all fields.
    """

    kind: Any
    are_plain: Callable[[Sequence[Row]], bool]
    is_odd: Callable[[Row], bool]
    fields: Mapping[Any, type]
    shape: Shape


def plain_test(rows: Sequence[Row], admitted: Admitted = admit_all) -> PlainTest | None:
    """The test that rows of the class of some pass; None if these, or a few of them, do not.

    admitted: the classes that fields may have; a row with another one does not pass.

    >>> test = plain_test([("a", 1), ("b", None)])
    >>> test.are_plain([("c", None)]), test.are_plain([("c", [])]), test.are_plain([("c", 1, 2)])
    (True, False, False)
    >>> test.is_odd(("c", None)), test.is_odd(("c", float("nan")))
    (False, True)
    >>> test.fields
    {0: <class 'str'>}
    """
    kind, shape = _kind(rows), _shape(rows)
    return None if shape is None else _admitted_test(kind, shape, admitted)


def plain_test_of(kind: Any, shape: Shape, admitted: Admitted = admit_all) -> PlainTest | None:
    """The test of rows whose fields have these classes; None if such rows are not plain, or a class
    is not admitted."""
    is_known = plain_fields(kind) is not None and len(plain_fields(kind) or ()) == len(shape)
    is_plain = is_known and shape and all(map(_is_plain, shape))
    return _admitted_test(kind, shape, admitted) if is_plain else None


def _admitted_test(kind: Any, shape: Shape, admitted: Admitted) -> PlainTest | None:
    some = admitted(len(shape), kind)
    return _test(kind, shape, some) if all(map(frozenset.issubset, shape, some)) else None


def _fields(kind: Any, shape: Shape) -> dict[Any, type]:
    if kind in PLAIN:
        return {}
    names: list[Any] = list(range(len(shape))) if issubclass(kind, tuple) else []
    found = list(zip(names, shape, strict=False))
    found += zip(plain_fields(kind) or (), shape, strict=False)
    return {name: next(iter(kinds)) for name, kinds in found if len(kinds) == 1}


def telling_field(rows: Sequence[Row]) -> RowField | None:
    """The first field by which no two of some rows are equal; rows are plain.

    >>> from typing import NamedTuple
    >>> Order = NamedTuple("Order", [("town", str), ("id", int)])
    >>> telling_field([Order("Bonn", 1), Order("Bonn", 2)]).place(Order("Rome", 3))
    3
    """
    kind, shape = _kind(rows), _shape(rows)
    if shape is None or kind in PLAIN:
        return None
    some = [*rows[:COMPARED], *rows[COMPARED :: max(1, len(rows) // COMPARED)]]
    for wanted in TELLING:
        for number, kinds in enumerate(shape):
            if kinds == {wanted}:
                of = _reader(kind, number)
                if len(set(map(of, some))) == len(some):
                    return _field(kind, shape, number)
    return None


def named_field(rows: Sequence[Row], name: str | None) -> RowField | None:
    """The field of a name, if rows may be found by it; rows are plain."""
    kind, shape = _kind(rows), _shape(rows)
    names = () if shape is None or kind in PLAIN else plain_fields(kind) or ()
    if shape is None or name not in names:
        return None
    number = names.index(name)
    (of, *others) = shape[number]
    return None if others or of not in TELLING else _field(kind, shape, number)


def _shape(rows: Sequence[Row]) -> Shape | None:
    """The classes that the fields of some rows have, if all of these are plain."""
    kind = _kind(rows)
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
    except Exception as error:  # rows of other classes, or of other lengths
        reraise_asynchronous(error)
        return None
    shape = tuple([frozenset(map(type, column)) for column in columns])
    return shape if shape and all(map(_is_plain, shape)) else None


def _is_plain(kinds: frozenset[type]) -> bool:
    return kinds <= (PLAIN if len(kinds) == 1 else MIXED)


def _kind(rows: Sequence[Row]) -> Any:
    return type(rows[0])


def _reader(kind: Any, number: int) -> Callable[[Row], Any]:
    if issubclass(kind, tuple):
        return itemgetter(number)
    return attrgetter(compared(kind)[number])


@by_class
def plain_fields(kind: Any) -> tuple[str, ...] | None:
    """The fields of a record that is equal, and has a hash, by them alone; None for other classes.

    Neither runs code that a user has written, nor does reading a field.
    """
    names = compared(kind)
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
    for base in kind.__mro__:
        if name in vars(base):
            found = vars(base)[name]
            return isinstance(found, MemberDescriptorType) or not hasattr(type(found), "__set__")
    return True


def _has_generated(kind: Any) -> bool:
    """Whether a dataclass has the `__eq__` and `__hash__` that are generated for its fields."""
    fields = [
        (f.name, object, dataclasses.field(hash=f.hash, compare=f.compare))
        for f in dataclasses.fields(kind)
    ]
    made = dataclasses.make_dataclass("Made", fields, frozen=True)
    return all(_is_same(getattr(kind, n), getattr(made, n)) for n in ("__eq__", "__hash__"))


def _is_same(function: Any, other: Any) -> bool:
    code, its = getattr(function, "__code__", None), getattr(other, "__code__", None)
    return (
        code is not None
        and its is not None
        and (code.co_code, code.co_consts, code.co_names, code.co_varnames)
        == (its.co_code, its.co_consts, its.co_names, its.co_varnames)
        and function.__closure__ is None
    )


@by_class
def _test(kind: Any, shape: Shape, admitted: Shape) -> PlainTest:
    """The test of many rows."""
    values, unpacked, is_odd, _ = _asked_of(kind, shape, admitted)
    each = ["for row in rows:", "    if row.__class__ is not Kind:", "        return False"]
    each += [f"    {line}" for line in unpacked]
    each += [f"    if {is_odd}:", "        return False", "return True"]
    one = ["if row.__class__ is not Kind:", "    return True", *unpacked, f"return {is_odd}"]
    return PlainTest(
        kind=kind,
        are_plain=build("all_plain", careful("all_plain", "rows", each, "False"), values),
        is_odd=build("is_odd", careful("is_odd", "row", one, "True"), values),
        fields=_fields(kind, shape),
        shape=shape,
    )


@by_class
def _field(kind: Any, shape: Shape, number: int) -> RowField:
    """What finds the place of a row by one of its fields."""
    values, unpacked, is_odd, parts = _asked_of(kind, shape)
    mixed = [kinds if len(kinds) == 1 else MIXED for kinds in shape]
    each = list(zip(parts, mixed, strict=True))
    text = RowText(unpacked, is_odd, parts[number], values.by_name, each)
    sure = ["if row.__class__ is not Kind:", "    raise OtherClass"]
    if unpacked:
        sure += ["try:", f"    {unpacked[0]}", "except ValueError:", "    raise OtherClass"]
    sure += [f"if {is_odd}:", "    hash(row)", f"return {parts[number]}"]
    place = build("place", _function("place", "row", sure), values)
    return RowField(kind, _reader(kind, number), place, text)


def _asked_of(
    kind: Any, shape: Shape, admitted: Shape = ()
) -> tuple[BoundValues, list[str], str, list[str]]:
    """What texts have by name, the line that unpacks a row, the test, and what its parts are."""
    values = BoundValues()
    values.by_name |= {"Kind": kind, "MIXED": MIXED, "OtherClass": OtherClass}
    values.by_name["reraise_asynchronous"] = reraise_asynchronous
    parts, unpacked = _parts(kind, len(shape))
    some = [MIXED & each for each in admitted] or [MIXED] * len(shape)
    asked = [_asked(*of, values) for of in zip(parts, shape, some, strict=True)]
    return values, unpacked, " or ".join(asked), parts


def _parts(kind: Any, width: int) -> tuple[list[str], list[str]]:
    """What the parts of a row are called, and the line that gives them these names, if any."""
    if kind in PLAIN:
        return ["row"], []
    if issubclass(kind, tuple):
        names = [f"part_{number}" for number in range(width)]
        return names, [f"{', '.join(names)}, = row"]
    return [f"row.{name}" for name in plain_fields(kind) or ()], []


def _function(name: str, parameter: str, lines: Sequence[str]) -> str:
    return f"def {name}({parameter}):\n" + "".join(f"    {line}\n" for line in lines)


def careful(name: str, parameter: str, lines: Sequence[str], otherwise: str) -> str:
    """A test that says otherwise where a row cannot be read: no such field, another length."""
    tried = ["try:", *(f"    {line}" for line in lines), "except Exception as error:"]
    caught = ["    reraise_asynchronous(error)", f"    return {otherwise}"]
    return _function(name, parameter, [*tried, *caught])


def _asked(part: str, kinds: frozenset[type], mixed: frozenset[type], values: BoundValues) -> str:
    """Whether a part of a row is of another class, or a NaN, as text."""
    if len(kinds) > 1:
        name = "MIXED" if mixed == MIXED else values.name(mixed, "Mixed")
        return f"{part}.__class__ not in {name} or {part} != {part}"
    (kind,) = kinds
    is_other = f"{part}.__class__ is not {values.name(kind, kind.__name__)}"
    if kind is float or kind is Decimal:
        return f"{is_other} or {part} != {part}"
    return f"{is_other} or {part}.tzinfo is not None" if kind is datetime.datetime else is_other
