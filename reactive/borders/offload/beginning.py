"""What moves together, and how it begins elsewhere: what it is called, and for whom it is.

grown: join          by town (aggregate)       as one fragment, though the aggregate is small:
                       join                    else all deltas of the join would come by
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.plans import explain as explaining
from optimizer.plans.properties import nodes
from reactive.borders.offload import resuming
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Remote

if TYPE_CHECKING:
    from reactive.borders.offload.offload import Offloading


def begun(of: Offloading, part: Fragment, node: plan.Node) -> Remote:
    """A place for the part of a node."""
    views = resuming.views_of(of._engine, node, of.plan_of)
    return of.need().begin(part, name_of(node), views, of._engine)


def name_of(node: plan.Node) -> str:
    """The same for the same query."""
    return str(explaining.explain(node))


def tops(of: Offloading, grown: Sequence[plan.Node]) -> list[plan.Node]:
    """The nodes that are to move for some that have grown: of several that can be in one whole
    fragment the upper one of the least such, and else those themselves.

    What reads their results stays: it has not grown, and each operator of a fragment takes longer
    in a flush than the few deltas here that it saves.
    """
    away = of.offloaded(of.moved)
    assert away is not None
    found: dict[plan.Node, None] = {}
    left = dict.fromkeys(grown)
    for root in of.roots():
        whole = filter(away.is_whole, nodes(root))
        within = {node: left.keys() & away.fragment(node).of for node in whole}
        most = max(map(len, within.values()), default=0)
        if most > 1:
            found[next(node for node, some in within.items() if len(some) == most)] = None
    gone = {node for top in found for node in away.fragment(top).of}
    return [*found, *(node for node in left if node not in gone)]


def is_whole(of: Offloading, node: plan.Node) -> bool:
    """Whether a node goes together with all that is below it."""
    away = of.offloaded(of.moved)
    return away is not None and away.is_whole(node)
