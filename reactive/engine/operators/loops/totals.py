"""Results of aggregates for groups whose values are lists, without a state.

Sums of floats use `math.fsum`, sums of integers `sum`, with the same results as running sums. One
pass over all values finds their classes. Other values are added by the accumulator of the
aggregate.

State:  none.
Cost:   one look at each value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from math import fsum
from operator import itemgetter, ne
from typing import Any

from optimizer import plan
from reactive.engine.collections.zset import canonical
from reactive.engine.operators.accumulators import (
    AvgAccumulator,
    CountAccumulator,
    MaxAccumulator,
    MinAccumulator,
    SumAccumulator,
)

Values = list[Any]
Show = Callable[[list[Values]], list[Any]]
"""Returns the result of each group."""
PLAIN = frozenset({int, bool, str})
"""Classes whose values `min` and `max` compare correctly, as they compare tuples of them."""


def totals_of(node: plan.Aggregate) -> Callable[[dict[Any, Values]], list[Any]]:
    """Return the function that computes the rows of an aggregate from the values of its groups.

    A group has one entry per row: the value, or the tuple of values, of the aggregates except
    counts.
    """
    accumulators = [a.accumulator for a in node.aggregates]
    valued = [a for a in accumulators if not isinstance(a, CountAccumulator)]
    is_one = len(valued) == 1

    def rows(groups: dict[Any, Values]) -> list[Any]:
        shown = iter(range(len(valued)))
        columns: list[Sequence[Any]] = [] if node.key is None else [list(groups)]
        for accumulator in accumulators:
            if isinstance(accumulator, CountAccumulator):
                columns.append(list(map(len, groups.values())))
                continue
            place = next(shown)
            every: Iterable[Values] = groups.values()
            if not is_one:
                every = [list(map(itemgetter(place), values)) for values in every]
            columns.append(totals(accumulator, list(every)))
        return rows_from_columns(columns)

    return rows


def rows_from_columns(columns: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the rows of an aggregate, from its key and its results."""
    return list(columns[0]) if len(columns) == 1 else list(zip(*columns, strict=True))


def totals(accumulator: Any, groups: list[Values], kinds: set[type] | None = None) -> list[Any]:
    """Return the result of an aggregate for each group; `kinds` are the value classes, if known."""
    if kinds is None:
        kinds = set(map(type, chain.from_iterable(groups)))
    if accumulator.skip_none and type(None) in kinds:
        groups = [[value for value in values if value is not None] for values in groups]
        kinds = kinds - {type(None)}
    if tuple in kinds and _are_ordered(groups):
        kinds = kinds - {tuple} | {int}
    quick, careful = _quick(accumulator, kinds), _careful(accumulator)
    if quick is None:
        return careful(groups)
    try:
        return quick(groups)
    except (OverflowError, ValueError):  # infinities, or a sum that overflows midway
        return careful(groups)


def _quick(accumulator: Any, kinds: set[type]) -> Show | None:
    """Return a fast function for values of the classes `kinds`; None if there is none."""
    match accumulator:
        case SumAccumulator() if kinds == {int}:
            return lambda groups: list(map(sum, groups))
        case SumAccumulator() if kinds == {float}:
            return _float_sums
        case AvgAccumulator() if kinds == {float}:
            return lambda groups: list(map(_float_mean, groups))
        case AvgAccumulator() if kinds == {int}:
            return lambda groups: list(map(_integer_mean, groups))
        case MinAccumulator() if kinds and kinds <= PLAIN:
            return lambda groups: [min(values, default=None) for values in groups]
        case MaxAccumulator() if kinds and kinds <= PLAIN:
            return lambda groups: [max(values, default=None) for values in groups]
        case _:
            return None


def _are_ordered(groups: list[Values]) -> bool:
    """Return True if all tuples among the values consist of plain values, none of which is NaN."""
    tuples = [value for value in chain.from_iterable(groups) if value.__class__ is tuple]
    kinds = set(map(type, chain.from_iterable(tuples)))
    if float not in kinds:
        return kinds <= PLAIN
    flat = list(chain.from_iterable(tuples))
    return kinds <= PLAIN | {float} and not any(map(ne, flat, flat))


def _float_sums(groups: list[Values]) -> list[Any]:
    """Return the sum of floats of each group; an empty group has 0."""
    found = list(map(fsum, groups))
    if all(groups) and not any(map(ne, found, found)):
        return found
    return [canonical(total) if some else 0 for total, some in zip(found, groups, strict=True)]


def _float_mean(values: Values) -> Any:
    return canonical(fsum(values) / len(values)) if values else None


def _integer_mean(values: Values) -> Any:
    return sum(values) / len(values) if values else None


def _careful(accumulator: Any) -> Show:
    """Return the function that computes each result by the accumulator itself, value by value."""

    def show(values: Values) -> Any:
        state = accumulator.zero()
        for value in values:
            state = accumulator.add(state, value, 1)
        return accumulator.result(state)

    return lambda groups: list(map(show, groups))
