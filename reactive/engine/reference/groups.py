"""Groups and aggregates evaluated from scratch: each as one would write it for a list of values.

A value comes with how often it is there: less than never where rows of negative weight have it, as
below `negate`. Sums and counts add that up; other aggregates are of the values that are there. Sums
are exact, whatever the order of the values, and rounded once: floats as `math.fsum` does it,
decimals not at all.

Cost: one call per row and aggregate, whatever the weight; the user's own aggregates one per copy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from typing import Any

from optimizer import plan
from optimizer.expressions.attempts import Fault
from optimizer.plans.costs import Cost
from reactive.engine.collections import bag as bags
from reactive.engine.collections.order import placed
from reactive.engine.collections.zset import DECIMAL_NAN, NAN, Pair, Row, canonical, is_nan, repeat
from reactive.engine.operators import accumulators, tolerant
from reactive.engine.reference.bags import Bag, added, by_key, caller, once, there
from reactive.engine.runtime.interrupts import reraise_asynchronous

EXACTLY = Context(prec=4_000_000, Emax=1_050_000, Emin=-1_050_000, traps=[Inexact])
"""For decimals, of which more digits are refused."""
Values = list[tuple[Any, int]]


def grouped(node: plan.Aggregate, rows: Bag) -> Bag:
    """One row per group: its key, then each aggregate."""
    return grouping(node)(rows)


def grouping(node: plan.Aggregate) -> Callable[[Bag], Bag]:
    """Return a function that makes groups of rows. Making it takes longer than calling it."""
    key = None if node.key is None else caller(node.key, node.input)
    make = row_maker(node)

    def of(rows: Bag) -> Bag:
        groups = {(): list(rows.items())} if key is None else by_key(key, rows.items())
        made = [make(name, group) for name, group in groups.items()]
        return once(row for row, is_there in made if is_there)

    return of


def row_maker(node: plan.Aggregate) -> Callable[[Any, list[Pair]], tuple[Row, bool]]:
    """Return a function that makes the row of a group of its key and rows, and says whether the
    group is there."""
    values = [None if a.value is None else caller(a.value, node.input) for a in node.aggregates]
    folds = [(each.accumulator, of) for each, of in zip(node.aggregates, values, strict=True)]
    has_key = node.key is not None

    def row_of(key: Any, group: list[Pair]) -> tuple[Row, bool]:
        if has_key and _count(group) <= 0:
            return None, False
        results = [
            _accumulator(accumulator, group if of is None else [(of(r), n) for r, n in group])
            for accumulator, of in folds
        ]
        row = (key, *results) if has_key else tuple(results)
        return row if len(row) > 1 else row[0], True

    return row_of


def _accumulator(accumulator: Any, values: Values) -> Any:
    """An aggregate of some values."""
    if accumulator.skip_none:
        values = [pair for pair in values if pair[0] is not None]
    if accumulator.cost is not Cost.ONE:
        values = _there(values)
    match accumulator:
        case accumulators.CountAccumulator():
            return _count(values)
        case accumulators.SumAccumulator():
            return total(values)
        case accumulators.AvgAccumulator():
            return canonical(total(values) / _count(values)) if _count(values) > 0 else None
        case accumulators.MinAccumulator():
            return _least(dict(values))
        case accumulators.MaxAccumulator():
            return _greatest(dict(values))
        case accumulators.CountDistinctAccumulator():
            return len(dict(values))
        case accumulators.CollectAccumulator():
            return _collected(values)
        case accumulators.UserAccumulator():
            return _finished(accumulator, values)
        case accumulators.MonoidAccumulator():
            return _combined(accumulator, values)
        case tolerant.Tolerant(inner):
            return _tolerated(inner, values)
        case _:
            raise TypeError(f"cannot evaluate aggregate {accumulator!r}")


def _count(values: Values) -> int:
    return sum(times for _, times in values)


def _least(values: Iterable[Any]) -> Any:
    """NaN comes after all numbers."""
    found = [value for value in values if not is_nan(value)]
    return min(found, key=placed) if found else _nan_of(values)


def _greatest(values: Iterable[Any]) -> Any:
    odd = _nan_of(values)
    return odd if odd is not None else max(values, default=None, key=placed)


def _nan_of(values: Iterable[Any]) -> Any:
    """The NaN among some values, that of floats before that of decimals; or None."""
    odd = [value for value in values if is_nan(value)]
    return NAN if NAN in odd else next(iter(odd), None)


def _collected(values: Values) -> bags.Bag[Any]:
    found: Counter[Any] = Counter()
    for value, times in values:
        found[value] += times
    return bags.Bag(found)


def _there(values: Values) -> Values:
    """The values of positive weight, where some come with a negative one."""
    if all(times > 0 for _, times in values):
        return values
    return list(there(added(values)).items())


def _finished(of: accumulators.UserAccumulator, values: Values) -> Any:
    """What there is too little of is removed, after all that is there."""
    state = of.initial
    for value in repeat(values):
        state = of.plus.function(state, value)
    for value in repeat((value, -times) for value, times in values):
        state = of.minus.function(state, value)
    return canonical(state if of.finish is None else of.finish.function(state))


def _combined(of: accumulators.MonoidAccumulator, values: Values) -> Any:
    state = of.initial
    for value in repeat(values):
        state = of.combine.function(state, value)
    return canonical(state if of.finish is None else of.finish.function(state))


def _tolerated(inner: Any, values: Values) -> Any:
    """An aggregate of the user's own, or what its functions raise."""
    try:
        found = _accumulator(inner, values)
        hash(found)
    except Exception as error:
        reraise_asynchronous(error)
        return Fault.of(error)
    return found


