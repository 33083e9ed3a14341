"""Follow a change of one of three inputs or more through indexes of the others.

Needs:  joins that the optimizer found to be one (`widen_join`), each read by the next alone.
Pays:   4.1 times joins of two for triangles; no pairs are held.
"""

from __future__ import annotations

from typing import Any

from optimizer import plan
from optimizer.expr import Lifted
from reactive.codegen.itinerary import Key, keys_of, path_from
from reactive.compiler.choices.run_pipeline import sink_of
from reactive.compiler.chooser import Asking, Chooser
from reactive.compiler.physical import Index, Multiway, Physical, ops
from reactive.operators.loops import Below, inputs_of_wide, is_read, within


def join_multiway(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    found = wide_of(chooser, node)
    return None if found is None else _follow(chooser, node, *found)


def wide_of(chooser: Chooser, node: plan.Node) -> tuple[plan.Join, Below] | None:
    """The joins that are one in the loop of a node, and the loop."""
    found = chooser.join_of(node)
    if found is None:
        return None
    join, below = found
    if not isinstance(join, plan.Join) or join.wide is None or chooser.depends(join):
        return None
    _, *inner = within(join)
    if any(chooser.readers[id(link)] > 1 or not is_read(link) for link in inner):
        return None
    return (join, below) if len(inputs_of_wide(join)) == len(join.wide.tests) else None


def _follow(chooser: Chooser, node: plan.Node, join: plan.Join, below: Below) -> Asking[Physical]:
    assert join.wide is not None
    relations = inputs_of_wide(join)
    found: dict[Any, Index] = {}
    for place in range(len(relations)):
        for key in keys_of(path_from(place, join.wide)):
            if key not in found:
                found[key] = yield from _index(chooser, join, relations[key[0]], key)
    indexes = list(dict.fromkeys(found.values()))
    places = tuple((key, indexes.index(index)) for key, index in found.items())
    joins, chain = ops(tuple(within(join))), ops(below.chain)
    return Multiway(node, tuple(indexes), places, joins, chain, sink_of(node, below))


def _index(chooser: Chooser, owner: plan.Join, node: plan.Node, key: Key) -> Asking[Index]:
    """The index, or trie, of an input."""
    assert owner.wide is not None
    place, exprs, under = key
    made = [(test, False) for test in owner.wide.tests[place]]
    made += [(expr, True) for expr in (*exprs, *under)]
    steps = tuple(plan.Step(Lifted(e, ("row",), (), 1), is_key) for e, is_key in made)
    below = chooser.below(node)
    return (yield from chooser.index(owner, below, (None, steps), 1, trie=bool(under)))
