"""Order the inputs of a join list, so that as many as possible are looked up by keys.

    inputs x, z, y                            join y.n == z.n
    tests  x.k == y.k, y.n == z.n     ->        join x.k == y.k
                                                  x
                                                  y
                                                z

Each test is evaluated in the lowest join that has all inputs that it reads.

Sound:  the order of tests matters only for exceptions. A test that may raise, and the tests after
        it, are evaluated last, in their order. A guard below drops other rows early: it keeps rows
        that make the test raise, and needs the same inputs as the tests before it.
Cost:   O(inputs * tests) to find an order, for each input that it may begin with.

`without_existential` turns an input into a semi-join if only the presence of a partner matters.

    select f(x)                        select f(x)
      join y.n == z.n                    semi_join x.k == y.k
        join x.k == y.k        ->          x
          x                                semi_join y.n == z.n
          y                                  y
        z                                    z

An input that is read by tests only, and joined with one other input, becomes a semi-join of that
input. An input that is joined with several inputs becomes the last semi-join, unless an input that
comes later is looked up by it: by fewer equations, that one could have any number of partners.

Sound:  where only the presence of rows counts, and no weight is negative. All tests are total, so
        that the order of evaluation does not matter.
Source: Yannakakis, *Algorithms for Acyclic Database Schemes*, 1981; existential variables of
        Datalog programs: Ramakrishnan, Beeri, Krishnamurthy, 1988.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from optimizer import plan
from optimizer.expr import (
    NONE,
    Again,
    Expr,
    Guard,
    Item,
    Lifted,
    Operation,
    Parameter,
    conjunction,
    constant,
    reads,
    row_names,
)
from optimizer.expressions.knowledge import total
from optimizer.expressions.text import over
from optimizer.plans.forms import unique_key
from optimizer.plans.join_lists import JoinList
from optimizer.plans.properties import bindings, free
from optimizer.plans.side_conditions import has_keys
from optimizer.record import record

MOST_STARTS = 8
"""First inputs that are tried."""
Places = dict[int, Expr]
"""The place in a row of each binding of all inputs."""
Inputs = frozenset[int]
Order = Sequence[Sequence[int]]
"""Inputs in parts; each part is joined by itself first."""


@record
class JoinedInputs:
    """Inputs of a list joined by a plan, with the place in its row of each binding."""

    node: plan.Node
    places: Places
    without_keys: int = 0
    """Joins that look at every pair."""

    def read(self, expr: Expr) -> Expr:
        """Rewrite an expression over all bindings to the row."""
        return _read_at_places(expr, self.places)

    def names(self, of: JoinList) -> tuple[str, ...]:
        """Return the names of the bindings of the row."""
        return _names_at_places(self.places, bindings(self.node), of)


def join_in_order(of: JoinList, order: Order) -> JoinedInputs:
    """Join the inputs of a list in an order."""
    return _Builder(of).build(order)


def best_order(of: JoinList) -> Order:
    """Return an order with few parts; in each part, all inputs but the first are found by keys."""
    links = _Links(of)
    starts = range(min(len(of.inputs), MOST_STARTS)) if links.depend_on_start else (0,)
    return min((links.parts_from(start) for start in starts), key=len)


def semi_joined(
    of: JoinList, left: JoinedInputs, right: JoinedInputs, tests: Sequence[Expr]
) -> JoinedInputs:
    """Return the rows of the left that have a partner on the right."""
    match = plan.Match()
    if tests:
        match = plan.Match(on=_predicate_of_pairs(of, left, _pair_places(left, right), tests))
    return JoinedInputs(plan.SemiJoin(left.node, right.node, match), left.places)


def alone(of: JoinList, place: int) -> JoinedInputs:
    """Return the input of a list at `place`, joined with no other yet."""
    places = {flat: Parameter(n) for n, flat in enumerate(of.places(place))}
    return JoinedInputs(of.inputs[place], dict(places))


@record
class _Link:
    """An equation: the inputs of its sides, and of earlier tests that may raise.

    `before` are the inputs of each such test that is no equation, `needs` the inputs of all.
    """

    sides: tuple[Inputs, Inputs]
    before: tuple[Inputs, ...]
    needs: Inputs

    def leads_to(self, there: Inputs) -> Iterator[int]:
        """Return the input that the equation looks up, given the inputs that are joined already."""
        for one, other in (self.sides, self.sides[::-1]):
            if one and one <= there and len(other) == 1 and self._may_be_key(there, other):
                yield from other - there

    def _may_be_key(self, there: Inputs, new: Inputs) -> bool:
        """Return True if each earlier test that may raise reads one side only."""
        each = (read <= there or read <= new for read in self.before)
        return self.needs <= there | new and all(each)


class _Links:
    """The inputs that can be looked up by other inputs."""

    def __init__(self, of: JoinList) -> None:
        self._count = len(of.inputs)
        self._links: list[_Link] = []
        place, known, needs = of.input_of(), of.of, Inputs()
        before: list[Inputs] = []

        def inputs(expr: Expr) -> Inputs:
            return Inputs(place[binding] for binding in reads(expr))

        for test in of.tests:
            equation = test.test if isinstance(test, Guard) else test
            match equation:
                case Operation("==", (left, right)):
                    sides = inputs(left), inputs(right)
                    self._links.append(_Link(sides, tuple(before), needs | inputs(test)))
                case _ if not total(test, known):
                    before.append(inputs(test))
            if not total(test, known):
                needs |= inputs(test)
        is_wide = any(len(side) > 1 for link in self._links for side in link.sides)
        self.depend_on_start = is_wide or bool(needs)

    def parts_from(self, start: int) -> Order:
        """Split the inputs in parts; in each part all but the first are looked up by earlier
        inputs."""
        parts: list[list[int]] = []
        waiting = [start, *(n for n in range(self._count) if n != start)]
        while waiting:
            part = [waiting.pop(0)]
            while (found := self._next(part, waiting)) is not None:
                waiting.remove(found)
                part.append(found)
            parts.append(part)
            waiting.sort()
        return parts

    def _next(self, part: Sequence[int], waiting: Sequence[int]) -> int | None:
        """Return the first waiting input that the inputs of a part look up; None if there is
        none."""
        there = Inputs(part)
        found = {new for link in self._links for new in link.leads_to(there)}
        return min(found.intersection(waiting), default=None)


class _Builder:
    """Joins inputs, with each test in the lowest possible join."""

    def __init__(self, of: JoinList) -> None:
        self._of = of
        self._input_of = of.input_of()
        self._shapes = of.of
        self._waiting = dict(enumerate(of.tests))
        self._guarded: set[int] = set()

    def build(self, order: Order) -> JoinedInputs:
        """Return the inputs joined in an order of parts; each part is joined before it is added."""
        self._last = sum(map(len, order)) - 1
        if not self._last:
            return self._filter_single(alone(self._of, 0))
        parts = [self._part(part) for part in order]
        found = parts[0]
        for part in parts[1:]:
            found = self._join(found, part)
        return found

    def _part(self, part: Sequence[int]) -> JoinedInputs:
        """Return the inputs of one part, joined from left to right."""
        found, *others = [alone(self._of, place) for place in part]
        for other in others:
            found = self._join(found, other)
        return found

    def _filter_single(self, one: JoinedInputs) -> JoinedInputs:
        """Filter the rows of the only input by all tests."""
        tests = tuple(map(one.read, self._waiting.values()))
        if not tests:
            return one
        names = row_names(bindings(one.node))
        test = Lifted(conjunction(tests), names, self._of.origins, len(names))
        return JoinedInputs(plan.Where(one.node, test), one.places)

    def _join(self, left: JoinedInputs, right: JoinedInputs) -> JoinedInputs:
        """Return the join of two results by the tests that both decide; a product if there are
        none."""
        self._last -= 1
        places = _pair_places(left, right)
        there = Inputs(self._input_of[flat] for flat in places)
        asked = list(self._tests_over(there, is_last=not self._last))
        made: plan.Join | plan.Product = plan.Product(left.node, right.node)
        if asked:
            match = plan.Match(on=_predicate_of_pairs(self._of, left, places, asked))
            made = plan.Join(left.node, right.node, match)
        pairs = left.without_keys + right.without_keys + (not has_keys(made))
        return JoinedInputs(made, places, pairs)

    def _tests_over(self, there: Inputs, *, is_last: bool) -> Iterator[Expr]:
        """Iterate over the tests of rows of some inputs, over all bindings."""
        raising: list[Expr] = []
        before = Inputs()
        for number, test in list(self._waiting.items()):
            inputs = Inputs(self._input_of[flat] for flat in reads(test))
            may_raise = not total(test, self._shapes)
            if is_last:
                yield Again(test) if number in self._guarded else test
            elif inputs | before <= there and not (may_raise or raising):
                del self._waiting[number]
                yield test
            elif inputs | before <= there and self._may_be_guarded(number, test):
                self._guarded.add(number)
                yield Guard(test, tuple(raising))
            if may_raise:
                raising.append(test)
                before |= inputs

    def _may_be_guarded(self, number: int, test: Expr) -> bool:
        """Return True if no guard further down has evaluated the test."""
        return number not in self._guarded and not isinstance(test, Again)


def _pair_places(left: JoinedInputs, right: JoinedInputs) -> Places:
    """Return the place in the pairs of a join of each binding."""
    count, more = bindings(left.node), bindings(right.node)
    row = Parameter(count)
    items = (row,) if more == 1 else tuple(Item(row, constant(n)) for n in range(more))
    return left.places | {flat: over(expr, items) for flat, expr in right.places.items()}


def _predicate_of_pairs(
    of: JoinList, left: JoinedInputs, places: Places, tests: Iterable[Expr]
) -> Lifted:
    """Return the predicate of the pairs of a join."""
    count = bindings(left.node) + 1
    body = conjunction(tuple(_read_at_places(test, places) for test in tests))
    return Lifted(body, _names_at_places(places, count, of), of.origins, count)


def _read_at_places(expr: Expr, places: Places) -> Expr:
    """Return an expression over all bindings as one over a row that has them at `places`."""
    last = max(places, default=-1)
    return over(expr, tuple(places.get(flat, NONE) for flat in range(last + 1)))


def _names_at_places(places: Places, count: int, of: JoinList) -> tuple[str, ...]:
    known = {e.index: of.names[flat] for flat, e in places.items() if isinstance(e, Parameter)}
    return tuple(known.get(n, f"row{n or ''}") for n in range(count))


def without_existential(of: JoinList, read: Collection[int]) -> JoinedInputs | None:
    """Join the inputs of a list, and semi-join inputs without a binding in `read`.

    Return None if there is no such input, or a test may raise.
    """
    known = of.of
    if not all(total(test, known) for test in of.tests):
        return None
    rest, read = _semi_join_unread(of, frozenset(read)), frozenset(read)
    last: list[tuple[JoinedInputs, list[Expr]]] = []
    while (place := _to_be_last(rest, read)) is not None:
        tests = _tests_of_input(rest, place)
        last.append((alone(rest, place), tests))
        read |= {flat for test in tests for flat in reads(test)}
        rest = rest.drop_input(place)
    if len(rest.inputs) == len(of.inputs):
        return None
    made = join_in_order(rest, best_order(rest))
    for right, tests in last:
        made = semi_joined(of, made, right, tests)
    return made


def _semi_join_unread(of: JoinList, read: Collection[int]) -> JoinList:
    """Replace the inputs without read bindings that are joined with at most one input by
    semi-joins."""
    while len(of.inputs) > 1:
        for place in _unread_inputs(of, read):
            tests = _tests_of_input(of, place)
            partners = _partners_of_input(of, place, tests) or [_any_other(of, place)]
            if len(partners) == 1:
                of = _semi_joined(of, partners[0], place, tests)
                break
        else:
            return of
    return of


def _to_be_last(of: JoinList, read: Collection[int]) -> int | None:
    """Return an input without read bindings whose removal adds no part to the order, and leaves
    each later input all equations that it is looked up by; None if there is none."""
    unread = _unread_inputs(of, read) if len(of.inputs) > 1 else []
    order = best_order(of) if unread else ()
    last = (n for n in unread if not _is_looked_up_from(of, n, order))
    return next((n for n in last if len(best_order(of.drop_input(n))) <= len(order)), None)


def _is_looked_up_from(of: JoinList, place: int, order: Order) -> bool:
    """Return True if a later input of an order is looked up by an equation with this one.

    One whose rows are found by their key without that equation is not.
    """
    every = [n for part in order for n in part]
    equations = _equations_of_input(of, place)
    partners = set(_partners_of_input(of, place, equations))
    later = partners.intersection(every[every.index(place) + 1 :])
    return not all(_is_found_by_key(of, n, without=place) for n in later)


def _is_found_by_key(of: JoinList, place: int, *, without: int) -> bool:
    """Return True if equations with inputs other than `without` determine a row of an input."""
    own, other = set(of.places(place)), set(of.places(without))
    row, key = alone(of, place), unique_key(of.inputs[place])
    sides = [
        side
        for test in _equations_of_input(of, place)
        for side in test.operands
        if not other & reads(test) and reads(side) <= own
    ]
    return bool(key) and key <= {row.read(side) for side in sides}


def _equations_of_input(of: JoinList, place: int) -> list[Operation]:
    """Return the equations that read the input at `place`."""
    tests = _tests_of_input(of, place)
    return [test for test in tests if isinstance(test, Operation) and test.operator == "=="]


def _unread_inputs(of: JoinList, read: Collection[int]) -> list[int]:
    """Return the inputs without read bindings, the last first.

    A relation of a recursion around is left out: its partners would follow a round later.
    """
    return [
        place
        for place in reversed(range(len(of.inputs)))
        if not set(of.places(place)) & set(read) and not free(of.inputs[place])
    ]


def _any_other(of: JoinList, place: int) -> int:
    """Return the input to semi-join with the one at `place`, which no test links to another.

    An input that reads no recursion is preferred.
    """
    others = [n for n in range(len(of.inputs)) if n != place]
    return min(others, key=lambda other: bool(free(of.inputs[other])))


def _tests_of_input(of: JoinList, place: int) -> list[Expr]:
    """Return the tests that read the input at `place`."""
    own = set(of.places(place))
    return [test for test in of.tests if own & reads(test)]


def _partners_of_input(of: JoinList, place: int, tests: Sequence[Expr]) -> list[int]:
    """Return the inputs that `tests` link with the input at `place`."""
    input_of = of.input_of()
    return sorted({input_of[flat] for test in tests for flat in reads(test)} - {place})


def _semi_joined(of: JoinList, left: int, right: int, tests: list[Expr]) -> JoinList:
    """Return the list without the input `right`; rows of `left` must have a partner there."""
    found = semi_joined(of, alone(of, left), alone(of, right), tests)
    inputs = list(of.inputs)
    inputs[left] = found.node
    return replace(of, inputs=tuple(inputs)).drop_input(right)
