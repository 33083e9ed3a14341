"""The sections of the report: figures beside their targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from asv_benchmarks.figures import (
    COLUMNS,
    EFFECT,
    GROWTH,
    HELD,
    LOAD,
    RATE,
    SMALL,
    STATE,
    TYPICAL,
    Figure,
    Measured,
)
from asv_benchmarks.measure import AS_WRITTEN, ENGINE, TWIN
from asv_benchmarks.table import markdown, verdict

MOST_LOAD = 1.5
LOADED = ("group_sum", "join_sum")
"""The workloads whose load has a target."""
MOST_TIMES, MOST_OF_LOADED, MOST_MORE = 2.0, 3.0, 6.0
"""The most that one change takes: times the twin; of those loaded, and microseconds more."""
MOST_HELD = 1.5
MOST_GROWTH = 1.2
GAINS: dict[str, tuple[tuple[Figure, float | None], ...]] = {
    "product_where": ((LOAD, 1_000.0), (TYPICAL, 1_000.0)),
    "selective_where": ((STATE, 10.0), (GROWTH, None)),
}
"""The measurements of queries to be rewritten, and the least gains."""
COSTS: tuple[tuple[str, str, float | None], ...] = (
    ("a relation of ten operators, again", "warm", 5.0),
    ("the same, of callables not seen before", "new", None),
    ("the same, the first time in a process", "cold", None),
    ("`import reactive`", "import", 150.0),
    ("its processor time", "import_processor", None),
    ("a process that imports nothing", "bare", None),
    ("one change, 20 views of one customer each", "view_change_few", None),
    ("the same, 1,000 such views", "view_change_many", None),
    ("one more such view, of 100,000 orders", "view_more", None),
)
"""Measurements that are made once, their names, and the most milliseconds."""


def targets(measured: Sequence[Measured], *, size: int, small: int) -> list[str]:
    """Report the engine beside the twin, where that has a target."""
    header = [
        "times the twin",
        "bulk load",
        f"at most {MOST_LOAD:g}",
        f"one change at {small:,}",
        f"at {size:,}",
        "more, µs",
        f"at most {MOST_TIMES:g}; the first two {MOST_OF_LOADED:g}, {MOST_MORE:g} µs more",
        "memory after load",
        f"at most {MOST_HELD:g}",
    ]
    return ["### Targets", "", *markdown(header, map(_targets, measured))]


def sides(measured: Sequence[Measured]) -> list[str]:
    """All figures of the engine and of the twin."""
    header = ["workload", "", *(c.title for c in COLUMNS)]
    return ["### Engine and twin", "", *markdown(header, _sides(measured))]


def growth(measured: Sequence[Measured], *, size: int, small: int) -> list[str]:
    """One change on small and on large tables."""
    header = [
        "workload",
        f"engine {small:,}, µs",
        f"engine {size:,}, µs",
        "growth",
        "growth of the twin",
        f"growth at most {MOST_GROWTH:g}",
    ]
    title = f"### One change at {small:,} and at {size:,} rows"
    return [title, "", *markdown(header, map(_growth, measured))]


def effect(measured: Sequence[Measured]) -> list[str]:
    """Report the engine, optimized and with the plan as written."""
    header = ["workload", "", *(c.title for c in EFFECT)]
    return ["### The effect of optimization", "", *markdown(header, _effect(measured))]


def gains(measured: Sequence[Measured], *, size: int, small: int) -> list[str]:
    """Report the effect where a query was not written for speed."""
    tables = f"The product is over {small:,} x {small:,} rows, the join over {size:,} x {size:,}."
    header = ["query", "", "optimized", "as written", "gain", "at least", ""]
    rows = [row for one in measured for row in _gains(one)]
    return ["### Queries that were not written for speed", "", tables, "", *markdown(header, rows)]


def costs(runs: Sequence[dict[str, float]]) -> list[str]:
    """Return the costs that are paid once for a query, and for a process."""
    rows = [
        [
            what,
            f"{value:,.1f}" if value >= 1 else f"{value:,.3f}",
            *_judged(most, most is None or value <= most),
        ]
        for what, name, most in COSTS
        for value in [median(run[name] for run in runs)]
    ]
    header = ["once", "ms", "at most", ""]
    return ["### Making a query, many views, and starting", "", *markdown(header, rows)]


def _targets(workload: Measured) -> list[str]:
    load, held = workload.ratio(RATE), workload.ratio(HELD)
    times = workload.ratio(SMALL), workload.ratio(TYPICAL)
    more = (workload.value(ENGINE, TYPICAL) - workload.value(TWIN, TYPICAL)) / 1e3
    if workload.name in LOADED:
        is_soon = max(times) <= MOST_OF_LOADED and more <= MOST_MORE
    else:
        is_soon = max(times) <= MOST_TIMES
    return [
        workload.title,
        f"{load:.2f}",
        verdict(load <= MOST_LOAD) if workload.name in LOADED else "",
        *(f"{value:.2f}" for value in times),
        f"{more:.1f}",
        verdict(is_soon),
        f"{held:.2f}",
        verdict(held <= MOST_HELD),
    ]


def _sides(measured: Iterable[Measured]) -> Iterable[list[str]]:
    for workload in measured:
        yield [workload.title, "engine", *_values(workload, ENGINE, COLUMNS)]
        yield ["", "twin", *_values(workload, TWIN, COLUMNS)]
        yield ["", "times the twin", *(f"{workload.ratio(c):.1f}" for c in COLUMNS)]


def _growth(workload: Measured) -> list[str]:
    growth = workload.growth(ENGINE)
    return [
        workload.title,
        SMALL.show(workload.value(ENGINE, SMALL)),
        TYPICAL.show(workload.value(ENGINE, TYPICAL)),
        f"{growth:.2f}",
        f"{workload.growth(TWIN):.2f}",
        verdict(growth <= MOST_GROWTH),
    ]


def _effect(measured: Iterable[Measured]) -> Iterable[list[str]]:
    for workload in measured:
        yield [workload.title, "optimized", *_values(workload, ENGINE, EFFECT)]
        yield ["", "as written", *_values(workload, AS_WRITTEN, EFFECT)]
        yield ["", "gain", *(f"{workload.gain(c):.1f}" for c in EFFECT)]


def _gains(query: Measured) -> Iterable[list[str]]:
    for number, (figure, least) in enumerate(GAINS[query.name]):
        gain = query.gain(figure)
        yield [
            "" if number else query.title,
            figure.title,
            figure.show(query.value(ENGINE, figure)),
            figure.show(query.value(AS_WRITTEN, figure)),
            f"{gain:,.1f}" if gain < 100 else f"{gain:,.0f}",
            *_judged(least, least is None or gain >= least),
        ]


def _judged(target: float | None, reached: bool) -> list[str]:
    return ["", ""] if target is None else [f"{target:,g}", verdict(reached)]


def _values(workload: Measured, side: str, figures: Iterable[Figure]) -> Iterable[str]:
    return (figure.show(workload.value(side, figure)) for figure in figures)


def _milliseconds(value: float) -> str:
    return f"{value:,.1f}" if value >= 1 else f"{value:,.3f}"
