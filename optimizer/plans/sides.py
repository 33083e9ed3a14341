"""A recursion apart from what it reads: its sides, and the recursion over these.

    same = edges U select (join(edges, same, edges))      sides: edges
    ranks <- select (join(ranks, shares))                 sides: links, if shares are made of links

Sides are as large as they can be: whole queries that read nothing of the recursion. One whose rows
are several side by side is taken apart further, as a table has one row at a time.

    pages    select_many of links         few rows for many links
    shares   links, each with a count     a row for each link, with all of it: links go anyway
    => both are made of links, where the recursion is

What goes as a whole in some form goes as it is, and all sides that can be made of that are made
where the recursion is: less is sent, and less is kept of them. Others stay queries, as they may be
much smaller than what they read.

Sound:  a side is the same query wherever it is evaluated.
Cost:   no more rows are sent than if all sides were, but what a condition or a join may leave out.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from optimizer import plan
from optimizer.expr import Attribute, Call, Display, Expr, Item, Lifted, Parameter, constant
from optimizer.expressions.knowledge import Shape, constructor
from optimizer.plans.clauses import is_closed
from optimizer.plans.properties import bindings, is_set, nodes, shapes
from optimizer.traverse import with_inputs

_MADE = (
    *(plan.Where, plan.Select, plan.Extend, plan.SelectMany, plan.Unnest, plan.Distinct),
    *(plan.Aggregate, plan.Join, plan.SemiJoin, plan.AntiJoin, plan.OuterJoin),
    *(plan.Union, plan.UnionAll),
    *(plan.Difference, plan.DifferenceAll, plan.Intersection, plan.IntersectionAll),
)


def apart_from_sides(
    node: plan.Fixpoint | plan.Iterate, level: Any
) -> tuple[plan.Node, tuple[plan.Node, ...]]:
    """The recursion over `Recursive` relations of a level, and what these stand for."""
    whole = _sent_whole(node)
    sides: dict[plan.Node, int] = {}
    made: dict[int, plan.Node] = {}

    def is_side(part: plan.Node) -> bool:
        return _may_be_side(part, node) and (part in whole or not _is_made_of(part, whole))

    for part in nodes(node, until=is_side):
        if is_side(part):
            place = sides.setdefault(part, len(sides))
            made[id(part)] = plan.Recursive(
                level, place, f"side {place + 1}", is_set(part), shapes(part)
            )
        else:
            made[id(part)] = with_inputs(part, [made[id(source)] for source in part.inputs()])
    return made[id(node)], tuple(sides)


def _may_be_side(part: plan.Node, node: plan.Node) -> bool:
    return part is not node and is_closed(part) and bindings(part) == 1


def _sent_whole(node: plan.Node) -> frozenset[plan.Node]:
    """What goes as a whole in some form, without what can be made of the rest of it."""

    def is_side(part: plan.Node) -> bool:
        return _may_be_side(part, node)

    largest = [part for part in nodes(node, until=is_side) if is_side(part)]
    found = dict.fromkeys(core for side in largest for core in _cores(side))
    for core in list(found):
        others = [other for other in found if other is not core]
        if _is_made_of(core, others):
            del found[core]
    return frozenset(found)


def _cores(part: plan.Node) -> set[plan.Node]:
    """What a part has all of, as far down as that goes; none if its rows are several side by
    side, and it has not all of something of which they are not."""
    found: set[plan.Node] = set()
    match part:
        case plan.Distinct(source):
            below = _cores(source)  # a table has few copies, what is made of it may have many
            found = below if all(isinstance(core, plan.Table) for core in below) else set()
        case plan.UnionAll(left, right) | plan.Union(left, right):
            found = _cores(left) | _cores(right)
        case plan.Select(source, Lifted() as function) if _keeps_row(function, source):
            found = _cores(source)
        case plan.Join(left, right) if bindings(left) == 1 and _is_total_of(right, left):
            found = _cores(left)
    return found or ({part} if bindings(part) == 1 else set())


def _keeps_row(function: Lifted, source: plan.Node) -> bool:
    """Whether what is made of a row, or of the first of several, has all of its fields."""
    match function.body:
        case Call(_, parts, ()) | Display("tuple", parts):
            pass
        case body:
            parts = (body,)
    row = Parameter(0)
    ways = _fields(shapes(source)[0])
    return row in parts or (
        bool(ways) and all(any(way in parts for way in field) for field in ways)
    )


def _fields(shape: Shape) -> list[tuple[Expr, ...]]:
    """How each field of a row is read."""
    row = Parameter(0)
    if isinstance(shape, tuple):
        return [(Item(row, constant(place)),) for place in range(len(shape))]
    names = (isinstance(shape, type) and constructor(shape)) or ()
    return [(Attribute(row, name), Item(row, constant(n))) for n, name in enumerate(names)]


def _is_total_of(part: plan.Node, rows: plan.Node) -> bool:
    """Whether it is made of groups of the same as some rows are, which are taken to find theirs."""
    while isinstance(part, plan.Select):
        part = part.input
    if not isinstance(part, plan.Aggregate) or part.key is None:
        return False
    return not _cores(part.input).isdisjoint(_cores(rows))


def _is_made_of(part: plan.Node, given: Collection[plan.Node]) -> bool:
    """Whether it is a query over these alone, such as an engine evaluates from scratch."""
    if part in given:
        return True
    return isinstance(part, _MADE) and all(_is_made_of(each, given) for each in part.inputs())
