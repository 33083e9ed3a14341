"""The tables of the section about Spark, of figures over several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from asv_benchmarks.offload.cases import CASES, NATIVE
from asv_benchmarks.offload.measure import TIMES
from asv_benchmarks.table import markdown, verdict

Found = Mapping[str, Any]
"""Name of a case -> its figures, of all runs together."""
MOST_FLUSH: Mapping[str, Mapping[str, float]] = {
    "group": {"1": 0.6, "100": 0.6, "10000": 1.5},
    "join": {"1": 1.2, "100": 1.2, "10000": 2.5},
}
MOST_GROWTH = 1.3
MOST_MOVE = {True: 30.0, False: 60.0}
"""Limits of the seconds to move a million rows: sums that Spark computes, and all others."""
MILLION = 1_000_000
LEAST_FREED = 0.8
LEAST_GAIN = 5.0
MIB = 2**20
ENDS = 10
"""The number of first and of last flushes that are compared."""


def merged(runs: Sequence[Any]) -> Any:
    """Return the figures of several runs as those of one: medians of equal places."""
    first = runs[0]
    if isinstance(first, Mapping):
        return {name: merged([run[name] for run in runs]) for name in first}
    if isinstance(first, list):
        return [median(ones) for ones in zip(*runs, strict=True)]
    return median(runs)


def flushes(found: Found, size: int) -> list[str]:
    """Report a flush, with the time of the commit before it, and a commit in the process."""
    header = ["a flush", "changed rows", "s", "at most", "", "the slowest, s"]
    header += ["its commit, ms", "a commit in the process, ms"]
    rows = [
        [
            CASES[name].title,
            f"{int(changed):,}",
            *_at_most(median(times["flush"]), MOST_FLUSH[name].get(changed)),
            f"{max(times['flush']):.2f}",
            *(f"{median(times[side]) * 1e3:,.2f}" for side in ("commit", "process")),
        ]
        for name, figures in found.items()
        for changed, times in figures.items()
    ]
    return [f"### Flushes, tables of {size:,} rows", "", *markdown(header, rows)]


def growth(found: Found, size: int) -> list[str]:
    """Return the time of a flush with few and with many more rows."""
    few, many = str(size), str(size * TIMES)
    header = ["a flush", "changed rows", f"of {size:,} rows, s", f"of {size * TIMES:,}, s"]
    header += ["growth", f"at most {MOST_GROWTH:g}"]
    rows = []
    for name, figures in found.items():
        for changed, times in figures.items():
            seconds = [median(times[side]) for side in (few, many)]
            shown = [f"{value:.2f}" for value in seconds]
            rows.append([CASES[name].title, f"{int(changed):,}", *shown, *_ratio(*seconds)])
    return ["### Few rows and many", "", *markdown(header, rows)]


def long(found: Found) -> list[str]:
    """Many flushes in a row."""
    count = max(len(seconds) for figures in found.values() for seconds in figures.values())
    header = [f"{count} flushes", "groups", f"first {ENDS}, s", f"last {ENDS}, s"]
    header += ["growth", f"at most {MOST_GROWTH:g}", "the slowest, s"]
    rows = []
    for name, figures in found.items():
        for groups, seconds in figures.items():
            ends = [median(seconds[:ENDS]), median(seconds[-ENDS:])]
            growth, judged = _ratio(*ends)
            targeted = judged if groups == "any" else ""
            shown = [f"{value:.2f}" for value in ends]
            slowest = f"{max(seconds):.2f}"
            rows.append([CASES[name].title, groups, *shown, growth, targeted, slowest])
    return ["### Many flushes", "", *markdown(header, rows)]


def handover(found: Found, size: int) -> list[str]:
    """Seconds of a move, and the memory of the process."""
    header = [f"{size:,} rows move", "kept as", "s", "at most", "", "back, s", "state, MiB"]
    header += ["freed", f"at least {LEAST_FREED:.0%}", "objects freed", "most beyond it, MiB"]
    return ["### Moving", "", *markdown(header, (_move(*item, size) for item in found.items()))]


def scratch(found: Found, size: int) -> list[str]:
    """Report a flush beside Spark alone."""
    header = ["", "flush, s", "Spark from scratch, s", "gain", f"at least {LEAST_GAIN:g}"]
    rows = []
    for name, times in found.items():
        flush, evaluated = median(times["flush"]), median(times["scratch"])
        gain = evaluated / flush
        shown = [f"{flush:.2f}", f"{evaluated:.2f}", f"{gain:.1f}", verdict(gain >= LEAST_GAIN)]
        rows.append([CASES[name].title, *shown])
    title = f"### Beside evaluation from scratch by Spark, tables of {size:,} rows"
    return [title, "", *markdown(header, rows)]


def increments(found: Found, size: int) -> list[str]:
    """Report the increments of [mrql], and the same rows going again."""
    header = ["an increment", "rows", "first 3, s", "last 3, s", "growth"]
    header += [f"at most {MOST_GROWTH:g}", "deletions, s", "in the process, s"]
    rows = []
    for name, figures in found.items():
        for changed, times in figures.items():
            count = len(times["spark"]) // 2
            came, went = times["spark"][:count], times["spark"][count:]
            ends = [median(came[:3]), median(came[-3:])]
            shown = [f"{value:.2f}" for value in ends]
            others = [f"{median(went):.2f}", f"{median(times['process']):.3f}"]
            rows.append([CASES[name].title, f"{int(changed):,}", *shown, *_ratio(*ends), *others])
    return [f"### Increments, {size:,} rows at first", "", *markdown(header, rows)]


def predicates(rates: Mapping[str, float], size: int) -> list[str]:
    """Return the rows that are tested per second."""
    header = [f"where, {size:,} rows on Spark", "rows/s"]
    rows = [[name, f"{rates[name]:,.0f}"] for name in ("lifted", "opaque")]
    return ["### Lifted and opaque", "", *markdown(header, rows)]


def _move(name: str, of: Mapping[str, float], size: int) -> list[str]:
    case = CASES[name]
    state = of["full"] - of["empty"]
    freed = (of["full"] - of["moved"]) / state
    objects = of["objects full"] - of["objects empty"]
    objects_freed = (of["objects full"] - of["objects moved"]) / objects
    most = MOST_MOVE[case.mechanism == NATIVE] if size == MILLION else None
    return [
        case.title,
        case.mechanism,
        *_at_most(of["seconds"], most),
        f"{of['recall']:.1f}",
        f"{state / MIB:,.0f}",
        f"{freed:.0%}",
        verdict(freed >= LEAST_FREED) if size == MILLION else "",
        f"{objects_freed:.0%}",
        f"{of['peak'] / MIB:,.0f}",
    ]


def _at_most(seconds: float, most: float | None) -> list[str]:
    if most is None:
        return [f"{seconds:.2f}", "", ""]
    return [f"{seconds:.2f}", f"{most:g}", verdict(seconds <= most)]


def _ratio(one: float, other: float) -> list[str]:
    growth = other / one
    return [f"{growth:.2f}", verdict(growth <= MOST_GROWTH)]
