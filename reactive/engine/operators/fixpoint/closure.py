"""Closure: the pairs of nodes connected by a path, where the rows of an input are the arcs.

    rows  --ends-->  arcs between numbered nodes  -->  reachability  -->  changed rows

It derives the same rows as the rules of the recursion (`fixpoint.py`), but stores a bit instead of
a row and two numbers. Rows are built when they are read.

A `BailOut` makes the database return to the rules, if the input is not as the plan assumes: a row
of another class, an end that is NaN or equals an end of another class, or any exception.

State:  a number per node, a bit per pair of nodes (`collections/reachability.py`).
Cost:   O(changed rows of the input and of the closure), and the cost of the reachability.
Source: see `collections/reachability.py`.

Rows of a closure: built from the values of two nodes when they are read.

State:  none; reads the numbers of nodes and the reachability.
Cost:   O(1) per row.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, repeat, starmap
from typing import Any

from optimizer import plan
from optimizer.expressions.knowledge import constructor
from reactive.engine.collections.reachability import (
    Arc,
    Bits,
    Reachability,
    added_bits,
    has_bit,
    select_items,
)
from reactive.engine.collections.trie import Numbering, UnlikeValue
from reactive.engine.collections.zset import Pair, Pairs, Row, UniformDelta
from reactive.engine.operators.aggregate import Inputs, State
from reactive.engine.operators.operator import BailOut

Ends = Callable[[Row], tuple[Any, Any]]
MANY = 1000
"""Least size of a first load whose nodes are numbered in order."""


class Closure:
    """Maintain the closure of rows that have two ends.

    Parameters
    ----------
    kind: the class of the rows of the closure.
    of: the class that all input rows must have, if they are rows of the closure themselves.
    owner: the recursion that this operator replaces.

    >>> closure = Closure(lambda row: row, tuple, None, plan.Table(0, "pairs", None, True))
    >>> sorted(closure.step([((1, 2), 1), ((2, 3), 1)]))
    [((1, 2), 1), ((1, 3), 1), ((2, 3), 1)]
    >>> (1, 3) in closure.shown, len(closure.shown)
    (True, 3)
    """

    __slots__ = (
        *("_before", "_ends", "_gone", "_graph", "_more", "_numbering", "_of", "_owner"),
        *("_read", "_size", "shown"),
    )

    def __init__(self, ends: Ends, kind: type, of: type | None, owner: plan.Node) -> None:
        self._ends = ends
        self._of = of
        self._owner = owner
        self._numbering = Numbering()
        self._graph = Reachability()
        self.shown = ClosureRows(self._numbering, self._graph, kind)
        """The current rows, not a copy."""
        self._more: dict[Arc, int] = {}  # number of rows of an arc, except the first
        self._before: dict[Arc, int] = {}  # previous numbers of rows of changed arcs
        self._gone: list[Arc] = []
        self._size = 0
        self._read = 0

    @property
    def touched(self) -> int:
        return self._read + self._graph.touched

    def step(self, delta: Pairs) -> Pairs:
        """Return the changed rows of the closure; any exception becomes a `BailOut`."""
        self._read += len(delta)
        collects = gc.isenabled()
        try:
            gc.disable()  # like `pause_collector`, which takes longer than many a step
            came, self._gone = self._arcs(delta)
            self._graph.change(came, self._gone)
            return self._changed_rows()
        except Exception as error:
            self.undo()
            raise BailOut(self._owner, self) from error
        finally:
            if collects:
                gc.enable()

    def _arcs(self, delta: Pairs) -> tuple[list[Arc], list[Arc]]:
        """Return the inserted and the deleted arcs."""
        came, gone = list[Arc](), list[Arc]()
        for arc, weight in self._net(delta).items():
            before = self._weight(arc)
            if before + weight < 0:
                raise UnlikeValue(arc)
            self._before[arc] = before
            self._put(arc, before + weight)
            if not before:
                came.append(arc)
            elif not before + weight:
                gone.append(arc)
        return came, gone

    def _net(self, delta: Pairs) -> dict[Arc, int]:
        """Return the net weight of each changed arc."""
        net: dict[Arc, int] = {}
        number, ends, of = self._numbering.number, self._ends, self._of
        if len(delta) > MANY and not self._numbering.numbers:
            self._number_in_order([ends(row) for row, _ in delta])
        for row, weight in delta:
            if of is not None and row.__class__ is not of:
                raise UnlikeValue(row)
            source, target = ends(row)
            arc = number(source), number(target)
            net[arc] = net.get(arc, 0) + weight
        return {arc: weight for arc, weight in net.items() if weight}

    def _number_in_order(self, arcs: Sequence[tuple[Any, Any]]) -> None:
        """Give connected nodes consecutive numbers, because neighbouring bits take less memory."""
        after: dict[Any, list[Any]] = {}
        for source, target in arcs:
            after.setdefault(source, []).append(target)
        numbering, inner = self._numbering, {target for _, target in arcs}
        for start in (*(source for source in after if source not in inner), *after):
            waiting = [start]
            while waiting:
                node = waiting.pop()
                if node not in numbering.numbers:
                    numbering.number(node)
                    waiting += after.get(node, ())

    def _weight(self, arc: Arc) -> int:
        """Return the current number of rows of an arc."""
        return arc[1] in self._graph.after.get(arc[0], ()) and 1 + self._more.get(arc, 0)

    def _put(self, arc: Arc, weight: int) -> None:
        """Store the number of rows of an arc; 0 and 1 are not stored, as the graph knows them."""
        if weight > 1:
            self._more[arc] = weight - 1
        else:
            self._more.pop(arc, None)

    def _changed_rows(self) -> Pairs:
        """Return the inserted and deleted rows of the closure."""
        came, went = list[Row](), list[Row]()
        graph, rows = self._graph, self.shown.rows_from
        for node, old in graph.was.items():
            new = graph.nodes_from(node)
            if more := added_bits(new, old) if old else new:
                came += rows(node, more)
            if less := added_bits(old, new) if old else old:
                went += rows(node, less)
        self.shown.size += len(came) - len(went)
        if came and went:
            return [*UniformDelta(went, -1), *UniformDelta(came, 1)]
        return UniformDelta(came or went, 1 if came else -1) if came or went else ()

    def undo(self) -> None:
        """Restore the graph, the numbers of rows, and the size as before the last step."""
        self._graph.undo()
        for arc, weight in self._before.items():
            self._put(arc, weight)
        self.shown.size = self._size
        self._finish()

    def commit(self) -> None:
        self._graph.commit()
        self._finish()

    def _finish(self) -> None:
        """Drop the undo state, and release the nodes without arcs."""
        numbering, gone = self._numbering, self._gone
        if numbering.fresh or gone:
            nodes = dict.fromkeys([*numbering.fresh, *(node for arc in gone for node in arc)])
            numbering.fresh, self._gone = [], []
            numbering.release(filter(self._graph.is_isolated, nodes))
        self._before, self._size = {}, self.shown.size

    def contents(self) -> Sequence[Pair]:
        return UniformDelta(list(self.shown), 1)

    def state(self) -> State:
        """Return the values by their numbers, the arcs, and the reachable nodes of each node."""
        numbering = self._numbering
        more = [(*arc, times) for arc, times in self._more.items()]
        own = {"values": list(numbering.values), "free": list(numbering.free), "more": more}
        return {**own, "size": self._size, **self._graph.state()}

    def restore(self, state: State, inputs: Inputs) -> None:
        """Load a stored state."""
        self._numbering.restore(state["values"], state["free"])
        self._graph.restore(state)
        self._more.update({(source, target): times for source, target, times in state["more"]})
        self.shown.size = self._size = state["size"]

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows, and the bytes of the state."""
        numbering, graph = self._numbering, self._graph
        held = [numbering.numbers, numbering.values, graph.reach, graph.after, graph.before]
        sizes = map(sys.getsizeof, [*held, *graph.after.values(), *graph.before.values()])
        blocks = [block for bits in graph.reach.values() for block in (bits, *bits.values())]
        return len(self.shown), sum(sizes) + sum(map(sys.getsizeof, blocks))


