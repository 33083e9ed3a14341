"""Aggregates and sort keys that a query names: `Count()`, `Sum(f)`, `asc(f)`, `desc(g)`.

They are descriptions; `accumulators.py` maintains the values. A callable gets one argument per
binding of the relation. An aggregate of no rows, which only a query without groups can have, is 0
for Count, Sum and CountDistinct, an empty `Bag` for Collect, None for Avg, Min and Max, and the
result of `zero` for Aggregate and Monoid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar, overload

from typing_extensions import TypeVarTuple, Unpack

from optimizer import plan
from optimizer.callables.captures import meaning
from optimizer.callables.opaque import Opaque
from optimizer.errors import PlanError
from optimizer.expr import Function
from optimizer.expressions.knowledge import Shapes
from optimizer.plan import Folded
from reactive.api import rings
from reactive.api.columns import take_callable
from reactive.engine.collections.bag import Bag
from reactive.engine.operators import tolerant
from reactive.engine.operators.accumulators import (
    Accumulator,
    AvgAccumulator,
    CollectAccumulator,
    CountAccumulator,
    CountDistinctAccumulator,
    MaxAccumulator,
    MinAccumulator,
    MonoidAccumulator,
    RingAccumulator,
    SumAccumulator,
    UserAccumulator,
)
from reactive.engine.runtime.boundary import outermost

if TYPE_CHECKING:
    from reactive.api.rings import Ring

Ts = TypeVarTuple("Ts")


R = TypeVar("R", covariant=True)
V = TypeVar("V")
S = TypeVar("S")
Out = TypeVar("Out")
Monotone: TypeAlias = Literal["rises", "falls"]
"""The direction of a result as a group gets more rows."""


class Summable(Protocol[R]):
    """The values that `Sum` takes: numbers, or types with `+`, `-` and `* int`; `R` is the sum."""

    def __add__(self, other: Any, /) -> R: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: int, /) -> Any: ...


class Divisible(Summable[Any], Protocol[R]):
    """The values that `Avg` takes: numbers, or summable types with `/ int`; `R` is the mean."""

    def __truediv__(self, other: int, /) -> R: ...


class Aggregation(Generic[*Ts, R]):
    """Base of all aggregates: an accumulator, and the callable for its values (None: the row).

    >>> from reactive import Aggregation, Count
    >>> isinstance(Count(), Aggregation)
    True
    """

    def __init__(
        self, accumulator: Accumulator, of: Callable[[Unpack[Ts]], Any] | str | None
    ) -> None:
        self._accumulator = accumulator
        self._of = of
        self._functions: tuple[Opaque, ...] = ()
        self._ring: Any = None
        self._direction = 0

    def _value(self, take: Callable[[Any, str], Function]) -> Function | None:
        """Return the callable for its values as a part of the plan; None if it reads the row."""
        return None if self._of is None else take(self._of, type(self).__name__)

    def __repr__(self) -> str:
        given = ["..."] * (self._of is not None) + ["skip_none=True"] * self._accumulator.skip_none
        return f"{type(self).__name__}({', '.join(given)})"


class Count(Aggregation[*Ts, int]):
    """The number of rows, including copies.

    State: a number per group. Cost: O(1) per changed row. Source: [dbsp] linear aggregation.

    >>> from reactive import Count, Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> words.add_all(["a", "b", "b"])
    >>> words.aggregate(Count()).materialize().value
    3
    """

    def __init__(self) -> None:
        super().__init__(CountAccumulator(), None)


class Sum(Aggregation[*Ts, V]):
    """The exact sum of a value over the rows.

    Parameters
    ----------
    of: callable, row -> int, float, Fraction, Decimal, or a type with `+`, `-` and `* int`; or the
        name of a field.
    skip_none: leave out values that are None, as SQL does. By default a None is a `TypeError`.

    The sum of floats equals `math.fsum` of the group, after any history of changes. It is NaN if
    the group has a NaN or both infinities, and infinite if it has one infinity or exceeds the
    largest float; after such a row is deleted, the sum is finite again. The sum of no values is 0.

    Cost: O(1) per changed row. Source: [dbsp] linear aggregation.

    >>> from reactive import Database, Sum
    >>> db = Database()
    >>> prices = db.table(float, name="prices")
    >>> total = prices.aggregate(Sum(lambda p: p)).materialize()
    >>> prices.add_all([1e100, 0.1])
    >>> prices.remove(1e100)
    >>> total.value
    0.1
    """

    @overload
    def __init__(
        self, of: Callable[[Unpack[Ts]], Summable[V]], *, skip_none: Literal[False] = False
    ) -> None: ...
    @overload
    def __init__(
        self, of: Callable[[Unpack[Ts]], Summable[V] | None], *, skip_none: bool
    ) -> None: ...
    @overload
    def __init__(self: Sum[*Ts, Any], of: str, *, skip_none: bool = False) -> None: ...
    def __init__(self, of: Any, *, skip_none: bool = False) -> None:
        super().__init__(SumAccumulator(skip_none), of)


class Avg(Aggregation[*Ts, V]):
    """The mean of a value: the exact sum divided by the number of rows; None without rows.

    It takes the same values as `Sum`. With `skip_none=True` it is the mean of the values that are
    not None, or None if all are. Cost: O(1) per changed row. Source: [dbsp] linear aggregation.

    >>> from reactive import Avg, Database
    >>> db = Database()
    >>> ages = db.table(int, name="ages")
    >>> ages.add_all([20, 25])
    >>> ages.aggregate(Avg(lambda a: a)).materialize().value
    22.5
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
    def __init__(self: Avg[*Ts, Any], of: str, *, skip_none: bool = False) -> None: ...
    def __init__(self, of: Any, *, skip_none: bool = False) -> None:
        super().__init__(AvgAccumulator(skip_none), of)


