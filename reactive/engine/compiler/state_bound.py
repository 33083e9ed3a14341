"""Bounds of state: the operators over streams whose state grows with the events, and the remedies.

    select, where, lookup                    keep no event
    group_by(lambda c, w: (c.page, w))       groups close below the watermark
    group_by("page")                         not bounded: pages may always be new
    join(views, on=... <= timedelta(...))    both sides are dropped below the watermark of the other
    join(table, on="page")                   not bounded: the table may change; lookup is

An operator that reads no stream is left out, and so is what a view, which the query reads, does.

Sound:  an operator counts as bounded if its state is constant, or dropped by `closing.py`; the rows
        of a view are its result, and count for none.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.callables.source import Place
from optimizer.errors import UnboundedStateWarning
from optimizer.expr import origins
from optimizer.plans.explain import StateBound, headline, join_headline
from optimizer.plans.nodes.groups import keeper
from optimizer.plans.properties import nodes, reads_stream
from optimizer.plans.side_conditions import AnyJoin
from optimizer.traverse import functions
from reactive.engine.operators import accumulators, closing, closing_asof, frontiers, statistics

if TYPE_CHECKING:
    from reactive.engine.compiler.queries import Queries

CONSTANT = (
    *(accumulators.CountAccumulator, accumulators.SumAccumulator, accumulators.AvgAccumulator),
    *(statistics.VarianceAccumulator, statistics.TruthAccumulator),
)
"""Accumulators whose size does not depend on the number of rows."""
STATELESS = (
    *(plan.Table, plan.Values, plan.Empty, plan.View, plan.Shared, plan.Where, plan.Select),
    *(plan.Extend, plan.SelectMany, plan.Unnest, plan.UnionAll, plan.Negate, plan.Previous),
    plan.Lookup,
)
"""Nodes that keep no rows of a stream, or only those of the last commit."""
WITHOUT_WINDOW = (
    "put a window of the events' time into the key, as in "
    "window(tumbling(minutes=1), at=...).group_by(lambda c, w: (c.page, w))"
)
WITHOUT_TIME = "keep the time of the events, or a window of it, in the rows"
WITH_TABLE = "lookup(...) pairs each event with the rows as of its commit, and keeps no event"
WITHOUT_INTERVAL = (
    "bound the times of the two streams by each other, such as "
    "on=lambda l, r: l.key == r.key and abs(l.at - r.at) <= timedelta(minutes=5)"
)
WITH_TOLERANCE = "tolerance=... says how far ahead a partner may be"
WITH_WATERMARK = "when_closed(...) emits rows that change no more, and keeps none of them"
OTHERWISE = "aggregate windows of the events' time, or subscribe to the events before this operator"


def state_bound_of(root: plan.Node) -> StateBound:
    """Return the operators of an optimized plan whose state is not bounded, and the remedies."""
    found = []
    for node in nodes(root, until=lambda each: isinstance(each, plan.View)):
        remedy = _remedy(node) if reads_stream(node) else None
        if remedy is not None:
            found.append((_describe(node), remedy))
    return StateBound(tuple(dict.fromkeys(found)))


def _describe(node: plan.Node) -> str:
    """Return a node in words, with the place of its first callable."""
    text = join_headline(node) if isinstance(node, AnyJoin) else headline(node)
    places = (each.place for each in origins(*functions(node)) if each.place is not None)
    place = next(places, None)
    return text if place is None or str(place) in text else f"{text} ({place})"


def _remedy(node: plan.Node) -> str | None:
    """Return what would bound the state of a node over a stream; None if it is bounded."""
    match node:
        case plan.Aggregate(_, None, aggregates):
            is_constant = all(isinstance(a.accumulator, CONSTANT) for a in aggregates)
            return None if is_constant else WITHOUT_WINDOW
        case plan.Distinct() | plan.SetOperation():
            return None if closing.closing_of(node) is not None else WITHOUT_TIME
        case plan.Aggregate():
            return None if closing.closing_of(node) is not None else WITHOUT_WINDOW
        case plan.AsofJoin():
            return _remedy_of_asof(node)
        case plan.Reduce(_, _, function):
            is_bounded = getattr(keeper(function), "is_bounded", False)
            return None if is_bounded else OTHERWISE
        case plan.Product() | plan.Join() | plan.SemiJoin() | plan.AntiJoin() | plan.OuterJoin():
            return _remedy_of_join(node)
        case _:
            return None if isinstance(node, STATELESS) else OTHERWISE


def _remedy_of_asof(node: plan.AsofJoin) -> str | None:
    if closing_asof.asof_frontiers(node) is not None:
        return None
    if not (reads_stream(node.left) and reads_stream(node.right)):
        return WITH_TABLE
    is_ahead = node.direction != "backward" and node.tolerance is None
    return WITH_TOLERANCE if is_ahead else WITHOUT_TIME


def _remedy_of_join(join: AnyJoin) -> str | None:
    if frontiers.retentions_of(join) != frontiers.NO_RETENTION:
        return None
    if any(map(_is_watermark, nodes(join.inputs()[1]))):
        return WITH_WATERMARK
    left, right = map(reads_stream, join.inputs())
    return WITHOUT_INTERVAL if left and right else WITH_TABLE


def _is_watermark(node: plan.Node) -> bool:
    return isinstance(node, plan.Reduce) and hasattr(keeper(node.function), "is_watermark")


def warn_of_state(queries: Queries, query: plan.Node, place: Place) -> None:
    """Warn, at a place, of a query whose state grows with the events of its streams."""
    bound = state_bound_of(queries.optimize(query).plan)
    if not bound:
        message = f"the state of this query grows with the events of its streams\n{bound}"
        kind, shown = UnboundedStateWarning, queries.warned
        warnings.warn_explicit(message, kind, place.file, place.line, registry=shown)
