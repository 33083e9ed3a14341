"""Turns: the moment at which a condition of a row and a moment gets true, or false.

    now() - h.at < timedelta(seconds=h.n)       true until a moment that depends on h
    h.rate * (now() - h.at).total_seconds() >= h.cap        true from a moment on, or until one

A condition that reads one moment, and of the other side any values, is true in one interval of time
if it is monotone in the moment. Its end, the turn, is computed when the row comes, by evaluating
the condition: two steps towards the root of its difference, then halves, to the microsecond. So
floats, decimals and days are exact: nothing is computed but what was written.

Sound:  each operation is monotone, because it rounds the exact result; the values of rows are of
        classes of which this is known, and neither so great nor so small that a product is infinite
        at an end of time: 0 times that is NaN. The sign of a factor of a row is seen at both ends.
        Moments are without a zone, or in UTC, and of the years 1000 to 9000; a condition that
        raises at both ends of these makes an error row, which is tested as it is written.
Needs:  one moment of one side, which no other value of its side is compared with.
Cost:   some 10 evaluations of the condition for a row, and 100 if it rounds, as to days.
"""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from optimizer.expr import (
    Again,
    Attribute,
    Call,
    Conditional,
    Constant,
    Expr,
    Item,
    Operation,
    Parameter,
    parts,
    walk,
)
from optimizer.expressions.cuts import call_of, renamed
from optimizer.expressions.knowledge import (
    IS_BARE,
    NEAR,
    SKIPS_NONE,
    Pure,
    Shapes,
    directions_in,
    monotone,
    shape_of,
)
from optimizer.expressions.operand_checks import ORDERS, Comparison, SideOf, is_extreme, orders_in
from optimizer.kinds.fields import by_class
from optimizer.kinds.kind import class_of, hints_of, kind_of
from optimizer.record import record

