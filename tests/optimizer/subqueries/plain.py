"""Meaning of plans with sub-queries in their callables: nested loops, one query for each row.

`evaluate` returns their rows; `without` lets the library rewrite them to plans without sub-queries.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    And,
    Attribute,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    Function,
    Item,
    Lifted,
    Operation,
    Or,
    Outer,
    Parameter,
    Subquery,
    row_names,
    transform,
)
from optimizer.subqueries.decorrelation import remove_subqueries
from optimizer.traverse import rebuilt, with_functions
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.zset import canonical
from tests import naive

Tables = naive.Tables
OPERATORS: dict[str, Callable[..., Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "is": operator.is_,
    "is not": operator.is_not,
}


def of_no_rows(folded: plan.Folded) -> Any:
    """Return the result of an aggregate over no rows."""
    return folded.accumulator.result(folded.accumulator.zero())


def without(node: plan.Node) -> plan.Node:
    """The plan that the library makes of one with sub-queries."""
    return rebuilt(node, lambda part: free(with_functions(part, _with_freed)))


def free(node: plan.Node, *, in_order: bool = True) -> plan.Node:
    """One node without its sub-queries."""
    return remove_subqueries(node, of_no_rows=of_no_rows, canonical=canonical, in_order=in_order)


def _with_freed(function: Function) -> Function:
    if not isinstance(function, Lifted):
        return function

    def change(part: Expr) -> Expr:
        return replace(part, query=without(part.query)) if isinstance(part, Subquery) else part

    return function.with_body(transform(function.body, change))


def evaluate(node: plan.Node, tables: Tables, outer: tuple[Any, ...] = ()) -> Counter[Any]:
    """The rows of a plan for some values of its arguments."""

    def asked(function: Function) -> Function:
        call = Called(function, tables, outer)
        count = function.parameters
        return Opaque(call, count, "called", None, (), object())

    return naive.evaluate(rebuilt(node, lambda part: with_functions(part, asked)), tables)


def values(arguments: tuple[Expr, ...], row: tuple[Any, ...], tables: Tables) -> tuple[Any, ...]:
    """Expressions of a row."""
    count = len(row)
    every = [Called(Lifted(body, row_names(count), (), count), tables, ()) for body in arguments]
    return tuple([canonical(call(*row)) for call in every])


class Called:
    """A callable, evaluated by walking its expression."""

    def __init__(self, function: Function, tables: Tables, outer: tuple[Any, ...]) -> None:
        self._function = function
        self._tables = tables
        self._outer = outer

    def __call__(self, *row: Any) -> Any:
        if isinstance(self._function, Opaque):
            return callable_of(self._function)(*row)
        return self._value(self._function.body, row)

    def _value(self, expr: Expr, row: tuple[Any, ...]) -> Any:
        match expr:
            case Parameter(index):
                return row[index]
            case Outer(index):
                return self._outer[index]
            case Constant(value):
                return value
            case Attribute(of, name):
                return getattr(self._value(of, row), name)
            case Item(of, key):
                return self._value(of, row)[self._value(key, row)]
            case Operation("not", (inner,)):
                return not self._value(inner, row)
            case Operation(name, (a, b)):
                return OPERATORS[name](self._value(a, row), self._value(b, row))
            case And(parts):
                return all(self._value(part, row) for part in parts)
            case Or(parts):
                return any(self._value(part, row) for part in parts)
            case Conditional(test, then, otherwise):
                return self._value(then if self._value(test, row) else otherwise, row)
            case Display("tuple", items):
                return tuple([self._value(item, row) for item in items])
            case Call(Constant(function), arguments):
                return function(*(self._value(a, row) for a in arguments))
            case Subquery(kind, query, arguments):
                values = tuple([canonical(self._value(a, row)) for a in arguments])
                rows = evaluate(query, self._tables, values)
                if kind == "exists":
                    return any(weight > 0 for weight in rows.values())
                ((only, weight),) = rows.items()
                assert weight == 1
                return only
            case _:
                raise TypeError(f"cannot evaluate {expr!r}")
