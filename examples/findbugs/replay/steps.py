"""Apply changes to a program one after another, and measure each."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any, TypeAlias

from examples.findbugs.program import Program
from examples.findbugs.replay.changes import Change
from examples.findbugs.replay.mirror import Mirror, differing

Findings: TypeAlias = dict[str, list[Any]]
"""Rows of results, by the letter of the analysis; letters without any are absent."""
MOST_SHOWN = 5
"""Of the rows in which views differ."""


@dataclass(frozen=True, slots=True)
class Step:
    """A change that was made."""

    change: Change
    updating: float
    """Seconds of the transaction: all views are up to date afterwards."""
    came: Findings
    went: Findings
    scratch: float | None = None
    """Seconds of plain evaluation from scratch, where that was asked for."""

    @property
    def facts_read(self) -> int:
        """How many of the facts that differ some analysis reads."""
        return len(self.change.difference)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that are allocated for each change while it is made, and that stay after the last."""

    peaks: list[int]
    held: int


class NotVerifiedError(Exception):
    """Views are not what plain evaluation gives; the message tells where."""


def replay(
    program: Program, mirror: Mirror, changes: Iterable[Change], *, repeat: int = 1, verify: bool
) -> Iterator[Step]:
    """Make the changes; `program` and `mirror` take them in.

    Parameters
    ----------
    repeat: how often each change is made, and taken back in between; the median is its time.
    verify: whether the views are compared with plain evaluation after every change.

    Raises
    ------
    NotVerifiedError: they differ.
    """
    before = _findings(program)
    for change in changes:
        updating = _seconds(program, change, repeat)
        mirror.apply(change.difference)
        after = _findings(program)
        scratch = check(program, mirror, f"after revision {change.name}") if verify else None
        yield Step(change, updating, _only(after, before), _only(before, after), scratch)
        before = after


def check(program: Program, mirror: Mirror, when: str) -> float:
    """Compare all views with plain evaluation; gives the seconds that that takes.

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
    return seconds


def memory(program: Program, changes: Iterable[Change]) -> Memory:
    """Make the changes in a new program, and trace what is allocated.

    The facts are there before, so what is counted is indexes, views, and what a transaction needs.
    It takes several times longer than without tracing.
    """
    peaks = []
    tracemalloc.start()
    try:
        for change in changes:
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            program.apply(change.difference)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
        return Memory(peaks, tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()


def _difference(program: Program, letter: str, row: Any) -> str:
    return f"{letter}: {program.views[letter].count(row)} in the view: {row}"


def _seconds(program: Program, change: Change, repeat: int) -> float:
    times = []
    for number in range(repeat):
        if number:
            program.apply(change.back)
        start = perf_counter()
        program.apply(change.difference)
        times.append(perf_counter() - start)
    return median(times)


def _findings(program: Program) -> dict[str, set[Any]]:
    return {letter: set(view) for letter, view in program.views.items()}


def _only(ones: dict[str, set[Any]], others: dict[str, set[Any]]) -> Findings:
    """The rows that are in the first, and not in the second."""
    found = {letter: sorted(ones[letter] - others[letter], key=repr) for letter in ones}
    return {letter: rows for letter, rows in found.items() if rows}