Values = tuple[Any, ...]
"""The moment, then the values of the row."""
CLASSES = frozenset({int, float, bool, Decimal, datetime, date, timedelta, str})
"""Classes whose arithmetic is monotone; texts are options of functions."""
FIRST = datetime(1000, 1, 1)
MICROSECOND = timedelta(microseconds=1)
SPAN = (datetime(9000, 1, 1) - FIRST) // MICROSECOND
LAST = FIRST + SPAN * MICROSECOND
NEVER = LAST + MICROSECOND
"""After all moments."""
EITHER = 2
"""The slope of a value that grows or falls, as a factor of the row says."""
ROUNDING = (float, int, math.floor, math.ceil, round)
EXTREMES = (min, max)
OF_MOMENT = frozenset({"date", "timestamp"})
"""Methods of moments whose results never fall as time passes."""
APPLIED = MappingProxyType(
    {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": operator.truediv,
        "//": operator.floordiv,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
)


def comparisons_with_turns(test: Expr, shapes: Shapes, side_of: SideOf) -> tuple[Comparison, ...]:
    """Return comparisons of a moment of one side with the turns of the other side's rows.

    They are true where the test is; return none if it is not known to be monotone in a moment.
    """
    if not isinstance(test, Operation) or test.operator not in (*ORDERS, "not"):
        return ()
    found: list[Comparison] = []
    every = [*orders_in(test)]
    for less, greater, closed in every:
        written = test if len(every) == 1 else Operation("<=" if closed else "<", (less, greater))
        ends = _compared(written, less, greater, shapes, side_of)
        if not ends:
            return ()
        found += ends
    return tuple(found)


def _compared(
    test: Expr, less: Expr, greater: Expr, shapes: Shapes, side_of: SideOf
) -> tuple[Comparison, ...]:
    """Return the comparisons of one order."""
    for side, other in (("right", "left"), ("left", "right")):
        moment = _moment_of(Operation("<", (less, greater)), side, shapes, side_of)
        if moment is None:
            continue
        reader = _Slopes(moment, lambda expr: side_of(expr) == other, _near(less, greater))
        slopes = reader.slope(less), reader.slope(greater)
        slope = _common(None if slopes[0] is None else _turned(slopes[0]), slopes[1])
        if not slope or not reader.values:
            continue
        names: dict[Expr, Expr] = {moment: Parameter(0)}
        names |= {value: Parameter(place) for place, value in enumerate(reader.values, 1)}
        condition = renamed(test, names)
        ends = (renamed(greater, names), renamed(less, names))
        point = MomentOf(is_bare=reader.is_bare, is_local=reader.is_local)
        at = call_of(point, moment)
        made = []
        for is_start in (True, False):
            if slope in (1 if is_start else -1, EITHER):
                turn = call_of(TurnOf(condition, ends, slope, is_start, point), *reader.values)
                made.append(_comparison(turn, at, is_start=is_start, is_left=other == "left"))
        return tuple(made)
    return ()


def _near(*ends: Expr) -> Expr | None:
    """Return the end of an order that is monotone below a limit, if the other one is a constant
    below the limit."""
    for whole, constant_end in (ends, ends[::-1]):
        match whole, constant_end:
            case Call(Constant(function), arguments, ()), Constant(timedelta() as span):
                if getattr(function, SKIPS_NONE, False):
                    function, arguments = getattr(arguments[0], "value", None), arguments[1:]
                limit = getattr(function, NEAR, None)
                zones = {each.value for each in arguments if isinstance(each, Constant)}
                is_plain = span.__class__ is timedelta and zones <= {"UTC"}
                if limit is not None and is_plain and -limit <= span <= limit:
                    return whole
    return None


def _comparison(turn: Expr, at: Expr, *, is_start: bool, is_left: bool) -> Comparison:
    """Return start <= moment, or moment < end, with the side of the turn on its own side."""
    left, right = (turn, at) if is_left else (at, turn)
    return Comparison(left, right, left_is_low=is_start is is_left, closed=is_start)


def _moment_of(order: Expr, side: str, shapes: Shapes, side_of: SideOf) -> Expr | None:
    """Return the only value of a side that an order reads, if it is declared as a moment."""
    found = set(_paths(order, side, side_of))
    moment = found.pop() if len(found) == 1 else None
    return moment if moment is not None and _is_moment(moment, shapes) else None


def _paths(expr: Expr, side: str, side_of: SideOf) -> list[Expr]:
    """Return the fields of a side that an expression reads; not the rows that they are of."""
    if isinstance(expr, Call) and isinstance(expr.function, Attribute):
        expr = Call(expr.function.of, expr.arguments, expr.keywords)  # of a method's object
    if _is_path(expr):
        return [expr] if side_of(expr) == side else []
    return [path for part in parts(expr) for path in _paths(part, side, side_of)]


def _is_path(expr: Expr) -> bool:
    match expr:
        case Attribute(of, name) if name not in ("days", "year"):
            return _is_path(of)
        case Item(of, Constant()):
            return _is_path(of)
        case _:
            return isinstance(expr, Parameter)


def _is_moment(expr: Expr, shapes: Shapes) -> bool:
    match expr:
        case Attribute(of, name):
            kind = shape_of(of, shapes)
            return isinstance(kind, type) and name in _moments_of(kind)
        case _:
            return shape_of(expr, shapes) is datetime


@by_class
def _moments_of(kind: type) -> frozenset[str]:
    """Return the fields of a class that are declared as moments."""
    hints = hints_of(kind)
    return frozenset(name for name, hint in hints.items() if class_of(kind_of(hint)) is datetime)


class _Slopes:
    """Reads how an expression depends on a moment, and the values of the other side."""

    def __init__(
        self, moment: Expr, is_of_row: Callable[[Expr], bool], near: Expr | None = None
    ) -> None:
        self._moment = moment
        self._is_of_row = is_of_row
        self._near = near
        self.values: list[Expr] = []
        self.is_bare = True
        """True if only its date, year or timestamp is read."""
        self.is_local = False
        """True if its timestamp is read, which depends on the machine's zone without a zone."""

    def slope(self, expr: Expr) -> int | None:
        """Return 1 for an expression that grows with the moment, -1 for one that falls, 0 for one
        that does not read it, or `EITHER`; None if it is not known to be monotone."""
        if expr == self._moment:
            self.is_bare = False
            return 1
        if self._is_of_row(expr):
            if expr not in self.values:
                self.values.append(expr)
            return 0
        match expr:
            case Constant():
                return 0
            case Again(of):
                return self.slope(of)
            case Operation("-", (of,)):
                return _turned(self.slope(of))
            case Operation("+", (a, b)):
                return _common(self.slope(a), self.slope(b))
            case Operation("-", (a, b)):
                return _common(self.slope(a), _turned(self.slope(b)))
            case Operation("*" | "/" | "//" as symbol, (a, b)):
                return self._scaled(symbol, a, b)
            case Conditional(test, then, otherwise) if not self._reads(test):
                return self._first(test, _common(self.slope(then), self.slope(otherwise)))
            case Attribute(of, "days" | "year"):
                return self._of_moment(of)
            case Call(Attribute(of, name), (), ()):
                return self._of_method(of, name)
            case Call(Constant(function), arguments, ()):
                if expr is self._near:
                    moments = [each for each in arguments if not isinstance(each, Constant)]
                    return self._of_call(_difference, tuple(moments))
                return self._of_call(function, arguments)
            case _:
                return None

    def _reads(self, expr: Expr) -> bool:
        return any(part == self._moment for part in walk(expr))

    def _first(self, test: Expr, slope: int | None) -> int | None:
        """Return the slope, if a test can be computed of the row's values."""
        return slope if self.slope(test) == 0 else None

    def _scaled(self, symbol: str, a: Expr, b: Expr) -> int | None:
        """Return the slope of a product with, or quotient by, what does not read the moment."""
        one, other = self.slope(a), self.slope(b)
        if one is None or other is None or (one and other):
            return None
        if one == other == 0:
            return 0
        if (other and symbol != "*") or (symbol == "//" and not self._is_time(a)):
            return None
        factor = b if one else a
        if not isinstance(factor, Constant):
            return EITHER
        value = factor.value
        if isinstance(value, timedelta):
            value = value / MICROSECOND
        if not isinstance(value, int | float) or not value or is_extreme(value):
            return None
        slope = one or other
        return slope if value > 0 or slope == EITHER else -slope

    def _is_time(self, expr: Expr) -> bool:
        """Return True for sums of the moment and others, whose quotients are exact."""
        match expr:
            case Operation("+" | "-", operands):
                return any(map(self._is_time, operands))
            case Call(Attribute(of, "date"), (), ()):
                return self._is_time(of)
            case _:
                return expr == self._moment

    def _of_moment(self, of: Expr) -> int | None:
        """Return the slope of a part of a moment, or of a difference of moments."""
        was = self.is_bare
        found = self.slope(of) if self._is_time(of) else None
        self.is_bare = was if of == self._moment else self.is_bare
        return found

    def _of_method(self, of: Expr, name: str) -> int | None:
        if name == "total_seconds" and self._is_time(of):
            return self.slope(of)
        if name not in OF_MOMENT:
            return None
        self.is_local = self.is_local or name == "timestamp"
        return self._of_moment(of)

    def _of_call(self, function: Any, arguments: tuple[Expr, ...]) -> int | None:
        if any(function is each for each in ROUNDING) and len(arguments) == 1:
            return self.slope(arguments[0])
        if any(function is each for each in EXTREMES) and len(arguments) > 1:
            return _common(*map(self.slope, arguments))
        found = directions_in(function, arguments)
        if found is None:
            return None
        called, given, directions = found
        was, slopes = self.is_bare, [self.slope(each) for each in given]
        if getattr(called, IS_BARE, False) and self._moment in given:
            self.is_bare = was
        scaled = [
            None if slope is None or (slope and not direction) else slope * direction
            for slope, direction in zip(slopes, directions, strict=True)
        ]
        return _common(*scaled)


@monotone(1, -1)
def _difference(one: datetime, other: datetime) -> timedelta:
    return one - other


def _turned(slope: int | None) -> int | None:
    return slope if slope is None or slope == EITHER else -slope


def _common(*slopes: int | None) -> int | None:
    """Return the slope of a sum; None if one part may grow and another fall."""
    if None in slopes:
        return None
    found = [slope for slope in slopes if slope]
    if len(found) > 1 and (EITHER in found or len({*found}) > 1):
        return None
    return found[0] if found else 0


@record
class MomentOf(Pure):
    """A check of a moment, after which it is comparable with turns.

    >>> MomentOf(is_bare=False, is_local=False)(datetime(2024, 1, 1))
    datetime.datetime(2024, 1, 1, 0, 0)
    """

    is_bare: bool
    is_local: bool

    def __call__(self, moment: Any) -> datetime:
        if moment.__class__ is not datetime or moment.tzinfo not in (None, UTC):
            raise TypeError(f"{moment!r} is not what is compared here")
        if self.is_local and moment.tzinfo is None and (time.timezone or time.daylight):
            raise TypeError(f"{moment!r} has a timestamp by the zone of the machine")
        given: datetime = moment
        bare = given.replace(tzinfo=None)
        if not FIRST <= bare <= LAST:
            raise ValueError(f"{moment!r} is far from the present")
        return bare if self.is_bare else given

    def __repr__(self) -> str:
        return "moment"


class TurnOf(Pure):
    """Returns the first moment at which the condition of a row is true, or is no more.

    Parameters
    ----------
    condition: about `Parameter(0)`, the moment, and the values of the row as the next ones.
    ends: the value that the condition needs to be greater, and the less one.
    slope: 1 if it gets true, -1 if it gets false, `EITHER` if a value of the row says so.
    is_start: True for the first moment at which it is true.
    """

    __slots__ = ("_compiled", "_is_start", "_key", "_point", "_slope")

    def __init__(
        self,
        condition: Expr,
        ends: tuple[Expr, Expr],
        slope: int,
        is_start: bool,
        point: MomentOf,
    ) -> None:
        self._key = condition, ends, slope, is_start, point
        self._slope, self._is_start, self._point = slope, is_start, point
        self._compiled = _function(condition), _function(ends[0]), _function(ends[1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TurnOf) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return "start" if self._is_start else "end"

    def __call__(self, *values: Any) -> datetime:
        if not {value.__class__ for value in values} <= CLASSES or any(map(is_extreme, values)):
            raise TypeError("a value is not what is compared here")
        zone = self._zone_of(values)
        test = self._compiled[0]
        moment = FIRST if zone is None else FIRST.replace(tzinfo=zone)

        def holds(place: int) -> bool:
            return bool(test((moment + place * MICROSECOND, *values)))

        first, last = holds(0), holds(SPAN)
        if first is last:
            is_early = first is self._is_start  # it is always true, or never
            found = 0 if is_early else SPAN + 1
        elif self._slope != EITHER and (self._slope == 1) is first:
            raise ValueError("the condition is not monotone")
        elif first is self._is_start:
            found = 0 if self._is_start else SPAN + 1
        else:
            found = _turn(holds, first, self._guess(moment, values))
        turn = moment + found * MICROSECOND
        return turn.replace(tzinfo=None) if self._point.is_bare else turn

    def _zone_of(self, values: Values) -> tzinfo | None:
        """Return UTC or None, the zone of the moments that the row compares with.

        Raises
        ------
        TypeError: it compares with none of both, or with both.
        """
        if self._point.is_bare:
            return UTC
        kinds = [value.tzinfo is None for value in values if value.__class__ is datetime]
        moments = (FIRST, FIRST.replace(tzinfo=UTC))
        if kinds and not kinds[0]:
            moments = moments[::-1]
        if not _evaluates(self._compiled[0], (moments[0], *values)):
            moments = moments[::-1]
        elif _evaluates(self._compiled[0], (moments[1], *values)):
            raise TypeError("the condition does not depend on a zone")
        return moments[0].tzinfo

    def _guess(self, moment: datetime, values: Values) -> int:
        """Return a place near the turn: two steps along the line between both ends."""
        _, greater, less = self._compiled

        def gap(place: int) -> float:
            given = (moment + place * MICROSECOND, *values)
            found = greater(given) - less(given)
            return found / MICROSECOND if found.__class__ is timedelta else float(found)

        try:
            start = gap(0)
            slope = (gap(SPAN) - start) / SPAN
            place = _inside(-start / slope)
            return _inside(place - gap(place) / slope)
        except (ArithmeticError, TypeError, ValueError):
            return SPAN // 2


def _inside(place: float) -> int:
    return min(max(round(place), 0), SPAN)


def _turn(holds: Callable[[int], bool], first: bool, guess: int) -> int:
    """Return the first place at which a condition has not the value that it has at `first`."""
    step, before, after = 1, 0, SPAN
    if holds(guess) is first:
        before = guess
        while before + step < after:
            if holds(before + step) is not first:
                after = before + step
                break
            before, step = before + step, 16 * step
    else:
        after = guess
        while after - step > before:
            if holds(after - step) is first:
                before = after - step
                break
            after, step = after - step, 16 * step
    while after - before > 1:
        middle = (before + after) // 2
        if holds(middle) is first:
            before = middle
        else:
            after = middle
    return after


def _evaluates(function: Callable[[Values], Any], values: Values) -> bool:
    try:
        function(values)
    except Exception:
        return False
    return True


def _function(expr: Expr) -> Callable[[Values], Any]:
    """Return the function of the moment and the values that an expression computes."""
    match expr:
        case Parameter(index):
            return operator.itemgetter(index)
        case Constant():
            value = expr.value
            return lambda given: value
        case Operation("not", (of,)):
            inner = _function(of)
            return lambda given: not inner(given)
        case Operation("-", (of,)):
            inner = _function(of)
            return lambda given: -inner(given)
        case Operation(symbol, (a, b)):
            apply, one, two = APPLIED[symbol], _function(a), _function(b)
            return lambda given: apply(one(given), two(given))
        case Conditional(test, then, otherwise):
            tested, one, two = _function(test), _function(then), _function(otherwise)
            return lambda given: one(given) if tested(given) else two(given)
        case Attribute(of, name):
            read, inner = operator.attrgetter(name), _function(of)
            return lambda given: read(inner(given))
        case Call(Attribute(of, name), (), ()):
            called, inner = operator.methodcaller(name), _function(of)
            return lambda given: called(inner(given))
        case Again(of):
            return _function(of)
        case Call(Constant(function), arguments, ()):
            each = [_function(argument) for argument in arguments]
            return lambda given: function(*[argument(given) for argument in each])
        case _:
            raise TypeError(f"no function for {type(expr).__name__}")
