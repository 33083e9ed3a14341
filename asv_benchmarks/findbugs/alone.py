"""Single analyses: the whole history, optimized and with the query as it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import process_time
from typing import Any

from asv_benchmarks.findbugs.published import PUBLISHED
from asv_benchmarks.measure import AS_WRITTEN, ENGINE
from examples.collector import without_collector
from examples.findbugs.analyses import ANALYSES, Analysis, kinds_read
from examples.findbugs.difference import Difference, Rows
from examples.findbugs.facts import ClassDecl
from examples.findbugs.plain import PLAIN
from examples.findbugs.recorded import Revision
from examples.findbugs.replay.mirror import Mirror
from examples.findbugs.tables import Tables
from reactive import Database

CLASSES = 20
"""Classes whose facts are replayed if a product tests all pairs: the first by name."""

Times = dict[str, dict[str, float]]
"""Letter -> side -> seconds for all revisions."""


def alone_figures(changes: Sequence[Revision]) -> Times:
    """Every analysis, as the example has it."""
    return _timed(ANALYSES, changes)


def published_figures(changes: Sequence[Revision], classes: int = CLASSES) -> Times:
    """Measure some analyses as they were published, over the facts of a few classes."""
    first = changes[0].difference.added[ClassDecl]
    names = {row.name for row in sorted(first)[:classes]}
    return _timed(PUBLISHED, [_part(change, names) for change in changes])


def _timed(analyses: Mapping[str, Analysis], changes: Sequence[Revision]) -> Times:
    mirror = Mirror()
    for change in changes:
        mirror.apply(change.difference)
    times: Times = {}
    with without_collector():
        for letter, analysis in analyses.items():
            times[letter] = {}
            for side in (ENGINE, AS_WRITTEN):
                times[letter][side], found = _replayed(letter, analysis, changes, side)
                if found != PLAIN[letter](mirror.facts):
                    raise AssertionError(f"{letter}: {side} differs from plain evaluation")
    return times


def _replayed(
    letter: str, analysis: Analysis, changes: Sequence[Revision], side: str
) -> tuple[float, set[Any]]:
    """Return the seconds of all transactions, and the findings at the end."""
    db = Database(optimize=side == ENGINE)
    tables = Tables(db, stored=False)
    view = analysis(tables).materialize()
    kinds = kinds_read(letter)
    start = process_time()
    for change in changes:
        with db.transaction():
            for kind in kinds:
                tables.of(kind).remove_all(change.difference.removed.get(kind, ()))
                tables.of(kind).add_all(change.difference.added.get(kind, ()))
    return process_time() - start, set(view)


def _part(change: Revision, names: set[str]) -> Revision:
    """Return the part of a change that concerns some classes."""
    of = change.difference
    kept = Difference(_of(of.removed, names), _of(of.added, names))
    return Revision(change.name, change.files, kept)


def _of(facts: Rows, names: set[str]) -> Rows:
    return {
        kind: [row for row in rows if (row.name if kind is ClassDecl else row.cls) in names]
        for kind, rows in facts.items()
    }
