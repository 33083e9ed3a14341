"""Expressions that a generated loop will write, so that repeated ones get a variable.

    if row.quantity > 1 and row.quantity < 9         quantity is read once
    if score(row) > 1 and score(row) < 9             score is called once
    (tags(row), tags(row))                           tags is called twice: two results are needed

A plain value may be read any number of times. An opaque call may return a new iterator or container
each time. One result can replace several if it is only looked at (compared, computed with, tested),
and in addition stored in one row; but not if it is passed to code that may consume or change it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import IntEnum

from optimizer.expr import (
    LEAVES,
    Again,
    And,
    Apply,
    Attempt,
    Attribute,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    First,
    Formatted,
    Guard,
    Item,
    Operation,
    Or,
    Text,
    parts,
    walk,
)
from optimizer.expressions import order_kinds
from optimizer.expressions.knowledge import Shapes, is_value, makes_record
from reactive.engine.collections.exact import summable, summable_or_none

WORTH_A_NAME = (Attempt, Attribute, Item, Operation, Call, Conditional)
LOOKS = (
    *(abs, bool, float, hash, int, isinstance, len, ord, repr, round, str),
    *(summable, summable_or_none, *order_kinds.FAST_CHECKS),
)
"""Functions that neither change nor store their arguments."""
MAKES_NEW = frozenset({"+", "*", "/", "//", "%", "**"})
"""Operators with the same result for one object twice as for two equal objects."""


CALLS = frozenset({Call, Apply})


class ValueUse(IntEnum):
    """The use of a value, in ascending order of possible effects on it."""

    LOOKED_AT = 0
    KEPT = 1
    GIVEN = 2


class UseCounts:
    """The numbers of expected uses of expressions, and the kinds of these uses."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._often: dict[Expr, int] = {}
        self._calls: dict[Expr, Counter[ValueUse]] = {}

    def add(self, exprs: list[tuple[Expr, ValueUse]]) -> None:
        """Add expressions, each with the use of its value."""
        for expr, use in exprs:
            if not CALLS.isdisjoint(map(type, walk(expr))):
                self._note(expr, use)
        for expr, _ in exprs:
            self._count(expr)

    def comes_twice(self, expr: Expr) -> bool:
        """Return True if the expression is worth a variable."""
        return self._often.get(expr, 0) > 1

    def may_name(self, expr: Expr) -> bool:
        """Return True if a variable may replace the expression wherever it is written."""
        return is_value(expr, self._shapes) or self._is_one(expr)

    def is_kept(self, expr: Expr) -> bool:
        """Return True if its value is stored in a row, so that the next row needs another one."""
        return bool(self._calls) and expr in self._calls and self._calls[expr][ValueUse.KEPT] > 0

    def often(self) -> list[Expr]:
        """Return all counted expressions."""
        return list(self._often)

    def _count(self, expr: Expr) -> None:
        """Count an expression and its parts; parts are not counted again once it has a variable."""
        is_read = isinstance(expr, WORTH_A_NAME) and is_value(expr, self._shapes)
        if is_read or self._is_one(expr):
            count = self._often.get(expr, 0) + 1
            self._often[expr] = count
            if count > 1:
                return  # it gets a variable: its parts are not written again
        for part in () if expr.__class__ in LEAVES else parts(expr):
            self._count(part)

    def _is_one(self, expr: Expr) -> bool:
        """Return True if the result of one call can replace the results of several calls."""
        uses = self._calls.get(expr) if self._calls else None
        return uses is not None and not uses[ValueUse.GIVEN] and uses[ValueUse.KEPT] < 2

    def _note(self, expr: Expr, use: ValueUse) -> None:
        """Note how the results of the calls in an expression are used."""
        if isinstance(expr, Call | Apply) and not is_value(expr, self._shapes):
            self._calls.setdefault(expr, Counter())[use] += 1
        for part, of_part in _parts_with_uses(expr, use):
            self._note(part, of_part)


def _is_look(value: object) -> bool:
    return isinstance(value, order_kinds.CHECKS) or any(value is look for look in LOOKS)


def _parts_with_uses(expr: Expr, use: ValueUse) -> Iterator[tuple[Expr, ValueUse]]:
    """Yield the parts of an expression and their uses, given the use of the whole."""
    looked_at, inside = ValueUse.LOOKED_AT, max(use, ValueUse.KEPT)
    match expr:
        case Operation():
            yield from _operands(expr)
        case And(tests) | Or(tests):
            yield from ((test, use) for test in tests)
        case Conditional(test, then, otherwise):
            yield from ((test, looked_at), (then, use), (otherwise, use))
        case First(needs, then):
            yield from ((need, looked_at) for need in needs)
            yield then, use
        case Attempt(of):
            yield of, use
        case Display(_, items):
            yield from ((item, inside) for item in items)
        case Call() if makes_record(expr):
            yield from ((part, inside) for part in parts(expr))
        case Attribute(of):
            yield of, looked_at if use is looked_at else ValueUse.GIVEN
        case Item(of, key):
            yield of, looked_at if use is looked_at else ValueUse.GIVEN
            yield key, looked_at
        case Call(Constant(value), arguments, ()) if _is_look(value):
            yield from ((argument, looked_at) for argument in arguments)
        case Text() | Formatted() | Guard() | Again():
            yield from ((part, looked_at) for part in parts(expr))
        case _:
            yield from ((part, ValueUse.GIVEN) for part in parts(expr))


def _operands(expr: Operation) -> Iterator[tuple[Expr, ValueUse]]:
    """Yield each operand of an operation, and how its value is used by the operator."""
    looked_at, given = ValueUse.LOOKED_AT, ValueUse.GIVEN
    match expr:
        case Operation("in" | "not in", (left, right)):
            yield from ((left, looked_at), (right, given))  # an iterator is consumed
        case Operation("is" | "is not", (left, right)):
            use = looked_at if isinstance(left, Constant) or isinstance(right, Constant) else given
            yield from ((left, use), (right, use))
        case Operation(operator, (left, right)) if left == right and operator not in MAKES_NEW:
            yield from ((left, given), (right, given))  # a list with NaN equals only itself
        case Operation(_, operands):
            yield from ((operand, looked_at) for operand in operands)
