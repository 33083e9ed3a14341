"""Memory of views and indexes after a history: bytes, rows, and facts of instructions.

The tables do not store facts. Facts are copied for each measurement and released after each change;
the remaining ones are held by an index or a view, and count with their bytes. Their strings do not
count: they are shared with the original facts.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterable, Sequence
from typing import Any

from asv_benchmarks.turns import unwatched
from examples.findbugs.analyses import ANALYSES
from examples.findbugs.difference import Difference, Rows
from examples.findbugs.facts import INSTRUCTIONS
from examples.findbugs.program import Program
from examples.findbugs.recorded import Revision
from examples.findbugs.replay.sources import history_at, of_history
from examples.findbugs.replay.steps import memory

ALL = "all"

Held = dict[str, dict[str, float]]
"""Letter, or all -> bytes, rows of any kind and facts of instructions that are held, and the most
bytes that a change takes. Rows that several views share are counted for each of them."""


def held_figures(name: str) -> Held:
    """Return the figures of a recorded history."""
    return held([*of_history(history_at(name))])


def held(changes: Sequence[Revision]) -> Held:
    """Return the figures of each analysis and of all, and the number of instruction facts."""
    figures = {letter: _held([letter], changes) for letter in ANALYSES}
    figures[ALL] = _held([*ANALYSES], changes)
    figures[ALL]["of"] = sum(
        len(change.difference.added.get(kind, ())) - len(change.difference.removed.get(kind, ()))
        for change in changes
        for kind in INSTRUCTIONS
    )
    return figures


def _held(letters: Sequence[str], changes: Sequence[Revision]) -> dict[str, float]:
    peaks = memory(_warm(letters, changes), changes).peaks
    program = _warm(letters, changes)
    with unwatched():
        tracemalloc.start()
        try:
            for change in changes:
                program.apply(_copied(change.difference, program.kinds))
            gc.collect()
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        kept = sum(type(row) in INSTRUCTIONS for row in gc.get_objects())
    rows = sum(view.stats().rows for view in program.views.values())
    peak = max(peaks[1:], default=0)
    return {"bytes": held, "rows": rows, "instructions": kept, "peak": peak}


def _warm(letters: Sequence[str], changes: Sequence[Revision]) -> Program:
    """Return a program that has had a fact of each kind, so that one-time objects exist."""
    program = Program(letters)
    few = Difference(
        {}, {kind: rows[:1] for kind, rows in changes[0].difference.added.items() if rows}
    )
    program.apply(few)
    program.apply(Difference(few.added, few.removed))
    return program


def _copied(change: Difference, kinds: Iterable[Any]) -> Difference:
    return Difference(_copies(change.removed, kinds), _copies(change.added, kinds))


def _copies(facts: Rows, kinds: Iterable[Any]) -> Rows:
    return {kind: [kind(*row) for row in facts[kind]] for kind in kinds if kind in facts}
