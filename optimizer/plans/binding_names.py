"""What the bindings of rows are called: by `extend` and `bind`, as far as they have names.

    extend total=f          None, None, "total"       of two bindings
      join ...

A join has the names of its left, and that of a right of one binding.

Names are for people: equal plans may have others.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.plans.properties import bindings, fact, groups, naming

Names = tuple[str | None, ...]
_SAME = (
    *(plan.Where, plan.Distinct, plan.OrderBy, plan.Top, plan.SemiJoin, plan.AntiJoin),
    *(plan.View, plan.Shared, plan.Union, plan.UnionAll, plan.Difference, plan.DifferenceAll),
    *(plan.Intersection, plan.IntersectionAll),
)
_PAIRS = (plan.Join, plan.OuterJoin, plan.Product)


def binding_names(node: plan.Node) -> Names:
    """The name of each binding, None where it has none."""
    found: Names = fact(node, "binding_names", _names)
    return found


def columns(node: plan.Node) -> list[str] | None:
    """What the columns of rows with several are called: keys and aggregates, or bindings of which
    one has a name, the others by their places; None of other rows."""
    how = naming(node)
    if how is not None:
        return list(how.columns)
    called = binding_names(node)
    if len(called) > 1 and any(called):
        return [name or str(place) for place, name in enumerate(called)]
    aggregate = groups(node)
    if aggregate is None:
        return None
    names = ["key"] * (aggregate.key is not None) + [a.name for a in aggregate.aggregates]
    return [f"{n}_{i}" if names.count(n) > 1 else n for i, n in enumerate(names)]


def _names(node: plan.Node) -> Names:
    count = bindings(node)
    if isinstance(node, plan.Extend):
        return (*node.names, *[None] * count)[:count]
    of = [source.known["binding_names"] for source in node.inputs()]
    if isinstance(node, _PAIRS):
        left, right = of
        is_new = len(right) == 1 and right[0] not in left
        return (*left, right[0] if is_new else None)
    if isinstance(node, (*_SAME, plan.Unnest)):
        return (*of[0], None)[:count]
    return (None,) * count
