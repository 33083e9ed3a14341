"""What `fixpoint` and `iterate` have in common: a step is called with relations that stand for its
results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans.properties import bindings, nodes
from optimizer.traverse import substituted
from reactive.api.callables import kind_shown
from reactive.api.relation import AnyRelation, Relation
from reactive.compiler.definition import Definition, agree


def called(
    step: Callable[..., Any],
    names: tuple[str, ...],
    *,
    is_set: bool,
    starts: Sequence[AnyRelation] = (),
) -> tuple[Definition, Any, list[AnyRelation]]:
    """What the step makes of relations that stand for its results.

    The definition is their level until it is finished. Each begins with one of `starts`, if there
    are some.
    """
    definition: Any = Definition(", ".join(map(repr, names)))
    counts = [bindings(start.plan) for start in starts] or [1] * len(names)
    for start in starts:
        if not agree(definition, start._engine):
            raise PlanError(f"{definition.what} start from relations of two databases")
    given: list[AnyRelation] = [
        Relation(definition, plan.Recursive(definition, index, name, is_set, (None,) * count))
        for index, (name, count) in enumerate(zip(names, counts, strict=True))
    ]
    result = step(*given)
    results = [result] if len(names) == 1 else result
    if not isinstance(results, tuple | list) or len(results) != len(names):
        raise PlanError(
            f"the step must return a tuple of {len(names)} relations, not {kind_shown(result)}\n"
            f"  one for each of its parameters {definition.what}"
        )
    for name, relation, count in zip(names, results, counts, strict=True):
        _check_result(name, relation, count)
        if not agree(definition, relation._engine):
            raise PlanError(f"{name!r} reads relations of two databases")
    engine = definition.finish()
    if engine is None:
        raise PlanError(
            f"the step reads nothing but {definition.what}: there is no row to begin with\n"
            "  a union with a table or another relation says where it starts"
        )
    return definition, engine, list(results)


def _check_result(name: str, relation: Any, count: int) -> None:
    if not isinstance(relation, Relation):
        raise PlanError(f"the step must return a relation for {name!r}, not {kind_shown(relation)}")
    found = bindings(relation.plan)
    if found != count:
        raise PlanError(
            f"the step returns {found} bindings for {name!r}, which has {count}\n"
            "  select() what makes a row of it"
        )


def level_of(node: plan.Fixpoint | plan.Iterate) -> int:
    """The number that equal definitions have too: one above those inside."""
    inside = [n.level for n in nodes(node) if isinstance(n, plan.Fixpoint | plan.Iterate)]
    return 1 + max((n for n in inside if n is not node.level), default=0)


def numbered(body: plan.Node, node: plan.Fixpoint | plan.Iterate, level: int) -> plan.Node:
    """A body whose recursive relations are of another level."""
    return substituted(body, node.level, lambda relation: replace(relation, level=level))


def parameters(step: Any, role: str) -> tuple[str, ...]:
    """The names of a step's parameters."""
    if not callable(step):
        raise PlanError(f"{role} takes a callable, relation -> relation, not {step!r:.60}")
    positional = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    parameters = list(inspect.signature(step).parameters.values())
    names = tuple(p.name for p in parameters if p.kind in positional)
    if not names or len(names) != len(parameters):
        raise PlanError(
            f"the step of {role} needs one parameter for each relation that it defines\n"
            "  lambda reach: ..., or lambda odd, even: (..., ...)"
        )
    return names


def check_count(name: str, value: Any) -> None:
    if type(value) is not int or value < (name == "max_rounds"):
        raise PlanError(f"{name} is a number of rounds, not {value!r:.60}")
