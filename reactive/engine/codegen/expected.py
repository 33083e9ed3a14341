"""What a generated loop will write, so that what comes twice is evaluated once and has a name.

    if row.quantity > 1 and row.quantity < 9         quantity is read once
    if score(row) > 1 and score(row) < 9             score is called once
    (tags(row), tags(row))                           tags is called twice: its results are two

A value may be read as often as one likes. A call that nothing is known of may return an iterator or
a container, of which each call makes another one. Its result stands for all of them where it is
looked at only (compared, calculated with, tested), and for one more that goes into a row; not where
it is handed to what may use it up, or change it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import IntEnum

from optimizer.expr import (
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
"""Functions that do nothing to their arguments, and keep none."""
MAKES_NEW = frozenset({"+", "*", "/", "//", "%", "**"})
"""Operators whose result is the same of one object and itself as of two equal ones."""


class ValueUse(IntEnum):
    """What is done with a value; a later one is more than an earlier one."""

    LOOKED_AT = 0
    KEPT = 1
    GIVEN = 2


class Expected:
    """How often expressions will be written, and what is done with them."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._often: dict[Expr, int] = {}
        self._calls: dict[Expr, Counter[ValueUse]] = {}

    def add(self, exprs: list[tuple[Expr, ValueUse]]) -> None:
        """More expressions, each with what is done with its value."""
        for expr, use in exprs:
            if any(isinstance(part, Call | Apply) for part in walk(expr)):
                self._note(expr, use)
        for expr, _ in exprs:
            self._count(expr)

    def comes_twice(self, expr: Expr) -> bool:
        """Whether it is worth a variable."""
        return self._often.get(expr, 0) > 1

    def may_name(self, expr: Expr) -> bool:
        """Whether a variable may stand for it wherever it is written."""
        return is_value(expr, self._shapes) or self._is_one(expr)

    def is_kept(self, expr: Expr) -> bool:
        """Whether its value goes into a row, so that it is not that of the next one too."""
        return bool(self._calls) and expr in self._calls and self._calls[expr][ValueUse.KEPT] > 0

    def often(self) -> list[Expr]:
        """What has been counted."""
        return list(self._often)

    def _count(self, expr: Expr) -> None:
        is_read = isinstance(expr, WORTH_A_NAME) and is_value(expr, self._shapes)
        if is_read or self._is_one(expr):
            count = self._often.get(expr, 0) + 1
            self._often[expr] = count
            if count > 1:
                return  # it has a name, and its parts are not written again
        for part in parts(expr):
            self._count(part)

    def _is_one(self, expr: Expr) -> bool:
        """Whether the result of one call is as good as those of several."""
        uses = self._calls.get(expr) if self._calls else None
        return uses is not None and not uses[ValueUse.GIVEN] and uses[ValueUse.KEPT] < 2

    def _note(self, expr: Expr, use: ValueUse) -> None:
        if isinstance(expr, Call | Apply) and not is_value(expr, self._shapes):
            self._calls.setdefault(expr, Counter())[use] += 1
        for part, of_part in _parts(expr, use):
            self._note(part, of_part)


def _is_look(value: object) -> bool:
    return isinstance(value, order_kinds.CHECKS) or any(value is look for look in LOOKS)


def _parts(expr: Expr, use: ValueUse) -> Iterator[tuple[Expr, ValueUse]]:
    """The parts of an expression, with what it does with them if `use` is done with it."""
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
    looked_at, given = ValueUse.LOOKED_AT, ValueUse.GIVEN
    match expr:
        case Operation("in" | "not in", (left, right)):
            yield from ((left, looked_at), (right, given))  # an iterator is used up
        case Operation("is" | "is not", (left, right)):
            use = looked_at if isinstance(left, Constant) or isinstance(right, Constant) else given
            yield from ((left, use), (right, use))
        case Operation(operator, (left, right)) if left == right and operator not in MAKES_NEW:
            yield from ((left, given), (right, given))  # a list with NaN in it equals itself only
        case Operation(_, operands):
            yield from ((operand, looked_at) for operand in operands)
