"""`reduce` as an aggregate of the rows of each group, whose result is a multiset of rows.

    reduce f by k    ->    rows of   aggregate (the rows, and f of them at the end) by k

So what is kept, and who works it out, is that of aggregates of one's own (`valued.py`).

Sound:  rows with one key have keys that are equal, so that any of them tells which it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import Function, Lifted, Parameter, all_parameters, tuple_of
from optimizer.expressions.text import written
from optimizer.lifting.lift import lift
from optimizer.plans.properties import bindings
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.returned import rows_returned
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.operators.plain import spread
from spark_backend.codec.columns import value_of
from spark_backend.codec.returned import elements, returned
from spark_backend.codec.schema import Typed, Whole
from spark_backend.codec.values import Inexact, Value, any_value, field_of


@dataclass(frozen=True)
class ReducedAccumulator:
    """Keeps the rows of a group; the result is what `function(key, rows)` makes of them.

    `count` is how many bindings a row has.
    """

    key: Function
    function: Function
    count: int

    def __reduce__(self) -> Any:
        return ReducedAccumulator, (self.key, self.function, self.count)

    in_place = True
    over_values = False
    skip_none = False
    check = None

    def zero(self) -> dict[Row, int]:
        return {}

    def add(self, state: dict[Row, int], row: Row, weight: int) -> dict[Row, int]:
        state[row] = state.get(row, 0) + weight
        return state

    def result(self, state: dict[Row, int]) -> Bag[Row]:
        key = canonical(self._key_of(next(iter(state))))
        counts: dict[Row, int] = {}
        for made in rows_returned(self._make(key, Bag(state)), "reduce"):
            row = canonical(made)
            counts[row] = counts.get(row, 0) + 1
        return Bag(counts)

    @cached_property
    def _key_of(self) -> Callable[[Row], Any]:
        return spread(self.key, self.count)

    @cached_property
    def _make(self) -> Callable[[Any, Bag[Row]], Any]:
        return callable_of(self.function)


def as_aggregate(node: plan.Reduce) -> plan.Aggregate:
    """What has for each group the key, and a multiset of the rows that it shows."""
    count = bindings(node.input)
    body = Parameter(0) if count == 1 else tuple_of(*all_parameters(count))
    rows = Lifted(body, tuple(f"row{place}" for place in range(count)), (), count)
    folds = ReducedAccumulator(node.key, node.function, count)
    folded = plan.Folded(written(node.function), folds, rows, _callables(node.function))
    return plan.Aggregate(node.input, node.key, (folded,))


def _callables(function: Function) -> tuple[Opaque, ...]:
    return (function,) if isinstance(function, Opaque) else function.origins


def reduced_result(own: ReducedAccumulator, row: Value) -> Typed:
    """The type of a group's multiset.

    Raises
    ------
    Inexact: nothing says what rows the callable gives.
    """
    parts = [field_of(row, n) for n in range(own.count)] if own.count > 1 else [row]
    given = any_value(_key_type(own.key, parts)), any_value(Whole(Bag, row.of))
    function = lift(own.function) if isinstance(own.function, Opaque) else own.function
    return Whole(Bag, elements(function, given))


def _key_type(key: Function, parts: list[Value]) -> Typed:
    try:
        return value_of(key, parts).of
    except Inexact:
        return returned(key, parts)
