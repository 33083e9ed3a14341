"""The plan of an aggregate: the aggregates themselves, and the names of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import Function
from optimizer.plans.named import named as with_names
from reactive.api import named_rows
from reactive.api.aggregates import folded


def aggregated(
    relation: Any,
    key: Function | None,
    key_name: str | None,
    aggregates: Sequence[Any],
    named: Mapping[str, Any],
    as_: Any,
) -> plan.Node:
    """The aggregates of a relation, by a key or of all; those with names as one record."""
    _check(aggregates, named, as_)
    given = (*aggregates, *named.values())
    node = plan.Aggregate(relation.plan, key, tuple(folded(a, relation._take) for a in given))
    return (
        with_names(node, named_rows.naming_of_columns(key_name, tuple(named), as_))
        if named
        else node
    )


def _check(aggregates: Sequence[Any], named: Mapping[str, Any], as_: Any) -> None:
    if not aggregates and not named:
        raise PlanError(
            "aggregate takes at least one aggregate\n  for the keys alone: select(key).distinct()"
        )
    if aggregates and (named or as_ is not None):
        raise PlanError(
            "aggregate takes aggregates with names, or without, not both\n"
            "  aggregate(orders=Count(), total=Sum(...)) names all of them"
        )
