"""Real code: analyse a folder, edit its files one after another, and measure each update."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from statistics import median
from time import perf_counter

from rich.table import Table

from examples.graphs.points_to.program import Facts, Program, facts_of
from examples.graphs.show import console
from examples.live_lint.edits import can_edit, edits
from examples.live_lint.folder import Folder


def show(folder: Folder, count: int, seed: int) -> bool:
    """Analyse, make `count` edits, compare with a fresh analysis; return True if they agree."""
    out, sources = console(), folder.sources()
    facts = {file: facts_of(folder, file, source) for file, source in sources.items()}
    program, seconds = _filled(facts)
    size = f"{len(facts):,} files, {len(program.facts()):,} facts"
    out.print(f"\n{folder.path}: {size}, analysed in {seconds * 1000:,.1f} ms", style="bold")
    out.print(_sizes(program))
    if not count or not can_edit(sources):
        return True
    times = list(_edited(program, folder, sources, facts, count, seed))
    fresh, seconds = _filled(facts)
    out.print(
        f"{len(times)} edits of single files: median {median(times) * 1000:,.1f} ms, "
        f"worst {max(times) * 1000:,.1f} ms; what is left, from scratch: {seconds * 1000:,.1f} ms"
    )
    agrees = _rows(program) == _rows(fresh)
    out.print("afterwards all views equal those of a fresh analysis" if agrees else "NOT equal")
    return agrees


def _edited(
    program: Program,
    folder: Folder,
    sources: dict[str, bytes],
    facts: dict[str, Facts],
    count: int,
    seed: int,
) -> Iterator[float]:
    """Yield the seconds that each update took, without reading the file."""
    for edit in islice(edits(sources, seed), count):
        facts[edit.file] = facts_of(folder, edit.file, edit.source)
        start = perf_counter()
        program.put({edit.file: facts[edit.file]})
        yield perf_counter() - start


def _filled(facts: dict[str, Facts]) -> tuple[Program, float]:
    program = Program()
    start = perf_counter()
    program.put(facts)
    return program, perf_counter() - start


def _rows(program: Program) -> list[set[object]]:
    return [set(view) for view in (program.points, program.holds, program.calls)]


def _sizes(program: Program) -> Table:
    table = Table("view", "rows", "for example")
    table.columns[1].justify = "right"
    for view in (program.points, program.holds, program.calls):
        some = max(map(str, view), default="", key=lambda text: (-len(text), text))
        table.add_row(view.name, f"{len(view):,}", some)
    return table
