"""Multiway join: three or more inputs in one operator; a change of each probes the others.

    for key, pair in delta_0:                       changes of a
        found_1 = find_0_0(a.dst, NOTHING)          b: the rows that begin where a ends
        found_2 = find_0_1(a.src, NOTHING)          c: the rows that end where a begins
        for b, c, times in pairs(found_1, found_2):
            ...                                     c begins where b ends
    for key, pair in delta_1: ...

If two inputs do not close a cycle like this, the loop iterates over the one with fewer rows, and
probes the others.

Inputs behind the changed one are probed after the changes of the commit, inputs in front of it
before them:

    d(A B C)  =  dA B C  +  A' dB C  +  A' B' dC            with A' = A + dA

Rows of one weight whose partners have the weight 1 make a batch, by loops of their own, without a
pair of each result and its weight. A probe order that intersects two inputs has no such loops.

A row that one term adds and another removes is cancelled here, so that no later operator sees it.

State:  none of its own; indexes, shared with all joins of the same input by the same key.
Cost:   O(|d| * the smaller of the sides that it probes).
Source: see `optimizer/plans/multiway.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer import plan
from reactive.engine.codegen.probe_order import Key, ProbeOrder, probe_keys
from reactive.engine.collections.zset import (
    KeyedBatch,
    Pair,
    UniformDelta,
    as_batch,
    consolidate,
    is_mixed,
)
from reactive.engine.operators.index_by import FINDS_NOTHING, IndexBy
from reactive.engine.operators.operator import BailOut


class ProbeOrders:
    """Arguments of the loops of all probe orders: deltas and look-ups.

    Parameters
    ----------
    orders: the probe order of each input.
    indexes: all indexes by their key; the output of each is a delta of the join.
    is_filled: False if the first deltas are all rows, rather than changes.
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
        self._delta_at: list[tuple[int, int]] = []  # argument place and port of each delta
        self._later: list[tuple[int, int, int]] = []  # argument, start, port of old look-ups
        self._not_made: dict[int, list[tuple[int, IndexBy]]] = {}  # look-ups that are not built yet
        for place, order in enumerate(orders):
            start = self._starts[place]
            self._delta_at.append((len(self._as_they_are), start))
            self._as_they_are.append(())
            for key in probe_keys(order):
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
        """Return for each probe order its delta, then its look-ups.

        At first all rows arrive, and are joined by one probe order: that of the input with the most
        rows. Raises `LookupError` while an index has error rows.
        """
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
        """Return the place of the only changed input, if it occurs once in the join and its indexes
        are built; no look-up before the commit is then needed."""
        changed = [port for port, delta in enumerate(deltas) if delta]
        place = self._once.get(changed[0]) if len(changed) == 1 else None
        return place if self._is_filled and place not in self._not_made else None

    def batches(self, deltas: Sequence[Sequence[Any]]) -> list[Any] | None:
        """Return the arguments as `look_ups` does, with keys and rows of one weight for each delta.

        Return None if weights differ, or if no delta is a batch.
        """
        weight = weight_of_batches(deltas)
        found = [as_batch(delta, weight) for delta in deltas] if weight else [None]
        if None in found:
            return None
        given = self.look_ups(*deltas)
        for at, port in self._delta_at:
            batch = found[port] if given[at] else None
            given[at] = () if batch is None else zip(batch.keys, batch.rows, strict=True)
        return given

    def meet(self, deltas: Sequence[Sequence[Any]]) -> bool:
        """Return True if changes of two inputs may join: a row may be inserted and deleted in one
        commit."""
        changed = [port for port, delta in enumerate(deltas) if delta]
        return len(changed) > 1 or not self._once.keys() >= set(changed)

    def all(self) -> list[Any]:
        """Return the arguments that join all current rows."""
        self._check()
        place = self._smallest_place()
        return self._only(place, list(self._nodes[self._starts[place]].contents()))

    def _smallest_place(self) -> int:
        """Return the place of the input with the fewest rows, from which all rows are joined.

        It is the first place, if indexes would have to be built that it does not probe.
        """
        starts = [self._nodes[port] for port in self._starts]
        probed = {operator for _, operator in self._not_made.get(0, ())}
        if not starts[0].is_made and not starts[0].is_worth_building():
            return 0
        ready = [n for n, each in enumerate(starts) if n == 0 or each.is_made or each in probed]
        place = min(ready, key=lambda each: starts[each].index.rows)
        asked = [each for _, each in self._not_made.get(place, ()) if each not in probed]
        worth = [each.is_worth_building() for each in asked if not each.is_made]  # counts each
        return place if all(worth) else 0

    def _check(self) -> None:
        """Raise `LookupError` if an index has error rows."""
        for operator in self._nodes:
            if operator.poisoned:
                raise LookupError("a key could not be computed")

    def _only(self, place: int, rows: Sequence[Any]) -> list[Any]:
        """Return the arguments that join all rows by the probe order of one place."""
        self._make_indexes([rows if each == place else () for each in range(len(self._starts))])
        given = self._as_they_are.copy()
        given[self._delta_at[place][0]] = rows
        return given

    def _arguments(
        self, deltas: Sequence[Sequence[Any]], starts: Sequence[Sequence[Any]]
    ) -> list[Any]:
        """Return the arguments for all deltas; later inputs are probed as before the commit."""
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
        """Build the indexes that the changed places probe for the first time."""
        for place in [place for place in self._not_made if starts[place]]:
            asked = self._not_made[place]
            for at, operator in asked:
                self._as_they_are[at] = operator.find(before=False)
            self._not_made[place] = [each for each in asked if not each[1].is_made]
            if not self._not_made[place]:
                del self._not_made[place]


