"""Nodes that compute the weight of a row from its weights in the inputs, whatever the row is.

With `L` and `R` for the weights of a row in the two inputs:

    distinct   1 if L
    union      1 if L or R    difference      1 if L and not R    intersection      1 if L and R
    union_all  L + R          difference_all  max(0, L - R)       intersection_all  min(L, R)

`union_all` is linear. `distinct` and the five kinds of `SetOperation` are not: their operators keep
the weights of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer.expressions.knowledge import Shapes
from optimizer.plans import facts as costs
from optimizer.plans import headlines
from optimizer.plans.facts import (
    Barrier,
    Facts,
    Node,
    always,
    as_first,
    both_negate,
    if_either,
    monotone,
    never,
    right_negates,
    rows_of_both,
    rows_of_difference_all,
    same_rows,
)
from optimizer.record import record


@record
class Distinct(Node):
    """Each row once."""

    input: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=same_rows,
        is_set=always,
        costs=costs.constant_cost,
        degree=costs.no_degree,
        headline=headlines.by_name,
    )


@record
class UnionAll(Node):
    """Rows of both sides, weights added."""

    left: Node
    right: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=rows_of_both,
        is_set=never,
        costs=costs.constant_cost,
        degree=costs.degree_as_input,
        headline=headlines.by_name,
    )


def _set_operation(
    recursion: Callable[[Any], Sequence[Barrier | None]],
    shapes: Callable[[Any, Sequence[Shapes]], Shapes],
    is_set: Callable[[Any, Sequence[bool]], bool],
) -> Facts:
    """Return the facts of a set operation: what differs is given, the rest is the same for all."""
    return Facts(
        calls=(),
        raises=False,
        recursion=recursion,
        shapes=shapes,
        is_set=is_set,
        costs=costs.constant_cost,
        degree=costs.no_degree,
        headline=headlines.by_name,
    )


@record
class SetOperation(Node):
    """A set or bag operation that is not linear: base of `Union`, `Difference`, `Intersection` and
    of the two of bags, `DifferenceAll` and `IntersectionAll`."""

    left: Node
    right: Node

    facts = _set_operation(monotone, rows_of_both, never)


@record
class Union(SetOperation):
    """The rows of either input, each once."""

    facts = _set_operation(monotone, rows_of_both, always)


@record
class Difference(SetOperation):
    """The rows of the left input that the right input lacks, each once."""

    facts = _set_operation(right_negates, rows_of_both, always)


@record
class DifferenceAll(SetOperation):
    """The left weights less the right weights, where that is positive."""

    facts = _set_operation(both_negate, rows_of_difference_all, as_first)


@record
class Intersection(SetOperation):
    """The rows that both inputs have, each once."""

    facts = _set_operation(monotone, rows_of_both, always)


@record
class IntersectionAll(SetOperation):
    """The rows of both inputs, each with the smaller of its two weights."""

    facts = _set_operation(monotone, rows_of_both, if_either)
