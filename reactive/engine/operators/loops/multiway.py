"""A join of three or more inputs at once: a change of each is followed through the others.

    for key, pair in delta_0:                       what changes of a
        found_1 = find_0_0(a.dst, NOTHING)          b: those that begin where a ends
        found_2 = find_0_1(a.src, NOTHING)          c: those that end where a begins
        for b, c, times in pairs(found_1, found_2):
            ...                                     c begins where b ends
    for key, pair in delta_1: ...

Where two inputs do not meet like this, the one of which fewer rows are found is gone through first,
and the others are looked up.

An input is found as it is after the commit by those behind it, and as it was before by those in
front of it:

    d(A B C)  =  dA B C  +  A' dB C  +  A' B' dC            with A' = A + dA

A row that one of the terms adds and another takes away is cancelled here, so that nothing above
sees it.

State:  none of its own; indexes, shared with all joins of the same input by the same key.
Cost:   O(|d| * the smaller of the sides that it meets).
Source: see `optimizer/plans/multiway.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer import plan
from reactive.engine.codegen.probe_order import Key, ProbeOrder, keys_of
from reactive.engine.collections.zset import Pair, consolidate, is_mixed
from reactive.engine.operators.index_by import FINDS_NOTHING, IndexBy
from reactive.engine.operators.operator import BailOut


class ProbeOrders:
    """Which deltas and look-ups the loops of all probe orders are given at a commit.

    Parameters
    ----------
    orders: the probe order of each input.
    indexes: all that are needed, by their key; each one's output is a delta of the join.
    is_filled: whether the first deltas are changes, and not all that there is.
    """

    __slots__ = (
        *("_as_they_are", "_delta_at", "_is_filled", "_later", "_nodes", "_not_made", "_once"),
        *("_ports", "_starts"),
    )

    def __init__(
        self, orders: Sequence[ProbeOrder], indexes: dict[Key, IndexBy], *, is_filled: bool = False
    ) -> None:
        self._nodes = list(dict.fromkeys(indexes.values()))
        ports = {operator: port for port, operator in enumerate(self._nodes)}
        self._ports = {key: ports[operator] for key, operator in indexes.items()}
        self._starts = [
            next(self._ports[key] for key in indexes if key[0] == place)
            for place in range(len(orders))
        ]
        self._as_they_are: list[Any] = []
        self._delta_at: list[tuple[int, int]] = []  # where the delta of each place is given
        self._later: list[tuple[int, int, int]] = []  # of which places what is to be as before
        self._not_made: dict[int, list[tuple[int, IndexBy]]] = {}  # what a place has not asked yet
        for place, order in enumerate(orders):
            start = self._starts[place]
            self._delta_at.append((len(self._as_they_are), start))
            self._as_they_are.append(())
            for key in keys_of(order):
                if key[0] > place:
                    self._later.append((len(self._as_they_are), start, self._ports[key]))
                asked = self._not_made.setdefault(place, [])
                asked.append((len(self._as_they_are), indexes[key]))
                self._as_they_are.append(FINDS_NOTHING)
        self._is_filled = is_filled
        self._once = {
            port: place for place, port in enumerate(self._starts) if self._starts.count(port) == 1
        }

    def look_ups(self, *deltas: Sequence[Any]) -> list[Any]:
        """Return for each probe order its delta, then its look-ups; at first all rows come by one
        of them, that of which there are most."""
        self._check()
        place = self._single(deltas)
        if place is not None:
            given = self._as_they_are.copy()
            at, port = self._delta_at[place]
            given[at] = deltas[port]
            return given
        is_first, self._is_filled = not self._is_filled, True
        starts = [deltas[port] for port in self._starts]
        if is_first or all(self._nodes[port].was_empty for port in self._starts):
            most = max(range(len(starts)), key=lambda place: len(starts[place]))
            return self._only(most, starts[most])
        return self._arguments(deltas, starts)

    def _single(self, deltas: Sequence[Sequence[Any]]) -> int | None:
        """Return the input that alone has changed, if it stands in the join once and its indexes
        are made: then nothing is to be found as it was before."""
        changed = [port for port, delta in enumerate(deltas) if delta]
        place = self._once.get(changed[0]) if len(changed) == 1 else None
        return place if self._is_filled and place not in self._not_made else None

    def meet(self, deltas: Sequence[Sequence[Any]]) -> bool:
        """Whether what changes of an input may meet what changes of another: such rows may come and
        go in the same commit."""
        changed = [port for port, delta in enumerate(deltas) if delta]
        return len(changed) > 1 or not self._once.keys() >= set(changed)

    def all(self) -> list[Any]:
        """The same for all that there is."""
        self._check()
        return self._only(0, list(self._nodes[self._starts[0]].contents()))

    def _check(self) -> None:
        for operator in self._nodes:
            if operator.poisoned:
                raise LookupError("a key could not be computed")

    def _only(self, place: int, rows: Sequence[Any]) -> list[Any]:
        """What the loops are given for all rows, by the probe order of one place."""
        self._make_indexes([rows if each == place else () for each in range(len(self._starts))])
        given = self._as_they_are.copy()
        given[self._delta_at[place][0]] = rows
        return given

    def _arguments(
        self, deltas: Sequence[Sequence[Any]], starts: Sequence[Sequence[Any]]
    ) -> list[Any]:
        self._make_indexes(starts)
        given = self._as_they_are.copy()
        for at, port in self._delta_at:
            given[at] = deltas[port]
        before: dict[int, Callable[..., Any]] = {}
        for at, start, port in self._later:
            if deltas[port] and deltas[start]:
                found = before.get(port)
                if found is None:
                    found = before[port] = self._nodes[port].find_before(deltas[port])
                given[at] = found
        return given

    def _make_indexes(self, starts: Sequence[Sequence[Any]]) -> None:
        """See to it that what is looked up is there: an index is made at its first look-up."""
        for place in [place for place in self._not_made if starts[place]]:
            asked = self._not_made[place]
            for at, operator in asked:
                self._as_they_are[at] = operator.find(before=False)
            self._not_made[place] = [each for each in asked if not each[1].is_made]
            if not self._not_made[place]:
                del self._not_made[place]


class MultiwayJoined:
    """Runs the loops of all probe orders into a list."""

    __slots__ = ("_loop", "_orders", "_owner", "source", "touched")

    def __init__(
        self, orders: ProbeOrders, loop: Callable[..., Any], source: str, owner: plan.Node
    ) -> None:
        self._orders = orders
        self._loop = loop
        self._owner = owner
        self.source = source
        self.touched = 0

    def step(self, *deltas: Sequence[Any]) -> list[Pair]:
        self.touched += sum(map(len, deltas))
        try:
            out, met = self._loop(None, None, *self._orders.look_ups(*deltas))
        except Exception as error:
            raise BailOut(self._owner, self) from error
        self.touched += met
        return consolidate(out) if out and self._orders.meet(deltas) and is_mixed(out) else out

    def contents(self) -> Sequence[Pair]:
        try:
            out, _ = self._loop(None, None, *self._orders.all())
        except Exception as error:
            raise BailOut(self._owner, self) from error
        return out  # type: ignore[no-any-return]
