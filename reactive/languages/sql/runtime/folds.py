"""Functions of the collected values of a group, for SQL aggregates without a running state.

`values` are those of a group, or of a window frame, in any order unless stated. They are not None
unless stated.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import itemgetter, xor
from typing import Any, Protocol

from optimizer.record import record
from reactive.engine.collections.sorted_copies import OrderedCopies
from reactive.engine.collections.value_order import item_key, rank_of
from reactive.languages.sql.runtime.intervals import part_of_interval, sum_of_intervals
from reactive.languages.sql.runtime.rows import sort_key_function


def exact(value: Any) -> Any:
    """Return a number whose powers add up without rounding; infinities and NaN as they are."""
    if isinstance(value, int):
        return value
    return Fraction(value) if math.isfinite(value) else float(value)


def variance(count: int, total: Any, squares: Any, less: int) -> float | None:
    """Return the variance, from the sum and the sum of squares; `less` is 1 for a sample.

    >>> variance(3, 6, 14, 1), variance(1, 2, 4, 1)
    (1.0, None)
    """
    if count <= less:
        return None
    return float((squares - _divide_by_count(total * total, count)) / (count - less))


def deviation(count: int, total: Any, squares: Any, less: int) -> float | None:
    """Return the root of the variance of `count` values; None if there is no variance."""
    found = variance(count, total, squares, less)
    return None if found is None else math.sqrt(max(found, 0.0)) if found == found else found


def _divide_by_count(number: Any, count: int) -> Any:
    """Return a quotient: exact of an integer, of a float as a float."""
    return Fraction(number, count) if isinstance(number, int) else number / count


def covariance(count: int, x: Any, y: Any, products: Any, less: int) -> float | None:
    """Return the covariance, `less` 1 for a sample; None of too few rows."""
    if count <= less:
        return None
    return float((products - _divide_by_count(x * y, count)) / (count - less))


def deviations(count: int, x: Any, y: Any, products: Any) -> float | None:
    """Return the sum of the products of the deviations of two numbers; None of nothing."""
    return float(products - _divide_by_count(x * y, count)) if count else None


def ratio(count: int, x: Any) -> float | None:
    """Return the mean; None of nothing."""
    return float(x / count) if count else None


def correlation(count: int, x: Any, y: Any, products: Any, xx: Any, yy: Any) -> float | None:
    """Return the covariance of two numbers over both deviations; NaN if one does not deviate.

    `count` is the number of pairs; NULL if it is 0.
    """
    if not count:
        return None
    both, one, other = _deviations(count, x, y, products, xx, yy)
    return both / math.sqrt(one * other) if one and other else math.nan


def fit(count: int, y: Any, x: Any, products: Any, yy: Any, xx: Any) -> float | None:
    """Return the squared correlation; None if `x` is constant, 1 if only `y` is."""
    if not count:
        return None
    both, along, across = _deviations(count, x, y, products, xx, yy)
    if not along:
        return None
    return both**2 / (along * across) if across else 1.0


def slope(count: int, y: Any, x: Any, products: Any, xx: Any) -> float | None:
    """Return the slope of the line through `count` pairs of numbers; NULL if there are none.

    It is NaN if all pairs have the same `x`.
    """
    if not count:
        return None
    both, along = (deviations(count, *of) or 0.0 for of in ((x, y, products), (x, x, xx)))
    return both / along if along else math.nan


def intercept(count: int, y: Any, x: Any, products: Any, xx: Any) -> float | None:
    """Return the value of the regression line at 0; None if there is no line."""
    found = slope(count, y, x, products, xx)
    if found is None or math.isnan(found):
        return None
    return float(y / count) - found * float(x / count)


def _deviations(
    count: int, x: Any, y: Any, products: Any, xx: Any, yy: Any
) -> tuple[float, float, float]:
    """Return the sums of products of deviations: of x and y, of x, and of y; 0.0 of no rows."""
    parts = ((x, y, products), (x, x, xx), (y, y, yy))
    both, one, other = (deviations(count, *of) or 0.0 for of in parts)
    return both, one, other


def total(values: Iterable[Any]) -> Any:
    """Return the sum; None of nothing. Of floats it is rounded once.

    >>> total([1, 2]), total([]), total([0.1] * 10)
    (3, None, 1.0)
    """
    found = list(values)
    if not found:
        return None
    if any(isinstance(value, float) for value in found):
        return math.fsum(found) if all(map(math.isfinite, found)) else float(sum(found))
    if isinstance(found[0], timedelta):
        return reduce(sum_of_intervals, found)
    return sum(found[1:], found[0])


def mean(values: Iterable[Any]) -> Any:
    """Return the mean as a float, or of intervals as an interval; None of nothing."""
    found = list(values)
    if not found:
        return None
    whole = total(found)
    if isinstance(whole, timedelta):
        return part_of_interval(whole, len(found))
    return whole / len(found) if isinstance(whole, float) else float(Fraction(whole) / len(found))


EPOCH = datetime(1970, 1, 1)
MICROSECOND = timedelta(microseconds=1)


def microseconds_of(value: date | time) -> int:
    """Return the microseconds of a moment since 1970, or of a time since midnight.

    >>> microseconds_of(date(1970, 1, 2)), microseconds_of(time(0, 0, 1))
    (86400000000, 1000000)
    """
    if isinstance(value, time):
        whole = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second)
        return whole // MICROSECOND + value.microsecond
    if not isinstance(value, datetime):
        return (value - EPOCH.date()) // MICROSECOND
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return (value - EPOCH) // MICROSECOND


def moment_of_mean(total: int, count: int) -> datetime | None:
    """Return the moment `total / count` microseconds from 1970, cut to it; None of no rows."""
    if not count:
        return None
    mean = total // count if total >= 0 else -(-total // count)
    return EPOCH + timedelta(microseconds=mean)


def instant_of_mean(total: int, count: int) -> datetime | None:
    """Return the instant `total / count` microseconds after 1970; None of no rows."""
    found = moment_of_mean(total, count)
    return None if found is None else found.replace(tzinfo=UTC)


def time_of_mean(total: int, count: int) -> time | None:
    """Return the time of day `total / count` microseconds after midnight; None of no rows."""
    found = moment_of_mean(total, count)
    return None if found is None else found.time()


@record
class MeanOf:
    """A function of a sum and a count, given the numbers."""

    function: Callable[[int, int], Any]

    def __call__(self, values: Iterable[int]) -> Any:
        found = list(values)
        return self.function(sum(found), len(found))


def total_of_different(values: Iterable[Any]) -> Any:
    """Return the sum of the different values."""
    return total(set(values))


def total_or_zero_of_different(values: Iterable[Any]) -> float:
    """Return the sum of different values as a float; 0 of nothing."""
    return float(total_of_different(values) or 0)


def exclusive_or_of_different(values: Iterable[int]) -> int | None:
    """Return the bits that an odd number of the different values have; None of nothing."""
    found = set(values)
    return reduce(xor, found) if found else None


def mean_of_different(values: Iterable[Any]) -> Any:
    """Return the mean of the different values."""
    return mean(set(values))


def product(values: Iterable[Any]) -> float | None:
    """Return the product of all values; None of nothing."""
    found = [float(value) for value in values]
    return math.prod(found) if found else None


def geometric_mean(values: Iterable[Any]) -> float | None:
    """Return the geometric mean; None of nothing."""
    found = [math.log(value) for value in values]
    return math.exp(math.fsum(found) / len(found)) if found else None


def mode(values: Iterable[Any]) -> Any:
    """Return the most frequent value, the least of several; NULL of no values."""
    counts = Counter(values)
    if not counts:
        return None
    most = max(counts.values())
    return min(value for value, count in counts.items() if count == most)


def last_mode(values: Iterable[Any]) -> Any:
    """Return the most frequent value, the greatest of several; NULL of no values."""
    found = most_frequent(values, None)
    if found is None:
        return None
    counts, (first, *_) = Counter(values), found
    return max((v for v, n in counts.items() if n == counts[first]), key=item_key)


def most_frequent(values: Iterable[Any], count: int | None) -> tuple[Any, ...] | None:
    """Return the most frequent values, of equally frequent ones the least first; NULL of none."""
    counts = Counter(values)
    found = sorted(sorted(counts, key=item_key), key=lambda value: -counts[value])
    return tuple(found[:count]) or None


def histogram(values: Iterable[Any]) -> tuple[tuple[Any, int], ...] | None:
    """Return the map from each value to its number of rows, the least value first; NULL of none.

    >>> histogram(["b", "a", "b"])
    (('a', 1), ('b', 2))
    """
    counts = Counter(values)
    return tuple((value, counts[value]) for value in sorted(counts, key=item_key)) or None


def extremes(values: Iterable[Any], count: int, greatest: bool) -> tuple[Any, ...] | None:
    """Return the `count` least or greatest values, in their order; NULL of none."""
    return tuple(sorted(values, key=item_key, reverse=greatest)[:count]) or None


def of_extremes(pairs: Sequence[Any], count: int | None, greatest: bool) -> Any:
    """Return the values of the pairs with the extreme keys, NULL keys last; without a count one.

    Of equal keys the pair that comes first in `pairs` is first.
    """
    found = [pair for pair in pairs if pair[0] is not None]
    found.sort(key=lambda pair: item_key(pair[0]), reverse=greatest)
    every = [pair[1] for pair in (*found, *(pair for pair in pairs if pair[0] is None))]
    if count is None:
        return every[0] if every else None
    return tuple(every[:count]) or None


def quantile_of_middles(values: Iterable[Any], at: Any, kind: str, scale: int | None) -> Any:
    """Return a value at a fraction between the middles of the values' shares; NULL of nothing.

    NaN does not count. A whole number is rounded.

    >>> quantile_of_middles([1, 2, 4, 4, 6], (0.25, 0.75), "int", None)
    (2, 4)
    """
    if isinstance(at, tuple):
        found = tuple(quantile_of_middles(values, each, kind, scale) for each in at)
        return None if None in found else found
    given = sorted(float(value) for value in values if value == value)
    if not given:
        return None
    place = min(max(float(at) * len(given) - 0.5, 0.0), len(given) - 1.0)
    low = given[math.floor(place)]
    made = low + (given[math.ceil(place)] - low) * (place % 1) if place % 1 else low
    if kind == "int":
        return round(made)
    return round(Decimal(made), scale or 0) if kind == "decimal" else made


def weighted_mean(count: int, weights: Any, products: Any) -> float | None:
    """Return a sum of products over the sum of their weights; None of nothing."""
    if not count:
        return None
    if not weights:
        return math.nan if not products else math.copysign(math.inf, products)
    return float(products / weights)


def standard_error(count: int, total: Any, squares: Any, less: int) -> float | None:
    """Return the deviation of all values over the root of their count; None of nothing."""
    found = deviation(count, total, squares, less)
    return None if found is None else found / math.sqrt(count)


def entropy(values: Iterable[Any]) -> float:
    """Return the information in bits that a value has."""
    counts = Counter(values)
    count = sum(counts.values())
    return -math.fsum(n / count * math.log2(n / count) for n in counts.values()) + 0.0


def skewness(values: Iterable[Any]) -> float | None:
    """Return the skewness of a sample; None of less than 3 values, NaN if all are equal."""
    found = [float(value) for value in values]
    n = len(found)
    if n < 3:
        return None
    middle = math.fsum(found) / n
    second, third = (math.fsum((v - middle) ** p for v in found) / n for p in (2, 3))
    if not second:
        return math.nan
    return float(math.sqrt(n * (n - 1)) / (n - 2) * third / second**1.5)


def kurtosis(values: Iterable[Any]) -> float | None:
    """Return the excess kurtosis of a sample; None of less than 4 values, or if all are equal."""
    found = [float(value) for value in values]
    n = len(found)
    if n < 4:
        return None
    middle = math.fsum(found) / n
    second, fourth = (math.fsum((v - middle) ** p for v in found) for p in (2, 4))
    if not second:
        return None
    first = n * (n + 1) * (n - 1) * fourth / ((n - 2) * (n - 3) * second**2)
    return first - 3 * (n - 1) ** 2 / ((n - 2) * (n - 3))


def kurtosis_of_all(values: Iterable[Any]) -> float | None:
    """Return the excess kurtosis of all values; None of less than 2, or if all are equal."""
    found = [float(value) for value in values]
    n = len(found)
    if n < 2:
        return None
    middle = math.fsum(found) / n
    second, fourth = (math.fsum((v - middle) ** p for v in found) / n for p in (2, 4))
    return fourth / second**2 - 3 if second else None


def quantile_between(values: Iterable[Any] | OrderedCopies, at: Any) -> Any:
    """Return the value at a fraction of the order, interpolated between two values.

    >>> quantile_between([4, 1, 2], 0.5), quantile_between([1, 2], (0.0, 0.5))
    (2.0, (1.0, 1.5))
    """
    found = _in_order(values)
    if not found:
        return None
    return (
        tuple(_interpolate_values(found, each) for each in at)
        if isinstance(at, tuple)
        else (_interpolate_values(found, at))
    )


class InOrder(Protocol):
    """Values in order, by their places."""

    def __getitem__(self, place: int, /) -> Any: ...
    def __len__(self) -> int: ...


def _in_order(values: Iterable[Any] | OrderedCopies, *, descending: bool = False) -> InOrder:
    """Return values in order; those that are kept in order are not copied.

    >>> _in_order({3, 1, 2}, descending=True)
    [3, 2, 1]
    """
    if isinstance(values, OrderedCopies):
        return FromLast(values) if descending else values
    return sorted(values, reverse=descending)


class FromLast:
    """A sequence from its end."""

    def __init__(self, values: OrderedCopies) -> None:
        self._values = values

    def __getitem__(self, place: int) -> Any:
        return self._values[len(self._values) - 1 - place]

    def __len__(self) -> int:
        return len(self._values)


def _interpolate_values(found: InOrder, at: Any) -> Any:
    """Return the value at the fraction `at` of sorted values, interpolated between neighbours."""
    exactly = Fraction(at) * (len(found) - 1)
    place = math.floor(exactly)
    low, high = found[place], found[min(place + 1, len(found) - 1)]
    part = exactly - place
    match low:
        case int():
            return float(low + (high - low) * part)
        case Decimal():
            return _interpolate_decimals(low, high, part)
        case datetime(tzinfo=zone) if zone is not None:
            return instant_of_mean(_microsecond(low, high, part), 1)
        case time():
            return time_of_mean(_microsecond(low, high, part), 1)
        case date():
            return moment_of_mean(_microsecond(low, high, part), 1)
        case _:  # times 0, an infinity is NaN
            return low + (high - low) * float(part) if part else low


def _microsecond(low: Any, high: Any, part: Fraction) -> int:
    """Return the microsecond at a part of the way between two moments, rounded."""
    first, last = microseconds_of(low), microseconds_of(high)
    return first + math.floor((last - first) * part + Fraction(1, 2))


def _interpolate_decimals(low: Decimal, high: Decimal, part: Fraction) -> Decimal:
    """Return the decimal at a part of the way between two, cut to as many digits."""
    scale = max(-int(d.as_tuple().exponent) for d in (low, high))
    ends = [int(d.scaleb(scale)) for d in (low, high)]
    between = ends[0] + (ends[1] - ends[0]) * part
    return Decimal(int(between)).scaleb(-scale)


def quantile_of(values: Iterable[Any] | OrderedCopies, at: Any, *, descending: bool = False) -> Any:
    """Return the least value that a fraction of all values does not exceed.

    If `descending`, count from the greatest value.

    >>> quantile_of([4, 1, 2], 0.5), quantile_of([4, 1], 0.5)
    (2, 1)
    """
    found = _in_order(values, descending=descending)
    if not found:
        return None
    return (
        tuple(_value_at_fraction(found, each) for each in at)
        if isinstance(at, tuple)
        else _value_at_fraction(found, at)
    )


def _value_at_fraction(found: InOrder, at: Any) -> Any:
    """Return the least of sorted values that a fraction of them does not exceed."""
    place = max(1, math.ceil(Fraction(str(at)) * len(found)))
    return found[min(place, len(found)) - 1]


def quantile_from_last(values: Iterable[Any] | OrderedCopies, at: Any) -> Any:
    """Return the quantile of the values in descending order."""
    return quantile_of(values, at, descending=True)


def spread(values: Iterable[Any]) -> Any:
    """Return the median distance from the median; NULL of no values."""
    found = list(values)
    if not found:
        return None
    middle = quantile_between(found, 0.5)
    return quantile_between([abs(value - middle) for value in found], 0.5)


def sorted_rows(
    rows: Iterable[tuple[Any, ...]], directions: Sequence[tuple[bool, bool]]
) -> list[tuple[Any, ...]]:
    """Sort rows whose first items are keys, each least or greatest first, NULL first or last.

    Rows with equal keys are ordered by their other items, so that equal groups are equal lists.

    >>> sorted_rows([(None, "a"), (1, "b"), (2, "c")], [(True, False)])
    [(2, 'c'), (1, 'b'), (None, 'a')]
    """
    found, width = list(rows), len(directions)
    keys, rest = itemgetter(slice(width)), itemgetter(slice(width, None))
    if not _have_one_order(map(keys, found)):
        key = sort_key_function(tuple(directions))
        return sorted(found, key=lambda row: key(keys(row), rest(row)))
    if len({*map(keys, found)}) < len(found):
        is_plain = _have_one_order(map(rest, found))
        found.sort(key=rest if is_plain else lambda row: rank_of(rest(row)))
    for place, (descending, _) in reversed([*enumerate(directions)]):
        found.sort(key=itemgetter(place), reverse=descending)  # stable: earlier keys go last
    return found


def _have_one_order(rows: Iterable[tuple[Any, ...]]) -> bool:
    """Return True if each column of rows has numbers only or texts only, their own sort keys."""
    return all({*map(type, column)} in ({int}, {str}) for column in zip(*rows, strict=True))


def sort_last_items(
    rows: Iterable[tuple[Any, ...]], directions: Sequence[tuple[bool, bool]], *, distinct: bool
) -> list[Any]:
    """Return the last items of rows, in the order of their first; `distinct`: each once."""
    found = [row[-1] for row in sorted_rows(rows, directions)]
    return list(dict.fromkeys(found)) if distinct else found


def joined(values: Sequence[Any], separator: str) -> str | None:
    """Join texts in order; None of nothing."""
    return separator.join(values) if values else None


def listed(values: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return the values as an array; None of nothing."""
    return tuple(values) if values else None


def first(values: Sequence[Any]) -> Any:
    """Return the first of the values; None of nothing."""
    return values[0] if values else None


def last(values: Sequence[Any]) -> Any:
    """Return the last of the values; None of nothing."""
    return values[-1] if values else None


OF_VALUES: dict[str, Callable[..., Any]] = {
    "sum": total,
    "avg": mean,
    "min": lambda values: min(values, key=item_key, default=None),
    "max": lambda values: max(values, key=item_key, default=None),
}


def whole_number(value: Any) -> int:
    """Return a value whose bits an aggregate combines; raise for one that has none."""
    if not isinstance(value, int):
        raise TypeError(f"{value!r:.60} is no whole number, and has no bits to combine")
    return value