class Min(Aggregation[*Ts, V]):
    """The least value; None without rows. NaN is greater than all other values.

    Parameters
    ----------
    of: callable, row -> hashable that `<` compares with the others; or the name of a field.
    skip_none: leave out values that are None, as SQL does; the result is None if all are. By
        default a None beside other values is a `TypeError`.

    State: each distinct value of the group. Cost: O(log group) per changed row.

    >>> from reactive import Database, Min
    >>> db = Database()
    >>> ages = db.table(int, name="ages")
    >>> ages.add_all([20, 25])
    >>> ages.aggregate(Min(lambda a: a)).materialize().value
    20
    """

    @overload
    def __init__(
        self, of: Callable[[Unpack[Ts]], V], *, skip_none: Literal[False] = False
    ) -> None: ...
    @overload
    def __init__(self, of: Callable[[Unpack[Ts]], V | None], *, skip_none: bool) -> None: ...
    @overload
    def __init__(self: Min[*Ts, Any], of: str, *, skip_none: bool = False) -> None: ...
    def __init__(self, of: Any, *, skip_none: bool = False) -> None:
        super().__init__(MinAccumulator(skip_none), of)


class Max(Aggregation[*Ts, V]):
    """The greatest value; a NaN in the group is the greatest. Parameters and cost as for `Min`.

    >>> from reactive import Database, Max
    >>> db = Database()
    >>> ages = db.table(int, name="ages")
    >>> ages.add_all([20, 25])
    >>> ages.aggregate(Max(lambda a: a)).materialize().value
    25
    """

    @overload
    def __init__(
        self, of: Callable[[Unpack[Ts]], V], *, skip_none: Literal[False] = False
    ) -> None: ...
    @overload
    def __init__(self, of: Callable[[Unpack[Ts]], V | None], *, skip_none: bool) -> None: ...
    @overload
    def __init__(self: Max[*Ts, Any], of: str, *, skip_none: bool = False) -> None: ...
    def __init__(self, of: Any, *, skip_none: bool = False) -> None:
        super().__init__(MaxAccumulator(skip_none), of)


class CountDistinct(Aggregation[*Ts, int]):
    """The number of different values; None counts, unless `skip_none=True`, as in SQL.

    State: each distinct value of the group. Cost: O(1) per changed row.

    >>> from reactive import CountDistinct, Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> words.add_all(["a", "b", "b"])
    >>> words.aggregate(CountDistinct(lambda w: w)).materialize().value
    2
    """

    def __init__(self, of: Callable[[Unpack[Ts]], Any] | str, *, skip_none: bool = False) -> None:
        super().__init__(CountDistinctAccumulator(skip_none), of)


class Collect(Aggregation[*Ts, Bag[V]]):
    """All values of the group as a `Bag`.

    State: the distinct values.
    Cost:  O(log group) per changed value; the new bag shares unchanged parts with the old one.

    >>> from reactive import Collect, Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> words.add_all(["b", "a", "b"])
    >>> sorted(words.aggregate(Collect(lambda w: w)).materialize().value)
    ['a', 'b', 'b']
    """

    @overload
    def __init__(self, of: Callable[[Unpack[Ts]], V]) -> None: ...
    @overload
    def __init__(self: Collect[*Ts, Any], of: str) -> None: ...
    def __init__(self, of: Any) -> None:
        super().__init__(CollectAccumulator(), of)


