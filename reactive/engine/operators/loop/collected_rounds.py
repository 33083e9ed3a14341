"""Loop that collects the rows of all rounds, followed by the operators of one round.

    last(0) = start    last(r + 1) = step(last(r), inputs)    found = start + last(1) + ...

The step is linear in its rows, so `found` is a fixed point of one round, and its change is one too:

    d found  =  d start  +  step(found, d inputs)  +  step'(d found)

where step' reads the inputs after the change. The right side is evaluated until a round has no
rows: each round steps the same operators, whose indexes hold `found`.

State:  the operators of one round over the collected rows.
Cost:   the rows that are derived from the change, and their partners.
Source: counting of derivations: Gupta, Mumick, Subrahmanian, *Maintaining Views Incrementally*,
        1993.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from reactive.engine.collections.zset import Pair, Pairs, consolidate


class StepNodes(Protocol):
    """The step as operators, over the collected rows and the inputs."""

    @property
    def touched(self) -> int: ...
    def step(self, deltas: Sequence[Pairs], most: int = ...) -> list[Pairs] | None: ...
    def undo(self) -> None: ...
    def commit(self) -> None: ...
    def footprint(self) -> tuple[int, int]: ...


class CollectedRounds:
    """Follow a change through all rounds; the operators are those of one round.

    The inputs are the start, once per relation, then the inputs that stay from round to round.
    """

    def __init__(self, nodes: StepNodes, max_rounds: int) -> None:
        self._nodes = nodes
        self._max_rounds = max_rounds
        self._fed: list[Sequence[Pairs]] = []
        self._is_usable = True

    @property
    def touched(self) -> int:
        return self._nodes.touched

    def step(self, deltas: Sequence[Pairs], most: int) -> list[Pairs] | None:
        """Return the changes of the last round and of the collected rows.

        Return None beyond `most` touched rows, or if the rounds do not end; the operators are
        then invalid.
        """
        most += self._nodes.touched
        start, _, *inputs = deltas
        none: list[Pairs] = [()] * len(inputs)
        found: list[Pair] = []
        delta = self._feed([(), (), *inputs], most)
        if delta is not None:
            delta = consolidate([*delta, *start])
        for _ in range(self._max_rounds):
            if not delta:
                break
            found += delta
            delta = self._feed([delta, (), *none], most)
        self._is_usable = delta is not None and not delta
        return [(), found] if self._is_usable else None

    def undo(self) -> None:
        """Undo the last step; if that fails, the next step returns None."""
        if self._fed:
            self._nodes.undo()
        for feeds in reversed(self._fed[:-1]):
            if not self._is_usable or self._nodes.step([_negated(feed) for feed in feeds]) is None:
                self._is_usable = False
                break
            self._nodes.commit()
        self._fed = []

    def commit(self) -> None:
        self._nodes.commit()
        self._fed = []

    def footprint(self) -> tuple[int, int]:
        return self._nodes.footprint()

    def _feed(self, feeds: Sequence[Pairs], most: int) -> Pairs | None:
        """Step the operators once; records `feeds` for `undo`."""
        if not self._is_usable or self._nodes.touched > most:
            return None
        if self._fed:
            self._nodes.commit()
        self._fed.append(feeds)
        found = self._nodes.step(feeds, most - self._nodes.touched)
        return None if found is None else consolidate(found[0])


def _negated(pairs: Pairs) -> list[Pair]:
    return [(row, -weight) for row, weight in pairs]