class MultiwayJoinRunner:
    """Run the loops of all probe orders into a list; `made` generates them for batches, if it can.

    Rows of one weight whose partners have the weight 1 make a batch.
    """

    __slots__ = ("_batch", "_loop", "_made", "_orders", "_owner", "source", "touched")

    def __init__(
        self,
        orders: ProbeOrders,
        loop: Callable[..., Any],
        made: Callable[[], Callable[..., Any] | None],
        source: str,
        owner: plan.Node,
    ) -> None:
        self._orders = orders
        self._loop = loop
        self._made: Callable[[], Callable[..., Any] | None] | None = made
        self._batch: Callable[..., Any] | None = None
        self._owner = owner
        self.source = source
        self.touched = 0

    def step(self, *deltas: Sequence[Any]) -> Sequence[Pair]:
        """Return the changed rows of the join; any exception becomes a `BailOut`."""
        self.touched += sum(map(len, deltas))
        try:
            batch = self._run_batch(deltas)
            if batch is not None:
                return batch
            out, met = self._loop(None, None, *self._orders.look_ups(*deltas))
        except Exception as error:
            raise BailOut(self._owner, self) from error
        self.touched += met
        return consolidate(out) if out and self._orders.meet(deltas) and is_mixed(out) else out

    def _run_batch(self, deltas: Sequence[Sequence[Any]]) -> UniformDelta | None:
        """Return the rows of a batch; None if they have several weights, or if there are no loops
        for batches."""
        given = self._orders.batches(deltas)
        if given is None:
            return None
        if self._made is not None:
            self._batch, self._made = self._made(), None
        found = None if self._batch is None else self._batch(None, None, *given)
        if found is None:
            return None
        self.touched += found[1]
        return UniformDelta(found[0], weight_of_batches(deltas))

    def contents(self) -> Sequence[Pair]:
        """Return all rows of the join; any exception becomes a `BailOut`."""
        try:
            out, _ = self._loop(None, None, *self._orders.all())
        except Exception as error:
            raise BailOut(self._owner, self) from error
        return out  # type: ignore[no-any-return]


def weight_of_batches(deltas: Sequence[Sequence[Any]]) -> int:
    """Return the weight of the batches among some deltas; 0 if there is none, or several."""
    weights = {delta.weight for delta in deltas if type(delta) is KeyedBatch}
    return weights.pop() if len(weights) == 1 else 0
