"""The figures of a workload over several runs: medians, and medians of the ratios of each run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

Run = dict[str, dict[str, float]]
"""Of one run: side -> figure -> value."""


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


TYPICAL = COLUMNS[1]
SMALL = Figure("one change of a small table, µs", "small", TYPICAL.show)


@dataclass(frozen=True, slots=True)
class Measured:
    """A workload and its runs."""

    title: str
    runs: list[Run]

    def value(self, side: str, figure: Figure) -> float:
        """The median over the runs."""
        return median(run[side][figure.name] for run in self.runs)

    def ratio(self, figure: Figure) -> float:
        """How many times more the engine takes than the twin; median over the runs."""
        return median(_times(run, figure) for run in self.runs)

    def growth(self, side: str) -> float:
        """One change at the size of the report over one at the small size."""
        return median(run[side][TYPICAL.name] / run[side][SMALL.name] for run in self.runs)


def _times(run: Run, figure: Figure) -> float:
    engine, twin = run["engine"][figure.name], run["twin"][figure.name]
    return twin / engine if figure.large_is_good else engine / twin
