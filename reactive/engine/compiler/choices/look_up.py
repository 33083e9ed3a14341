"""Find the rows of one value, of several values, or of a range, by an index of a table.

    where o.customer == 7                     look up 7 --------+
    where o.qty > 3 and o.customer == 8       look up 8 --------+--  index of orders by customer
    where o.customer in (7, 9)                look up 7 or 9 ---+

    where o.amount > 100                      look up above 100  --  ordered index by amount

Needs:  a stored table; a field compared with constants, such that earlier conditions do not raise
        (`optimizer.plans.field_values`), or not for rows whose other fields have certain classes,
        which the index checks.
Pays:   if many other views look up the same field: 1,000 views of one value each, 28 us a change.
"""

from __future__ import annotations

from optimizer import plan
from reactive.engine.compiler.choices.run_pipeline import sink_of
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Lookup, Physical, Pipeline
from reactive.engine.operators.plain import LINEAR, PipelineSource


def look_up(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    """Return how to plan `node` over the best index for its first test; None without an index.

    The index and field that were chosen are appended to `chooser.looked_up`.
    """
    below = chooser.chain_of(node)
    found = None if below is None else chooser.look_up(below)
    return None if found is None else _plan_lookup(node, *found)


def _plan_lookup(node: plan.Node, rest: PipelineSource, source: Lookup) -> Asking[Physical]:
    """Return the plan of `node` over a look-up: the rest of its chain, and its sink."""
    yield from ()
    if isinstance(node, LINEAR):
        return Pipeline(node, source, rest, None) if rest.chain else source
    return Pipeline(node, source, rest, sink_of(node, rest))
