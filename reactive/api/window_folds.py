"""Folds of a row's window: `w.scan(...)` and `w.ema(...)` as scans of the engine's windows.

w.scan(m.amount, step, 0)                    Asked("scan", 0, TO_ROW, (OrderedFold(step, 0),))
w.ema(p.price, alpha=0.1)                    the scan of a step of the library
w.ema(p.price, half_life=hour, at=p.at)      the scan over pairs (price, at), and its first item
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

from optimizer.callables.captures import meaning
from optimizer.callables.opaque import Opaque, opaque
from optimizer.expr import Expr, Item, constant, tuple_of
from optimizer.record import record
from reactive.engine.operators.windows.function import Asked
from reactive.engine.operators.windows.scans import TO_ROW, OrderedFold

Constants = Callable[[str], Any]
"""Return a named argument of a call, which is one value for all rows; `UNSET` if it is missing."""
Raises = Callable[[str, str], Exception]
"""Return the error of the call, from a problem and a remedy."""
UNSET: Any = object()
NO_STATE = (None, None)


def asked_scan(argument: int, constant_of: Constants, error: Raises) -> Asked:
    """Return the function of `scan`: the user's step, and the state before the first row."""
    step, start = constant_of("step"), constant_of("start")
    if not callable(step):
        raise error(
            f"takes a callable as step, not {step!r:.60}",
            "step=lambda state, value: state + value",
        )
    taken = opaque(step, 2, "the step of scan")
    if start is UNSET:
        return Asked("scan", argument, TO_ROW, (OrderedFold(taken, None, None, begins=False),))
    try:
        hash(start)
    except TypeError:
        raise error(
            f"has a start that has no hash, {start!r:.60}",
            "states are values that do not change, such as tuples",
        ) from None
    return Asked("scan", argument, TO_ROW, (OrderedFold(taken, start, meaning(start)),))


# Exponential moving averages.


@record
class EmaStep:
    """The next mean: the part `alpha` of a value, and the rest of the mean before."""

    alpha: Any

    def __call__(self, mean: Any, value: Any) -> Any:
        """Return the mean after a value."""
        if value is None:
            return mean
        if mean is None:
            return value * (self.alpha / self.alpha)  # a whole number becomes a fraction
        return mean * (1 - self.alpha) + value * self.alpha


@record
class DecayStep:
    """The next mean and its time: the mean before loses half of its part in each half-life."""

    half_life: Any

    def __call__(self, state: Any, pair: Any) -> Any:
        """Return the mean after a value, and the time of the value."""
        (mean, before), (value, at) = state, pair
        if value is None:
            return state
        if before is None:
            return value * 1.0, at
        if at < before:
            raise ValueError(
                f"the times of ema go back, from {before!r:.60} to {at!r:.60}\n"
                "  order the window by the same times: over(order=lambda r: r.at)"
            )
        rest = 0.5 ** ((at - before) / self.half_life)
        return mean * rest + value * (1 - rest), at


def argument_of_ema(given: dict[str, Expr]) -> Expr:
    """Return what the scan of an average reads of a row: the value, or the value and its time."""
    value, at = given["value"], given.get("at")
    return value if at is None else tuple_of(value, at)


def asked_ema(argument: int, constant_of: Constants, error: Raises, *, has_times: bool) -> Asked:
    """Return the function of `ema`, by its weight or by its half-life."""
    alpha, half_life = constant_of("alpha"), constant_of("half_life")
    if (alpha is UNSET) is (half_life is UNSET) or (half_life is UNSET) is has_times:
        raise error(
            "takes alpha=, or half_life= with at=",
            "w.ema(r.price, alpha=0.1), or w.ema(r.price, half_life=timedelta(hours=1), at=r.at)",
        )
    if half_life is UNSET:
        if isinstance(alpha, bool) or not isinstance(alpha, Number) or not 0 < alpha <= 1:  # type: ignore[operator]
            raise error(
                f"takes an alpha from more than 0 to 1, not {alpha!r:.60}",
                "it is the part of the newest value",
            )
        return _of_library(argument, EmaStep(alpha), alpha, None)
    try:
        is_positive = not isinstance(half_life, bool) and bool(half_life > half_life - half_life)
    except TypeError:
        is_positive = False
    if not is_positive:
        raise error(
            f"takes a half_life of more than 0, not {half_life!r:.60}",
            "a distance of the times at=: timedelta(hours=1), or 5 for times that are numbers",
        )
    return _of_library(argument, DecayStep(half_life), half_life, NO_STATE)


def _of_library(argument: int, step: Any, weight: Any, start: Any) -> Asked:
    """Return the scan of a step that equals the steps of the same weight."""
    name = type(step).__name__
    taken = Opaque(step, 2, name, None, (), (name, meaning(weight)), "the step of ema")
    return Asked("scan", argument, TO_ROW, (OrderedFold(taken, start, meaning(start)),))


def answer_of_ema(answer: Expr, *, has_times: bool) -> Expr:
    """Return the mean of the scan's state."""
    return Item(answer, constant(0)) if has_times else answer
