"""Rows of a nest with the elements of what is inside: what `unnest` of a nest gives.

    nest.unnest(lambda c, orders: orders)      beside each element, the rows of the nest

Callables that only compute something of a bag read the query for it, and what reads no bag at all
is made of the rows without them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVarTuple

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.comprehensions.query import ITERATED
from optimizer.comprehensions.rows import Rows
from optimizer.expr import Apply, Function, Parameter, reads, substitute, walk
from optimizer.expressions.knowledge import Shapes
from optimizer.lifting.lift import lift
from optimizer.plans.properties import bindings, shapes
from optimizer.traverse import functions, has_subqueries, with_functions, with_inputs
from reactive.api import comprehending
from reactive.api.relation import Relation
from reactive.engine.runtime.boundary import boundary

Ts = TypeVarTuple("Ts")
Inside: TypeAlias = tuple[tuple[Rows, ...], ...]
"""Rows of what is inside, for each binding of it: the ways to read them, the best first."""
SAME = (plan.Where, plan.Distinct, plan.SemiJoin, plan.AntiJoin, plan.Previous)
"""What leaves rows as they are, or out."""
MADE = plan.Select | plan.Extend | plan.Aggregate | plan.SelectMany
"""What may read nothing of what is inside."""


@boundary
class UnnestedRelation(Relation[*Ts]):
    """Rows of a nest, with what is inside of them, and each element of it: callables that only
    compute something of a bag read the query for it."""

    inside: Inside = ()
    place: int = 0
    """Which binding is the first of those that are inside."""
    flat: Relation[Any] | None = None
    """The rows without these bindings."""
    is_read: bool = False
    """Whether a query for what is inside was read: rows with bags would be made for nothing."""

    def _new(self, node: plan.Node, *others: Any) -> Relation[Any]:
        is_read = self.is_read or has_subqueries(node)
        flat = self._flat(node) if is_read else None
        if flat is not None and isinstance(node, MADE):
            return flat
        made = super()._new(node, *others)
        if not isinstance(node, (*SAME, plan.Unnest)) or node.inputs()[0] is not self.plan:
            return made
        flat = self._flat(node) if flat is None else flat
        return _beside(made, self.inside, self.place, flat, is_read)

    def _flat(self, node: plan.Node) -> Relation[Any] | None:
        """What a node makes of the rows without what is inside, if it does not read that."""
        flat, is_known = self.flat, isinstance(node, plan.Where | plan.Unnest | MADE)
        if flat is None or not is_known or node.inputs()[0] is not self.plan:
            return None
        made = narrowed(node, _without(self.place, self.inside, bindings(self.plan)), flat.plan)
        return None if made is None else Relation(self._engine, made, self._kept_views())

    def _named(self, function: Callable[..., Any], known: Shapes, role: str) -> Function:
        made = super()._named(function, known, role)
        return read_inside(self._engine, made, known, role, self.inside, self.place)


def unnested(nest: Any, made: Relation[Any], node: plan.Unnest) -> UnnestedRelation[Any]:
    """The elements of something beside the rows of a nest."""
    place, is_read = len(nest.nesting.columns) - len(nest.inside), has_subqueries(node)
    flat = None if nest.begin is None else _elements(nest, node, place)
    relation = None if flat is None else Relation[Any](nest._engine, flat, made._kept_views())
    return _beside(made, nest.inside, place, relation, is_read)


def _elements(nest: Any, node: plan.Unnest, place: int) -> plan.Node | None:
    """The same beside the rows without what is inside of them."""
    begin = nest.begin.plan
    made = narrowed(node, range(bindings(begin)), begin)
    if made is not None or not isinstance(node.function, Opaque):
        return made
    match lift(node.function, shapes(nest.plan)).body:
        case Parameter(index) if index >= place:
            rows = nest.inside[index - place][-1]
            return comprehending.beside(nest._engine, begin, rows)
    return None


def _beside(
    made: Relation[Any], inside: Inside, place: int, flat: Relation[Any] | None, is_read: bool
) -> UnnestedRelation[Any]:
    found = UnnestedRelation[Any](made._engine, made.plan, made._kept_views())
    found.inside, found.place, found.flat, found.is_read = inside, place, flat, is_read
    return found


def _is_read(function: Function, known: Shapes) -> bool:
    """Whether a callable is read as it is, so that it gives a bag, or a part of a row."""
    made = lift(function, known) if isinstance(function, Opaque) else function
    return not any(isinstance(part, Apply) for part in walk(made.body))


def _without(place: int, inside: Inside, count: int) -> list[int]:
    """The places of the bindings that are not inside."""
    return [*range(place), *range(place + len(inside), count)]


def read_inside(
    engine: Any, made: Function, known: Shapes, role: str, inside: Inside, begin: int
) -> Function:
    """A callable that reads what is inside, as one that reads the queries for it, if it can."""
    if not inside or len(known) < begin + len(inside) or role == "order_by":
        return made
    if role in ITERATED and _is_read(made, known):
        return made
    whole = made if isinstance(made, Opaque) else made.origins[0]
    for way in range(max(map(len, inside))):
        rows = {begin + n: ways[min(way, len(ways) - 1)] for n, ways in enumerate(inside)}
        found = comprehending.read_inside(engine, whole, known, rows)
        if found is not None:
            return found
    return made


def narrowed(node: plan.Node, kept: Sequence[int], source: plan.Node) -> plan.Node | None:
    """A node over rows with only some of its bindings; None if it reads others."""
    places = {place: Parameter(number) for number, place in enumerate(kept)}
    if isinstance(node, plan.Extend):
        if not places.keys() >= set(node.keep):
            return None
        node = replace(node, keep=tuple([places[place].index for place in node.keep]))
    if any(f.value is None and f.name != "Count" for f in getattr(node, "aggregates", ())):
        return None
    every = {
        f: lift(f, shapes(node.inputs()[0])) if isinstance(f, Opaque) else f
        for f in functions(node)
    }
    if any(not places.keys() >= reads(f.body) for f in every.values()):
        return None

    def narrow(f: Function) -> Function:
        found = every[f]
        row = tuple([places.get(place, Parameter(place)) for place in range(found.parameters)])
        names = tuple([found.names[place] for place in kept if place < len(found.names)])
        body = substitute(found.body, row)
        return replace(found, body=body, names=names, parameters=len(kept), made=None)

    return with_inputs(with_functions(node, narrow), [source])
