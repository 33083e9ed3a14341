"""The rows that several graphs are made of."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple


class Edge(NamedTuple):
    """From one node to another."""

    src: str
    dst: str

    def __str__(self) -> str:
        return f"{self.src} -> {self.dst}"


def parse(text: str) -> list[Edge]:
    """Return the edges of paths written down, with spaces between paths.

    >>> [str(edge) for edge in parse("a-b-c x-y")]
    ['a -> b', 'b -> c', 'x -> y']
    """
    paths = [path.split("-") for path in text.split()]
    return [Edge(*pair) for nodes in paths for pair in pairwise(nodes)]
