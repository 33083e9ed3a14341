"""Flushes of views on Spark, beside commits of the same view in the process.

A commit puts the changed rows aside, packed; the flush is timed from its call until it returns, by
when the subscriber has the delta. Each change is made on all sides in turn, and the deltas of the
subscribers must be equal. The first flushes warm up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from asv_benchmarks.offload.cases import SIZES, Case, Change, Changes
from asv_benchmarks.offload.sides import Side, check_same, moved, spark

WARM_UP, ROUNDS = 2, 20
LONG, LONG_WARM_UP, LONG_SIZE = 100, 10, 1_000
"""Flushes in a row, those before them, and their changed rows."""
Times = dict[str, list[float]]
"""The seconds of each run, by the timed work."""


def flush_figures(
    case: Case, size: int, rounds: int = ROUNDS, *, changed: Sequence[int] = SIZES
) -> dict[str, Times]:
    """Changed rows -> seconds of a flush, of its commit, and of a commit in the process."""
    with spark() as offload:
        away, here = moved(case, size, offload), Side(case)
        here.load(case, size)
        changes = Changes(case, size)
        found = {str(count): _times(case, away, here, changes, count, rounds) for count in changed}
        away.close()
    return found


def growth_figures(case: Case, size: int, times: int, rounds: int = ROUNDS) -> dict[str, Times]:
    """Return the seconds of a flush by changed rows, with `size` rows and with `times` as many."""
    with spark() as offload:
        sides = {str(n): (moved(case, n, offload), Changes(case, n)) for n in (size, size * times)}
        found = {str(count): _in_turns(sides, count, rounds) for count in SIZES}
        for side, _ in sides.values():
            side.close()
    return found


def long_figures(case: Case, size: int, flushes: int = LONG) -> Times:
    """Seconds of many flushes in a row: of any groups, and of the same few each time."""
    with spark() as offload:
        side = moved(case, size, offload)
        found = {}
        for name, groups in (("any", None), ("same", LONG_SIZE)):
            changes = Changes(case, size, groups=groups)
            script = pairs(changes, LONG_SIZE, LONG_WARM_UP + flushes)
            found[name] = [flushed(side, change) for change in script][LONG_WARM_UP:]
        side.close()
    return found


def pairs(changes: Changes, rows: int, count: int) -> list[Change]:
    """Return `count` changes of `rows` rows each."""
    return [change for _ in range(-(-count // 2)) for change in changes.pair(rows)][:count]


def flushed(side: Side, change: Change) -> float:
    """Seconds of a flush; the commit before it is not counted."""
    side.commit(change)
    seconds = side.flush()
    side.heard()
    return seconds


def timed(work: Callable[[], object]) -> float:
    """Seconds of some work."""
    start = perf_counter()
    work()
    return perf_counter() - start


def _times(case: Case, away: Side, here: Side, changes: Changes, count: int, rounds: int) -> Times:
    times: Times = {"flush": [], "commit": [], "process": []}
    for change in pairs(changes, count, WARM_UP + rounds):
        times["commit"].append(away.commit(change))
        times["flush"].append(away.flush())
        times["process"].append(here.commit(change))
        check_same(case, away, here)
    return {name: seconds[WARM_UP:] for name, seconds in times.items()}


def _in_turns(sides: dict[str, tuple[Side, Changes]], count: int, rounds: int) -> Times:
    times: Times = {name: [] for name in sides}
    scripts = {name: pairs(of, count, WARM_UP + rounds) for name, (_, of) in sides.items()}
    for number in range(WARM_UP + rounds):
        for name, (side, _) in sides.items():
            times[name].append(flushed(side, scripts[name][number]))
    return {name: seconds[WARM_UP:] for name, seconds in times.items()}
