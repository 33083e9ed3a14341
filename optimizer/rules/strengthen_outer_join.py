"""Do not keep rows without a partner that the next condition drops.

    where m is not None             where m is not None
      left_join on p        ->        join on p
        S                               S
        M                               M

Sound:  with None in the place of the missing row, the condition is false without raising.
Needs:  constants alone decide the condition then.
Pays:   an inner join, whose sides can be filtered, and no counts of matches.
Source: outer join simplification of SQL optimizers.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import NONE, Constant, Lifted, Parameter, substitute, transform
from optimizer.expressions.evaluated import evaluated
from optimizer.plans.properties import bindings


def strengthen_outer_join(node: plan.Node) -> plan.Node:
    if not isinstance(node, plan.Where) or not isinstance(node.predicate, Lifted):
        return node
    joined, predicate = node.input, node.predicate
    if not isinstance(joined, plan.OuterJoin):
        return node
    count = bindings(joined.left)
    without_right = _is_dropped(predicate, set(range(count, predicate.parameters)))
    without_left = _is_dropped(predicate, set(range(count)))
    kept = {"left": without_right, "right": without_left, "full": without_left or without_right}
    if not kept[joined.kind]:
        return node
    left, right, match = joined.left, joined.right, joined.match
    if joined.kind == "full" and not (without_left and without_right):
        kind = "left" if without_left else "right"
        weaker = plan.OuterJoin(left, right, match, "left" if kind == "left" else "right")
        return plan.Where(weaker, predicate)
    return plan.Where(plan.Join(left, right, match), predicate)


def _is_dropped(predicate: Lifted, missing: set[int]) -> bool:
    """Whether the condition is false where these bindings are None."""
    arguments = tuple(
        NONE if index in missing else Parameter(index) for index in range(predicate.parameters)
    )
    value = transform(substitute(predicate.body, arguments), evaluated)
    return isinstance(value, Constant) and not value.value
