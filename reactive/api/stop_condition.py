"""Loops that end at a condition: from the first round that fulfils it on, rows stay as they are.

    x(r + 1) = x(r) if until(x(r)) else step(x(r))

So a loop until a condition is a loop until no row changes:

    union_all
      anti_join on True      the next rows, while the condition has no row
        step(x)
        where until(x)
          values 1
      semi_join on True      the rows of this round, once it has one
        x
        where until(x)  (as above)

State:  none of its own.
Cost:   the condition and a look at all rows, in each round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optimizer import plan
from optimizer.errors import PlanError
from reactive.api.conditions import match_of
from reactive.api.literal import literal
from reactive.api.relation import AnyRelation, Relation


def step_until(step: Callable[..., Any], until: Callable[..., object]) -> Callable[..., Any]:
    """Return the step that leaves all relations as they are once `until` is true of them.

    until: callable, a relation per parameter of `step` -> condition.
    """

    def step_or_stay(*rounds: Any) -> Any:
        made = step(*rounds)
        if not isinstance(made, tuple | list):
            return _next_or_same(rounds[0], made, _stop(rounds, until))
        if len(made) != len(rounds):
            return made  # which `iterate` refuses
        stop = _stop(rounds, until)
        return tuple([_next_or_same(*pair, stop) for pair in zip(rounds, made, strict=True)])

    return step_or_stay


def _stop(rounds: tuple[AnyRelation, ...], until: Callable[..., object]) -> AnyRelation:
    """Return the relation of one row if the condition is true of this round, else of none."""
    one: AnyRelation = Relation(rounds[0]._engine, literal([True], bool))
    return one.where(_of_any_row(until, rounds))


def _of_any_row(
    until: Callable[..., object], rounds: tuple[AnyRelation, ...]
) -> Callable[[Any], object]:
    """Return the condition as one of a row that it does not read.

    A call with starred arguments could not be read as a query.
    """
    match rounds:
        case (a,):
            return lambda _: until(a)
        case (a, b):
            return lambda _: until(a, b)
        case (a, b, c):
            return lambda _: until(a, b, c)
        case (a, b, c, d):
            return lambda _: until(a, b, c, d)
        case _:
            raise PlanError("the condition until= may read four relations, not more")


def _next_or_same(rows: AnyRelation, made: Any, stop: AnyRelation) -> Any:
    """Return the rows made of a round while `stop` is empty, else its rows."""
    if not isinstance(made, Relation):
        return made  # which `iterate` refuses
    going = match_of("iterate", made, stop, None, None, None)
    staying = match_of("iterate", rows, stop, None, None, None)
    again = made._new(plan.AntiJoin(made.plan, stop.plan, going), stop)
    return again.union_all(rows._new(plan.SemiJoin(rows.plan, stop.plan, staying), stop))
