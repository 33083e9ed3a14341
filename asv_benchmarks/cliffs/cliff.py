"""A row of the table: two sides, what is asked of their ratio, and how they are timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asv_benchmarks.turns import Beside, Times, beside, in_turns, unwatched

RUNS = 7
TIME = "µs"


@dataclass(frozen=True, slots=True)
class Timed:
    """One side: what is timed.

    Parameters
    ----------
    do: callable, state -> anything: as many operations as `count` says; this is timed. Where
        numbers are not times, it returns the number.
    count: the operations.
    ready: callable, -> state: makes ready for one run, and is not timed.
    result: callable, state -> anything: what must be equal on both sides.
    """

    do: Callable[[Any], Any]
    count: int
    ready: Callable[[], Any]
    result: Callable[[Any], object]


Sides = tuple[Timed, Timed]


@dataclass(frozen=True, slots=True)
class Cliff:
    """A query, and what it is compared with.

    Parameters
    ----------
    name, other: what the sides are.
    sides: callable, size -> the two sides.
    size: of the first table.
    most: times the other side that it may take. bare: microseconds, or what `unit` says, that it
        may take. Without both, the row only tells.
    unit: of what the bare number is; if not of time, `do` of both sides returns it.
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
        """In words."""
        times = [] if self.most is None else [f"{self.most:g}x"]
        bare = [] if self.bare is None else [f"{self.bare:g} {self.unit}"]
        return ", ".join([*times, *bare]) or "-"


def measured(cliff: Cliff, *, size: int | None = None, runs: int = RUNS) -> Beside:
    """Microseconds, or what the unit says, of one operation of each side. The sides are equal.

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
    """Both sides once, in turns, with what they return."""
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
    """Of one operation, without the first run."""
    one, other = (
        [seconds / side.count for seconds in taken[1:]]
        for taken, side in zip(times, sides, strict=True)
    )
    return one, other
