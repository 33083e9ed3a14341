"""Expressions over columns: what Python gives of each row, or nothing.

Operators of numbers are those of the machine, which are Python's, as long as integers stay below
2**62, and below 2**53 where they meet floats. What would raise is not done.

State:  none.
Cost:   O(rows) for each operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from optimizer.expr import Attribute, Call, Constant, Display, Expr, Item, Operation, Parameter
from optimizer.expressions.knowledge import constructor, makes_record
from spark_backend.columnar.trees import Array, Leaf, NotColumnar, Rows, Tree, tuples

WHOLE, EXACT = 2.0**62, 2.0**53
_OPERATORS: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
}


def value(expr: Expr, bindings: Sequence[Rows], size: int) -> Rows:
    """What an expression gives of rows.

    Raises
    ------
    NotColumnar: that is not done over columns.
    """
    match expr:
        case Parameter(place):
            return bindings[place]
        case Constant(number) if type(number) in (int, float):
            return _constant(number, size)
        case Attribute(of, name):
            return _tree(value(of, bindings, size)).named(name)
        case Item(of, Constant(place)):
            return _tree(value(of, bindings, size)).at(place)
        case Display("tuple", items):
            return tuples([value(item, bindings, size) for item in items])
        case Call(Constant(kind), arguments, keywords) if makes_record(expr):
            names = constructor(kind) or ()
            given = dict(zip(names, arguments, strict=False)) | dict(keywords)
            parts = tuple(value(given[name], bindings, size) for name in names)
            return Tree(kind, names, parts)
        case Operation(symbol, (left, right)) if symbol in _OPERATORS:
            return _operation(symbol, value(left, bindings, size), value(right, bindings, size))
        case _:
            raise NotColumnar(f"{expr}")


def column(expr: Expr, bindings: Sequence[Rows], size: int) -> Leaf:
    """The same of an expression that gives one column."""
    found = value(expr, bindings, size)
    if not isinstance(found, Leaf):
        raise NotColumnar("a record where a number is wanted")
    return found


def _tree(rows: Rows) -> Tree:
    if isinstance(rows, Leaf):
        raise NotColumnar("a field of a number")
    return rows


def _constant(number: Any, size: int) -> Leaf:
    if isinstance(number, int) and abs(number) >= WHOLE:
        raise NotColumnar("a large integer")
    return Leaf(type(number), lambda: np.full(size, number))


def _operation(symbol: str, left: Rows, right: Rows) -> Leaf:
    if not isinstance(left, Leaf) or not isinstance(right, Leaf):
        raise NotColumnar("an operator of records")
    kind: Any = int if symbol != "/" and left.kind is right.kind is int else float
    one, other = left.values, right.values
    if symbol == "/" and not other.all():
        raise NotColumnar("a division by zero")
    if kind is int:
        sizes = _size(one), _size(other)
        if (sizes[0] * sizes[1] if symbol == "*" else sum(sizes)) >= WHOLE:
            raise NotColumnar("large integers")
    elif any(leaf.kind is int and _size(leaf.values) > EXACT for leaf in (left, right)):
        raise NotColumnar("large integers")
    made = _OPERATORS[symbol](one, other)
    return Leaf(kind, lambda: made)


def _size(values: Array) -> float:
    return float(np.abs(values.astype(np.float64)).max()) if len(values) else 0.0
