"""A loop evaluated anew at each commit: from its start, round after round, each of them whole.

    x(0) = start      x(r + 1) = bodies(x(r), inputs)      d = x(last) - x(last) before

A loop in which everything depends on everything has no change that is small. So nothing is kept of
the rounds: the rows of the inputs, and those of the last round to compare with.

State:  the rows of the inputs and of the result; what was made of inputs that stay.
Cost:   that of all rounds from scratch; of a commit that changes nothing, none.
Source: [mrql] repeat.

A loop whose rounds follow changes where these are small, and are evaluated anew where not.

    operators    one per round and node: the work is that of the rows that change
    anew         the work is that of all rows, a small fraction for each       (`anew.py`)

Which one pays depends on the change: an edge in a corner of a graph touches a few rows in each
round, one in the middle nearly all. So it is measured as it goes. Operators may look at as many
rows as take them half the time that the rounds take anew; beyond that they are undone and let go,
and the rounds are evaluated: never more than 1.5 times of that. They are made again once changes
that they would have followed for less have cost what making them does.

State:  that of `anew.py`; the operators, while changes are small.
Cost:   the lower of both, times 1.5 at most; of making operators, what had been spent before.
Source: the rent-or-buy problem: Karlin et al., *Competitive Snoopy Caching*, 1988.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from reactive.engine.collections.zset import Pair, Pairs, Row, canonical, consolidate
from reactive.engine.operators.aggregate import Inputs, State, columns_of, weighted_rows
from reactive.engine.operators.rowwise import Tolerate
from reactive.engine.runtime.collector import paused
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.errors import FixpointError

Log = list[tuple[dict[Row, int], Row, int]]
MOST_SHOWN = 3


class Rounds(Protocol):
    """What evaluates rounds: over relations of the round, and others that stay."""

    def begin(self, place: int, rows: list[Row]) -> None:
        """Give a relation that stays."""

    def round(self, rows: Sequence[list[Row]]) -> list[list[Row]]:
        """What a round makes of its relations."""

    def run(self, rows: Sequence[list[Row]], times: int) -> list[list[Row]]:
        """What a number of rounds make of them, one after the other."""

    def forget(self) -> None:
        """Hold nothing until then."""

    def looked(self) -> int:
        """How many rows the rounds have looked at since it was last asked."""


@dataclass(frozen=True, slots=True)
class Near:
    """Which rows of a relation correspond, and how little they may differ."""

    by: Callable[[Row], Any]
    value: Callable[[Row], Any]
    least: float

    def passed_on(self, before: list[Row], made: list[Row]) -> tuple[list[Row], bool]:
        """Rows, those of before where they are near; and whether any other one was passed on."""
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

    def shown(self, before: Iterable[Row], made: list[Row]) -> list[Row]:
        """Rows, those of before where they are near; there is one of each key.

        Raises
        ------
        FixpointError: there are several.
        """
        tolerate = Tolerate(self.by, self.value, self.least)
        tolerate.reset(before)
        was = dict.fromkeys(before, 1)
        tolerate.step(changes(dict(Counter(made)), was))
        return [row for row, _ in tolerate.contents()]


@dataclass(frozen=True, slots=True)
class Loop:
    """What a loop is: `names` of its relations, rounds, and what is near enough of each."""

    names: tuple[str, ...]
    times: int | None
    max_rounds: int
    near: tuple[Near | None, ...]

    def run(self, rounds: Rounds, rows: list[list[Row]]) -> list[list[Row]]:
        """All rounds, from some rows on."""
        if self.times is not None:
            return rounds.run(rows, self.times)
        for _ in range(self.max_rounds):
            before, (rows, moved) = rows, self._passed_on(rows, rounds.round(rows))
            if not moved:
                return before
        raise self._endless(before, rows)

    def shown(self, before: Sequence[dict[Row, int]], made: list[list[Row]]) -> list[list[Row]]:
        """What is shown of what a number of rounds come to: with a tolerance, that is near it."""
        if self.times is None or not any(self.near):
            return made
        return [
            now if near is None else near.shown(was, now)
            for near, was, now in zip(self.near, before, made, strict=True)
        ]

    def _passed_on(
        self, before: list[list[Row]], made: list[list[Row]]
    ) -> tuple[list[list[Row]], bool]:
        found, any_moved = [], False
        for near, was, now in zip(self.near or (None,) * len(made), before, made, strict=True):
            if near is None:
                rows, moved = now, was != now and Counter(was) != Counter(now)
            else:
                rows, moved = near.passed_on(was, now)
            found.append(rows)
            any_moved |= moved
        return found, any_moved

    def _endless(self, before: list[list[Row]], rows: list[list[Row]]) -> FixpointError:
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


class Anew:
    """Evaluates a loop from its start. The first inputs are where its relations start.

    `quick` evaluates rounds unless something raises in them; then `careful` does.
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
        """Rows that are looked at when it is evaluated."""
        self.touched = 0

    def step(self, *deltas: Pairs) -> Sequence[Sequence[Pair]]:
        self.take(deltas)
        return self.evaluate()

    def take(self, deltas: Sequence[Pairs]) -> list[Pairs]:
        """Take changes of the inputs in; they come back net, one for each relation given."""
        nets: list[Pairs] = []
        for place, port in enumerate(self._places):
            net = consolidate(deltas[port]) if deltas[port] else ()
            nets.append(net)
            if net:
                self.touched += len(net)
                grow(self.given[place], net, self._log)
        return nets

    def begin_with(self, rows: Sequence[Pairs]) -> None:
        """Take all rows of the inputs in, of which there were none."""
        for given, port in zip(self.given, self._places, strict=True):
            given.update(consolidate(rows[port]))

    def evaluate(self) -> Sequence[Sequence[Pair]]:
        """How the rows of all relations change when the loop is evaluated."""
        with paused():
            found = self._loop.shown(self._rows, self._evaluated(self._starts()))
            made = [dict(Counter(rows)) for rows in found]
        before, self._rows = self._rows, made
        self._before = before
        changed = [changes(now, was) for now, was in zip(made, before, strict=True)]
        return changed if any(changed) else ()

    def accept(self, found: Sequence[Pairs]) -> Sequence[Sequence[Pair]]:
        """Be told how the rows of all relations change."""
        nets = [consolidate(delta) for delta in found]
        for rows, net in zip(self._rows, nets, strict=True):
            grow(rows, net, self._log)
        return nets if any(nets) else ()

    def undo(self) -> None:
        if self._before is not None:
            self._rows, self._before = self._before, None
            self._forget()
        shrink(self._log)

    def commit(self) -> None:
        self._log, self._before = [], None

    @property
    def size(self) -> int:
        """How many rows the result has."""
        return sum(map(len, self._rows))

    def rows(self, relation: int) -> Iterable[Pair]:
        """The rows of a relation after the last round."""
        return self._rows[relation].items()

    def contents(self) -> Sequence[Sequence[Pair]]:
        return [list(rows.items()) for rows in self._rows]

    def state(self) -> State:
        """The rows of the result; those of the inputs are read again from these."""
        found: dict[str, Any] = {"whole": self.whole}
        for place, rows in enumerate(self._rows):
            found |= columns_of(rows, f"{place} ")
        return found

    def restore(self, state: State, inputs: Inputs) -> None:
        """Hold what a loop has told as its state, over inputs with the same rows."""
        self.begin_with(inputs())
        self.whole = state["whole"]
        for place, rows in enumerate(self._rows):
            rows.update(weighted_rows(state, f"{place} "))
        self.commit()

    def footprint(self) -> tuple[int, int]:
        held = [*self.given, *self._rows]
        return sum(map(len, held)), sum(map(sys.getsizeof, held))

    def settled(self, rows: list[list[Row]]) -> list[list[Row]]:
        """What the loop comes to from some rows on; nobody compares with them later."""
        with paused():
            return self._evaluated(rows)

    def _evaluated(self, rows: list[list[Row]]) -> list[list[Row]]:
        starts = len(self._loop.names)
        if not any(self.given):
            self._forget()
        if self._quick is not None:
            try:
                self._begin(self._quick, starts)
                found = self._loop.run(self._quick, rows)
                self.whole = self._quick.looked()
                return found
            except FixpointError:
                raise
            except Exception as error:
                reraise_asynchronous(error)
        self._begin(self._careful, starts)
        found = self._loop.run(self._careful, rows)
        self.whole = self._careful.looked()
        return found

    def _starts(self) -> list[list[Row]]:
        return [listed(bag) for bag in self.given[: len(self._loop.names)]]

    def _begin(self, rounds: Rounds, starts: int) -> None:
        for place, bag in enumerate(self.given[starts:], starts):
            rounds.begin(place, listed(bag))

    def _forget(self) -> None:
        if self._quick is not None:
            self._quick.forget()
        self._careful.forget()


