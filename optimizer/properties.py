"""What is known of a plan's rows without seeing any."""

from __future__ import annotations

from optimizer import plan


def bindings(node: plan.Node) -> int:
    """How many values a row carries side by side; with more than one it is a tuple of them."""
    appended = 0
    while True:
        match node:
            case plan.Table() | plan.Select() | plan.SelectMany():
                return appended + 1
            case plan.Aggregate(_, key, aggregates):
                return appended + len(aggregates) + (key is not None)
            case plan.Unnest() | plan.Product() | plan.Join() | plan.OuterJoin():
                appended += 1
        node = node.inputs()[0]


def table_key(node: plan.Node) -> plan.Table | None:
    """The keyed table whose rows, at most one per key, these are some of."""
    while isinstance(node, _SOME_OF_LEFT):
        node = node.inputs()[0]
    return node if isinstance(node, plan.Table) and node.key is not None else None


def groups(node: plan.Node) -> plan.Aggregate | None:
    """The aggregate whose rows, one per group, these are some of."""
    while isinstance(node, plan.Where | plan.OrderBy):
        node = node.input
    return node if isinstance(node, plan.Aggregate) else None


_SOME_OF_LEFT = (
    *(plan.Where, plan.Distinct, plan.OrderBy, plan.SemiJoin, plan.AntiJoin),
    *(plan.Difference, plan.DifferenceAll),
)


def keeps_identity(node: plan.Node) -> bool:
    """Whether a row leaves as the same object as it came.

    Rows of a stored table are interned, and these nodes hand them on. State above them may be
    kept by `id(row)`, which costs a tenth of hashing a dataclass by value.
    """
    passing = (plan.Where, plan.UnionAll)
    return all(
        isinstance(n, passing) or (isinstance(n, plan.Table) and n.stored)
        for n in nodes(node, into=passing)
    )


def tables(node: plan.Node) -> list[plan.Table]:
    """All tables that the plan reads, each once."""
    return [n for n in nodes(node) if isinstance(n, plan.Table)]


def nodes(node: plan.Node, into: type | tuple[type, ...] = plan.Node) -> list[plan.Node]:
    """A plan's nodes, each once, inputs first; only `into` nodes of these types is looked."""
    found: dict[int, plan.Node] = {}
    waiting: list[tuple[plan.Node, bool]] = [(node, False)]
    while waiting:
        current, complete = waiting.pop()
        if complete:
            found[id(current)] = current
        elif id(current) not in found:
            waiting.append((current, True))
            if isinstance(current, into):
                waiting.extend((source, False) for source in reversed(current.inputs()))
    return list(found.values())
