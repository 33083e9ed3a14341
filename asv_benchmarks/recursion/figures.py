"""The figures of a recursive case over several runs, and the tables that show them.

Gains are of single edits: of each the median over the runs, and of these the median and the least.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from asv_benchmarks.measure import AS_WRITTEN, ENGINE, TWIN
from asv_benchmarks.recursion.case import Case
from asv_benchmarks.recursion.measure import EditTimes
from asv_benchmarks.recursion.sides import SCRATCH, names_of
from asv_benchmarks.table import markdown, verdict

MOST_INITIAL = 2.0
LEAST_GAIN = 0.5
"""No edit is to take more than twice as long as from scratch."""
MB = 1e6


@dataclass(frozen=True, slots=True)
class Measured:
    """A case and its runs."""

    case: Case
    loads: list[dict[str, dict[str, float]]]
    """The figures of each run: side -> figure -> value."""
    edits: list[EditTimes]

    def load(self, side: str, figure: str) -> float:
        """Return the median over the runs."""
        return median(run[side][figure] for run in self.loads)

    def load_ratio(self, figure: str, other: str) -> float:
        """Return the cost of the engine over that of another side; median over the runs."""
        return median(run[ENGINE][figure] / run[other][figure] for run in self.loads)

    def has(self, side: str) -> bool:
        return side in names_of(self.case)

    def times(self, kind: str, way: str, side: str) -> list[float]:
        """Seconds of each edit; medians over the runs."""
        runs = (run[kind][way][side] for run in self.edits)
        return [median(ones) for ones in zip(*runs, strict=True)]

    def ratios(self, kind: str, way: str, side: str, other: str) -> list[float]:
        """Return the cost of `side` over that of `other`, for each edit."""
        times = ((run[kind][way][side], run[kind][way][other]) for run in self.edits)
        runs = ([one / two for one, two in zip(*both, strict=True)] for both in times)
        return [median(ones) for ones in zip(*runs, strict=True)]


def initial(measured: Sequence[Measured]) -> list[str]:
    """Report the first evaluation."""
    header = [
        "all rows in one transaction",
        "rows",
        "of the result",
        "from scratch, ms",
        "by hand, ms",
        "engine, ms",
        "times from scratch",
        f"at most {MOST_INITIAL:g}",
        "as written, ms",
    ]
    return ["### First evaluation", "", *markdown(header, map(_initial, measured))]


def memory(measured: Sequence[Measured]) -> list[str]:
    """Return the peak of the first evaluation, and the memory held after it."""
    header = [
        "peak, and held after it, MB",
        "from scratch",
        "by hand",
        "engine",
        "bytes per row of the result",
        "times from scratch",
        "times by hand",
    ]
    return ["### Memory", "", *markdown(header, map(_memory, measured))]


def edits(measured: Sequence[Measured]) -> list[str]:
    """One edit, and its gain over evaluating the query again."""
    lines = ["### One edit"]
    for one in measured:
        lines += ["", f"#### {one.case.title[0].upper()}{one.case.title[1:]}", "", *_edits(one)]
    return lines


def _initial(one: Measured) -> list[str]:
    ratio = one.load_ratio("seconds", SCRATCH)
    seconds = {side: f"{one.load(side, 'seconds') * 1e3:,.1f}" for side in names_of(one.case)}
    return [
        one.case.title,
        f"{one.load(ENGINE, 'given'):,.0f}",
        f"{one.load(ENGINE, 'rows'):,.0f}",
        seconds[SCRATCH],
        seconds.get(TWIN, ""),
        seconds[ENGINE],
        f"{ratio:.2f}",
        verdict(ratio <= MOST_INITIAL) if one.case.judged else "",
        seconds[AS_WRITTEN],
    ]


def _memory(one: Measured) -> list[str]:
    def shown(side: str) -> str:
        if not one.has(side):
            return ""
        return f"{one.load(side, 'peak') / MB:,.1f}, {one.load(side, 'held') / MB:,.1f}"

    return [
        one.case.title,
        *map(shown, (SCRATCH, TWIN, ENGINE)),
        f"{one.load(ENGINE, 'held') / one.load(ENGINE, 'rows'):,.0f}",
        f"{one.load_ratio('peak', SCRATCH):.1f}",
        f"{one.load_ratio('peak', TWIN):.1f}" if one.has(TWIN) else "",
    ]


def _edits(one: Measured) -> list[str]:
    header = [
        "edit",
        "",
        "edits",
        "from scratch, ms",
        "by hand, µs",
        "engine, µs",
        "gain over from scratch",
        "at least",
        "",
        "the least gain",
        f"at least {LEAST_GAIN:g}",
        "times by hand",
        "gain over as written",
    ]
    rows = [
        ["" if number else kind, way, *_edit(one, kind, way)]
        for kind, ways in one.edits[0].items()
        for number, way in enumerate(ways)
    ]
    return markdown(header, rows)


def _edit(one: Measured, kind: str, way: str) -> Iterable[str]:
    def typical(side: str, unit: float) -> str:
        return f"{median(one.times(kind, way, side)) * unit:,.1f}" if one.has(side) else ""

    gains = one.ratios(kind, way, SCRATCH, ENGINE)
    gain, least = median(gains), one.case.gains.get(kind)
    return [
        f"{len(gains):,}",
        typical(SCRATCH, 1e3),
        typical(TWIN, 1e6),
        typical(ENGINE, 1e6),
        _times(gain),
        "" if least is None else f"{least:,g}",
        "" if least is None else verdict(gain >= least),
        _times(min(gains)),
        verdict(min(gains) >= LEAST_GAIN) if kind in one.case.judged else "",
        _times(median(one.ratios(kind, way, ENGINE, TWIN))) if one.has(TWIN) else "",
        _times(median(one.ratios(kind, way, AS_WRITTEN, ENGINE))),
    ]


def _times(ratio: float) -> str:
    return f"{ratio:,.2f}" if ratio < 10 else f"{ratio:,.0f}"
