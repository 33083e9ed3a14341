"""A row of the table: two sides, the bound of their ratio, and their timing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asv_benchmarks.turns import Beside, Times, beside, in_turns, unwatched

RUNS = 7
TIME = "µs"


@dataclass(frozen=True, slots=True)
class Timed:
    """One side: the timed operation.

    Parameters
    ----------
    do: callable, state -> ignored: `count` operations, which are timed. For figures that are not
        times, it returns the figure.
    count: the number of operations.
    ready: callable, -> state: prepares one run, and is not timed.
    result: callable, state -> a value that must be equal on both sides.
    """

    do: Callable[[Any], Any]
    count: int
    ready: Callable[[], Any]
    result: Callable[[Any], object]


Sides = tuple[Timed, Timed]


@dataclass(frozen=True, slots=True)
class Cliff:
    """A query, and the side that it is compared with.

    Parameters
    ----------
    name, other: the names of the sides.
    sides: callable, size -> the two sides.
    size: the rows of the first table.
    most: the most times the cost of the other side. bare: the most microseconds, or other units.
        Without both, the row has no bound.
    unit: the unit of the bare number; if it is not of time, `do` of both sides returns the number.
    """

    name: str
    other: str
    sides: Callable[[int], Sides]
    size: int
    most: float | None = None
    bare: float | None = None
    unit: str = TIME

    @property
    def asked(self) -> str:
        """The limits, as text."""
        times = [] if self.most is None else [f"{self.most:g}x"]
        bare = [] if self.bare is None else [f"{self.bare:g} {self.unit}"]
        return ", ".join([*times, *bare]) or "-"


def measured(cliff: Cliff, *, size: int | None = None, runs: int = RUNS) -> Beside:
    """Measure one operation of each side, in microseconds or the stated unit; sides must agree.

    The first run is to warm up.
    """
    with unwatched():
        sides = cliff.sides(size or cliff.size)
        clocked: Times = ([], [])
        counted: Times = ([], [])
        for _ in range(1 + runs):
            numbers = _run(cliff, sides, clocked)
            if cliff.unit != TIME:
                for taken, number in zip(counted, numbers, strict=True):
                    taken.append(number / 1e6)
        return beside(_each(clocked if cliff.unit == TIME else counted, sides))


def _run(cliff: Cliff, sides: Sides, clocked: Times) -> list[Any]:
    """Run both sides once, in turns; return their results."""
    states = [side.ready() for side in sides]
    returned: list[Any] = [None, None]

    def do(number: int) -> None:
        returned[number] = sides[number].do(states[number])

    in_turns((0, 1), clocked, do)
    ours, its = (side.result(state) for side, state in zip(sides, states, strict=True))
    if ours != its:
        raise AssertionError(f"{cliff.name}: the sides differ: {ours!r:.300} {its!r:.300}")
    return returned


def _each(times: Times, sides: Sides) -> Times:
    """Return the seconds of one operation, without the first run."""
    one, other = (
        [seconds / side.count for seconds in taken[1:]]
        for taken, side in zip(times, sides, strict=True)
    )
    return one, other
