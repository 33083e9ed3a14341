"""The rows that the scenarios move about: few, and each there for a reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Item:
    """A row with a group to join and group by, and a value to filter, sum and sort by."""

    group: str
    value: int


A = Item("x", 1)
"""A row that fails `is_high`."""
B = Item("y", 5)
"""A row that passes, in another group than A."""
C = Item("x", 4)
"""A row that passes, in the group of A."""
D = Item("y", 2)
"""A row that fails, in the group of B."""

SOME = (A, Item("x", 2), Item("y", 9))
"""Fixed rows of the other side: one row equal to A, and partners for both groups."""
FULL = (A, A, B, C)
"""Everything, A twice."""


def is_high(item: Item) -> bool:
    """The filter of the queries."""
    return item.value > 3
