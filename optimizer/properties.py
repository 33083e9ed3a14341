"""What is known of a plan's rows without seeing any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_origin

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.knowledge import Shape, Shapes, shape_of


def bindings(node: plan.Node) -> int:
    """How many values a row carries side by side; with more than one it is a tuple of them."""
    appended = 0
    while True:
        match node:
            case plan.Table() | plan.Select() | plan.SelectMany():
                return appended + 1
            case plan.Fixpoint() | plan.Component():
                return appended + 1
            case plan.Recursive(of=of):
                return appended + len(of)
            case plan.Empty(count):
                return appended + count
            case plan.Aggregate(_, key, aggregates):
                return appended + len(aggregates) + (key is not None)
            case plan.Unnest() | plan.Product() | plan.Join() | plan.OuterJoin():
                appended += 1
        node = node.inputs()[0]


def shapes(node: plan.Node) -> Shapes:
    """What is known of each binding of the rows."""
    found: Shapes = _fact(node, _shapes)
    return found


def is_set(node: plan.Node) -> bool:
    """Whether no row occurs twice."""
    return bool(_fact(node, _is_set))


def free(node: plan.Node) -> frozenset[Any]:
    """The levels of the recursive relations that it reads outside their definition."""
    found: frozenset[Any] = _fact(node, _free)
    return found


def _free(node: plan.Node) -> frozenset[Any]:
    read: frozenset[Any] = frozenset().union(*map(free, node.inputs()))
    match node:
        case plan.Recursive(level):
            return frozenset([level])
        case plan.Fixpoint(level=level):
            return read - {level}
        case plan.Iterate(start, body, level):
            return free(start) | (free(body) - {level})
        case _:
            return read


def _fact(node: plan.Node, compute: Callable[[plan.Node], Any]) -> Any:
    """What a function of a node says, which asks it of the node's inputs; asked once per node."""
    name = compute.__name__
    waiting = [node]
    while waiting:
        current = waiting[-1]
        missing = [source for source in current.inputs() if name not in source.facts]
        if missing:
            waiting.extend(missing)
        else:
            waiting.pop()
            if name not in current.facts:
                current.facts[name] = compute(current)
    return node.facts[name]


def _shapes(node: plan.Node) -> Shapes:
    match node:
        case plan.Table(row_type=row_type):
            kind = get_origin(row_type) or row_type
            return (kind if isinstance(kind, type) and kind is not object else None,)
        case plan.Select(source, Lifted(body)):
            return (shape_of(body, shapes(source)),)
        case plan.Recursive(of=of):
            return of
        case plan.Component(fixpoint, index):
            return shapes(fixpoint.bodies[index])
        case plan.Unnest(source):
            return (*shapes(source), None)
        case plan.Product(left, right) | plan.Join(left, right):
            return (*shapes(left), row_shape(right))
        case plan.OuterJoin(left, _, _, "left"):
            return (*shapes(left), None)
        case plan.OuterJoin(left, right, _, "right"):
            return (*(None for _ in range(bindings(left))), row_shape(right))
        case (
            plan.Where()
            | plan.Distinct()
            | plan.OrderBy()
            | plan.Shared()
            | plan.SemiJoin()
            | plan.AntiJoin()
            | plan.Fixpoint()
        ):
            return shapes(node.inputs()[0])
        case _ if isinstance(node, SET_OPERATIONS):
            both = zip(*(shapes(source) for source in node.inputs()), strict=True)
            return tuple(a if a == b else None for a, b in both)
        case _:
            return (None,) * bindings(node)


def row_shape(node: plan.Node) -> Shape:
    """What is known of a row as one value."""
    known = shapes(node)
    return known[0] if len(known) == 1 else known


def _is_set(node: plan.Node) -> bool:
    match node:
        case plan.Table(key=key):
            return key is not None
        case (
            plan.Where()
            | plan.Shared()
            | plan.SemiJoin()
            | plan.AntiJoin()
            | plan.OrderBy()
            | plan.DifferenceAll()
        ):
            return is_set(node.inputs()[0])
        case plan.IntersectionAll(left, right):
            return is_set(left) or is_set(right)
        case plan.OuterJoin(kind="full"):
            return False  # rows that are None may be alone on both sides
        case plan.Product(left, right) | plan.Join(left, right) | plan.OuterJoin(left, right):
            return is_set(left) and is_set(right)
        case plan.Distinct() | plan.Union() | plan.Difference() | plan.Intersection():
            return True
        case plan.Aggregate() | plan.Empty() | plan.Fixpoint() | plan.Component():
            return True
        case plan.Recursive(is_set=sure):
            return sure
        case _:
            return False


SET_OPERATIONS = (
    *(plan.Union, plan.UnionAll, plan.Difference, plan.DifferenceAll),
    *(plan.Intersection, plan.IntersectionAll),
)


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
    """Whether a row leaves as the object that a stored table holds."""
    passing = (plan.Where, plan.UnionAll, plan.Shared)
    return all(
        isinstance(n, passing) or (isinstance(n, plan.Table) and n.stored)
        for n in nodes(node, into=passing)
    )


def is_interned(node: plan.Node) -> bool:
    """Whether equal rows are one object: that of one stored table.

    State above may be kept by `id(row)`, which costs a tenth of hashing a dataclass by value.
    """
    return keeps_identity(node) and len(tables(node)) == 1


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
