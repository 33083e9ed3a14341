"""Tests of fields against constants: the values that pass, and the values of pinned fields.

A field is a path of names and positions from the row to a value. Reading it may raise, if the class
of the row does not declare its fields or length.

    row.kind          ("kind",)
    row[1]            (1,), or ("kind",) of a named tuple
    row[0].address    (0, "address")

`find_values` finds the values of a field that can pass a condition, for look-ups in an index.

    o.customer == 7 and o.amount > 3          customer: 7
    o.amount > 3 and o.customer == 7          customer: 7, where the amount of a row is a number
    o.customer in (7, 8)                      customer: 7 or 8
    3 < o.amount <= 10 and o.paid             amount: more than 3, up to 10
    row[1] == 7                               [1]: 7

Earlier parts of the condition must not raise for the rows that are left out: they cannot raise, or
they compare fields with constants and do not raise for rows whose fields are of certain classes.
Other rows are tested with the condition itself, up to the parts that were understood.

Sound:  a dictionary finds the constants of a field exactly if `==` is true, by the contract for
        rows. Rows without the field, or with a value that has no hash or may not compare with the
        ends of a range, are tested.

`constant_tests` finds the constants that a condition pins the fields of a row to.

    o.kind == "sale" and o.price > 3     kind: {"sale"}
    o.kind in ("sale", "gift")           kind: {"sale", "gift"}
    o.price > 3 and o.kind == "sale"     kind: {"sale"}, where the price of a row is a number
    o.price > 3                          nothing

So readers of rows are looked up by that field, and not each condition is tested. Earlier parts must
not raise, as above.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import reduce
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any

from optimizer.expr import (
    Attempt,
    Attribute,
    Constant,
    Display,
    Expr,
    Item,
    Operation,
    Or,
    Parameter,
    Slot,
    SlotValue,
    conjuncts,
    constant,
)
from optimizer.expressions.knowledge import (
    Shape,
    Shapes,
    constructor,
    readable_fields,
    shape_of,
    total,
)
from optimizer.kinds.kind import is_uuid
from optimizer.record import record

Path = tuple[str | int, ...]


def path_of(expr: Expr, shapes: Shapes) -> Path | None:
    """Return the path that an expression reads of the first binding; None for other expressions.

    The first binding itself is no path.
    """
    match expr:
        case Attribute(of, name):
            last: str | int = name
        case Item(of, Constant(int() as position)):
            last = _canonical(position, shape_of(of, shapes))
        case _:
            return None
    if isinstance(of, Parameter):
        return (last,) if of.index == 0 else None
    path = path_of(of, shapes)
    return None if path is None else (*path, last)


def _canonical(position: int, shape: Shape) -> str | int:
    """Return one name for the ways to read an item of a tuple, if its length is known."""
    if isinstance(shape, tuple):
        return position % len(shape) if -len(shape) <= position < len(shape) else position
    if not isinstance(shape, type) or getattr(shape, "__getitem__", None) != tuple.__getitem__:
        return position
    names = constructor(shape) or ()
    is_field = -len(names) <= position < len(names) and names[position] in readable_fields(shape)
    return names[position] if is_field else position


def path_reader(path: Path) -> Callable[[Any], Any]:
    """Return the function that reads a path of a row.

    >>> path_reader((1, "real"))(("a", 7))
    7
    """
    first, *others = [attrgetter(s) if isinstance(s, str) else itemgetter(s) for s in path]
    if not others:
        return first
    return lambda row: reduce(lambda value, read: read(value), others, first(row))


def path_expression(path: Path) -> Expr:
    """Return the expression that reads a path of the first binding."""
    found: Expr = Parameter(0)
    for step in path:
        found = Attribute(found, step) if isinstance(step, str) else Item(found, constant(step))
    return found


def path_text(path: Path) -> str:
    """Return a path as it is written after a row.

    >>> path_text(("kind",)), path_text((0, "address")), path_text((1,))
    ('kind', '[0].address', '[1]')
    """
    return "".join(f".{s}" if isinstance(s, str) else f"[{s}]" for s in path).removeprefix(".")


_IN_ORDER = (int, float, bool, Decimal, Fraction, str, bytes, date, datetime, time, timedelta)
_FOUND = frozenset({*_IN_ORDER, type(None)})
_LESS = {"<": False, "<=": True}
_GREATER = {">": False, ">=": True}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


@record
class AnyOf:
    """Any of several values."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return " or ".join(map(repr, self.values))


