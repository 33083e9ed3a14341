"""Strongly connected components of a graph: nodes that reach each other.

Source: R. Tarjan, *Depth-first search and linear graph algorithms*, 1972; without recursion.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def strongly_connected(edges: Mapping[T, Iterable[T]]) -> list[list[T]]:
    """Return the strongly connected components, each after the components that it reaches.

    Members are in the order of `edges`, which has all nodes; edges to others are ignored.

    >>> strongly_connected({"a": "b", "b": "ac", "c": "d", "d": ""})
    [['d'], ['c'], ['a', 'b']]
    """
    places = {node: place for place, node in enumerate(edges)}
    numbers: dict[T, int] = {}
    lowest: dict[T, int] = {}
    open_: dict[T, None] = {}
    found: list[list[T]] = []
    for root in edges:
        waiting = [] if root in numbers else [(root, iter(edges[root]))]
        while waiting:
            node, following = waiting[-1]
            if node not in numbers:
                numbers[node] = lowest[node] = len(numbers)
                open_[node] = None
            other = next((each for each in following if each in edges), None)
            if other is None:
                waiting.pop()
                if waiting:
                    above = waiting[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == numbers[node]:
                    members = [open_.popitem()[0]]
                    while members[-1] != node:
                        members.append(open_.popitem()[0])
                    found.append(sorted(members, key=places.__getitem__))
            elif other not in numbers:
                waiting.append((other, iter(edges[other])))
            elif other in open_:
                lowest[node] = min(lowest[node], numbers[other])
    return found
