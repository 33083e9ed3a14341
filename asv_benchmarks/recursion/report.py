"""The section of the report about recursion: every side of every case, several runs.

Each first evaluation is a process of its own; so are the edits of a case, with all its sides.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from asv_benchmarks.recursion import figures
from asv_benchmarks.recursion.case import Case
from asv_benchmarks.recursion.cases import CASES, OF_LIBRARY
from asv_benchmarks.recursion.figures import Measured
from asv_benchmarks.recursion.sides import names_of
from asv_benchmarks.recursion.stdlib import shared
from asv_benchmarks.table import machine

InProcess = Callable[..., dict[str, Any]]
"""Function that runs a measurement in a new process, and returns its figures."""
TITLE = "## Recursion"
TEXT = """\
Recursive queries, beside what one would write without the engine. *From scratch*: the query
evaluated again after the edit, semi-naively (Dijkstra's algorithm for the paths, plain loops for
PageRank), over the same row objects, with dictionaries, sets and lists; it does not say what has
changed. *By hand*: an incremental program for the one query, where there is one to write. For
closure and what is reached: a tree of parents per source, which is cut and attached again; for the
paths: repair in order of cost. *As written*: the engine without rewriting and generated code.

Every edit is done and then undone. Edits that insert and edits that delete are shown apart; so
are those that were chosen because much depends on them. A gain is how many times longer it takes
from scratch than with the engine, of the same edit in the same run. Times are of the processor,
those of edits without garbage collection, which would look at what all sides hold."""


def recursion(cases: Sequence[Case], in_process: InProcess, *, runs: int) -> str:
    """Return the section, of these cases."""
    with shared() if any(case in OF_LIBRARY for case in cases) else nullcontext():
        measured = [_measured(case, in_process, runs) for case in cases]
    parts = (figures.initial(measured), figures.memory(measured), figures.edits(measured))
    found = [TITLE, TEXT, f"Medians of {runs} runs. {machine()}"]
    return "\n\n".join([*found, *("\n".join(part) for part in parts)])


def chosen(names: Sequence[str]) -> list[Case]:
    """Return the cases with some names."""
    return [case for case in CASES if case.name in names]


def _measured(case: Case, in_process: InProcess, runs: int) -> Measured:
    loads, edits = [], []
    for number in range(runs):
        print(f"{case.name}: run {number + 1} of {runs}", file=sys.stderr, flush=True)
        names = names_of(case)
        first = number % len(names)
        order = names[first:] + names[:first]
        loads.append({name: in_process("recursion", case.name, name) for name in order})
        edits.append(in_process("edits", case.name))
    return Measured(case, loads, edits)
