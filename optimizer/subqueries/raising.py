"""Find queries that may raise, and keep them empty while no row needs them.

    where 1 / o.rate > 3                    where 1 / o.rate > 3
      table orders              ->            semi_join
                                                table orders
                                                table customers

Python does not evaluate a query without a row around it, so that it does not raise. So a node that
may raise has rows only while there is such a row.

Source: `error_freedom.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from optimizer import plan
from optimizer.expr import Function, Parameter
from optimizer.expressions.knowledge import Foldable
from optimizer.plans.properties import fact, nodes, of_either_sign
from optimizer.subqueries.error_freedom import (
    NOTHING,
    Kinds,
    RowFacts,
    form,
    forms,
    is_calm,
    is_numeric,
    is_ordered,
    kinds,
    known_of,
)
from optimizer.subqueries.keyed_rows import as_expression, outers
from optimizer.traverse import called, substituted, with_inputs

FOLDS_ANY = frozenset({"Count", "CountDistinct", "Collect"})
FOLDS_ORDERED = frozenset({"Min", "Max"})
FOLDS_NUMBERS = frozenset({"Sum", "Avg"})
ITERABLE = frozenset({tuple, frozenset, str})
GIVEN = (plan.View, plan.Fixpoint, plan.Iterate, plan.Component)
"""Nodes that raise by themselves, whatever their readers are."""


def is_quiet(query: plan.Node, arguments: tuple[Kinds, ...] = ()) -> bool:
    """Return True if a query cannot raise, given the classes of its arguments."""
    if not outers(query):
        return bool(fact(query, "is_quiet", _compute_is_quiet))
    every = nodes(query, until=lambda node: not outers(node))
    return all(
        raises_nothing(node, arguments) if outers(node) else is_quiet(node) for node in every
    )


def is_quiet_beside(query: plan.Node, arguments: tuple[Kinds, ...] = ()) -> bool:
    """Return True if the part of a query that reads its arguments cannot raise.

    The rest raises for all values or for none.
    """
    every = nodes(query, until=lambda node: not outers(node))
    return all(raises_nothing(node, arguments) for node in every if outers(node))


def _compute_is_quiet(node: plan.Node) -> bool:
    """Return True if a node and its inputs raise nothing; rows that are given raise nothing."""
    if isinstance(node, GIVEN):
        return True
    return raises_nothing(node) and all(source.known["is_quiet"] for source in node.inputs())


def raises_nothing(node: plan.Node, arguments: tuple[Kinds, ...] = ()) -> bool:
    """Return True if a node does not raise by itself; its inputs may."""
    if isinstance(node, GIVEN):
        return True
    if not all(
        is_calm(as_expression(f, of.shapes).body, of)
        for f, of in _called_with_facts(node, arguments)
    ):
        return False
    match node:
        case plan.Aggregate(source, _, aggregates):
            return all(_folds(folded, known_of(source, arguments)) for folded in aggregates)
        case plan.OrderBy(source, keys) | plan.Top(source, _, keys):
            return all(_stands(key.function, known_of(source, arguments)) for key in keys)
        case plan.Unnest(source, f) | plan.SelectMany(source, f):
            of = known_of(source, arguments)
            found = kinds(as_expression(f, of.shapes).body, of)
            return bool(found) and all(k in ITERABLE or issubclass(k, Foldable) for k in found)
        case _:
            return not node.facts.raises


def _called_with_facts(
    node: plan.Node, arguments: tuple[Kinds, ...]
) -> Iterator[tuple[Function, RowFacts]]:
    """Iterate over the callables of a node, with the facts about their arguments."""
    if not node.facts.calls:
        return
    every: list[Any] = [forms(source, arguments) for source in node.inputs()]
    for (f, of), (_, given) in zip(called(node), called(node, every), strict=True):
        yield f, RowFacts(of, arguments, given)  # type: ignore[arg-type]


def _folds(folded: plan.Folded, of: RowFacts) -> bool:
    """Return True if an aggregate accepts every value that it may get."""
    if folded.name in FOLDS_ANY:
        return True
    value = Parameter(0) if folded.value is None else as_expression(folded.value, of.shapes).body
    found = form(value, of)
    if folded.skip_none and isinstance(found, frozenset):
        found -= {NOTHING}
    if folded.name in FOLDS_ORDERED:
        return is_ordered(found)
    return folded.name in FOLDS_NUMBERS and bool(found) and is_numeric(found)


def _stands(key: Function, of: RowFacts) -> bool:
    return is_ordered(form(as_expression(key, of.shapes).body, of))


class Gate:
    """Removes all rows of a query while there are no rows around it.

    `open` sets the rows around at the end: they may read arguments of an outer query.
    """

    def __init__(self) -> None:
        self._level = object()
        self._others = plan.Recursive(self._level, 0, "rows", is_set=False)
        self._made: dict[int, plan.Node] = {}
        self._empty: set[int] = set()
        """Nodes that have no rows while there are no rows around."""

    def before(self, query: plan.Node) -> plan.Node:
        """Return a query whose nodes that read no arguments and may raise are gated."""
        for node in nodes(query, until=_needs_no_gate):
            self._take(node)
        return self._made.get(id(query), query)

    def open(self, made: plan.Node, rows: plan.Node) -> plan.Node:
        """Return a plan made of a gated query, with the rows around."""
        return substituted(made, self._level, lambda _: of_either_sign(rows))

    def _take(self, node: plan.Node) -> None:
        """Rebuild a node over gated inputs, and record it if it has no rows while there are none
        around."""
        if _needs_no_gate(node):
            return
        inputs = [self._made.get(id(source), source) for source in node.inputs()]
        if not outers(node) and not raises_nothing(node):
            inputs = [self._gate(source) for source in inputs]
        made = with_inputs(node, inputs)
        self._made[id(node)] = made
        if inputs and id(inputs[0]) in self._empty and _has_no_more(node):
            self._empty.add(id(made))

    def _gate(self, source: plan.Node) -> plan.Node:
        """Return the source, empty while there are no rows around; itself if that holds already."""
        if id(source) in self._empty:
            return source
        made = plan.SemiJoin(source, self._others, plan.Match())
        self._empty.add(id(made))
        return made


def _needs_no_gate(node: plan.Node) -> bool:
    return isinstance(node, GIVEN) or (not outers(node) and is_quiet(node))


def _has_no_more(node: plan.Node) -> bool:
    """Return True if a node has rows only if its first input has."""
    match node:
        case plan.Aggregate(_, key):
            return key is not None
        case plan.OuterJoin(kind=kind):
            return kind == "left"
        case _:
            return not isinstance(node, plan.Union | plan.UnionAll)


# A simpler query with the same existence of rows.


def simplify_for_existence(query: plan.Node) -> plan.Node:
    """Return the query without nodes that do not change if it has rows."""
    while True:
        match query:
            case plan.Distinct(source) | plan.OrderBy(source, _, None, 0):
                query = source
            case plan.Select(source) | plan.Extend(source) if raises_nothing(query):
                query = source
            case _:
                return query
