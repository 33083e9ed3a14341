"""Evaluate nodes over rows that are written in the query.

    select r * 10                   values 10, 20
      values 1, 2           ->

    where r > 1                     values 2
      values 1, 2           ->

    distinct                        values 1
      values 1, 1           ->

    union_all                       values 1, 2
      values 1              ->
      values 2

Sound:  only operations on plain built-in values are evaluated, as in `fold_constants`; if one
        raises, or another function is called, the node is left in place.
Needs:  few rows, and no NaN.
Pays:   no operator runs; a relation without rows empties the nodes above it.
Source: constant folding.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from optimizer import plan
from optimizer.expr import Constant, Display, Expr, Lifted, constant, tuple_of
from optimizer.expressions.text import over
from optimizer.plans.join_lists import outputs
from optimizer.plans.nodes.sources import values
from optimizer.plans.properties import bindings, shapes

MOST = 100
"""Rows that are computed beforehand."""


def fold_values(node: plan.Node) -> plan.Node:
    """Evaluate a node over written rows; unchanged if these are many, or a result is not
    constant."""
    match node:
        case plan.Values(()):
            return plan.Empty(bindings(node))
        case plan.Where(plan.Values(rows) as source, Lifted(test)) if len(rows) <= MOST:
            kept = [(row, _evaluate(over(test, _literal_bindings(row, source)))) for row in rows]
            known = [value for _, value in kept]
            return node if None in known else _values_like([row for row, v in kept if v[0]], source)  # type: ignore[index]
        case plan.Select(plan.Values(rows) as source) | plan.Extend(plan.Values(rows) as source):
            if len(rows) > MOST:
                return node
            made = [_evaluate_row(outputs(node), _literal_bindings(row, source)) for row in rows]
            return node if None in made else _values_like([row[0] for row in made if row], node)
        case plan.Distinct(plan.Values(rows) as source):
            return _values_like(dict.fromkeys(rows), source)
        case plan.UnionAll(plan.Values(rows), plan.Values(others)):
            return _values_like((*rows, *others), node)
        case _:
            return node


def literal(value: Any) -> Expr:
    """Return a value as an expression; tuples become displays."""
    return tuple_of(*map(literal, value)) if type(value) is tuple else constant(value)


def _values_like(rows: Iterable[Any], node: plan.Node) -> plan.Node:
    """Return the rows as a node with the shapes of `node`."""
    kept = tuple(rows)
    count = bindings(node)
    if count == 1:
        return values(kept) if kept else plan.Empty(1)
    of = values(kept).of[0]
    return values(kept, of if isinstance(of, tuple) else shapes(node))


def _literal_bindings(row: Any, node: plan.Node) -> tuple[Expr, ...]:
    return tuple(map(literal, row)) if bindings(node) > 1 else (literal(row),)


def _evaluate_row(every: tuple[Expr, ...], row: tuple[Expr, ...]) -> tuple[Any] | None:
    """Return the row that is computed of one, in a tuple; None if it is unknown."""
    found = [_evaluate(over(expr, row)) for expr in every]
    if None in found:
        return None
    parts = tuple([value[0] for value in found if value is not None])
    return (parts if len(parts) > 1 else parts[0],)


def _evaluate(expr: Expr) -> tuple[Any] | None:
    """Return the value of a constant expression, in a tuple; None for others, and for NaN."""
    match expr:
        case Constant(value):
            is_nan = isinstance(value, float | complex | Decimal) and value != value
            return None if is_nan else (value,)
        case Display("tuple", items):
            found = [_evaluate(item) for item in items]
            return None if None in found else (tuple([v[0] for v in found if v is not None]),)
        case _:
            return None
