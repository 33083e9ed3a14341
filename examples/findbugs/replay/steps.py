"""Apply revisions to a program one after another, and measure each."""

from __future__ import annotations

import tracemalloc
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any, TypeAlias

from examples.findbugs.difference import Difference
from examples.findbugs.facts import Fact
from examples.findbugs.program import Program
from examples.findbugs.recorded import Revision
from examples.findbugs.replay.mirror import Mirror, differing

Findings: TypeAlias = dict[str, list[Any]]
"""Rows of results, by the letter of the analysis; letters without any are absent."""
MOST_SHOWN = 5
"""The most rows to show in which views differ."""


@dataclass(frozen=True, slots=True)
class Step:
    """A revision that was made."""

    revision: Revision
    facts_read: int
    """The number of changed facts of kinds that an analysis reads."""
    updating: float
    """Seconds of the transaction: all views are up to date afterwards."""
    came: Findings
    went: Findings
    findings: int
    """The number of findings afterwards."""
    scratch: float | None = None
    """Seconds of plain evaluation from scratch, if it was requested."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that are allocated for each revision while it is made, and that stay after the last."""

    peaks: list[int]
    held: int


class NotVerifiedError(Exception):
    """Views are not what plain evaluation gives; the message tells where."""


def replay(
    program: Program,
    mirror: Mirror,
    revisions: Iterable[Revision],
    *,
    repeat: int = 1,
    verify: bool,
) -> Iterator[Step]:
    """Apply the revisions to `program` and `mirror`.

    Parameters
    ----------
    repeat: the number of times that each revision is applied, with an undo in between; the median
        is its time.
    verify: True to compare the views with plain evaluation after every revision.

    Raises
    ------
    NotVerifiedError: they differ.
    HistoryError: the revisions contradict each other.
    """
    before = _findings(program)
    for revision in revisions:
        mirror.apply(revision.difference)
        updating = _seconds(program, revision, repeat)
        after = _findings(program)
        yield Step(
            revision,
            _count(revision.difference, program.kinds),
            updating,
            _only(after, before),
            _only(before, after),
            sum(map(len, program.views.values())),
            check(program, mirror, f"after revision {revision.name}") if verify else None,
        )
        before = after


def check(program: Program, mirror: Mirror, when: str) -> float | None:
    """Compare the views with plain evaluation; gives the seconds that that takes.

    Those without plain evaluation are left out; None, if there are no others.

    Raises
    ------
    NotVerifiedError: they differ.
    """
    start = perf_counter()
    expected = mirror.evaluate(program.views)
    seconds = perf_counter() - start
    wrong = differing(program, expected)
    if wrong:
        rows = [_difference(program, letter, row) for letter in wrong for row in wrong[letter]]
        few = "\n  ".join(sorted(rows)[:MOST_SHOWN])
        raise NotVerifiedError(f"{when} the views of {', '.join(wrong)} differ:\n  {few}")
    return seconds if expected else None


def memory(program: Program, revisions: Iterable[Revision]) -> Memory:
    """Apply the revisions to a new program, and trace its allocations.

    The facts exist before, so that only indexes, views and the memory of transactions are counted.
    It takes several times longer than without tracing.
    """
    peaks = []
    tracemalloc.start()
    try:
        for revision in revisions:
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            program.apply(revision.difference)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
        return Memory(peaks, tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()


def _difference(program: Program, letter: str, row: Any) -> str:
    return f"{letter}: {program.views[letter].count(row)} in the view: {row}"


def _seconds(program: Program, revision: Revision, repeat: int) -> float:
    times = []
    for number in range(repeat):
        if number:
            program.apply(revision.back)
        start = perf_counter()
        program.apply(revision.difference)
        times.append(perf_counter() - start)
    return median(times)


def _count(change: Difference, kinds: Collection[type[Fact]]) -> int:
    """Return the number of facts of some kinds."""
    parts = (*change.removed.items(), *change.added.items())
    return sum(len(rows) for kind, rows in parts if kind in kinds)


def _findings(program: Program) -> dict[str, set[Any]]:
    return {letter: set(view) for letter, view in program.views.items()}


def _only(ones: dict[str, set[Any]], others: dict[str, set[Any]]) -> Findings:
    """Return the rows that are in the first, and not in the second."""
    found = {letter: sorted(ones[letter] - others[letter], key=repr) for letter in ones}
    return {letter: rows for letter, rows in found.items() if rows}
