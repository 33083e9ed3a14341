"""Rounds over arrays until no row moves by its tolerance; see `settled_rounds.py`.

State:  the arrays of the rows passed on, for one evaluation.
Cost:   as `number_rounds.py`, and some operations of arrays for each relation and round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactive.engine.codegen.loop_expressions import Column
from reactive.engine.operators.loops.layout import NearRows
from reactive.engine.operators.loops.number_rounds import NoNumbers, NumberRounds

Array = Any


class SettlingNumbers:
    """Rounds of one evaluation; `near` are the tolerances of the relations."""

    def __init__(self, numbers: NumberRounds, near: Sequence[NearRows | None]) -> None:
        self._numbers = numbers
        self._near = near
        self._totals: list[list[Array] | None] = [None] * len(near)
        self._moved: list[Array] = [None] * len(near)
        self.is_settled = False
        """True if the last round moved no row."""

    @staticmethod
    def of(numbers: NumberRounds, near: Sequence[NearRows | None]) -> SettlingNumbers | None:
        """Return the rounds; None if a tolerance compares other values than numbers."""
        try:
            for relation, each in enumerate(near):
                if each is not None:
                    numbers.check_near(relation, each)
        except NoNumbers:
            return None
        return SettlingNumbers(numbers, near)

    def begin(self, totals: Sequence[list[Column] | None], moved: Sequence[list[bool]]) -> None:
        """Begin with the totals of the rows that rounds of lists passed on, and with the rows that
        have moved."""
        array = self._numbers.numpy.array
        for relation, columns in enumerate(totals):
            if columns is not None:
                self._totals[relation] = [array(values, float) for values in columns[1:]]
                self._moved[relation] = array(moved[relation], bool)

    def run(self, most: int) -> int:
        """Run rounds until one moves no row, at most `most`; return their number.

        Stops before a round that lists must compute, with the fields for it.
        """
        done = 0
        while done < most and not self.is_settled:
            try:
                made, later = self._numbers.compute()
                near = {relation: self._find_near(relation, later[relation]) for relation in later}
            except NoNumbers:
                break
            moved = [self._pass_on(r, made[r], later[r], near[r]) for r in near]
            self.is_settled = not any(moved)
            done += 1
        self._numbers.store()
        return done

    def totals_and_moved(
        self, before: Sequence[list[Column] | None]
    ) -> tuple[list[list[Column] | None], list[list[bool]]]:
        """Return the totals of the rows passed on, and which rows have moved, as lists."""
        totals = [
            was if now is None else self._numbers.columns(relation, now)
            for relation, (now, was) in enumerate(zip(self._totals, before, strict=True))
        ]
        return totals, [[] if each is None else each.tolist() for each in self._moved]

    def _find_near(self, relation: int, columns: list[Array]) -> Array:
        """Return a mask of the rows that are near the rows passed on; None without a tolerance."""
        near, numbers = self._near[relation], self._numbers
        if near is None:
            return None
        size = numbers.size(relation)
        new = numbers.value(near, columns, size)
        old = numbers.value(near, numbers.fields[relation], size)
        with numbers.numpy.errstate(over="ignore"):
            return abs(new - old) < near.least

    def _pass_on(
        self, relation: int, totals: list[Array], columns: list[Array], near: Array
    ) -> bool:
        """Pass on the rows that are not near; return True if there are any."""
        numbers, before = self._numbers, self._totals[relation]
        where = numbers.numpy.where
        if near is None:
            numbers.fields[relation] = columns
            self._totals[relation] = totals
            self._moved[relation] = numbers.numpy.ones(numbers.size(relation), bool)
            equal = numbers.numpy.array_equal
            return before is None or not all(map(equal, before, totals))
        if near.all():
            return False
        numbers.fields[relation] = [
            new if old is new else where(near, old, new)
            for old, new in zip(numbers.fields[relation], columns, strict=True)
        ]
        if before is None:
            self._totals[relation], self._moved[relation] = totals, ~near
        else:
            by_group = numbers.by_group(relation, near)
            pairs = zip(before, totals, strict=True)
            self._totals[relation] = [where(by_group, old, new) for old, new in pairs]
            self._moved[relation] |= ~near
        return True
