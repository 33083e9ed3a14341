"""Bindings beside those of a row, and rows without them again."""

from __future__ import annotations

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import Expr, Lifted, all_parameters, tuple_of
from optimizer.plans.properties import bindings
from optimizer.subqueries.keyed import names_of


def extended(
    node: plan.Node,
    keep: tuple[int, ...],
    columns: tuple[Expr, ...],
    names: tuple[str, ...] = (),
    origins: tuple[Opaque, ...] = (),
) -> plan.Node:
    """Some bindings of a node, in that order, and then columns computed of all of them.

    `names` are those of its bindings.
    """
    count = bindings(node)
    if keep == tuple(range(count)) and not columns:
        return node
    names = names_of(names, count)
    made = tuple([Lifted(column, names, origins, count) for column in columns])
    return plan.Extend(node, keep, made)


def first_of(node: plan.Node, count: int) -> plan.Node:
    """The first bindings of a node, alone."""
    return extended(node, tuple(range(count)), ())


def row_of(count: int) -> Expr:
    """The bindings of a row as one value."""
    row = all_parameters(count)
    return row[0] if count == 1 else tuple_of(*row)
