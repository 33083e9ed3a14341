"""From a fixpoint in a fragment to its step.

What rows of the relation are follows from its seeds; integers stay what they are declared as,
however large the sums that the recursion might make of them: what does not fit is told when it
happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.plans.clauses import is_closed
from optimizer.plans.decomposed import Decomposed, decomposed
from optimizer.plans.explain import headline
from optimizer.plans.properties import below_wheres, bindings, shapes
from optimizer.traverse import substituted, with_inputs
from reactive.remote.fragments import LEVEL
from spark_backend.codec.schema import LARGEST, LEAST, WIDEST, Plain, Record, Typed, in_common
from spark_backend.codec.serialization import serialized, serialized_classes
from spark_backend.incremental.join import Arranged
from spark_backend.incremental.steps import NotColumns, Step
from spark_backend.recursion.decomposed import ByPartition, Own, Parts

if TYPE_CHECKING:
    from spark_backend.incremental.compile import Compiler

ROUNDS = 4
"""How often it is looked at again what rows are, now that they may be None."""
JOINS = (plan.Join, plan.SemiJoin, plan.AntiJoin)


def recursion(compiler: Compiler, node: plan.Node) -> Step | None:
    """The step of a fixpoint; None of another node.

    Raises
    ------
    NotColumns: it is not many small ones, or a part of it is not done in columns.
    """
    if not isinstance(node, plan.Fixpoint):
        return None
    of = decomposed(_over_tables(compiler, node))
    if of is None:
        raise NotColumns(f"{headline(node)} keeps no column of its rows")
    kept = _kept(compiler, of)
    own = compiler.give(_recursive(of), Own(kept))
    assert isinstance(own, Own)
    sides, premises = _arranged(compiler, of)
    parts = Parts(
        own,
        of.column,
        tuple(map(compiler.step, of.seeds)),
        tuple(map(compiler.step, of.ways)),
        sides,
        premises,
    )
    names = compiler.free("recursion"), compiler.free("seeds")
    made = ByPartition(parts, names, _for_workers(of), serialized_classes())
    compiler.tables.update((spec.name, spec) for spec in made.specs)
    compiler.steps.append(
        f"{headline(node)}: by partitions of {of.column_name}, "
        "each by this engine in Python workers"
    )
    return made


def _over_tables(compiler: Compiler, node: plan.Fixpoint) -> plan.Node:
    """The fixpoint over tables in the place of the inputs of the fragment, so that no relation is
    recursive but its own."""

    def table(given: plan.Recursive) -> plan.Node:
        if len(given.of) > 1:
            raise NotColumns(f"{given.name} is read as several rows side by side")
        kind = given.of[0] if isinstance(given.of[0], type) else object
        stands = plan.Table(-1 - given.index, given.name, None, True, kind)
        compiler.give(stands, compiler.step(given))
        return stands

    return substituted(node, LEVEL, table)


def _recursive(of: Decomposed) -> plan.Recursive:
    """The relation as its ways read it."""
    waiting = list(of.ways)
    while waiting:
        node = waiting.pop()
        if isinstance(node, plan.Recursive):
            return node
        waiting.extend(node.inputs())
    raise AssertionError("no way reads the relation")


def _kept(compiler: Compiler, of: Decomposed) -> Typed:
    """What rows of the relation are.

    Raises
    ------
    NotColumns, Untyped: a step makes rows of another type than the seeds.
    """
    kept = _bounded(reduce(in_common, (compiler.step(seed).kept for seed in of.seeds)))
    for _ in range(ROUNDS):
        scratch = compiler.beside()
        scratch.give(_recursive(of), Own(kept))
        made = (_clipped(scratch.step(way).kept, kept) for way in of.ways)
        wider = reduce(in_common, made, kept)
        if wider == kept:
            return kept
        kept = wider
    raise NotColumns(f"{headline(of.node)} makes rows of ever other types")


def _bounded(of: Typed) -> Typed:
    """The type with integers of 64 bits, or of as many as a column can have where they have more
    to begin with."""
    if isinstance(of, Record):
        return replace(of, fields=tuple(map(_bounded, of.fields)))
    if of.kind is not int:
        return of
    is_wide = of.is_wide
    return replace(of, low=-WIDEST if is_wide else LEAST, high=WIDEST if is_wide else LARGEST)


def _clipped(made: Typed, kept: Typed) -> Typed:
    """What a step makes, with integers that are as large as those of the relation."""
    if isinstance(made, Record) and isinstance(kept, Record):
        pairs = zip(made.fields, kept.fields, strict=False)
        return replace(made, fields=tuple(_clipped(m, k) for m, k in pairs))
    if isinstance(made, Plain) and isinstance(kept, Plain) and made.kind is kept.kind is int:
        return replace(made, low=kept.low, high=kept.high)
    return made


def _arranged(
    compiler: Compiler, of: Decomposed
) -> tuple[tuple[Arranged, ...], tuple[Arranged, ...]]:
    """What the ways join: the inputs, in their order, and recursive rows."""
    premises: list[Arranged] = []
    for way in of.ways:
        for join in _joins(way):
            for side in join.inputs():
                if not is_closed(side):
                    if not isinstance(below_wheres(side), plan.Recursive):
                        raise NotColumns(
                            f"{headline(join)} joins what was joined with a recursive row"
                        )
                    compiler.step(join)
                    premises += compiler.arranged(compiler.step(side))
    sides = []
    for side in of.sides():
        if bindings(side) > 1:
            raise NotColumns(f"{headline(side)} is read as several rows side by side")
        found = compiler.arranged(compiler.step(side))
        if not found:
            raise NotColumns(f"{headline(side)} is joined without a key")
        sides.append(found[0])
    return tuple(sides), tuple(dict.fromkeys(premises))


def _joins(way: plan.Node) -> Iterator[plan.Node]:
    """The joins of a way, and what else it reads recursive rows by."""
    node = way
    while not isinstance(node, plan.Recursive):
        if isinstance(node, JOINS):
            yield node
            node = next(side for side in node.inputs() if not is_closed(side))
        else:
            node = node.inputs()[0]


def _for_workers(of: Decomposed) -> bytes:
    """The fixpoint over seeds and sides that are given, and its column."""
    seeds = plan.Recursive(LEVEL, 0, "seeds", False, shapes(of.seeds[0]))
    sides = {
        side: plan.Recursive(LEVEL, place, f"side {place}", False, shapes(side))
        for place, side in enumerate(of.sides(), 1)
    }
    body: plan.Node = seeds
    for way in of.ways:
        body = plan.Union(body, _over(way, sides))
    node = replace(of.node, bodies=(body,))
    return serialized(plan.Select(node, of.column))


def _over(node: plan.Node, sides: dict[plan.Node, plan.Recursive]) -> plan.Node:
    """A way over sides that are given."""
    if node in sides:
        return sides[node]
    return with_inputs(node, [_over(source, sides) for source in node.inputs()])
