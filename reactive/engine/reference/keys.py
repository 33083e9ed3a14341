"""Keys of the rows of a pair: the values that must be equal according to the predicate.

    on  s.k == m.k and s.age > 30 and s.day <= m.day

    of a left row    its key is s.k, if s.age > 30; an error row, unless s.day has an order
    of a right row   its key is m.k;                an error row, unless m.day has an order

The keys only tell which pairs can be skipped: pairs for which the predicate is certainly false and
does not raise. So conditions are read in the order of evaluation, up to the first one that may
raise in an unknown way. A row is an error row if a part of a condition raises on it, or returns a
value with unusual comparisons (`has_plain_equality`): all pairs with it are tested. Of an `or`, the
conditions that all its arms share are used.

The optimizer finds keys by another rule, which shares no code with this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from operator import itemgetter
from typing import Any

from optimizer.expr import (
    FALSE,
    And,
    Attempt,
    Expr,
    Function,
    Lifted,
    Operation,
    Or,
    conjuncts,
    reads,
)
from optimizer.lifting.lift import lift
from optimizer.record import record
from reactive.engine.codegen.interpret import Read, interpret_expr, only_binding
from reactive.engine.collections.index import ERROR_KEY, FILTERED
from reactive.engine.collections.values import SIMPLE, has_plain_equality
from reactive.engine.collections.zset import Row
from reactive.engine.runtime.interrupts import reraise_asynchronous

ORDERED: dict[type, str] = {
    **dict.fromkeys((int, float, bool), "number"),
    **{kind: kind.__name__ for kind in (str, bytes, date, timedelta)},
}
"""Kinds of values that are ordered among themselves."""

Place = Callable[[Row], Any]
"""Returns the key of a row, which partners must share; or `ERROR_KEY`, or `FILTERED`."""


def places(predicates: Sequence[Function], count: int) -> tuple[Place, Place] | None:
    """Return the key functions of a left row, of `count` bindings, and of a right row, of one.

    Return None if no pair can be skipped.
    """
    found = conditions(predicates, count, 2)
    if not found.spares:
        return None
    left, right = found.places
    return left, right


@record
class Equation:
    """Two sides, and the parts of their keys that are equal."""

    side: int
    part: int
    other: int
    other_part: int


@record
class Joint:
    """A side, and the part of its key that equals a value computed from several earlier sides."""

    side: int
    part: int
    value: Read
    """Computes the value from all bindings.

    It raises as the expression does, and may return any kind.
    """


@record
class Conditions:
    """The key function of each side, which returns a tuple, and the parts that are equal."""

    places: list[Place]
    equations: list[Equation]
    spares: bool
    """True if some combinations of rows can be skipped."""
    joint: list[Joint]
    is_complete: bool = True
    """True if no condition of the predicates is missing."""


def conditions(predicates: Sequence[Function], count: int, sides: int) -> Conditions:
    """Return the conditions of predicates on the rows of several sides, in order of evaluation.

    Parameters
    ----------
    predicates: of the rows of all sides, or of the first ones.
    count: the number of bindings of the first side's rows; the other sides have one.
    """
    finder = ConditionReader(count, sides)
    is_complete = all(
        finder.take(test) for each in predicates for test in conjuncts(lift_body(each))
    )
    return replace(finder.collect(), is_complete=is_complete)


def lift_body(predicate: Function) -> Expr:
    """Return the expression of a predicate."""
    return predicate.body if isinstance(predicate, Lifted) else lift(predicate).body


class ConditionReader:
    """Reader of conditions, which collects keys, filters and equations."""

    def __init__(self, count: int, sides: int) -> None:
        self._count = count
        self._sides: list[list[_ConditionPart]] = [[] for _ in range(sides)]
        self._equations: list[Equation] = []
        self._joint: list[Joint] = []
        self._is_attempt = False
        """True if the parts that are added make a condition false if they raise."""

    def take(self, test: Expr) -> bool:
        """Try to evaluate a condition on single sides, as a key, a filter or a comparison.

        Return False if that could hide an exception: the caller must then ignore this condition and
        all later ones. A value of several sides is computed only for rows that are already
        combined, so later conditions must not skip any of these.
        """
        if self._joint and max(self.read_sides(test), default=0) < self._joint[-1].side:
            return False
        side = self.side_of(test)
        if side is not None:
            return self._add((side, test, _Test()))
        match test:
            case Operation("==", operands):
                return self._compare(operands, _LookUpKey())
            case Or(arms):
                return self._take_shared(test, list(map(conjuncts, arms)))
            case Attempt(of, otherwise) if otherwise == FALSE:
                self._is_attempt = True
                for condition in _needed(of):
                    self._take_part(condition)
                self._is_attempt = False
                return True
            case _:
                return self.check(test)

    def _take_part(self, condition: Expr) -> None:
        """Use an equation, or a condition of one side, that an attempt needs to succeed."""
        side = self.side_of(condition)
        match condition:
            case _ if side is not None:
                self._add((side, condition, _Test()))
            case Operation("==", (one, other)):
                if None not in (self.side_of(one), self.side_of(other)):
                    self._compare((one, other), _LookUpKey())

    def _take_shared(self, test: Expr, arms: Sequence[Sequence[Expr]]) -> bool:
        """Use the conditions that all arms of an `or` share, if it does not raise."""
        is_safe = self.check(test)
        first, *others = arms
        for number, condition in enumerate(first):
            if not is_safe and number > 0:
                break  # a condition before it may raise
            if all(_has(arm if is_safe else arm[:1], condition) for arm in others):
                self.take(condition)
        return is_safe

    def check(self, test: Expr) -> bool:
        """Add checks that a condition does not raise; return False if they do not suffice."""
        side = self.side_of(test)
        if side is not None:
            return self._add((side, test, _SafetyCheck()))
        match test:
            case Operation("not", (operand,)):
                return self.check(operand)
            case And(parts) | Or(parts):
                return all(map(self.check, parts))
            case Attempt(_, otherwise) if otherwise == FALSE:
                return True
            case Operation("==", operands):
                return self._compare(operands, _InequalityCheck())
            case Operation(symbol, operands) if symbol in COMPARED:
                return self._compare(operands, COMPARED[symbol]())
            case _:
                return False

    @property
    def has_joint(self) -> bool:
        """True if a value of several sides is looked up."""
        return bool(self._joint)

    def collect(self) -> Conditions:
        """Return the collected conditions."""
        steps = [step for side in self._sides for step in side]
        spares = any(isinstance(step.what, _LookUpKey | _Test) for step in steps)
        return Conditions(
            list(map(_make_key_function, self._sides)), self._equations, spares, self._joint
        )

    def read_sides(self, expr: Expr) -> set[int]:
        """Return the sides that an expression reads."""
        return {max(0, index - self._count + 1) for index in reads(expr)}

    def side_of(self, expr: Expr) -> int | None:
        """Return the side that an expression reads; None for several."""
        read = self.read_sides(expr)
        return None if len(read) > 1 else min(read, default=0)

    def _compare(self, operands: tuple[Expr, ...], what: _What) -> bool:
        """Use a comparison of a value of one side with a value of another."""
        sides = [self.side_of(operand) for operand in operands]
        side, other = sides[0], sides[-1]
        if len(sides) != 2:
            return False
        if side is None or other is None:
            several, single = operands if side is None else reversed(operands)
            return isinstance(what, _LookUpKey) and self._join(several, single)
        parts = [_count_keys(self._sides[side]), _count_keys(self._sides[other])]
        if not self._add((side, operands[0], what), (other, operands[1], what)):
            return False
        if isinstance(what, _LookUpKey):
            self._equations.append(Equation(side, parts[0], other, parts[1]))
        return True

    def _join(self, several: Expr, single: Expr) -> bool:
        """Use an equation of a value of several sides with a value of a later side."""
        side, before = self.side_of(single), max(self.read_sides(several))
        value = interpret_expr(several, itemgetter)
        if side is None or side <= before or value is None:
            return False
        part = _count_keys(self._sides[side])
        if not self._add((side, single, _LookUpKey())):
            return False
        self._joint.append(Joint(side, part, value))
        return True

    def _add(self, *given: tuple[int, Expr, _What]) -> bool:
        """Add a part to one or two sides; return False if a value cannot be computed."""
        found = [(side, interpret_expr(expr, self._binding), what) for side, expr, what in given]
        if any(read is None for _, read, _ in found):
            return False
        for side, read, what in found:
            if read is not None:
                self._sides[side].append(_ConditionPart(read, what, self._is_attempt))
        return True

    def _binding(self, index: int) -> Read:
        return only_binding if index >= self._count or self._count == 1 else itemgetter(index)


def _needed(expr: Expr) -> list[Expr]:
    """Return conditions that are true if `expr` is: of an `or`, those that all arms share."""
    match expr:
        case Or(arms):
            first, *others = map(conjuncts, arms)
            return [each for each in first if all(_has(arm, each) for arm in others)]
        case _:
            return list(conjuncts(expr))


def _has(conditions: Sequence[Expr], condition: Expr) -> bool:
    """Return True if a condition is among some; the sides of an equation may be exchanged."""
    match condition:
        case Operation("==", (one, other)):
            return condition in conditions or Operation("==", (other, one)) in conditions
        case _:
            return condition in conditions


def _count_keys(steps: Sequence[_ConditionPart]) -> int:
    return sum(isinstance(step.what, _LookUpKey) for step in steps)


class _LookUpKey:
    """The value of an equation, which is looked up."""

    def take(self, value: Any, key: list[Any]) -> Any:
        """Append the value to the key; return an error key unless its equality is plain."""
        key.append(value)
        return None if has_plain_equality(value) else ERROR_KEY


class _Test:
    """The value of a filter of one side."""

    def take(self, value: Any, key: list[Any]) -> Any:
        return None if value else FILTERED


class _SafetyCheck:
    """A value that is not looked up but must not raise."""

    def take(self, value: Any, key: list[Any]) -> Any:
        bool(value)


class _InequalityCheck:
    """The value of an inequation, which is not looked up but must not raise."""

    def take(self, value: Any, key: list[Any]) -> Any:
        return None if has_plain_equality(value) else ERROR_KEY


class _OrderedLookUp:
    """The value of a comparison; all values must have the same kind as the first one."""

    def __init__(self) -> None:
        self._kind: str | None = None

    def take(self, value: Any, key: list[Any]) -> Any:
        """Return an error key if the value has another kind than earlier ones, else None."""
        kind = ORDERED.get(type(value))
        self._kind = self._kind or kind
        return None if kind is not None and kind == self._kind else ERROR_KEY


_What = _LookUpKey | _Test | _SafetyCheck | _InequalityCheck | _OrderedLookUp
COMPARED: dict[str, Callable[[], _What]] = {
    "!=": _InequalityCheck,
    **dict.fromkeys(("<", "<=", ">", ">="), _OrderedLookUp),
}


@record
class _ConditionPart:
    """A value in a condition, its role, and True if the condition is false if the value raises."""

    read: Read
    what: _What
    is_attempt: bool


def _make_key_function(steps: Sequence[_ConditionPart]) -> Place:
    """Return the function that gives the key of a row; an error key if a part raises."""
    if len(steps) == 1 and isinstance(steps[0].what, _LookUpKey) and not steps[0].is_attempt:
        return _place_of_one(steps[0].read)

    parts = [(step.read, step.what.take, type(step.what) is _LookUpKey, step) for step in steps]

    def place(row: Row) -> Any:
        key: list[Any] = []
        step = None
        try:
            for read, take, is_key, step in parts:  # noqa: B007
                value = read(row)
                if is_key and type(value) in SIMPLE:
                    key.append(value)
                elif (said := take(value, key)) is not None:
                    return said
        except Exception as error:  # the predicate will raise it again
            reraise_asynchronous(error)
            return FILTERED if step is not None and step.is_attempt else ERROR_KEY
        return tuple(key)

    return place


def _place_of_one(read: Read) -> Place:
    """Return the key function for one part and no filters, the most frequent case."""

    def place(row: Row) -> Any:
        try:
            value = read(row)
            return (value,) if type(value) in SIMPLE or has_plain_equality(value) else ERROR_KEY
        except Exception as error:
            reraise_asynchronous(error)
            return ERROR_KEY

    return place
