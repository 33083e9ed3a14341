"""A loop whose rounds follow changes where these are small, and are evaluated anew where not.

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

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from reactive.engine.collections.zset import Pair, Pairs
from reactive.engine.operators.loop.anew import Anew
from reactive.engine.operators.operator_state import Inputs, State

RATIO = 20
"""How many times as long operators take for a row than rounds that are evaluated whole."""
FEW = 256
"""Rows that operators may look at in any case."""


def affordable(whole: int, ratio: int) -> int:
    """How many rows may be followed, of which each takes `ratio` times as long as when `whole` are
    evaluated: so many that they take half as long, and a few more."""
    return FEW + whole // (2 * ratio)


class Body(Protocol):
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

    def __init__(self, anew: Anew, make: Callable[[Anew], Body]) -> None:
        self._anew = anew
        self._make = make
        self._body: Body | None = None
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

    def _followed(self, body: Body, nets: Sequence[Pairs]) -> list[Pairs] | None:
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
