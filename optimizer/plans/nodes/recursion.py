"""Nodes of recursive queries: the least fixpoint of sets, and the iteration of bags.

    fixpoint paths = edges | select (a, c) (join paths, edges)     until no row is new
    iterate ranks, 30 times                                        each round from the last

Inside a body, `Recursive` reads the rows that a relation has so far. `Component` reads one of
several relations that are defined together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal

from optimizer.callables.opaque import Opaque
from optimizer.expr import Function
from optimizer.expressions.knowledge import Shapes
from optimizer.plans import facts as costs
from optimizer.plans import headlines
from optimizer.plans.facts import (
    Barrier,
    Calls,
    Facts,
    Node,
    always,
    as_first,
    monotone,
    never,
    of_each,
    of_input,
    same_rows,
)
from optimizer.plans.nodes.groups import Aggregate
from optimizer.record import record


def _shapes_of_component(node: Component, inputs: Sequence[Shapes]) -> Shapes:
    found = tuple(node.input.bodies[node.index].known["shapes"])
    return found if isinstance(node.input, Fixpoint) else (None,) * len(found)


def _barriers_of_fixpoint(node: Fixpoint) -> Sequence[Barrier | None]:
    """Return the barriers of the bodies: "aggregate" if a best row is chosen, else None."""
    return ("aggregate" if any(node.best) else None,) * len(node.bodies)


@record
class Recursive(Node):
    """A recursive relation inside its own definition: the rows that it has so far.

    `level` tells which definition; the definitions around it have higher numbers. `of` has the
    shapes of the bindings.
    """

    level: Any
    index: int
    name: str
    is_set: bool
    of: tuple[Any, ...] = (None,)

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=lambda node, _: node.of,
        is_set=lambda node, _: node.is_set,
        costs=costs.nothing,
        degree=costs.degree_of_rows,
        headline=headlines.recursive,
    )


@record
class Best:
    """Keep, among the rows with equal keys, the row with the least or largest value."""

    by: Function
    value: Function
    largest: bool


@record
class JoinedValue:
    """Keep one row per key: its value is the join of the values of all rows with that key.

    `name` is the field of the value, or its place in a tuple; `functions` are the user's callables
    in the lattice.
    """

    by: Function
    value: Function
    name: str | int
    lattice: Any
    functions: tuple[Opaque, ...] = field(default=(), compare=False)


@record
class GroupOf:
    """Keep one row per group: what the linear nodes `shown` make of an aggregate's row for it.

    The rows of the relation are the key and these bindings; the rows of the aggregate's input are
    what is derived for it. The clauses of a recursion have such relations, its nodes have none.
    """

    aggregate: Aggregate
    shown: tuple[Node, ...]


@record
class Fixpoint(Node):
    """The least relations that equal their bodies; as a node, the first of them.

    A body reads the relations as `Recursive`. Rows are sets; `best` may keep one row per key.
    """

    bodies: tuple[Node, ...]
    level: Any
    names: tuple[str, ...]
    best: tuple[Best | JoinedValue | None, ...]
    max_rounds: int | None

    facts = Facts(
        calls=(Calls("best.by", of_each), Calls("best.value", of_each)),
        raises=True,
        recursion=_barriers_of_fixpoint,
        shapes=same_rows,
        is_set=always,
        costs=costs.rounds,
        degree=costs.no_degree,
        headline=headlines.fixpoint,
    )


@record
class Component(Node):
    """One of several relations that are defined together."""

    input: Fixpoint | Iterate
    index: int

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=_shapes_of_component,
        is_set=as_first,
        costs=costs.constant_cost,
        degree=costs.degree_as_input,
        headline=headlines.component,
    )


@record
class Tolerance:
    """Emit a row only if its value differs by `least` from the last emitted one of its key."""

    value: Function
    by: Function
    least: float


@record
class Iterate(Node):
    """Bodies applied together, beginning with `starts`; as a node, the first relation.

    They are applied `times` times; if that is None, until no row is emitted, in at most
    `max_rounds` rounds. Relations are bags, and bodies may read them in any way. Each round
    multiplies the distance of two relations by at most `contraction`, measured by `norm`.
    """

    starts: tuple[Node, ...]
    bodies: tuple[Node, ...]
    level: Any
    names: tuple[str, ...]
    times: int | None
    max_rounds: int = 0
    tolerances: tuple[Tolerance | None, ...] = ()
    contraction: float | None = None
    norm: Literal["max", "sum"] = "max"

    facts = Facts(
        calls=(Calls("tolerances.value", of_each), Calls("tolerances.by", of_each)),
        raises=True,
        recursion=monotone,
        shapes=lambda node, inputs: (None,) * len(inputs[0]),
        is_set=never,
        costs=costs.rounds,
        degree=costs.no_degree,
        headline=headlines.iterate,
    )

    def is_tolerant(self) -> bool:
        """Return True if a changed row may be emitted in a later round than its change."""
        return any(self.tolerances)


@record
class Tolerate(Node):
    """The emitted rows of a round, in an iteration that is unrolled."""

    input: Node
    tolerance: Tolerance

    facts = Facts(
        calls=(Calls("tolerance.value", of_input), Calls("tolerance.by", of_input)),
        raises=True,
        recursion=lambda _: ("negation",),
        shapes=lambda node, inputs: (None,) * len(inputs[0]),
        is_set=never,
        costs=costs.constant_cost,
        degree=costs.no_degree,
        headline=headlines.tolerate,
    )
