"""Calls of a row's window: `w.lag(s.points, by=2)` as a function of the engine's windows.

    w.rank()                             Asked("rank")
    w.sum(s.points, rows=(-2, 0))        Asked("sum", 0, Frame("rows", 2 preceding, current))

A frame is a pair of ends: None for an end of the partition, 0 for the row, negative numbers before
it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

from optimizer.callables.opaque import Opaque
from optimizer.errors import PlanError
from optimizer.expr import NONE, Call, Expr, Lifted, Local, reads
from optimizer.expressions.knowledge import Shape
from optimizer.expressions.text import text
from optimizer.record import record
from reactive.api import window_folds
from reactive.api.row_window import RowWindow
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.value_order import Directions
from reactive.engine.operators.statistics import QuantileAccumulator
from reactive.engine.operators.windows.frames import (
    CURRENT,
    TO_PEERS,
    UNBOUNDED,
    WHOLE,
    Edge,
    Frame,
)
from reactive.engine.operators.windows.function import Asked

Place: TypeAlias = Callable[[Expr], int]
"""Return the place of an expression among the arguments of a window."""
PLACES: dict[str, Shape] = {
    "rank": int,
    "dense_rank": int,
    "row_number": int,
    "percent_rank": float,
    "cume_dist": float,
    "ntile": int,
}
VALUES = frozenset({"lag", "lead", "first", "last", "nth"})
AGGREGATES = frozenset({"count", "sum", "avg", "min", "max", "quantile"})
FOLDS = frozenset({"scan", "ema"})
METHODS = (*PLACES, *sorted(VALUES), *sorted(AGGREGATES), *sorted(FOLDS))
IN_ORDER = frozenset({*PLACES, *VALUES, *FOLDS})
"""Functions that have no meaning for rows without an order."""


@record
class WindowCall:
    """A call of a method of a row's window, for messages, and what the window is sorted by."""

    name: str
    arguments: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...]
    directions: Directions
    origins: tuple[Opaque, ...]
    names: tuple[str, ...]

    def asked(self, place: Place) -> tuple[Asked, Shape]:
        """Return the function of the call, and the shape of its answers.

        Raises
        ------
        PlanError: there is no such method, or an argument has no meaning.
        """
        given = self._arguments()
        if self.name in IN_ORDER and not self.directions:
            raise self.error(
                "needs an order, and over(...) has none",
                f"over(by=..., order=...).select(lambda row, w: w.{self.name}(...))",
            )
        if self.name in PLACES:
            count = () if self.name != "ntile" else (self._count(given["count"], "count", 1),)
            return Asked(self.name, None, WHOLE, count), PLACES[self.name]
        if self.name in FOLDS:
            return self._folded(given, place), None
        value = given.get("value")
        argument = None if value is None else place(value)
        if self.name in ("lag", "lead"):
            return self._shifted(given, argument, place), None
        frame = self._frame(given)
        match self.name:
            case "first" | "last" | "nth":
                nth = {"first": 1, "last": -1}.get(self.name) or self._nth(given["n"])
                skips = self._constant(given, "skip_none", False)
                return Asked("nth", argument, frame, (nth,), bool(skips)), None
            case "quantile":
                quantile = QuantileAccumulator(True, self._fraction(given), "linear")
                return Asked("accumulated", argument, frame, (quantile,)), None
            case "count":
                return Asked("count", argument, frame, ("count",)), int
            case _:
                return Asked(self.name, argument, frame, (self.name,)), None

    def answer(self, found: Expr) -> Expr:
        """Return the answer of the call, from that of its function."""
        has_times = self.name == "ema" and "at" in self._arguments()
        return window_folds.answer_of_ema(found, has_times=has_times)

    def error(self, problem: str, remedy: str) -> PlanError:
        """Return the error of the call, with the place of the callable."""
        where = f" ({self.origins[0].place})" if self.origins else ""
        return PlanError(f"w.{self.name}(...){where} {problem}\n  {remedy}")

    def shown(self) -> str:
        """Return the call without the window, as a text."""
        return text(Call(Local(self.name), self.arguments, self.keywords), self.names)

    def _arguments(self) -> dict[str, Expr]:
        """Return the arguments by the names of the method's parameters."""
        if self.name not in METHODS:
            raise PlanError(
                f"a window has no function {self.name!r}\n  it has {', '.join(METHODS)}"
            )
        signature = inspect.signature(getattr(RowWindow, self.name))
        try:
            bound = signature.bind(None, *self.arguments, **dict(self.keywords))
        except TypeError as error:
            plain = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
            shown = signature.replace(parameters=plain[1:], return_annotation=signature.empty)
            raise self.error(f"is called wrongly: {error}", f"it is w.{self.name}{shown}") from None
        return {name: value for name, value in bound.arguments.items() if name != "self"}

    def _shifted(self, given: dict[str, Expr], argument: int | None, place: Place) -> Asked:
        """Return LAG or LEAD, with the place of its default among the arguments."""
        by = self._count(given["by"], "by", None) if "by" in given else 1
        default = given.get("default", NONE)
        other = None if default == NONE else place(default)
        skips = bool(self._constant(given, "skip_none", False))
        return Asked("shifted", argument, WHOLE, (-by if self.name == "lag" else by, other), skips)

    def _folded(self, given: dict[str, Expr], place: Place) -> Asked:
        """Return the scan of `scan` or `ema`."""

        def constant_of(name: str) -> Any:
            return self._constant(given, name, window_folds.UNSET)

        if self.name == "scan":
            return window_folds.asked_scan(place(given["value"]), constant_of, self.error)
        argument = place(window_folds.argument_of_ema(given))
        has_times = "at" in given
        return window_folds.asked_ema(argument, constant_of, self.error, has_times=has_times)

    # Constants.

    def _constant(self, given: dict[str, Expr], name: str, default: Any) -> Any:
        """Return the value of an argument; refuse one that depends on the row."""
        if name not in given:
            return default
        if reads(given[name]):
            raise self.error(
                f"has a {name} that depends on the row", f"{name} is one value for all rows"
            )
        return callable_of(Lifted(given[name], (), (), 0))()

    def _count(self, expr: Expr, name: str, least: int | None) -> int:
        """Return an argument that is a whole number from `least` on."""
        value = self._constant({name: expr}, name, None)
        if type(value) is not int or (least is not None and value < least):
            bound = "" if least is None else f" from {least} on"
            raise self.error(
                f"takes a whole number{bound} as {name}, not {value!r:.60}", f"{name}=2"
            )
        return value

    def _nth(self, expr: Expr) -> int:
        found = self._count(expr, "n", None)
        if not found:
            raise self.error("has no row 0", "rows are counted from 1 on; -1 is the last one")
        return found

    def _fraction(self, given: dict[str, Expr]) -> Fraction:
        at = self._constant(given, "at", None)
        if isinstance(at, bool) or not isinstance(at, int | float | Fraction) or not 0 <= at <= 1:
            raise self.error(f"takes a fraction from 0 to 1, not {at!r:.60}", "0.5 is the median")
        return at if isinstance(at, Fraction) else Fraction(repr(at))

    # Frames.

    def _frame(self, given: dict[str, Expr]) -> Frame:
        """Return the frame of the call: without one, up to the row's peers, or the partition."""
        rows = self._constant(given, "rows", None)
        distances = self._constant(given, "range", None)
        if rows is None and distances is None:
            return TO_PEERS if self.directions else WHOLE
        if rows is not None and distances is not None:
            raise self.error("has rows= and range=", "a frame is one of them")
        kind = "range" if rows is None else "rows"
        ends = self._ends(kind, distances if rows is None else rows)
        if ends == (None, None):
            return WHOLE
        if not self.directions:
            raise self.error(
                f"has {kind}={ends}, but over(...) has no order", "over(by=..., order=...)"
            )
        if kind == "range" and len(self.directions) > 1 and any(map(_is_distance, ends)):
            raise self.error(
                f"has range={ends}, but over(...) has {len(self.directions)} sort keys",
                "distances are of one key; rows= counts rows",
            )
        start, end = map(_edge, ends)
        return Frame(kind, start, end)  # type: ignore[arg-type]

    def _ends(self, kind: str, ends: Any) -> tuple[Any, Any]:
        """Return the two ends of a frame; refuse other values, and ends in the wrong order."""
        if not isinstance(ends, tuple) or len(ends) != 2:
            raise self.error(
                f"has {kind}={ends!r:.60}, which is no pair of ends",
                f"{kind}=(-2, 0) from two before up to the row; None is the end of the partition",
            )
        if kind == "rows" and not all(end is None or type(end) is int for end in ends):
            raise self.error(
                f"has rows={ends!r:.60}: rows are counted by whole numbers",
                "range=... measures distances of the sort key",
            )
        start, end = ends
        try:
            is_empty = start is not None and end is not None and end < start
            list(map(_is_distance, ends))
        except TypeError:
            raise self.error(
                f"has {kind}={ends!r:.60}, which are no distances",
                "range=(-5, 0), or range=(timedelta(hours=-1), timedelta(0))",
            ) from None
        if is_empty:
            raise self.error(
                f"has {kind}={ends!r:.60}, which ends before it starts",
                f"{kind}=({end!r}, {start!r})",
            )
        return start, end


def _is_distance(end: Any) -> bool:
    """Return True if an end is a distance other than 0; raises `TypeError` for other objects."""
    return end is not None and bool(end < end - end or end > end - end)


def _edge(end: Any) -> Edge:
    """Return an end as the engine has it; None is unbounded, 0 the row or its peers."""
    if end is None:
        return UNBOUNDED
    if not _is_distance(end):
        return CURRENT
    return ("preceding", -end) if end < end - end else ("following", end)
