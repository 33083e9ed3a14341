"""What `fixpoint` and `iterate` have in common: a step is called with relations that stand for its
results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans.properties import bindings
from reactive.api.callables import kind_shown
from reactive.api.relation import AnyRelation, Relation
from reactive.engine.compiler.definition import Definition, agree


def called(
    step: Callable[..., Any],
    names: tuple[str, ...],
    *,
    is_set: bool,
    is_single: bool,
    starts: Sequence[AnyRelation] = (),
) -> tuple[Definition, Any, list[AnyRelation]]:
    """What the step makes of relations that stand for its results.

    The definition is their level until it is finished. Each begins with one of `starts`, if there
    are some. If it `is_single`, the step returns a relation, else a tuple of them.
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
    results = [result] if is_single else result
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


def checked_names(step: Any, names: Any) -> tuple[str, ...]:
    """Names that are given for the relations of a step, in the place of its parameters' names."""
    if not callable(step):
        raise PlanError(f"fixpoint takes a callable, relations -> relations, not {step!r:.60}")
    is_listed = isinstance(names, list | tuple) and all(isinstance(n, str) for n in names)
    if not is_listed or not names or len({*names}) < len(names):
        raise PlanError(
            f"names= is a list of a different name for each relation, not {names!r:.60}\n"
            "  fixpoint(lambda odd, even: (..., ...), names=['odd', 'even'])"
        )
    return tuple(names)


def check_count(name: str, value: Any) -> None:
    if type(value) is not int or value < (name == "max_rounds"):
        raise PlanError(f"{name} is a number of rounds, not {value!r:.60}")
