"""Seconds of processor time of the three sides, over all batches of a query, in turns."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from time import process_time
from typing import Protocol

from asv_benchmarks.nested_queries import again, by_hand, queries
from asv_benchmarks.nested_queries.rows import Batch, batches, tables
from asv_benchmarks.turns import unwatched

SEED = 16
SIDES = ("live", "again", "by hand")


class Side(Protocol):
    def batch(self, changes: Batch) -> None: ...
    def result(self) -> dict[object, int]: ...


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of each batch, medians over the runs, and how many rows the batches have."""

    rows: int
    live: Sequence[float]
    again: Sequence[float]
    by_hand: Sequence[float]

    @property
    def gain(self) -> float:
        """Return the time of evaluating again in each batch over that of the live view."""
        return sum(self.again) / sum(self.live)

    @property
    def gain_by_hand(self) -> float:
        return sum(self.again) / sum(self.by_hand)

    @property
    def share(self) -> float:
        """Return the gain of the live view over the gain by hand."""
        return self.gain / self.gain_by_hand


def sides(name: str) -> dict[str, Side]:
    """Return the three sides, empty."""
    return dict(zip(SIDES, (queries.Live(name), again.Again(name), _by_hand(name)), strict=True))


def check(made: dict[str, Side]) -> None:
    """Raise unless all sides show the same."""
    shown = {name: side.result() for name, side in made.items()}
    if any(each != shown["again"] for each in shown.values()):
        raise AssertionError(f"the sides differ: {shown!r:.2000}")


def run(name: str, come: Sequence[Batch], *, checked: bool = False) -> dict[str, list[float]]:
    """Side -> seconds of each batch. They are compared at the end, or after each batch."""
    made = sides(name)
    taken: dict[str, list[float]] = {each: [] for each in SIDES}
    for number, batch in enumerate(come):
        made["again"].keep(batch)  # type: ignore[attr-defined]
        for each in SIDES if number % 2 else reversed(SIDES):
            taken[each].append(_seconds(made[each].batch, batch))
        if checked:
            check(made)
    check(made)
    return taken


def measured(name: str, scale: float, count: int, runs: int) -> Figures:
    """Return the medians of `runs` runs, each over new tables."""
    come = list(batches(tables(scale, Random(SEED)), count, by_hand.READ[name]))
    with unwatched():
        found = [run(name, come) for _ in range(runs)]
    each = [[median(batch) for batch in zip(*(r[s] for r in found), strict=True)] for s in SIDES]
    return Figures(sum(len(rows) for batch in come for _, rows, _ in batch), *each)


def _by_hand(name: str) -> by_hand.ByHand:
    return by_hand.QUERIES[name]()


def _seconds(do: Callable[[Batch], None], batch: Batch) -> float:
    gc.collect()
    start = process_time()
    do(batch)
    return process_time() - start
