"""Rounds over a layout until no row moves by its tolerance.

    a round   fields of all rows -> values -> which are near the values passed on before
    near      the row that was passed on stays: its fields, and the totals it was computed from
    other     the new row is passed on

Rows are made once, at the end: from the totals of the round in which they were passed on, or the
first rows if they never moved. A relation without a tolerance has moved if a total has changed.

State:  the totals of the rows passed on, for one evaluation.
Cost:   as `kept_rounds.py`, and one look at each value per round.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import ne, sub
from typing import Any

from reactive.engine.codegen.loop_expressions import Column
from reactive.engine.operators.loops.kept_rounds import KeptRounds
from reactive.engine.operators.loops.layout import NearRows
from reactive.engine.operators.loops.number_rounds import find_arrays, number_rounds
from reactive.engine.operators.loops.settled_numbers import SettlingNumbers
from reactive.engine.operators.loops.totals import rows_from_columns

Row = Any
TRIES = 2
"""Rounds before which arrays are tried: the start may have integers, and the round after floats."""
NUMBERS = frozenset({int, float})
"""Classes of values whose differences are compared."""


class SettlingRounds:
    """Rounds of one evaluation; `near` are the tolerances of the relations."""

    def __init__(self, kept: KeptRounds, near: Sequence[NearRows | None]) -> None:
        self._kept = kept
        self._near = near
        self.is_settled = False
        """True if the last round moved no row."""
        self._totals: list[list[Column] | None] = [None] * len(near)
        """By relation, the totals of the rows passed on last; None while no row has moved."""
        self._moved: list[list[bool]] = [[] for _ in near]
        """By relation and position, True if the row has moved."""

    def is_unique(self) -> bool:
        """Return True if each row of a relation with a tolerance has a key of its own."""
        for relation, near in enumerate(self._near):
            if near is not None:
                size = self._kept.places(relation).size
                keys = near.compute(near.by, self._kept.fields[relation], size)
                if len(set(keys)) < len(keys):
                    return False
        return True

    def run(self, most: int) -> int:
        """Run rounds until one moves no row, at most `most`; return their number.

        Stops before a round with values that are no finite numbers. Once the rounds have looked at
        as many rows as numpy is worth, they go on over arrays.
        """
        done, tries, pairs = 0, TRIES, self._kept.count_touched()
        while done < most and not self.is_settled:
            if tries and find_arrays(self._kept, done * pairs) is not None:
                tries -= 1
                found = self._run_over_arrays(most - done)
                if found:
                    done, tries = done + found, 0
                    continue
            if not self._run_one():
                break
            done += 1
        return done

    def _run_one(self) -> bool:
        """Run a round, unless it has values that are no finite numbers: then return False."""
        made, later = self._kept.compute()
        near: dict[int, list[bool]] = {}
        for relation, columns in later.items():
            found = self._find_near(relation, columns)
            if found is None:
                return False
            near[relation] = found
        moved = [self._pass_on(r, made[r], later[r], near[r]) for r in near]
        self.is_settled = not any(moved)
        return True

    def _run_over_arrays(self, most: int) -> int:
        """Run rounds over arrays, and return their number; 0 if there are no arrays."""
        numbers = number_rounds(self._kept, 0)
        settling = None if numbers is None else SettlingNumbers.of(numbers, self._near)
        if settling is None:
            return 0
        settling.begin(self._totals, self._moved)
        done = settling.run(most)
        self._totals, self._moved = settling.totals_and_moved(self._totals)
        self.is_settled = settling.is_settled
        return done

    def aggregate_rows(self, relation: int) -> list[Row] | None:
        """Return the rows of an aggregate of which the relation's rows are made; None if no row of
        the relation has moved."""
        totals = self._totals[relation]
        return None if totals is None else rows_from_columns(totals)

    def rows(self, relation: int, first: list[Row], made: list[Row]) -> list[Row]:
        """Return the rows of a relation: its `first` ones, and those that have moved of `made`."""
        places = self._kept.places(relation)
        rows = places.by_position(made[: len(places.names)], made[len(places.names) :])
        return [
            row if has_moved else old
            for row, old, has_moved in zip(rows, first, self._moved[relation], strict=True)
        ]

    def _find_near(self, relation: int, columns: list[Column]) -> list[bool] | None:
        """Return, by position, True if a row is near the row passed on; None if that is unknown.

        Return no entry for a relation without a tolerance.
        """
        near = self._near[relation]
        if near is None:
            return []
        size = self._kept.places(relation).size
        new = near.compute(near.value, columns, size)
        old = near.compute(near.value, self._kept.fields[relation], size)
        if not set(map(type, new)) | set(map(type, old)) <= NUMBERS:
            return None
        moves = list(map(abs, map(sub, new, old)))
        if any(map(ne, moves, moves)):
            return None
        least = near.least
        return [move < least for move in moves]

    def _pass_on(
        self, relation: int, totals: list[Column], columns: list[Column], near: list[bool]
    ) -> bool:
        """Pass on the rows that are not near; return True if there are any."""
        before = self._totals[relation]
        if self._near[relation] is None:
            self._kept.fields[relation] = columns
            self._totals[relation] = totals
            self._moved[relation] = [True] * self._kept.places(relation).size
            return before != totals
        if all(near):
            return False
        fields = self._kept.fields[relation]
        self._kept.fields[relation] = _merged(near, fields, columns)
        if before is None:
            self._totals[relation] = totals
            self._moved[relation] = [not is_near for is_near in near]
        else:
            by_group = self._kept.places(relation).by_group(near)
            self._totals[relation] = _merged(by_group, before, totals)
            moved = zip(self._moved[relation], near, strict=True)
            self._moved[relation] = [was or not is_near for was, is_near in moved]
        return True


def _merged(near: list[bool], before: list[Column], now: list[Column]) -> list[Column]:
    """Return the columns `now`, with the values `before` where rows are near."""
    return [
        new
        if old is new
        else [a if is_near else b for is_near, a, b in zip(near, old, new, strict=True)]
        for old, new in zip(before, now, strict=True)
    ]
