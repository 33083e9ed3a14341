"""Joins of three or more inputs at once: the indexes of their inputs, and what reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from optimizer import plan
from optimizer.expr import Lifted
from reactive.fuse import wide
from reactive.generated.itinerary import Key, keys_of, path_from
from reactive.loops import Below, called, inputs_of_wide, is_read, loop_parts, within
from reactive.node import Node
from reactive.plain import signature

if TYPE_CHECKING:
    from reactive.compile import Compiler


def is_wide(node: plan.Node, compiler: Compiler) -> TypeGuard[plan.Join]:
    """Whether a join and those below it are done as one."""
    if not isinstance(node, plan.Join) or node.wide is None or not compiler.generates:
        return False
    if node in compiler.unfit or compiler.depends(node):
        return False
    _, *inner = within(node)
    if any(compiler.readers[id(link)] > 1 for link in inner):
        return False
    return all(map(is_read, [node, *inner])) and len(inputs_of_wide(node)) == len(node.wide.tests)


def over_paths(compiler: Compiler, node: plan.Node, below: Below, join: plan.Join) -> Node:
    """Joins as one, with the chain above it and what the chain feeds."""
    assert join.wide is not None
    relations, parts = inputs_of_wide(join), loop_parts(node, below)
    found: dict[Any, Node] = {}
    for place in range(len(relations)):
        for key in keys_of(path_from(place, join.wide)):
            if key not in found:
                found[key] = _index_of(compiler, join, relations[key[0]], key)
    inputs = tuple(dict.fromkeys(found.values()))
    indexes = {key: found[key].operator for key in found}
    _, *inner = within(join)
    return compiler.graph.node(
        ("wide", *map(signature, [join, *inner, *(p for p in parts if p is not join)])),
        inputs,
        wide(join, node, below.chain, indexes),
        plan=node,
        functions=called([join, *inner, *parts]),
    )


def _index_of(
    compiler: Compiler,
    owner: plan.Join,
    node: plan.Node,
    key: Key,
) -> Node:
    """The index, or trie, of an input."""
    assert owner.wide is not None
    place, exprs, under = key
    made = [(test, False) for test in owner.wide.tests[place]]
    made += [(expr, True) for expr in (*exprs, *under)]
    steps = tuple(plan.Step(Lifted(e, ("row",), (), 1), is_key) for e, is_key in made)
    return compiler.index(owner, compiler.below(node), (None, steps), 1, trie=bool(under))
