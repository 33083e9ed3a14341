"""A name that a function gives to a part of a query: computed where it stands, or where it is read.

    total = sum(o.total for o in orders)        an expression, in the place of the name
    owed = {o.cid for o in orders}              rows, in the place of the name
    worst = max(o.total for o in orders)        raises if there is no order, whether or not it is
    return [...]                                read: it is computed before the rows

Sound:  what raises nothing, or is read in any case, need not be computed before.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.comprehensions.rows import ONE_ROW, Rows, selected, standing_of
from optimizer.comprehensions.scope import is_closed
from optimizer.expr import (
    TRUE,
    Expr,
    First,
    Outer,
    Parameter,
    Subquery,
    items_of,
    transform,
    tuple_of,
    walk,
)
from optimizer.expressions.compose import over
from optimizer.expressions.knowledge import total
from optimizer.plans.properties import bindings, shapes
from optimizer.subqueries.raising import is_quiet


def after(name: str, value: Expr, then: Expr, rest: Sequence[ast.stmt], reading: Any) -> Expr:
    """What goes on after a name was given a value."""
    if _is_read(name, rest) or _is_quiet(value, reading):
        return then
    need = _computed(value, reading) if isinstance(value, Rows) else value
    if not isinstance(then, Rows):
        return First((need,), then)
    if then.arguments or not is_closed(need):
        return _of_each(need, then, reading)
    once = plan.Where(ONE_ROW, reading.function_of(First((need,), TRUE), 1))
    node = plan.Product(reading.freed(once), then.node)
    width = bindings(then.node)
    if then.is_whole and width == 1:
        both = reading.function_of(Parameter(1), 2, ("once", "row"))
        made = plan.Select(node, both)
        standing = None if standing_of(then) is None else then.standing
        standing = standing and replace(standing, node=made)
        return replace(then, node=made, standing=standing or then.standing)
    own = (Parameter(1),) if width == 1 else items_of(Parameter(1), width)
    order = then.order and then.order.over([over(key, own) for key in then.order.exprs])
    standing = standing_of(then) if order is None else None
    if standing is not None:
        keys = tuple((over(key, own), *how) for key, *how in standing.keys)
        standing = replace(standing, node=node, keys=keys)
    row = tuple(over(e, own) for e in then.row)
    return replace(
        then,
        node=node,
        row=row,
        names=("once", "row"),
        order=order,
        standing=standing or then.standing,
    )


def _of_each(need: Expr, then: Rows, reading: Any) -> Rows:
    """Rows, for each of which what is needed is computed."""
    arguments = tuple(reading.scope.adopt(e, then.scope) for e in then.arguments)
    needed = need if is_closed(need) else Outer(len(arguments))
    given = arguments if is_closed(need) else (*arguments, need)
    rows = replace(then, scope=reading.scope, arguments=given)
    return reading.where(rows, First((needed,), TRUE))  # type: ignore[no-any-return]


def _computed(rows: Rows, reading: Any) -> Expr:
    """An expression that raises what computing rows does."""
    value = rows.value if len(rows.row) == 1 else tuple_of(*rows.row)
    made = selected(replace(rows, row=(value,)), reading.origins)
    return reading.folded(made, "Count", None)  # type: ignore[no-any-return]


def _is_quiet(value: Expr, reading: Any) -> bool:
    """Whether computing a value raises nothing."""
    if isinstance(value, Rows):
        known = shapes(value.node)
        return is_quiet(value.node) and all(total(e, known) for e in value.row)
    queries = [part for part in walk(value) if isinstance(part, Subquery)]
    every = [value, *(argument for query in queries for argument in query.arguments)]
    rest = [transform(e, lambda e: TRUE if isinstance(e, Subquery) else e) for e in every]
    return all(is_quiet(q.query) for q in queries) and all(total(e, reading.shapes) for e in rest)


def _is_read(name: str, rest: Sequence[ast.stmt]) -> bool:
    """Whether the statements that follow read a name in any case."""
    for statement in rest:
        match statement:
            case ast.Return(ast.expr() as value) | ast.Assign(_, value):
                if _reads(value, name):
                    return True
            case ast.AnnAssign(_, _, ast.expr() as value):
                if _reads(value, name):
                    return True
            case _:
                return False
    return False


def _reads(node: ast.AST, name: str) -> bool:
    """Whether evaluating a part evaluates a name."""
    match node:
        case ast.Name(found):
            return found == name
        case ast.BoolOp(_, [first, *_]):
            return _reads(first, name)
        case ast.IfExp(test):
            return _reads(test, name)
        case ast.Lambda():
            return False
        case ast.Compare(left, _, [right, *_]):
            return _reads(left, name) or _reads(right, name)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return _reads(node.generators[0].iter, name)
        case _:
            return any(_reads(each, name) for each in ast.iter_child_nodes(node))
