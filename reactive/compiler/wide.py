"""Joins of three or more inputs at once: the indexes of their inputs, and what reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from optimizer import plan
from optimizer.expr import Lifted
from reactive.codegen.itinerary import Key, keys_of, path_from
from reactive.dataflow.node import Node
from reactive.operators.fuse import Make, around, wide
from reactive.operators.loops import (
    Below,
    called,
    inputs_of_wide,
    is_read,
    loop_parts,
    pins_of,
    within,
)
from reactive.operators.plain import LINEAR, signature

if TYPE_CHECKING:
    from reactive.compiler.compile import Compiler


def is_wide(node: plan.Node, compiler: Compiler) -> TypeGuard[plan.Join]:
    """Whether a join and those below it are done as one."""
    if not isinstance(node, plan.Join) or node.wide is None or not compiler.generates:
        return False
    if compiler.depends(node):
        return False
    _, *inner = within(node)
    if any(compiler.readers[id(link)] > 1 for link in inner):
        return False
    return all(map(is_read, [node, *inner])) and len(inputs_of_wide(node)) == len(node.wide.tests)


def bases_of_wide(
    compiler: Compiler, node: plan.Node, below: Below, join: plan.Join
) -> tuple[plan.Node, ...]:
    """What the inputs of joins as one are made from."""
    found = _around(node, below, join)
    if found is not None:
        return (found[0][0].base,)
    return tuple(compiler.below(relation).base for relation in inputs_of_wide(join))


def over_wide(compiler: Compiler, node: plan.Node, below: Below, join: plan.Join) -> Node:
    """Joins as one, with the chain above it and what the chain feeds."""
    found = _around(node, below, join)
    if found is None:
        return _over_paths(compiler, node, below, join)
    inputs, make = found
    parts = [*_parts(node, below, join), *(link for each in inputs for link in each.chain)]
    return compiler.graph.node(
        ("circle", *(len(each.chain) for each in inputs), *map(signature, parts)),
        (compiler.made[id(inputs[0].base)],),
        make,
        plan=node,
        functions=called(parts),
        pins=pins_of(inputs[0]),
    )


def _around(node: plan.Node, below: Below, join: plan.Join) -> tuple[list[Below], Make] | None:
    """What counts the rows of a circle of one base, without an index, and how its inputs are made.

    None if it is no circle. The base is found below all selections, whoever else reads these.
    """
    inputs = list(map(_all_below, inputs_of_wide(join)))
    base = inputs[0].base
    if not isinstance(node, plan.Aggregate) or any(each.base is not base for each in inputs):
        return None
    make = around(join, node, below.chain, inputs)
    return None if make is None else (inputs, make)


def _all_below(node: plan.Node) -> Below:
    chain: list[plan.Node] = []
    while isinstance(node, LINEAR) and is_read(node):
        chain.append(node)
        node = node.input
    return Below(tuple(chain[::-1]), node)


def _over_paths(compiler: Compiler, node: plan.Node, below: Below, join: plan.Join) -> Node:
    """Joins as one, over an index per step of a path."""
    assert join.wide is not None
    relations = inputs_of_wide(join)
    found: dict[Any, Node] = {}
    for place in range(len(relations)):
        for key in keys_of(path_from(place, join.wide)):
            if key not in found:
                found[key] = _index_of(compiler, join, relations[key[0]], key)
    inputs = tuple(dict.fromkeys(found.values()))
    indexes = {key: found[key].operator for key in found}
    parts = _parts(node, below, join)
    return compiler.graph.node(
        ("wide", *map(signature, parts)),
        inputs,
        wide(join, node, below.chain, indexes),
        plan=node,
        functions=called(parts),
    )


def _parts(node: plan.Node, below: Below, join: plan.Join) -> list[plan.Node]:
    """The joins, and the nodes above that are part of their loop."""
    return [*within(join), *(part for part in loop_parts(node, below) if part is not join)]


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
