"""What the bindings of rows are called: by `extend` and `bind`, as far as they have names.

    extend total=f          None, None, "total"       of two bindings
      join ...

A join has the names of its left, and that of a right of one binding.

Names are for people: equal plans may have others.
"""

from __future__ import annotations

from collections.abc import Sequence

from optimizer import plan
from optimizer.expr import Call, Constant, Lifted, all_parameters
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


def columns(node: plan.Node, of_sql: Sequence[str] | None = None) -> list[str] | None:
    """What the columns of rows with several are called: keys and aggregates, or bindings of which
    one has a name, the others by their places; None of other rows. Those of SQL as it says."""
    if of_sql is not None:
        return list(of_sql)
    how = naming(node)
    fields = _fields_in_order(node) if how is None else how.columns
    if fields is not None:
        return list(fields)
    called = binding_names(node)
    if any(called):
        return [name or str(place) for place, name in enumerate(called)]
    aggregate = groups(node)
    if aggregate is None:
        return None
    names = ["key"] * (aggregate.key is not None) + [a.name for a in aggregate.aggregates]
    return [f"{n}_{i}" if names.count(n) > 1 else n for i, n in enumerate(names)]


def _fields_in_order(node: plan.Node) -> tuple[str, ...] | None:
    """The names of named rows in an order, beside which is what they stand by."""
    while isinstance(node, plan.Where):
        node = node.input
    rows = node.input if isinstance(node, plan.OrderBy) and node.shown == 1 else None
    made = rows.columns[0] if isinstance(rows, plan.Extend) and not rows.keep else None
    body = made.body if isinstance(made, Lifted) else None
    if not isinstance(body, Call) or not isinstance(body.function, Constant):
        return None
    names: tuple[str, ...] | None = getattr(body.function.value, "_fields", None)
    return names if names and body.arguments == all_parameters(len(names)) else None


def written_names(node: plan.Node, of_sql: Sequence[str] | None = None) -> list[str] | None:
    """The names of columns that somebody gave, each once: those that JSON is to have."""
    names = of_sql if of_sql is not None else any(binding_names(node)) and columns(node)
    return list(names) if names and len({*names}) == len(names) else None


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