class LoopRelation:
    """One of the relations of a loop. It has no state of its own."""

    __slots__ = ("_loop", "_relation", "touched")

    def __init__(self, loop: Any, relation: int) -> None:
        self._loop = loop
        self._relation = relation
        self.touched = 0

    def step(self, deltas: Sequence[Sequence[Pair]]) -> Sequence[Pair]:
        return deltas[self._relation] if deltas else ()

    def contents(self) -> Sequence[Pair]:
        return list(self._loop.rows(self._relation))


def listed(bag: dict[Row, int]) -> list[Row]:
    """The rows of a bag, each as often as it is there."""
    if len(bag) == sum(bag.values()):
        return list(bag)
    return list(Counter(bag).elements())


def grow(bag: dict[Row, int], net: Iterable[Pair], log: Log) -> None:
    """Add changes to a bag, in which no row is left with a weight of zero; `log` gets the rows with
    the weights that they had."""
    for row, weight in net:
        before = bag.get(row, 0)
        log.append((bag, row, before))
        if before + weight:
            bag[row] = before + weight
        else:
            del bag[row]


def shrink(log: Log) -> None:
    """Take back what has been added to bags."""
    while log:
        bag, row, weight = log.pop()
        if weight:
            bag[row] = weight
        else:
            bag.pop(row, None)


