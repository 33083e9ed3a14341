"""What aggregates show of groups whose values are in lists: a look at each value, and no state.

Sums of floats are `math.fsum`, sums of integers `sum`, which are what running sums show. Whether
all values are of one class is seen in one pass over those of all groups. Everything else is added
up by the accumulator of the aggregate.
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
"""What is shown of each of some groups."""
PLAIN = frozenset({int, str, tuple})
"""Classes of values of which `min` and `max` are what is wanted."""


def totals_of(node: plan.Aggregate) -> Callable[[dict[Any, Values]], list[Any]]:
    """What makes the rows of an aggregate from the values of its groups.

    Of each row a group has the value, or a tuple of the values, of the aggregates that are no
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
        return rows_of(columns)

    return rows


def rows_of(columns: Sequence[Sequence[Any]]) -> list[Any]:
    """The rows of an aggregate, from its key and what it shows."""
    return list(columns[0]) if len(columns) == 1 else list(zip(*columns, strict=True))


def totals(accumulator: Any, groups: list[Values], kinds: set[type] | None = None) -> list[Any]:
    """What an aggregate shows of each group; `kinds` are the classes of all values, if known."""
    if kinds is None:
        kinds = set(map(type, chain.from_iterable(groups)))
    if accumulator.skip_none and type(None) in kinds:
        groups = [[value for value in values if value is not None] for values in groups]
        kinds = kinds - {type(None)}
    quick, careful = _quick(accumulator, kinds), _careful(accumulator)
    if quick is None:
        return careful(groups)
    try:
        return quick(groups)
    except (OverflowError, ValueError):  # infinities, or a sum that is too large on its way
        return careful(groups)


def _quick(accumulator: Any, kinds: set[type]) -> Show | None:
    match accumulator:
        case SumAccumulator() if kinds == {int}:
            return lambda groups: list(map(sum, groups))
        case SumAccumulator() if kinds == {float}:
            return _float_sums
        case AvgAccumulator() if kinds == {float}:
            return lambda groups: list(map(_float_mean, groups))
        case AvgAccumulator() if kinds == {int}:
            return lambda groups: list(map(_mean, groups))
        case MinAccumulator() if kinds and kinds <= PLAIN:
            return lambda groups: [min(values, default=None) for values in groups]
        case MaxAccumulator() if kinds and kinds <= PLAIN:
            return lambda groups: [max(values, default=None) for values in groups]
        case _:
            return None


def _float_sums(groups: list[Values]) -> list[Any]:
    found = list(map(fsum, groups))
    if all(groups) and not any(map(ne, found, found)):
        return found
    return [canonical(total) if some else 0 for total, some in zip(found, groups, strict=True)]


def _float_mean(values: Values) -> Any:
    return canonical(fsum(values) / len(values)) if values else None


def _mean(values: Values) -> Any:
    return sum(values) / len(values) if values else None


def _careful(accumulator: Any) -> Show:
    def show(values: Values) -> Any:
        state = accumulator.zero()
        for value in values:
            state = accumulator.add(state, value, 1)
        return accumulator.result(state)

    return lambda groups: list(map(show, groups))
