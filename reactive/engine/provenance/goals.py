"""Goals of a proof, and derivations: rows of nodes, and the rows that they are made of.

    goal         the row (1, 5) of the relation reach
    derivation   (1, 4) of reach and (4, 5) of edges; or (1, 5) of edges

A derivation of a row makes it from the rows of its premises alone, and from what is said beside:
that a node has no row with certain values, or what all rows of a group are together.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from optimizer import plan
from optimizer.record import record
from reactive.engine.collections.zset import Row

Rounds = tuple[tuple[Any, int], ...]
"""For each iteration around, by its level: the round whose rows its relations have."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A row of a node, which the node has; inside iterations, at a round of each."""

    node: plan.Node = field(compare=False)
    row: Row
    rounds: Rounds = ()
    number: int = 0
    """The `id` of the node, which is compared in place of it."""


def goal(node: plan.Node, row: Row, rounds: Rounds = ()) -> Goal:
    """Return the goal of a row of a node."""
    return Goal(node, row, rounds, id(node))


@record
class Absence:
    """The rows of a node that would be in the way: it has none of them.

    `values` are texts of expressions with the values that such a row would have. `has` is the
    number of copies that it has, below those that would be needed.
    """

    node: plan.Node
    values: tuple[tuple[str, Any], ...]
    row: Any = None
    has: int = 0


@record
class Members:
    """The rows of a group: the first ones, and the number of all."""

    node: plan.Node
    key: Any
    first: tuple[Row, ...]
    count: int


@record
class PlaceInOrder:
    """The place of a row in an order: the `place`-th of `count`."""

    place: int
    count: int


@record
class Note:
    """Anything else that a derivation rests on, in words."""

    text: str


Beside = Absence | Members | PlaceInOrder | Note


@dataclass(frozen=True, slots=True)
class Derivation:
    """One way in which a node makes a row."""

    premises: tuple[Goal, ...] = ()
    beside: tuple[Beside, ...] = ()
    leaf: Hashable = None
    """For a derivation without premises, the kind of the leaf: "fact", "value" or "past"."""
