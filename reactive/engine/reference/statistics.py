"""Statistics of values from scratch, for `verify()`: by full sorts and sums of fractions."""

from __future__ import annotations

from collections import Counter
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import inf, isfinite, isinf
from typing import Any

from reactive.engine.collections.distinct_sketch import (
    BITS,
    estimate_of_ranks,
    hash_of_value,
    register_bits,
)
from reactive.engine.collections.order import sort_key
from reactive.engine.collections.sorted_copies import value_key
from reactive.engine.collections.zset import NAN, canonical
from reactive.engine.operators import statistics as kinds


def evaluate_statistic(of: kinds.StatisticAccumulator, values: Counter[Any]) -> Any:
    """Return the aggregate of values with their weights.

    Weights are positive, but for aggregates that are linear in the rows.
    """
    match of:
        case kinds.VarianceAccumulator():
            return _variance(of, values)
        case kinds.TruthAccumulator():
            return _truth(of, values)
        case kinds.QuantileOfOrder(find=find):
            return canonical(find([*values.elements()]))
        case kinds.QuantileAccumulator():
            return _quantile(of, sorted(values.elements(), key=sort_key))
        case kinds.ExtremeByAccumulator():
            return _extreme(of, list(values))
        case kinds.MostCommonAccumulator(most=most):
            by_count = sorted(values.items(), key=lambda pair: (-pair[1], value_key(pair[0])))
            if most is not None:
                return tuple(by_count[:most])
            return by_count[0][0] if by_count else None
        case kinds.JoinTextsAccumulator():
            return _joined(of, values)
        case kinds.ApproxCountAccumulator(error=error):
            return _estimate(values, register_bits(error))
        case _:
            raise TypeError(f"cannot evaluate aggregate {of!r}")


def _variance(of: kinds.VarianceAccumulator, values: Counter[Any]) -> float | None:
    count = values.total()
    if count <= of.freedom:
        return None
    if any(times for value, times in values.items() if not isfinite(value)):
        return NAN
    exact = [(Fraction(value), times) for value, times in values.items() if isfinite(value)]
    mean = sum((times * value for value, times in exact), Fraction()) / count
    squares = sum((times * (value - mean) ** 2 for value, times in exact), Fraction())
    found = squares / (count - of.freedom)
    try:
        return _square_root(found) if of.is_root else float(found)
    except OverflowError:
        return inf


def _truth(of: kinds.TruthAccumulator, values: Counter[Any]) -> bool | None:
    true = sum(times for value, times in values.items() if value)
    false = values.total() - true
    if true <= 0 and false <= 0:
        return None
    return true > 0 if of.is_any else false <= 0


def _quantile(of: kinds.QuantileAccumulator, values: list[Any]) -> Any:
    if not values:
        return None
    place, part = divmod(of.at * (len(values) - 1), 1)
    high = values[place + 1] if part else values[place]
    return canonical(_between(values[place], high, Fraction(part), of.interpolation))


def _between(low: Any, high: Any, part: Fraction, how: kinds.Interpolation) -> Any:
    """Return the value at a part of the way between two values, in exact numbers."""
    if how in ("lower", "higher", "nearest"):
        is_high = how == "higher" or (how == "nearest" and part > Fraction(1, 2))
        return high if is_high else low
    if how == "midpoint" and part:
        part = Fraction(1, 2)
    if isinstance(low, int | float) and isinstance(high, int | float):
        if not part or low == high:
            return float(low)
        if isinf(low) or isinf(high):
            return low + high * float(part)
        return float((1 - part) * Fraction(low) + part * Fraction(high))
    if not part or low == high:
        return kinds.interpolate(low, high, part, how)  # refuses texts
    if isinstance(low, Fraction | int):
        return low + (high - low) * part
    return low + (high - low) * part.numerator / part.denominator


def _square_root(value: Fraction) -> float:
    """Return the root, by more digits than a float has."""
    with localcontext(Context(prec=400, Emax=9_999, Emin=-9_999)):
        return float((Decimal(value.numerator) / Decimal(value.denominator)).sqrt())


def _extreme(of: kinds.ExtremeByAccumulator, pairs: list[Any]) -> Any:
    if of.skips_places:
        pairs = [pair for pair in pairs if pair[0] is not None]
    if not pairs:
        return None
    best = (max if of.is_greatest else min)(sort_key(pair[0]) for pair in pairs)
    return min((pair[1] for pair in pairs if sort_key(pair[0]) == best), key=value_key)


def _joined(of: kinds.JoinTextsAccumulator, pairs: Counter[Any]) -> str | None:
    if of.skip_none:
        pairs = Counter({pair: n for pair, n in pairs.items() if pair and pair[1] is not None})
    in_order = sorted(pairs.elements(), key=lambda pair: (sort_key(pair[0]), value_key(pair[1])))
    texts = [text for _, text in in_order]
    return of.separator.join(texts[::-1] if of.is_descending else texts) if texts else None


def _estimate(values: Counter[Any], bits: int) -> int:
    """Return the estimate by the greatest rank of each register."""
    width = BITS - bits
    counts: Counter[tuple[int, int]] = Counter()
    for value, times in values.items():
        register, rest = divmod(hash_of_value(value), 1 << width)
        counts[register, width - rest.bit_length() + 1] += times
    greatest = [0] * (1 << bits)
    for (register, rank), times in counts.items():
        if times > 0:
            greatest[register] = max(greatest[register], rank)
    ranks = Counter(greatest)
    return estimate_of_ranks([ranks[rank] for rank in range(width + 2)])
