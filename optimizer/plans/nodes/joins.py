"""Nodes that pair the rows of two inputs (product, join, outer join), or filter the rows of the
left input by their partners on the right (semi-join, anti-join).

A join is bilinear: d(L join R) = dL join R + (L + dL) join dR.
"""

from __future__ import annotations

from typing import Literal

from optimizer.expr import Function
from optimizer.plans import facts as costs
from optimizer.plans import headlines
from optimizer.plans.facts import (
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
