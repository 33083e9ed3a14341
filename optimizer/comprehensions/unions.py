"""Operators of collections: `+` of lists and `| & - ^` of sets, of rows and of other values."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.comprehensions import touching
from optimizer.comprehensions.generators import Scope
from optimizer.comprehensions.rows import (
    ONE_ROW,
    ORDER,
    Rows,
    as_set,
    may_lose_order,
    refusal_at,
    row_of_plan,
    select_value,
)
from optimizer.expr import Constant, Display, Expr, Lifted, Operation
from optimizer.lifting.symbols import OPERATORS
from optimizer.plans.nodes.sources import values

SETS = {ast.BitOr: plan.Union, ast.BitAnd: plan.Intersection, ast.Sub: plan.Difference}


def operation(node: ast.BinOp, reader: Any, reading: Any) -> Expr | None:
    """Read `+` of lists and `| & - ^` of sets, else an operator of values; None if no side reads
    relations. Other operators of rows are refused."""
    sides = (node.left, node.right)
    found = [reading.value(side, reader) for side in sides]
    left, right = (
        _as_rows(side, part, reader, reading) for side, part in zip(found, sides, strict=True)
    )
    if left is None or right is None:
        return _operation_of_values(node, found, reader, reading)
    kinds = {left.kind, right.kind}
    if isinstance(node.op, ast.Add) and kinds == {"list"}:
        made = combined(plan.UnionAll, left, right, "list", reading)
        lost = next((side for side in (left, right) if not may_lose_order(side)), None)
        return made if lost is None else replace(made, standing=lost.standing)
    make = SETS.get(type(node.op))
    if kinds == {"set"} and make is not None:
        return combined(make, left, right, "set", reading)
    if kinds == {"set"} and isinstance(node.op, ast.BitXor):
        one = combined(plan.Difference, left, right, "set", reading)
        other = combined(plan.Difference, right, left, "set", reading)
        return combined(plan.UnionAll, one, other, "set", reading)
    if "sorted" in kinds and kinds <= {"sorted", "list"} and isinstance(node.op, ast.Add):
        raise refusal_at(node, reader, ORDER, "sorted(list(a) + list(b))")
    raise refusal_at(
        node,
        reader,
        f"is no operator of {' and '.join(sorted(kinds))}",
        "sets have | & - ^, lists have +",
    )


def _operation_of_values(
    node: ast.BinOp, found: list[Expr | None], reader: Any, reading: Any
) -> Expr | None:
    """Return an operator of values, each of which is read once; None if none reads relations.

    Sides that were read again would take twice the time for each operator inside another.
    """
    if all(side is None for side in found):
        return None
    operands = (
        reader.expr(part) if side is None else reading.as_value(side, part, reader)
        for side, part in zip(found, (node.left, node.right), strict=True)
    )
    return Operation(OPERATORS[type(node.op)], tuple(operands))


def _as_rows(found: Expr | None, node: ast.expr, reader: Any, reading: Any) -> Rows | None:
    """Return a side of an operator of collections, read as `found`; None if it is no collection.

    A display that reads no relation is one, too.
    """
    if isinstance(found, Rows):
        return found
    if isinstance(node, ast.BinOp):
        return None
    kind = _kind_of(node, reader)
    return None if kind is None else elements_as_rows(reader.expr(node), kind, reading)


def _kind_of(node: ast.expr, reader: Any) -> Any:
    """Return the kind of an expression that reads no relation: set, list, or None."""
    if isinstance(node, ast.Set | ast.SetComp):
        return "set"
    if isinstance(node, ast.List | ast.ListComp):
        return "list"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return {"set": "set", "frozenset": "set", "list": "list"}.get(node.func.id)
    value = touching.constant_of(node, reader)
    if isinstance(value, set | frozenset):
        return "set"
    return "list" if isinstance(value, list) else None


def elements_as_rows(of: Expr, kind: Any, reading: Any) -> Rows:
    """Return the elements of a collection that is no relation."""
    written = _constant_elements(of)
    if written is not None:
        given = values(dict.fromkeys(written) if kind == "set" else written)
        return Rows(kind, given, row_of_plan(given), ("row",))
    scope = Scope(reading.scope)
    inner = scope.imported(of)
    function = Lifted(inner, ("row",), reading.origins, 1)
    node = reading.freed(plan.SelectMany(ONE_ROW, function))
    rows = Rows("list", node, row_of_plan(node), ("row",), reading.scope, tuple(scope.arguments))
    return as_set(rows, reading.origins) if kind == "set" else rows


def combined(make: Any, left: Rows, right: Rows, kind: Any, reading: Any) -> Rows:
    """Return a set operation, over the arguments of both sides."""
    one, other = select_value(left, reading.origins), select_value(right, reading.origins)
    scope = Scope(reading.scope)
    nodes = [reading.move_rows(side, scope) for side in (one, other)]
    node = make(nodes[0].node, nodes[1].node)
    return Rows(kind, node, row_of_plan(node), ("row",), reading.scope, tuple(scope.arguments))


def _constant_elements(of: Expr) -> tuple[Any, ...] | None:
    """Return the elements of a collection of constants; None for other expressions."""
    match of:
        case Constant(set() | frozenset() | list() | tuple() as value):
            return tuple(value)
        case Display("set" | "list" | "tuple", items) if all(
            isinstance(item, Constant) for item in items
        ):
            return tuple(item.value for item in items if isinstance(item, Constant))
        case _:
            return None
