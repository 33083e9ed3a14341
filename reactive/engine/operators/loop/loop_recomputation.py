"""Loop that is recomputed at each commit: all rounds from the start, each over all rows.

    x(0) = start      x(r + 1) = bodies(x(r), inputs)      d = x(last) - x(last) before

If every row of a loop depends on every other, no change is small. So the rounds are not stored,
only the rows of the inputs and of the last round, for comparison.

State:  the rows of the inputs and of the result; values derived from unchanged inputs.
Cost:   all rounds from scratch; nothing for a commit that changes no input.
Source: [mrql] repeat.

Adaptive loop: follow small changes round by round, and recompute all rounds after large ones.

    operators    one per round and node: work for the changed rows
    recompute    work for all rows, a small fraction for each       (`LoopRecomputation`)

Which one pays depends on the change: an edge in a corner of a graph touches a few rows in each
round, an edge in the middle nearly all. So the loop measures. Operators may touch as many rows as
take half the time of recomputing; beyond that they are undone and released, and the rounds are
recomputed: never more than 1.5 times the cost of recomputing. Operators are built again once
recomputing the changes that they would have followed for less has cost as much as building them.

State:  the state of `LoopRecomputation`; the operators, while changes are small.
Cost:   the lower of both, times 1.5 at most; building operators costs at most what was spent
        before.
Source: the rent-or-buy problem: Karlin et al., *Competitive Snoopy Caching*, 1988.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from reactive.engine.collections.zset import Pair, Pairs, Row, canonical, consolidate
from reactive.engine.operators.aggregate import Inputs, State, weight_columns, weighted_rows
from reactive.engine.operators.rowwise import Tolerate
from reactive.engine.runtime.collector import pause_collector
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.errors import FixpointError

Log = list[tuple[dict[Row, int], Row, int]]
MOST_SHOWN = 3


class Rounds(Protocol):
    """Evaluator of rounds, over relations that change by round and others that do not."""

    def begin(self, place: int, rows: list[Row]) -> None:
        """Set the rows of a relation that does not change."""

    def round(self, rows: Sequence[list[Row]]) -> list[list[Row]]:
        """Return the relations after one round."""

    def run(self, rows: Sequence[list[Row]], times: int) -> list[list[Row]]:
        """Return the relations after `times` rounds."""

    def settle(
        self, rows: list[list[Row]], done: int, most: int
    ) -> tuple[list[list[Row]], int, bool]:
        """Return the relations after some rounds, `most` at most, and the number of rounds.

        `done` is the number of single rounds before. The last item is True if the last round moved
        no row.
        """

    def forget(self) -> None:
        """Release the values that were derived from the unchanged relations."""

    def count_touched(self) -> int:
        """Return the number of rows that the rounds have touched since the last call."""


@dataclass(frozen=True, slots=True)
class RowTolerance:
    """Tolerance of a relation: the key of its rows, and the least change of a value that counts."""

    by: Callable[[Row], Any]
    value: Callable[[Row], Any]
    least: float

    def passed_on(self, before: list[Row], made: list[Row]) -> tuple[list[Row], bool]:
        """Return `made`, with old rows for rows near them, and True if any other row changed."""
        by, value, least = self.by, self.value, self.least
        known = {canonical(by(row)): row for row in before}
        rows, moved = [], len(before) != len(made)
        for row in made:
            old = known.get(canonical(by(row)), known)
            if old is not known and abs(value(row) - value(old)) < least:
                rows.append(old)
            else:
                rows.append(row)
                moved = moved or old is known or row != old
        return rows, moved

    def keep_near_rows(self, before: Iterable[Row], made: list[Row]) -> list[Row]:
        """Return `made`, with old rows for rows near them; each key may have one row.

        Raises
        ------
        FixpointError: a key has several rows.
        """
        tolerate = Tolerate(self.by, self.value, self.least)
        tolerate.reset(before)
        was = dict.fromkeys(before, 1)
        tolerate.step(bag_changes(dict(Counter(made)), was))
        return [row for row, _ in tolerate.contents()]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: the `names` of its relations, its rounds, and the tolerance of each relation.

    With `collects`, the second relation is all rows that the first one has in any round, and a
    round is linear in the first.
    """

    names: tuple[str, ...]
    times: int | None
    max_rounds: int
    near: tuple[RowTolerance | None, ...]
    collects: bool = False

    def run(self, rounds: Rounds, rows: list[list[Row]]) -> list[list[Row]]:
        """Run all rounds from `rows`; return the relations after the last one.

        Raises `FixpointError` if the rounds have no fixed number, and do not settle.
        """
        if self.times is not None:
            return rounds.run(rows, self.times)
        if self.collects:
            return self._collect(rounds, Counter(rows[0]))
        others = 0
        rest = self.max_rounds
        while rest:
            rows, done, is_settled = rounds.settle(rows, others, rest - 1)
            if is_settled:
                return rows
            before, (rows, moved) = rows, self._passed_on(rows, rounds.round(rows))
            if not moved:
                return before
            others += 1
            rest -= done + 1
        raise self._endless(before, rows)

    def _collect(self, rounds: Rounds, last: Counter[Row]) -> list[list[Row]]:
        """Return the rows of all rounds that begin with `last`; each round sees the last one only.

        Rows of equal weight are evaluated together and once, so that weights may grow.
        """
        found, before = Counter(last), last
        for _ in range(self.max_rounds):
            if not last and not before:
                return [[], list_rows(found)]
            before, by_weight = last, defaultdict[int, list[Row]](list)
            for row, weight in last.items():
                by_weight[weight].append(row)
            last = Counter()
            for weight, some in by_weight.items():
                for row in rounds.round([some, []])[0]:
                    last[row] += weight
            found.update(last)
        if not last and not before:
            return [[], list_rows(found)]
        raise self._endless([before, Counter()], [last, last])

    def keep_near_rows(
        self, before: Sequence[dict[Row, int]], made: list[list[Row]]
    ) -> list[list[Row]]:
        """Return the rows to show after a fixed number of rounds: near rows stay as they were.

        Return `made` if the number is not fixed, or no relation has a tolerance.
        """
        if self.times is None or not any(self.near):
            return made
        return [
            now if near is None else near.keep_near_rows(was, now)
            for near, was, now in zip(self.near, before, made, strict=True)
        ]

    def _passed_on(
        self, before: list[list[Row]], made: list[list[Row]]
    ) -> tuple[list[list[Row]], bool]:
        """Return the rows for the next round, near rows replaced, and True if any row changed."""
        found, any_moved = [], False
        for near, was, now in zip(self.near or (None,) * len(made), before, made, strict=True):
            if near is None:
                rows, moved = now, was != now and Counter(was) != Counter(now)
            else:
                rows, moved = near.passed_on(was, now)
            found.append(rows)
            any_moved |= moved
        return found, any_moved

    def _endless(
        self, before: Sequence[Iterable[Row]], rows: Sequence[Iterable[Row]]
    ) -> FixpointError:
        """Return the error for `max_rounds` rounds without an end, with some rows that change."""
        pairs = zip(rows, before, strict=True)
        moving = [row for now, was in pairs for row in Counter(now) - Counter(was)]
        shown = ", ".join(f"{row!r:.60}" for row in moving[:MOST_SHOWN])
        return FixpointError(
            f"iterate {', '.join(map(repr, self.names))} has not settled after {self.max_rounds} "
            "rounds\n"
            f"  rows that still change: {shown}{', ...' * (len(moving) > MOST_SHOWN)}\n"
            "  transaction rolled back: no table or view changed\n"
            "  give a tolerance=, or raise max_rounds="
        )


