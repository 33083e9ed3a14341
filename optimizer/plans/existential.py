"""Inputs of joins that are asked for nothing but whether they have a partner.

    select f(x)                        select f(x)
      join y.n == z.n                    semi_join x.k == y.k
        join x.k == y.k        ->          x
          x                                semi_join y.n == z.n
          y                                  y
        z                                    z

Of an input of which nothing else is read, and which is joined with one other input, the other one
has the rows with a partner. What is joined with several inputs can be asked for last.

Sound:  where only the presence of rows counts, and no weight is negative. All tests are total, so
        that it does not matter of which rows they are asked.
Source: Yannakakis, *Algorithms for Acyclic Database Schemes*, 1981; existential variables of
        Datalog programs: Ramakrishnan, Beeri, Krishnamurthy, 1988.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from optimizer.expr import Expr, reads
from optimizer.expressions.knowledge import total
from optimizer.plans.join_lists import JoinList
from optimizer.plans.join_order import Joined, alone, best_order, in_order, semi_joined
from optimizer.plans.properties import free


def without_existential(of: JoinList, read: Collection[int]) -> Joined | None:
    """The inputs of a list joined, when only some of all bindings are `read`, and semi-joined where
    nothing is; None if there is no such input, or a test may raise."""
    known = of.of
    if not all(total(test, known) for test in of.tests):
        return None
    rest, read = _reduced(of, frozenset(read)), frozenset(read)
    last: list[tuple[Joined, list[Expr]]] = []
    while (place := _to_be_last(rest, read)) is not None:
        tests = _tests(rest, place)
        last.append((alone(rest, place), tests))
        read |= {flat for test in tests for flat in reads(test)}
        rest = rest.without(place)
    if len(rest.inputs) == len(of.inputs):
        return None
    made = in_order(rest, best_order(rest))
    for right, tests in last:
        made = semi_joined(of, made, right, tests)
    return made


def _reduced(of: JoinList, read: Collection[int]) -> JoinList:
    """The list, without the inputs of which nothing is read that are joined with one at most."""
    while len(of.inputs) > 1:
        for place in _unread(of, read):
            tests = _tests(of, place)
            partners = _partners(of, place, tests) or [_any_other(of, place)]
            if len(partners) == 1:
                of = _semi_joined(of, partners[0], place, tests)
                break
        else:
            return of
    return of


def _to_be_last(of: JoinList, read: Collection[int]) -> int | None:
    """An input of which nothing is read, if the others are looked up as well without it."""
    unread = _unread(of, read) if len(of.inputs) > 1 else []
    parts = len(best_order(of)) if unread else 0
    return next((n for n in unread if len(best_order(of.without(n))) <= parts), None)


def _unread(of: JoinList, read: Collection[int]) -> list[int]:
    """The inputs of which nothing is read, the last first; no relation of a recursion around it,
    whose rows it would follow a round later."""
    return [
        place
        for place in reversed(range(len(of.inputs)))
        if not set(of.places(place)) & set(read) and not free(of.inputs[place])
    ]


def _any_other(of: JoinList, place: int) -> int:
    """An input that is asked along with one that has nothing to do with it."""
    others = [n for n in range(len(of.inputs)) if n != place]
    return min(others, key=lambda other: bool(free(of.inputs[other])))


def _tests(of: JoinList, place: int) -> list[Expr]:
    own = set(of.places(place))
    return [test for test in of.tests if own & reads(test)]


def _partners(of: JoinList, place: int, tests: list[Expr]) -> list[int]:
    """The inputs that one is joined with."""
    input_of = of.input_of()
    return sorted({input_of[flat] for test in tests for flat in reads(test)} - {place})


def _semi_joined(of: JoinList, left: int, right: int, tests: list[Expr]) -> JoinList:
    found = semi_joined(of, alone(of, left), alone(of, right), tests)
    inputs = list(of.inputs)
    inputs[left] = found.node
    return replace(of, inputs=tuple(inputs)).without(right)
