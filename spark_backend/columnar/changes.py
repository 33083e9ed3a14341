"""How the relations of a loop change, from files to files: what comes and goes is columns of Arrow.

State:  none.
Cost:   as `loop.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from optimizer import plan
from reactive.engine.remote.fragments import LEVEL
from spark_backend.codec.arrow import arrow_type
from spark_backend.codec.schema import Typed
from spark_backend.columnar.loop import changed, moved, rounds, there
from spark_backend.columnar.plans import Frame
from spark_backend.columnar.trees import NotColumnar, Weighted, from_arrow, to_arrow


def changes_of(
    tops: Sequence[plan.Node], kinds: Sequence[Typed], given: Sequence[pa.Table]
) -> list[pa.Table]:
    """How the rows of each relation change.

    Parameters
    ----------
    tops: the relations of a loop over sides, which are `Recursive` of `LEVEL`; below `Tolerate` if
        not all changes are shown.
    kinds, given: of the relations, as they were, and then of the sides, as they are: what rows are,
        and the columns `row` and `weight`, which need not be added up.

    Raises
    ------
    NotColumnar: it is not done over columns.
    """
    loop = loop_of(tops[0])
    if not isinstance(loop, plan.Iterate):
        raise NotColumnar("a fixpoint")
    with np.errstate(all="ignore"):
        weighted = [_weighted(kept, table) for kept, table in zip(kinds, given, strict=True)]
        sides = {(LEVEL, n): there(*some) for n, some in enumerate(weighted[len(tops) :])}
        after = rounds(loop, list(map(exact, tops)), sides)
        found = [_change(*each) for each in zip(tops, weighted, after, strict=False)]
        return [_table(kept, change) for kept, change in zip(kinds, found, strict=False)]


def exact(top: plan.Node) -> plan.Node:
    """A relation before any tolerance."""
    return top.input if isinstance(top, plan.Tolerate) else top


def loop_of(top: plan.Node) -> plan.Node:
    """The recursion that a relation is of."""
    found = exact(top)
    return found.input if isinstance(found, plan.Component) else found


def _change(top: plan.Node, was: Weighted, now: Frame) -> Weighted:
    if isinstance(top, plan.Tolerate):
        return moved(was, now.row, now.size, top.tolerance)
    return changed(was, now.row, now.size)


def _weighted(kept: Typed, table: pa.Table) -> Weighted:
    chunks = table.column("row").chunks or [pa.array([], arrow_type(kept))]
    return from_arrow(kept, pa.concat_arrays(chunks)), table.column("weight").to_numpy()


def _table(kept: Typed, found: Weighted) -> pa.Table:
    return pa.table({"row": to_arrow(kept, found[0]), "weight": found[1]})