class LoopRecomputation:
    """Recompute a loop from its start. Its first inputs are the start of its relations.

    `quick` evaluates the rounds; if something raises in it, `careful` evaluates them again.
    """

    __slots__ = (
        *("_before", "_careful", "_log", "_loop", "_places", "_quick", "_rows"),
        *("given", "touched", "whole"),
    )

    def __init__(
        self, loop: Loop, places: tuple[int, ...], quick: Rounds | None, careful: Rounds
    ) -> None:
        self._loop = loop
        self._places = places
        self._quick = quick
        self._careful = careful
        self.given: list[dict[Row, int]] = [{} for _ in places]
        self._rows: list[dict[Row, int]] = [{} for _ in loop.names]
        self._log: Log = []
        self._before: list[dict[Row, int]] | None = None
        self.whole = 0
        """Rows that an evaluation touches."""
        self.touched = 0

    def step(self, *deltas: Pairs) -> Sequence[Sequence[Pair]]:
        self.take(deltas)
        return self.evaluate()

    def take(self, deltas: Sequence[Pairs]) -> list[Pairs]:
        """Apply changes of the inputs; return them as net deltas, one for each input."""
        nets: list[Pairs] = []
        for place, port in enumerate(self._places):
            net = consolidate(deltas[port]) if deltas[port] else ()
            nets.append(net)
            if net:
                self.touched += len(net)
                add_logged(self.given[place], net, self._log)
        return nets

    def begin_with(self, rows: Sequence[Pairs]) -> None:
        """Load all rows of the inputs; there were none before."""
        for given, port in zip(self.given, self._places, strict=True):
            given.update(consolidate(rows[port]))

    def evaluate(self) -> Sequence[Sequence[Pair]]:
        """Evaluate the loop; return the changes of its relations, or () if there are none."""
        with pause_collector():
            found = self._loop.keep_near_rows(self._rows, self._run_rounds(self._starts()))
            made = [dict(Counter(rows)) for rows in found]
        before, self._rows = self._rows, made
        self._before = before
        changed = [bag_changes(now, was) for now, was in zip(made, before, strict=True)]
        return changed if any(changed) else ()

    def accept(self, found: Sequence[Pairs]) -> Sequence[Sequence[Pair]]:
        """Apply changes that operators have computed; return the net changes, or () if none."""
        nets = [consolidate(delta) for delta in found]
        for rows, net in zip(self._rows, nets, strict=True):
            add_logged(rows, net, self._log)
        return nets if any(nets) else ()

    def undo(self) -> None:
        """Restore the previous result and the inputs; forget what an evaluation has derived."""
        if self._before is not None:
            self._rows, self._before = self._before, None
            self._forget()
        undo_logged(self._log)

    def commit(self) -> None:
        self._log, self._before = [], None

    @property
    def size(self) -> int:
        """The number of rows of the result."""
        return sum(map(len, self._rows))

    def rows(self, relation: int) -> Iterable[Pair]:
        """Return the rows of a relation after the last round."""
        return self._rows[relation].items()

    def contents(self) -> Sequence[Sequence[Pair]]:
        return [list(rows.items()) for rows in self._rows]

    def state(self) -> State:
        """Return the rows of the result; the rows of the inputs are read from the inputs on
        restore.
        """
        found: dict[str, Any] = {"whole": self.whole}
        for place, rows in enumerate(self._rows):
            found |= weight_columns(rows, f"{place} ")
        return found

    def restore(self, state: State, inputs: Inputs) -> None:
        """Load a stored state; the inputs have the same rows as when it was stored."""
        self.begin_with(inputs())
        self.whole = state["whole"]
        for place, rows in enumerate(self._rows):
            rows.update(weighted_rows(state, f"{place} "))
        self.commit()

    def footprint(self) -> tuple[int, int]:
        held = [*self.given, *self._rows]
        return sum(map(len, held)), sum(map(sys.getsizeof, held))

    def run_from(self, rows: list[list[Row]]) -> list[list[Row]]:
        """Return the result of the loop from `rows`, without storing it for comparison."""
        with pause_collector():
            return self._run_rounds(rows)

    def _run_rounds(self, rows: list[list[Row]]) -> list[list[Row]]:
        """Run the rounds from `rows`: quick or, if that raises, careful ones.

        A `FixpointError` of quick rounds is raised: careful ones would not end, either.
        """
        starts = len(self._loop.names)
        if not any(self.given):
            self._forget()
        if self._quick is not None:
            try:
                self._begin(self._quick, starts)
                found = self._loop.run(self._quick, rows)
                self.whole = self._quick.count_touched()
                return found
            except FixpointError:
                raise
            except Exception as error:
                reraise_asynchronous(error)
        self._begin(self._careful, starts)
        found = self._loop.run(self._careful, rows)
        self.whole = self._careful.count_touched()
        return found

    def _starts(self) -> list[list[Row]]:
        """Return the start rows of each relation, repeated by weight."""
        return [list_rows(bag) for bag in self.given[: len(self._loop.names)]]

    def _begin(self, rounds: Rounds, starts: int) -> None:
        """Give the rounds the rows of all inputs from `starts` on."""
        for place, bag in enumerate(self.given[starts:], starts):
            rounds.begin(place, list_rows(bag))

    def _forget(self) -> None:
        """Release what both kinds of rounds have derived from unchanged inputs."""
        if self._quick is not None:
            self._quick.forget()
        self._careful.forget()


