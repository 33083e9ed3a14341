"""Accumulators of statistics: variance, quantiles, the row of an extreme, modes, texts, estimates.

Each takes deletions exactly: after any history its result is that of the values that are left.

    Variance, StdDev, BoolAnd, BoolOr    O(1) per change             exact sums, or two counts
    Median, Quantile                     O(log group)                every copy, in order
    ArgMin, ArgMax, FirstBy, LastBy      O(log group)                every different pair
    MostCommon                           O(log group)                every different value
    StringJoin                           O(log group), and O(group) per changed group
    ApproxCountDistinct                  O(1)                        `distinct_sketch.py`
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from optimizer.plans.facts import Cost
from optimizer.record import record
from reactive.engine.collections.distinct_sketch import DistinctSketch, register_bits
from reactive.engine.collections.order import sort_key
from reactive.engine.collections.sorted_copies import KeyedValues, OrderedCopies, value_key
from reactive.engine.collections.zset import NAN, canonical
from reactive.engine.operators.accumulators import SKIP

Interpolation: TypeAlias = Literal["linear", "lower", "higher", "nearest", "midpoint"]
INTERPOLATIONS = ("linear", "lower", "higher", "nearest", "midpoint")


@record
class StatisticAccumulator:
    """Base of accumulators that change their state in place and ignore None with `skip_none`."""

    skip_none: bool = False
    cost = Cost.LOG
    in_place = True
    over_values = False
    adds_values = True

    @property
    def check(self) -> Callable[[Any], object]:
        """A function that raises for values that cannot be added."""
        return self._check

    def _check(self, value: Any) -> None:
        if not self._skips(value):
            self.zero().add(value, 1)

    def _skips(self, value: Any) -> bool:
        return value is None and self.skip_none

    def zero(self) -> Any:
        raise NotImplementedError

    def add(self, state: Any, value: Any, weight: int) -> Any:
        """Add a value to `state` in place; one that is skipped changes nothing."""
        if self._skips(value):
            return state
        try:
            state.add(value, weight)
        except TypeError as error:
            if value is None:
                error.add_note(SKIP)
            raise
        return state

    def is_zero(self, state: Any) -> bool:
        return bool(state.is_zero)

    def result(self, state: Any) -> Any:
        raise NotImplementedError


class Moments:
    """The exact sums of values and of their squares, over a common denominator."""

    __slots__ = ("count", "denominator", "odd", "squares", "total")

    def __init__(self) -> None:
        self.count = self.total = self.squares = self.odd = 0
        self.denominator = 1

    def add(self, value: Any, weight: int) -> None:
        """Add a number; one that is infinite or NaN is counted only."""
        if not isinstance(value, int | float | Decimal | Fraction):
            kind = type(value).__name__
            raise TypeError(f"a variance is of int, float, Decimal or Fraction, not {kind}")
        if not math.isfinite(value):
            self.odd += weight
            self.count += weight
            return
        above, below = value.as_integer_ratio()
        if self.denominator % below:
            factor = below // math.gcd(self.denominator, below)
            self.denominator *= factor
            self.total *= factor
            self.squares *= factor * factor
        above *= self.denominator // below
        self.count += weight
        self.total += weight * above
        self.squares += weight * above * above

    @property
    def is_zero(self) -> bool:
        """True if all that was added has been removed."""
        return not (self.count or self.total or self.squares or self.odd)

    def variance(self, freedom: int) -> Fraction | None:
        """Return the variance with `freedom` degrees of freedom less; None if it has no meaning."""
        if self.count <= freedom:
            return None
        above = self.count * self.squares - self.total * self.total
        return Fraction(above, self.count * (self.count - freedom) * self.denominator**2)

    def __sizeof__(self) -> int:
        parts = (self.total, self.squares, self.denominator)
        return object.__sizeof__(self) + sum(each.__sizeof__() for each in parts)


@record
class VarianceAccumulator(StatisticAccumulator):
    """The variance, or its root, as a float that is rounded once."""

    freedom: int = 1
    is_root: bool = False
    cost = Cost.ONE

    def zero(self) -> Moments:
        return Moments()

    def result(self, state: Moments) -> float | None:
        found = state.variance(self.freedom)
        if found is None:
            return None
        if state.odd:
            return NAN
        try:
            return square_root(found) if self.is_root else float(found)
        except OverflowError:
            return math.inf


def square_root(value: Fraction) -> float:
    """Return the root of a fraction, correct to the last place, also of huge and tiny ones.

    >>> square_root(Fraction(1, 4)), square_root(Fraction(10**400)) == 1e200
    (0.5, True)
    """
    above, below = value.numerator, value.denominator
    shift = max(0, 128 + below.bit_length() - above.bit_length())
    shift += shift % 2
    scaled, rest = divmod(above << shift, below)
    root = math.isqrt(scaled)
    root |= bool(rest or root * root != scaled)  # what is cut off decides between two neighbours
    return float(Fraction(root, 1 << (shift // 2)))


class Truths:
    """The numbers of true and of false values."""

    __slots__ = ("false", "true")

    def __init__(self) -> None:
        self.true = self.false = 0

    def add(self, value: Any, weight: int) -> None:
        """Count a value by its truth; None has none."""
        if value is None:
            raise TypeError("None is neither true nor false")
        if value:
            self.true += weight
        else:
            self.false += weight

    @property
    def is_zero(self) -> bool:
        """True if all that was added has been removed."""
        return not (self.true or self.false)


@record
class TruthAccumulator(StatisticAccumulator):
    """True if all values are true, or with `is_any`, if one is; None without values."""

    is_any: bool = False
    cost = Cost.ONE

    def zero(self) -> Truths:
        return Truths()

    def result(self, state: Truths) -> bool | None:
        if state.true <= 0 and state.false <= 0:
            return None
        return state.true > 0 if self.is_any else state.false <= 0


@record
class QuantileAccumulator(StatisticAccumulator):
    """The value at a fraction of the order; `at` is exact."""

    at: Fraction = Fraction(1, 2)
    interpolation: Interpolation = "linear"

    def zero(self) -> OrderedCopies:
        return OrderedCopies()

    def result(self, state: OrderedCopies) -> Any:
        """Return the quantile; None without values."""
        if not len(state):
            return None
        exact = self.at * (len(state) - 1)
        place = math.floor(exact)
        part = exact - place
        low = state.at(place)
        high = state.at(place + 1) if part else low
        return canonical(interpolate(low, high, part, self.interpolation))


@record
class QuantileOfOrder(QuantileAccumulator):
    """A quantile that `find` returns of all values in order, also if there are none.

    `interpolation` tells if it is one of them.
    """

    find: Callable[[Any], Any] = len

    def result(self, state: OrderedCopies) -> Any:
        return canonical(self.find(state))


def interpolate(low: Any, high: Any, part: Fraction, how: Interpolation) -> Any:
    """Return the value at a part of the way between two values."""
    match how:
        case "lower":
            return low
        case "higher":
            return high
        case "nearest":
            return high if part > Fraction(1, 2) else low
        case "midpoint":
            part = Fraction(1, 2) if part else part
        case "linear":
            pass
    return _value_between(low, high, part)


def _value_between(low: Any, high: Any, part: Fraction) -> Any:
    """Return `low + (high - low) * part`, rounded once: a float for integers."""
    numbers = (int, float, Fraction)
    if isinstance(low, numbers) and isinstance(high, numbers):
        if not (math.isfinite(low) and math.isfinite(high)):
            return float(low) if low == high or not part else float(low) + float(high) * float(part)
        exact = Fraction(low) + (Fraction(high) - Fraction(low)) * part
        return exact if isinstance(low, Fraction) and isinstance(high, Fraction) else float(exact)
    if not part or low == high:
        if isinstance(low, str | bytes | tuple):
            raise _no_way_between(low)
        return low
    if isinstance(low, Decimal) and isinstance(high, Decimal):
        return low + (high - low) * part.numerator / part.denominator
    try:
        between = high - low
        steps = between * float(part) if not isinstance(low, date) else between * part.numerator
        return low + (steps / part.denominator if isinstance(low, date) else steps)
    except TypeError:
        raise _no_way_between(low) from None


def _no_way_between(value: Any) -> TypeError:
    kind = type(value).__name__
    return TypeError(
        f"there is no {kind} between two others\n"
        '  interpolation="lower" or "higher" takes one of the values'
    )


@record
class ExtremeByAccumulator(StatisticAccumulator):
    """The value of the least or greatest place, in pairs `(place, value)`.

    Of several values with this place, it is the least.
    """

    is_greatest: bool = False
    skips_places: bool = False
    adds_values = False

    def _skips(self, value: Any) -> bool:
        if value is None:  # a pair that raised, under a policy
            return self.skip_none
        return self.skips_places and value[0] is None

    def _check(self, value: Any) -> None:
        if not self._skips(value):
            _check_place(value)

    def zero(self) -> KeyedValues:
        return KeyedValues(_key_of_pair)

    def result(self, state: KeyedValues) -> Any:
        """Return the value; None without pairs."""
        if not len(state):
            return None
        if self.is_greatest:
            return state.first_of_greatest(_place_of_key)[1]
        return state.first()[1]


def _check_place(pair: tuple[Any, Any]) -> None:
    """Raise for a pair that has no place beside others."""
    if pair[0] is None:
        error = TypeError("None has no place in an order")
        error.add_note(SKIP)
        raise error
    hash(pair)


def _key_of_pair(pair: Any, weight: int) -> tuple[Any, Any]:
    return (sort_key(pair[0]), value_key(pair[1]))


def _place_of_key(key: tuple[Any, Any]) -> tuple[Any]:
    return (key[0],)


@record
class MostCommonAccumulator(StatisticAccumulator):
    """The most frequent value, the least of several; with `most`, a tuple of values with counts."""

    most: int | None = None

    def zero(self) -> KeyedValues:
        return KeyedValues(_key_by_count, by_weight=True)

    def result(self, state: KeyedValues) -> Any:
        """Return the value; None without values, or an empty tuple."""
        if self.most is not None:
            return tuple((value, state.weight(value)) for value in state.take(self.most))
        return state.first() if len(state) else None


def _key_by_count(value: Any, weight: int) -> tuple[int, Any]:
    return (-weight, value_key(value))


@record
class JoinTextsAccumulator(StatisticAccumulator):
    """The texts of pairs `(place, text)` in order, with a separator between them."""

    separator: str = ","
    is_descending: bool = False
    adds_values = False

    def _skips(self, value: Any) -> bool:
        return self.skip_none and (value is None or value[1] is None)

    def zero(self) -> KeyedValues:
        return KeyedValues(_key_of_pair)

    def _check(self, value: Any) -> None:
        if not self._skips(value):
            _check_text(value)
            _check_place(value)

    def add(self, state: Any, value: Any, weight: int) -> Any:
        """Add a pair to `state` in place."""
        if not self._skips(value):
            _check_text(value)
            state.add(value, weight)
        return state

    def result(self, state: KeyedValues) -> str | None:
        """Return the joined texts; None without any."""
        texts: list[str] = []
        for pair in state:
            texts += [pair[1]] * state.weight(pair)
        if self.is_descending:
            texts.reverse()
        return self.separator.join(texts) if texts else None


def _check_text(pair: tuple[Any, Any]) -> None:
    text = pair[1]
    if not isinstance(text, str):
        error = TypeError(f"StringJoin joins texts, not {type(text).__name__}")
        error.add_note(SKIP if text is None else "  make a text of it: str(...)")
        raise error


@record
class ApproxCountAccumulator(StatisticAccumulator):
    """The estimated number of different values."""

    error: float = 0.02
    cost = Cost.ONE

    def zero(self) -> DistinctSketch:
        return DistinctSketch(register_bits(self.error))

    def result(self, state: DistinctSketch) -> int:
        return state.estimate()
