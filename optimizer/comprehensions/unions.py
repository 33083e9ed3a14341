"""Operators of sets and lists of rows, and collections that are written out beside them.

{o.cid for o in orders} | {0}       union
{...} & {...}, {...} - {...}        intersection, difference
[...] + [...]                       union_all
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.comprehensions import touching
from optimizer.comprehensions.refusals import ORDER, refused
from optimizer.comprehensions.rows import ONE_ROW, Rows, as_set, may_lose_order, row_of, selected
from optimizer.comprehensions.scope import Scope
from optimizer.expr import Constant, Display, Expr, Lifted
from optimizer.plans.nodes.values import values

SETS = {ast.BitOr: plan.Union, ast.BitAnd: plan.Intersection, ast.Sub: plan.Difference}


def operation(node: ast.BinOp, reader: Any, reading: Any) -> Expr | None:
    left, right = (_side(e, reader, reading) for e in (node.left, node.right))
    if left is None or right is None:
        return None
    kinds = {left.kind, right.kind}
    if isinstance(node.op, ast.Add) and kinds == {"list"}:
        made = _both(plan.UnionAll, left, right, "list", reading)
        lost = next((side for side in (left, right) if not may_lose_order(side)), None)
        return made if lost is None else replace(made, standing=lost.standing)
    make = SETS.get(type(node.op))
    if kinds == {"set"} and make is not None:
        return _both(make, left, right, "set", reading)
    if kinds == {"set"} and isinstance(node.op, ast.BitXor):
        one = _both(plan.Difference, left, right, "set", reading)
        other = _both(plan.Difference, right, left, "set", reading)
        return _both(plan.UnionAll, one, other, "set", reading)
    if "sorted" in kinds and kinds <= {"sorted", "list"} and isinstance(node.op, ast.Add):
        raise refused(node, reader, ORDER, "sorted(list(a) + list(b))")
    raise refused(
        node,
        reader,
        f"is no operator of {' and '.join(sorted(kinds))}",
        "sets have | & - ^, lists have +",
    )


def _side(node: ast.expr, reader: Any, reading: Any) -> Rows | None:
    """One side of an operator of collections, which may also be written out."""
    if touching.touches(node, reader, reading):
        found = reading.value(node, reader)
        if isinstance(found, Rows):
            return found
    if isinstance(node, ast.BinOp):
        return None
    kind = _kind_of(node, reader)
    return None if kind is None else elements(reader.expr(node), kind, reading)


def _kind_of(node: ast.expr, reader: Any) -> Any:
    """Whether what reads no relation is a set or a list."""
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


def elements(of: Expr, kind: Any, reading: Any) -> Rows:
    """The elements of a collection that no relation has."""
    written = _written(of)
    if written is not None:
        given = values(dict.fromkeys(written) if kind == "set" else written)
        return Rows(kind, given, row_of(given), ("row",))
    scope = Scope(reading.scope)
    inner = scope.imported(of)
    function = Lifted(inner, ("row",), reading.origins, 1)
    node = reading.freed(plan.SelectMany(ONE_ROW, function))
    rows = Rows("list", node, row_of(node), ("row",), reading.scope, tuple(scope.arguments))
    return as_set(rows, reading.origins) if kind == "set" else rows


def _both(make: Any, left: Rows, right: Rows, kind: Any, reading: Any) -> Rows:
    """A set operation, over the arguments of both sides."""
    one, other = selected(left, reading.origins), selected(right, reading.origins)
    scope = Scope(reading.scope)
    nodes = [reading.placed(side, scope) for side in (one, other)]
    node = make(nodes[0].node, nodes[1].node)
    return Rows(kind, node, row_of(node), ("row",), reading.scope, tuple(scope.arguments))


def _written(of: Expr) -> tuple[Any, ...] | None:
    """The elements of a collection of constants."""
    match of:
        case Constant(set() | frozenset() | list() | tuple() as value):
            return tuple(value)
        case Display("set" | "list" | "tuple", items) if all(
            isinstance(item, Constant) for item in items
        ):
            return tuple(item.value for item in items if isinstance(item, Constant))
        case _:
            return None
