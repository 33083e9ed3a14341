"""Whether each left row of an outer join has a partner: the group that it is of itself.

left_join o.cid == row[0]
  where o.paid
    table orders
  aggregate Max(o.total) by o.cid
    table orders
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Expr, Item, Lifted, Parameter, constant
from optimizer.expressions.declared import holds_no_nan
from optimizer.plans.properties import free, may_be_negative, shapes
from optimizer.plans.side_conditions import side_conditions_of

BEGIN_WITH_LEFT = (
    *(plan.Where, plan.Distinct, plan.SemiJoin, plan.AntiJoin),
    *(plan.Join, plan.Product, plan.Shared),
)
KEY_OF_GROUP = Item(Parameter(0), constant(0))


def is_always_matched(joined: plan.OuterJoin) -> bool:
    """Whether the right side has a row for each of the left, whatever the tables hold."""
    groups = joined.right
    if not isinstance(groups, plan.Aggregate) or not isinstance(groups.key, Lifted):
        return False
    if groups.row is not None or free(joined) or may_be_negative(joined):
        return False
    left, right = _keys(joined)
    if left is None or left != groups.key.body or right != KEY_OF_GROUP:
        return False
    return holds_no_nan(left, shapes(joined.left)) and _begins_with(joined.left, groups.input)


def _keys(joined: plan.OuterJoin) -> tuple[Expr | None, Expr | None]:
    """What of a left row is equal to what of a right one, if nothing else is asked."""
    match joined.match:
        case plan.Match(Lifted() as left, Lifted() as right, None):
            return left.body, right.body
        case plan.Match(None, None, Lifted()):
            found = side_conditions_of(joined)
            if found is None or found.residual is not None:
                return None, None
            if len(found.left) == len(found.right) == 1 and found.left[0].is_key:
                return found.left[0].function.body, found.right[0].function.body
    return None, None


def _begins_with(node: plan.Node, source: plan.Node) -> bool:
    """Whether each row begins with the bindings of one of a source."""
    while node is not source:
        is_left = isinstance(node, plan.OuterJoin) and node.kind == "left"
        if not isinstance(node, BEGIN_WITH_LEFT) and not is_left:
            return False
        node = node.inputs()[0]
    return True
