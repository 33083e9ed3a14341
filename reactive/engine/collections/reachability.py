"""Which nodes of a directed graph lead to which, by one arc or more, while arcs come and go.

    arcs    1 -> 2 -> 3         reach   1: {2, 3}, 2: {3}

An arc that comes, from u to v, adds v and all that v reaches to u and to what reaches u; nodes that
reach v already are passed over, with all above them.

An arc that goes puts in doubt, for u, v and all that v reaches. Nodes are looked at in an order in
which all that a node leads to comes before it, or is in its component: there, what is in doubt is
kept if another arc still leads to it, and the rest is lost, which is in doubt for the nodes before.
The members of a component share what they reach. One that has lost an arc within itself falls into
smaller ones, unless its ends are still connected; so nothing is kept alive by a cycle. The order is
by how many nodes were reached: a node reaches all that those it leads to reach, and more.

State:  a bit per pair (`reachability.py`), and the arcs by both ends.
Cost:   an arc that comes: O(arcs into nodes that reach more now), each O(blocks). One that goes:
        of nodes that lose something O(arcs into them + the smaller of the arcs out of them and the
        arcs into what is in doubt); of a component within which it was, O(arcs of the component).
        Many arcs at once: O(arcs of what leads to them).
Source: R. Tarjan, as in `reachability.py`; G. F. Italiano, Amortized efficiency of a path retrieval
        data structure, 1986; deletion as in [dred], over components in the place of rows.

Sets of small numbers as the bits of integers, in blocks: block -> which of its numbers are in.

    {3, 5, 2049}        {0: 0b101000, 2: 0b10}          with WIDTH = 1024

A block takes a bit per number, and one that is empty nothing, so that sets of any density are as
small as the smaller of a bit set and a dictionary of their members. Sets that somebody keeps are
never changed: what changes one makes another. So to undo a change is to put the old one back.

State:  a dictionary entry and up to WIDTH bits per block that has a member.
Cost:   O(blocks) for what two sets have in common, or not; O(1) to ask for one member.

The arcs of a graph by one of their ends: node -> the nodes at the other ends.

    1 -> (2, 3)          a few, as a tuple
    4 -> {1, 2, 3, ...}  more, as a set

Most nodes have few, for which a tuple takes a third of what a set does.

State:  a tuple or a set per node that has arcs.
Cost:   O(1) per arc that comes or goes.

The strongly connected components of a part of a directed graph.

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
"""Arcs that are one in that many are added at once, and not one after the other."""
FEW = 4
"""Arcs out of a node that are asked before what is in doubt is."""
EVERY = range(sys.maxsize)


class Reachability:
    """A graph, and what each of its nodes reaches.

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
        """What a node reaches; none that reaches nothing."""
        self.was: dict[int, Bits] = {}
        """What nodes reached before the commit, if they reach something else now."""
        self.touched = 0
        """How many nodes were looked at."""
        self.doubts: dict[int, Bits] = {}
        self._queue: list[tuple[int, int]] = []
        self._log: list[tuple[int, int, bool]] = []
        self._arcs = 0

    def change(self, came: Sequence[Arc], gone: Sequence[Arc]) -> None:
        """Take arcs in that are not there, and others out that are."""
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

    def reached(self, node: int) -> Bits:
        """What a node reaches."""
        return self.reach.get(node, EMPTY)

    def undo(self) -> None:
        """Be as before the commit."""
        log, self._log = self._log, []
        for source, target, came in reversed(log):
            self._turn(source, target, came=not came)
        was, self.was = self.was, {}
        for node, bits in was.items():
            self._assign(node, bits)
        self.commit()

    def commit(self) -> None:
        """Forget how it was before."""
        self.was, self._log, self.doubts, self._queue = {}, [], {}, []

    def state(self) -> dict[str, Any]:
        """The arcs, and what each node reaches, which nothing changes later."""
        ends = [tuple(ends) for ends in self.after.values()]
        return {"sources": list(self.after), "targets": ends, "reach": dict(self.reach)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Hold what another graph has told as its state; this one held nothing."""
        before: dict[int, list[int]] = {}
        for source, targets in zip(state["sources"], state["targets"], strict=True):
            self._arcs += len(targets)
            for target in targets:
                before.setdefault(target, []).append(source)
        put_ends(self.after, zip(state["sources"], state["targets"], strict=True))
        put_ends(self.before, before.items())
        self.reach.update(state["reach"])

    def is_isolated(self, node: int) -> bool:
        """Whether no arc begins or ends there."""
        return node not in self.after and node not in self.before

    # Arcs.

    def _put(self, arcs: Iterable[Arc]) -> None:
        for source, target in arcs:
            self._log.append((source, target, True))
            self._turn(source, target, came=True)

    def _turn(self, source: int, target: int, *, came: bool) -> None:
        for arcs, start, end in ((self.after, source, target), (self.before, target, source)):
            if came:
                add_end(arcs, start, end)
            else:
                remove_end(arcs, start, end)
        self._arcs += 1 if came else -1

    def _assign(self, node: int, bits: Bits) -> None:
        if bits:
            self.reach[node] = bits
        else:
            self.reach.pop(node, None)

    def _change(self, node: int, bits: Bits) -> None:
        self.was.setdefault(node, self.reach.get(node, EMPTY))
        self._assign(node, bits)

    # Arcs that come.

    def _extend(self, source: int, target: int) -> None:
        """What the end of a new arc reaches is reached by its start, and by what leads there."""
        reach, before = self.reach, self.before
        more, waiting = _with(reach.get(target, EMPTY), target), [source]
        while waiting:
            node = waiting.pop()
            self.touched += 1
            bits = reach.get(node, EMPTY)
            if not has(bits, target):
                self._change(node, joined(bits, more) if bits else more)
                waiting += before.get(node, NONE)

    def _above(self, nodes: Iterable[int]) -> set[int]:
        """The nodes and all that lead to them."""
        found, waiting = set[int](), list(nodes)
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += self.before.get(node, NONE)
        return found

    def _renew(self, nodes: Collection[int]) -> None:
        """Find anew what nodes reach; of all others it is known, and they lead to no such node."""
        shared: dict[int, Bits] = {}
        for part in components(nodes, self.after):
            self.touched += len(part)
            bits = self._closed(part, shared)
            for node in part:
                if self.reach.get(node, EMPTY) != bits:
                    self._change(node, bits)

    def _closed(self, part: Sequence[int], shared: dict[int, Bits]) -> Bits:
        """What the members of a component reach, by what the nodes that they lead to do.

        Nodes that lead to one other node alone have the same set.
        """
        reach, after, found = self.reach, self.after, Bits()
        if len(part) == 1:
            others = after.get(part[0], NONE)
            if len(others) == 1 and part[0] not in others:
                (other,) = others
                if other not in shared:
                    shared[other] = _with(reach.get(other, EMPTY), other)
                return shared[other]
        inside = set(part)
        is_cyclic = len(part) > 1
        for node in part:
            for other in after.get(node, NONE):
                if other in inside:
                    is_cyclic = True
                elif not has(found, other):
                    put(found, other)
                    put_all(found, reach.get(other, EMPTY))
        if is_cyclic:
            for node in part:
                put(found, node)
        return found

    # Arcs that go.

    def _cut(self, arcs: Sequence[Arc]) -> None:
        cut: dict[int, list[int]] = {}
        for source, target in arcs:
            self._log.append((source, target, False))
            self._turn(source, target, came=False)
            cut.setdefault(target, []).append(source)
        for source, target in arcs:
            bits = self.reached(target)
            is_within = has(bits, source)  # then it is a matter of its component alone
            self._doubt(source, EMPTY if is_within else _with(bits, target))
        while self._queue:
            _, node = heappop(self._queue)
            if node in self.doubts:
                self._lose(node, cut)

    def _doubt(self, node: int, bits: Bits) -> None:
        found = self.doubts.get(node)
        if found is None:
            self.doubts[node] = bits
            reached = self.reached(node)
            heappush(self._queue, (2 * count(reached) + (not has(reached, node)), node))
        else:
            self.doubts[node] = joined(found, bits)

    def _lose(self, node: int, cut: dict[int, list[int]]) -> None:
        """Find out what a node does not reach any more, and the others of its component."""
        if not has(self.reached(node), node):
            self.touched += 1
            self._dwindle((node,), self.doubts.pop(node))
            return
        members = self._component(node, cut)
        self.touched += len(members)
        doubted = Bits()
        for member in members:
            put_all(doubted, self.doubts.pop(member, EMPTY))
        within = [(s, t) for t in members if t in cut for s in cut[t] if s in members]
        if within and not all(self._leads(source, target, members) for source, target in within):
            self._fall_apart(members)
        else:
            self._dwindle(members, doubted)

    def _component(self, node: int, cut: dict[int, list[int]]) -> set[int]:
        """The nodes that led to a node on a cycle, and were reached by it."""
        reached, found, waiting = self.reached(node), {node}, [node]
        for other in waiting:
            for above in (*self.before.get(other, NONE), *cut.get(other, ())):
                if above not in found and has(reached, above):
                    found.add(above)
                    waiting.append(above)
        return found

    def _leads(self, source: int, target: int, members: set[int]) -> bool:
        """Whether a path within a component leads from one node to another."""
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
        shared: dict[int, Bits] = {}
        for part in components(members, self.after):
            bits = self._closed(part, shared)
            for node in part:
                gone = gained(self.reached(node), bits)
                if gone:
                    self._change(node, bits)
                    self._doubt_above(node, members, gone)

    def _dwindle(self, members: Collection[int], doubted: Bits) -> None:
        """Lose what is in doubt, and what no other arc leads to, of nodes that stay together."""
        gone = self._unsupported(members, doubted)
        if not gone:
            return
        bits = without(self.reached(next(iter(members))), gone)
        for node in members:
            self._change(node, bits)
            self._doubt_above(node, members, gone)

    def _doubt_above(self, node: int, members: Collection[int], gone: Bits) -> None:
        for above in self.before.get(node, NONE):
            if above not in members:
                self._doubt(above, gone)

    def _unsupported(self, members: Collection[int], doubted: Bits) -> Bits:
        """Of what is in doubt, what a component does not reach any more."""
        if not doubted:
            return doubted
        out = sum([len(self.after.get(node, NONE)) for node in members])
        if out <= FEW or out <= count(doubted):
            return self._not_led_to(members, doubted)
        return self._not_met(members, doubted)

    def _not_led_to(self, members: Collection[int], doubted: Bits) -> Bits:
        """Of what is in doubt, what no arc out of the members leads to: each of these is asked."""
        after, reach = self.after, self.reach
        for node in members:
            for other in after.get(node, NONE):
                if other not in members and doubted:
                    doubted = without(doubted, _with(reach.get(other, EMPTY), other))
        return doubted

    def _not_met(self, members: Collection[int], doubted: Bits) -> Bits:
        """The same: the arcs into what is in doubt are asked whether they come from elsewhere."""
        certain = without(self.reached(next(iter(members))), doubted)
        for node in members:
            put(certain, node)
        for node in picked(doubted, EVERY):
            if has(doubted, node) and any(has(certain, one) for one in self.before.get(node, NONE)):
                doubted = without(doubted, _with(self.reached(node), node))
        return doubted


def _with(bits: Bits, number: int) -> Bits:
    found = bits.copy()
    put(found, number)
    return found


WIDTH = 1024
"""Numbers of a block."""
SPARSE = 12
"""Of that many numbers one is a member: where fewer are, they are looked for one by one."""
Bits = dict[int, int]
EMPTY: Bits = {}
_ONES = bytes.maketrans(b"01", b"\x00\x01")


def has(bits: Bits, number: int) -> int:
    """Whether a number is a member.

    >>> has({0: 0b101}, 2), has({0: 0b101}, 1)
    (1, 0)
    """
    return bits.get(number // WIDTH, 0) >> number % WIDTH & 1


def put(bits: Bits, number: int) -> None:
    """Make a number a member; of a set that nobody else has."""
    block = number // WIDTH
    bits[block] = bits.get(block, 0) | 1 << number % WIDTH


def put_all(bits: Bits, more: Bits) -> None:
    """The same for all members of another set."""
    for block, members in more.items():
        bits[block] = bits.get(block, 0) | members


def joined(bits: Bits, more: Bits) -> Bits:
    """The members of either.

    >>> joined({0: 0b1}, {0: 0b10, 7: 0b1})
    {0: 3, 7: 1}
    """
    found = bits.copy()
    put_all(found, more)
    return found


def without(bits: Bits, gone: Bits) -> Bits:
    """The members that are not in the other one.

    >>> without({0: 0b11, 7: 0b1}, {0: 0b10, 7: 0b1})
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


def gained(now: Bits, before: Bits) -> Bits:
    """The same, of sets that have most blocks in common.

    >>> gained({0: 0b11, 7: 0b1}, {0: 0b10, 7: 0b1})
    {0: 1}
    """
    found: Bits = {}
    for block, members in now.items():
        old = before.get(block, 0)
        if members is not old and (more := members & ~old):
            found[block] = more
    return found


def count(bits: Bits) -> int:
    """How many members there are.

    >>> count({0: 0b101, 7: 0b1})
    3
    """
    return sum(map(int.bit_count, bits.values()))


def picked(bits: Bits, values: Sequence[Any]) -> list[Any]:
    """Of values in their order, those at the places that are members.

    >>> picked({0: 0b101}, "abc")
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
