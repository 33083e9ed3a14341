"""Push a condition below a product that several nodes read, if it makes a join of it.

    where p(a, b)             join on p(a, b)
      shared            ->      A
        product                 B
          A
          B

The other readers keep the product, until they push their own conditions. The product may be below
selects, extends and wheres, and may be joins of several inputs, of which one looks at every pair.

Sound:  both evaluate the same nodes over the same rows.
Needs:  the condition, or a where below it, compares two inputs that are not joined by a key.
Pays:   a join looks partners up; the shared product keeps every pair. Inputs are computed once.
Source: TPC-DS 88 and 90, which have the same FROM list in each sub-query.
"""

from __future__ import annotations

from collections.abc import Sequence

from optimizer import plan
from optimizer.expr import Expr, Lifted, Operation, conjuncts, reads, walk
from optimizer.expressions.text import over
from optimizer.plans.join_lists import composed_over, join_list
from optimizer.rules.make_join import make_join
from optimizer.rules.merge_where_into_join import merge_where_into_join
from optimizer.traverse import share_input, with_inputs

COMPARED = frozenset({"==", "<", "<=", ">", ">="})
LINEAR = (plan.Where, plan.Select, plan.Extend)


def push_where_below_shared(node: plan.Node) -> plan.Node:
    """Read an own copy of a shared product that the conditions above make a join."""
    wheres: list[plan.Where] = []
    source = node
    while isinstance(source, plan.Where) and isinstance(source.predicate, Lifted):
        wheres.append(source)
        source = source.input
    if not wheres or not isinstance(source, plan.Shared):
        return node
    found = _own_copy(source.input, [where.predicate for where in wheres])
    if found is None:
        return node
    for where in reversed(wheres):
        found = merge_where_into_join(make_join(with_inputs(where, [found])))
    return found


def _own_copy(node: plan.Node, tests: Sequence[object]) -> plan.Node | None:
    """Return a copy of a node that a test over its rows makes a join; None without such a test."""
    linear: list[plan.Node] = []
    asked = [test for test in tests if isinstance(test, Lifted)]
    while isinstance(node, LINEAR):
        if not isinstance(node, plan.Where):
            below = [composed_over(test, node) for test in asked]
            asked = [test for test in below if test is not None]
        linear.append(node)
        node = node.input
    if not any(_joins_inputs(node, test) for test in asked):
        return None
    found = _share_inputs(node)
    for each in reversed(linear):
        found = with_inputs(each, [found])
    return found


def _joins_inputs(node: plan.Node, test: Lifted) -> bool:
    """Return True if a test compares two inputs of joins that look at every pair."""
    joined = join_list(node)
    if joined is None or not joined.without_keys:
        return False
    place = joined.input_of()

    def compares(part: Expr) -> bool:
        if not isinstance(part, Operation) or part.operator not in COMPARED:
            return False
        return len({place[flat] for flat in reads(part)}) > 1

    return any(
        compares(part) for each in conjuncts(test.body) for part in walk(over(each, joined.row))
    )


def _share_inputs(node: plan.Node) -> plan.Node:
    """Return the same joins over inputs that other copies of them read, too."""
    if isinstance(node, plan.Product | plan.Join | plan.Extend):
        return with_inputs(node, map(_share_inputs, node.inputs()))
    source = node
    while isinstance(source, LINEAR):
        source = source.input
    return node if isinstance(source, plan.Table | plan.Values) else share_input(node)
