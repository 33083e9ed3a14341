"""What is known of a plan's rows without seeing any."""

from __future__ import annotations

from optimizer import plan


def bindings(node: plan.Node) -> int:
    """How many values a row carries side by side; with more than one it is a tuple of them."""
    match node:
        case plan.Table() | plan.Select() | plan.SelectMany():
            return 1
        case plan.Unnest(source, _):
            return bindings(source) + 1
        case plan.Product(left, _) | plan.Join(left, _, _) | plan.OuterJoin(left, _, _, _):
            return bindings(left) + 1
        case plan.Aggregate(_, key, aggregates):
            return len(aggregates) + (key is not None)
        case _:
            return bindings(node.inputs()[0])


def table_key(node: plan.Node) -> plan.Table | None:
    """The keyed table whose rows, at most one per key, these are some of."""
    match node:
        case plan.Table(key=key) if key is not None:
            return node
        case plan.Where(source, _) | plan.Distinct(source) | plan.OrderBy(source, _, _, _, _):
            return table_key(source)
        case plan.SemiJoin(left, _, _) | plan.AntiJoin(left, _, _):
            return table_key(left)
        case plan.Difference(left, _) | plan.DifferenceAll(left, _):
            return table_key(left)
        case _:
            return None


def groups(node: plan.Node) -> plan.Aggregate | None:
    """The aggregate whose rows, one per group, these are some of."""
    match node:
        case plan.Aggregate():
            return node
        case plan.Where(source, _) | plan.OrderBy(source, _, _, _, _):
            return groups(source)
        case _:
            return None


def keeps_identity(node: plan.Node) -> bool:
    """Whether a row leaves as the same object as it came.

    Rows of a stored table are interned, and these nodes hand them on. State above them may be
    kept by `id(row)`, which costs a tenth of hashing a dataclass by value.
    """
    match node:
        case plan.Table(stored=stored):
            return stored
        case plan.Where(source, _):
            return keeps_identity(source)
        case plan.UnionAll(left, right):
            return keeps_identity(left) and keeps_identity(right)
        case _:
            return False


def tables(node: plan.Node) -> frozenset[plan.Table]:
    """All tables that the plan reads."""
    if isinstance(node, plan.Table):
        return frozenset({node})
    return frozenset().union(*(tables(source) for source in node.inputs()))
