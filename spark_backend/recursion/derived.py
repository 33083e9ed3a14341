"""What rows derive: the ways of a linear recursion over some rows and sides that are at hand.

State:  the rows of the sides, by the keys that ways ask for.
Cost:   O(rows + what they derive), by loops made for the ways; of sides, once until others come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from optimizer import plan
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.operators.loops.whole import whole_of
from reactive.engine.reference.evaluate import evaluate_part
from reactive.engine.runtime.interrupts import reraise_asynchronous

Bag = Counter[Row]


class Ways:
    """The ways of each of some relations, over these relations and then sides.

    Parameters
    ----------
    bodies: None of a relation that has no way.
    may_be_nan: whether rows may have a NaN, of which there is one in rows that are kept.
    """

    def __init__(
        self, bodies: Sequence[plan.Node | None], level: Any, sides: int, *, may_be_nan: bool
    ) -> None:
        self._own, self._level = len(bodies), level
        self._places = [place for place, body in enumerate(bodies) if body is not None]
        self._bodies = [body for body in bodies if body is not None]
        self._quick = whole_of(self._bodies, self._own + sides, self._own)
        self._as_kept: Callable[[Row], Row] | None = canonical if may_be_nan else None
        self._sides: Sequence[Mapping[Row, int]] = ()

    def over(self, sides: Sequence[Mapping[Row, int]]) -> None:
        """From here on sides have these rows."""
        self._sides = sides
        if self._quick is not None:
            for place, bag in enumerate(sides, self._own):
                self._quick.begin(place, list(Counter(bag).elements()))

    def derived(self, rows: Sequence[list[Row]]) -> list[Bag]:
        """The rows of each relation that rows derive, by how often."""
        found = [Counter[Row]() for _ in range(self._own)]
        for place, made in zip(self._places, self._made(rows), strict=True):
            found[place] = made
        return found

    def _made(self, rows: Sequence[list[Row]]) -> list[Bag]:
        if self._quick is not None:
            try:
                made = self._quick.round(rows)
            except Exception as error:  # plain evaluation raises it, or sees that it does not count
                reraise_asynchronous(error)
            else:
                return [Counter(self._kept(some)) for some in made]
        bags = [Counter(some) for some in rows] + [Counter(side) for side in self._sides]
        given = {(self._level, place): bag for place, bag in enumerate(bags)}
        return [evaluate_part(body, given) for body in self._bodies]

    def _kept(self, rows: list[Row]) -> Any:
        return rows if self._as_kept is None else map(self._as_kept, rows)