def changes(now: dict[Row, int], was: dict[Row, int]) -> list[Pair]:
    """How a bag differs from another."""
    found = [(row, -weight) for row, weight in was.items() if row not in now]
    get = was.get
    return found + [
        (row, weight - old) for row, weight in now.items() if (old := get(row, 0)) != weight
    ]


RATIO = 20
"""How many times as long operators take for a row than rounds that are evaluated whole."""
FEW = 256
"""Rows that operators may look at in any case."""


def affordable(whole: int, ratio: int) -> int:
    """How many rows may be followed, of which each takes `ratio` times as long as when `whole` are
    evaluated: so many that they take half as long, and a few more."""
    return FEW + whole // (2 * ratio)


class LoopBody(Protocol):
    """All rounds as operators."""

    @property
    def touched(self) -> int: ...
    def step(self, deltas: Sequence[Pairs], most: int) -> list[Pairs] | None: ...
    def undo(self) -> None: ...
    def commit(self) -> None: ...
    def footprint(self) -> tuple[int, int]: ...


class Measured:
    """Follows a change by operators, or evaluates the loop anew."""

    __slots__ = ("_anew", "_body", "_is_new", "_make", "_spent", "evaluated", "touched")

    def __init__(self, anew: Anew, make: Callable[[Anew], LoopBody]) -> None:
        self._anew = anew
        self._make = make
        self._body: LoopBody | None = None
        self._spent = 0
        self._is_new = False
        self.touched = 0
        self.evaluated = 0
        """How often it was evaluated anew."""

    def step(self, *deltas: Pairs) -> Sequence[Sequence[Pair]]:
        anew = self._anew
        nets = anew.take(deltas)
        if self._body is not None:
            found = self._followed(self._body, nets)
            if found is not None:
                return anew.accept(found)
            self._body = None
        changes = anew.evaluate()
        self.touched += anew.whole
        self.evaluated += 1
        self._consider(sum(map(len, changes)))
        return changes

    def undo(self) -> None:
        if self._body is not None:
            self._body.undo()
            if self._is_new:
                self._body = None
        self._anew.undo()

    def commit(self) -> None:
        self._is_new = False
        if self._body is not None:
            self._body.commit()
        self._anew.commit()

    def rows(self, relation: int) -> Any:
        """The rows of a relation after the last round."""
        return self._anew.rows(relation)

    def contents(self) -> Sequence[Sequence[Pair]]:
        return self._anew.contents()

    def state(self) -> State:
        """The result of the loop. Operators are made again by the next small change, if there were
        some."""
        return {"is_followed": self._body is not None, **self._anew.state()}

    def restore(self, state: State, inputs: Inputs) -> None:
        """Hold what a loop has told as its state, over inputs with the same rows."""
        self._anew.restore(state, inputs)
        if state["is_followed"]:
            self._spent = (RATIO - 1) * self._anew.whole

    def footprint(self) -> tuple[int, int]:
        rows, size = self._anew.footprint()
        more, sizes = (0, 0) if self._body is None else self._body.footprint()
        return rows + more, size + sizes

    def _followed(self, body: LoopBody, nets: Sequence[Pairs]) -> list[Pairs] | None:
        before = body.touched
        found = body.step(nets, affordable(self._anew.whole, RATIO))
        self.touched += body.touched - before
        return found

    def _consider(self, changed: int) -> None:
        """Make operators if they would have followed the last changes for less."""
        anew = self._anew
        if changed * 2 * RATIO > anew.size and anew.whole > FEW:
            self._spent = 0
            return
        self._spent += anew.whole
        if self._spent >= RATIO * anew.whole or anew.whole <= FEW:
            self._spent = 0
            try:
                self._body, self._is_new = self._make(anew), True
            except Exception:  # evaluated anew, it does not raise
                self._spent = -(anew.whole * RATIO * RATIO)
