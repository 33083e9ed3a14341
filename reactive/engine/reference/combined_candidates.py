"""Combinations of rows for values of the row around a sub-query, found by equations.

    where outer[0].id == o.customer and o.day == d.id and d.year == 2002        o, d of a product

    orders by customer      the orders of the value around
    days by id              the day of each of these, if its year is 2002

The indexes are built once. All conditions are then tested on each combination, unchanged. Another
combination is skipped only if a condition is certainly false, and no condition before it raises:
conditions are read in order, as in `keys.py`, up to the first that may raise in an unknown way.
Conditions of the row around alone are tested once per value.

Needs:  an equation of the value around with a value of one input; no row whose parts raise or have
        unusual comparisons. Otherwise all rows are joined for each value.
Cost:   O(rows) once; per value, the combinations that agree in the equations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Expr,
    Lifted,
    Parameter,
    conjunction,
    conjuncts,
    one_value,
    reads,
    row_names,
    substitute,
)
from optimizer.plans.properties import bindings
from reactive.engine.codegen.functions import callable_of, compiled_of
from reactive.engine.collections.index import ERROR_KEY, FILTERED
from reactive.engine.collections.values import has_plain_equality
from reactive.engine.collections.zset import Row
from reactive.engine.reference.bags import STRIDE, TRIED, Bag, Of, make_bag
from reactive.engine.reference.groups import Rooms, asks_around, equation
from reactive.engine.reference.keys import ConditionReader, Equation
from reactive.engine.runtime.interrupts import reraise_asynchronous

Placed = tuple[Any, Row, int]
"""The key of a row, the row and its weight."""
Combination = tuple[dict[int, Any], dict[int, Row], int]
"""The keys and the rows by side, and the weight."""


class CombinedRows:
    """The equations in filters above a product.

    Parameters
    ----------
    tests: the filters, in order of evaluation.
    inputs: the inputs of the product.
    """

    def __init__(self, tests: Sequence[plan.Where], inputs: Sequence[plan.Node]) -> None:
        self.inputs = inputs
        self.first = bindings(inputs[0])
        self.tests = [callable_of(test.predicate) for test in tests]
        finder = ConditionReader(self.first, len(inputs))
        self.alone: list[Expr] = []
        """Conditions of the row around alone."""
        around = list(_read_conditions(finder, tests, self.alone))
        found = finder.collect()
        self.places, self.equations = found.places, found.equations
        self.side = around[0][0] if around else 0
        self.around = [(mine, theirs) for side, mine, theirs in around if side == self.side]

    @property
    def is_found(self) -> bool:
        """True if an equation finds the rows of an input."""
        return bool(self.around)

    def arguments(self, rows: Sequence[Row]) -> tuple[Any, ...]:
        """Return the bindings of a combination."""
        return tuple(rows) if self.first == 1 else (*rows[0], *rows[1:])

    def fits(self, rows: Sequence[Row]) -> bool:
        """Return True if a combination satisfies all filters."""
        arguments = self.arguments(rows)
        return all(test(*arguments) for test in self.tests)


def _read_conditions(
    finder: ConditionReader, tests: Sequence[plan.Where], alone: list[Expr]
) -> Iterator[tuple[int, Expr, Expr]]:
    """Collect conditions in order, up to the first that may raise in an unknown way.

    Yield the equations with values around: their side, the value of its row, and the value around.
    Conditions of the row around alone are added to `alone`.
    """
    for test in tests:
        if not isinstance(test.predicate, Lifted):
            return
        for condition in conjuncts(test.predicate.body):
            if not asks_around(condition):
                if not finder.take(condition) or finder.has_joint:
                    return
                continue
            if not reads(condition):
                alone.append(condition)
                continue
            pair = equation(condition)
            side = None if pair is None else finder.side_of(pair[0])
            if pair is None or side is None:
                return
            yield side, *pair


class CombinedCandidates:
    """The rows of the inputs, indexed by the equations; `is_usable` is False if one is odd."""

    def __init__(self, found: CombinedRows, bags: Sequence[Bag]) -> None:
        self._found = found
        theirs = Lifted(one_value([each for _, each in found.around]), (), (), 0)
        self._value = compiled_of(theirs)
        self._alone = compiled_of(Lifted(conjunction(tuple(found.alone)), (), (), 0))
        self._key = self._key_function()
        self._sides = [
            [(place(row), row, weight) for row, weight in bag.items()]
            for place, bag in zip(found.places, bags, strict=True)
        ]
        self._starts: dict[Any, list[Placed]] = {}
        self._steps: list[tuple[int, list[tuple[int, int]], dict[Any, list[Placed]]]] = []
        self._is_checked = False
        self.is_usable = self._index_starts()
        if self.is_usable:
            self._index_others()

    def _key_function(self) -> Callable[[Row], Any]:
        """Return the function that reads the value of a row that the value around must equal."""
        found = self._found
        mine = one_value([each for each, _ in found.around])
        count = found.first
        if found.side > 0:
            mine, count = substitute(mine, (Parameter(0),) * (count + len(found.inputs))), 1
        call = compiled_of(Lifted(mine, row_names(count), (), count))
        return call if count == 1 else lambda row: call(*row)

    def _index_starts(self) -> bool:
        """Index the rows that a value around finds; return False if one is odd."""
        if any(place is ERROR_KEY for side in self._sides for place, _, _ in side):
            return False
        for placed in self._sides[self._found.side]:
            try:
                value = self._key(placed[1])
                if not has_plain_equality(value):
                    return False
                self._starts.setdefault(value, []).append(placed)
            except Exception as error:  # the condition will raise it again
                reraise_asynchronous(error)
                return False
        return True

    def _index_others(self) -> None:
        """Index the other inputs, each by its equations with those before it in turn."""
        known = {self._found.side}
        waiting = [side for side in range(len(self._sides)) if side not in known]
        while waiting:
            side = max(waiting, key=lambda each: len(self._ends(each, known)))
            ends = self._ends(side, known)
            index: dict[Any, list[Placed]] = {}
            for placed in self._sides[side]:
                if placed[0] is not FILTERED:
                    key = tuple([placed[0][part] for part, _, _ in ends])
                    index.setdefault(key, []).append(placed)
            self._steps.append((side, [(other, part) for _, other, part in ends], index))
            waiting.remove(side)
            known.add(side)

    def _ends(self, side: int, known: set[int]) -> list[tuple[int, int, int]]:
        """Return the parts of a side's key, each with the known side and part that it equals."""
        return [
            end
            for each in self._found.equations
            for end in _both_ends(each, side)
            if end[1] in known
        ]

    def rows(self) -> Bag | None:
        """Return the combinations for the values around; None if these are odd."""
        try:
            value = self._value()
            is_met = has_plain_equality(value) and self._alone()
            starts = self._starts.get(value, ()) if has_plain_equality(value) else None
        except Exception as error:  # the conditions decide
            reraise_asynchronous(error)
            return None
        if starts is None or self._is_misread(value):
            return None
        if not is_met:
            return Bag()
        found, side = self._found, self._found.side
        combined: list[Combination] = [
            ({side: key}, {side: row}, weight) for key, row, weight in starts if key is not FILTERED
        ]
        for other, ends, index in self._steps:
            combined = [
                ({**keys, other: key}, {**rows, other: row}, weight * times)
                for keys, rows, weight in combined
                for key, row, times in index.get(
                    tuple([keys[known][part] for known, part in ends]), ()
                )
            ]
        sides = range(len(self._sides))
        made = [([rows[each] for each in sides], weight) for _, rows, weight in combined]
        return make_bag({found.arguments(rows): n for rows, n in made if found.fits(rows)})

    def _is_misread(self, value: Any) -> bool:
        """Return True if a skipped combination satisfies the filters; some are tested once."""
        if self._is_checked:
            return False
        self._is_checked = True
        lengths = list(map(len, self._sides))
        for number in range(min(TRIED, prod(lengths))):
            placed = [
                side[number * STRIDE ** (at + 1) % len(side)] for at, side in enumerate(self._sides)
            ]
            rows = [row for _, row, _ in placed]
            keys = [key for key, _, _ in placed]
            if not self._is_compared(keys, rows, value) and self._found.fits(rows):
                self.is_usable = False
                return True
        return False

    def _is_compared(self, keys: Sequence[Any], rows: Sequence[Row], value: Any) -> bool:
        """Return True if a combination is not skipped."""
        if FILTERED in keys or self._key(rows[self._found.side]) != value:
            return False
        return all(
            keys[e.side][e.part] == keys[e.other][e.other_part] for e in self._found.equations
        )


