"""Replace the only value of each key by a column, if no two rows can have the same key.

    aggregate Only(c.name) by c.id              bind c.id, c.name
      table customers, by id            ->        table customers, by id

A comprehension writes a dictionary like this: `{c.id: c.name for c in customers}`. If a value is an
aggregate, as in `{t: sum(...) for t in towns}`, its rows are a left_join of the keys with groups: a
key meets one group at most, and stays unique.

Sound:  for rows that cannot be negative. The aggregate refuses two rows with one key, which cannot
        exist; a group has its row. A NaN is one key, in sets and groups as in their readers.
Needs:  the key of a keyed table, of groups, or the rows of a set, that no node above has doubled.
Pays:   a state per key, and a look at each row.
Source: *functional dependencies* of keys.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import (
    Display,
    Expr,
    Item,
    Lifted,
    Parameter,
    all_parameters,
    constant,
    one_value,
    reads,
)
from optimizer.expressions.text import over
from optimizer.plans.forms import unique_key
from optimizer.plans.join_lists import extend_of, outputs
from optimizer.plans.properties import bindings, may_be_negative


def drop_only_value(node: plan.Node) -> plan.Node:
    """Replace an aggregate of only values by columns, if keys are unique; other nodes unchanged."""
    match node:
        case plan.Aggregate(source, Lifted() as key, (plan.Folded("Only", _, Lifted() as value),)):
            if not may_be_negative(source) and _is_unique(key.body, source):
                return extend_of(source, [key, value])
    return node


def _meets_one(match: plan.Match, right: plan.Node) -> bool:
    """Return True if a row has one partner at most: it looks groups up by their key."""
    key = match.right_key
    is_key = isinstance(key, Lifted) and key.body == Item(Parameter(0), constant(0))
    return is_key and isinstance(right, plan.Aggregate) and bindings(right) > 1


def _is_unique(key: Expr, node: plan.Node) -> bool:
    """Return True if an expression differs between any two rows of a node."""
    match node:
        case plan.Shared(source) | plan.View(source) | plan.Where(source):
            return _is_unique(key, source)
        case plan.SemiJoin(source) | plan.AntiJoin(source):
            return _is_unique(key, source)
        case plan.Extend(source):
            return _is_unique(over(key, outputs(node)), source)
        case plan.Select(source, Lifted(body)):
            return _is_unique(over(key, (body,)), source)
        case plan.OuterJoin(left, right, match, "left"):
            of_left = reads(key) <= set(range(bindings(left)))
            return of_left and _meets_one(match, right) and _is_unique(key, left)
        case plan.Aggregate(_, Lifted(), row=None):
            return key == Parameter(0)
        case plan.Distinct():
            return key == one_value(all_parameters(bindings(node)))
        case plan.Table():
            known = unique_key(node)
            parts = key.items if isinstance(key, Display) and key.kind == "tuple" else (key,)
            return bool(known) and known <= set(parts)
        case _:
            return False
