"""Find comparisons of a field of instants with a constant that has no time zone.

    calls.where(lambda c: c.begins > datetime(2024, 1, 1))

    def is_late(time):                        the same in a function of the user's, which is read
        return time > datetime(2024, 1, 1)    with what the query calls it with
    calls.where(lambda c: is_late(c.begins))

with `begins: Annotated[datetime, timezone.utc]`: `>` would raise for every row, `==` be False.
A comparison with an attribute (`limits.last`) or a variable of a method is found as well if it is a
time that clocks show twice: it cannot be frozen as an instant, as variables of functions are.

Sound:  a field is one of instants if it is declared so; of others nothing is said. Nothing is said
        of a function that catches exceptions, or that asks for a zone or a class.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from datetime import datetime
from inspect import getattr_static
from types import FunctionType
from typing import Any

from optimizer.callables.loads import UNSET, ambiguous_variable, attribute, is_users
from optimizer.callables.syntax import NoSyntax, shared_syntax_of
from optimizer.expr import Apply, Attribute, Call, Constant, Expr, Operation
from optimizer.expressions.booleans import COMPARISONS
from optimizer.expressions.declared import zoned_fields
from optimizer.expressions.knowledge import Shape
from optimizer.expressions.text import text
from optimizer.kinds.instants import with_instants
from optimizer.lifting.part import resolve
from optimizer.lifting.symbols import OPERATORS

ASKING = frozenset({"tzinfo", "utcoffset", "isinstance", "type", "hasattr", "replace"})
"""Names in a function that may compare an instant with what has no zone on purpose."""
ROWS = ("row", "other", "third")
"""The names of rows in a message."""
DEEPEST = 4
"""Functions that call one another."""
Shaped = Callable[[Expr], Shape]
"""Gives the class of an expression."""


def without_zone(expr: Expr, shape: Shaped) -> str | None:
    """Return the message about an expression that compares an instant with a naive constant, itself
    or in a function that it calls.

    Return None for any other expression.
    """
    match expr:
        case Operation():
            return _compared(expr, shape)
        case Call(Constant() as called, given) if called.kind is FunctionType:
            return _in_call(called.value, given, shape)
        case Call(Constant() as owner, given) if owner.kind.__module__ != "builtins":
            return _in_method(owner, "__call__", given, shape)
        case Call(Attribute(Constant() as owner, name), given):
            return _in_method(owner, name, given, shape)
        case Apply(called, given):
            return _in_call(called.function, given, shape)
        case _:
            return None


def _compared(expr: Operation, shape: Shaped) -> str | None:
    if expr.operator not in COMPARISONS or len(expr.operands) != 2:
        return None
    for operand in expr.operands:
        value = _constant(operand)
        if with_instants(value) is not value:
            return _shown_twice(text(operand, ROWS))
    pair = {_has_zone(each, shape): each for each in expr.operands}
    if pair.keys() != {True, False}:
        return None
    instant, naive = text(pair[True], ROWS), text(pair[False], ROWS)
    return f"{instant} is an instant, and {naive} has no time zone"


def _shown_twice(name: str) -> str:
    return (
        f"{name} is or holds a time that clocks show twice, and Python compares what they show\n"
        "  give the time an offset: time.astimezone(timezone.utc)"
    )


def _in_method(
    owner: Constant, name: str, arguments: tuple[Expr, ...], shape: Shaped
) -> str | None:
    """Return the message about such a comparison in a method of an object of the user's.

    Return None if there is none. Variables of a method cannot be frozen as instants.
    """
    method = getattr_static(owner.kind, name, None)
    if not isinstance(method, FunctionType) or not is_users(method):
        return None
    read = ambiguous_variable(method)
    return _shown_twice(read) if read else _in_call(method, (owner, *arguments), shape)


def _in_call(
    function: Any, arguments: tuple[Expr, ...], shape: Shaped, depth: int = 0
) -> str | None:
    """Return the message about such a comparison in a function that is called with arguments.

    Return None if there is none, or if the function has no text.
    """
    if not isinstance(function, FunctionType) or depth > DEEPEST or not is_users(function):
        return None
    is_owned = bool(arguments) and isinstance(arguments[0], Constant)
    if not is_owned and not any(_may_be_zoned(each, shape) for each in arguments):
        return None
    tree = shared_syntax_of(function.__code__, function.__globals__)
    if isinstance(tree, NoSyntax) or not isinstance(tree, ast.Lambda | ast.FunctionDef):
        return None
    if any(map(_may_expect, ast.walk(tree))):
        return None
    read = _Reading(function, tree, arguments)
    for node in ast.walk(tree):
        for found in read.comparisons(node):
            if message := _compared(found, shape):
                return message
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            inner = tuple([read.expr(each) or Constant(None, None) for each in node.args])
            other = read.variable(node.func.id)
            if message := _in_call(other, inner, shape, depth + 1):
                return message
    return None


def _may_expect(node: ast.AST) -> bool:
    """True for a part of a function that may expect times without a zone beside others."""
    if isinstance(node, ast.Try | ast.With):
        return True
    return getattr(node, "id", getattr(node, "attr", None)) in ASKING


class _Reading:
    """The variables of a function that is called with some expressions."""

    def __init__(
        self, function: FunctionType, tree: ast.Lambda | ast.FunctionDef, given: tuple[Expr, ...]
    ) -> None:
        self._function = function
        own = tree.args
        names = [each.arg for each in (*own.posonlyargs, *own.args)]
        nodes = list(ast.walk(tree))
        again = {each.id for each in nodes if isinstance(each, ast.Name) and _is_bound(each)}
        every = [each.arg for each in nodes if isinstance(each, ast.arg)]
        self._bound = {
            name: expr
            for name, expr in zip(names, given, strict=False)
            if name not in again and every.count(name) == 1
        }
        self._own = {*every, *again}

    def comparisons(self, node: ast.AST) -> Iterator[Operation]:
        """The comparisons of two operands that a node is of."""
        if not isinstance(node, ast.Compare):
            return
        operands = [node.left, *node.comparators]
        for left, sign, right in zip(operands, node.ops, operands[1:], strict=False):
            one, two = self.expr(left), self.expr(right)
            symbol = OPERATORS[type(sign)]
            if symbol in COMPARISONS and one is not None and two is not None:
                yield Operation(symbol, (one, two))

    def expr(self, node: ast.expr) -> Expr | None:
        """A parameter, a field of one, or a constant; None for anything else."""
        match node:
            case ast.Name(name) if name in self._bound:
                return self._bound[name]
            case ast.Name(name):
                value = self.variable(name)
                return None if value is UNSET else Constant(value, None, name)
            case ast.Attribute(inner, name):
                of = self.expr(inner)
                return None if of is None else Attribute(of, name)
            case _:
                return None

    def variable(self, name: str) -> Any:
        """The value of a variable from outside; UNSET if there is none."""
        return UNSET if name in self._own else resolve(self._function, name)


def _is_bound(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _may_be_zoned(expr: Expr, shape: Shaped) -> bool:
    kind = shape(expr)
    return _has_zone(expr, shape) is True or bool(isinstance(kind, type) and zoned_fields(kind))


def _has_zone(expr: Expr, shape: Shaped) -> bool | None:
    """True of a field of instants, or False of a constant without a zone; None if not known."""
    value = _constant(expr)
    if isinstance(value, datetime):
        return value.tzinfo is not None
    match expr:
        case Attribute(inner, name):
            kind = shape(inner)
            return True if isinstance(kind, type) and name in zoned_fields(kind) else None
        case _:
            return None


def _constant(expr: Expr) -> Any:
    """The value of a constant, or of an attribute of one; UNSET of anything else."""
    match expr:
        case Constant(value):
            return value
        case Attribute(inner, name):
            owner = _constant(inner)
            return UNSET if owner is UNSET else attribute(owner, name)
        case _:
            return UNSET