def _both_ends(each: Equation, side: int) -> Iterator[tuple[int, int, int]]:
    """Yield the part of a side in an equation, and the other side and part."""
    if each.side == side != each.other:
        yield each.part, each.other, each.other_part
    elif each.other == side != each.side:
        yield each.other_part, each.side, each.part


def product_inputs(node: plan.Node) -> list[plan.Node]:
    """Return the inputs of nested products, from left to right."""
    found: list[plan.Node] = []
    while isinstance(node, plan.Product):
        found.append(node.right)
        node = node.left
    return [node, *reversed(found)]


def combining_step(
    tests: Sequence[plan.Where],
    inputs: Sequence[plan.Node],
    rooms: Rooms,
    otherwise: Callable[[Of], Bag],
) -> Callable[[Of, dict[Any, Any]], Bag] | None:
    """Return the function that computes filtered rows of a product for the values around.

    Return None if no equation finds rows. `otherwise` computes the rows if some are odd, and in a
    recursion, where the rows that are read are noted.
    """
    equated = CombinedRows(tests, inputs)
    if len(inputs) < 2 or not equated.is_found:
        return None
    key = object()

    def rows(of: Of, mine: dict[Any, Any]) -> Bag:
        found: Bag | None = None
        if rooms.now.notes is None:
            made: CombinedCandidates | None = mine.get(key)
            if made is None:
                made = mine[key] = CombinedCandidates(equated, list(map(of, inputs)))
            found = made.rows() if made.is_usable else None
        return otherwise(of) if found is None else found

    return rows
