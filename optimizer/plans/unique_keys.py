"""Which fields of a row no two rows of a plan have in common: the key of a keyed table.

A join that looks rows up by such a key finds one row at most.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Attribute, Display, Expr, Item, Lifted
from optimizer.lifting.lift import lift
from optimizer.plans.properties import once, shapes

Key = frozenset[Expr]
NO_KEY: Key = frozenset()


def unique_key(node: plan.Node) -> Key:
    """The parts of a key that rows have alone, in terms of the row; none if there is no such key.

    It is that of a keyed table, also below conditions.
    """
    while isinstance(node, plan.Where):
        node = node.input
    return once(node, "unique_key", _of_table) if isinstance(node, plan.Table) else NO_KEY


def _of_table(table: plan.Table) -> Key:
    if table.key is None:
        return NO_KEY
    found = lift(table.key, shapes(table))
    if not isinstance(found, Lifted):
        return NO_KEY
    parts = key_parts(found.body)
    return frozenset(parts) if all(isinstance(part, Attribute | Item) for part in parts) else NO_KEY


def key_parts(body: Expr) -> tuple[Expr, ...]:
    """The parts of a key, of which there are several if it is a tuple."""
    match body:
        case Display("tuple", items):
            return items
        case _:
            return (body,)
