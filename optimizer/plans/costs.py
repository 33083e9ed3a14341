"""What one changed row costs an operator, and the degree of a query: both known before it is run.

    O(1)        whatever the tables hold
    O(log n)    a place among rows in order
    matches     the rows of the other side that go with it
    group       all rows of its group
    rounds      what a recursion or an iteration derives anew
    all pairs   all rows of the other side

Each row that comes out of an operator costs the one above in turn.

The degree is how many times a delta is taken of the delta of the query until nothing of the
database is read: 1 for what treats each row by itself, and the sum of both sides for a join. There
is none where an operator compares its rows with those that it had, as `distinct` does.

Source: [slender] chapter 3: cost and degree of nested queries, here of what is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from math import inf
from typing import Any


class Cost(IntEnum):
    """A class of costs of one changed row; the higher, the dearer."""

    ONE = 0
    LOG = 1
    MATCHES = 2
    GROUP = 3
    ROUNDS = 4
    PAIRS = 5

    def __str__(self) -> str:
        return ("O(1)", "O(log n)", "matches", "group", "rounds", "all pairs")[self]


Costs = Sequence[Cost]
"""Per input of a node."""


# Costs.


def nothing(node: Any) -> Costs:
    """Of a node without inputs."""
    return ()


def constant(node: Any) -> Costs:
    return (Cost.ONE,) * len(node.inputs())


def logarithmic(node: Any) -> Costs:
    return (Cost.LOG,) * len(node.inputs())


def whole_group(node: Any) -> Costs:
    return (Cost.GROUP,) * len(node.inputs())


def rounds(node: Any) -> Costs:
    return (Cost.ROUNDS,) * len(node.inputs())


def of_aggregates(node: Any) -> Costs:
    """The dearest of the aggregates."""
    return (max((each.accumulator.cost for each in node.aggregates), default=Cost.ONE),)


def matches(node: Any) -> Costs:
    return (Cost.MATCHES, Cost.MATCHES)


def matches_of_right(node: Any) -> Costs:
    """Of a row of the left only how many partners it has is asked, which is kept."""
    return (Cost.ONE, Cost.MATCHES)


def all_pairs(node: Any) -> Costs:
    return (Cost.PAIRS, Cost.PAIRS)


# Degrees.


def degree_of_rows(node: Any, inputs: Sequence[float]) -> float:
    """The rows of a table."""
    return 1.0


def degree_of_none(node: Any, inputs: Sequence[float]) -> float:
    """Nothing of the database is read."""
    return 0.0


def degree_as_input(node: Any, inputs: Sequence[float]) -> float:
    return max(inputs)


def degree_of_both(node: Any, inputs: Sequence[float]) -> float:
    return sum(inputs)


def no_degree(node: Any, inputs: Sequence[float]) -> float:
    """Its rows are compared with those that it had."""
    return inf


def degree_of_aggregates(node: Any, inputs: Sequence[float]) -> float:
    """Sums are linear in the rows; the least of some values is not."""
    return inputs[0] if max(of_aggregates(node)) is Cost.ONE else inf
