"""Closures beside the program by hand, and PageRank beside computing it again."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from asv_benchmarks.cliffs.cliff import Cliff, Sides, Timed
from asv_benchmarks.measure import ENGINE, TWIN
from asv_benchmarks.recursion.case import Case, Edit, back
from asv_benchmarks.recursion.closures import CHAIN, DIGRAPH, LAST, LEAF, RANDOM, TREE
from asv_benchmarks.recursion.rank import RANK
from asv_benchmarks.recursion.sides import SCRATCH, doing, fill, side_of
from asv_benchmarks.shapes import SEED
from asv_benchmarks.turns import Ear
from asv_benchmarks.workload import Rows, Side

EDITS = 4


def edges(case: Case, kind: str = RANDOM, other: str = TWIN) -> Callable[[int], Sides]:
    """Delete and insert edges of a kind."""

    def sides(size: int) -> Sides:
        random = Random(SEED)
        rows = case.rows(size, random)
        kinds = {kind.name: kind.edits for kind in case.kinds(rows, random)}
        edits = kinds[kind][:EDITS]
        return _edited(case, ENGINE, rows, edits), _edited(case, other, rows, edits)

    return sides


def loaded(case: Case, *, read: bool = False) -> Callable[[int], Sides]:
    """Insert all edges in one transaction; if `read`, read all rows of the result."""

    def sides(size: int) -> Sides:
        rows = case.rows(size, Random(SEED))
        return _loaded(case, ENGINE, rows, read=read), _loaded(case, TWIN, rows, read=read)

    return sides


def _edited(case: Case, name: str, rows: Rows, edits: list[Edit]) -> Timed:
    side = side_of(case, name, Ear())
    fill(side, rows)

    def do(state: object) -> None:
        for edit in edits:
            doing(side, edit)()
            doing(side, back(edit))()

    return Timed(do, 2 * len(edits), lambda: None, lambda state: side.result())


def _loaded(case: Case, name: str, rows: Rows, *, read: bool) -> Timed:
    def do(side: Side) -> None:
        fill(side, rows)
        if read:
            side.result()

    return Timed(do, len(rows[0]), lambda: side_of(case, name, Ear()), lambda side: side.result())


BY_HAND = "by hand"
CLIFFS = (
    Cliff("closure of a chain, one edge", BY_HAND, edges(CHAIN), 150, most=4.0),
    Cliff("closure of a chain, the last edge", BY_HAND, edges(CHAIN, LAST), 150, most=4.0),
    Cliff("closure of a chain, load", BY_HAND, loaded(CHAIN), 150, most=4.0),
    Cliff(
        "closure of a chain, load, all rows read", BY_HAND, loaded(CHAIN, read=True), 150, most=4.0
    ),
    Cliff("closure of a digraph, one edge", BY_HAND, edges(DIGRAPH), 250, most=2.0),
    Cliff("closure of a digraph, load", BY_HAND, loaded(DIGRAPH), 250, most=2.0),
    Cliff("closure of a tree, one edge", BY_HAND, edges(TREE), 2_000),
    Cliff("closure of a tree, a leaf", BY_HAND, edges(TREE, LEAF), 2_000),
    Cliff("closure of a tree, load", BY_HAND, loaded(TREE), 2_000),
    Cliff("PageRank, exact, one edge", "again", edges(RANK, other=SCRATCH), 300, most=1.5),
)
