"""The lines that add a value to a running sum (`collections/running_sum.py`), and that show one.

    if price.__class__ is int and total.__class__ is int:
        total += price * weight
    elif price.__class__ is float and ... (scaled := price * UP * DOWN).is_integer():
        floats = total[1] + weight                      of a sum of floats, a pair
        ...
    elif price.__class__ is Decimal and total.__class__ is DecimalSum and price.is_finite():
        total = total.plus(price, weight)
    else:
        total = plus_value(total, price, weight)

Cost: some 0.1 us for a float beside 0.04 us for an integer; the call takes 0.3 us more.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from reactive.engine.collections.decimal_sum import DecimalSum
from reactive.engine.collections.exact import ExactSum
from reactive.engine.collections.running_sum import (
    DOWN,
    UNIT,
    UP,
    copied,
    plus,
    plus_value,
    scaled_sum,
    shown,
    times,
    times_value,
)

RUNNING_SUMS: dict[str, Any] = {
    "UP": UP,
    "DOWN": DOWN,
    "UNIT": UNIT,
    "Decimal": Decimal,
    "DecimalSum": DecimalSum,
    "ExactSum": ExactSum,
    "scaled_sum": scaled_sum,
    "plus_value": plus_value,
    "plus": plus,
    "times_value": times_value,
    "times_sum": times,
    "copied": copied,
    "sum_of": shown,
}
"""What the lines call by name."""


def write_plus_value(total: str, value: str, weight: str, *, is_own: bool) -> Iterator[str]:
    """Add `weight` times a value to the variable `total`, which may be changed if it `is_own`."""
    yield f"if {value}.__class__ is int and {total}.__class__ is int:"
    yield f"    {total} += {value} * {weight}"
    yield f"elif {total}.__class__ is tuple and {_is_scaled(value)}:"
    yield f"    floats = {total}[1] + {weight}"
    number = f"{total}[0] + int(scaled) * {weight}"
    yield f"    {total} = ({number}, floats) if floats else scaled_sum({number}, 0)"
    yield f"elif {_is_decimal(total, value)}:"
    yield f"    {total} = {total}.plus({value}, {weight})"
    yield "else:"
    before = total if is_own else f"copied({total})"
    yield f"    {total} = plus_value({before}, {value}, {weight})"


def write_plus(total: str, more: str, times: str, *, is_own: bool) -> Iterator[str]:
    """Add `times` times another sum, which is a variable, to the variable `total`."""
    yield f"if {more}.__class__ is int and {total}.__class__ is int:"
    yield f"    {total} += {more} * {times}"
    yield "else:"
    before = total if is_own else f"copied({total})"
    yield f"    {total} = plus({before}, {more}, {times})"


def text_times(value: str, often: str, is_sum: bool) -> str:
    """The expression of the sum of a value that comes so often, or of a sum that does."""
    times_int = f"{value} * {often} if {value}.__class__ is int"
    if is_sum:
        return f"{times_int} else times_sum({value}, {often})"
    of_float = f"scaled_sum(int(scaled) * {often}, {often}) if {_is_scaled(value)}"
    return f"{times_int} else {of_float} else times_value({value}, {often})"


def text_plus(total: str, value: str, often: str, is_sum: bool) -> str:
    """The expression of a sum and a value that comes so often, or a sum that does."""
    are_int = f"{total}.__class__ is int and {value}.__class__ is int"
    plus_int = f"{total} + {value} * {often} if {are_int}"
    if is_sum:
        return f"{plus_int} else plus({total}, {value}, {often})"
    number, floats = f"{total}[0] + int(scaled) * {often}", f"{total}[1] + {often}"
    is_scaled = f"{total}.__class__ is tuple and {_is_scaled(value)}"
    of_float = f"scaled_sum({number}, {floats}) if {is_scaled}"
    of_decimal = f"{total}.plus({value}, {often}) if {_is_decimal(total, value)}"
    other = f"plus_value({total}, {value}, {often})"
    return f"{plus_int} else {of_float} else {of_decimal} else {other}"


def _is_scaled(value: str) -> str:
    """The test of a float that is an integer when scaled; `scaled` is then what it is."""
    return f"{value}.__class__ is float and (scaled := {value} * UP * DOWN).is_integer()"


def _is_decimal(total: str, value: str) -> str:
    """The test of a finite decimal that is added to a sum of decimals."""
    classes = f"{value}.__class__ is Decimal and {total}.__class__ is DecimalSum"
    return f"{classes} and {value}.is_finite()"


def text_mean(state: str) -> str:
    """The expression of an average, whose state is a running sum and a count."""
    of_floats = f"{state}[0].__class__ is tuple and {state}[1] > 0"
    return f"({state}[0][0] * UNIT / {state}[1] if {of_floats} else avg_of({state}))"


def text_shown(total: str) -> str:
    """The expression of what a running sum in a variable, or a place of a list, shows."""
    of_floats = f"{total}[0] * UNIT if {total}.__class__ is tuple else sum_of({total})"
    return f"({total} if {total}.__class__ is int else {of_floats})"
