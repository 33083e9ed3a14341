"""From a linear recursion to its step by rounds.

State:  none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.plans.explain import headline
from optimizer.plans.linear import Linear, Reading, linear
from spark_backend.codec.schema import Typed, Untyped
from spark_backend.codec.serialization import serialized, serialized_classes
from spark_backend.codec.values import Inexact
from spark_backend.recursion.by_rounds import Asked, ByRounds, Read
from spark_backend.recursion.counted import Limits
from spark_backend.recursion.one_worker import Relation
from spark_backend.recursion.parts import Own
from spark_backend.recursion.rounds_worker import Program
from spark_backend.steps.step import NotColumns, Step

if TYPE_CHECKING:
    from spark_backend.fragments.compile import Compiler

Kinds = Callable[["Compiler", plan.Fixpoint], tuple[Typed, ...]]
"""What rows of each relation are."""


def by_rounds(compiler: Compiler, node: plan.Node, kinds: Kinds) -> Step | None:
    """The step of a linear recursion; None of another one, or if a key is not done in columns."""
    of = linear(node)
    if of is None:
        return None
    steps, tables = list(compiler.steps), dict(compiler.tables)
    try:
        return _step(compiler, of, kinds(compiler, of.node))
    except (NotColumns, Inexact, Untyped):
        compiler.steps[:] = steps
        compiler.tables = tables
        return None


def _step(compiler: Compiler, of: Linear, relations: tuple[Typed, ...]) -> Step:
    for own, kept in zip(of.own, relations, strict=True):
        compiler.give(own, Own(kept))
    seeds = [(place, seed) for place, some in enumerate(of.seeds) for seed in some]
    read = Read(
        tuple(map(compiler.step, of.sides)),
        tuple(compiler.step(seed) for _, seed in seeds),
        tuple(place for place, _ in seeds),
        tuple(_asked(compiler, of, reading) for reading in of.readings),
    )
    names = [compiler.free("counted", of.node, place) for place in range(len(relations))]
    made = ByRounds(relations, read, names, _program(of), serialized_classes())
    compiler.tables.update((spec.name, spec) for spec in made.specs)
    compiler.steps.append(
        f"{headline(of.node)}: by rounds, over what is known of each row: in this process where "
        "few rows change, else in one Python worker"
    )
    return Relation(made, 0)


def _asked(compiler: Compiler, of: Linear, reading: Reading) -> Asked:
    own, side = of.own[reading.relation], of.sides[reading.side]
    rows, others = compiler.sides(plan.Join(own, side, reading.match), own, side)
    return Asked(reading.relation, reading.side, rows, others)


def _program(of: Linear) -> bytes:
    """The recursion over what is given, as bytes for workers.

    Raises
    ------
    NotColumns: a callable cannot be sent.
    """
    program = Program(
        of.node.level,
        of.bodies,
        tuple(_reader(of, reading) for reading in of.readings),
        tuple((reading.relation, reading.side) for reading in of.readings),
        Limits(of.node.names, of.node.max_rounds),
    )
    try:
        return serialized(program)
    except Exception as error:
        raise NotColumns(f"{headline(of.node)} cannot be sent to Spark: {error}") from error


def _reader(of: Linear, reading: Reading) -> plan.Node:
    """The rows of a relation that meet rows of a side."""
    own = replace(of.own[reading.relation], index=0)
    side = replace(of.given[reading.side], index=1)
    return plan.SemiJoin(own, side, reading.match)
