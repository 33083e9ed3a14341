"""Find the rows that have a value through an index of a table.

    where o.customer == 7                   look up 7 --+
    where o.customer == 8           ->      look up 8 --+--  index of orders by customer
    where o.customer == 9                   look up 9 --+

Needs:  a stored table; what is asked first is an equation of a field and a constant.
Pays:   where many others look up the same field: 1,000 views of one value each, 28 us a change.
"""

from __future__ import annotations

from typing import Any

from optimizer import plan
from optimizer.expr import Constant, Lifted, Operation, conjunction, conjuncts
from optimizer.expressions.knowledge import hashable
from optimizer.plans.constant_tests import constant_tests
from optimizer.plans.properties import shapes
from optimizer.plans.side_conditions import SideTerm
from reactive.compiler.choices.run_pipeline import sink_of
from reactive.compiler.chooser import Asking, Chooser
from reactive.compiler.physical import Index, Lookup, Op, Physical, Pipeline, Scan
from reactive.operators.pipelines import PipelineSource
from reactive.operators.plain import Side


def look_up(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    below = chooser.chain_of(node)
    wanted = None if below is None else _wanted(below)
    if wanted is None:
        return None
    value, key, field, rest = wanted
    first = rest.base
    (table,) = first.inputs()
    side: Side = (None, (SideTerm(key, is_key=True),))
    index = Index(first, Scan(table, Op(table)), PipelineSource((), table), side, 1)
    if not chooser.many_readers(index, field):
        return None
    return _look_up(node, rest, Lookup(first, index, value))


def _look_up(node: plan.Node, rest: PipelineSource, source: Lookup) -> Asking[Physical]:
    yield from ()
    return source if node is rest.base else Pipeline(node, source, rest, sink_of(node, rest))


def _wanted(below: PipelineSource) -> tuple[Any, Lifted, Any, PipelineSource] | None:
    """The value that a chain over a stored table wants of a field, the field as a key, and as
    constant tests have it, and the rest of the chain; None where that is not the first that is
    asked of a row."""
    base, chain = below.base, below.chain
    if not (isinstance(base, plan.Table) and base.stored and chain):
        return None
    first = chain[0]
    if not (isinstance(first, plan.Where) and isinstance(first.predicate, Lifted)):
        return None
    test = first.predicate
    equation, *others = conjuncts(test.body)
    match equation:
        case Operation("==", (field, Constant(value))):
            found = constant_tests([equation], shapes(base))
        case _:
            return None
    if len(found) != 1 or not hashable(field, shapes(base)):
        return None
    rest = chain[1:]
    if others:
        first = plan.Where(base, test.with_body(equation))
        rest = (plan.Where(first, test.with_body(conjunction(tuple(others)))), *rest)
    return value, test.with_body(field), next(iter(found)), PipelineSource(rest, first)
