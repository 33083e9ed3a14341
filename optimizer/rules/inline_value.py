"""Replace a join with a single written row by constants.

    join on p(s, m)               extend row
      S                     ->      where p(s, row)
      values row                      S

Sound:  each row has one partner at most, of weight 1.
Needs:  one row; the condition, if there is one, is lifted, and no keys are written beside it.
Pays:   no join; the condition can go further down.
Source: constant propagation.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Expr, Lifted, Parameter, all_parameters, one_value, row_names
from optimizer.expressions.text import over
from optimizer.plans.join_lists import extend_of
from optimizer.plans.properties import bindings
from optimizer.rules.fold_values import literal


def inline_value(node: plan.Node) -> plan.Node:
    """Replace a product or join with one written row by constants; other nodes unchanged."""
    match node:
        case plan.Product(left, plan.Values((row,))):
            return _append_row(left, literal(row))
        case plan.Join(left, plan.Values((row,)), plan.Match(None, None, Lifted() as on)):
            beside = literal(row)
            return _append_row(_where_with(left, on, (*_parameters_of(left), beside)), beside)
        case plan.Product(plan.Values((row,)) as left, right):
            return _prepend_row(right, _bindings_of_literal(row, left))
        case plan.Join(plan.Values((row,)) as left, right, plan.Match(None, None, Lifted() as on)):
            before = _bindings_of_literal(row, left)
            return _prepend_row(
                _where_with(right, on, (*before, one_value(_parameters_of(right)))), before
            )
        case _:
            return node


def _parameters_of(node: plan.Node) -> tuple[Parameter, ...]:
    return all_parameters(bindings(node))


def _bindings_of_literal(row: object, node: plan.Node) -> tuple[Expr, ...]:
    several = bindings(node) > 1 and isinstance(row, tuple)
    return tuple(map(literal, row)) if several else (literal(row),)  # type: ignore[call-overload]


def _where_with(node: plan.Node, on: Lifted, row: tuple[Expr, ...]) -> plan.Node:
    count = bindings(node)
    return plan.Where(node, Lifted(over(on.body, row), row_names(count), on.origins, count))


def _append_row(left: plan.Node, beside: Expr) -> plan.Node:
    return _extend_with(left, (*_parameters_of(left), beside))


def _prepend_row(right: plan.Node, before: tuple[Expr, ...]) -> plan.Node:
    return _extend_with(right, (*before, one_value(_parameters_of(right))))


def _extend_with(node: plan.Node, row: tuple[Expr, ...]) -> plan.Node:
    count = bindings(node)
    return extend_of(node, [Lifted(expr, row_names(count), (), count) for expr in row])
