"""An aggregate of all rows, and what is computed of it.

select row / row1 if row1 else None            aggregate Sum(o.total), Count()
  aggregate Sum(o.total), Count()       and    lambda row, row1: row / row1 if row1 else None
    ...
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any

from optimizer import plan
from optimizer.expr import (
    FALSE,
    NONE,
    TRUE,
    Conditional,
    Constant,
    Expr,
    Operation,
    all_parameters,
    constant,
    transform,
)
from optimizer.expressions.compose import is_too_long, over
from optimizer.expressions.evaluated import evaluated
from optimizer.expressions.knowledge import Foldable, is_value
from optimizer.plans.extended import outputs
from optimizer.plans.properties import bindings, shapes
from optimizer.record import record
from optimizer.subqueries.outers import read_by, with_values


@record
class Scalar:
    """One value, which is computed of the results of an aggregate."""

    aggregate: plan.Aggregate
    value: Expr


def scalar(query: plan.Node) -> Scalar | None:
    """A query as what is computed of an aggregate of all rows; None if it is no such one."""
    above: list[plan.Select | plan.Extend] = []
    node = query
    while isinstance(node, plan.Select | plan.Extend):
        above.append(node)
        node = node.input
    if not isinstance(node, plan.Aggregate) or node.key is not None:
        return None
    row: tuple[Expr, ...] = all_parameters(bindings(node))
    for each in reversed(above):
        made, of = outputs(each), shapes(each.input)
        if not all(is_value(expr, of) for expr in made):
            return None
        row = tuple([over(expr, row) for expr in made])
    return None if len(row) > 1 or is_too_long(row[0]) else Scalar(node, row[0])


@record
class Result:
    """What an aggregate shows for a row: `value`, if it has rows `there`, and else `of_none`.

    `is_none` says whether the value may be None.
    """

    value: Expr
    there: Expr = TRUE
    of_none: Expr = NONE
    is_none: bool = True


def shown(found: Scalar, results: Sequence[Result], arguments: tuple[Expr, ...]) -> Expr:
    """The value of results of one aggregate: what is computed of them where it has rows, or else
    what is computed of no rows, which may be known."""
    some, none = [r.value for r in results], [r.of_none for r in results]
    there = results[0].there if results else TRUE
    if there == TRUE:
        return _of(found, some, arguments)
    if read_by(found.value):
        each = [Conditional(r.there, r.value, r.of_none) for r in results]
        return _of(found, each, arguments)
    is_there = frozenset(r.value for r in results if not r.is_none)
    of_some = _decided(_of(found, some, arguments), is_there)
    return Conditional(there, of_some, _decided(_of(found, none, arguments)))


def _of(found: Scalar, results: Sequence[Expr], arguments: tuple[Expr, ...]) -> Expr:
    return with_values(over(found.value, tuple(results)), arguments)


def _decided(expr: Expr, present: frozenset[Expr] = frozenset()) -> Expr:
    """An expression in which what is known not to be None is not asked for that."""

    def decided(part: Expr) -> Expr:
        match part:
            case Operation("is" | "is not" as operator, (of, Constant(None))) if of in present:
                return TRUE if operator == "is not" else FALSE
            case _:
                return evaluated(part)

    return transform(expr, decided)


def constant_of_no_rows(value: Any) -> Constant:
    """Return as an expression what an aggregate shows of no rows; empty collections are equal."""
    if isinstance(value, Foldable) and isinstance(value, Sized) and not len(value):
        return Constant(value, ("empty", type(value)))
    return constant(value)
