"""Contracting loop, run until it settles: it continues from its previous result.

    inputs --+--> bodies --> tolerate --> rows that are shown
             |                             |
             +------- moved rows <---------+        until nothing moves

A contraction has one fixed point, whatever the start of the rounds, and a settled loop is near it.
So after a change the rounds start with the shown rows, and follow rows that move by more than the
tolerance: one copy of the operators steps once per round. The start of a relation matters only
when a key is inserted or deleted. After a change of many rows, the rounds are recomputed whole;
the next change of few rows builds the operators again, later after failed attempts.

State:  the operators of one round, and a tolerance per relation; the number of start rows by key
        of each relation.
Cost:   the rows that move, in each round.
Source: Banach's fixed-point theorem; asynchronous iterations: Chazan and Miranker, *Chaotic
        Relaxation*, 1969.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from reactive.engine.collections.zset import Pair, Pairs, consolidate
from reactive.engine.operators.aggregate import Inputs, State
from reactive.engine.operators.loop.loop_recomputation import (
    Log,
    Loop,
    LoopRecomputation,
    add_logged,
    undo_logged,
)
from reactive.engine.operators.rowwise import Tolerate

PART = 8
"""Operators follow at most one in `PART` of all rows in a round."""
FEW = 64
"""Rows that they follow in any case."""
LONGEST = 64
"""Most commits that are recomputed without an attempt, after failed attempts."""

Contents = Callable[[], Iterable[Pair]]


class OneRound(Protocol):
    """The bodies as operators, which step several times in a commit."""

    @property
    def touched(self) -> int: ...
    def contents(self) -> list[Sequence[Pair]]: ...
    def step(self, deltas: Sequence[Pairs]) -> list[Pairs] | None: ...
    def undo(self) -> None: ...
    def commit(self) -> None: ...
    def footprint(self) -> tuple[int, int]: ...


class LoopContinuation:
    """Follow rows that move until none does."""

    __slots__ = (
        "_anew",
        "_body",
        "_fed",
        "_injected",
        "_is_new",
        "_log",
        "_loop",
        "_make",
        "_patience",
        "_shown",
        "_started",
        "_waits",
        "touched",
    )

    def __init__(
        self,
        anew: LoopRecomputation,
        loop: Loop,
        shown: Sequence[Tolerate],
        make: Callable[[Sequence[Contents]], OneRound],
    ) -> None:
        self._anew = anew
        self._loop = loop
        self._shown = list(shown)
        self._started: list[dict[Any, int]] = [{} for _ in shown]
        """Number of start rows of each key, by relation."""
        self._log: Log = []
        self._make = make
        self._body: OneRound | None = None
        self._is_new = False
        """True if this commit built the operators: their steps cannot be undone."""
        self._fed: list[Sequence[Pairs]] = []
        self._injected: list[Pairs] = []
        self._waits = 0
        self._patience = 1
        self.touched = 0

    def step(self, *deltas: Pairs) -> Sequence[Sequence[Pair]]:
        """Follow the rows that move, or recompute; return the net changes, or () if none."""
        nets = self._anew.take(deltas)
        self._injected = [
            self._inject(place, net) for place, net in enumerate(nets[: len(self._shown)])
        ]
        moved: list[list[Pair]] = [[] for _ in self._shown]
        if not (self._may_follow(nets) and self._follow(nets[len(self._shown) :], moved)):
            self._settle(moved)
        found = [consolidate(pairs) for pairs in moved]
        return found if any(found) else ()

    def undo(self) -> None:
        """Undo the last step; operators that cannot be undone are dropped."""
        self._anew.undo()
        undo_logged(self._log)
        for tolerate in self._shown:
            tolerate.undo()
        if self._body is not None and (self._is_new or not self._is_back(self._body)):
            self._body = None
        self._fed, self._is_new = [], False

    def commit(self) -> None:
        """Drop the undo state of shown rows, start keys and operators."""
        self._anew.commit()
        self._log = []
        for tolerate in self._shown:
            tolerate.commit()
        if self._body is not None:
            self._body.commit()
        self._fed, self._is_new = [], False

    def rows(self, relation: int) -> Iterable[Pair]:
        """Return the shown rows of a relation."""
        return self._shown[relation].contents()

    def contents(self) -> Sequence[Sequence[Pair]]:
        return [list(tolerate.contents()) for tolerate in self._shown]

    def state(self) -> State:
        """Return shown and exact rows; operators are built again after a restore."""
        found: dict[str, Any] = {"whole": self._anew.whole}
        for place, tolerate in enumerate(self._shown):
            found |= {f"{place} {name}": rows for name, rows in tolerate.state().items()}
        return found

    def restore(self, state: State, inputs: Inputs) -> None:
        """Load a stored state; the inputs have the same rows as when it was stored."""
        self._anew.begin_with(inputs())
        self._anew.whole = state["whole"]
        for place, tolerate in enumerate(self._shown):
            tolerate.restore(state[f"{place} there"], state[f"{place} shown"])
            starts = self._anew.given[place].items()
            started = consolidate([(tolerate.key(row), n) for row, n in starts])
            add_logged(self._started[place], started, [])
        self.commit()

    def footprint(self) -> tuple[int, int]:
        """Return the rows and bytes of inputs, shown rows, operators and start keys."""
        sizes = [self._anew.footprint(), *(tolerate.footprint() for tolerate in self._shown)]
        sizes += [] if self._body is None else [self._body.footprint()]
        sizes += [(0, sys.getsizeof(keys)) for keys in self._started]
        return sum(rows for rows, _ in sizes), sum(size for _, size in sizes)

    def _inject(self, place: int, starts: Pairs) -> Pairs:
        """Return the start rows of new keys, and the deletions of old keys."""
        tolerate, started = self._shown[place], self._started[place]
        held, keyed = tolerate.held, [(tolerate.key(row), row, n) for row, n in starts]
        add_logged(started, consolidate([(key, n) for key, _, n in keyed]), self._log)
        come = {key: row for key, row, n in keyed if n > 0 and key not in held}
        gone = {key for key, _, n in keyed if n < 0 and key in held and key not in started}
        return [(row, 1) for row in come.values()] + [(held[key][1], -1) for key in gone]

    def _are_few(self, deltas: Sequence[Pairs]) -> bool:
        """Return True if changes are few enough to follow; False while no row is shown."""
        rows = sum(len(tolerate.held) for tolerate in self._shown)
        return rows > 0 and sum(map(len, deltas)) <= FEW + rows // PART

    def _may_follow(self, nets: Sequence[Pairs]) -> bool:
        """Return True if operators should be tried; rarely after failed attempts."""
        if not self._are_few(nets):
            return False
        self._waits -= 1
        return self._waits < 0

    # Following rows that move.

    def _follow(self, inputs: Sequence[Pairs], moved: list[list[Pair]]) -> bool:
        """Step the operators until nothing moves; return False if they gave up."""
        body, outs = self._body, self._begun(inputs)
        for _ in range(self._loop.max_rounds + 1):
            if outs is None:
                break
            passed = [t.step(out) for t, out in zip(self._shown, outs, strict=True)]
            for pairs, more in zip(moved, passed, strict=True):
                pairs += more
            feeds = [_subtract_pairs(*both) for both in zip(passed, self._injected, strict=True)]
            self._injected = [()] * len(feeds)
            body = self._body
            assert body is not None
            if not any(feeds):
                self._waits, self._patience = 0, 1
                return True
            if not self._are_few(feeds):
                break
            body.commit()
            outs = self._step_round(body, [*feeds, *[()] * len(inputs)])
        self._waits, self._patience = self._patience, min(2 * self._patience, LONGEST)
        return False

    def _begun(self, inputs: Sequence[Pairs]) -> list[Pairs] | None:
        """Return the output of the first round; None if operators give up or cannot be built."""
        if self._body is not None:
            return self._step_round(self._body, [*self._injected, *inputs])
        of_rounds: list[Contents] = [
            lambda t=t, more=more: consolidate([*t.contents(), *more])  # type: ignore[misc]
            for t, more in zip(self._shown, self._injected, strict=True)
        ]
        given = self._anew.given[len(of_rounds) :]
        try:
            self._body = self._make([*of_rounds, *(bag.items for bag in given)])
        except Exception:  # recomputing does not raise, or raises there
            return None
        self._is_new = True
        found = zip(self._body.contents(), self._shown, strict=True)
        return [consolidate([*rows, *_negate_pairs(t.there())]) for rows, t in found]

    def _step_round(self, body: OneRound, feeds: Sequence[Pairs]) -> list[Pairs] | None:
        """Step the operators once; records `feeds` for `undo`."""
        before = body.touched
        outs = body.step(feeds)
        self.touched += body.touched - before
        self._fed.append(feeds)
        return outs

    def _is_back(self, body: OneRound) -> bool:
        """Undo all steps of the operators; return False if that failed."""
        body.undo()
        for feeds in reversed(self._fed[:-1]):
            if body.step([_negate_pairs(feed) for feed in feeds]) is None:
                return False
            body.commit()
        return True

    # Recomputing rounds.

    def _settle(self, moved: list[list[Pair]]) -> None:
        """Recompute rounds until nothing moves, and release the operators."""
        self._body = None
        before = [list(tolerate.contents()) for tolerate in self._shown]
        begin = [
            [row for row, _ in consolidate([*rows, *more])]
            for rows, more in zip(before, self._injected, strict=True)
        ]
        settled = self._anew.run_from(begin)
        self.touched += self._anew.whole
        for tolerate, rows, was, pairs in zip(self._shown, settled, before, moved, strict=True):
            tolerate.reset(rows)
            pairs += [*_negate_pairs(was), *((row, 1) for row in rows)]


def _subtract_pairs(pairs: Pairs, others: Pairs) -> Pairs:
    return consolidate([*pairs, *_negate_pairs(others)]) if others else pairs


def _negate_pairs(pairs: Iterable[Pair]) -> list[Pair]:
    return [(row, -weight) for row, weight in pairs]