class Aggregate(Aggregation[*Ts, Out]):
    """Your own invertible aggregate: deleted values are removed from its state.

    Parameters
    ----------
    zero: the state without rows. States are immutable: `add` and `remove` return a new one.
    add: callable, (state, value) -> state.
    remove: callable, (state, value) -> state; the inverse of `add`, in any order of values. In a
        commit it is called after the calls of `add`.
    result: callable, state -> value of the aggregate; by default the state itself.
    is_zero: callable, state -> truth value, true for the state without rows; by default `state ==
        zero`. It is called only over a table that is not stored, where the weights of a group may
        add up to 0 although the group is not empty.
    of: callable, row -> value, or the name of a field; by default the row (a tuple, if it has
        several bindings).

    monotone: `"rises"` if the result never falls as a group gets more rows, and stays true once it
        is true; `"falls"` for the opposite. A recursion may pass through such an aggregate
        (docs/recursion.md). With `Database(strict=True)`, the recursion checks that on its rows.
    ring: a `reactive.rings.Ring`, in place of `zero`, `add` and `remove`: the aggregate is the sum
        over the rows of the products of the values of their bindings. `of` is then a list of a
        callable for each binding, row of that binding -> value of the ring; None for `ring.one`.

    State: one state per group. Cost: one call per changed copy of a row. Over a join, an aggregate
    with a ring is kept as sums on its sides, so that a change costs a product for each changed key.
    Source: [dbsp] linear aggregation; F-IVM for rings.

    >>> from reactive import Aggregate, Database
    >>> db = Database()
    >>> bits = db.table(int, name="bits")
    >>> parity = bits.aggregate(Aggregate(0, int.__xor__, int.__xor__)).materialize()
    >>> bits.add_all([5, 3])
    >>> parity.value
    6
    """

    @overload
    def __init__(
        self: Aggregate[*Ts, S],
        zero: S,
        add: Callable[[S, Any], S],
        remove: Callable[[S, Any], S],
        result: None = None,
        *,
        is_zero: Callable[[S], object] | None = None,
        of: Callable[[Unpack[Ts]], Any] | str | None = None,
        monotone: Monotone | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        zero: S,
        add: Callable[[S, Any], S],
        remove: Callable[[S, Any], S],
        result: Callable[[S], Out],
        *,
        is_zero: Callable[[S], object] | None = None,
        of: Callable[[Unpack[Ts]], Any] | str | None = None,
        monotone: Monotone | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Aggregate[*Ts, Any],
        *,
        ring: Ring[S],
        of: Callable[[Unpack[Ts]], S] | Sequence[Callable[[Any], S] | None],
    ) -> None: ...
    @outermost
    def __init__(
        self,
        zero: Any = None,
        add: Any = None,
        remove: Any = None,
        result: Any = None,
        *,
        is_zero: Callable[[Any], object] | None = None,
        of: Any = None,
        ring: Any = None,
        monotone: Monotone | None = None,
    ) -> None:
        if ring is not None:
            if monotone is not None:
                raise PlanError(
                    "Aggregate takes a ring or monotone=, not both\n"
                    "  rings have negative values, so that sums in them may rise or fall"
                )
            if any(each is not None for each in (zero, add, remove, result, is_zero)):
                raise PlanError(
                    "Aggregate takes a ring, or zero, add and remove, not both\n"
                    "  Aggregate(ring=R, of=[f, g]); the result is that of the ring"
                )
            super().__init__(RingAccumulator(ring=ring), None)
            self._ring = rings.take_factors(ring, of)
            return
        if add is None or remove is None:
            raise PlanError(
                "Aggregate takes zero, add and remove, or a ring\n"
                "  Aggregate(0, lambda s, v: s + v, lambda s, v: s - v)"
            )
        plus = take_callable(add, 2, "the add of Aggregate")
        minus = take_callable(remove, 2, "the remove of Aggregate")
        finish = None if result is None else take_callable(result, 1, "the result of Aggregate")
        test = None if is_zero is None else take_callable(is_zero, 1, "the is_zero of Aggregate")
        super().__init__(UserAccumulator(zero, meaning(zero), plus, minus, finish, test), of)
        self._functions = tuple(f for f in (plus, minus, finish, test) if f is not None)
        self._direction = _direction_of(monotone)


