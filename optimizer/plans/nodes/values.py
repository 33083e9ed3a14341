"""The node of `db.values(rows)`: rows that are written in the query itself.

values 1, 2, 3                 a relation of three rows, which stay
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from itertools import islice
from typing import Any

from optimizer.callables.captures import meaning
from optimizer.expressions.knowledge import Shape, Shapes
from optimizer.plans import costs
from optimizer.plans.facts import Facts, monotone
from optimizer.plans.plan_node import Node
from optimizer.record import record

SHOWN = 4
LONGEST = 60


def _headline(node: Values) -> str:
    shown = [f"{row!r:.{LONGEST}}" for row in islice(node.rows, SHOWN)]
    rest = len(node.rows) - len(shown)
    more = [f"... {rest} more"] if rest else []
    return f"values {', '.join([*shown, *more])}".rstrip()


@record
class Values(Node):
    """The rows, each as often as it is there; of several bindings they are tuples.

    `meaning` is what they are compared by, `of` what is known of each binding. `values` makes one.
    """

    rows: tuple[Any, ...] = field(compare=False)
    meaning: Any = field(repr=False)
    of: Shapes

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=lambda node, _: node.of,
        is_set=lambda node, _: len(set(node.rows)) == len(node.rows),
        costs=costs.nothing,
        degree=costs.degree_of_none,
        headline=_headline,
    )


def values(rows: Iterable[Any], of: Shapes | None = None) -> Values:
    """The node of some rows, which have a hash; without `of` they have one binding, of which as
    much is known as they show."""
    kept = tuple(rows)
    return Values(kept, meaning(kept), (shape_of_all(kept),) if of is None else of)


def shape_of_all(rows: tuple[Any, ...]) -> Shape:
    """What is known of values that are all there will be."""
    kinds = set(map(type, rows))
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind is not tuple:
        return kind
    if len(set(map(len, rows))) != 1:
        return None
    return tuple(map(shape_of_all, zip(*rows, strict=True)))
