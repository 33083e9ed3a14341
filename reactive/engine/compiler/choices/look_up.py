"""Find the rows of one value, of several values, or of a range, by an index of a table.

    where o.customer == 7                     look up 7 --------+
    where o.qty > 3 and o.customer == 8       look up 8 --------+--  index of orders by customer
    where o.customer in (7, 9)                look up 7 or 9 ---+

    where o.amount > 100                      look up above 100  --  ordered index by amount

Needs:  a stored table; a field compared with constants, such that earlier conditions do not raise
        (`optimizer.plans.field_values`), or not for rows whose other fields have certain classes,
        which the index checks.
Pays:   if many other views look up the same field: 1,000 views of one value each, 28 us a change.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import (
    Call,
    Expr,
    First,
    Lifted,
    SlotValue,
    conjunction,
    conjuncts,
    constant,
)
from optimizer.plans import side_conditions
from optimizer.plans.field_paths import path_expression
from optimizer.plans.field_values import AnyOf, Between, FieldValues, Needs, find_values
from optimizer.plans.properties import shapes
from optimizer.plans.side_conditions import SideTerm
from reactive.engine.collections.index import Range
from reactive.engine.collections.zset import UnorderedError, family_of
from reactive.engine.compiler.choices.run_pipeline import sink_of
from reactive.engine.compiler.chooser import Asking, Candidate, Chooser
from reactive.engine.compiler.physical import (
    Lookup,
    Op,
    Physical,
    PhysicalIndex,
    PhysicalRangeIndex,
    Pipeline,
    Scan,
)
from reactive.engine.operators import join
from reactive.engine.operators.plain import LINEAR, PipelineSource, Side


def look_up(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    """Return how to plan `node` over the best index for its first test; None without an index.

    The index and field that were chosen are appended to `chooser.looked_up`.
    """
    below = chooser.chain_of(node)
    found = None if below is None else _first_test(below)
    if below is None or found is None:
        return None
    candidates, places = [], []
    for what in find_values(conjuncts(found.body), shapes(below.base)):
        index = _plan_field_index(below.base, found, what)
        if index is not None:
            candidates.append(Candidate(_rank_lookup(what), index, what.field))
            places.append(what)
    best = chooser.best_of(tuple(candidates))
    if best is None:
        return None
    what, index = places[best], candidates[best].index
    chooser.looked_up.append((index, what.field))
    rest = _rest(below, found, what)
    return _plan_lookup(node, rest, Lookup(rest.base, index, what.values, Op(rest.base)))


def _plan_lookup(node: plan.Node, rest: PipelineSource, source: Lookup) -> Asking[Physical]:
    """Return the plan of `node` over a look-up: the rest of its chain, and its sink."""
    yield from ()
    if isinstance(node, LINEAR):
        return Pipeline(node, source, rest, None) if rest.chain else source
    return Pipeline(node, source, rest, sink_of(node, rest))


def _first_test(below: PipelineSource) -> Lifted | None:
    """Return the condition at the start of a chain over a stored table; None if it has none."""
    base, chain = below.base, below.chain
    if not (isinstance(base, plan.Table) and base.stored and chain):
        return None
    first = chain[0]
    is_read = isinstance(first, plan.Where) and isinstance(first.predicate, Lifted)
    return first.predicate if is_read else None  # type: ignore[attr-defined]


def _rank_lookup(what: FieldValues) -> int:
    """Return the rank of a look-up: one value 3, several 2, a range with both ends 1, else 0."""
    match what.values:
        case AnyOf():
            return 2
        case Between(None, _) | Between(_, None):
            return 0
        case Between():
            return 1
        case _:
            return 3


def _rest(below: PipelineSource, test: Lifted, what: FieldValues) -> PipelineSource:
    """Return the rest of a chain, over the part of the condition that is looked up."""
    parts, rest = conjuncts(test.body), below.chain[1:]
    others = tuple(part for place, part in enumerate(parts) if place not in what.places)
    has_others = isinstance(what.values, Between) or bool(what.needs)
    asked = parts[: what.asked] if has_others else tuple(parts[place] for place in what.places)
    first = plan.Where(below.base, test.with_body(conjunction(asked)))
    if others:
        rest = (plan.Where(first, test.with_body(conjunction(others))), *rest)
    return PipelineSource(rest, first)


def _needed(needs: Needs) -> tuple[Expr, ...]:
    """Return expressions that raise for a row if a field cannot be read or has another class."""
    found = []
    for field, classes in sorted(needs.items(), key=str):
        read = path_expression(field)
        of = (read, constant(classes))
        found.append(read if classes is None else Call(constant(join.of_classes), of))
    return tuple(found)


def _is_of_one_family(values: Between) -> bool:
    """Return True if the ends of a range have a common order."""
    try:
        ends = [
            end.value if isinstance(end, SlotValue) else end for end in (values.low, values.high)
        ]
        return len({family_of(end) for end in ends if end is not None}) == 1
    except UnorderedError:
        return False


def _plan_field_index(
    table: plan.Node, test: Lifted, what: FieldValues
) -> PhysicalIndex | PhysicalRangeIndex | None:
    """Return the index of a table by a field; None for a range whose ends have no common order.

    Rows have no key if an earlier condition may raise for the classes of their other fields.
    """
    source, below = Scan(table, Op(table)), PipelineSource((), table)
    needs, field = _needed(what.needs), path_expression(what.field)
    by = test.with_body(First(needs, field) if needs else field)
    if isinstance(what.values, Between):
        if not _is_of_one_family(what.values):
            return None
        span, in_order = side_conditions.Span(by, by), Range("point", "interval")
        return PhysicalRangeIndex(table, source, below, (), 1, span, in_order)
    side: Side = (None, (SideTerm(by, is_key=True),))
    return PhysicalIndex(table, source, below, side, 1)
