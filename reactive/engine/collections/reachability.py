"""Transitive closure of a changing directed graph: the nodes that each node reaches.

    arcs    1 -> 2 -> 3         reach   1: {2, 3}, 2: {3}

An inserted arc from u to v adds v and the nodes that v reaches to u and to the nodes that reach u;
nodes that reach v already are skipped, with all nodes above them.

A deleted arc from u to v puts v and the nodes that v reaches in doubt for u. Nodes are visited so
that each follows all nodes that it leads to, except members of its component. For each node, a
doubted node is kept if another arc still leads to it; a lost one is in doubt for the nodes before.
The members of a component share one set. A component that lost an inner arc is split into smaller
ones, unless the ends of the arc are still connected, so a cycle does not keep nodes reachable.
The order is by the number of reached nodes: a node reaches at least what its successors reach.

State:  a bit per pair of nodes, and the arcs by both ends.
Cost:   inserting an arc: O(arcs into nodes that reach more now), each O(blocks). Deleting one:
        for nodes that lose something O(arcs into them + the smaller of the arcs out of them and the
        arcs into doubted nodes); within a component, O(arcs of the component).
        Many arcs in one call: O(arcs of the nodes that lead to them).
Source: R. Tarjan, as below; G. F. Italiano, Amortized efficiency of a path retrieval
        data structure, 1986; deletion as in [dred], over components instead of rows.

Bit sets: sets of small numbers as integers, in blocks: block -> bits of its members.

    {3, 5, 2049}        {0: 0b101000, 2: 0b10}          with WIDTH = 1024

A block takes a bit per number, and an empty block nothing, so that a set takes about the smaller
of a bit set and a dictionary of its members. Stored sets are never changed in place; a change makes
a new set. So an undo restores the old set.

State:  a dictionary entry and up to WIDTH bits per block that has a member.
Cost:   O(blocks) for an intersection or difference; O(1) to test one member.

Arcs: the arcs of a graph by one of their ends: node -> the nodes at the other ends.

    1 -> (2, 3)          a few, as a tuple
    4 -> {1, 2, 3, ...}  more, as a set

Most nodes have few arcs; a tuple of these takes a third of the memory of a set.

State:  a tuple or a set per node that has arcs.
Cost:   O(1) per inserted or deleted arc.

Strongly connected components of a part of a directed graph.

State:  none.
Cost:   O(nodes of the part + arcs that begin there).
Source: R. Tarjan, Depth-first search and linear graph algorithms, 1972; here without recursion.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import compress
from typing import Any

Arc = tuple[int, int]
SHARE = 4
"""Arcs are inserted together if they are at least one in `SHARE` of all arcs."""
FEW = 4
"""Most arcs out of a node that are tested, rather than the doubted nodes."""
EVERY = range(sys.maxsize)


class Reachability:
    """A directed graph, and the set of nodes that each node reaches.

    >>> graph = Reachability()
    >>> graph.change([(1, 2), (2, 3)], [])
    >>> graph.reach
    {2: {0: 8}, 1: {0: 12}}
    >>> graph.commit()
    >>> graph.change([], [(2, 3)])
    >>> graph.reach, graph.was
    ({1: {0: 4}}, {2: {0: 8}, 1: {0: 12}})
    """

    __slots__ = ("_arcs", "_log", "_queue", "after", "before", "doubts", "reach", "touched", "was")

    def __init__(self) -> None:
        self.after: Arcs = {}
        self.before: Arcs = {}
        self.reach: dict[int, Bits] = {}
        """The nodes that a node reaches; no entry if there are none."""
        self.was: dict[int, Bits] = {}
        """Previous sets of nodes whose set changed in this commit."""
        self.touched = 0
        """Number of visited nodes."""
        self.doubts: dict[int, Bits] = {}
        self._queue: list[tuple[int, int]] = []
        self._log: list[tuple[int, int, bool]] = []
        self._arcs = 0

    def change(self, came: Sequence[Arc], gone: Sequence[Arc]) -> None:
        """Insert arcs that are absent, and delete arcs that are present."""
        if gone:
            self._cut(gone)
        if not came:
            return
        if len(came) > 1 and len(came) * SHARE >= self._arcs + len(came):
            self._put(came)
            self._renew(self._above([source for source, _ in came]))
            return
        for arc in came:
            self._put([arc])
            self._extend(*arc)

    def nodes_from(self, node: int) -> Bits:
        """Return the nodes that a node reaches."""
        return self.reach.get(node, EMPTY)

    def undo(self) -> None:
        """Undo the commit."""
        log, self._log = self._log, []
        for source, target, came in reversed(log):
            self._turn(source, target, came=not came)
        was, self.was = self.was, {}
        for node, bits in was.items():
            self._assign(node, bits)
        self.commit()

    def commit(self) -> None:
        """Drop the undo state."""
        self.was, self._log, self.doubts, self._queue = {}, [], {}, []

    def state(self) -> dict[str, Any]:
        """Return the arcs, and the reachable sets, which later changes do not modify."""
        ends = [tuple(ends) for ends in self.after.values()]
        return {"sources": list(self.after), "targets": ends, "reach": dict(self.reach)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Load a stored state into an empty graph."""
        before: dict[int, list[int]] = {}
        for source, targets in zip(state["sources"], state["targets"], strict=True):
            self._arcs += len(targets)
            for target in targets:
                before.setdefault(target, []).append(source)
        put_ends(self.after, zip(state["sources"], state["targets"], strict=True))
        put_ends(self.before, before.items())
        self.reach.update(state["reach"])

    def is_isolated(self, node: int) -> bool:
        """Return True if no arc begins or ends there."""
        return node not in self.after and node not in self.before

    # Arcs.

    def _put(self, arcs: Iterable[Arc]) -> None:
        """Insert arcs, and log them for undo."""
        for source, target in arcs:
            self._log.append((source, target, True))
            self._turn(source, target, came=True)

    def _turn(self, source: int, target: int, *, came: bool) -> None:
        """Insert or delete an arc in both directions; no set of reached nodes is changed."""
        for arcs, start, end in ((self.after, source, target), (self.before, target, source)):
            if came:
                add_end(arcs, start, end)
            else:
                remove_end(arcs, start, end)
        self._arcs += 1 if came else -1

    def _assign(self, node: int, bits: Bits) -> None:
        """Set the nodes that a node reaches; an empty set deletes its entry."""
        if bits:
            self.reach[node] = bits
        else:
            self.reach.pop(node, None)

    def _change(self, node: int, bits: Bits) -> None:
        """Set the nodes that a node reaches; records the set before this commit."""
        self.was.setdefault(node, self.reach.get(node, EMPTY))
        self._assign(node, bits)

    # Inserted arcs.

    def _extend(self, source: int, target: int) -> None:
        """Add the nodes that the end of a new arc reaches to its start, and to the nodes above."""
        reach, before = self.reach, self.before
        more, waiting = _with_bit(reach.get(target, EMPTY), target), [source]
        while waiting:
            node = waiting.pop()
            self.touched += 1
            bits = reach.get(node, EMPTY)
            if not has_bit(bits, target):
                self._change(node, union_bits(bits, more) if bits else more)
                waiting += before.get(node, NONE)

    def _above(self, nodes: Iterable[int]) -> set[int]:
        """Return the nodes, and all nodes that lead to them."""
        found, waiting = set[int](), list(nodes)
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += self.before.get(node, NONE)
        return found

    def _renew(self, nodes: Collection[int]) -> None:
        """Recompute the sets of `nodes`; the other nodes lead to none of them."""
        shared: dict[int, Bits] = {}
        for part in components(nodes, self.after):
            self.touched += len(part)
            bits = self._close_component(part, shared)
            for node in part:
                if self.reach.get(node, EMPTY) != bits:
                    self._change(node, bits)

    def _close_component(self, part: Sequence[int], shared: dict[int, Bits]) -> Bits:
        """Return the nodes that a component reaches, from the sets of its successors.

        Nodes with one and the same successor share a set.
        """
        reach, after, found = self.reach, self.after, Bits()
        if len(part) == 1:
            others = after.get(part[0], NONE)
            if len(others) == 1 and part[0] not in others:
                (other,) = others
                if other not in shared:
                    shared[other] = _with_bit(reach.get(other, EMPTY), other)
                return shared[other]
        inside = set(part)
        is_cyclic = len(part) > 1
        for node in part:
            for other in after.get(node, NONE):
                if other in inside:
                    is_cyclic = True
                elif not has_bit(found, other):
                    add_bit(found, other)
                    add_bits(found, reach.get(other, EMPTY))
        if is_cyclic:
            for node in part:
                add_bit(found, node)
        return found

    # Deleted arcs.

    def _cut(self, arcs: Sequence[Arc]) -> None:
        """Delete arcs, and remove from each set the nodes that are no longer reached."""
        cut: dict[int, list[int]] = {}
        for source, target in arcs:
            self._log.append((source, target, False))
            self._turn(source, target, came=False)
            cut.setdefault(target, []).append(source)
        for source, target in arcs:
            bits = self.nodes_from(target)
            is_within = has_bit(bits, source)  # then only its component is affected
            self._doubt(source, EMPTY if is_within else _with_bit(bits, target))
        while self._queue:
            _, node = heappop(self._queue)
            if node in self.doubts:
                self._lose(node, cut)

    def _doubt(self, node: int, bits: Bits) -> None:
        """Add nodes to those in doubt for a node, and queue the node if it has none yet."""
        found = self.doubts.get(node)
        if found is None:
            self.doubts[node] = bits
            reached = self.nodes_from(node)
            heappush(self._queue, (2 * count_bits(reached) + (not has_bit(reached, node)), node))
        else:
            self.doubts[node] = union_bits(found, bits)

    def _lose(self, node: int, cut: dict[int, list[int]]) -> None:
        """Remove from the set of a node, and of its component, the nodes that it no longer
        reaches."""
        if not has_bit(self.nodes_from(node), node):
            self.touched += 1
            self._dwindle((node,), self.doubts.pop(node))
            return
        members = self._component(node, cut)
        self.touched += len(members)
        doubted = Bits()
        for member in members:
            add_bits(doubted, self.doubts.pop(member, EMPTY))
        within = [(s, t) for t in members if t in cut for s in cut[t] if s in members]
        if within and not all(self._leads(source, target, members) for source, target in within):
            self._fall_apart(members)
        else:
            self._dwindle(members, doubted)

    def _component(self, node: int, cut: dict[int, list[int]]) -> set[int]:
        """Return the component that a node on a cycle had before the deletion."""
        reached, found, waiting = self.nodes_from(node), {node}, [node]
        for other in waiting:
            for above in (*self.before.get(other, NONE), *cut.get(other, ())):
                if above not in found and has_bit(reached, above):
                    found.add(above)
                    waiting.append(above)
        return found

    def _leads(self, source: int, target: int, members: set[int]) -> bool:
        """Return True if a path within a component leads from one node to another."""
        after, found, waiting = self.after, {source}, [source]
        for node in waiting:
            for other in after.get(node, NONE):
                if other == target:
                    return True
                if other in members and other not in found:
                    found.add(other)
                    waiting.append(other)
        return False

    def _fall_apart(self, members: set[int]) -> None:
        """Recompute the sets of a component that may be split; doubt lost nodes above it."""
        shared: dict[int, Bits] = {}
        for part in components(members, self.after):
            bits = self._close_component(part, shared)
            for node in part:
                gone = added_bits(self.nodes_from(node), bits)
                if gone:
                    self._change(node, bits)
                    self._doubt_above(node, members, gone)

    def _dwindle(self, members: Collection[int], doubted: Bits) -> None:
        """Remove doubted nodes that no other arc leads to, from the set of nodes that stay
        connected."""
        gone = self._find_unsupported(members, doubted)
        if not gone:
            return
        bits = subtract_bits(self.nodes_from(next(iter(members))), gone)
        for node in members:
            self._change(node, bits)
            self._doubt_above(node, members, gone)

    def _doubt_above(self, node: int, members: Collection[int], gone: Bits) -> None:
        """Put nodes in doubt for the nodes above a node, except for `members`."""
        for above in self.before.get(node, NONE):
            if above not in members:
                self._doubt(above, gone)

    def _find_unsupported(self, members: Collection[int], doubted: Bits) -> Bits:
        """Return the doubted nodes that a component no longer reaches."""
        if not doubted:
            return doubted
        out = sum([len(self.after.get(node, NONE)) for node in members])
        if out <= FEW or out <= count_bits(doubted):
            return self._not_led_to(members, doubted)
        return self._not_met(members, doubted)

    def _not_led_to(self, members: Collection[int], doubted: Bits) -> Bits:
        """Return the doubted nodes that no arc out of the members leads to.

        Each such arc is tested; a node that one leads to, and all that it reaches, are no
        longer doubted.
        """
        after, reach = self.after, self.reach
        for node in members:
            for other in after.get(node, NONE):
                if other not in members and doubted:
                    doubted = subtract_bits(doubted, _with_bit(reach.get(other, EMPTY), other))
        return doubted

    def _not_met(self, members: Collection[int], doubted: Bits) -> Bits:
        """Return the doubted nodes that no certain node leads to; tests the arcs into doubted
        nodes."""
        certain = subtract_bits(self.nodes_from(next(iter(members))), doubted)
        for node in members:
            add_bit(certain, node)
        for node in select_items(doubted, EVERY):
            if has_bit(doubted, node) and any(
                has_bit(certain, one) for one in self.before.get(node, NONE)
            ):
                doubted = subtract_bits(doubted, _with_bit(self.nodes_from(node), node))
        return doubted


