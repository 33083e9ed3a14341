"""Run a part of a query elsewhere, if it was moved, or if the rows that it reads are there.

Needs:  its rows fall into buckets by a key (`remote/fragments.py`).
Pays:   its state is not in the process.
"""

from __future__ import annotations

from optimizer import plan
from reactive.engine.compiler import placement
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Apply, Op, Physical, PhysicalRemote, Scan, ops
from reactive.engine.remote import fragments


def run_offloaded(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    """Return how to plan `node` as a remote part; None if it runs in the process."""
    away = chooser.offloaded
    if away is None:
        return None
    if away.holds(node) and not away.is_level(node):
        return _plan_fragment(away, node, fragments.scan_of(node), is_scan=True)
    return _move(away, node) if away.includes(node) else None


def _move(away: placement.OffloadedNodes, node: plan.Node) -> Asking[Physical]:
    """Return the physical node of a moved part; if it is an order, sort its rows here."""
    moved = yield from _plan_fragment(away, node, away.fragment(node), is_scan=False)
    return Apply(node, (moved,), Op(node)) if isinstance(node, plan.OrderBy) else moved


def _plan_fragment(
    away: placement.OffloadedNodes, node: plan.Node, fragment: fragments.Fragment, *, is_scan: bool
) -> Asking[Physical]:
    """Yield the inputs in the process, and return the remote plan; tables held there feed it."""
    sources: list[Physical] = []
    fed, chains = {}, []
    for place, read in enumerate(fragment.inputs):
        if away.holds(read):
            source, table, chain = placement.feeding(away, read)
            sources.append(Scan(table, Op(table)))
            fed[place] = (source, chain)
            chains.append((place, ops(chain)))
        else:
            sources.append((yield read))
    begin = away.scan if is_scan else away.begin(node)
    return PhysicalRemote(
        node, tuple(sources), ops(fragment.of), tuple(chains), fragment, begin, fed
    )
