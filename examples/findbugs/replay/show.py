"""A replay as lines of text, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from examples.findbugs.finding import finding
from examples.findbugs.replay.figures import said
from examples.findbugs.replay.steps import Findings, Memory, Step
from examples.findbugs.replay.summary import Summary
from examples.terminal import duration, line

KIB, MIB = 2**10, 2**20


def header(*, jars: bool, verify: bool) -> Text:
    """The titles of the columns of `lines`."""
    titles = ["files", "facts", "read", *(["reading", "comparing"] if jars else []), "updating"]
    cells = [*titles, *(["scratch", "ratio"] if verify else []), "findings"]
    return line(_row("revision", cells, jars=jars), "bold")


def lines(step: Step, findings: int, *, jars: bool) -> Iterator[Text]:
    """A change, and then each finding that came or went.

    Parameters
    ----------
    findings: how many there are afterwards.
    """
    change = step.change
    cells = [f"{change.files:,}", f"{change.facts:,}", f"{step.facts_read:,}"]
    seconds = [*([change.reading, change.comparing] if jars else []), step.updating]
    if step.scratch is not None:
        seconds.append(step.scratch)
    cells += map(took, seconds)
    if step.scratch is not None:
        cells.append(times(step.scratch / step.updating))
    yield line(_row(change.name, [*cells, f"{findings:,}"], jars=jars))
    yield from _findings("+", step.came, "green")
    yield from _findings("-", step.went, "red")


def totals(steps: Sequence[Step], of: Summary, memory: Memory) -> Iterator[str]:
    """The summary, a line each."""
    yield f"first revision: {took(of.first)}"
    yield f"all {len(steps):,} revisions: {took(of.whole)}"
    if of.median is not None and of.longest is not None:
        longest = of.longest
        yield (
            f"a change: {took(of.median)} in the median, at most {took(longest.updating)} "
            f"({longest.change.name}: {longest.facts_read:,} facts read)"
        )
        yield f"memory of a change: at most {max(memory.peaks[1:]) / KIB:,.0f} KiB"
    yield f"memory of views and indexes, after the last: {memory.held / MIB:,.1f} MiB"
    if of.fit is not None:
        yield f"time of a change: about {said(of.fit)}"
    if of.scratch is not None and of.median:
        ratio = times(of.scratch / of.median)
        yield f"from scratch: {took(of.scratch)} in the median, {ratio} as long as a change"


def as_json(name: str, steps: Sequence[Step], of: Summary, memory: Memory) -> str:
    """All of it as a JSON object; seconds and bytes."""
    changes = [_json(step, peak) for step, peak in zip(steps, memory.peaks, strict=True)]
    whole = {
        "first": of.first,
        "whole": of.whole,
        "median": of.median,
        "longest": of.longest and of.longest.updating,
        "from_scratch": of.scratch,
        "fit": of.fit and asdict(of.fit),
        "peak": max(memory.peaks[1:], default=None),
        "held": memory.held,
    }
    return json.dumps({"name": name, "revisions": changes, "summary": whole}, indent=2)


def took(seconds: float) -> str:
    """A duration, in microseconds below a millisecond.

    >>> took(0.0123), took(0.0000123)
    ('12.3 ms', '12.3 µs')
    """
    return duration(seconds) if seconds >= 1e-3 else f"{seconds * 1e6:,.1f} µs"


def times(ratio: float) -> str:
    """How many times more.

    >>> times(3.14159), times(1234.5)
    ('3.1 x', '1,234 x')
    """
    return f"{ratio:,.1f} x" if ratio < 100 else f"{ratio:,.0f} x"


def _json(step: Step, peak: int) -> dict[str, Any]:
    change = step.change
    return {
        "revision": change.name,
        "files": change.files,
        "facts": change.facts,
        "facts_read": step.facts_read,
        "reading": change.reading,
        "comparing": change.comparing,
        "updating": step.updating,
        "from_scratch": step.scratch,
        "peak": peak,
        "came": _as_dicts(step.came),
        "went": _as_dicts(step.went),
    }


def _as_dicts(findings: Findings) -> list[dict[str, Any]]:
    return [finding(letter, row).as_dict() for letter, rows in findings.items() for row in rows]


def _row(name: str, cells: Sequence[str], *, jars: bool) -> str:
    return "".join([name.ljust(22 if jars else 9), *(cell.rjust(12) for cell in cells)])


def _findings(sign: str, findings: Findings, style: str) -> Iterator[Text]:
    for letter, rows in findings.items():
        for row in rows:
            yield line(f"  {sign} {letter}  {finding(letter, row)}", style)