class Monoid(Aggregation[*Ts, Out]):
    """Your own aggregate without an inverse: an associative, commutative combination of values.

    Parameters
    ----------
    zero: the neutral value, for which `combine(zero, x) == x`.
    combine: callable, (value, value) -> value, associative and commutative.
    result: callable, value -> value of the aggregate; by default the combined value.
    of: callable, row -> hashable value, or the name of a field; by default the row.
    monotone: `"rises"` or `"falls"`, as for `Aggregate`.

    State: a balanced tree over the distinct values. Cost: O(log group) calls per changed row.

    >>> import math
    >>> from reactive import Database, Monoid
    >>> db = Database()
    >>> numbers = db.table(int, name="numbers")
    >>> divisor = numbers.aggregate(Monoid(0, math.gcd)).materialize()
    >>> numbers.add_all([12, 18, 7])
    >>> numbers.remove(7)
    >>> divisor.value
    6
    """

    @overload
    def __init__(
        self: Monoid[*Ts, S],
        zero: S,
        combine: Callable[[S, S], S],
        result: None = None,
        *,
        of: Callable[[Unpack[Ts]], S] | str | None = None,
        monotone: Monotone | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        zero: S,
        combine: Callable[[S, S], S],
        result: Callable[[S], Out],
        *,
        of: Callable[[Unpack[Ts]], S] | str | None = None,
        monotone: Monotone | None = None,
    ) -> None: ...
    @outermost
    def __init__(
        self,
        zero: S,
        combine: Callable[[S, S], S],
        result: Callable[[S], Out] | None = None,
        *,
        of: Callable[[Unpack[Ts]], S] | str | None = None,
        monotone: Monotone | None = None,
    ) -> None:
        combined = take_callable(combine, 2, "the combine of Monoid")
        finish = None if result is None else take_callable(result, 1, "the result of Monoid")
        super().__init__(MonoidAccumulator(zero, meaning(zero), combined, finish), of)
        self._functions = tuple(f for f in (combined, finish) if f is not None)
        self._direction = _direction_of(monotone)


def _direction_of(monotone: object) -> int:
    """Return 1 for a result that rises with more rows, -1 for one that falls, 0 for others."""
    directions = {None: 0, "rises": 1, "falls": -1}
    if not isinstance(monotone, str | None) or monotone not in directions:
        raise PlanError(
            f"monotone={monotone!r:.60} is no direction of a result with more rows\n"
            '  write monotone="rises" or monotone="falls"'
        )
    return directions[monotone]


def make_fold(
    aggregate: Aggregation[*Ts, Any], take: Callable[[Any, str], Function], of: Shapes = ()
) -> Folded:
    """Return the aggregate as a part of the plan; `take` lifts its callable for a named role.

    `of` are the shapes of the bindings, which an aggregate over a ring reads one by one.

    Raises
    ------
    PlanError: `aggregate` is not an aggregate; or raised by `take`.
    """
    if not isinstance(aggregate, Aggregation):
        known = isinstance(aggregate, type) and issubclass(aggregate, Aggregation)
        hint = f"write {aggregate.__name__}(...)" if known else _HINT
        raise PlanError(f"aggregate takes aggregates, not {aggregate!r}\n  {hint}")
    name, own_name = _base_of(type(aggregate)), type(aggregate).__name__
    value = aggregate._value(take) if aggregate._ring is None else aggregate._ring.value(of)
    accumulator = aggregate._accumulator
    instead = None
    if isinstance(accumulator, UserAccumulator | MonoidAccumulator):
        instead = tolerant.Tolerant(accumulator)
    skip_none, functions = accumulator.skip_none, aggregate._functions
    own = own_name if own_name != name else None
    direction = aggregate._direction
    return Folded(name, accumulator, value, functions, skip_none, instead, own, direction)


def _base_of(kind: type) -> str:
    """Return the name of the built-in aggregate that a class is, or is derived from."""
    ours = __name__.rpartition(".")[0]
    return next(base.__name__ for base in kind.__mro__ if base.__module__.startswith(ours))


_HINT = "such as Count(), Sum(lambda row: ...), or your own Aggregate or Monoid"


# The keys of an order as a query names them: `order_by(asc(f), desc(g, nulls="last"))`.

V_co = TypeVar("V_co", covariant=True)
Nulls: TypeAlias = Literal["first", "last"]
"""The place of None in an order: before or after all other values."""


