"""Transitive closure of the imports between the modules of the standard library."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any, NamedTuple

from asv_benchmarks.recursion.case import Case, Kind, Table, additions, removals, sample
from asv_benchmarks.recursion.closure import Closure, closure
from asv_benchmarks.recursion.graphs import new_edges, within
from asv_benchmarks.recursion.stdlib import stdlib
from asv_benchmarks.workload import Rows, TableOf
from reactive import Relation, fixpoint
from reactive import Table as TableOfRows

RANDOM, NEW = "a random edge", "a new edge"


class Import(NamedTuple):
    src: str
    dst: str


def query(imports: TableOfRows[Import]) -> Relation[*tuple[Any, ...]]:
    """Return every pair of modules whose first imports the second, directly or through others."""
    pairs: Relation[*tuple[Any, ...]] = fixpoint(
        lambda paths: imports.union(
            paths.join(imports, left_key=lambda p: p.dst, right_key=lambda i: i.src).select(
                lambda p, i: Import(p.src, i.dst)
            )
        )
    )
    return pairs


def scratch(imports: Table) -> set[Import]:
    """Return the same pairs, from scratch."""
    return closure(imports, Import)


def rows_of(size: int, random: Random) -> Rows:
    """Return imports; of a part of the modules, if there are more than `size`."""
    return (within([Import(*pair) for pair in stdlib().imports], size, random),)


def kinds_of(rows: Rows, random: Random) -> list[Kind]:
    return [
        Kind(RANDOM, removals(sample(rows[0], 20, random))),
        Kind(NEW, additions(new_edges(rows[0], Import, 10, random))),
    ]


IMPORTED = Case(
    name="imported",
    title="closure of its imports",
    size=1_000_000,
    tables=(TableOf(Import),),
    query=query,
    scratch=scratch,
    program=partial(Closure, Import),
    rows=rows_of,
    kinds=kinds_of,
    judged=(RANDOM, NEW),
)
