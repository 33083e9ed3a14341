"""Nodes that pair the rows of two inputs (product, join, outer join), or filter the rows of the
left input by their partners on the right (semi-join, anti-join).

A join is bilinear: d(L join R) = dL join R + (L + dL) join dR.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from optimizer.expr import Function
from optimizer.expressions.knowledge import Shape, Shapes
from optimizer.plans import facts as costs
from optimizer.plans import headlines
from optimizer.plans.facts import (
    Barrier,
    Calls,
    Facts,
    Node,
    as_first,
    bindings_of_pair,
    if_both,
    is_set_of_outer_join,
    monotone,
    negates_of_outer_join,
    of_input,
    right_negates,
    row_of_right_input,
    rows_of_outer_join,
    same_rows,
    shapes_of_pairs,
)
from optimizer.record import record

_OF_MATCH = (
    Calls("match.left_key", of_input),
    Calls("match.right_key", row_of_right_input),
    Calls("match.on", bindings_of_pair),
)


@record
class Match:
    """The condition of a join: equal keys, and then the predicate `on`.

    Without keys all pairs are candidates; without a predicate all candidates match.
    """

    left_key: Function | None = None
    right_key: Function | None = None
    on: Function | None = None


@record
class Product(Node):
    """All pairs; weights multiply."""

    left: Node
    right: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=shapes_of_pairs,
        is_set=if_both,
        costs=costs.all_pairs,
        degree=costs.degree_of_both,
        headline=headlines.by_name,
    )


@record
class Join(Node):
    """Pairs of rows that match; weights multiply."""

    left: Node
    right: Node
    match: Match

    facts = Facts(
        calls=_OF_MATCH,
        raises=False,
        recursion=monotone,
        shapes=shapes_of_pairs,
        is_set=if_both,
        costs=costs.matches,
        degree=costs.degree_of_both,
        headline=headlines.join,
    )


@record
class OuterJoin(Node):
    """A join that keeps the rows without a partner, of the left, the right or both sides."""

    left: Node
    right: Node
    match: Match
    kind: Literal["left", "right", "full"]

    facts = Facts(
        calls=_OF_MATCH,
        raises=False,
        recursion=negates_of_outer_join,
        shapes=rows_of_outer_join,
        is_set=is_set_of_outer_join,
        costs=costs.matches,
        degree=costs.no_degree,
        headline=headlines.join,
    )


@record
class SemiJoin(Node):
    """The left rows that have a partner on the right (EXISTS), with their own weights."""

    left: Node
    right: Node
    match: Match

    facts = Facts(
        calls=_OF_MATCH,
        raises=False,
        recursion=monotone,
        shapes=same_rows,
        is_set=as_first,
        costs=costs.matches_of_right,
        degree=costs.no_degree,
        headline=headlines.join,
    )


@record
class AntiJoin(Node):
    """The left rows that have no partner on the right (NOT EXISTS)."""

    left: Node
    right: Node
    match: Match

    facts = Facts(
        calls=_OF_MATCH,
        raises=False,
        recursion=right_negates,
        shapes=same_rows,
        is_set=as_first,
        costs=costs.matches_of_right,
        degree=costs.no_degree,
        headline=headlines.join,
    )


def _shapes_of_asof(node: AsofJoin, inputs: Sequence[Shapes]) -> Shapes:
    """Return the shapes of the left bindings, and that of the right row, which may be missing."""
    left, right = (_first_item(of[0]) for of in inputs)
    mine = left if isinstance(left, tuple) and node.count > 1 else (left,) * node.count
    return (*mine, None if node.is_left else right)


def _first_item(of: Shape) -> Shape:
    return of[0] if isinstance(of, tuple) else None


def _recursion_of_asof(node: AsofJoin) -> Sequence[Barrier | None]:
    """Refuse a recursion through any side: the partner of a row may be replaced by another."""
    return ("order", "order")


def _headline_of_asof(node: AsofJoin) -> str:
    words = [f"{'left_' if node.is_left else ''}asof_join {node.direction}"]
    if node.tolerance is not None:
        words.append(f"within {node.tolerance}")
    if node.is_strict:
        words.append("not at the same time")
    return ", ".join(words)


@record
class AsofJoin(Node):
    """Each left row with the one right row of its key that is nearest in time.

    The rows of both inputs are tuples `(row, key, time)`; `row` has `count` bindings on the left.
    The nearest row is the last one before or at the time ("backward"), the first one at or after it
    ("forward"), or the nearer of both, the earlier one of two ("nearest"). Of several rows with its
    time it is the least. `is_strict` leaves out rows with the same time, `tolerance` those farther
    away. `is_left` keeps the left rows without a partner, with None.
    """

    left: Node
    right: Node
    count: int
    direction: Literal["backward", "forward", "nearest"] = "backward"
    tolerance: Any = None
    is_strict: bool = False
    is_left: bool = False

    facts = Facts(
        calls=(),
        raises=True,
        recursion=_recursion_of_asof,
        shapes=_shapes_of_asof,
        is_set=lambda node, inputs: inputs[0],
        costs=costs.logarithmic,
        degree=costs.no_degree,
        headline=_headline_of_asof,
    )


def _shapes_of_lookup(node: Lookup, inputs: Sequence[Shapes]) -> Shapes:
    """Return the shapes of the events' bindings, and that of the row, which may be missing."""
    left, right = (_first_item(of[0]) for of in inputs)
    mine = left if isinstance(left, tuple) and node.count > 1 else (left,) * node.count
    return (*mine, None if node.is_left else right)


@record
class Lookup(Node):
    """Each event with the rows of its key as of the commit that the event came in.

        d(L lookup R)  =  dL join (R + dR)

    The rows of both inputs are tuples `(row, key)`; `row` has `count` bindings on the left. A
    change of the right side changes no pair that was made before. `is_left` keeps events without a
    row, with None.
    """

    left: Node
    right: Node
    count: int
    is_left: bool = False

    facts = Facts(
        calls=(),
        raises=True,
        recursion=_recursion_of_asof,
        shapes=_shapes_of_lookup,
        is_set=lambda node, inputs: False,
        costs=lambda node: (costs.Cost.MATCHES, costs.Cost.ONE),
        degree=costs.no_degree,
        headline=lambda node: f"{'left_' if node.is_left else ''}lookup",
    )
