"""Propagate a change of one of three inputs or more through indexes of the others.

    customers where tier == 1    --+                   orders of all 1,000 views: one index of
    orders, by customer          --+-- one of 1,000    orders and customers, whose rows find the
    nations where name == "FR"   --+   views           views by the key of a nation

Joins that differ in tests of their inputs share what they can as joins of two: the joins whose
other side has the key of a row are found by it (`dataflow/key_readers.py`), which a multiway join
would look up in vain.

Needs:  joins that are one by their equations (`optimizer.plans.multiway`), each read by the next.
Pays:   4.1 times joins of two for triangles; no pairs are held. Not where many joins of the same
        equations are run so already: 400 views, 7,300 calls a change in place of 150.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.plans import multiway as multiways
from optimizer.plans.side_conditions import SideTerm
from reactive.engine.codegen import probe_order
from reactive.engine.compiler.choices.probe_indexes import probe_indexes
from reactive.engine.compiler.choices.run_pipeline import sink_of
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Multiway, Physical, PhysicalIndex, ops
from reactive.engine.compiler.row_tests import Candidate
from reactive.engine.operators.plain import (
    PipelineSource,
    inputs_of_multiway,
    is_read,
    merged_nodes,
)


def join_multiway(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    """Return how to plan `node` as a multiway join; None if it is none."""
    found = wide_in(chooser, node)
    return None if found is None else _follow(chooser, node, *found)


def wide_in(
    chooser: Chooser, node: plan.Node
) -> tuple[plan.Join, PipelineSource, multiways.MultiwayJoin] | None:
    """Return the top join of a multiway join in a node's loop, the loop, and the multiway join.

    Return None if there is none, or if an inner join of it has another reader.
    """
    found = chooser.join_of(node)
    if found is None:
        return None
    join, below = found
    multiway = chooser.multiway(join) if isinstance(join, plan.Join) else None
    if multiway is None or not isinstance(join, plan.Join) or chooser.depends(join):
        return None
    _, *inner = merged_nodes(join, multiway)
    if any(chooser.readers[id(link)] > 1 or not is_read(link) for link in inner):
        return None
    is_all = len(inputs_of_multiway(join, multiway)) == len(multiway.tests)
    return (join, below, multiway) if is_all else None


def _follow(
    chooser: Chooser,
    node: plan.Node,
    join: plan.Join,
    below: PipelineSource,
    multiway: multiways.MultiwayJoin,
) -> Asking[Physical]:
    """Yield the inputs of the joins, and return one multiway join over indexes of them.

    Return joins of two if many multiway joins differ in the tests of their inputs only.
    """
    relations = inputs_of_multiway(join, multiway)
    orders = [probe_order.probe_order(place, multiway) for place in range(len(relations))]
    keys = list(dict.fromkeys(key for order in orders for key in probe_order.probe_keys(order)))
    of, found = (join, multiway), dict[Any, PhysicalIndex]()
    whole = [
        isinstance(relation, plan.Table) and not tests
        for relation, tests in zip(relations, multiway.tests, strict=True)
    ]
    for key in [key for key in keys if whole[key[0]]]:
        found[key] = yield from _plan_input_index(chooser, of, relations[key[0]], key)
    differs = any(multiway.tests) or any(isinstance(each, plan.Where) for each in relations)
    if differs and chooser.best_of(_shared_indexes(found, multiway)) is not None:
        joins_of_two = probe_indexes(chooser, node)
        assert joins_of_two is not None
        return (yield from joins_of_two)
    for key in keys:
        if key not in found:
            found[key] = yield from _plan_input_index(chooser, of, relations[key[0]], key)
    found = {key: found[key] for key in keys}
    indexes = list(dict.fromkeys(found.values()))
    places = tuple((key, indexes.index(index)) for key, index in found.items())
    joins, chain = ops(tuple(merged_nodes(join, multiway))), ops(below.chain)
    return Multiway(node, tuple(indexes), places, joins, chain, sink_of(node, below), multiway)


def _shared_indexes(
    indexes: Mapping[Any, PhysicalIndex], multiway: multiways.MultiwayJoin
) -> tuple[Candidate, ...]:
    """Return the indexes of whole tables that joins with other tests share."""
    if multiway.is_cyclic:
        return ()
    return tuple(Candidate(0, index, None, multiway.equations) for index in indexes.values())


def _plan_input_index(
    chooser: Chooser,
    of: tuple[plan.Join, multiways.MultiwayJoin],
    node: plan.Node,
    key: probe_order.Key,
) -> Asking[PhysicalIndex]:
    """Return the index, or trie, of an input."""
    (owner, multiway), (place, exprs, under) = of, key
    made = [(test, False) for test in multiway.tests[place]]
    made += [(expr, True) for expr in (*exprs, *under)]
    steps = tuple(SideTerm(Lifted(e, ("row",), (), 1), is_key) for e, is_key in made)
    below = chooser.below(node)
    is_trie = bool(under)
    return (yield from chooser.index(owner, below, (None, steps), 1, trie=is_trie, drops=True))
