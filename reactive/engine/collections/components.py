"""The strongly connected components of a part of a directed graph.

State:  none.
Cost:   O(nodes of the part + arcs that begin there).
Source: R. Tarjan, Depth-first search and linear graph algorithms, 1972; here without recursion.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

NONE: frozenset[int] = frozenset()


def components(nodes: Collection[int], after: Mapping[int, Collection[int]]) -> Iterator[list[int]]:
    """The components of these nodes and the arcs between them, each after those it leads to.

    >>> list(components({1, 2, 3}, {1: [2], 2: [1, 3], 3: [4]}))
    [[3], [2, 1]]
    """
    numbers: dict[int, int] = {}
    lowest: dict[int, int] = {}  # of those that are in no component yet
    path: list[int] = []
    for root in nodes:
        if root not in numbers:
            yield from _below(root, nodes, after, numbers, lowest, path)


def _below(
    root: int,
    nodes: Collection[int],
    after: Mapping[int, Collection[int]],
    numbers: dict[int, int],
    lowest: dict[int, int],
    path: list[int],
) -> Iterator[list[int]]:
    numbers[root] = lowest[root] = len(numbers)
    path.append(root)
    work = [(root, iter(after.get(root, NONE)))]
    while work:
        node, others = work[-1]
        for other in others:
            if other in lowest:
                lowest[node] = min(lowest[node], numbers[other])
            elif other not in numbers and other in nodes:
                numbers[other] = lowest[other] = len(numbers)
                path.append(other)
                work.append((other, iter(after.get(other, NONE))))
                break
        else:
            work.pop()
            if work:
                above = work[-1][0]
                lowest[above] = min(lowest[above], lowest[node])
            if lowest[node] == numbers[node]:
                yield _popped(node, lowest, path)


def _popped(node: int, lowest: dict[int, int], path: list[int]) -> list[int]:
    """The component whose first node this is."""
    found = [path.pop()]
    while found[-1] != node:
        found.append(path.pop())
    for member in found:
        del lowest[member]
    return found
