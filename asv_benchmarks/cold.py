"""One change when nothing is in the caches: 20 ms after the last, with other work between.

python -m asv_benchmarks.cold [--size 10000] [--changes 60] [--only group_sum]

A service that changes a row now and then does not run a loop, as for the other figures: between two
changes the caches lose the data of the engine, or of the twin. Both sides take turns, each after
other work.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from random import Random
from statistics import median
from time import process_time, process_time_ns

from asv_benchmarks.engine import Engine
from asv_benchmarks.measure import SEED
from asv_benchmarks.table import DOCS, machine, markdown, publish
from asv_benchmarks.turns import Beside, Ear, unwatched
from asv_benchmarks.workload import Change, Side, Workload, load
from asv_benchmarks.workloads import WORKLOADS, workload

Times = list[float]
PAUSE = 0.02
SIZE, CHANGES, WARM = 10_000, 60, 400
LARGE = 500_000
HEADER = (
    *("workload", "warm, µs", "times the twin", "cold, µs", "times the cold twin"),
    *("slowest tenth, µs", "times the twin's"),
)
NAMES = [each.name for each in WORKLOADS]


def main(arguments: list[str] | None = None) -> None:
    """Run the measurements that the command line selects."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.cold")
    parser.add_argument("--size", type=int, default=SIZE, help="rows of the first table")
    parser.add_argument("--changes", type=int, default=CHANGES, help="cold ones, of each side")
    parser.add_argument("--only", nargs="*", choices=NAMES, metavar="NAME", help="not all of them")
    parser.add_argument("--write", action="store_true", help=f"put it into {DOCS.name}")
    options = parser.parse_args(arguments)
    work = other_work()
    rows = [
        _cells(name, *figures(workload(name), options.size, options.changes, work))
        for name in options.only or NAMES
    ]
    head = f"Tables of {options.size:,} rows; medians. {machine()}"
    publish("\n".join([head, "", *markdown(HEADER, rows)]), "cold", write=options.write)


def figures(
    workload: Workload, size: int, changes: int, between: Callable[[], object]
) -> tuple[Beside, Beside, Beside]:
    """Microseconds of a warm change, of a cold one, and of one of ten cold ones at most."""
    random = Random(SEED)
    rows = workload.rows(size, random)
    stream = workload.stream(rows, random)
    sides: list[Side] = [Engine(workload, Ear()), workload.twin(Ear())]
    with unwatched():
        for side in sides:
            load(side, rows)
        warm = _times(sides, [stream.visible() for _ in range(WARM)], lambda: None)
        cold = _times(sides, [stream.visible() for _ in range(changes)], between)
    if sides[0].result() != sides[1].result():
        raise AssertionError(f"{workload.name}: the results of the sides differ")
    return (
        Beside.of(*(median(times[WARM // 2 :]) for times in warm)),
        Beside.of(*(median(times) for times in cold)),
        Beside.of(*(sorted(times)[len(times) * 9 // 10] for times in cold)),
    )


def other_work() -> Callable[[], object]:
    """Return the other work of a program: it reads and makes objects for `PAUSE` seconds."""
    random = Random(SEED)
    numbers = [random.randrange(LARGE) for _ in range(LARGE)]
    texts = {number: str(number) for number in numbers}

    def work() -> int:
        end, found = process_time() + PAUSE, 0
        while process_time() < end:
            start = random.randrange(LARGE)
            found += sum(len(texts[number] + "x") for number in numbers[start : start + 1_000])
        return found

    return work


def _times(sides: list[Side], changes: list[Change], between: Callable[[], object]) -> list[Times]:
    times: list[Times] = [[] for _ in sides]
    verbs = [side.verbs() for side in sides]
    for number, (table, row, weight) in enumerate(changes):
        turn = list(zip(verbs, times, strict=True))
        for verb, taken in turn if number % 2 else reversed(turn):
            between()
            change = verb[table][weight < 0]
            start = process_time_ns()
            change(row)
            taken.append((process_time_ns() - start) / 1e3)
    return times


def _cells(name: str, warm: Beside, cold: Beside, slow: Beside) -> list[str]:
    found = [name]
    for beside in (warm, cold, slow):
        found += [f"{beside.engine:.1f}", f"{beside.ratio:.2f}"]
    return found


if __name__ == "__main__":
    main()
