"""Tests of the rows of a table that decide if a node above it needs them.

    pipeline where o.kind == "sale"                        kind: {"sale"}
    where o.customer == 7 | index by o.customer            customer: {7}, wherever the query has
                                                           the condition: below or above the join

A discrimination network (`dataflow/discrimination.py`) finds the nodes by them.

Sound:  conditions of the chain are evaluated first, then the tests and keys of the side of a join,
        in the order of the predicate. A key that may raise ends them: its exception must be raised.
Needs:  the terms of the other side cannot raise; else its rows are paired with the rows that the
        tests of this side leave out (`_connect_indexes` in `build.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from optimizer import plan
from optimizer.expr import Expr, Lifted, conjuncts
from optimizer.expressions.knowledge import Shapes, hashable, total
from optimizer.plans.field_values import (
    NO_CONSTANT_TESTS,
    ConstantTests,
    constant_tests,
    find_values,
    first_threshold,
)
from optimizer.plans.properties import bindings, shapes
from optimizer.plans.side_conditions import SideTerm
from reactive.engine.operators.plain import PipelineSource, Side

NO_SIDE: Side = (None, ())


def constant_tests_of(below: PipelineSource, side: Side = NO_SIDE) -> ConstantTests:
    """Return the constant tests in the conditions at the beginning of a chain over a table.

    If the whole chain is conditions, the tests of `side`, a side of a join over it, follow them.
    """
    if not isinstance(below.base, plan.Table):
        return _tests_of_limits(below)
    bodies, of = list(_first_conditions(below.chain)), shapes(below.base)
    parts = [part for body in bodies for part in conjuncts(body)]
    if len(bodies) == len(below.chain):
        bodies += _tests_of_side(side, of)
    if not below.chain:
        parts += [part for term in first_tests(side, of) for part in conjuncts(term.function.body)]
    found = constant_tests(bodies, of)
    found.wants = {each.field: each.values for each in find_values(parts, of)}
    return found


def first_tests(side: Side, of: Shapes) -> list[SideTerm]:
    """Return the tests of a row among the terms of a side, up to a term that may raise."""
    written, terms = side
    if written is not None:
        return []
    first = takewhile(lambda term: term.is_guard or total(term.function.body, of), terms)
    return [term for term in first if not term.is_key and not term.is_guard]


def _tests_of_limits(below: PipelineSource) -> ConstantTests:
    """Return the limit in the first condition of a chain over rows that are not of a table."""
    first = next(_first_conditions(below.chain), None)
    threshold = None if first is None else first_threshold(first, bindings(below.base))
    if threshold is None:
        return NO_CONSTANT_TESTS
    found = ConstantTests({})
    found.threshold = threshold
    return found


def _first_conditions(chain: Iterable[plan.Node]) -> Iterator[Expr]:
    """Yield the conditions at the beginning of a chain, up to a callable that is not lifted."""
    for node in chain:
        if not (isinstance(node, plan.Where) and isinstance(node.predicate, Lifted)):
            return
        yield node.predicate.body


def _tests_of_side(side: Side, of: Shapes) -> Iterator[Expr]:
    """Yield the tests of a row that decide if it takes part in a join, before a key may raise.

    A key without a hash does not count: its row is paired with all rows, and the tests drop the
    pairs. This does not hold for a written key, which raises.
    """
    written, terms = side
    if written is not None and not (
        isinstance(written, Lifted) and total(written.body, of) and hashable(written.body, of)
    ):
        return
    for term in terms:
        if not term.is_key:
            yield term.function.body
        elif not term.is_guard and not total(term.function.body, of):
            return
