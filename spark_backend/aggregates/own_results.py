"""What an aggregate that Python works out shows: a type that columns keep, or why none is known.

    Sum, Avg of Decimal         a Decimal of any number of digits
    Collect                     a multiset of the values
    Aggregate(0, add, remove)   int, if add gives one of an int and a value
    Aggregate(..., result=f)    what f is known to give of such a state
    Monoid(0, combine)          the type of the values, if that is the type of the zero
    reduce(f)                   a multiset of what f is known to give rows of
    Aggregate with on_error=    an `Outcome`: what it shows otherwise, or a `Fault`

What is known of a callable is what is written in it, or its annotation (`codec/returned.py`).
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.lifting.lift import lift
from reactive.engine.collections.bag import Bag
from reactive.engine.operators import accumulators
from reactive.engine.operators.tolerant import Tolerant
from spark_backend.aggregates.reduced import ReducedAccumulator, reduced_result
from spark_backend.codec.returned import returned
from spark_backend.codec.schema import (
    WIDEST,
    Digits,
    Plain,
    Record,
    Typed,
    Untyped,
    Whole,
    in_common,
    outcome_of,
    type_name,
)
from spark_backend.codec.values import Inexact, Value, any_value, literal


def own_result(folded: plan.Folded, value: Value) -> Typed:
    """What an aggregate of values shows.

    Raises
    ------
    Inexact: it is of no known type, or may raise for a value of the type.
    """
    match folded.accumulator:
        case accumulators.SumAccumulator() | accumulators.AvgAccumulator():
            if value.of.kind is not Decimal:
                raise Inexact(f"{folded.name} of {type_name(value.of)}")
            return Whole(Digits)
        case accumulators.CollectAccumulator():
            return Whole(Bag, value.of)
        case accumulators.UserAccumulator() as own:
            return _of_user(own, value)
        case accumulators.MonoidAccumulator() as own:
            return _of_monoid(own, value)
        case ReducedAccumulator() as own:
            return reduced_result(own, value)
        case Tolerant(inner):
            return outcome_of(own_result(replace(folded, accumulator=inner), value))
        case _:
            raise Inexact(f"{folded.name} of {type_name(value.of)}, whose order is not Spark's")


def _of_user(own: accumulators.UserAccumulator, value: Value) -> Typed:
    state = _widened(_known(own.initial))
    for _ in range(2):  # what it adds to is what it gave before
        found = _called(own.plus, any_value(state), value)
        try:
            state = _widened(in_common(state, found))
        except Untyped as untyped:
            raise Inexact(f"its state: {untyped}") from None
    return state if own.finish is None else _widened(_called(own.finish, any_value(state)))


def _of_monoid(own: accumulators.MonoidAccumulator, value: Value) -> Typed:
    if value.optional or _known(own.initial).kind is not value.of.kind:
        raise Inexact(f"its zero is of another type than {type_name(value.of)}")
    state = _widened(value.of)
    return state if own.finish is None else _widened(_called(own.finish, any_value(state)))


def _known(value: Any) -> Typed:
    return literal(value).of


def _called(function: Opaque, *values: Value) -> Typed:
    """What a callable gives of such values."""
    return returned(lift(function), values)


def _widened(of: Typed) -> Typed:
    """The type with integers as large as columns hold."""
    if isinstance(of, Record):
        return replace(of, fields=tuple(map(_widened, of.fields)))
    if isinstance(of, Plain) and of.kind is int:
        return replace(of, low=-WIDEST, high=WIDEST)
    return of