class LoopRelation:
    """Emit the changes of one relation of a loop. It has no state of its own."""

    __slots__ = ("_loop", "_relation", "touched")

    def __init__(self, loop: Any, relation: int) -> None:
        self._loop = loop
        self._relation = relation
        self.touched = 0

    def step(self, deltas: Sequence[Sequence[Pair]]) -> Sequence[Pair]:
        return deltas[self._relation] if deltas else ()

    def contents(self) -> Sequence[Pair]:
        return list(self._loop.rows(self._relation))


def list_rows(bag: dict[Row, int]) -> list[Row]:
    """Return the rows of a bag, each repeated by its weight."""
    if len(bag) == sum(bag.values()):
        return list(bag)
    return list(Counter(bag).elements())


def add_logged(bag: dict[Row, int], net: Iterable[Pair], log: Log) -> None:
    """Add net changes to a bag and delete rows of weight zero; append the previous weights to
    `log`.
    """
    for row, weight in net:
        before = bag.get(row, 0)
        log.append((bag, row, before))
        if before + weight:
            bag[row] = before + weight
        else:
            del bag[row]


def undo_logged(log: Log) -> None:
    """Undo the changes of bags in `log`."""
    while log:
        bag, row, weight = log.pop()
        if weight:
            bag[row] = weight
        else:
            bag.pop(row, None)


