"""Relations with several choice domains, of which no two rows share the values of one.

A choice domain of a relation that depends on itself through others is of this kind, too.

    .decl pair(x: symbol, y: symbol) choice-domain x, y

Rows are taken in their order, and a row is kept if no kept row has its values in a domain. In a
recursion each round takes the rows that are derived from those of earlier rounds:

    pair(0) = {}
    pair(r + 1) = pair(r) and the choice of the derived rows that meet no row of pair(r)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optimizer import plan
from optimizer.expr import Parameter
from optimizer.plans.nodes.sources import values
from reactive.api.iterate import iterate
from reactive.api.relation import AnyRelation, Relation
from reactive.languages.datalog.bodies import match_keys
from reactive.languages.datalog.expressions import item

Places = tuple[tuple[int, ...], ...]
"""The places of the columns of each choice domain; () of a relation without one."""
ROW = Parameter(0)


def chosen_rows_of(engine: Any, node: plan.Node, choices: Places) -> plan.Node:
    """Return the rows of a query that a choice keeps; all of them if there is none."""
    found: AnyRelation = Relation(engine, plan.Distinct(node))
    if not choices:
        return found.plan
    groups: Any = found.group_by(_no_key)
    kept = groups.reduce(lambda _, rows: _choose(rows, choices))
    return kept.select(lambda _, row: row).plan  # type: ignore[no-any-return]


def choose_by_rounds(
    engine: Any,
    unions: Callable[[Sequence[plan.Node]], Sequence[plan.Node]],
    kinds: Sequence[Any],
    choices: Sequence[Places],
    max_rounds: int | None,
) -> list[plan.Node]:
    """Return the plans of relations that depend on each other, and choose.

    Parameters
    ----------
    unions: the plans of the relations -> the plans of the rows that their rules derive.
    kinds: the class of the rows of each relation.
    choices: the choice domains of each relation.
    """

    def step(*relations: AnyRelation) -> Any:
        kept = [relation.plan for relation in relations]
        made: list[AnyRelation] = []
        for state, node, places in zip(kept, unions(kept), choices, strict=True):
            for choice in places:
                keys = [(item(ROW, place), item(ROW, place)) for place in choice]
                node = plan.AntiJoin(node, state, match_keys(keys, ["row"], "kept"))
            node = plan.AntiJoin(node, state, match_keys([(ROW, ROW)], ["row"], "kept"))
            new = chosen_rows_of(engine, node, places)
            made.append(Relation(engine, plan.UnionAll(state, new)))
        return made if len(made) > 1 else made[0]

    names = [f"relation{place}" for place in range(len(kinds))]
    parameters = [inspect.Parameter(each, inspect.Parameter.POSITIONAL_ONLY) for each in names]
    step.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    start: Any = [Relation(engine, values((), (kind,))) for kind in kinds]
    loop: Callable[..., Any] = iterate
    made = loop(step, start if len(kinds) > 1 else start[0], until="settled", max_rounds=max_rounds)
    return [each.plan for each in (made if len(kinds) > 1 else [made])]


def _no_key(row: Any) -> Any:
    return None


def _choose(rows: Iterable[Any], choices: Places) -> list[Any]:
    """Return the first rows, in their order, of which no two share the values of a domain."""
    taken: list[set[Any]] = [set() for _ in choices]
    kept: list[Any] = []
    for row in _in_order(rows):
        keys = [tuple([row[place] for place in choice]) for choice in choices]
        if not any(key in some for key, some in zip(keys, taken, strict=True)):
            kept.append(row)
            for key, some in zip(keys, taken, strict=True):
                some.add(key)
    return kept


def _in_order(rows: Iterable[Any]) -> list[Any]:
    """Return rows in their order; rows that cannot be compared, by their texts."""
    every = list(rows)
    try:
        return sorted(every)
    except TypeError:
        return sorted(every, key=repr)
