"""The section of the report about Spark; each measurement is a process with a JVM of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asv_benchmarks.offload import figures
from asv_benchmarks.offload.draw import draw
from asv_benchmarks.offload.flush import LONG as LONG_COUNT
from asv_benchmarks.offload.flush import ROUNDS
from asv_benchmarks.offload.measure import (
    FLUSH,
    GROWTH,
    INCREMENTS,
    LONG,
    NAMES,
    OF,
    PREDICATE,
    SCRATCH,
    TIMES,
    InProcess,
)
from asv_benchmarks.offload.published import INCREMENTS as INCREMENT_COUNT
from asv_benchmarks.table import machine
from reactive import OffloadError
from spark_backend.cluster.session import check_spark

TITLE = "## Spark"
BEGIN, END = "<!-- offload: begin -->", "<!-- offload: end -->"
FIGURE = "increments.png"
TEXT = """\
Views whose state is on Spark, in a local JVM. *A flush*: from its call until it returns, by when
subscribers have the delta; *its commit*: putting the changed rows aside. *In the process*: a commit
of the same change in a database without Spark, whose subscribers were told the same, change by
change. Changes are in turn of rows that come and of rows that go, in random groups, and in turn of
either table of a join. There are as many groups as rows to begin with, and in a join as many pairs
as rows in each table. *Many flushes* are of 1,000 changed rows each; those of the *same* groups are
all in the same thousand, each of which every flush touches.

*Moving*: the process is full, and the view moves; *state* is what the process has grown by, of
resident memory, and *freed* how much of that it gives back; *objects* are blocks of memory, which
are not rounded to pages. The JVM is not counted. *Back*: `recall`.

*From scratch*: Spark alone, over all rows as cached typed columns with 10,000 more added to them;
the result is written to nowhere, so that comparing it with the one before is not counted. The best
of several numbers of partitions. *An increment*: commit and flush together, of rows that come to
all tables of the query, nine times, and then go, as [mrql] does.

*Lifted and opaque*: a view over a Parquet file is made, read and dropped; it keeps one row of a
thousand."""


def offload(
    run: InProcess,
    *,
    names: Sequence[str] = NAMES,
    size: int,
    runs: int,
    rounds: int = ROUNDS,
    figure: Path | None = None,
) -> str:
    """Return the section, of these measurements; with `figure`, the file to draw increments to.

    Parameters
    ----------
    size: rows of a table.
    runs: the number of times that each measurement is made.
    rounds: the flushes of a kind in each of them.
    """
    try:
        check_spark()
    except OffloadError as error:
        return f"{TITLE}\n\nNot measured: {error}"
    found, parts = {}, []
    for name in [name for name in NAMES if name in names]:
        found[name] = _measured(run, name, size, runs, rounds)
        parts.append("\n".join(_table(name, found[name], size)))
        print(parts[-1], file=sys.stderr, flush=True)  # all parts may take hours
    if figure is not None and INCREMENTS in found:
        draw(figure, found[INCREMENTS], size)
        parts.append(f"![seconds of increments](figures/{figure.name})")
    runs_of = f"Medians of {runs} run{'s' * (runs != 1)}, of {rounds} flushes each. {machine()}"
    return "\n\n".join([TITLE, TEXT, runs_of, *parts])


def _measured(run: InProcess, name: str, size: int, runs: int, rounds: int) -> Any:
    arguments = _arguments(name, size, rounds)
    cases = OF.get(name, ())
    done = []
    for number in range(runs):
        print(f"offload {name}: run {number + 1} of {runs}", file=sys.stderr, flush=True)
        if cases:
            done.append({case.name: run(name, case.name, *arguments) for case in cases})
        else:
            done.append(run(name, *arguments))
    return figures.merged(done)


def _arguments(name: str, size: int, rounds: int) -> tuple[int, ...]:
    fewer = max(2, rounds // 4)
    rest = {
        FLUSH: (rounds,),
        GROWTH: (rounds,),
        LONG: (LONG_COUNT * rounds // ROUNDS,),
        SCRATCH: (rounds,),
        INCREMENTS: (INCREMENT_COUNT,),
        PREDICATE: (fewer,),
    }
    return (size * TIMES if name == SCRATCH else size, *rest.get(name, ()))


def _table(name: str, found: Any, size: int) -> list[str]:
    match name:
        case "flush":
            return figures.flushes(found, size)
        case "growth":
            return figures.growth(found, size)
        case "long":
            return figures.long(found)
        case "handover":
            return figures.handover(found, size)
        case "scratch":
            return figures.scratch(found, size * TIMES)
        case "increments":
            return figures.increments(found, size)
        case "predicate":
            return figures.predicates(found, size)
    raise ValueError(f"no measurement: {name}")
