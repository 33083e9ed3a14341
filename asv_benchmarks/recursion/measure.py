"""Time the sides of a recursive case: the first evaluation, and edits that are undone.

The engine's view is made before its tables are filled; the first evaluation is one transaction
that fills them. An edit is timed from the call of the table until that call returns, by when a
subscriber has the delta; an edit without effect notifies no subscriber. Times are CPU times,
because some sides take seconds, during which other programs run.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from time import process_time

from asv_benchmarks.measure import SEED, Ear
from asv_benchmarks.memory import measured
from asv_benchmarks.recursion.case import Case, Edit, back
from asv_benchmarks.recursion.sides import doing, fill, names_of, side_of
from asv_benchmarks.workload import Rows, Side

CHUNK = 20
INSERTED, DELETED = "inserted", "deleted"
Times = dict[str, list[float]]
"""Side -> seconds of each edit."""
EditTimes = dict[str, dict[str, Times]]
"""Kind of edit -> inserted or deleted -> times."""


def initial_figures(case: Case, name: str, size: int | None = None) -> dict[str, float]:
    """Measure the first evaluation by one side, in a process with that side alone."""
    rows = case.rows(size or case.size, Random(SEED))
    side = side_of(case, name, Ear())
    taken = measured(lambda: fill(side, rows), process_time)
    return {
        "seconds": taken.seconds,
        "held": taken.held,
        "peak": taken.peak,
        "given": len(rows[0]),
        "rows": len(side.result()),
    }


def edit_figures(
    case: Case, size: int | None = None, *, names: Sequence[str] = (), most: int | None = None
) -> EditTimes:
    """Time edits of every kind, at most `most` of each, on sides of these names, or on all."""
    random = Random(SEED)
    rows = case.rows(size or case.size, random)
    kinds = case.kinds(rows, random)
    sides = filled(case, rows, names or names_of(case))
    figures = {kind.name: _timed(sides, kind.edits[:most]) for kind in kinds}
    results = [side.result() for side in sides.values()]
    if any(result != results[0] for result in results):
        raise AssertionError(f"{case.name}: the results of the sides differ")
    return figures


def filled(case: Case, rows: Rows, names: Sequence[str]) -> dict[str, Side]:
    """Sides by name, with their first evaluation done."""
    sides = {name: side_of(case, name, Ear()) for name in names}
    for side in sides.values():
        fill(side, rows)
    return sides


def _timed(sides: dict[str, Side], edits: Sequence[Edit]) -> dict[str, Times]:
    """Seconds of the edits: of all sides in turns, a chunk each, so that noise hits all."""
    times: dict[str, Times] = {way: {name: [] for name in sides} for way in (INSERTED, DELETED)}
    with _uncollected():
        for start in range(0, len(edits), CHUNK):
            for name, side in sides.items():
                for way, seconds in _chunk(side, edits[start : start + CHUNK]):
                    times[way][name].append(seconds)
    return times


def _chunk(side: Side, edits: Sequence[Edit]) -> list[tuple[str, float]]:
    """Return whether it inserts, and the seconds, for each edit and its undo.

    The first edit is applied once more before, because another side, above all that from scratch,
    has filled the caches of the processor.
    """
    steps = [step for edit in edits for step in (edit, back(edit))]
    for step in steps[:2]:
        doing(side, step)()
    ways = [INSERTED if any(delta.added for delta in step) else DELETED for step in steps]
    return [(way, _seconds(side, step)) for way, step in zip(ways, steps, strict=True)]


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable the garbage collection, which would traverse the objects of all sides.

    It would cost most for the side that makes the most objects, which is that from scratch.
    """
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _seconds(side: Side, edit: Edit) -> float:
    do = doing(side, edit)
    start = process_time()
    do()
    return process_time() - start
