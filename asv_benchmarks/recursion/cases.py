"""All recursive cases, in the order of the report."""

from __future__ import annotations

from asv_benchmarks.recursion.case import Case
from asv_benchmarks.recursion.closures import CHAIN, DIGRAPH, TREE
from asv_benchmarks.recursion.generation import GENERATION
from asv_benchmarks.recursion.imported import IMPORTED
from asv_benchmarks.recursion.paths import PATHS
from asv_benchmarks.recursion.rank import RANK
from asv_benchmarks.recursion.reached import REACHED

CASES: tuple[Case, ...] = (CHAIN, DIGRAPH, TREE, REACHED, IMPORTED, PATHS, GENERATION, RANK)

OF_LIBRARY = (REACHED, IMPORTED)
"""The cases whose rows are of the standard library."""


def recursive(name: str) -> Case:
    """Return the case of a name."""
    return next(case for case in CASES if case.name == name)