def total(values: Values) -> Any:
    """The sum of values, of one kind after the other; of none it is 0.

    >>> total([(Decimal("0.1"), 1), (Decimal("1e30"), 1), (Decimal("-1e30"), 1), (2, 0)])
    Decimal('0.1')
    """
    kinds: dict[Any, Values] = {}
    for value, times in values:
        kinds.setdefault(_kind(value), []).append((value, times))
    numbers = kinds.keys() <= {int, float, Fraction}
    if numbers and float in kinds:
        return _float_sum(kinds)
    integers = _integer_sum(kinds.pop(int, []))
    if integers and Decimal in kinds:  # exactly, too
        kinds[Decimal], integers = [*kinds[Decimal], (Decimal(integers), 1)], 0
    parts = [canonical(SUMS.get(kind, _plain_sum)(some)) for kind, some in kinds.items()]
    special = {str(part): part for part in parts if isinstance(part, Decimal) and _is_odd(part)}
    if special:
        return next(iter(special.values()))
    return _together([*parts, *([integers] if integers or not parts else [])])


def _kind(value: Any) -> type:
    """The class by which values are summed; those made from numbers count as these."""
    for kind in (int, float, Decimal, Fraction):
        if isinstance(value, kind):
            return kind
    return type(value)


def _integer_sum(values: Values) -> int:
    return sum(int(value) * times for value, times in values)


def _float_sum(kinds: dict[Any, Values]) -> float:
    """The sum of numbers of which some are floats, rounded once."""
    floats = kinds[float]
    odd = {str(float(value)) for value, _ in floats if not math.isfinite(value)}
    if odd:
        return NAN if len(odd) > 1 or "nan" in odd else float(odd.pop())
    if kinds.keys() == {float} and all(times == 1 for _, times in floats):
        try:
            return math.fsum(value for value, _ in floats)
        except OverflowError:
            pass  # on the way, or at its end
    exact = sum((Fraction(v) * n for some in kinds.values() for v, n in some), Fraction())
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _decimal_sum(values: Values) -> Decimal:
    odd = {str(value): value for value, _ in values if _is_odd(value)}
    if odd:
        return next(iter(odd.values())) if len(odd) == 1 else DECIMAL_NAN
    result = Decimal()
    for value, times in values:
        result = EXACTLY.add(result, EXACTLY.multiply(value, Decimal(times)))
    return result


def _is_odd(value: Decimal) -> bool:
    return not value.is_finite()


def _plain_sum(values: Values) -> Any:
    return _together(value if times == 1 else value * times for value, times in values)


def _together(parts: Iterable[Any]) -> Any:
    result, *others = parts
    for part in others:
        result = result + part
    return canonical(result)


SUMS: dict[type, Callable[[Values], Any]] = {
    float: lambda values: _float_sum({float: values}),
    Decimal: _decimal_sum,
}
