"""The figures of a workload over several runs: medians, and medians of the ratios of each run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from asv_benchmarks.measure import AS_WRITTEN, ENGINE, TWIN

Run = dict[str, dict[str, float]]
"""The figures of one run: side -> figure -> value."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One column of the report."""

    title: str
    name: str
    show: Callable[[float], str]
    large_is_good: bool = False


COLUMNS = (
    Figure("bulk load, rows/s", "rate", lambda v: f"{v:,.0f}", large_is_good=True),
    Figure("one change, µs", "typical", lambda v: f"{v / 1e3:,.1f}"),
    Figure("its p99, µs", "p99", lambda v: f"{v / 1e3:,.1f}"),
    Figure("batch of 10,000, ms", "batch", lambda v: f"{v * 1e3:,.1f}"),
    Figure("peak bytes/row", "peak", lambda v: f"{v:,.0f}"),
    Figure("held bytes/row", "held", lambda v: f"{v:,.0f}"),
)

RATE, TYPICAL, _, _, PEAK, HELD = COLUMNS
EFFECT = (RATE, TYPICAL, HELD)
"""The columns of the effect of optimization."""
LOAD = Figure("load, ms", "load", lambda v: f"{v * 1e3:,.1f}")
STATE = Figure("state, bytes", "state", lambda v: f"{v:,.0f}")
GROWTH = Figure("growth of the process, bytes", "held", STATE.show)
SMALL = Figure("one change of a small table, µs", "small", TYPICAL.show)


@dataclass(frozen=True, slots=True)
class Measured:
    """A workload and its runs."""

    name: str
    title: str
    runs: list[Run]

    def value(self, side: str, figure: Figure) -> float:
        """Return the median over the runs."""
        return median(run[side][figure.name] for run in self.runs)

    def ratio(self, figure: Figure, side: str = ENGINE, other: str = TWIN) -> float:
        """Return the cost of `side` over the cost of `other`, as the median over the runs."""
        return median(_times(figure, run[side], run[other]) for run in self.runs)

    def gain(self, figure: Figure) -> float:
        """Return the cost of the plan as written over that of the optimized one."""
        return self.ratio(figure, AS_WRITTEN, ENGINE)

    def growth(self, side: str) -> float:
        """One change at the size of the report over one at the small size."""
        return median(run[side][TYPICAL.name] / run[side][SMALL.name] for run in self.runs)


def _times(figure: Figure, one: dict[str, float], other: dict[str, float]) -> float:
    """A process that did not grow, as may be with few rows, counts as if by one byte."""
    if figure.large_is_good:
        one, other = other, one
    return (one[figure.name] or 1.0) / (other[figure.name] or 1.0)
