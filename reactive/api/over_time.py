"""Relations over time: the plans of `asof_join`, `lookup`, `emit="closed"`, `expire_after`.

Keys and times are computed beside the rows.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import (
    NONE,
    Expr,
    Function,
    Lifted,
    Operation,
    Or,
    Parameter,
    Subquery,
    all_parameters,
    conjuncts,
    constant,
    items_of,
    one_value,
    row_names,
    tuple_of,
)
from optimizer.expressions.text import written
from optimizer.plans.nodes.groups import kept_by
from optimizer.plans.properties import binding_names, bindings, row_shape, shapes
from optimizer.plans.side_conditions import equation_of, of_left, of_right, pair_shapes
from optimizer.subqueries.keyed_rows import as_expression
from optimizer.traverse import has_subqueries
from reactive.api import comprehending
from reactive.api.conditions import Key, On, match_of, taken_of_right
from reactive.engine.operators import closing, frontiers

if TYPE_CHECKING:
    from reactive.api.relation import AnyRelation

Direction: TypeAlias = Literal["backward", "forward", "nearest"]
DIRECTIONS = ("backward", "forward", "nearest")


def plan_asof_join(
    role: str,
    relations: tuple[AnyRelation, AnyRelation],
    on: On | None,
    keys: tuple[Key | None, Key | None],
    times: tuple[Any, Any],
    *,
    direction: Direction,
    tolerance: Any,
    allow_equal: bool,
) -> plan.AsofJoin:
    """Return the plan of an as-of join of two relations.

    Raises
    ------
    PlanError: `on` is not made of equations between both sides, `direction` is unknown, or
        `tolerance` is no distance.
    """
    left, right = relations
    _check_direction(role, direction, tolerance)
    match = match_of(role, left, right, on, *keys)
    count = bindings(left.plan)
    at = as_expression(left._take(times[0], f"the at of {role}"), shapes(left.plan))
    of = as_expression(taken_of_right(right, times[1], f"the of of {role}"))
    mine, theirs = _keys(role, left, right, match)
    row = one_value(all_parameters(count))
    other = _timed(one_value(all_parameters(1)), theirs, of, 1)
    return plan.AsofJoin(
        comprehending.freed(plan.Select(left.plan, _timed(row, mine, at, count))),
        comprehending.freed(plan.Select(_one_binding(right.plan), other)),
        count,
        direction,
        tolerance,
        not allow_equal,
        role.startswith("left"),
    )


def plan_lookup(
    role: str,
    relations: tuple[AnyRelation, AnyRelation],
    on: On | None,
    keys: tuple[Key | None, Key | None],
) -> plan.Lookup:
    """Return the plan of a look-up of the events of one relation in another.

    Raises
    ------
    PlanError: `on` is not made of equations between both sides, or rows of the left may go.
    """
    left, right = relations
    match = match_of(role, left, right, on, *keys)
    if not frontiers.only_comes(left.plan):
        raise PlanError(
            f"{role} is for events, and rows of {left._called()} may be removed\n"
            "  start with db.stream(...), or join() for pairs that follow both sides"
        )
    count = bindings(left.plan)
    mine, theirs = _keys(role, left, right, match)
    events = plan.Select(left.plan, _beside(mine, count))
    if has_subqueries(events):
        raise PlanError(
            f"{role} is for events, and {written(mine)} changes without one\n"
            "  look up by values of the event, and compare above with what changes"
        )
    return plan.Lookup(
        events,
        comprehending.freed(plan.Select(_one_binding(right.plan), _beside(theirs, 1))),
        count,
        role.startswith("left"),
    )


Emit: TypeAlias = Literal["now", "closed"]


def plan_closed(role: str, left: AnyRelation, right: AnyRelation, match: plan.Match) -> plan.Node:
    """Return the plan of the left rows without a partner, each once no partner can come.

    Raises
    ------
    PlanError: the condition does not bound the times of two streams by each other.
    """
    alone = plan.AntiJoin(left.plan, right.plan, match)
    kept, _ = frontiers.retentions_of(alone)
    if kept is None:
        raise PlanError(
            f'{role} with emit="closed" needs two streams, and an interval of their times\n'
            "  such as on=lambda l, r: l.key == r.key and abs(l.at - r.at) <= timedelta(minutes=5)"
        )
    return _emit_once(alone, kept.value, kept.frontier)


def plan_when_closed(relation: AnyRelation, at: Any) -> plan.Node:
    """Return the plan of the rows of a relation, each when it changes no more.

    Raises
    ------
    PlanError: `at` is not derived from the time of a stream, or of windows of it.
    """
    value = as_expression(relation._take(at, "the at of when_closed"), shapes(relation.plan))
    frontier = frontiers.frontier_of(relation.plan, value.body)
    if frontier is None:
        raise PlanError(
            f"when_closed: nothing says when rows of {relation._called()} change no more\n"
            "  at= is the time of the events of a stream, or a window of it or its end, in a "
            "query whose changes follow that time"
        )
    return _emit_once(relation.plan, value, frontier)


def _emit_once(node: plan.Node, value: Lifted, frontier: frontiers.Frontier) -> plan.Node:
    """Return the plan of the rows of a node, each when the frontier has passed its value."""
    count = bindings(node)
    row = one_value(all_parameters(count))
    timed = tuple_of(row, value.body, constant(closing.OF_ROW))
    names = value.names if len(value.names) == count else row_names(count)
    rows: plan.Node = plan.Select(node, Lifted(timed, names, value.origins, count))
    for place, clock in enumerate(frontier.clocks):
        mark = tuple_of(constant(None), Parameter(0), constant(place))
        rows = plan.UnionAll(rows, plan.Select(clock.mark, Lifted(mark, ("mark",), (), 1)))
    group = kept_by(closing.ClosedGroup(frontier, row_shape(node)), f"closed {frontier}")
    closed = plan.Reduce(rows, Lifted(constant(()), ("row",), (), 1), group)
    shown = (Parameter(1),) if count == 1 else items_of(Parameter(1), count)
    columns = tuple(Lifted(column, ("key", "row"), (), 2) for column in shown)
    return plan.Extend(closed, (), columns, binding_names(node))


def plan_closed_left_join(left: AnyRelation, right: AnyRelation, match: plan.Match) -> plan.Node:
    """Return the plan of the pairs, and of the left rows without one once no partner can come."""
    closed, count = plan_closed("left_join", left, right, match), bindings(left.plan)
    missing = Lifted(constant(None), row_names(count), (), count)
    padded = plan.Extend(closed, tuple(range(count)), (missing,))
    return plan.UnionAll(plan.Join(left.plan, right.plan, match), padded)


def checked_emit(role: str, emit: Any) -> bool:
    """Return True for "closed"; refuse what is neither this nor "now"."""
    if emit not in ("now", "closed"):
        raise PlanError(f'{role} takes emit="now" or emit="closed", not {emit!r:.60}')
    return bool(emit == "closed")


HOW_TO_SET = (
    "  set it by db.clock.advance(datetime.now(timezone.utc)), or let it run: db.clock.run()"
)
CLOCK_NOT_SET = f"a query reads now(), and the clock of its database was not set\n{HOW_TO_SET}"


def plan_expiring(relation: AnyRelation, after: Any, at: Any) -> plan.Node:
    """Return the plan of the rows of a relation that are younger than `after`, by the clock.

    Raises
    ------
    PlanError: `after` is no timedelta, `at` is not made for the rows, or the clock was not set.
    """
    check_age(after)
    clock = relation._engine.clock
    if clock is None or clock._now() is None:
        raise PlanError(CLOCK_NOT_SET)
    time = as_expression(relation._take(at, "the at of expire_after"), shapes(relation.plan))
    age = Operation("-", (Subquery("value", clock._parameter.plan), time.body))
    is_young = Operation("<", (age, constant(after)))
    return plan.Where(
        relation.plan, time.with_body(Or((Operation("is", (time.body, NONE)), is_young)))
    )


def check_age(after: Any) -> None:
    """Raise `PlanError` unless an age at which rows expire is a timedelta that is not negative."""
    if not isinstance(after, timedelta) or after < timedelta():
        raise PlanError(f"expire_after takes a timedelta that is not negative, not {after!r}")


def _beside(key: Lifted, count: int) -> Lifted:
    """Return the function that puts a row beside its key."""
    row = one_value(all_parameters(count))
    names = key.names if len(key.names) == count else row_names(count)
    return Lifted(tuple_of(row, key.body), names, key.origins, count)


def _one_binding(node: plan.Node) -> plan.Node:
    """Return a node whose rows are those of another as one value."""
    count = bindings(node)
    if count == 1:
        return node
    names = tuple(f"row{place or ''}" for place in range(count))
    return plan.Select(node, Lifted(tuple_of(*all_parameters(count)), names, (), count))


def _timed(row: Expr, key: Lifted, time: Lifted, count: int) -> Lifted:
    """Return the function that puts a row beside its key and its time."""
    names = time.names if len(time.names) == count else key.names
    return Lifted(tuple_of(row, key.body, time.body), names, (*key.origins, *time.origins), count)


def _keys(
    role: str, left: AnyRelation, right: AnyRelation, match: plan.Match
) -> tuple[Lifted, Lifted]:
    """Return the keys that are given, or that `on` equates; without them, all rows have one key."""
    count = bindings(left.plan)
    mine: list[Lifted] = []
    theirs: list[Lifted] = []
    if match.left_key is not None and match.right_key is not None:
        mine.append(as_expression(match.left_key))
        theirs.append(as_expression(match.right_key))
    if match.on is not None:
        on = as_expression(match.on, pair_shapes(plan.Join(left.plan, right.plan, match)))
        for test in conjuncts(on.body):
            one, other = _equation(role, test, count, on)
            mine.append(of_left(on, one, count))
            theirs.append(of_right(on, other, count))
    return _one_key(mine, count), _one_key(theirs, 1)


def _one_key(keys: list[Lifted], count: int) -> Lifted:
    """Return one key of several."""
    if len(keys) == 1:
        return keys[0]
    origins = tuple(origin for key in keys for origin in key.origins)
    return Lifted(tuple_of(*(key.body for key in keys)), (), origins, count)


def _equation(role: str, test: Expr, count: int, on: Function) -> tuple[Expr, Expr]:
    found = equation_of(test, count)
    if found is None:
        assert isinstance(on, Lifted)
        text = written(on.with_body(test))
        raise PlanError(
            f"{role}: {text} is no equation of the two sides\n"
            "  on= has equations only, or left_key= and right_key=; the times are at= and of=;\n"
            "  other conditions follow in where"
        )
    return found


def _check_direction(role: str, direction: Any, tolerance: Any) -> None:
    if direction not in DIRECTIONS:
        known = ", ".join(map(repr, DIRECTIONS))
        raise PlanError(f"{role} has no direction {direction!r:.60}\n  {known}")
    if tolerance is None:
        return
    try:
        is_distance = bool(tolerance >= tolerance - tolerance)
    except TypeError:
        is_distance = False
    if not is_distance:
        raise PlanError(
            f"the tolerance of {role} is a distance of times, not {tolerance!r:.60}\n"
            "  such as 5, 0.5 or timedelta(seconds=5)"
        )
