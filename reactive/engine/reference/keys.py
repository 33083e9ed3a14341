"""What must be equal in the rows of a pair, as their predicate says.

    on  s.k == m.k and s.age > 30 and s.day <= m.day

    of a left row    its key is s.k, if s.age > 30; an error row, unless s.day has an order
    of a right row   its key is m.k;                an error row, unless m.day has an order

All that is found is which pairs need not be asked: those of which the predicate is surely false,
and does not raise. So conditions are taken in the order in which they are asked, up to the first
of which it is not known whether it raises. A row on which a part of them raises, or gives a value
that need not compare as one would think (`equality.py`), is an error row: all pairs with it are
asked.

It is not the rule by which the optimizer finds keys, and computes them in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from operator import itemgetter
from typing import Any

from optimizer.expr import Expr, Function, Lifted, Operation, conjuncts, reads
from optimizer.lifting.lift import lift
from optimizer.record import record
from reactive.engine.codegen.interpret import Read, interpreted, itself
from reactive.engine.collections.index import ERROR_KEY, FILTERED
from reactive.engine.collections.values import SIMPLE, is_plain
from reactive.engine.collections.zset import Row
from reactive.engine.runtime.interrupts import reraise_asynchronous

ORDERED: dict[type, str] = {
    **dict.fromkeys((int, float, bool), "number"),
    **{kind: kind.__name__ for kind in (str, bytes, date, timedelta)},
}
"""Kinds of values, each of which has an order among its own."""

Place = Callable[[Row], Any]
"""Of a row, what must be equal to that of its partners; or that it is an error row, or has none."""


def places(predicates: Sequence[Function], count: int) -> tuple[Place, Place] | None:
    """What finds the key of a left row, of `count` bindings, and of a right row, of one.

    None if nothing is found that could spare a pair.
    """
    found = conditions(predicates, count, 2)
    if not found.spares:
        return None
    left, right = found.places
    return left, right


@record
class Equation:
    """Two sides, and which part of the key of each is equal to that of the other."""

    side: int
    part: int
    other: int
    other_part: int


@record
class Joint:
    """A side, and which part of its key is equal to a value of rows of several sides before it."""

    side: int
    part: int
    value: Read
    """Of all their bindings. It raises what the expression raises, and may be of any kind."""


@record
class Conditions:
    """What finds the key of a row of each side, a tuple; and which parts are equal."""

    places: list[Place]
    equations: list[Equation]
    spares: bool
    """Whether some combination of rows need not be asked."""
    joint: list[Joint]


def conditions(predicates: Sequence[Function], count: int, sides: int) -> Conditions:
    """What predicates say of the rows of several sides, in the order in which they are asked.

    Parameters
    ----------
    predicates: of the rows of all sides, or of the first ones.
    count: how many bindings the rows of the first side have; those of the others have one.
    """
    finder = _ConditionFinder(count, sides)
    for predicate in predicates:
        if not all(map(finder.take, conjuncts(_read(predicate)))):
            break
    return finder.found()


def _read(predicate: Function) -> Expr:
    return predicate.body if isinstance(predicate, Lifted) else lift(predicate).body


class _ConditionFinder:
    """Goes through the conditions."""

    def __init__(self, count: int, sides: int) -> None:
        self._count = count
        self._sides: list[list[_ConditionPart]] = [[] for _ in range(sides)]
        self._equations: list[Equation] = []
        self._joint: list[Joint] = []

    def take(self, test: Expr) -> bool:
        """Use a condition; False if it may raise in a way that no row by itself shows.

        A value of several sides is computed only of rows that are combined already. So what comes
        after it must not spare any of these.
        """
        if self._joint and max(self._read(test), default=0) < self._joint[-1].side:
            return False
        side = self._side(test)
        if side is not None:
            return self._add((side, test, _Test()))
        match test:
            case Operation("not", (Operation("==", operands),)):
                return self._compare(operands, _Compared())
            case Operation("not", (Operation(symbol, operands),)) if symbol in COMPARED:
                return self._compare(operands, COMPARED[symbol]())
            case Operation("==", operands):
                return self._compare(operands, _LookUpKey())
            case Operation(symbol, operands) if symbol in COMPARED:
                return self._compare(operands, COMPARED[symbol]())
            case _:
                return False

    def found(self) -> Conditions:
        """What was found."""
        steps = [step for side in self._sides for step in side]
        spares = any(isinstance(step.what, _LookUpKey | _Test) for step in steps)
        return Conditions(list(map(_place, self._sides)), self._equations, spares, self._joint)

    def _read(self, expr: Expr) -> set[int]:
        """The sides that an expression reads."""
        return {max(0, index - self._count + 1) for index in reads(expr)}

    def _side(self, expr: Expr) -> int | None:
        """The side that an expression reads; None for several."""
        read = self._read(expr)
        return None if len(read) > 1 else min(read, default=0)

    def _compare(self, operands: tuple[Expr, ...], what: _What) -> bool:
        """Use a comparison of a part of the row of one side with one of another."""
        sides = [self._side(operand) for operand in operands]
        side, other = sides[0], sides[-1]
        if len(sides) != 2:
            return False
        if side is None or other is None:
            several, single = operands if side is None else reversed(operands)
            return isinstance(what, _LookUpKey) and self._join(several, single)
        parts = [_keys(self._sides[side]), _keys(self._sides[other])]
        if not self._add((side, operands[0], what), (other, operands[1], what)):
            return False
        if isinstance(what, _LookUpKey):
            self._equations.append(Equation(side, parts[0], other, parts[1]))
        return True

    def _join(self, several: Expr, single: Expr) -> bool:
        """Use an equation of a value of several sides and a part of the row of one after them."""
        side, before = self._side(single), max(self._read(several))
        value = interpreted(several, itemgetter)
        if side is None or side <= before or value is None:
            return False
        part = _keys(self._sides[side])
        if not self._add((side, single, _LookUpKey())):
            return False
        self._joint.append(Joint(side, part, value))
        return True

    def _add(self, *given: tuple[int, Expr, _What]) -> bool:
        """Add a step, or one to each of two sides; or none, if a part cannot be computed."""
        found = [(side, interpreted(expr, self._binding), what) for side, expr, what in given]
        if any(read is None for _, read, _ in found):
            return False
        for side, read, what in found:
            if read is not None:
                self._sides[side].append(_ConditionPart(read, what))
        return True

    def _binding(self, index: int) -> Read:
        return itself if index >= self._count or self._count == 1 else itemgetter(index)


def _keys(steps: Sequence[_ConditionPart]) -> int:
    return sum(isinstance(step.what, _LookUpKey) for step in steps)


class _LookUpKey:
    """Of an equation: what may be looked up."""

    def take(self, value: Any, key: list[Any]) -> Any:
        key.append(value)
        return None if is_plain(value) else ERROR_KEY


class _Test:
    """Of a condition of one side: whether it is met."""

    def take(self, value: Any, key: list[Any]) -> Any:
        return None if value else FILTERED


class _Compared:
    """Of an inequation, which looks nothing up, but must not raise."""

    def take(self, value: Any, key: list[Any]) -> Any:
        return None if is_plain(value) else ERROR_KEY


class _OrderedLookUp:
    """Of a comparison, in which all values are of the kind that the first one was of."""

    def __init__(self) -> None:
        self._kind: str | None = None

    def take(self, value: Any, key: list[Any]) -> Any:
        kind = ORDERED.get(type(value))
        self._kind = self._kind or kind
        return None if kind is not None and kind == self._kind else ERROR_KEY


_What = _LookUpKey | _Test | _Compared | _OrderedLookUp
COMPARED: dict[str, Callable[[], _What]] = {
    "!=": _Compared,
    **dict.fromkeys(("<", "<=", ">", ">="), _OrderedLookUp),
}


@record
class _ConditionPart:
    """A part of a condition, and what it is for."""

    read: Read
    what: _What


def _place(steps: Sequence[_ConditionPart]) -> Place:
    if len(steps) == 1 and isinstance(steps[0].what, _LookUpKey):
        return _place_of_one(steps[0].read)

    def place(row: Row) -> Any:
        key: list[Any] = []
        try:
            for step in steps:
                said = step.what.take(step.read(row), key)
                if said is not None:
                    return said
        except Exception as error:  # what it is shows when the predicate is asked of a pair
            reraise_asynchronous(error)
            return ERROR_KEY
        return tuple(key)

    return place


def _place_of_one(read: Read) -> Place:
    """The same for a key of one part and no tests, as most are."""

    def place(row: Row) -> Any:
        try:
            value = read(row)
            return (value,) if type(value) in SIMPLE or is_plain(value) else ERROR_KEY
        except Exception as error:
            reraise_asynchronous(error)
            return ERROR_KEY

    return place
