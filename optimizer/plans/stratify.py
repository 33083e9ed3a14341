"""Refuse a recursion that depends on its own negation or aggregate: it has no meaning.

A relation that is to hold what it does not hold has no smallest solution. Recursion may go through
what is monotone (more rows in, no fewer rows out), and through the side of a negation whose rows
are kept; never through the side that takes rows away.

    fixpoint 'reachable' depends on its own negation
      reachable -> anti_join (right input) -> reachable

Source: stratified negation: Apt, Blair, Walker, *Towards a Theory of Declarative Knowledge*, 1988.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optimizer import plan
from optimizer.errors import PlanError, StratificationError
from optimizer.plans import headlines
from optimizer.plans.by_left_row import by_left_row
from optimizer.plans.properties import free, nodes
from optimizer.traverse import relations_read, unrolled

Step = tuple[str, str]
"""What the recursion goes through, and what it depends on there: its negation, an aggregate, ..."""

REMEDY = "  move the anti_join, difference or aggregate outside the fixpoint"
WITHOUT_NEGATIVE = (
    *(plan.Distinct, plan.Difference, plan.DifferenceAll, plan.Intersection, plan.Aggregate),
    *(plan.IntersectionAll, plan.Reduce, plan.Top, plan.OrderBy, plan.Fixpoint),
)
"""Nodes none of whose rows has a negative weight, whatever they read."""


def check_stratified(node: plan.Fixpoint) -> None:
    """Raise `StratificationError` if a relation depends on itself in a way that is not monotone."""
    level = node.level
    for index, body in enumerate(node.bodies):
        for part in _parts(body, level):
            for source, (through, what) in _forbidden(part):
                if level not in free(source):
                    continue
                reached = _names(node, source)
                back = _way_back(node, index, reached)
                if back:
                    cycle = " -> ".join([node.names[index], through, *back])
                    raise StratificationError(
                        f"fixpoint {', '.join(map(repr, node.names))} depends on its own {what}\n"
                        f"  {cycle}\n{REMEDY}"
                    )


def check_positive(node: plan.Fixpoint) -> None:
    """Raise `PlanError` if rows of negative weight are read: a derivation is there or not."""
    for body in node.bodies:
        read = nodes(body, until=_has_no_negative)
        if any(isinstance(part, plan.Negate) for part in read):
            raise PlanError(
                f"fixpoint {', '.join(map(repr, node.names))} reads rows of negate(), whose weights"
                " are negative\n  distinct() of their sum with others has each row that is there"
            )


def _has_no_negative(part: plan.Node) -> bool:
    """Whether no row has a negative weight; what is recursive may be taken apart for its rows."""
    return isinstance(part, WITHOUT_NEGATIVE) and not free(part)


def _parts(body: plan.Node, level: int) -> Iterator[plan.Node]:
    """The nodes of a body; the nodes of an iteration as they are in its first round."""
    for part in nodes(body):
        yield part
        if isinstance(part, plan.Iterate) and any(level in free(each) for each in part.starts):
            for body in unrolled(replace(part, times=1)):
                yield from nodes(body)


def _forbidden(node: plan.Node) -> Iterator[tuple[plan.Node, Step]]:
    """The inputs of a node that recursion may not come through."""
    if isinstance(node, plan.Aggregate) and by_left_row(node) is not None:
        return
    inputs = node.inputs()
    for place, (source, barrier) in enumerate(zip(inputs, node.facts.recursion(node), strict=True)):
        if barrier is not None:
            yield source, (_through(node, place), barrier)


def _through(node: plan.Node, place: int) -> str:
    """A node and one of its inputs, in words."""
    if isinstance(node, plan.Fixpoint):
        return "fixpoint with keep="
    side = f" ({('left', 'right')[place]} input)" if len(node.inputs()) == 2 else ""
    return headlines.name(node) + side


def _names(node: plan.Fixpoint, source: plan.Node) -> list[int]:
    """The relations of a fixpoint that a part of a body reads."""
    return [part.index for part in relations_read(source, node.level)]


def _way_back(node: plan.Fixpoint, target: int, reached: list[int]) -> list[str] | None:
    """The names of relations on the way from one of those reached to the target."""
    reads = [_names(node, body) for body in node.bodies]
    ways: dict[int, list[str]] = {i: [node.names[i]] for i in reached}
    waiting = list(ways)
    while waiting:
        at = waiting.pop(0)
        if at == target:
            return ways[at]
        for following in reads[at]:
            if following not in ways:
                ways[following] = [*ways[at], node.names[following]]
                waiting.append(following)
    return None
