"""The rows of a closure: made of the values of two nodes when somebody asks for them.

State:  none; it reads the numbers of nodes and what these reach.
Cost:   O(1) per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, repeat, starmap
from typing import Any

from optimizer.expressions.knowledge import constructor
from reactive.engine.collections.bits import Bits, has, picked
from reactive.engine.collections.numbering import Numbering
from reactive.engine.collections.reachability import Reachability
from reactive.engine.collections.zset import Row

Make = Callable[[Any, list[Any]], list[Row]]


class ClosureRows(Mapping[Row, None]):
    """All of them, as the keys of a mapping.

    >>> numbering, graph = Numbering(), Reachability()
    >>> graph.change([(numbering.number("a"), numbering.number("b"))], [])
    >>> rows = ClosureRows(numbering, graph, tuple)
    >>> list(rows), ("a", "b") in rows, ("b", "a") in rows
    ([('a', 'b')], True, False)
    """

    __slots__ = ("_graph", "_kind", "_make", "_names", "_numbering", "size")

    def __init__(self, numbering: Numbering, graph: Reachability, kind: type) -> None:
        self._numbering = numbering
        self._graph = graph
        self._kind = kind
        self._make = _maker(kind)
        self._names = _names(kind)
        self.size = 0

    def of(self, node: int, bits: Bits) -> list[Row]:
        """The rows from a node to others."""
        values = self._numbering.values
        return self._make(values[node], picked(bits, values))

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Row]:
        return chain.from_iterable(starmap(self.of, self._graph.reach.items()))

    def __contains__(self, row: object) -> bool:
        hash(row)  # as a dictionary of the rows would
        ends = self._ends(row)
        if len(ends) != 2:
            return False
        source, target = map(self._numbering.numbers.get, ends)
        if source is None or target is None:
            return False
        return bool(has(self._graph.reached(source), target))

    def __getitem__(self, row: Row) -> None:
        if row not in self:
            raise KeyError(row)

    def _ends(self, row: Any) -> tuple[Any, ...]:
        if not self._names:
            return tuple(row) if isinstance(row, tuple) else ()
        return tuple([getattr(row, n) for n in self._names] if type(row) is self._kind else ())


def _names(kind: Any) -> tuple[str, ...]:
    """The fields of rows that are no tuples."""
    return () if issubclass(kind, tuple) else constructor(kind) or ()


def _maker(kind: type) -> Make:
    """What makes rows of one value and each of others."""
    if kind is tuple:
        return lambda one, others: list(zip(repeat(one), others, strict=False))
    if issubclass(kind, tuple):
        new: Any = tuple.__new__
        return lambda one, others: list(
            map(new, repeat(kind), zip(repeat(one), others, strict=False))
        )
    return lambda one, others: list(map(kind, repeat(one), others))