def _with_bit(bits: Bits, number: int) -> Bits:
    """Return a copy of a set with one more number."""
    found = bits.copy()
    add_bit(found, number)
    return found


WIDTH = 1024
"""Numbers per block."""
SPARSE = 12
"""Members are enumerated one by one if fewer than one in `SPARSE` numbers is a member."""
Bits = dict[int, int]
EMPTY: Bits = {}
_ONES = bytes.maketrans(b"01", b"\x00\x01")


def has_bit(bits: Bits, number: int) -> int:
    """Return 1 if a number is a member, else 0.

    >>> has_bit({0: 0b101}, 2), has_bit({0: 0b101}, 1)
    (1, 0)
    """
    return bits.get(number // WIDTH, 0) >> number % WIDTH & 1


def add_bit(bits: Bits, number: int) -> None:
    """Add a number to a set that is not shared."""
    block = number // WIDTH
    bits[block] = bits.get(block, 0) | 1 << number % WIDTH


def add_bits(bits: Bits, more: Bits) -> None:
    """Add all members of another set to a set that is not shared."""
    for block, members in more.items():
        bits[block] = bits.get(block, 0) | members


def union_bits(bits: Bits, more: Bits) -> Bits:
    """Return the union.

    >>> union_bits({0: 0b1}, {0: 0b10, 7: 0b1})
    {0: 3, 7: 1}
    """
    found = bits.copy()
    add_bits(found, more)
    return found


def subtract_bits(bits: Bits, gone: Bits) -> Bits:
    """Return the members of `bits` that are not in `gone`.

    >>> subtract_bits({0: 0b11, 7: 0b1}, {0: 0b10, 7: 0b1})
    {0: 1}
    """
    found = bits.copy()
    for block, members in gone.items():
        left = found.get(block, 0) & ~members
        if left:
            found[block] = left
        else:
            found.pop(block, None)
    return found


def added_bits(now: Bits, before: Bits) -> Bits:
    """Return the members of `now` that are not in `before`; fast if most blocks are equal.

    >>> added_bits({0: 0b11, 7: 0b1}, {0: 0b10, 7: 0b1})
    {0: 1}
    """
    found: Bits = {}
    for block, members in now.items():
        old = before.get(block, 0)
        if members is not old and (more := members & ~old):
            found[block] = more
    return found


def count_bits(bits: Bits) -> int:
    """Return the number of members.

    >>> count_bits({0: 0b101, 7: 0b1})
    3
    """
    return sum(map(int.bit_count, bits.values()))


def select_items(bits: Bits, values: Sequence[Any]) -> list[Any]:
    """Return the items of `values` at the places that are members.

    >>> select_items({0: 0b101}, "abc")
    ['a', 'c']
    """
    found: list[Any] = []
    for block, members in bits.items():
        start, length = block * WIDTH, members.bit_length()
        if not members & (members - 1):
            found.append(values[start + length - 1])
        elif members.bit_count() * SPARSE < length:
            while members:
                lowest = members & -members
                found.append(values[start + lowest.bit_length() - 1])
                members ^= lowest
        else:
            are_in = bin(members)[:1:-1].encode().translate(_ONES)
            found += compress(values[start : start + length], are_in)
    return found


FEWEST = 4
"""Most ends of a node that are stored as a tuple."""
Arcs = dict[int, tuple[int, ...] | set[int]]


def add_end(arcs: Arcs, node: int, end: int) -> None:
    """Add an arc, if it is absent.

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
    """Add all arcs of nodes that have none; the ends of each node differ."""
    for node, others in ends:
        arcs[node] = tuple(others) if len(others) <= FEWEST else {*others}


def remove_end(arcs: Arcs, node: int, end: int) -> None:
    """Remove an arc, if it is present; a node without arcs has no entry."""
    ends = arcs.get(node, ())
    if end not in ends:
        return
    if len(ends) == 1:
        del arcs[node]
    elif isinstance(ends, set):
        ends.remove(end)
    else:
        arcs[node] = tuple([other for other in ends if other != end])


NONE: frozenset[int] = frozenset()


def components(nodes: Collection[int], after: Mapping[int, Collection[int]]) -> Iterator[list[int]]:
    """Yield the components of a part of a graph, each after the components that it leads to.

    >>> list(components({1, 2, 3}, {1: [2], 2: [1, 3], 3: [4]}))
    [[3], [2, 1]]
    """
    numbers: dict[int, int] = {}
    lowest: dict[int, int] = {}  # entries of nodes that are in no component yet
    path: list[int] = []
    for root in nodes:
        if root not in numbers:
            yield from _walk_components(root, nodes, after, numbers, lowest, path)


def _walk_components(
    root: int,
    nodes: Collection[int],
    after: Mapping[int, Collection[int]],
    numbers: dict[int, int],
    lowest: dict[int, int],
    path: list[int],
) -> Iterator[list[int]]:
    """Yield the components that `root` leads to, by Tarjan's algorithm without recursion.

    Nodes that have a number are skipped. `numbers`, `lowest` and `path` are changed.
    """
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
                yield _pop_component(node, lowest, path)


def _pop_component(node: int, lowest: dict[int, int], path: list[int]) -> list[int]:
    """Return the component whose first node is `node`."""
    found = [path.pop()]
    while found[-1] != node:
        found.append(path.pop())
    for member in found:
        del lowest[member]
    return found
