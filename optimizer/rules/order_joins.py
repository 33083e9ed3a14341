"""Reorder joins so that each input is looked up by a key, if possible.

    join x.k == y.k and y.n == z.n          bind x, z, y
      product                                 join y.n == z.n
        x                             ->        join x.k == y.k
        z                                         x
      y                                           y
                                                z

Inputs that no equation leads to are joined by themselves, and the parts form a product. Among
several inputs that can be looked up next, the first as written is chosen. The numbers of rows are
not compared: equal queries would then have different plans, and an operator of several inputs
(`multiway.py`) chooses by the current rows at each change.

Sound:  see `join_order.py`. The bindings keep their written order.
Needs:  fewer joins look at every pair than as written.
Pays:   products of inputs are not made.
Source: join graphs of SQL optimizers: Selinger et al., *Access Path Selection*, 1979.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Expr, Lifted, Parameter
from optimizer.plans import join_order
from optimizer.plans.join_lists import JoinList, extend_of, join_list
from optimizer.plans.side_conditions import has_keys


def order_joins(node: plan.Node) -> plan.Node:
    """Reorder three joined inputs or more, if fewer joins are then without a key; else
    unchanged."""
    if not isinstance(node, plan.Join | plan.Product) or not _looks_at_pairs(node):
        return node
    joins = join_list(node)
    if joins is None or len(joins.inputs) < 3:
        return node
    order = join_order.best_order(joins)
    if len(order) - 1 >= joins.without_keys:
        return node
    made = join_order.join_in_order(joins, order)
    return _as_written(joins, made) if made.without_keys < joins.without_keys else node


def _looks_at_pairs(node: plan.Node) -> bool:
    """Return True if one of nested joins does not look partners up."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, plan.Join | plan.Product | plan.Extend):
            if not isinstance(node, plan.Extend) and not has_keys(node):
                return True
            waiting.extend(node.inputs())
    return False


def _as_written(joins: JoinList, made: join_order.JoinedInputs) -> plan.Node:
    names, of = made.names(joins), [_name_of_binding(joins, expr) for expr in joins.row]
    row = [Lifted(made.read(expr), names, (), len(names)) for expr in joins.row]
    return extend_of(made.node, row, tuple(of))


def _name_of_binding(joins: JoinList, binding: Expr) -> str | None:
    return joins.names[binding.index] if isinstance(binding, Parameter) else None
