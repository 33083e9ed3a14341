"""Checks of operands under which a condition cannot raise.

    o.qty < c.tier * 3      cannot raise if  o.qty  and  c.tier  are numbers

`operand_checks` returns a check for each field that such a condition reads. A check is True, or
raises: then the condition may raise, too.

    is_number(o.qty)        in generated code: o.qty.__class__ is int or is_number(o.qty)

Sound:  numbers (int, float, bool) compare with each other, NaN included, and so do texts, bytes,
        dates and spans of time of one class. `+`, `-` and `*` of some numbers raise only if an int
        is too large for a float: the checked ones are below 2 ** 64. A divisor is a constant.
Needs:  declared fields, or others that are compared with these or with constants.
Cost:   one test of a class for each field and row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Any

from optimizer.expr import (
    FALSE,
    NAN,
    TRUE,
    Again,
    And,
    Attempt,
    Attribute,
    Call,
    Constant,
    Display,
    Expr,
    First,
    Item,
    Operation,
    Or,
    Parameter,
    Slot,
    conjunction,
    constant,
    parts,
    transform,
    walk,
)
from optimizer.expressions.knowledge import Bounded, Pure, Shapes, shape_of, total
from optimizer.expressions.text import first
from optimizer.kinds.fields import by_class
from optimizer.kinds.kind import class_of, hints_of, kind_of, without_none
from optimizer.record import record

SideOf = Callable[[Expr], "str | None"]
"""Returns the side of a join that an expression reads; None if it reads both, or neither."""
Group = tuple[type, ...]
NUMBERS: Group = (int, float, bool)
SPANS: Group = (timedelta,)
GROUPS: tuple[Group, ...] = (NUMBERS, (str,), (bytes,), (date,), SPANS)
"""Classes whose values compare with each other, each group apart."""
INTS: Group = (int, bool)
MOMENTS: Group = (datetime,)
"""Their sums with spans are exact; an order tells moments of different kinds of zones apart."""
USUAL: Group = (*NUMBERS, str, bytes, type(None), date, datetime, timedelta, Decimal)
"""Classes whose `!=` negates `==`."""
ANY: Group = ()
"""The group of an operand that is only compared by `==`, or tested: it must be readable."""
ORDERS = frozenset({"<", "<=", ">", ">="})
EQUALITIES = frozenset({"==", "!="})
SUMS = frozenset({"+", "-", "*"})
LARGEST = 1 << 64
MOST_OPERATIONS = 10
"""Products of so many checked ints are below the largest float."""


@record
class IsOf(Pure):
    """A check of a value: its class is in a group, and an int that is computed with is small.

    >>> IsOf(NUMBERS, int, is_computed=True)(7)
    True
    """

    group: Group
    usual: type
    """The most frequent class, which generated code tests inline."""
    is_computed: bool

    def __call__(self, value: Any) -> bool:
        if self.group is ANY:
            return True
        kind = value.__class__
        if kind not in self.group or (
            self.is_computed and kind is int and not -LARGEST < value < LARGEST
        ):
            raise TypeError(f"{kind.__name__} is not what is compared here")
        return True

    def __repr__(self) -> str:
        if self.group is ANY:
            return "is_there"
        names = {id(NUMBERS): "is_number", id(USUAL): "is_plain"}
        return names.get(id(self.group), f"is_{self.group[0].__name__}")


def is_extreme(value: Any) -> bool:
    """Return True for a number whose product with a few others may be infinite.

    >>> [is_extreme(value) for value in (1e300, 1e-300, 0.0, -7, "a")]
    [True, True, False, False, False]
    """
    if not isinstance(value, int | float | Decimal):
        return False
    size: Any = abs(value)
    return bool(size > LARGEST or 0 < size * LARGEST < 1)


CHECKS = MappingProxyType(
    {
        (group, usual, is_computed): constant(IsOf(group, usual, is_computed))
        for group in (*GROUPS, INTS, MOMENTS, USUAL, ANY)
        for usual in group or (object,)
        for is_computed in (False, True)
    }
)
"""One constant for each check, so that equal expressions are equal."""


def operand_checks(test: Expr, shapes: Shapes) -> dict[Expr, Expr] | None:
    """Return the checks under which a condition cannot raise, by the operand that each reads.

    Return None for a condition that may raise nevertheless. `shapes` are those of its arguments.
    """
    found = _Operands(shapes)
    return found.checks() if found.cannot_raise(test) else None


def checks_of_failure(test: Expr, shapes: Shapes) -> dict[Expr, Expr] | None:
    """Return the checks of operands of a test that an expression raises, by the operand.

    If operands pass the checks, the test is false. Return None for any other test.

    not attempt(first (o.qty < c.tier) then True)       o.qty and c.tier are numbers
    """
    match test:
        case Operation("not", (Attempt(First(needed, then), otherwise),)) if (
            then == TRUE and otherwise == FALSE
        ):
            return operand_checks(conjunction(needed), shapes)
        case _:
            return None


def without_attempts(test: Expr) -> Expr:
    """Return a test that is true wherever `test` is, without attempts and bounds of integers.

    attempt(INTEGER(a.x - b.x), nan) == 1       a.x - b.x == 1
    attempt(abs(a.x - b.x) < 5)                 abs(a.x - b.x) < 5

    An attempt of a whole equation stays: its values may have an `==` that raises (`clashing.py`),
    and must not be looked up.
    """
    match test:
        case Attempt(of, otherwise) if otherwise == FALSE and any(orders_in(of)):
            return transform(of, _unbounded)
        case Operation("==" as operator, sides) if any(isinstance(s, Attempt) for s in sides):
            bare = (s.of if isinstance(s, Attempt) and s.otherwise == NAN else s for s in sides)
            return Operation(operator, tuple(transform(side, _unbounded) for side in bare))
        case _:
            return test


def has_bounds(test: Expr) -> bool:
    """Return True if a test bounds integers."""
    return any(_unbounded(part) is not part for part in walk(test))


def _unbounded(expr: Expr) -> Expr:
    """Return the argument of a call that bounds an integer; other expressions unchanged."""
    match expr:
        case Call(Constant(Bounded()), (of,), ()):
            return of
        case _:
            return expr


def equation_with_checks(
    test: Expr, shapes: Shapes, side_of: SideOf
) -> tuple[Expr, Expr, dict[Expr, Expr]] | None:
    """Return an equation that a test of both sides is, if its operands pass checks.

    not a.x != b.y          a.x == b.y          for values with the usual `!=`
    a.x - b.y == 1          a.x == 1 + b.y      for ints

    Returns the value of the left side and that of the right, which are equal if and only if the
    test is true, and the checks by operand; None if the test is no such equation.
    """
    found = _Operands(shapes)
    fits: Callable[[Expr], bool]
    match test:
        case Operation("not", (Operation("!=", (a, b)),)):
            values = {side_of(a): a, side_of(b): b}
            fits = partial(found.is_only_read, group=USUAL)
        case Operation("==", (a, b)):
            values, _ = _solved(a, b, side_of)
            fits = found.is_sum_of_ints
        case _:
            return None
    if values.keys() != {"left", "right"} or not all(map(fits, values.values())):
        return None
    return values["left"], values["right"], found.checks()


@record
class Comparison:
    """A value of one side that is less than a value of the other, or equal if `closed`."""

    left: Expr
    right: Expr
    left_is_low: bool
    closed: bool


def merged_comparison(one: Comparison | None, other: Comparison | None) -> Comparison | None:
    """Return the comparison that is true where two of one end are, which share a value of a side.

    a.x < b.t and a.y < b.t         max(a.x, a.y) < b.t
    """
    if one is None or other is None or one.closed != other.closed:
        return None
    low, high = (max, min) if one.left_is_low else (min, max)
    left, right = _shared(one.left, other.left), _shared(one.right, other.right)
    if left is None and right is None:
        return None
    if right is None:
        right = Call(constant(high), (one.right, other.right))
    elif left is None:
        left = Call(constant(low), (one.left, other.left))
    assert left is not None
    return Comparison(left, right, left_is_low=one.left_is_low, closed=one.closed)


def _shared(one: Expr, other: Expr) -> Expr | None:
    """Return two values that are the same, with the checks of one; None if they differ."""
    if one == other or (isinstance(one, First) and one.then == other):
        return one
    return other if isinstance(other, First) and other.then == one else None


def comparisons_with_checks(test: Expr, shapes: Shapes, side_of: SideOf) -> tuple[Comparison, ...]:
    """Return comparisons of both sides that follow from a test, if its operands are ints, or
    moments and spans of time.

    Their values raise if an operand is of another class.

    abs(a.x - b.x) < 5          a.x < 5 + b.x,  a.x > b.x - 5
    a.t - b.t < hour            a.t < hour + b.t
    a.x in range(b.l, b.h)      a.x >= b.l,     a.x < b.h
    not a.x < b.x               a.x >= b.x
    """
    found = (
        _checked(less, greater, closed, shapes, side_of)
        for less, greater, closed in orders_in(test)
    )
    return tuple(each for each in found if each is not None)


def orders_in(test: Expr) -> Iterator[tuple[Expr, Expr, bool]]:
    """Iterate over what a test says: the less value, the greater one, and True if they may be
    equal."""
    match test:
        case Operation("not", (Operation(operator, (a, b)),)) if operator in ORDERS:
            less, greater = (b, a) if operator[0] == "<" else (a, b)
            yield less, greater, len(operator) == 1
        case Operation("in", (value, Call(Constant(function), (low, high), ()))) if (
            function is range
        ):
            yield low, value, True
            yield value, high, False
        case Operation(operator, (a, b)) if operator in ORDERS:
            less, greater = (a, b) if operator[0] == "<" else (b, a)
            closed = len(operator) == 2
            match less:
                case Call(Constant(function), (inner,), ()) if function is abs:
                    yield inner, greater, closed
                    yield Operation("-", (greater,)), inner, closed
                case _:
                    yield less, greater, closed


def _checked(
    less: Expr, greater: Expr, closed: bool, shapes: Shapes, side_of: SideOf
) -> Comparison | None:
    """Return a comparison with the operands of each side on their own side; None if one has none,
    or if operands are declared to be of other classes."""
    found = _Operands(shapes)
    is_span = lambda term: found.declared(term) is timedelta  # noqa: E731
    values, sign = _solved(less, greater, side_of, is_span)
    if not values:
        return None
    if not all(map(found.is_sum_of_ints, values.values())):
        found = _Operands(shapes)
        moments = {found.count_moments(value) for value in values.values()}
        if moments != {0} and moments != {1}:
            return None
    checks = found.checks()

    def end(side: str) -> Expr:
        own = [check for of, check in checks.items() if (side_of(of) or "right") == side]
        return first(tuple(own), values[side])

    return Comparison(end("left"), end("right"), sign > 0, closed)


def _solved(
    a: Expr, b: Expr, side_of: SideOf, is_span: Callable[[Expr], bool] = lambda term: False
) -> tuple[dict[str | None, Expr], int]:
    """Return the sums of terms of each side in `a - b`, the right one negated; {} without both.

    The first term of the left that is no span gets a plus; return the sign that it had in `a - b`,
    too.
    """
    terms = [*terms_of(a, 1), *terms_of(b, -1)]
    own = [(sign, term) for sign, term in terms if side_of(term) == "left"]
    rest = [(-sign, term) for sign, term in terms if side_of(term) != "left"]
    others = {side_of(term) for _, term in rest if not isinstance(term, Constant)}
    if not own or others != {"right"}:
        return {}, 0
    turn = next((sign for sign, term in own if not is_span(term)), own[0][0])
    left, right = ([(turn * sign, term) for sign, term in each] for each in (own, rest))
    return {"left": _sum(left), "right": _sum(right)}, turn


def terms_of(expr: Expr, sign: int) -> Iterator[tuple[int, Expr]]:
    """Iterate over the terms of a sum with their signs."""
    match expr:
        case Operation("+", (a, b)):
            yield from terms_of(a, sign)
            yield from terms_of(b, sign)
        case Operation("-", (a, b)):
            yield from terms_of(a, sign)
            yield from terms_of(b, -sign)
        case Operation("-", (a,)):
            yield from terms_of(a, -sign)
        case Constant() if not isinstance(expr, Slot) and expr.kind is int and not expr.value:
            return
        case _:
            yield sign, expr


def _sum(terms: Sequence[tuple[int, Expr]]) -> Expr:
    if not terms:
        return constant(0)
    (sign, made), *rest = sorted(terms, key=lambda term: -term[0])
    if sign < 0:
        made = Operation("-", (made,))
    for each, term in rest:
        made = Operation("+" if each > 0 else "-", (made, term))
    return made


class _Operands:
    """Collects the operands of a condition, with the group of classes that each must be of."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._operations = 0
        self.groups: dict[Expr, tuple[Group, bool]] = {}
        """The group of each operand, and True if something is computed of it."""

    def checks(self) -> dict[Expr, Expr]:
        """Return the check of each operand; generated code tests its declared class inline."""
        made: dict[Expr, Expr] = {}
        for operand, (group, is_computed) in self.groups.items():
            declared = self.declared(operand)
            usual = declared if declared in group else group[0] if group else object
            made[operand] = Call(CHECKS[group, usual, is_computed], (operand,))
        return made

    def cannot_raise(self, test: Expr) -> bool:
        """Return True if the condition cannot raise for operands of their groups."""
        match test:
            case Operation("not" | "&" | "|", tests) | And(tests) | Or(tests):
                return all(map(self.cannot_raise, tests))
            case Again(inner):
                return self.cannot_raise(inner)
            case Operation(operator, (a, b)) if operator in ORDERS | EQUALITIES:
                if operator in EQUALITIES and self._is_read(a) and self._is_read(b):
                    return True
                group = self._expected(a) or self._expected(b) or NUMBERS
                return self._take(a, group) and self._take(b, group)
            case _:
                return total(test, self._shapes)

    def _take(self, expr: Expr, group: Group, *, is_computed: bool = False) -> bool:
        """Add the operands of an expression; return False if its value may be of another group."""
        match expr:
            case Slot():
                is_added = not is_computed or self._add(expr, group, is_computed=True)
                return expr.kind in group and is_added
            case Constant():
                small = not is_computed or expr.kind is float or -LARGEST < expr.value < LARGEST
                return expr.kind in group and small
            case Parameter() | Attribute() | Item() if _is_operand(expr):
                return self._add(expr, group, is_computed=is_computed)
            case Again(inner):
                return self._take(inner, group, is_computed=is_computed)
            case _:
                return group is NUMBERS and self._take_number(expr)

    def _take_number(self, expr: Expr) -> bool:
        """Add the operands of arithmetic."""
        self._operations += 1
        if self._operations > MOST_OPERATIONS:
            return False
        match expr:
            case Operation(operator, operands) if operator in SUMS:
                return all(self._take(each, NUMBERS, is_computed=True) for each in operands)
            case Operation("/" | "//" | "%", (of, Constant() as by)) if not isinstance(by, Slot):
                divides = by.kind in NUMBERS and bool(by.value)
                return divides and self._take(of, NUMBERS, is_computed=True)
            case Call(Constant(function), (of,), ()) if function is abs:
                return self._take(of, NUMBERS, is_computed=True)
            case Call(Constant(function), (of,), ()) if function is len:
                return self._take(of, (str,))
            case _:
                return False

    def _add(self, operand: Expr, group: Group, *, is_computed: bool) -> bool:
        """Add an operand; return False if it must be of another group already."""
        if self.declared(operand) is datetime and group not in (ANY, MOMENTS, USUAL):
            return False
        before, was_computed = self.groups.get(operand, (ANY, False))
        self.groups[operand] = (before or group, was_computed or is_computed)
        return ANY in (before, group) or before is group

    def _expected(self, expr: Expr) -> Group | None:
        """Return the group that a declaration or a constant tells; None if neither does."""
        return _comparable_group(self.declared(expr))

    def _is_read(self, expr: Expr) -> bool:
        """Return True for an operand of any class, a tuple of these, or arithmetic."""
        if total(expr, self._shapes):
            return True
        if _is_operand(expr):
            return self._add(expr, ANY, is_computed=False)
        match expr:
            case Display("tuple", items):
                return all(map(self._is_read, items))
            case First(needs, then):
                return all(map(self._is_read, needs)) and self._is_read(then)
            case _:
                return self._take_number(expr)

    def is_only_read(self, expr: Expr, group: Group) -> bool:
        """Return True for an operand, or a constant of a group; add the operand."""
        if isinstance(expr, Constant):
            return expr.kind in group
        return _is_operand(expr) and self._add(expr, group, is_computed=False)

    def is_sum_of_ints(self, expr: Expr) -> bool:
        """Return True for a sum of operands and constants that may be ints; add the operands."""
        match expr:
            case Operation("+" | "-", operands):
                return all(map(self.is_sum_of_ints, operands))
            case _:
                return self.declared(expr) in (None, int) and self.is_only_read(expr, INTS)

    def count_moments(self, expr: Expr) -> int | None:
        """Return how many terms of a sum are no declared spans of time, and may be moments that are
        added; None if a term is neither. Add the operands."""
        count = 0
        for sign, term in terms_of(expr, 1):
            is_span = self.declared(term) is timedelta
            if not is_span and (sign < 0 or self.declared(term) not in (None, datetime)):
                return None
            if not self.is_only_read(term, SPANS if is_span else MOMENTS):
                return None
            count += not is_span
        return count

    def declared(self, expr: Expr) -> type | None:
        """Return the class of a value that a declaration or a constant tells, if it has a group,
        or is that of moments."""
        match expr:
            case Constant():
                return expr.kind if _comparable_group(expr.kind) else None
            case Attribute(of, name):
                kind = shape_of(of, self._shapes)
                return _classes_of_fields(kind).get(name) if isinstance(kind, type) else None
            case Parameter():
                kind = shape_of(expr, self._shapes)
                return kind if isinstance(kind, type) and _is_known(kind) else None
            case Item(Parameter() as of, Constant(int() as place)):
                kind = shape_of(of, self._shapes)
                names = getattr(kind, "_fields", ())
                is_there = isinstance(kind, type) and -len(names) <= place < len(names)
                return _classes_of_fields(kind).get(names[place]) if is_there else None  # type: ignore[arg-type]
            case Call(Constant(function)) if function is len:
                return int
            case _:
                return next(filter(None, map(self.declared, parts(expr))), None)


def declared_class(expr: Expr, shapes: Shapes) -> type | None:
    """Return the class of a value that a declaration or a constant tells; None if it has none that
    compares."""
    return _Operands(shapes).declared(expr)


def _is_operand(expr: Expr) -> bool:
    """Return True for a row, and for a field or an item of one."""
    match expr:
        case Attribute(of, _) | Item(of, Constant()):
            return _is_operand(of)
        case _:
            return isinstance(expr, Parameter)


@by_class
def _classes_of_fields(kind: type) -> dict[str, type]:
    """Return the declared classes of the fields of a class that have a group."""
    found = {name: class_of(without_none(kind_of(hint))) for name, hint in hints_of(kind).items()}
    return {name: each for name, each in found.items() if each is not None and _is_known(each)}


def _is_known(kind: type) -> bool:
    return kind is datetime or _comparable_group(kind) is not None


def _comparable_group(kind: type | None) -> Group | None:
    return next((group for group in GROUPS if any(kind is each for each in group)), None)
