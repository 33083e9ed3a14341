"""Bindings that are computed: what `extend` appends, and what `bind` puts in their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans.binding_names import binding_names
from optimizer.plans.named import named as with_names
from optimizer.plans.properties import bindings
from reactive.api import columns, named_rows
from reactive.api.columns import name_of

if TYPE_CHECKING:
    from reactive.api.relation import AnyRelation

Column = Callable[..., Any] | str


def extended(
    relation: AnyRelation, given: Sequence[Column], named: Mapping[str, Column]
) -> plan.Extend:
    """The rows with bindings appended."""
    node = relation.plan
    old = binding_names(node)
    for name in named:
        if name in old:
            raise PlanError(
                f"extend: there is a binding {name!r} already\n"
                "  give the new one another name, or bind(...) all that are to be there"
            )
    keep = tuple(range(bindings(node)))
    return _made("extend", relation, keep, old, given, named)


def bound(
    relation: AnyRelation, given: Sequence[Column], named: Mapping[str, Column]
) -> plan.Extend:
    """The rows with other bindings."""
    return _made("bind", relation, (), (), given, named)


def selected(
    relation: AnyRelation, given: Sequence[Column], named: Mapping[str, Column]
) -> AnyRelation:
    """The rows as named rows: one binding, a record with a field per column."""
    names = [_name_of(column) for column in given]
    if None in names:
        raise PlanError(
            "select takes one callable, or columns that have names\n"
            '  select("id", total=lambda order: ...) names them; bind(f, g) gives two bindings'
        )
    twice = next((name for name in (*names, *named) if [*names, *named].count(name) > 1), None)
    if twice is not None:
        raise PlanError(f"select: there are two columns {twice!r}\n  give one of them another name")
    every = tuple(str(name) for name in (*names, *named))
    how = named_rows.naming_of_columns(None, every, None, "select")
    made = relation._new(_made("select", relation, (), (), given, named))
    return made._new(with_names(made.plan, how))


def _made(
    role: str,
    relation: AnyRelation,
    keep: tuple[int, ...],
    names: tuple[str | None, ...],
    given: Sequence[Column],
    named: Mapping[str, Column],
) -> plan.Extend:
    if not given and not named:
        raise PlanError(
            f"{role} takes callables of the bindings, with names if they are to have some\n"
            f"  {role}(total=lambda order: order.price * order.pieces)"
        )
    every = [(_name_of(column), column) for column in given] + list(named.items())
    taken = tuple(relation._take(column, role) for _, column in every)
    return plan.Extend(relation.plan, keep, taken, (*names, *[name for name, _ in every]))


def _name_of(column: Column) -> str | None:
    """The name of the field that is asked for by its name."""
    return name_of(column) if isinstance(column, str | columns.Column) else None
