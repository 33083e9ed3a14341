"""Cuts: the places where monotone conditions divide an order.

    o.price - a.average > 10        prices above a place that depends on the average
    n.value - o.at < a day          moments after a place that depends on n.value
    o.price / a.average > 1.5       prices above a place, for averages above 0

A condition that reads one value of each side, and gets truer or falser as that value grows, is
true on one side of a place in the order of the values. The place, a `Cut`, is compared with a value
by evaluating the condition. So floats are exact: nothing is computed but what was written.

Sound:  each operation of floats is monotone, because it rounds the exact result. Integers are so
        small that their sums and products are exact, also as floats, so that equal numbers give
        equal results; floats are so small that no result is infinite. Moments have no zone, or UTC.
Needs:  sums, constant factors, a product or quotient of the two values if none is negative, and
        functions that are `monotone`.
Cost:   an evaluation for each comparison with a place: O(log n) of a look-up.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType
from typing import Any

from optimizer.expr import (
    Again,
    Attribute,
    Call,
    Constant,
    Expr,
    Item,
    Operation,
    Parameter,
    constant,
    parts,
    rebuilt,
    walk,
)
from optimizer.expressions.knowledge import (
    IS_NUMBER,
    MONOTONE,
    SKIPS_NONE,
    ComparedLike,
    Pure,
    Shapes,
)
from optimizer.expressions.operand_checks import Comparison, SideOf, declared_class, orders_in
from optimizer.record import record

Directions = Mapping[Expr, int]
"""The values that an expression reads: 1 for one with which it grows, -1 if it falls."""
Apply = Callable[[Any, Any], Any]
"""A function of a left and a right value."""
NUMBERS = (int, float, bool)
MOMENTS = (date, datetime, timedelta)
ROUNDING = (float, int, math.floor, math.ceil)
LARGEST = 1 << 64
"""Numbers are smaller, and divisors larger than its inverse."""
FARTHEST = timedelta(10_000_000)
EXACT = 1 << 53
"""Integers below it are exact as floats."""
BITS = range(48, 18, -1)
"""Sizes of integers that are tried, the largest first."""
MOST_OPERATIONS = 10
APPLIED: Mapping[str, Apply] = MappingProxyType(
    {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
)


def comparisons_with_cuts(test: Expr, shapes: Shapes, side_of: SideOf) -> tuple[Comparison, ...]:
    """Return comparisons of values of the left side with cuts, which follow from a test.

    Return none for sums of values that are declared as integers or as moments: they need no cuts.
    """
    found = [_Condition(shapes, side_of).comparison(*order) for order in orders_in(test)]
    return () if None in found else tuple(each for each in found if each is not None)


@record
class CutPoint(Pure):
    """A check of a value, after which it is comparable with cuts.

    >>> CutPoint(NUMBERS, 1 << 48)(1.5)
    1.5
    """

    classes: tuple[type, ...]
    largest: int = 0
    """Integers are smaller."""
    least: float | None = None
    """The least number; None if all are admitted."""

    def __call__(self, value: Any) -> Any:
        kind = value.__class__
        if kind not in self.classes or not self._is_inside(kind, value):
            raise TypeError(f"{value!r} is not what is compared here")
        return value

    def _is_inside(self, kind: type, value: Any) -> bool:
        if kind is timedelta:
            return bool(-FARTHEST < value < FARTHEST)
        if kind is datetime:
            is_utc = value.tzinfo is UTC and len(self.classes) > 1
            return value.tzinfo is None or is_utc
        if kind is date:
            return True
        limit = LARGEST if kind is float else self.largest
        return bool(-limit < value < limit) and (self.least is None or value >= self.least)

    def __repr__(self) -> str:
        return "number" if self.classes is NUMBERS else "moment"


@record
class CutOf(Pure):
    """Makes the cut of a value of the right side.

    The condition `less` < `greater`, or <= if `closed`, is about `Parameter(0)`, a value of the
    left side, and `Parameter(1)`, a value of the right side.
    """

    less: Expr
    greater: Expr
    closed: bool
    is_low: bool
    """True if the condition is true for left values below the cut."""
    rises: bool
    """True if cuts of greater right values are greater."""
    point: CutPoint

    def __call__(self, value: Any) -> Cut:
        return Cut(self, self.point(value))

    def __repr__(self) -> str:
        return "cut"

    def condition(self, right: Any) -> Callable[[Any], bool]:
        """Return the condition of left values, for a right value."""
        less, greater = _function(self.less), _function(self.greater)
        if self.closed:
            return lambda left: bool(less(left, right) <= greater(left, right))
        return lambda left: bool(less(left, right) < greater(left, right))


class Cut(ComparedLike):
    """A place between values of the left side; cuts of one condition have an order, too.

    It equals no value of the left side.
    """

    __slots__ = ("_holds", "of")

    def __init__(self, of: CutOf, value: Any) -> None:
        self.of = of
        self.value = value
        self._holds: Callable[[Any], bool] | None = None

    def __lt__(self, other: Any) -> bool:
        if other.__class__ is Cut:
            low, high = (self, other) if self.of.rises else (other, self)
            return self._is_of(other) and bool(low.value < high.value)
        return self._test(other) is not self.of.is_low

    def __gt__(self, other: Any) -> bool:
        if other.__class__ is Cut:
            return bool(other < self)
        return self._test(other) is self.of.is_low

    def __le__(self, other: Any) -> bool:
        return bool(self == other or self < other)

    def __ge__(self, other: Any) -> bool:
        return bool(self == other or self > other)

    def __eq__(self, other: Any) -> bool:
        return other.__class__ is Cut and self._is_of(other) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"cut({self.value!r})"

    def _is_of(self, other: Cut) -> bool:
        return self.of is other.of or self.of == other.of

    def _test(self, left: Any) -> bool:
        """Return True if the condition is true for a left value."""
        if self._holds is None:
            self._holds = self.of.condition(self.value)
        return self._holds(left)


class _Condition:
    """Reads one condition: the value of each side, and how the condition depends on it."""

    def __init__(self, shapes: Shapes, side_of: SideOf) -> None:
        self._shapes = shapes
        self._side_of = side_of
        self._operations = 0
        self._has_spans = False
        self._classes: tuple[type, ...] | None = None
        self._least: dict[Expr, float] = {}

    def comparison(self, less: Expr, greater: Expr, closed: bool) -> Comparison | None:
        """Return `less` < `greater`, or <= if `closed`, as a comparison with a cut."""
        self._has_spans = any(map(_is_span, (*walk(less), *walk(greater))))
        read = self._read(less), self._read(greater)
        if read[0] is None or read[1] is None or read[0][0] is not read[1][0]:
            return None
        directions = _merge(read[1][1], _negate(read[0][1]))
        if directions is None or len(directions) != 2:
            return None
        left, right = sorted(directions, key=lambda value: self._side_of(value) == "right")
        if self._side_of(left) != "left" or self._side_of(right) != "right":
            return None
        ends = [renamed(end, {left: Parameter(0), right: Parameter(1)}) for end in (less, greater)]
        largest = _largest_integers(ends)
        if largest is None or not self._needs_cut(left, right):
            return None
        points = [
            CutPoint(self._classes or NUMBERS, largest, self._least.get(of)) for of in (left, right)
        ]
        rises, is_low = directions[left] != directions[right], directions[left] < 0
        cut = CutOf(ends[0], ends[1], closed, is_low, rises, points[1])
        return Comparison(call_of(points[0], left), call_of(cut, right), is_low, closed)

    def _needs_cut(self, left: Expr, right: Expr) -> bool:
        """Return False for sums of values that are declared as integers, or as moments."""
        kinds = {declared_class(left, self._shapes), declared_class(right, self._shapes)}
        has_factors = not all(map(_is_in_sum, (*walk(left), *walk(right))))
        return has_factors or bool(self._least) or not kinds <= {int, bool}

    def _read(self, expr: Expr) -> tuple[type, Directions] | None:
        """Return float or timedelta, the kind of values of an expression, and what it reads.

        Return None if it is not known to be monotone.
        """
        self._operations += 1
        if self._operations > 2 * MOST_OPERATIONS:
            return None
        match expr:
            case Constant():
                return _read_constant(expr)
            case Again(of):
                return self._read(of)
            case Operation("-", (of,)):
                return _turned(self._read(of))
            case Operation("+" | "-" as symbol, (a, b)):
                return self._sum(symbol, a, b)
            case Operation("*" | "/" as symbol, (a, b)):
                return self._product(symbol, a, b)
            case Call(Attribute(of, "total_seconds"), (), ()) | Attribute(of, "days") if (
                self._side_of(of) is None
            ):
                found = self._read(of)
                return None if found is None or found[0] is not timedelta else (float, found[1])
            case Call(Constant(function), arguments, ()) if self._side_of(expr) is None:
                return self._call(function, arguments)
            case _:
                return self._value(expr)

    def _value(self, expr: Expr) -> tuple[type, Directions] | None:
        """Return a number of one side; None if moments are compared, or it is of both sides."""
        is_moment = declared_class(expr, self._shapes) is datetime
        is_number = self._side_of(expr) is not None and not is_moment and self._takes(NUMBERS)
        return (float, {expr: 1}) if is_number else None

    def _takes(self, classes: tuple[type, ...]) -> bool:
        """Note the classes of the compared values; return False if others are noted."""
        is_known = self._classes in (None, classes)
        self._classes = classes
        return is_known

    def _sum(self, symbol: str, a: Expr, b: Expr) -> tuple[type, Directions] | None:
        """Return a sum or difference; a value of one side is not divided any more."""
        whole = Operation(symbol, (a, b))
        if self._side_of(whole) is not None:
            return self._value(whole)
        if symbol == "-" and self._is_of_moments(a, b):
            directions = _merge({a: 1}, {b: -1})
            return (timedelta, directions) if directions and self._takes(MOMENTS) else None
        found, other = self._read(a), self._read(b)
        other = _turned(other) if symbol == "-" else other
        if found is None or other is None or found[0] is not other[0]:
            return None
        directions = _merge(found[1], other[1])
        return None if directions is None else (found[0], directions)

    def _is_of_moments(self, a: Expr, b: Expr) -> bool:
        """Return True for values of both sides whose difference is a span of time."""
        sides = {self._side_of(a), self._side_of(b)}
        kinds = {declared_class(value, self._shapes) for value in (a, b)}
        return sides == {"left", "right"} and (self._has_spans or not kinds.isdisjoint(MOMENTS))

    def _product(self, symbol: str, a: Expr, b: Expr) -> tuple[type, Directions] | None:
        """Return a product with a constant, or a product or quotient of the two values."""
        whole = Operation(symbol, (a, b))
        if self._side_of(whole) is not None:
            return self._value(whole)
        if symbol == "*" and isinstance(a, Constant):
            a, b = b, a
        if isinstance(b, Constant):
            found = self._read(a)
            if found is None or found[0] is not float or not _is_factor(b):
                return None
            return found if b.value > 0 else _turned(found)
        if {self._side_of(a), self._side_of(b)} != {"left", "right"} or not self._takes(NUMBERS):
            return None
        self._least |= {a: 0.0, b: 0.0 if symbol == "*" else 1 / LARGEST}
        return float, {a: 1, b: 1 if symbol == "*" else -1}

    def _call(self, function: Any, arguments: tuple[Expr, ...]) -> tuple[type, Directions] | None:
        """Return a call of a function that rounds a number, or is marked as monotone."""
        if any(function is each for each in ROUNDING) and len(arguments) == 1:
            found = self._read(arguments[0])
            return None if found is None or found[0] is not float else found
        if getattr(function, SKIPS_NONE, False):  # None is no `CutPoint`
            called, *rest = arguments
            function, arguments = getattr(called, "value", None), tuple(rest)
        directions = getattr(function, MONOTONE, ())
        merged: Directions | None = {}
        for direction, argument in zip(directions, arguments, strict=False):
            if direction and self._side_of(argument) is not None:
                merged = _merge(merged, {argument: direction})
            elif direction or not isinstance(argument, Constant):
                return None
        classes = (datetime,) if 0 in directions else MOMENTS  # others read a time zone
        known = len(directions) == len(arguments) and self._takes(classes)
        kind = float if getattr(function, IS_NUMBER, False) else timedelta
        return (kind, merged) if merged and known else None


def _is_in_sum(expr: Expr) -> bool:
    """Return True for a sum, and for what it may be a sum of."""
    if isinstance(expr, Operation):
        return expr.operator in ("+", "-")
    return isinstance(expr, Parameter | Attribute | Item | Constant)


def _is_span(expr: Expr) -> bool:
    """Return True for a constant span of time, and for a part of a span."""
    return (isinstance(expr, Constant) and expr.kind is timedelta) or (
        isinstance(expr, Attribute) and expr.name in ("total_seconds", "days")
    )


def _read_constant(of: Constant) -> tuple[type, Directions] | None:
    """Return the kind of a constant; None if it is large, or of another class."""
    if of.kind is timedelta:
        return (timedelta, {}) if -FARTHEST < of.value < FARTHEST else None
    is_number = of.kind in NUMBERS and -LARGEST < of.value < LARGEST
    return (float, {}) if is_number else None


def _is_factor(of: Constant) -> bool:
    """Return True for a number that is not zero, or near to it, or large."""
    return of.kind in NUMBERS and 1 / LARGEST < abs(of.value) < LARGEST


def _merge(one: Directions | None, other: Directions | None) -> Directions | None:
    """Return the directions of a sum; None if a part grows and another falls with a value."""
    if one is None or other is None:
        return None
    if any(other.get(value, direction) != direction for value, direction in one.items()):
        return None
    return {**one, **other}


def _negate(of: Directions) -> Directions:
    return {value: -direction for value, direction in of.items()}


def _turned(of: tuple[type, Directions] | None) -> tuple[type, Directions] | None:
    return None if of is None else (of[0], _negate(of[1]))


def renamed(expr: Expr, names: Mapping[Expr, Expr]) -> Expr:
    """Return an expression with parameters for values, and without slots."""
    if expr in names:
        return names[expr]
    if isinstance(expr, Constant):
        return constant(expr.value)
    return rebuilt(expr, tuple(renamed(part, names) for part in parts(expr)))


def call_of(function: Pure, *of: Expr) -> Call:
    """Return a call of a record, which is equal to a call of an equal record."""
    return Call(Constant(function, function), of)


def _largest_integers(ends: Sequence[Expr]) -> int | None:
    """Return the bound of integers below which all operations are exact; None if there is none."""
    for bits in BITS:
        with suppress(OverflowError):
            for end in ends:
                _size(end, 1 << bits)
            return 1 << bits
    return None


def _size(expr: Expr, of_values: int) -> float:
    """Return a bound of the integers that an expression may be; infinite for floats.

    Raise `OverflowError` if integers are not exact as floats.
    """
    match expr:
        case Parameter():
            return of_values
        case Constant():
            return abs(expr.value) if expr.kind in (int, bool) else math.inf
        case Operation("/", operands):
            for operand in operands:
                _size(operand, of_values)
            return math.inf
        case Operation(symbol, operands):
            sizes = [_size(operand, of_values) for operand in operands]
            found = math.prod(sizes) if symbol == "*" else sum(sizes)
        case Call(_, (of,), ()):
            found = _size(of, of_values)
        case _:
            return math.inf
    if EXACT <= found < math.inf:
        raise OverflowError
    return found


def _function(expr: Expr) -> Apply:
    """Return the function of the two values that an expression computes."""
    match expr:
        case Parameter(0):
            return lambda left, right: left
        case Parameter():
            return lambda left, right: right
        case Constant():
            value = expr.value
            return lambda left, right: value
        case Operation("-", (of,)):
            inner = _function(of)
            return lambda left, right: -inner(left, right)
        case Operation(symbol, (Parameter(0), Parameter(1))):
            return APPLIED[symbol]
        case Operation(symbol, (a, b)):
            apply, one, two = APPLIED[symbol], _function(a), _function(b)
            return lambda left, right: apply(one(left, right), two(left, right))
        case Call(Attribute(of, "total_seconds")):
            inner = _function(of)
            return lambda left, right: inner(left, right).total_seconds()
        case Attribute(of, "days"):
            inner = _function(of)
            return lambda left, right: inner(left, right).days
        case Again(of):
            return _function(of)
        case Call(Constant(function), arguments, ()):
            functions = [_function(each) for each in arguments]
            return lambda left, right: function(*[each(left, right) for each in functions])
        case _:
            raise TypeError(f"no function for {type(expr).__name__}")