@record
class Between:
    """A range from one value to another; None is no end, and `closed` includes the ends."""

    low: Any
    high: Any
    closed: tuple[bool, bool] = (False, False)

    def __str__(self) -> str:
        from_, to = ("from" if self.closed[0] else "above"), ("to" if self.closed[1] else "below")
        ends = [(from_, self.low), (to, self.high)]
        return " ".join(f"{word} {end!r}" for word, end in ends if end is not None)


@record
class FieldValues:
    """The values of a field that can pass a condition.

    `needs` maps other fields to the classes whose values make no earlier part raise (None: all
    classes, if the field can be read); `asked` is the number of parts of the condition that decide.
    The values imply the parts at `places`.
    """

    field: Path
    values: Hashable
    needs: Needs
    asked: int
    places: frozenset[int]


def find_values(parts: Sequence[Expr], shapes: Shapes) -> list[FieldValues]:
    """Return the values that can pass a condition, for each field that it compares with constants.

    Parameters
    ----------
    parts: the tests of the first binding, in their order.
    """
    values: dict[Path, FieldValues] = {}
    ranges: dict[Path, FieldValues] = {}
    needs: dict[Path, Classes | None] = {}
    for place, part in enumerate(parts):
        match _values_of_test(part, shapes):
            case field, AnyOf(several):
                here = FieldValues(
                    field, _one_or_any(several), dict(needs), place + 1, frozenset({place})
                )
                if field not in values or len(several) == 1:
                    values[field] = here
                if not total(path_expression(field), shapes):
                    needs.setdefault(field, None)
                continue
            case field, Between() as bounds:
                ranges[field] = _narrow_range(ranges.get(field), field, bounds, dict(needs), place)
        if total(part, shapes):
            continue
        comparison = compared_field(part, shapes)
        if comparison is None:
            break
        _limit_classes(needs, *comparison)
    return list({**ranges, **values}.values())


def _limit_classes(needs: dict[Path, Classes | None], field: Path, allowed: Classes) -> None:
    """Allow only some classes of values of a field."""
    known = needs.get(field)
    needs[field] = allowed if known is None else known & allowed


def _one_or_any(values: tuple[Any, ...]) -> Any:
    return values[0] if len(values) == 1 else AnyOf(values)


def _values_of_test(part: Expr, shapes: Shapes) -> tuple[Path, AnyOf | Between] | None:
    """Return the field that a single test compares with constants, and the values that pass; else
    None."""
    if not isinstance(part, Operation) or len(part.operands) != 2:
        return None
    operator, (left, right) = part.operator, part.operands
    if isinstance(left, Constant) and operator in _MIRRORED:
        operator, left, right = _MIRRORED[operator], right, left
    field = path_of(left, shapes)
    if field is None:
        return None
    match operator, right:
        case "==", Constant() if _is_found(value := _value_or_slot(right)):
            return field, AnyOf((value,))
        case "in", Constant() if right.kind is tuple or right.kind is frozenset:
            return _any_of(field, right.value)
        case "in", Display("tuple" | "list" | "set", items):
            values = tuple(_value_or_slot(item) for item in items if isinstance(item, Constant))
            return _any_of(field, values) if len(values) == len(items) else None
        case "<" | "<=", Constant() if _is_ordered_constant(value := _value_or_slot(right)):
            return field, Between(None, value, (False, _LESS[operator]))
        case ">" | ">=", Constant() if _is_ordered_constant(value := _value_or_slot(right)):
            return field, Between(value, None, (_GREATER[operator], False))
        case _:
            return None


def _value_or_slot(constant: Constant) -> Any:
    """Return the value of a constant, or the holder that stands for the values of all queries of a
    shape."""
    return constant.held if isinstance(constant, Slot) else constant.value


