"""The arcs of a graph by one of their ends: node -> the nodes at the other ends.

    1 -> (2, 3)          a few, as a tuple
    4 -> {1, 2, 3, ...}  more, as a set

Most nodes have few, for which a tuple takes a third of what a set does.

State:  a tuple or a set per node that has arcs.
Cost:   O(1) per arc that comes or goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

FEWEST = 4
"""Ends of a node from which on they are a set."""
Arcs = dict[int, tuple[int, ...] | set[int]]


def add_end(arcs: Arcs, node: int, end: int) -> None:
    """Add an arc, if it is not there.

    >>> arcs: Arcs = {}
    >>> add_end(arcs, 1, 2), add_end(arcs, 1, 3), add_end(arcs, 1, 3), arcs
    (None, None, None, {1: (2, 3)})
    """
    ends = arcs.get(node, ())
    if end in ends:
        return
    if isinstance(ends, set):
        ends.add(end)
    else:
        arcs[node] = (*ends, end) if len(ends) < FEWEST else {*ends, end}


def put_ends(arcs: Arcs, ends: Iterable[tuple[int, Sequence[int]]]) -> None:
    """Add all arcs of nodes that have none, each with different ends."""
    for node, others in ends:
        arcs[node] = tuple(others) if len(others) <= FEWEST else {*others}


def remove_end(arcs: Arcs, node: int, end: int) -> None:
    """Remove an arc, if it is there; a node without arcs has no entry."""
    ends = arcs.get(node, ())
    if end not in ends:
        return
    if len(ends) == 1:
        del arcs[node]
    elif isinstance(ends, set):
        ends.remove(end)
    else:
        arcs[node] = tuple([other for other in ends if other != end])
