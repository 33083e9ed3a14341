"""Linear recursions, taken apart: what derives rows from inputs, and from one recursive row.

    same <-  edges  U  select (join(edges, same, edges))

    seeds      edges
    bodies     select (join(side 1, own row, side 1))
    readings   own rows with `src` of a row of side 1, and with `dst` of one

A reading tells which recursive rows meet a row of an input: their key in terms of the recursive row
alone, and that of the input's row.

Sound:  all rows that a recursive row derives with a row of an input have such keys that are equal;
        what else is asked of them is asked by the body.
Needs:  no `keep=`; ways of where, select and what else looks at one row, and inner joins with
        inputs whose rows are not several side by side, by a key that reads the recursive row, and
        cannot raise.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from optimizer import plan
from optimizer.expr import Expr, Lifted, Operation, Parameter, conjunction, row_names, substitute
from optimizer.expressions.knowledge import total
from optimizer.plans.clauses import is_closed
from optimizer.plans.forwarding import origin, ways_of
from optimizer.plans.properties import bindings, free, is_set, row_shape, shapes
from optimizer.plans.side_conditions import match_of, side_conditions_of
from optimizer.record import record
from optimizer.traverse import with_inputs

_ONE_ROW = (plan.Where, plan.Select, plan.Extend, plan.SelectMany, plan.Unnest)


@record
class Reading:
    """Rows of a relation and of a side that meet; in its predicate they come in this order."""

    relation: int
    side: int
    match: plan.Match


@record
class Linear:
    """A recursion whose ways read one recursive row each.

    Parameters
    ----------
    seeds: of each relation, what derives its rows from inputs alone.
    sides: what ways read besides the recursive row.
    own, given: each relation, and what stands for each side, as bodies read them.
    bodies: of each relation, its ways over the relations and then the sides, as `Recursive` of the
        recursion's level; None if it has none.
    """

    node: plan.Fixpoint
    seeds: tuple[tuple[plan.Node, ...], ...]
    sides: tuple[plan.Node, ...]
    own: tuple[plan.Recursive, ...]
    given: tuple[plan.Recursive, ...]
    bodies: tuple[plan.Node | None, ...]
    readings: tuple[Reading, ...]


def linear(node: plan.Node) -> Linear | None:
    """A recursion taken apart, if it is linear."""
    if not isinstance(node, plan.Fixpoint) or free(node) or any(node.best):
        return None
    return _Apart(node).found()


class _Unfit(Exception):
    """A way that is not of this kind."""


class _Apart:
    def __init__(self, node: plan.Fixpoint) -> None:
        self._node = node
        self._sides: dict[plan.Node, int] = {}
        self._readings: dict[Reading, None] = {}

    def found(self) -> Linear | None:
        node = self._node
        ways = [ways_of(body) for body in node.bodies]
        seeds = tuple(tuple(way for way in some if is_closed(way)) for some in ways)
        steps = [[way for way in some if not is_closed(way)] for some in ways]
        try:
            made = [[self._over(way) for way in some] for some in steps]
        except _Unfit:
            return None
        if not self._readings:
            return None
        bodies = tuple(reduce(plan.UnionAll, some) if some else None for some in made)
        own = tuple(
            plan.Recursive(node.level, place, name, True, shapes(body))
            for place, (name, body) in enumerate(zip(node.names, node.bodies, strict=True))
        )
        given = tuple(self._stands_for(side, place) for side, place in self._sides.items())
        sides_ = tuple(self._sides)
        return Linear(node, seeds, sides_, own, given, bodies, tuple(self._readings))

    def _over(self, node: plan.Node) -> plan.Node:
        """A way over sides that are given.

        Raises
        ------
        _Unfit: it is something else.
        """
        if isinstance(node, plan.Recursive) and node.level == self._node.level:
            return node
        if isinstance(node, _ONE_ROW):
            return with_inputs(node, [self._over(node.input)])
        if not isinstance(node, plan.Join):
            raise _Unfit
        side = next((each for each in node.inputs() if is_closed(each)), None)
        if side is None or bindings(side) > 1:
            raise _Unfit
        place = self._sides.setdefault(side, len(self._sides))
        self._readings[self._reading(node, place)] = None
        given = self._stands_for(side, place)
        return with_inputs(node, [given if s is side else self._over(s) for s in node.inputs()])

    def _stands_for(self, side: plan.Node, place: int) -> plan.Recursive:
        index = len(self._node.names) + place
        name = f"side {place + 1}"
        return plan.Recursive(self._node.level, index, name, is_set(side), shapes(side))

    def _reading(self, join: plan.Join, place: int) -> Reading:
        is_left = not is_closed(join.left)
        source = join.left if is_left else join.right
        pairs = [
            pair
            for ours, theirs in zip(*_keys(join, is_left=is_left), strict=True)
            if (pair := _equation(source, ours, theirs)) is not None
        ]
        if not pairs:
            raise _Unfit
        on, relation = conjunction(tuple(pairs)), _relation(source)
        of = row_shape(self._node.bodies[relation]), row_shape(self._given_side(place))
        if not total(on, of):
            raise _Unfit
        return Reading(relation, place, plan.Match(on=Lifted(on, row_names(2), (), 2)))

    def _given_side(self, place: int) -> plan.Node:
        return list(self._sides)[place]


def _keys(join: plan.Join, *, is_left: bool) -> tuple[list[Any], list[Any]]:
    """The parts of the keys, of the recursive side and of the other."""
    match, conditions = match_of(join), side_conditions_of(join)
    found = []
    for written, side in ((match.left_key, "left"), (match.right_key, "right")):
        terms = () if conditions is None else getattr(conditions, side)
        parts = [] if written is None else [written]
        found.append([*parts, *(term.function for term in terms if term.is_key)])
    left, right = found
    return (left, right) if is_left else (right, left)


def _equation(source: plan.Node, ours: Any, theirs: Any) -> Expr | None:
    """That a recursive row and a row of a side have the same part of a key; None if that is not
    made of the recursive row alone."""
    if not isinstance(ours, Lifted) or not isinstance(theirs, Lifted):
        return None
    of_own = origin(source, ours.body, may_raise=True)
    if of_own is None:
        return None
    return Operation("==", (of_own, substitute(theirs.body, (Parameter(1),))))


def _relation(way: plan.Node) -> int:
    """The relation that a way reads."""
    node = way
    while not isinstance(node, plan.Recursive):
        node = next(source for source in node.inputs() if not is_closed(source))
    return node.index
