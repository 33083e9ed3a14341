"""A function of whole relations, which is not read: `a.apply(f, b)`.

    apply(f, a, b)   =   Values(begin) + tagged(a) + tagged(b)   in one group, reduced by f

The group is there even if all relations are empty, and `reduce` does the rest: a call for each
commit that changes an input, and the difference of what it gave before and gives now.

Cost:   of each commit that changes an input, all rows of all inputs, and the call.
Source: [dbsp] definition 3.1, the incremental version of a query: D . Q . I.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Expr,
    Lifted,
    Parameter,
    all_parameters,
    constant,
    one_value,
    row_names,
    tuple_of,
)
from optimizer.plans.nodes import values as literals
from optimizer.plans.properties import bindings
from reactive.api.callables import taken
from reactive.engine.collections.bag import Bag, bag_of

BEGIN = (-1, None)
"""The row that is always there."""


class OfWhole:
    """Hands rows with the number of their relation to a function, as a bag for each relation.

    >>> call = OfWhole(lambda a, b: [len(a), b.count("x")], 2)
    >>> call(None, Bag([(0, "y"), (1, "x"), BEGIN]))
    [1, 1]
    """

    def __init__(self, function: Callable[..., Iterable[Any]], count: int) -> None:
        self._function = function
        self._count = count

    def __call__(self, key: None, rows: Bag[tuple[int, Any]]) -> Iterable[Any]:
        weights: list[dict[Any, int]] = [{} for _ in range(self._count)]
        for (place, row), weight in rows.items():
            if place >= 0:
                weights[place][row] = weight
        return self._function(*map(bag_of, weights))


def applied(function: Callable[..., Iterable[Any]], sources: tuple[plan.Node, ...]) -> plan.Node:
    """The node of what a function gives for some relations."""
    own = taken(function, len(sources), "apply")
    whole = replace(
        own,
        function=OfWhole(own.function, len(sources)),
        parameters=2,
        name=f"apply({own.name}): whole relations, at each change of one",
        identity=("apply", own.identity, len(sources)),
    )
    rows: plan.Node = literals.values([BEGIN])
    for place, source in enumerate(sources):
        rows = plan.UnionAll(rows, _numbered(source, place))
    of_key = plan.Reduce(rows, _function(constant(None), 1), whole)
    return plan.Select(of_key, _function(Parameter(1), 2))


def _numbered(source: plan.Node, place: int) -> plan.Node:
    """The rows of a relation, each as one value, beside its number."""
    count = bindings(source)
    row = one_value(all_parameters(count))
    return plan.Select(source, _function(tuple_of(constant(place), row), count))


def _function(body: Expr, count: int) -> Lifted:
    return Lifted(body, row_names(count), (), count)
