"""Plans of queries that differ in constants: chosen once, and made for the others by substitution.

    look up MARK where o.customer == MARK        a template
    look up "ann" where o.customer == "ann"      the plan of a query of its shape

A few queries of a shape are planned as all are. Then one is planned with marks, values that stand
nowhere else, in the place of constants. Where a mark ends up, the constant of a query goes.

Sound:  only constants that are compared with what is read of rows of tables become marks: no rule
        asks for the value of such a constant, but for its class, and whether it equals another
        one. Both are part of the shape; all other constants are part of it by value. And the plan
        with the constants of the query that it was learned from has to equal the plan of that
        query.
Needs:  a query of a few nodes, without views, whose plan does not depend on what others look up:
        the indexes that it looks up are there.
Pays:   making one more view, of which optimizing and choosing are two thirds.
State:  `MOST_SHAPES` shapes with a plan each; of what queries captured, code and plain values.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from optimizer import plan
from optimizer.callables.captures import meaning
from optimizer.expr import (
    Apply,
    Constant,
    Display,
    Expr,
    Lifted,
    Operation,
    Parameter,
    parts,
    walk,
)
from optimizer.plans.properties import nodes
from optimizer.record import record
from optimizer.rules.read_callables import read_callables
from optimizer.traverse import functions, rebuilt
from reactive.compiler import physical, substitution
from reactive.compiler.physical import Lookup, Physical
from reactive.compiler.query_shape import Shaped, Slot, with_values
from reactive.dataflow.node import Node

LEARNED_AT = 3
"""Queries of a shape that are planned by themselves before a template is made."""
MOST_SHAPES = 256
MOST_TRIES = 2
MOST_KEYS = 32
"""Values of other variables, from which on queries of a shape have too little in common."""
PLAIN_ROWS = (plan.Table, plan.Where, plan.Join, plan.Product, plan.Distinct)
"""Nodes that give rows of tables as they are."""
ALLOWED = (
    *(physical.Scan, physical.Pipeline, physical.Lookup, physical.Index, physical.RangeIndex),
    *(physical.Probe, physical.Keys),
)
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
Planned = tuple[Physical, bool]
"""A physical plan, and whether it stays the same whatever others look up."""
Key = tuple[Hashable, ...]


@dataclass(slots=True)
class Shape:
    """What is known of the queries of a shape.

    `holds` are callables of one of them, for the `id`s in their meaning. The values of variables
    that are `varying` may differ.
    """

    holds: Sequence[Any]
    seen: int = 0
    """Queries that were planned by themselves."""
    varying: tuple[Slot, ...] | None = None
    others: set[Key] = field(default_factory=set)
    """The values of the other variables that there have been."""
    tries: int = 0
    templates: dict[Key, Template] = field(default_factory=dict)


@record
class Template:
    """Makes plans; `literals` are constants that stand in it, `indexes` what it looks up."""

    make: substitution.Make
    literals: frozenset[Any]
    indexes: tuple[Physical, ...]
    nodes: tuple[weakref.ref[Node], ...]

    def made(self, has: Callable[[Node], bool]) -> dict[int, Node] | None:
        """The nodes of its indexes, by the `id` of these, if the graph has all of them."""
        found = [reference() for reference in self.nodes]
        if any(node is None or not has(node) for node in found):
            return None
        return {id(i): node for i, node in zip(self.indexes, found, strict=True) if node}


@record
class Prepared:
    """The plan of a query, and the nodes of the graph that some parts of it are."""

    physical: Physical
    made: dict[int, Node]


class Templates:
    """The templates of a database, by the shapes of queries.

    Parameters
    ----------
    planned: plans a query as it is written.
    node_of: finds the node of an index.
    has: whether the graph has a node still.
    """

    def __init__(
        self,
        planned: Callable[[plan.Node], Planned],
        node_of: Callable[[Any], Node | None],
        has: Callable[[Node], bool],
    ) -> None:
        self._planned = planned
        self._node_of = node_of
        self._has = has
        self._shapes: dict[Hashable, Shape] = {}

    def prepared(self, given: Shaped) -> Prepared | None:
        """The plan of a query, by a template; None if there is none."""
        shape = self._shapes.get(given.shape)
        if shape is None or shape.varying is None:
            return None
        template = shape.templates.get(_fixed(given, shape.varying))
        if template is None:
            return None
        values = [given.values[slot] for slot in shape.varying]
        if not template.literals.isdisjoint(values):
            return None  # a rule may see that it is equal to one
        made = template.made(self._has)
        if made is None:
            shape.templates.clear()
            return None
        return Prepared(template.make((*values, *given.opaques, *template.indexes)), made)

    def learn(self, written: plan.Node, given: Shaped, found: Physical) -> None:
        """A query was planned by itself: the next ones of its shape need not be, perhaps."""
        shape = self._shapes.get(given.shape)
        if shape is None:
            if len(self._shapes) >= MOST_SHAPES:
                self._shapes.clear()
            shape = self._shapes[given.shape] = Shape(given.opaques)
        shape.seen += 1
        if shape.seen < LEARNED_AT or shape.tries >= MOST_TRIES or len(shape.others) > MOST_KEYS:
            return
        if shape.varying is None:
            shape.varying = varying(written, given)
        key = _fixed(given, shape.varying)
        is_new = bool(key) and key not in shape.others
        shape.others.add(key)
        if is_new or key in shape.templates:
            return
        try:
            template, is_final = self._learned(written, given, shape.varying, found)
        except substitution.Unknown:
            template, is_final = None, True
        if template is not None:
            shape.templates[key] = template
        elif is_final:
            shape.tries += 1

    def _learned(
        self, written: plan.Node, given: Shaped, slots: Sequence[Slot], found: Physical
    ) -> tuple[Template | None, bool]:
        """A template, if it makes this plan; and whether there will be none later either."""
        marks = marks_of(given, slots)
        marked, opaques = with_values(written, given, marks)
        general, is_final = self._planned(marked)
        indexes = _looked_up(found)
        references = [self._node_of(index) for index in indexes]
        if not is_final or None in references or not _are_allowed(found) or not found.inputs():
            return None, is_final
        first = len(slots) + len(opaques)
        places = {id(mark): place for place, mark in enumerate(marks.values())}
        places |= {id(opaque): len(slots) + place for place, opaque in enumerate(opaques)}
        places |= {id(index): first + place for place, index in enumerate(_looked_up(general))}
        make = substitution.substitution(general, places)
        values = [given.values[slot] for slot in slots]
        if len(_looked_up(general)) != len(indexes):
            return None, True
        if make((*values, *given.opaques, *indexes)) != found:
            return None, True
        nodes_of = tuple([weakref.ref(node) for node in references if node is not None])
        return Template(make, _literals(marked, marks), indexes, nodes_of), True


def varying(written: plan.Node, given: Shaped) -> tuple[Slot, ...]:
    """The variables that are compared with what is read of rows of tables, and used for no more."""
    marks = marks_of(given, tuple(given.values))
    marked, _ = with_values(written, given, marks)
    compared: set[int] = set()
    used_else: set[int] = set()
    for node in nodes(rebuilt(marked, read_callables)):
        is_plain = isinstance(node, plan.Where | plan.Join) and all(
            isinstance(below, PLAIN_ROWS) for below in nodes(node)
        )
        for function in functions(node):
            if not isinstance(function, Lifted) or any(
                isinstance(part, Apply) for part in walk(function.body)
            ):
                return ()
            for value, is_compared in _constants(function.body):
                (compared if is_compared and is_plain else used_else).add(id(value))
    return tuple(s for s, mark in marks.items() if id(mark) in compared - used_else)


def marks_of(given: Shaped, slots: Sequence[Slot]) -> dict[Slot, Any]:
    """Values that stand nowhere else, of the classes of those of the query; of equal ones the
    same."""
    made: dict[Hashable, Any] = {}
    for number, slot in enumerate(slots):
        value = given.values[slot]
        made.setdefault(meaning(value), _mark(type(value), number))
    return {slot: made[meaning(given.values[slot])] for slot in slots}


def _mark(kind: type, number: int) -> Any:
    text = f"9{number:06}731"
    return text.encode() if kind is bytes else kind(text)


def _constants(expr: Expr, *, is_compared: bool = False) -> Iterator[tuple[Any, bool]]:
    """The values of constants, and whether they are compared with what is read of a row."""
    if isinstance(expr, Constant):
        yield expr.value, is_compared
        return
    operator = expr.operator if isinstance(expr, Operation) else ""
    inner = parts(expr)
    for place, part in enumerate(inner):
        is_other_read = any(_reads(other) for n, other in enumerate(inner) if n != place)
        if operator == "in" and place == 1 and isinstance(part, Display) and is_other_read:
            for item in part.items:
                yield from _constants(item, is_compared=True)
        else:
            compares = operator in COMPARISONS and len(inner) == 2 and is_other_read
            yield from _constants(part, is_compared=compares)


def _reads(expr: Expr) -> bool:
    return any(isinstance(part, Parameter) for part in walk(expr))


def _fixed(given: Shaped, slots: Sequence[Slot]) -> Key:
    """The values of the other variables."""
    if len(slots) == len(given.values):
        return ()
    return tuple([meaning(v) for slot, v in given.values.items() if slot not in slots])


def _literals(marked: plan.Node, marks: Mapping[Slot, Any]) -> frozenset[Any]:
    """The constants of a query that are no marks."""
    own = {id(mark) for mark in marks.values()}
    return frozenset(
        value
        for node in nodes(rebuilt(marked, read_callables))
        for function in functions(node)
        if isinstance(function, Lifted)
        for value, _ in _constants(function.body)
        if isinstance(value, int | str | float | bytes) and id(value) not in own
    )


def _walk(root: Physical) -> Iterator[Physical]:
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(reversed(node.inputs()))


def _looked_up(root: Physical) -> tuple[Physical, ...]:
    """The indexes in which a plan looks values up."""
    return tuple([node.index for node in _walk(root) if isinstance(node, Lookup)])


def _are_allowed(root: Physical) -> bool:
    return all(isinstance(node, ALLOWED) for node in _walk(root))
