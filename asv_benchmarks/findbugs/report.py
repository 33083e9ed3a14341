"""The section of the report about the FindBugs example; each measurement is a process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from asv_benchmarks.findbugs import figures
from asv_benchmarks.findbugs.figures import Replayed
from asv_benchmarks.findbugs.measure import ALONE, BASES, HELD, PUBLISHED, READING, REPLAY
from asv_benchmarks.findbugs.replays import HISTORIES, PASSING, STORED
from asv_benchmarks.table import machine

InProcess = Callable[..., dict[str, Any]]
"""Function that runs a measurement in a new process, and returns its figures."""
TITLE = "## FindBugs"
HELD_OF = HISTORIES[:2]
TEXT = """\
Fifteen analyses of Java class files ([examples/findbugs](../examples/findbugs)), over recorded
histories and over the class files of a JDK. *From scratch*: plain Python over the same row objects,
in dictionaries by kind of fact, which are kept up to date for free. Facts that no analysis reads
are not counted; in many changes of Vespucci nothing else differs, so gains are also given of the
changes *with facts*. *Passing*: tables that do not keep their rows, which is all that the analyses
need. A change is made five times, and undone in between; its time is the median. The *first
revision* is the first transaction of a program, and pays for what is made once. In FlashCards and
py4j most changes replace a large part of a small program, so there is little to gain.

*One class*: a *method* gets longer at its beginning, so that its calls move; a *header* lists
another interface, or one less; a *class* goes, and comes back. The classes are Hibernate's, and
from the 2,731st on the same under other names. *One class file*: it calls another method somewhere.

*Each analysis alone* is over Vespucci, all revisions, without reading facts. The example puts the
conditions on one table before the joins, which leaves little to the optimizer. A, C and D are there
also as [i3ql] publishes them, with all conditions on the join, over the facts of a few classes: as
written, every pair is asked. The paper's system took, with the reading of class files, 1,329.9 s
for A, 39.5 s for D, 10.9 s for C and 2.1 to 4.8 s for the others without optimization, and 2.05 to
2.49 s each with it.

*Memory* is what stays allocated after the last revision, over tables that let facts pass: indexes,
views, and the facts that only these hold, without their strings. *At its height* is what the
largest change takes, with all fifteen analyses (in the paper 105 to 209 KiB, for Vespucci). *Rows
held* are those of all operators: facts, parts of them, and keys with counts; those that several
analyses share count for each."""


def findbugs(in_process: InProcess, *, runs: int) -> str:
    """Return the section."""
    done: dict[str, list[Any]] = {what: [] for what in (BASES, READING, ALONE, PUBLISHED)}
    replayed = [Replayed(name, mode, []) for name in HISTORIES for mode in (PASSING, STORED)]
    for number in range(runs):
        print(f"findbugs: run {number + 1} of {runs}", file=sys.stderr, flush=True)
        for of in replayed:
            of.runs.append(in_process("findbugs", REPLAY, of.name, of.mode))
        for what, times in done.items():
            times.append(in_process("findbugs", what))
    held = {name: in_process("findbugs", HELD, name) for name in HELD_OF}
    parts = (
        figures.histories(replayed),
        figures.lines(replayed),
        figures.bases(done[BASES]),
        figures.reading(done[READING]),
        figures.alone(done[ALONE], done[PUBLISHED]),
        figures.memory(held),
    )
    found = [TITLE, TEXT, f"Medians of {runs} runs. {machine()}"]
    return "\n\n".join([*found, *("\n".join(part) for part in parts)])
