"""A stream for tables whose rows tell by themselves whether the result shows them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

from asv_benchmarks.workload import Change, Row

T = TypeVar("T")


class Churn:
    """Add rows made by `make(number)`, and remove random ones, in turn.

    `seen(row)` is true of the rows that a visible change may add or remove.
    """

    def __init__(
        self,
        rows: list[Row],
        make: Callable[[int], Row],
        seen: Callable[[Row], bool],
        random: Random,
    ) -> None:
        self._rows = rows.copy()
        self._make = make
        self._seen = seen
        self._random = random
        self._next = len(rows)
        self._adding = False

    def visible(self) -> Change:
        return self._turn(self._seen)

    def ordinary(self) -> Change:
        return self._turn(_any)

    def _turn(self, wanted: Callable[[Row], bool]) -> Change:
        self._adding = not self._adding
        return self._add(wanted) if self._adding else self._remove(wanted)

    def _add(self, wanted: Callable[[Row], bool]) -> Change:
        while True:
            row = self._make(self._next)
            self._next += 1
            if wanted(row):
                self._rows.append(row)
                return Change(0, row, 1)

    def _remove(self, wanted: Callable[[Row], bool]) -> Change:
        while True:
            place = self._random.randrange(len(self._rows))
            if wanted(self._rows[place]):
                return Change(0, take(self._rows, place), -1)


def take(rows: list[T], place: int) -> T:
    """Take a row out of a list whose order does not matter."""
    rows[place], rows[-1] = rows[-1], rows[place]
    return rows.pop()


def _any(row: Row) -> bool:
    return True
