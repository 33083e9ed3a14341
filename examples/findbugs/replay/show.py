"""A replay as lines of text, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from rich.text import Text

from examples.findbugs.finding import finding
from examples.findbugs.replay.figures import formula
from examples.findbugs.replay.steps import Findings, Memory, Step
from examples.findbugs.replay.summary import Summary
from examples.terminal import duration, line, number, signed

KIB, MIB = 2**10, 2**20


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of the lines of a replay."""

    names: int
    """The length of the longest name of a revision."""
    of_builds: bool
    """Times of reading and comparing class files."""
    verify: bool
    """Times of plain evaluation."""
    limit: int
    """The most new and removed findings of an analysis to show per revision; 0: all."""


def header(layout: Layout) -> Text:
    """Return the titles of the columns of `lines`."""
    cells = ["files", "facts", "read"]
    cells += [*(["reading", "comparing"] if layout.of_builds else []), "updating"]
    cells += [*(["scratch", "ratio"] if layout.verify else []), "findings"]
    return line(_row(layout, "revision", cells), "bold")


def lines(layout: Layout, step: Step) -> Iterator[Text]:
    """Yield a revision, and then each finding that came or went."""
    of = step.revision
    cells = [f"{of.files:,}", f"{len(of.difference):,}", f"{step.facts_read:,}"]
    cells += [took(of.reading), took(of.comparing)] if layout.of_builds else []
    cells.append(took(step.updating))
    if layout.verify:
        scratch = step.scratch
        cells += ["", ""] if scratch is None else [took(scratch), times(scratch / step.updating)]
    yield line(_row(layout, of.name, [*cells, f"{step.findings:,}"]))
    yield from _findings(layout, "+", step.came)
    yield from _findings(layout, "-", step.went)


def totals(steps: Sequence[Step], of: Summary, memory: Memory | None) -> Iterator[str]:
    """Yield the summary, a line each."""
    yield f"first revision: {took(of.first)}"
    if of.median is not None and of.longest is not None:
        longest = of.longest
        yield f"all {len(steps):,} revisions: {took(of.whole)}"
        yield (
            f"a change: {took(of.median)} in the median, at most {took(longest.updating)} "
            f"(revision {longest.revision.name}: {number(longest.facts_read, 'fact')} read)"
        )
    if of.fit is not None:
        yield f"time of a change: about {formula(of.fit)}"
    if of.scratch is not None and of.median:
        ratio = times(of.scratch / of.median)
        yield f"from scratch: {took(of.scratch)} in the median, {ratio} as long as a change"
    if memory is not None:
        yield from _memory(memory)


def verified(letters: Sequence[str], *, always: bool) -> str:
    """Return the line that the views of these analyses equal plain evaluation.

    >>> verified(["E"], always=False), verified(["A", "E"], always=True)[:24]
    ('verified: the view of E equals plain evaluation at the end', 'verified: all 2 views eq')
    """
    when = "after every revision" if always else "at the end"
    if len(letters) == 1:
        return f"verified: the view of {letters[0]} equals plain evaluation {when}"
    return f"verified: all {len(letters)} views equal plain evaluation {when}"


def as_json(name: str, steps: Sequence[Step], of: Summary, memory: Memory | None) -> str:
    """All of it as a JSON object; seconds and bytes."""
    peaks = [None] * len(steps) if memory is None else memory.peaks
    revisions = [_json(step, peak) for step, peak in zip(steps, peaks, strict=True)]
    whole = {
        "first": of.first,
        "whole": of.whole,
        "median": of.median,
        "longest": of.longest and of.longest.updating,
        "from_scratch": of.scratch,
        "fit": of.fit and asdict(of.fit),
        "peak": memory and max(memory.peaks[1:], default=None),
        "held": memory and memory.held,
    }
    return json.dumps({"name": name, "revisions": revisions, "summary": whole}, indent=2)


def took(seconds: float) -> str:
    """Write a duration, in microseconds below a millisecond.

    >>> took(0.0123), took(0.0000123)
    ('12.3 ms', '12.3 µs')
    """
    return duration(seconds) if seconds >= 1e-3 else f"{seconds * 1e6:,.1f} µs"


def times(ratio: float) -> str:
    """Return a ratio as text.

    >>> times(0.034159), times(3.14159), times(1234.5)
    ('0.034 x', '3.1 x', '1,234 x')
    """
    return f"{ratio:.2g} x" if ratio < 10 else f"{ratio:,.0f} x"


def size(count: int) -> str:
    """Write a number of bytes.

    >>> size(1), size(700), size(26_400), size(5_000_000)
    ('1 byte', '700 bytes', '26 KiB', '4.8 MiB')
    """
    if count < KIB:
        return number(count, "byte")
    return f"{count / KIB:,.0f} KiB" if count < MIB else f"{count / MIB:,.1f} MiB"


def _memory(memory: Memory) -> Iterator[str]:
    if len(memory.peaks) > 1:
        yield f"memory of a change: at most {size(max(memory.peaks[1:]))}"
    yield f"memory of views and indexes, after the last: {size(memory.held)}"
    yield "memory is traced in a second replay, which no time above is of"


def _json(step: Step, peak: int | None) -> dict[str, Any]:
    of = step.revision
    return {
        "revision": of.name,
        "files": of.files,
        "facts": len(of.difference),
        "facts_read": step.facts_read,
        "reading": of.reading,
        "comparing": of.comparing,
        "updating": step.updating,
        "from_scratch": step.scratch,
        "peak": peak,
        "came": _as_dicts(step.came),
        "went": _as_dicts(step.went),
    }


def _as_dicts(findings: Findings) -> list[dict[str, Any]]:
    return [finding(letter, row).as_dict() for letter, rows in findings.items() for row in rows]


def _row(layout: Layout, name: str, cells: Sequence[str]) -> str:
    width = max(layout.names, len("revision"))
    return "".join([name.ljust(width), *(cell.rjust(12) for cell in cells)])


def _findings(layout: Layout, sign: str, findings: Findings) -> Iterator[Text]:
    for letter, rows in findings.items():
        for row in islice(rows, layout.limit or None):
            yield _indented(sign, f"{letter}  {finding(letter, row)}")
        if layout.limit and len(rows) > layout.limit:
            yield _indented(sign, f"{letter}  ... {len(rows) - layout.limit:,} more")


def _indented(sign: str, text: str) -> Text:
    found = signed(sign, text)
    found.pad_left(2)
    return found
