"""A query per group: what a callable makes of a relation that stands for one group."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import Function
from optimizer.plans.properties import is_set, shapes
from optimizer.subqueries import orders
from optimizer.subqueries import per_group as groups
from reactive.api.callables import kind_shown
from reactive.engine.collections.zset import canonical


def each(relation: Any, key: Function, query: Callable[[Any], Any]) -> Any:
    """The relation with what a query gives for each group.

    Raises
    ------
    PlanError: it is no callable of a relation that returns one, or cannot be asked of all groups.
    """
    level = object()
    source = relation.plan
    name = parameter_of(query)
    group = relation._new(plan.Recursive(level, 0, name, is_set(source), shapes(source)))
    made = asked("each", group, query)
    query_plan = made.plan
    if isinstance(query_plan, plan.OrderBy) and not orders.is_lost(query_plan):
        query_plan = orders.in_no_order(query_plan)  # rows that a window chose go on as a bag
    node = groups.per_group(
        query_plan, level, source, key, of_no_rows=_of_no_rows, canonical=canonical
    )
    return relation._new(node, made)


def asked(role: str, group: Any, query: Callable[[Any], Any]) -> Any:
    """What a query gives for a relation that stands for a group.

    Raises
    ------
    PlanError: it gives no relation, or one of another database.
    """
    made = query(group)
    if not isinstance(made, type(group)):
        found = kind_shown(made)
        raise PlanError(f"{role} takes a callable that returns a relation, not {found}")
    group._check_other(role, made)
    return made


def parameter_of(query: Any) -> str:
    """The name of the only parameter."""
    if not callable(query):
        raise PlanError(
            f"each takes a callable, relation -> relation, not {query!r:.60}\n"
            "  each(lambda group: group.aggregate(Count()))"
        )
    try:
        signature = inspect.signature(query)
        (name,) = signature.bind(None).arguments
    except (TypeError, ValueError):
        raise PlanError(
            "each calls its callable with one relation, the rows of a group\n"
            "  each(lambda group: group.aggregate(Count()))"
        ) from None
    return str(name)


def _of_no_rows(folded: plan.Folded) -> Any:
    """What an aggregate shows of no rows."""
    return folded.accumulator.result(folded.accumulator.zero())
