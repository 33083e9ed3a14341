"""Time the changes of a history: views that are kept up to date, and evaluation from scratch.

From scratch it is `examples/findbugs/plain.py`: comprehensions over the same row objects, in
dictionaries by kind. Keeping these dictionaries is not counted, nor is reading the facts. A change
is applied, undone and applied again: the processor's caches have its data, as they have the facts
for the evaluation from scratch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from statistics import median
from time import process_time
from typing import Any

from examples.collector import without_collector
from examples.findbugs.analyses import kinds_read
from examples.findbugs.difference import Difference, Rows
from examples.findbugs.facts import Fact
from examples.findbugs.program import Program
from examples.findbugs.recorded import Revision
from examples.findbugs.replay.mirror import Mirror, differing
from examples.findbugs.replay.sources import history_at, of_history

HISTORIES = ("vespucci", "hibernate", "flashcards", "py4j")
PASSING, STORED = "passing", "stored"
"""Tables that let facts through to the views, and tables that keep them."""
REPEAT = 5

Replay = dict[str, list[float]]
"""Lists with an entry per revision: changed facts, seconds of the engine, seconds from scratch."""


def changes_of(name: str) -> list[Revision]:
    """Return the changes of a history, with the facts that analyses read."""
    kinds = frozenset(kinds_read())
    return [_read(change, kinds) for change in of_history(history_at(name))]


def replay_figures(changes: Sequence[Revision], mode: str, repeat: int = REPEAT) -> Replay:
    """Make all changes; the first revision, which is no change, is not repeated."""
    program, mirror = Program(stored=mode == STORED), Mirror()
    times: Replay = {"facts": [], "engine": [], "scratch": []}
    with without_collector():
        for number, change in enumerate(changes):
            engine = _engine(program, change, repeat if number else 1)
            mirror.apply(change.difference)
            scratch, expected = _scratch(mirror, program.views)
            if differing(program, expected):
                raise AssertionError(f"after revision {change.name} the views differ")
            times["facts"].append(len(change.difference))
            times["engine"].append(engine)
            times["scratch"].append(scratch)
    return times


def _read(change: Revision, kinds: Collection[type[Fact]]) -> Revision:
    """Return a change of the facts of some kinds."""
    of = change.difference
    kept = Difference(_some(of.removed, kinds), _some(of.added, kinds))
    return Revision(change.name, change.files, kept)


def _some(rows: Rows, kinds: Collection[type[Fact]]) -> Rows:
    return {kind: facts for kind, facts in rows.items() if kind in kinds}


def _engine(program: Program, change: Revision, repeat: int) -> float:
    seconds = []
    for number in range(repeat):
        if number:
            program.apply(change.back)
        start = process_time()
        program.apply(change.difference)
        seconds.append(process_time() - start)
    return median(seconds)


def _scratch(mirror: Mirror, letters: Iterable[str]) -> tuple[float, dict[str, set[Any]]]:
    start = process_time()
    expected = mirror.evaluate(letters)
    return process_time() - start, expected
