"""Conditions joined by `&` and `|`, as the `and` and `or` that they amount to.

    (s.name == m.name) & (s.age > 30)           s.age > 30 and s.name == m.name

Of two bools `p & q` is `p and q`, except that both are asked: q raises also where p is false. What
cannot raise may be left out where another part decides, so what may raise is asked first. Several
parts that may raise stay joined as they were, and are all asked.

Of other values `&` is not `and`: `2 & 1` is 0, and columns of numbers are joined item by item. So
each part has to give True or False and nothing else: `not`, `is` and `in` always do; `==`, `<` and
such do between constants and fields that are declared as built-in values. Declarations are trusted,
as a type checker makes sure of them.
"""

from __future__ import annotations

import enum
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import is_
from typing import Any

from optimizer.expr import (
    Again,
    And,
    Attempt,
    Attribute,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    First,
    Guard,
    Operation,
    Or,
    Text,
    parts,
    rebuilt,
)
from optimizer.expressions.declared import ARITHMETIC, is_declared
from optimizer.expressions.knowledge import Bounded, Shapes, total
from optimizer.kinds.kind import is_uuid

BITWISE = frozenset({"&", "|"})
ALWAYS = frozenset({"not", "is", "is not", "in", "not in"})
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
ORDERS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
BOOLEAN_CALLS = (isinstance, issubclass, callable, bool)
PLAIN_CALLS = (*BOOLEAN_CALLS, len, str, repr, ord, chr, hash, id)
_PLAIN: frozenset[Any] = frozenset(
    {
        *(int, float, complex, bool, str, bytes, type(None), None, Decimal, Fraction),
        *(date, time, timedelta, tzinfo),
    }
)


def asked_in_turn(expr: Expr, shapes: Shapes) -> Expr:
    """A test of rows of these shapes, with `and` and `or` for `&` and `|` where they are the same;
    itself where there is none."""
    match expr:
        case Operation("&" | "|" as operator):
            operands = _flat(expr, operator)
            if not all(is_boolean(operand, shapes) for operand in operands):
                return expr
            return _in_turn(expr, operator, operands, shapes)
        case And() | Or() | Operation("not"):
            return _with_tests(expr, parts(expr), shapes)
        case Conditional():
            return _with_tests(expr, parts(expr), shapes)
        case First(needs, then):
            new = asked_in_turn(then, shapes)
            return expr if new is then else First(needs, new)
        case _:
            return expr


def _with_tests(expr: Expr, tests: tuple[Expr, ...], shapes: Shapes) -> Expr:
    new = tuple([asked_in_turn(test, shapes) for test in tests])
    return expr if all(map(is_, new, tests)) else rebuilt(expr, new)


def _in_turn(expr: Expr, operator: str, operands: tuple[Expr, ...], shapes: Shapes) -> Expr:
    """What may raise, all of it, then what does not."""
    tests = tuple([asked_in_turn(operand, shapes) for operand in operands])
    raising = [test for test in tests if not total(test, shapes)]
    quiet = [test for test in tests if total(test, shapes)]
    if not quiet and all(map(is_, tests, operands)):
        return expr
    if len(raising) > 1:
        raising = [reduce(lambda a, b: Operation(operator, (a, b)), raising)]
    joined = (*raising, *quiet)
    if len(joined) == 1:
        return joined[0]
    return And(joined) if operator == "&" else Or(joined)


def _flat(expr: Expr, operator: str) -> tuple[Expr, ...]:
    """The operands of a chain of one operator, in the order in which they are asked."""
    if not isinstance(expr, Operation) or expr.operator != operator:
        return (expr,)
    return tuple(inner for operand in expr.operands for inner in _flat(operand, operator))


def unproven(expr: Expr, shapes: Shapes) -> Expr | None:
    """The first condition joined to others by `&` or `|` that may give something else than a bool.

    Nothing where no condition is joined, as in `s.tags & m.tags`.
    """
    match expr:
        case Operation("&" | "|" as operator):
            operands = _flat(expr, operator)
            if not any(map(_is_condition, operands)):
                return None
            return next((part for part in operands if not is_boolean(part, shapes)), None)
        case And() | Or() | Operation("not") | Conditional() | First():
            found = (unproven(part, shapes) for part in parts(expr))
            return next((part for part in found if part is not None), None)
        case _:
            return None


def _is_condition(expr: Expr) -> bool:
    return isinstance(expr, Operation) and expr.operator in COMPARISONS | ALWAYS


def is_boolean(expr: Expr, shapes: Shapes) -> bool:
    """Whether the value is True or False, for rows of these shapes."""
    match expr:
        case Constant():
            return expr.kind is bool
        case Guard() | Operation("not" | "is" | "is not" | "in" | "not in"):
            return True
        case Operation(operator, operands) if operator in COMPARISONS:
            return all(is_plain(operand, shapes) for operand in operands)
        case Operation(operator, operands) if operator in BITWISE:
            return all(is_boolean(operand, shapes) for operand in operands)
        case And(inner) | Or(inner):
            return all(is_boolean(part, shapes) for part in inner)
        case Conditional(_, then, otherwise):
            return is_boolean(then, shapes) and is_boolean(otherwise, shapes)
        case First(_, then) | Again(then):
            return is_boolean(then, shapes)
        case Attempt(of, otherwise):
            return is_boolean(of, shapes) and is_boolean(otherwise, shapes)
        case Call(Constant(value)):
            return any(value is known for known in BOOLEAN_CALLS)
        case _:
            return False


def is_plain(expr: Expr, shapes: Shapes) -> bool:
    """Whether the value is of a built-in class: such values compare with True or False."""
    match expr:
        case Constant():
            return expr.kind is not tuple and _is_plain_class(expr.kind)
        case Attribute():
            return is_declared(expr, shapes, _is_plain_class)
        case Operation(operator, operands) if operator in ARITHMETIC:
            return all(is_plain(operand, shapes) for operand in operands)
        case Display("tuple", items):
            return all(is_plain(item, shapes) for item in items)
        case Call(Constant(value)):
            return isinstance(value, Bounded) or any(value is known for known in PLAIN_CALLS)
        case Text():
            return True
        case First(_, then):
            return is_plain(then, shapes)
        case Conditional(_, then, otherwise):
            return is_plain(then, shapes) and is_plain(otherwise, shapes)
        case _:
            return is_boolean(expr, shapes)


def _is_plain_class(kind: Any) -> bool:
    if isinstance(kind, enum.EnumMeta):  # which compare as what they are made of, or by identity
        own = kind.__mro__[: kind.__mro__.index(enum.Enum)]
        return not {name for base in own if base not in _PLAIN for name in vars(base)} & ORDERS
    try:
        known = kind is tuple or kind in _PLAIN or is_uuid(kind)
        return known or (isinstance(kind, type) and kind.__module__ == "datetime")
    except TypeError:  # no hash: no class
        return False
