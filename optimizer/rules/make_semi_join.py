"""Turn a join into a semi_join if only the existence of a partner matters.

    distinct                        distinct
      select f(s)                     select f(s)
        join on p           ->          semi_join on p
          S                               S
          M                               M

The rule also applies in union, difference and intersection, on the right side of a semi_join or
anti_join, in a recursion, to any unread input of nested joins, and below joins and selects there.

Sound:  there only the presence of a row counts, and an s is present if it has a partner.
Needs:  f reads nothing of M, and M nothing of a recursion around it; stored tables, since two
        negative weights make a positive one. With several joins, or a side other than the right
        one, no predicate may raise.
Pays:   no pair is made; by key alone, the right side is a number per key.
Source: [i3ql] P11; EXISTS of SQL; `_` of Datalog.
"""

from __future__ import annotations

from dataclasses import replace
from operator import is_

from optimizer import plan
from optimizer.expr import Expr, Lifted, conjuncts, origins, reads
from optimizer.expressions.text import over
from optimizer.plans import join_order
from optimizer.plans.join_lists import extend_of, join_list, outputs
from optimizer.plans.properties import bindings, free, may_be_negative, with_present
from optimizer.traverse import functions, read_functions, with_inputs

DEEPEST = 50


HAS_SETS = (
    *(plan.Distinct, plan.Union, plan.Difference, plan.Intersection),
    *(plan.SemiJoin, plan.AntiJoin, plan.Fixpoint),
)


def make_semi_join(node: plan.Node) -> plan.Node:
    """Turn joins into semi-joins where only presence is read; other nodes unchanged."""
    if not isinstance(node, HAS_SETS) or may_be_negative(node):
        return node
    if isinstance(node, plan.Fixpoint):
        bodies = tuple(map(_only_presence, node.bodies))
        return node if all(map(is_, bodies, node.bodies)) else replace(node, bodies=bodies)
    return with_present(node, _only_presence)


def _only_presence(node: plan.Node, depth: int = 0) -> plan.Node:
    """Return a node with the same rows, whose weights may differ; itself if nothing changes."""
    if depth > DEEPEST:
        return node
    match node:
        case plan.UnionAll(left, right):
            a, b = _only_presence(left, depth + 1), _only_presence(right, depth + 1)
            return node if a is left and b is right else plan.UnionAll(a, b)
        case plan.Where():
            return _with_present_inputs(node, depth)
        case plan.Select() | plan.Extend():
            made = _of_joins(node) or _semi_join_of_pairs(node)
            return made or _with_present_inputs(node, depth)
        case plan.Join() | plan.Product():
            return _with_present_inputs(node, depth)
        case plan.SemiJoin(left) | plan.AntiJoin(left):
            inner = _only_presence(left, depth + 1)
            return node if inner is left else replace(node, left=inner)
        case _:
            return node


def _with_present_inputs(node: plan.Node, depth: int) -> plan.Node:
    """Return a node over inputs that keep their rows, but perhaps not the weights."""
    return with_inputs(node, [_only_presence(source, depth + 1) for source in node.inputs()])


def _of_joins(node: plan.Select | plan.Extend) -> plan.Node | None:
    """Return a projection of nested joins, without the inputs that nothing reads.

    Return None if the node projects no joins, has a callable that is not lifted, or reads all
    inputs, or if a test may raise.
    """
    source, asked = node.input, list[Expr]()
    while isinstance(source, plan.Where) and isinstance(source.predicate, Lifted):
        asked = [*conjuncts(source.predicate.body), *asked]
        source = source.input
    made = read_functions(node)
    joins = join_list(source, next((f.names for f in made), ()))
    if joins is None or len(made) < len(functions(node)):
        return None
    joins = replace(joins, tests=(*joins.tests, *(over(test, joins.row) for test in asked)))
    row = tuple(over(expr, joins.row) for expr in outputs(node))
    found = join_order.without_existential(joins, frozenset().union(*map(reads, row)))
    if found is None:
        return None
    names, origin = found.names(joins), origins(*made)
    new = [Lifted(found.read(expr), names, origin, len(names)) for expr in row]
    if isinstance(node, plan.Select):
        return plan.Select(found.node, new[0])
    return extend_of(found.node, new, node.names)


def _semi_join_of_pairs(node: plan.Select | plan.Extend) -> plan.Node | None:
    """Return a projection of a join as the same projection of a semi-join.

    In contrast to `_of_joins`, the predicate of the join may raise, and its keys may be written.
    Return None for an `Extend`; if the projection is not of a join, is not lifted, or reads the
    right side; and if that side reads a recursion around the join.
    """
    match node:
        case plan.Select(plan.Join(left, right, match), Lifted() as f) if not free(right):
            count = bindings(left)
            if count in reads(f.body):
                return None
            read = Lifted(f.body, f.names[:count], f.origins, count)
            return plan.Select(plan.SemiJoin(left, right, match), read)
        case _:
            return None
