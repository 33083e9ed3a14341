"""What views and indexes hold after a history: bytes, rows, and facts of instructions.

The tables let facts through and keep none. Facts are copied for each measurement and let go after
each change; those that are still there are held by an index or a view, and count with their bytes.
The strings in them do not: they are the same objects as in the facts that were copied.
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
    """Of a recorded history."""
    return held([*of_history(history_at(name))])


def held(changes: Sequence[Revision]) -> Held:
    """Of each analysis alone, of all together, and how many facts of instructions there are."""
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
    """A program that has had a fact of each kind: what is made for that once is there."""
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
