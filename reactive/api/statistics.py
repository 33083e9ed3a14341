"""Aggregates of statistics: quantiles, variance, the row of an extreme, modes, texts, estimates.

They are descriptions, as those of `aggregates.py`; `engine/operators/statistics.py` maintains the
values. All are right after deletions. Without values they are None, but for `ApproxCountDistinct`,
which is 0, and `MostCommon(f, n)`, which is `()`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal, TypeVar, overload

from typing_extensions import TypeVarTuple, Unpack

from optimizer.errors import PlanError
from optimizer.expr import Function, Lifted, all_parameters, one_value, tuple_of
from optimizer.subqueries.keyed_rows import as_expression
from reactive.api.aggregates import Aggregation, Divisible, SortKey
from reactive.engine.collections.distinct_sketch import MOST_BITS, register_bits
from reactive.engine.operators import statistics as kept
from reactive.engine.operators.accumulators import Accumulator
from reactive.engine.operators.statistics import Interpolation
from reactive.engine.runtime.boundary import outermost

Ts = TypeVarTuple("Ts")
V = TypeVar("V")
W = TypeVar("W")
Take = Callable[[Any, str], Function]


class Quantile(Aggregation[*Ts, V]):
    """The value at a fraction of the sorted values; None without rows.

    Parameters
    ----------
    of: callable, row -> values that `<` compares; or the name of a field. NaN sorts last.
    at: the fraction, from 0 (the least value) to 1 (the greatest). It is read as the decimal number
        that `repr` shows: 0.3 is three tenths.
    interpolation: the value between two neighbours: `"linear"` and `"midpoint"` compute one, which
        is a float for integers; `"lower"`, `"higher"` and `"nearest"` take one of them, and so
        support texts, too.
    skip_none: leave out values that are None, as SQL does. By default a None beside other values
        is a `TypeError`.

    State: every copy of a value. Cost: O(log group) per changed row.

    >>> from reactive import Database, Quantile
    >>> db = Database()
    >>> times = db.table(int, name="times")
    >>> times.add_all([10, 20, 30, 1000])
    >>> times.aggregate(Quantile(lambda t: t, 0.9, interpolation="lower")).materialize().value
    30
    """

    @overload
    def __init__(
        self,
        of: Callable[[Unpack[Ts]], V],
        at: float,
        *,
        interpolation: Literal["lower", "higher", "nearest"],
        skip_none: Literal[False] = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        of: Callable[[Unpack[Ts]], V | None],
        at: float,
        *,
        interpolation: Literal["lower", "higher", "nearest"],
        skip_none: bool,
    ) -> None: ...
    @overload
    def __init__(
        self,
        of: Callable[[Unpack[Ts]], Divisible[V]],
        at: float,
        *,
        interpolation: Literal["linear", "midpoint"] = "linear",
        skip_none: Literal[False] = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        of: Callable[[Unpack[Ts]], Divisible[V] | None],
        at: float,
        *,
        interpolation: Literal["linear", "midpoint"] = "linear",
        skip_none: bool,
    ) -> None: ...
    @overload
    def __init__(
        self: Quantile[*Ts, Any],
        of: str,
        at: float,
        *,
        interpolation: Interpolation = "linear",
        skip_none: bool = False,
    ) -> None: ...
    @outermost
    def __init__(
        self,
        of: Any,
        at: float,
        *,
        interpolation: Interpolation = "linear",
        skip_none: bool = False,
    ) -> None:
        if isinstance(at, bool) or not isinstance(at, int | float | Fraction) or not 0 <= at <= 1:
            raise PlanError(f"Quantile takes a fraction from 0 to 1, not {at!r:.60}")
        if interpolation not in kept.INTERPOLATIONS:
            known = ", ".join(map(repr, kept.INTERPOLATIONS))
            raise PlanError(f"there is no interpolation {interpolation!r:.60}\n  {known}")
        exact = at if isinstance(at, Fraction) else Fraction(repr(at))
        super().__init__(kept.QuantileAccumulator(skip_none, exact, interpolation), of)


class Median(Aggregation[*Ts, V]):
    """The middle of the sorted values, or halfway between the middle two; None without rows.

    Of integers it is a float. It is `Quantile(of, 0.5)`, with its parameters, state and cost.

    >>> from reactive import Database, Median
    >>> db = Database()
    >>> times = db.table(int, name="times")
    >>> middle = times.aggregate(Median(lambda t: t)).materialize()
    >>> times.add_all([10, 20, 30, 1000])
    >>> middle.value
    25.0
    """

    @overload
    def __init__(
        self, of: Callable[[Unpack[Ts]], Divisible[V]], *, skip_none: Literal[False] = False
    ) -> None: ...
    @overload
    def __init__(
        self, of: Callable[[Unpack[Ts]], Divisible[V] | None], *, skip_none: bool
    ) -> None: ...
    @overload
    def __init__(self: Median[*Ts, Any], of: str, *, skip_none: bool = False) -> None: ...
    def __init__(self, of: Any, *, skip_none: bool = False) -> None:
        super().__init__(kept.QuantileAccumulator(skip_none), of)


class Variance(Aggregation[*Ts, float]):
    """The variance of numbers, from exact sums, rounded once.

    Parameters
    ----------
    of: callable, row -> int, float, Decimal or Fraction; or the name of a field.
    sample: divide by the number of values less one; if False, by their number. None if there are
        too few values.
    skip_none: leave out values that are None. By default a None is a `TypeError`.

    It is NaN if a value is NaN or infinite. Cost: O(1) per changed row.

    >>> from reactive import Database, Variance
    >>> db = Database()
    >>> lengths = db.table(float, name="lengths")
    >>> lengths.add_all([1e9, 1e9 + 1, 1e9 + 2])
    >>> lengths.aggregate(Variance(lambda v: v)).materialize().value
    1.0
    """

    @overload
    def __init__(
        self,
        of: Callable[[Unpack[Ts]], float],
        *,
        sample: bool = True,
        skip_none: Literal[False] = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        of: Callable[[Unpack[Ts]], Any] | str,
        *,
        sample: bool = True,
        skip_none: bool = False,
    ) -> None: ...
    def __init__(self, of: Any, *, sample: bool = True, skip_none: bool = False) -> None:
        super().__init__(kept.VarianceAccumulator(skip_none, int(sample)), of)


class StdDev(Aggregation[*Ts, float]):
    """The standard deviation of numbers: the root of `Variance`, with its parameters and cost.

    >>> from reactive import Database, StdDev
    >>> db = Database()
    >>> lengths = db.table(float, name="lengths")
    >>> lengths.add_all([2.0, 4.0])
    >>> lengths.aggregate(StdDev(lambda v: v, sample=False)).materialize().value
    1.0
    """

    @overload
    def __init__(
        self,
        of: Callable[[Unpack[Ts]], float],
        *,
        sample: bool = True,
        skip_none: Literal[False] = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        of: Callable[[Unpack[Ts]], Any] | str,
        *,
        sample: bool = True,
        skip_none: bool = False,
    ) -> None: ...
    def __init__(self, of: Any, *, sample: bool = True, skip_none: bool = False) -> None:
        super().__init__(kept.VarianceAccumulator(skip_none, int(sample), True), of)


class BoolAnd(Aggregation[*Ts, bool]):
    """True if the value of every row is true, False if not; None without rows.

    Parameters
    ----------
    of: callable, row -> truth value; or the name of a field.
    skip_none: leave out values that are None. By default a None is a `TypeError`.

    State: two numbers per group. Cost: O(1) per changed row.

    >>> from reactive import BoolAnd, Database
    >>> db = Database()
    >>> ages = db.table(int, name="ages")
    >>> ages.add_all([20, 17])
    >>> ages.aggregate(BoolAnd(lambda a: a >= 18)).materialize().value
    False
    """

    def __init__(self, of: Callable[[Unpack[Ts]], Any] | str, *, skip_none: bool = False) -> None:
        super().__init__(kept.TruthAccumulator(skip_none), of)


class BoolOr(Aggregation[*Ts, bool]):
    """True if the value of a row is true, False if of none; None without rows. See `BoolAnd`.

    >>> from reactive import BoolOr, Database
    >>> db = Database()
    >>> ages = db.table(int, name="ages")
    >>> ages.add_all([20, 17])
    >>> ages.aggregate(BoolOr(lambda a: a < 18)).materialize().value
    True
    """

    def __init__(self, of: Callable[[Unpack[Ts]], Any] | str, *, skip_none: bool = False) -> None:
        super().__init__(kept.TruthAccumulator(skip_none, True), of)


class ExtremeBy(Aggregation[*Ts, V]):
    """Base of aggregates that return a value of the row with the least or greatest place."""

    def __init__(self, accumulator: Accumulator, of: Any, by: Any) -> None:
        super().__init__(accumulator, of)
        self._by = by

    def _value(self, take: Take) -> Function:
        return paired(take, self._by, self._of, type(self).__name__)


class ArgMin(ExtremeBy[*Ts, V]):
    """The value of `of` where `by` is least; None without rows.

    Parameters
    ----------
    of: callable, row -> hashable; or the name of a field.
    by: callable, row -> values that `<` compares; or the name of a field. NaN is the greatest.
    skip_none: leave out rows whose `by` is None. By default a None beside other values is a
        `TypeError`.

    Of several rows with the least `by`, it is the least value of `of`, compared field by field if
    its class has no order. State: every different pair. Cost: O(log group) per changed row.

    >>> from reactive import ArgMin, Database
    >>> db = Database()
    >>> offers = db.table(tuple[str, int], name="offers")
    >>> offers.add_all([("a", 20), ("b", 15)])
    >>> offers.aggregate(ArgMin(lambda o: o[0], by=lambda o: o[1])).materialize().value
    'b'
    """

    @overload
    def __init__(
        self,
        of: Callable[[Unpack[Ts]], V],
        by: Callable[[Unpack[Ts]], Any] | str,
        *,
        skip_none: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: ArgMin[*Ts, Any],
        of: str,
        by: Callable[[Unpack[Ts]], Any] | str,
        *,
        skip_none: bool = False,
    ) -> None: ...
    def __init__(self, of: Any, by: Any, *, skip_none: bool = False) -> None:
        super().__init__(kept.ExtremeByAccumulator(False, False, skip_none), of, by)


class ArgMax(ExtremeBy[*Ts, V]):
    """The value of `of` where `by` is greatest; None without rows. See `ArgMin`.

    >>> from reactive import ArgMax, Database
    >>> db = Database()
    >>> offers = db.table(tuple[str, int], name="offers")
    >>> offers.add_all([("a", 20), ("b", 15)])
    >>> offers.aggregate(ArgMax(lambda o: o[0], by=lambda o: o[1])).materialize().value
    'a'
    """

    @overload
    def __init__(
        self,
        of: Callable[[Unpack[Ts]], V],
        by: Callable[[Unpack[Ts]], Any] | str,
        *,
        skip_none: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: ArgMax[*Ts, Any],
        of: str,
        by: Callable[[Unpack[Ts]], Any] | str,
        *,
        skip_none: bool = False,
    ) -> None: ...
    def __init__(self, of: Any, by: Any, *, skip_none: bool = False) -> None:
        super().__init__(kept.ExtremeByAccumulator(False, True, skip_none), of, by)


class FirstBy(ExtremeBy[*Ts, V]):
    """The row that is first in an order, or a value of it; None without rows.

    Parameters
    ----------
    by: callable, row -> values that `<` compares; or the name of a field.
    of: callable, row -> hashable, or the name of a field; by default the row (a tuple, if it has
        several bindings).
    skip_none: leave out rows whose `by` is None.

    It is `ArgMin` with the row as its value: see there for ties, state and cost.

    >>> from reactive import Database, FirstBy
    >>> db = Database()
    >>> offers = db.table(tuple[str, int], name="offers")
    >>> offers.add_all([("a", 20), ("b", 15)])
    >>> offers.aggregate(FirstBy(lambda o: o[1])).materialize().value
    ('b', 15)
    """

    @overload
    def __init__(
        self: FirstBy[*Ts, Any],
        by: Callable[[Unpack[Ts]], Any] | str,
        of: str | None = None,
        *,
        skip_none: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        by: Callable[[Unpack[Ts]], Any] | str,
        of: Callable[[Unpack[Ts]], V],
        *,
        skip_none: bool = False,
    ) -> None: ...
    def __init__(self, by: Any, of: Any = None, *, skip_none: bool = False) -> None:
        super().__init__(kept.ExtremeByAccumulator(False, False, skip_none), of, by)


class LastBy(ExtremeBy[*Ts, V]):
    """The row that is last in an order, or a value of it; None without rows. See `FirstBy`.

    >>> from reactive import Database, LastBy
    >>> db = Database()
    >>> offers = db.table(tuple[str, int], name="offers")
    >>> offers.add_all([("a", 20), ("b", 15)])
    >>> offers.aggregate(LastBy(lambda o: o[1], of=lambda o: o[0])).materialize().value
    'a'
    """

    @overload
    def __init__(
        self: LastBy[*Ts, Any],
        by: Callable[[Unpack[Ts]], Any] | str,
        of: str | None = None,
        *,
        skip_none: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        by: Callable[[Unpack[Ts]], Any] | str,
        of: Callable[[Unpack[Ts]], V],
        *,
        skip_none: bool = False,
    ) -> None: ...
    def __init__(self, by: Any, of: Any = None, *, skip_none: bool = False) -> None:
        super().__init__(kept.ExtremeByAccumulator(False, True, skip_none), of, by)


class MostCommon(Aggregation[*Ts, V]):
    """The most frequent value, the least of several; None without rows.

    Parameters
    ----------
    of: callable, row -> hashable; or the name of a field.
    n: if given, the result is a tuple of the `n` most frequent values, each with its count.
    skip_none: leave out values that are None. By default None is a value.

    State: every different value. Cost: O(log group + n) per changed row.

    >>> from reactive import Database, MostCommon
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> words.add_all(["to", "be", "or", "not", "to", "be"])
    >>> words.aggregate(MostCommon(lambda w: w)).materialize().value
    'be'
    >>> words.aggregate(MostCommon(lambda w: w, 2)).materialize().value
    (('be', 2), ('to', 2))
    """

    @overload
    def __init__(
        self, of: Callable[[Unpack[Ts]], V], n: None = None, *, skip_none: bool = False
    ) -> None: ...
    @overload
    def __init__(
        self: MostCommon[*Ts, tuple[tuple[W, int], ...]],
        of: Callable[[Unpack[Ts]], W],
        n: int,
        *,
        skip_none: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: MostCommon[*Ts, Any], of: str, n: int | None = None, *, skip_none: bool = False
    ) -> None: ...
    @outermost
    def __init__(self, of: Any, n: int | None = None, *, skip_none: bool = False) -> None:
        if n is not None and (type(n) is not int or n < 1):
            raise PlanError(f"MostCommon takes a number of values, from 1 on, not {n!r:.60}")
        super().__init__(kept.MostCommonAccumulator(skip_none, n), of)


class StringJoin(Aggregation[*Ts, str]):
    """The texts of all rows, joined in an order; None without rows.

    Parameters
    ----------
    of: callable, row -> str; or the name of a field.
    separator: the text between two.
    order: callable, row -> values that `<` compares, the name of a field, or `asc` or `desc` of
        one; by default the texts are in their own order.
    skip_none: leave out rows whose text is None. By default a None is a `TypeError`.

    State: every different pair of place and text. Cost: O(log group) per changed row, and O(group)
    once per commit for each changed group.

    >>> from reactive import Database, StringJoin
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> words.add_all(["not", "be", "to"])
    >>> words.aggregate(StringJoin(lambda w: w, " ", order=len)).materialize().value
    'be to not'
    """

    @outermost
    def __init__(
        self,
        of: Callable[[Unpack[Ts]], str | None] | str,
        separator: str = ",",
        *,
        order: Callable[[Unpack[Ts]], Any] | SortKey[Any, *Ts] | str | None = None,
        skip_none: bool = False,
    ) -> None:
        if not isinstance(separator, str):
            raise PlanError(f"the separator of StringJoin is a text, not {separator!r:.60}")
        is_key = isinstance(order, SortKey)
        self._by = order.of if isinstance(order, SortKey) else order
        descending = isinstance(order, SortKey) and order.descending
        if is_key and isinstance(order, SortKey) and order.nulls is not None:
            raise PlanError("StringJoin has no place for None in its order: leave nulls= out")
        super().__init__(kept.JoinTextsAccumulator(skip_none, separator, descending), of)

    def _value(self, take: Take) -> Function:
        return paired(take, self._by if self._by is not None else self._of, self._of, "StringJoin")


class ApproxCountDistinct(Aggregation[*Ts, int]):
    """An estimate of the number of different values, in a state of bounded size; 0 without rows.

    Parameters
    ----------
    of: callable, row -> hashable; or the name of a field.
    error: the standard error of the estimate, as a fraction of the number: two of three estimates
        are within it, 99.7 % within three times as much. From 0.0021 to 0.5.
    skip_none: leave out values that are None. By default None is a value.

    A deleted row leaves no trace: the estimate is that of the values which are left.
    State: at most (1.04 / error)^2 registers, rounded up to a power of two, each with some 10 to 20
    counts. Cost: O(1) per changed row. Source: Flajolet et al., HyperLogLog; Ertl 2017.

    >>> from reactive import ApproxCountDistinct, Database
    >>> db = Database()
    >>> visits = db.table(int, name="visits")
    >>> visits.add_all(n % 1000 for n in range(5000))
    >>> found = visits.aggregate(ApproxCountDistinct(lambda v: v)).materialize().value
    >>> abs(found - 1000) < 60
    True
    """

    @outermost
    def __init__(
        self,
        of: Callable[[Unpack[Ts]], Any] | str,
        *,
        error: float = 0.02,
        skip_none: bool = False,
    ) -> None:
        is_number = isinstance(error, int | float) and not isinstance(error, bool)
        if not is_number or not 0 < error <= 0.5 or register_bits(error) > MOST_BITS:
            raise PlanError(f"the error is from 0.0021 to 0.5, not {error!r:.60}")
        super().__init__(kept.ApproxCountAccumulator(skip_none, float(error)), of)


def paired(take: Take, first: Any, second: Any, role: str) -> Lifted:
    """Return the pair of two callables of a row as one; the second is the row if it is None."""
    one = as_expression(take(first, role))
    if second is None:
        row, origins = one_value(all_parameters(one.parameters)), one.origins
    else:
        other = as_expression(take(second, role))
        row, origins = other.body, (*one.origins, *other.origins)
    return Lifted(tuple_of(one.body, row), one.names, origins, one.parameters)