Make = Callable[[Any, list[Any]], list[Row]]


class ClosureRows(Mapping[Row, None]):
    """All rows of a closure, as the keys of a mapping.

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
        self._make = _pair_maker(kind)
        self._names = _end_names(kind)
        self.size = 0

    def rows_from(self, node: int, bits: Bits) -> list[Row]:
        """Return the rows from a node to the nodes in `bits`."""
        values = self._numbering.values
        return self._make(values[node], select_items(bits, values))

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Row]:
        return chain.from_iterable(starmap(self.rows_from, self._graph.reach.items()))

    def __contains__(self, row: object) -> bool:
        hash(row)  # as a dictionary of the rows would
        ends = self._ends(row)
        if len(ends) != 2:
            return False
        source, target = map(self._numbering.numbers.get, ends)
        if source is None or target is None:
            return False
        return bool(has_bit(self._graph.nodes_from(source), target))

    def __getitem__(self, row: Row) -> None:
        if row not in self:
            raise KeyError(row)

    def _ends(self, row: Any) -> tuple[Any, ...]:
        """Return the two ends of a row; another number of items if it is no row of the closure."""
        if not self._names:
            return tuple(row) if isinstance(row, tuple) else ()
        return tuple([getattr(row, n) for n in self._names] if type(row) is self._kind else ())


def _end_names(kind: Any) -> tuple[str, ...]:
    """Return the field names of rows that are not tuples."""
    return () if issubclass(kind, tuple) else constructor(kind) or ()


def _pair_maker(kind: type) -> Make:
    """Return a function that pairs one value with each of others, as rows of class `kind`."""
    if kind is tuple:
        return lambda one, others: list(zip(repeat(one), others, strict=False))
    if issubclass(kind, tuple):
        new: Any = tuple.__new__
        return lambda one, others: list(
            map(new, repeat(kind), zip(repeat(one), others, strict=False))
        )
    return lambda one, others: list(map(kind, repeat(one), others))
