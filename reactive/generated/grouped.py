"""Aggregation of what a loop makes, in the same loop: no row is made between.

    for row, weight in delta:
        ...                                 the chain below, in terms of the row
        group = get(key)                    its group, remembered as it was at the first touch
        group[1] += weight                  Count
        group[2] += value * weight          Sum, while it is an integer

The groups, and what they show, are those of the plain operator (`operators/aggregate.py`), which
does the delta again if anything raises.

State:  the groups of the plain operator.
Cost:   O(|dL|).
Source: [dbsp] section 4.2; deforestation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optimizer.expr import Expr, Lifted
from reactive.exact import ExactSum
from reactive.folds import AvgFold, CountFold, SumFold
from reactive.generated.body import Body
from reactive.operators.aggregate import Aggregate
from reactive.zset import Pair

IN_LINE = (CountFold, SumFold, AvgFold)
"""The folds whose state is a number, or an `ExactSum`, which can be copied."""

Step = Callable[..., Iterable[Any]]


class Grouping:
    """Writes what an aggregate does with a row of a loop."""

    def __init__(self, key: Expr | None, folds: Sequence[tuple[Any, Expr | None]]) -> None:
        self._key = key
        self._folds = folds

    def exprs(self) -> list[Expr]:
        """What it evaluates of each row."""
        own = [] if self._key is None else [self._key]
        return own + [value for _, value in self._folds if value is not None]

    def prologue(self) -> list[str]:
        return ["    get = groups.get"]

    def write(self, body: Body, weight: str) -> None:
        """The lines: first all that may raise, then the changes."""
        values = [None if e is None else body.use(e) for _, e in self._folds]
        names: list[str | None] = []
        for text, (_, expr) in zip(values, self._folds, strict=True):
            if text is None or text.isidentifier():
                names.append(text)
            else:
                names.append(body.variable("value", text))
        key = "()" if self._key is None else body.canonical(self._key)
        if not key.isidentifier() and self._key is not None:
            key = body.variable("key", key)
        self._find(body, key)
        body.line(f"group[0] += {weight}")
        for place, ((fold, _), value) in enumerate(zip(self._folds, names, strict=True), 1):
            self._add(body, place, fold, value, weight)

    def _find(self, body: Body, key: str) -> None:
        body.line(f"group = get({key})")
        body.line("if group is None:")
        body.line(f"    group = groups[{key}] = {self._new()}")
        body.line(f"    before[{key}] = None")
        body.line(f"elif {key} not in before:")
        body.line(f"    before[{key}] = group.copy()")
        for place, (fold, _) in enumerate(self._folds, 1):
            if isinstance(fold, SumFold | AvgFold):
                body.line(f"    if group[{place}].__class__ is not int:")
                body.line(f"        group[{place}] = copied(group[{place}])")

    def _new(self) -> str:
        zeros = ["(0, 0)" if isinstance(fold, AvgFold) else "0" for fold, _ in self._folds]
        return f"[0, {', '.join(zeros)}, None]"

    def _add(self, body: Body, place: int, fold: Any, value: str | None, weight: str) -> None:
        state = f"group[{place}]"
        match fold:
            case CountFold():
                body.line(f"{state} += {weight}")
            case SumFold():
                body.line(f"state = {state}")
                body.line(f"if state.__class__ is int and {value}.__class__ is int:")
                body.line(f"    {state} = state + {value} * {weight}")
                body.line("else:")
                body.line(f"    {state} = add_to_sum(state, {value}, {weight})")
            case _:
                body.line(f"{state} = add_to_avg({state}, {value}, {weight})")


def copied(state: Any) -> Any:
    """The state of a sum or average, to be changed while the old one is remembered."""
    if state.__class__ is ExactSum:
        return state.copy()
    total, count = state
    return (total.copy() if total.__class__ is ExactSum else total, count)


BOUND = {"copied": copied, "add_to_sum": SumFold().add, "add_to_avg": AvgFold().add}
"""What the lines call by name."""


class Grouped:
    """Runs the loop on the groups of a plain operator; when it raises, the plain operators."""

    __slots__ = (
        "_before",
        "_carefully",
        "_groups",
        "_loop",
        "_pairing",
        "_plain",
        "_was_plain",
        "source",
        "touched",
    )

    def __init__(
        self,
        plain: Aggregate,
        loop: Step,
        carefully: Callable[..., Sequence[Pair]],
        source: str,
        pairing: Pairing | None = None,
    ) -> None:
        self._plain = plain
        self._groups = plain.groups
        self._loop = loop
        self._carefully = carefully
        self._pairing = pairing
        self._before: dict[Any, Any] = {}
        self._was_plain = False
        self.source = source
        self.touched = 0

    def step(self, *deltas: Sequence[Any]) -> Sequence[Pair]:
        for delta in deltas:
            self.touched += len(delta)
        more: Any = ()
        if self._pairing is not None:
            more = self._pairing.look_ups(*deltas)
            if more is None:
                self._was_plain = True
                return self._plain.step(self._carefully(*deltas))
        before: dict[Any, Any] = {}
        try:
            self._loop(self._groups, before, *deltas, *more)
            out = self._plain.differences(before)
        except BaseException as error:
            self._restore(before)
            if not isinstance(error, Exception):
                raise
            self._was_plain = True
            return self._plain.step(self._carefully(*deltas))
        self._before = before
        return out

    def undo(self) -> None:
        if self._was_plain:
            self._plain.undo()
        else:
            self._restore(self._before)
        self._was_plain, self._before = False, {}

    def commit(self) -> None:
        if self._was_plain:
            self._plain.commit()
            self._was_plain = False
        self._before = {}

    def contents(self) -> Iterable[Pair]:
        return self._plain.contents()

    def footprint(self) -> tuple[int, int]:
        return self._plain.footprint()

    def _restore(self, before: dict[Any, Any]) -> None:
        groups = self._groups
        for key, group in before.items():
            if group is None:
                groups.pop(key, None)
            else:
                groups[key] = group


def is_in_line(folds: Iterable[Any]) -> bool:
    """Whether all folds can be part of a loop."""
    return all(isinstance(fold, IN_LINE) for fold in folds)


def lifted(function: Any) -> bool:
    """Whether a callable has been read, or there is none."""
    return function is None or isinstance(function, Lifted)
