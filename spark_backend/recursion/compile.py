"""Compile a recursion in a fragment to a step.

    fixpoint that keeps a column        by partitions of the column
    other linear fixpoint               by rounds (`rounds_step`)
    other fixpoint, loop of rounds      in one worker

The row type of a relation follows from the rows that are made of inputs alone. Integers keep their
declared range, even if the recursion sums them: a value that does not fit is an error when it
occurs.

State:  none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.plans.clauses import apart_from_sides, is_closed
from optimizer.plans.closures import Linear, MeetingRows, PartitionedRecursion, linear, partition
from optimizer.plans.explain import headline
from optimizer.plans.join_lists import ways_of
from optimizer.plans.properties import below_wheres, bindings, nodes, shapes
from optimizer.traverse import substituted, with_inputs
from reactive.engine.remote.fragments import LEVEL
from spark_backend.codec.codec import serialize_classes, serialize_plan
from spark_backend.codec.schema import (
    LARGEST,
    LEAST,
    WIDEST,
    Plain,
    Record,
    Typed,
    Untyped,
    common_type,
)
from spark_backend.codec.values import Inexact
from spark_backend.recursion.by_rounds import KeyedSides, RecursionInputs, RoundsRecursion
from spark_backend.recursion.partition_recursion import (
    OwnRows,
    PartitionRecursion,
    RecursionParts,
    Relation,
    WorkerRecursion,
)
from spark_backend.recursion.rounds_worker import Limits, Program
from spark_backend.steps.join import ArrangedRows
from spark_backend.steps.step import NotColumns, Step

if TYPE_CHECKING:
    from spark_backend.fragments.compile import Compiler


ROUNDS = 4
"""The number of times that row types are inferred again, because they became optional."""
JOINS = (plan.Join, plan.SemiJoin, plan.AntiJoin)


def recursion_step(compiler: Compiler, node: plan.Node) -> Step | None:
    """Return the step of a recursion; None for another node.

    Raises
    ------
    NotColumns: columns cannot express its inputs, or the type of its rows is unknown.
    """
    match node:
        case plan.Component(source, index):
            first = compiler.step(source)
            assert isinstance(first, Relation)
            return first.relation_at(index)
        case plan.Fixpoint() | plan.Iterate():
            over = _over_tables(compiler, node)
            return (
                _partition_step(compiler, over)
                or rounds_step(compiler, over, _infer_relations)
                or _worker_step(compiler, over)
            )
        case _:
            return None


def _partition_step(compiler: Compiler, node: plan.Node) -> Step | None:
    """Return the step of a fixpoint by partitions.

    Return None if it is not many small ones, or if columns cannot express one of its rules.
    """
    of = partition(node)
    if of is None:
        return None
    said = len(compiler.steps)
    try:
        return _make_partition_step(compiler, of)
    except (NotColumns, Inexact, Untyped):
        del compiler.steps[said:]
        return None


def _make_partition_step(compiler: Compiler, of: PartitionedRecursion) -> Step:
    """Return the step of a recursion by partitions, and register its tables."""
    kept = _infer_relation(compiler, of)
    own = compiler.give(_recursive_input(of), OwnRows(kept))
    assert isinstance(own, OwnRows)
    sides, premises = _find_arrangements(compiler, of)
    parts = RecursionParts(
        own,
        of.column,
        tuple(map(compiler.step, of.seeds)),
        tuple(map(compiler.step, of.ways)),
        sides,
        premises,
        all(map(_is_positive, of.ways)),
    )
    names = compiler.free("recursion", of.node), compiler.free("seeds", of.node)
    made = PartitionRecursion(parts, names, _serialize_fixpoint(of), serialize_classes())
    compiler.tables.update((spec.name, spec) for spec in made.specs)
    compiler.steps.append(
        f"{headline(of.node)}: by partitions of {of.column_name}, "
        "each by this engine in Python workers"
    )
    return made


def _worker_step(compiler: Compiler, node: plan.Node) -> Step:
    """Return the step of any recursion, whose relations are computed together."""
    assert isinstance(node, plan.Fixpoint | plan.Iterate)
    over, sides = apart_from_sides(node, LEVEL)
    steps = tuple(map(compiler.step, sides))
    relations = _infer_relations(compiler, node)
    names = [compiler.free("recursion", node, place) for place in range(len(relations))]
    names += [compiler.free("side", node, place) for place in range(len(sides))]
    made = WorkerRecursion(relations, steps, names, _serialize_relations(over), serialize_classes())
    compiler.tables.update((spec.name, spec) for spec in made.specs)
    compiler.steps.append(
        f"{headline(node)}: anew in each flush, by this engine in one Python worker"
    )
    return Relation(made, 0)


def _serialize_relations(over: plan.Node) -> bytes:
    """Serialize all relations of a recursion for workers.

    Rounds are exact; the worker applies the tolerance to the result.

    Raises
    ------
    NotColumns: a callable cannot be sent.
    """
    assert isinstance(over, plan.Fixpoint | plan.Iterate)
    shown: tuple[plan.Tolerance | None, ...] = (None,) * len(over.names)
    if isinstance(over, plan.Iterate) and over.times is not None and over.tolerances:
        over, shown = replace(over, tolerances=()), over.tolerances
    places = range(len(over.names))
    tops = [plan.Component(over, n) for n in places] if len(places) > 1 else [over]
    try:
        return serialize_plan(
            tuple(
                top if how is None else plan.Tolerate(top, how)
                for top, how in zip(tops, shown, strict=True)
            )
        )
    except Exception as error:
        raise NotColumns(f"{headline(over)} cannot be sent to Spark: {error}") from error


def _infer_relations(compiler: Compiler, node: plan.Fixpoint | plan.Iterate) -> tuple[Typed, ...]:
    """Return the row type of each relation: the common type of all rules for it.

    Raises
    ------
    NotColumns, Untyped: the type is unknown, or no column stores all of its values.
    """
    known: list[Typed | None] = [None] * len(node.names)
    for _ in range(ROUNDS + len(known)):
        scratch = compiler.fork()
        for body in node.bodies:
            for read in _own_relations(body, node.level):
                of = known[read.index]
                if of is not None:
                    scratch.give(read, OwnRows(of))
        before = list(known)
        for place, ways in enumerate(_relation_rules(node)):
            for way in ways:
                if all(before[read.index] is not None for read in _own_relations(way, node.level)):
                    known[place] = _widen_type(known[place], scratch.step(way).kept)
        if known == before:
            break
    found = [of for of in known if of is not None]
    if known != before or len(found) < len(known):
        raise NotColumns(f"{headline(node)}: it is not known what its rows are")
    return tuple(found)


def _relation_rules(node: plan.Fixpoint | plan.Iterate) -> list[list[plan.Node]]:
    """Return the rules for each relation."""
    ways = [ways_of(body) for body in node.bodies]
    if isinstance(node, plan.Iterate):
        ways = [[start, *own] for start, own in zip(node.starts, ways, strict=True)]
    return ways


def _widen_type(known: Typed | None, made: Typed) -> Typed:
    """Return the type of a relation with the rows of one further rule; `known` is None before the
    first."""
    if known is None:
        return _widen_integers(made)
    return common_type(known, _clip_integers(made, known))


def _own_relations(node: plan.Node, level: Any) -> list[plan.Recursive]:
    """Return the relations of a recursion that a part of it reads."""
    return [n for n in nodes(node) if isinstance(n, plan.Recursive) and n.level == level]


def _over_tables(compiler: Compiler, node: plan.Fixpoint | plan.Iterate) -> plan.Node:
    """Return the recursion over tables in place of the inputs of the fragment, so that only its own
    relations are recursive.

    Raises `NotColumns` if an input is read as several rows side by side.
    """

    def table(given: plan.Recursive) -> plan.Node:
        if len(given.of) > 1:
            raise NotColumns(f"{given.name} is read as several rows side by side")
        kind = given.of[0] if isinstance(given.of[0], type) else object
        stands = plan.Table(-1 - given.index, given.name, None, True, kind)
        compiler.give(stands, compiler.step(given))
        return stands

    return substituted(node, LEVEL, table)


def _recursive_input(of: PartitionedRecursion) -> plan.Recursive:
    """Return the relation as its rules read it."""
    waiting = list(of.ways)
    while waiting:
        node = waiting.pop()
        if isinstance(node, plan.Recursive):
            return node
        waiting.extend(node.inputs())
    raise AssertionError("no way reads the relation")


def _infer_relation(compiler: Compiler, of: PartitionedRecursion) -> Typed:
    """Return the row type of the relation.

    Raises
    ------
    NotColumns, Untyped: a step makes rows of another type than the seeds.
    """
    kept = _widen_integers(reduce(common_type, (compiler.step(seed).kept for seed in of.seeds)))
    for _ in range(ROUNDS):
        scratch = compiler.fork()
        scratch.give(_recursive_input(of), OwnRows(kept))
        made = (_clip_integers(scratch.step(way).kept, kept) for way in of.ways)
        wider = reduce(common_type, made, kept)
        if wider == kept:
            return kept
        kept = wider
    raise NotColumns(f"{headline(of.node)} makes rows of ever other types")


def _widen_integers(of: Typed) -> Typed:
    """Return the type with integers of 64 bits, or of 38 digits if they were wider than 64 bits."""
    if isinstance(of, Record):
        return replace(of, fields=tuple(map(_widen_integers, of.fields)))
    if not isinstance(of, Plain) or of.kind is not int:
        return of
    is_wide = of.is_wide
    return replace(of, low=-WIDEST if is_wide else LEAST, high=WIDEST if is_wide else LARGEST)


def _clip_integers(made: Typed, kept: Typed) -> Typed:
    """Return the type that a step makes, with the range of integers of the relation.

    Parts that are not integers on both sides are those of `made`.
    """
    if isinstance(made, Record) and isinstance(kept, Record):
        pairs = zip(made.fields, kept.fields, strict=False)
        return replace(made, fields=tuple(_clip_integers(m, k) for m, k in pairs))
    if isinstance(made, Plain) and isinstance(kept, Plain) and made.kind is kept.kind is int:
        return replace(made, low=kept.low, high=kept.high)
    return made


def _find_arrangements(
    compiler: Compiler, of: PartitionedRecursion
) -> tuple[tuple[ArrangedRows, ...], tuple[ArrangedRows, ...]]:
    """Return the arrangements that the rules join: the inputs, in their order, and recursive rows.

    Raises `NotColumns` if a side is joined without a key, or a join reads the result of another
    one.
    """
    premises: list[ArrangedRows] = []
    for way in of.ways:
        for join in _rule_joins(way):
            for side in join.inputs():
                if not is_closed(side):
                    if not isinstance(below_wheres(side), plan.Recursive):
                        raise NotColumns(
                            f"{headline(join)} joins what was joined with a recursive row"
                        )
                    compiler.step(join)
                    premises += compiler.arrangements_of(compiler.step(side))
    sides = []
    for side in of.sides():
        if bindings(side) > 1:
            raise NotColumns(f"{headline(side)} is read as several rows side by side")
        found = compiler.arrangements_of(compiler.step(side))
        if not found:
            raise NotColumns(f"{headline(side)} is joined without a key")
        sides.append(found[0])
    return tuple(sides), tuple(dict.fromkeys(premises))


def _is_positive(way: plan.Node) -> bool:
    """Return True if each joined row derives its own rows: every join is an inner join."""
    return all(isinstance(join, plan.Join) for join in _rule_joins(way))


def _rule_joins(way: plan.Node) -> Iterator[plan.Node]:
    """Yield the joins of a rule along its recursive input."""
    node = way
    while not isinstance(node, plan.Recursive):
        if isinstance(node, JOINS):
            yield node
            node = next(side for side in node.inputs() if not is_closed(side))
        else:
            node = node.inputs()[0]


def _serialize_fixpoint(of: PartitionedRecursion) -> bytes:
    """Serialize the fixpoint over placeholders for seeds and sides, and its column."""
    seeds = plan.Recursive(LEVEL, 0, "seeds", False, shapes(of.seeds[0]))
    sides = {
        side: plan.Recursive(LEVEL, place, f"side {place}", False, shapes(side))
        for place, side in enumerate(of.sides(), 1)
    }
    body: plan.Node = seeds
    for way in of.ways:
        body = plan.Union(body, _over_sides(way, sides))
    node = replace(of.node, bodies=(body,))
    return serialize_plan(plan.Select(node, of.column))


def _over_sides(node: plan.Node, sides: dict[plan.Node, plan.Recursive]) -> plan.Node:
    """Return a rule over placeholders for sides."""
    if node in sides:
        return sides[node]
    return with_inputs(node, [_over_sides(source, sides) for source in node.inputs()])


Kinds = Callable[["Compiler", plan.Fixpoint], tuple[Typed, ...]]
"""A function that infers the row type of each relation."""


def rounds_step(compiler: Compiler, node: plan.Node, kinds: Kinds) -> Step | None:
    """Return the step of a linear recursion.

    Return None for another one, or if columns cannot express a key.
    """
    of = linear(node)
    if of is None:
        return None
    steps, tables = list(compiler.steps), dict(compiler.tables)
    try:
        return _make_rounds_step(compiler, of, kinds(compiler, of.node))
    except (NotColumns, Inexact, Untyped):
        compiler.steps[:] = steps
        compiler.tables = tables
        return None


def _make_rounds_step(compiler: Compiler, of: Linear, relations: tuple[Typed, ...]) -> Step:
    """Return the step of the first relation of a linear recursion by rounds, and register its
    tables."""
    for own, kept in zip(of.own, relations, strict=True):
        compiler.give(own, OwnRows(kept))
    seeds = [(place, seed) for place, some in enumerate(of.seeds) for seed in some]
    read = RecursionInputs(
        tuple(map(compiler.step, of.sides)),
        tuple(compiler.step(seed) for _, seed in seeds),
        tuple(place for place, _ in seeds),
        tuple(_keyed_sides(compiler, of, reading) for reading in of.readings),
    )
    names = [compiler.free("counted", of.node, place) for place in range(len(relations))]
    made = RoundsRecursion(relations, read, names, _serialize_program(of), serialize_classes())
    compiler.tables.update((spec.name, spec) for spec in made.specs)
    compiler.steps.append(
        f"{headline(of.node)}: by rounds, over what is known of each row: in this process where "
        "few rows change, else in one Python worker"
    )
    return Relation(made, 0)


def _keyed_sides(compiler: Compiler, of: Linear, reading: MeetingRows) -> KeyedSides:
    """Return the arrangements of a relation and of the side that its rows are joined with."""
    own, side = of.own[reading.relation], of.sides[reading.side]
    rows, others = compiler.sides(plan.Join(own, side, reading.match), own, side)
    return KeyedSides(reading.relation, reading.side, rows, others)


def _serialize_program(of: Linear) -> bytes:
    """Serialize the recursion over placeholders for workers.

    Raises
    ------
    NotColumns: a callable cannot be sent.
    """
    program = Program(
        of.node.level,
        of.bodies,
        tuple(_matching_rows(of, reading) for reading in of.readings),
        tuple((reading.relation, reading.side) for reading in of.readings),
        Limits(of.node.names, of.node.max_rounds),
    )
    try:
        return serialize_plan(program)
    except Exception as error:
        raise NotColumns(f"{headline(of.node)} cannot be sent to Spark: {error}") from error


def _matching_rows(of: Linear, reading: MeetingRows) -> plan.Node:
    """Return the rows of a relation that match rows of a side."""
    own = replace(of.own[reading.relation], index=0)
    side = replace(of.given[reading.side], index=1)
    return plan.SemiJoin(own, side, reading.match)