class Less(Protocol):
    """The values that `<` compares: not None, and not optional."""

    def __lt__(self, other: Any, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class SortKey(Generic[V_co, *Ts]):
    """A key of `order_by` with its own direction; `asc` and `desc` make it.

    >>> from reactive import desc
    >>> desc(len).descending
    True
    """

    of: Callable[[*Ts], V_co] | str
    descending: bool
    nulls: Nulls | None = None

    def __post_init__(self) -> None:
        _check_nulls(self.nulls)

    def __repr__(self) -> str:
        nulls = "" if self.nulls is None else f", nulls={self.nulls!r}"
        return f"SortKey({'desc' if self.descending else 'asc'}(...{nulls}))"


@overload
def asc(of: Callable[[*Ts], V_co], *, nulls: None = None) -> SortKey[V_co, *Ts]: ...
@overload
def asc(of: Callable[[*Ts], V_co | None], *, nulls: Nulls) -> SortKey[V_co, *Ts]: ...
@overload
def asc(of: str, *, nulls: Nulls | None = None) -> SortKey[Any, *tuple[Any, ...]]: ...
@outermost
def asc(of: Any, *, nulls: Nulls | None = None) -> Any:
    """Return a sort key with the least values first.

    Parameters
    ----------
    of: callable, bindings -> values that `<` compares, or the name of a field.
    nulls: `"first"` or `"last"`: the place of None, as the value or as an item of a tuple.

    >>> from reactive import Database, asc, desc
    >>> words = Database().table(str)
    >>> view = words.order_by(desc(len), asc(lambda w: w)).materialize()
    >>> words.add_all(["to", "be", "not"])
    >>> list(view)
    ['not', 'be', 'to']
    """
    return SortKey(of, False, nulls)


@overload
def desc(of: Callable[[*Ts], V_co], *, nulls: None = None) -> SortKey[V_co, *Ts]: ...
@overload
def desc(of: Callable[[*Ts], V_co | None], *, nulls: Nulls) -> SortKey[V_co, *Ts]: ...
@overload
def desc(of: str, *, nulls: Nulls | None = None) -> SortKey[Any, *tuple[Any, ...]]: ...
@outermost
def desc(of: Any, *, nulls: Nulls | None = None) -> Any:
    """Return a sort key with the greatest values first, NaN before all others; see `asc`.

    >>> from reactive import Database, desc
    >>> ages = Database().table(object)
    >>> view = ages.order_by(desc(lambda age: age, nulls="last")).materialize()
    >>> ages.add_all([31, None, 47])
    >>> list(view)
    [47, 31, None]
    """
    return SortKey(of, True, nulls)


_OF_COMPARISON = type(cmp_to_key(lambda one, other: 0))
"""The class of the keys that `functools.cmp_to_key` makes."""


def sort_keys(
    keys: tuple[Any, ...],
    take: Callable[[Any], Function],
    role: str,
    *,
    descending: bool,
    nulls: Nulls | None,
) -> tuple[plan.SortKey, ...]:
    """Return the sort keys as parts of the plan.

    `descending` and `nulls` apply to keys without a direction or place of their own.

    Raises
    ------
    PlanError: `nulls` is not a place; or `descending` is given although each key has a direction.
    """
    _check_nulls(nulls)
    if descending and all(isinstance(key, SortKey) for key in keys):
        raise PlanError(
            f"{role}(..., descending=True) of keys that all say asc or desc\n"
            "  it is for plain callables; write desc(...)"
        )
    made = []
    for key in keys:
        if key is asc or key is desc:
            raise PlanError(
                f"{role} takes keys, not {key.__name__} itself\n  write {key.__name__}(f)"
            )
        of = key.of if isinstance(key, SortKey) else key
        if isinstance(of, _OF_COMPARISON):
            raise PlanError(
                f"{role} cannot sort by a function of cmp_to_key: its keys have no hash\n"
                "  give a function from a row to its key: order_by(lambda row: (row.a, -row.b))"
            )
        if isinstance(key, SortKey):
            made.append(plan.SortKey(take(key.of), key.descending, key.nulls or nulls))
        else:
            made.append(plan.SortKey(take(key), descending, nulls))
    return tuple(made)


def reverse_sort_key(key: plan.SortKey) -> plan.SortKey:
    """Return the key of the reversed order, with None on the other side."""
    nulls: dict[Nulls | None, Nulls | None] = {"first": "last", "last": "first", None: None}
    return plan.SortKey(key.function, not key.descending, nulls[key.nulls])


def _check_nulls(nulls: object) -> None:
    """Refuse a `nulls=` other than None, "first" and "last"."""
    if nulls is not None and nulls != "first" and nulls != "last":
        raise PlanError(f'nulls={nulls!r} is no place for None\n  write nulls="first" or "last"')
