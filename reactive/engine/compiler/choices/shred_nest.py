"""Store a nest as a tree of flat relations: a label stands for the inner rows of a row.

Needs:  the rows of the nest are the rows of the view, of stored tables, in the process.
Pays:   an inner row costs only its level, for bags of any size: no outer bag is built, hashed and
        compared again. Bags are built only when read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.expressions.text import Nesting
from optimizer.plans import shredding
from optimizer.plans.properties import bindings, may_be_negative
from reactive.engine.compiler import levels
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Op, Physical, PhysicalIndex, PhysicalNest
from reactive.engine.operators.plain import PipelineSource

if TYPE_CHECKING:
    from reactive.engine.compiler.levels import Levels
    from reactive.engine.compiler.placement import OffloadedNodes


def shred_nest(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    """Return how to plan the root as a tree of flat levels; None if it is no such nest."""
    is_over_join = isinstance(node, plan.Select) and isinstance(node.input, plan.OuterJoin)
    if node is not chooser.root or not is_over_join:
        return None
    away = chooser.offloaded
    if away is not None and (there := away.levels_there(node)):
        return _elsewhere(node, there, away)
    nesting = shredding.nesting_of(node)
    if nesting is None or not chooser.generates or chooser.depends(node) or may_be_negative(node):
        return None
    found = shredding.shred(node)
    return None if found is None else _tree(chooser, node, nesting, found)


def _elsewhere(node: plan.Node, found: Levels, away: OffloadedNodes) -> Asking[Physical]:
    """Return the physical node of a nest whose levels, in `found`, are elsewhere."""
    parts: list[Physical] = []
    for part in found.parts:
        parts.append((yield part))
    there = levels.Elsewhere(found.names, away.every(node))
    nesting, top, large = found.nesting, found.top, shredding.LARGE
    return PhysicalNest(node, tuple(parts), found.places, Op(node), nesting, top, large, there)


def _tree(
    chooser: Chooser, node: plan.Node, nesting: Nesting, top: shredding.ShreddedLevel
) -> Asking[Physical]:
    """Yield the rows of each level, and return the nest over their indexes by label and key."""
    indexes: list[PhysicalIndex] = []
    places: list[tuple[int, ...]] = []
    chooser.runs_only(level.rows for level in shredding.levels(top))
    for level in shredding.levels(top):
        if level.is_made:
            chooser.readers[id(level.rows)] += len(level.inside) + 1
        keys = [level.label, *(inside.key for inside in level.inside)]
        own: list[int] = []
        for key in keys:
            if key is None:
                continue
            function = key if key is level.label else level.key(key)
            index = yield from chooser.index(
                node,
                _rows_of_level(chooser, level.rows),
                (function, ()),
                bindings(level.rows),
            )
            own.append(len(indexes))
            indexes.append(index)
        places.append(tuple(own))
    return PhysicalNest(
        node, tuple(indexes), tuple(places), Op(node), nesting, top, shredding.LARGE
    )


def _rows_of_level(chooser: Chooser, rows: plan.Node) -> PipelineSource:
    """Return the rows of a level as a chain over a base, for an index.

    Rows that are made from a join are made by its loops, without pairs between the two.
    """
    if chooser.readers[id(rows)] < 2 and chooser.join_of(rows) is not None:
        return PipelineSource((), rows)
    return chooser.below(rows)