def _kind(value: Any) -> type[Any]:
    """Return the class of a value, or of the value in its holder."""
    return type(value.value if isinstance(value, SlotValue) else value)


def _any_of(field: Path, values: Any) -> tuple[Path, AnyOf] | None:
    """Return a field with its different values; None if there are none, or one cannot be looked
    up."""
    different = tuple(dict.fromkeys(values)) if all(map(_is_found, values)) else ()
    return (field, AnyOf(different)) if different else None


def _is_found(value: Any) -> bool:
    """Return True if a dictionary finds a constant exactly if `==` is true."""
    kind = _kind(value)
    if kind is tuple:
        return all(map(_is_found, value))
    if isinstance(value, Enum):
        return "__eq__" not in {name for base in kind.__mro__[:-1] for name in vars(base)}
    return (kind in _FOUND or is_uuid(kind)) and not _is_nan(value)


def _is_ordered_constant(value: Any) -> bool:
    return _kind(value) in _IN_ORDER and not _is_nan(value)


def _is_nan(value: Any) -> bool:
    return value.is_nan() if type(value) is Decimal else type(value) is float and value != value


def _narrow_range(
    known: FieldValues | None,
    field: Path,
    bounds: Between,
    needs: Needs,
    place: int,
) -> FieldValues:
    """Return the range of a field with one more end, from the condition at `place`.

    Return `known` unchanged if it has that end already, or if the two ends do not compare; a
    new range if `known` is None. `needs` maps fields to the classes that earlier parts require.
    """
    if known is None:
        return FieldValues(field, bounds, needs, place + 1, frozenset({place}))
    old = known.values
    assert isinstance(old, Between)
    own = {other: classes for other, classes in needs.items() if other != field}
    wider = replace(known, needs=own, asked=place + 1, places=known.places | {place})
    if bounds.low is not None and old.low is None and _are_comparable(bounds.low, old.high):
        closed = (bounds.closed[0], old.closed[1])
        return replace(wider, values=Between(bounds.low, old.high, closed))
    if bounds.high is not None and old.high is None and _are_comparable(old.low, bounds.high):
        closed = (old.closed[0], bounds.closed[1])
        return replace(wider, values=Between(old.low, bounds.high, closed))
    return known


def _are_comparable(low: Any, high: Any) -> bool:
    """Return True if the ends of a range are of one kind."""
    numbers = (int, float, bool, Decimal, Fraction)
    kinds = (_kind(low), _kind(high))
    return kinds[0] is kinds[1] or (kinds[0] in numbers and kinds[1] in numbers)


Pins = Mapping[Path, frozenset[Any]]
Classes = frozenset[type]
Needs = Mapping[Path, "Classes | None"]
"""Fields that must be readable, with the allowed classes of their values; None for all classes."""
KINDS = (str, int, bytes)
"""Constants that a dictionary finds exactly if `==` is true."""
_ORDERS = frozenset({"<", "<=", ">", ">="})
NUMBERS: Classes = frozenset({int, float, bool})
_COMPARABLE: Mapping[type, Classes] = {
    **dict.fromkeys(NUMBERS, NUMBERS),
    str: frozenset({str}),
    bytes: frozenset({bytes}),
}
"""Classes of values that a constant compares with."""


@record
class Threshold:
    """A limit that the first condition compares a number of a row with.

    `place` is the binding, None for the only one; `field` its field or position, None for the
    binding itself.
    """

    place: int | None
    field: str | int | None
    limit: int | float
    is_low: bool


def first_threshold(test: Expr, bindings: int) -> Threshold | None:
    """Return the limit of the first part of a condition; None if it compares nothing with a
    number."""
    part = next(iter(conjuncts(test)))
    match part.of if isinstance(part, Attempt) else part:
        case Operation(operator, (read, Constant() as constant)) if operator in _ORDERS:
            pass
        case Operation(operator, (Constant() as constant, read)) if operator in _ORDERS:
            operator = _MIRRORED[operator]
        case _:
            return None
    if constant.kind not in (int, float) or _is_nan(constant.value):
        return None
    match read:
        case Parameter(index):
            name: str | int | None = None
        case Attribute(Parameter(index), name) | Item(Parameter(index), Constant(int() as name)):
            pass
        case _:
            return None
    place = index if bindings > 1 else None
    return Threshold(place, name, constant.value, operator in _GREATER)