def bag_changes(now: dict[Row, int], was: dict[Row, int]) -> list[Pair]:
    """Return the difference `now - was` of two bags."""
    found = [(row, -weight) for row, weight in was.items() if row not in now]
    get = was.get
    return found + [
        (row, weight - old) for row, weight in now.items() if (old := get(row, 0)) != weight
    ]


RATIO = 20
"""Time of an operator for a row, relative to that of a recomputed round."""
FEW = 256
"""Rows that operators may touch in any case."""


def affordable(whole: int, ratio: int) -> int:
    """Return the number of rows to follow at most, if each costs `ratio` times one of the `whole`
    rows of a recomputation: half the time of that, and a few rows more."""
    return FEW + whole // (2 * ratio)


class LoopBody(Protocol):
    """All rounds as operators; `step` returns None beyond `most` touched rows."""

    @property
    def touched(self) -> int: ...
    def step(self, deltas: Sequence[Pairs], most: int) -> list[Pairs] | None: ...
    def undo(self) -> None: ...
    def commit(self) -> None: ...
    def footprint(self) -> tuple[int, int]: ...


class AdaptiveLoop:
    """Follow a change by operators, or recompute the loop."""

    __slots__ = ("_anew", "_body", "_is_new", "_make", "_ratio", "_spent", "evaluated", "touched")

    def __init__(
        self,
        anew: LoopRecomputation,
        make: Callable[[LoopRecomputation], LoopBody],
        ratio: int | None = None,
    ) -> None:
        self._anew = anew
        self._make = make
        self._ratio = RATIO if ratio is None else ratio
        """Number of recomputations that cost as much as building the operators."""
        self._body: LoopBody | None = None
        self._spent = 0
        self._is_new = False
        self.touched = 0
        self.evaluated = 0
        """Number of recomputations."""

    def step(self, *deltas: Pairs) -> Sequence[Sequence[Pair]]:
        """Return the changes, by operators if they are built and suffice, else recomputed."""
        anew = self._anew
        nets = anew.take(deltas)
        if self._body is not None:
            found = self._step_body(self._body, nets)
            if found is not None:
                return anew.accept(found)
            self._body = None
        changes = anew.evaluate()
        self.touched += anew.whole
        self.evaluated += 1
        self._consider(sum(map(len, changes)))
        return changes

    def undo(self) -> None:
        """Undo the last step; operators that this commit built are dropped."""
        if self._body is not None:
            self._body.undo()
            if self._is_new:
                self._body = None
        self._anew.undo()

    def commit(self) -> None:
        """Commit the operators, if there are any, and the recomputation."""
        self._is_new = False
        if self._body is not None:
            self._body.commit()
        self._anew.commit()

    def rows(self, relation: int) -> Any:
        """Return the rows of a relation after the last round."""
        return self._anew.rows(relation)

    def contents(self) -> Sequence[Sequence[Pair]]:
        return self._anew.contents()

    def state(self) -> State:
        """Return the result of the loop.

        If there are operators, the next small change after a restore builds them again.
        """
        return {"is_followed": self._body is not None, **self._anew.state()}

    def restore(self, state: State, inputs: Inputs) -> None:
        """Load a stored state; the inputs have the same rows as when it was stored."""
        self._anew.restore(state, inputs)
        if state["is_followed"]:
            self._spent = (self._ratio - 1) * self._anew.whole

    def footprint(self) -> tuple[int, int]:
        rows, size = self._anew.footprint()
        more, sizes = (0, 0) if self._body is None else self._body.footprint()
        return rows + more, size + sizes

    def _step_body(self, body: LoopBody, nets: Sequence[Pairs]) -> list[Pairs] | None:
        """Step the operators; return None if they would touch too many rows."""
        before = body.touched
        found = body.step(nets, affordable(self._anew.whole, RATIO))
        self.touched += body.touched - before
        return found

    def _consider(self, changed: int) -> None:
        """Build operators if they would have followed the last changes for less."""
        anew = self._anew
        if changed * 2 * RATIO > anew.size and anew.whole > FEW:
            self._spent = 0
            return
        self._spent += anew.whole
        if self._spent >= self._ratio * anew.whole or anew.whole <= FEW:
            self._spent = 0
            try:
                self._body, self._is_new = self._make(anew), True
            except Exception:  # recomputing does not raise
                self._spent = -(anew.whole * RATIO * RATIO)
