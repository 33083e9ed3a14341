"""Interpret expressions without generating code, for keys found in a predicate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter, itemgetter
from typing import Any

from optimizer.expr import (
    And,
    Apply,
    Attempt,
    Attribute,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    Formatted,
    Item,
    Operation,
    Or,
    Parameter,
    Text,
)
from optimizer.expressions.simplification import BINARY, UNARY
from reactive.engine.codegen.functions import evaluate_or
from reactive.engine.collections.zset import Row

Read = Callable[[Row], Any]


def only_binding(row: Row) -> Row:
    """Return the row itself, which is its only binding."""
    return row


DISPLAYS: dict[str, Callable[[Any], Any]] = {"tuple": tuple, "list": list, "set": set}

CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "": only_binding,
    "!r": repr,
    "!s": str,
    "!a": ascii,
}


def interpret_expr(expr: Expr, binding: Callable[[int], Read]) -> Read | None:
    """Return the expression as a callable of a row; None if it has unknown parts.

    `binding` returns the function that reads a parameter of the expression from a row.

    >>> from optimizer.expr import Operation, Parameter, constant
    >>> product = Operation("*", (Parameter(0), constant(2)))
    >>> double = interpret_expr(product, lambda _: lambda row: row)
    >>> double(4)
    8
    """

    def read(part: Expr) -> Read:
        match part:
            case Parameter(index):
                return binding(index)
            case Constant(value):
                return lambda row: value
            case Attribute(of, name):
                return _read_after(attrgetter(name), read(of))
            case Item(of, Constant(key)):
                return _read_after(itemgetter(key), read(of))
            case Item(of, key):
                return _read_call(_get_item, read(of), read(key))
            case Operation(symbol, (operand,)):
                return _read_after(UNARY[symbol], read(operand))
            case Operation(symbol, (left, right)):
                return _read_call(BINARY[symbol], read(left), read(right))
            case Display(("tuple" | "list" | "set") as kind, items):
                return _of_items(DISPLAYS[kind], [read(item) for item in items])
            case Text(parts):
                return _read_after("".join, _of_items(list, [read(part) for part in parts]))
            case Formatted(value, conversion, spec):
                shown = _read_after(CONVERSIONS[conversion], read(value))
                return _read_call(format, shown, *([] if spec is None else [read(spec)]))
            case And(parts):
                return _until(map(read, parts), stop=False)
            case Or(parts):
                return _until(map(read, parts), stop=True)
            case Conditional(test, then, otherwise):
                return _read_conditional(read(test), read(then), read(otherwise))
            case Call(function, arguments, ()):
                return _read_call(_call_function, read(function), *map(read, arguments))
            case Apply(function, arguments):
                return _read_call(function.function, *map(read, arguments))
            case Attempt(of, Constant(otherwise)):
                return _read_attempt(read(of), otherwise)
            case _:
                raise KeyError(part)

    try:
        return read(expr)
    except KeyError:
        return None


def _get_item(of: Any, key: Any) -> Any:
    return of[key]


def _call_function(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


def _until(parts: Iterable[Read], *, stop: bool) -> Read:
    """Return the first part that is true, or false if `stop` is False; else the last part."""
    reads = list(parts)

    def first(row: Row) -> Any:
        value = None
        for read in reads:
            value = read(row)
            if bool(value) is stop:
                break
        return value

    return first


def _read_conditional(test: Read, then: Read, otherwise: Read) -> Read:
    return lambda row: then(row) if test(row) else otherwise(row)


def _read_attempt(of: Read, otherwise: Any) -> Read:
    return lambda row: evaluate_or(lambda: of(row), otherwise)


def _read_after(outer: Callable[[Any], Any], inner: Read) -> Read:
    """Return the composition of `outer` and `inner`; of the only binding, `outer` itself."""
    if inner is only_binding:
        return outer
    return lambda row: outer(inner(row))


def _of_items(made: Callable[[Any], Any], reads: list[Read]) -> Read:
    return lambda row: made([read(row) for read in reads])


def _read_call(function: Callable[..., Any], *reads: Read) -> Read:
    match reads:
        case (one, other):
            return lambda row: function(one(row), other(row))
        case _:
            return lambda row: function(*[read(row) for read in reads])