class ConstantTests(Mapping[Path, frozenset[Any]]):
    """The fields that conditions pin, each with the values that pass.

    `classes`: fields whose values must be of certain classes, or an earlier part may raise.
    `wants`: the fields that rows could be looked up by, and their values (`find_values`).
    `threshold`: the limit of the first condition, for rows that are not of a table.
    """

    __slots__ = ("_pins", "classes", "threshold", "wants")

    def __init__(
        self,
        pins: Pins,
        classes: Needs = MappingProxyType({}),
        wants: Mapping[Path, Hashable] = MappingProxyType({}),
    ) -> None:
        self._pins = dict(pins)
        self.classes = dict(classes)
        self.wants = wants
        self.threshold: Threshold | None = None

    def __getitem__(self, field: Path) -> frozenset[Any]:
        return self._pins[field]

    def __iter__(self) -> Iterator[Path]:
        return iter(self._pins)

    def __len__(self) -> int:
        return len(self._pins)


NO_CONSTANT_TESTS = ConstantTests({})


def constant_tests(tests: Iterable[Expr], shapes: Shapes) -> ConstantTests:
    """Return the fields of the first binding that conditions pin, with the values that pass."""
    pins: dict[Path, frozenset[Any]] = {}
    classes: dict[Path, Classes | None] = {}
    needed: dict[Path, Classes | None] = {}
    for part in (part for test in tests for part in conjuncts(test)):
        found = _tests_of(part, shapes)
        if found:
            classes = dict(needed)
        for field, values in found.items():
            pins[field] = pins[field] & values if field in pins else values
            if not total(path_expression(field), shapes):
                needed.setdefault(field, None)
        if found or total(part, shapes):
            continue
        comparison = compared_field(part, shapes)
        if comparison is None:
            break
        _limit_classes(needed, *comparison)
    return ConstantTests(pins, classes)


def compared_field(part: Expr, shapes: Shapes) -> tuple[Path, Classes] | None:
    """Return the field that a condition compares with a constant, and the classes that cannot
    raise; else None."""
    match part:
        case Operation(operator, (read, Constant() as constant)) if operator in _ORDERS:
            pass
        case Operation(operator, (Constant() as constant, read)) if operator in _ORDERS:
            pass
        case _:
            return None
    allowed, field = _COMPARABLE.get(constant.kind), path_of(read, shapes)
    return None if allowed is None or field is None else (field, allowed)


def _tests_of(test: Expr, shapes: Shapes) -> Pins:
    """Return the constants that a test allows for each field; empty if it limits none."""
    match test:
        case Operation("==", (Constant(value), read)) | Operation("==", (read, Constant(value))):
            return _pin(path_of(read, shapes), (value,))
        case Operation("in", (read, Constant(tuple() | frozenset() as values))):
            return _pin(path_of(read, shapes), values)
        case Operation("in", (read, Display(_, items))):
            constants = [item.value for item in items if isinstance(item, Constant)]
            return _pin(path_of(read, shapes), constants) if len(constants) == len(items) else {}
        case Or(parts):
            return _union_of_pins([_tests_of(part, shapes) for part in parts])
        case _:
            return {}


def _pin(field: Path | None, values: Iterable[Any]) -> Pins:
    """Return the values by the field; empty for no field, or a value of another class."""
    found = list(values)
    if field is None or not all(type(value) in KINDS for value in found):
        return {}
    return {field: frozenset(found)}


def _union_of_pins(alternatives: list[Pins]) -> Pins:
    """Return the fields that every alternative tests, each with the values of all alternatives."""
    names = set.intersection(*(set(constant_tests) for constant_tests in alternatives))
    return {
        name: frozenset().union(*(constant_tests[name] for constant_tests in alternatives))
        for name in names
    }
