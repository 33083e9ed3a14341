"""Recursion through operators that retract rows is refused, and the error names the cycle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reactive import (
    Count,
    Database,
    FixpointError,
    Min,
    PlanError,
    ReactiveError,
    StratificationError,
    Sum,
    Table,
    fixpoint,
    iterate,
)
from tests.engine.operators.fixpoint.graphs import Edge, chain, closure
from tests.engine.operators.fixpoint.test_shapes import step
from tests.errors.golden import refused

Rel = Any
REMEDY = "move the anti_join, difference or aggregate outside the fixpoint"


def edges_of() -> Table[Edge]:
    return Database().table(Edge, name="edges")


def on(a: Any, b: Any) -> object:
    return a == b


FORBIDDEN: dict[str, tuple[Callable[[Rel, Rel], Rel], str, str]] = {
    "anti_join": (
        lambda edges, reach: edges.anti_join(reach, on=on),
        "negation",
        "anti_join (right input)",
    ),
    "anti_join_of_both": (
        lambda edges, reach: reach.anti_join(reach.where(lambda e: e.src > 1), on=on),
        "negation",
        "anti_join (right input)",
    ),
    "difference": (
        lambda edges, reach: edges.difference(reach),
        "negation",
        "difference (right input)",
    ),
    "difference_far_away": (
        lambda edges, reach: step(edges - step(reach, edges).distinct(), edges).where(bool),
        "negation",
        "difference (right input)",
    ),
    "difference_all_right": (
        lambda edges, reach: edges.difference_all(reach),
        "negation",
        "difference_all (right input)",
    ),
    "difference_all_left": (
        lambda edges, reach: reach.difference_all(edges),
        "negation",
        "difference_all (left input)",
    ),
    "left_join": (
        lambda edges, reach: edges.left_join(reach, on=on).select(lambda a, b: a),
        "negation",
        "left_join (right input)",
    ),
    "right_join_left": (
        lambda edges, reach: reach.right_join(edges, on=on).select(lambda a, b: b),
        "negation",
        "right_join (left input)",
    ),
    "aggregate_of_some_columns": (
        lambda edges, reach: (
            reach.join(edges, on=on)
            .group_by(lambda a, b: a[0])
            .aggregate(Count())
            .select(lambda key, n: (key, n))
        ),
        "aggregate",
        "aggregate",
    ),
    "aggregate_of_repeated_rows": (
        lambda edges, reach: (
            reach.select(lambda a: a[0])
            .join(edges, on=lambda a, b: a == b[0])
            .group_by(lambda a, b: a)
            .aggregate(Count())
            .select(lambda key, n: (key, n))
        ),
        "aggregate",
        "aggregate",
    ),
    "aggregate_of_recursive_partners": (
        lambda edges, reach: (
            edges.distinct()
            .left_join(reach, on=on)
            .group_by(lambda a, b: a)
            .aggregate(Count())
            .select(lambda key, n: (key, n))
        ),
        "negation",
        "left_join (right input)",
    ),
    "right_join": (
        lambda edges, reach: edges.right_join(reach, on=on).select(lambda a, b: b),
        "negation",
        "right_join (right input)",
    ),
    "full_join": (
        lambda edges, reach: reach.full_join(edges, on=on).select(lambda a, b: a or b),
        "negation",
        "full_join (left input)",
    ),
    "group_by": (
        lambda edges, reach: reach.group_by(lambda e: e.src).aggregate(Count()).select(Edge),
        "aggregate",
        "aggregate",
    ),
    "aggregate": (
        lambda edges, reach: reach.aggregate(Sum(lambda e: e.src)).select(lambda n: Edge(n, n)),
        "aggregate",
        "aggregate",
    ),
    "limit": (
        lambda edges, reach: reach.order_by(lambda e: e.src).limit(2),
        "order",
        "order_by",
    ),
}


IN_ITS_ROWS = (
    "the value is in its rows, of which each later one is another row: a test such as >= decides,"
    " or keep=Max(...) keeps one row"
)
REASONS = {
    "aggregate_of_some_columns": IN_ITS_ROWS,
    "aggregate_of_repeated_rows": (
        "equal rows of select count as one inside of a recursion: distinct() of it says so, or"
        " select all fields that tell them apart"
    ),
    "group_by": IN_ITS_ROWS,
    "aggregate": "it is of all rows, and has a row also without any",
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_recursion_through_what_is_not_monotone_is_refused(name: str) -> None:
    body, what, through = FORBIDDEN[name]
    edges = edges_of()
    why = [f"not monotone: {REASONS[name]}"] if name in REASONS else []
    lines = "\n          ".join([f"reach -> {through} -> reach", *why, REMEDY])
    with refused(
        f"""
        StratificationError: fixpoint 'reach' depends on its own {what}
          {lines}
        """
    ):
        fixpoint(lambda reach: edges.union(body(edges, reach)))
    assert edges._engine.live_views() == []


def test_an_order_that_chooses_no_rows_is_no_order_in_a_recursion() -> None:
    edges = edges_of()
    edges.add_all([Edge(2, 3), Edge(1, 2)])
    reach = fixpoint(lambda reach: edges.union(reach.order_by(lambda e: e.src))).materialize()
    assert sorted(reach, key=lambda e: e.src) == [Edge(1, 2), Edge(2, 3)]


def test_the_cycle_of_a_mutual_recursion_names_all_on_its_way() -> None:
    edges = edges_of()
    with refused(
        f"""
        StratificationError: fixpoint 'first', 'second', 'third' depends on its own negation
          first -> difference (right input) -> third -> second -> first
          {REMEDY}
        """
    ):
        fixpoint(
            lambda first, second, third: (
                edges.difference(third),
                edges.union(first),
                edges.union(second),
            )
        )


def test_negation_of_a_relation_that_does_not_lead_back_is_no_cycle() -> None:
    """Two relations of one fixpoint may be strata of each other, or it is refused by name."""
    edges = edges_of()
    try:
        _, others = fixpoint(
            lambda reach, others: (
                edges.union(step(reach, edges)),
                edges.select(lambda e: Edge(e.dst, e.src)).difference(reach),
            )
        )
    except StratificationError as error:
        assert "others -> difference (right input)" in str(error)
        return
    view = others.materialize()
    for edge in (*chain(1, 2, 3, 1), *chain(3, 4, 5)):
        edges.add(edge)
        turned = {Edge(e.dst, e.src) for e in edges}
        assert set(view) == turned - closure(edges)


def test_an_inner_recursion_may_not_negate_the_outer_one() -> None:
    edges = edges_of()
    with pytest.raises(StratificationError, match=r"'outer' depends on its own negation"):
        fixpoint(
            lambda outer: edges.union(
                fixpoint(lambda inner: step(inner, edges).union(edges.difference(outer)))
            )
        )


def test_an_inner_recursion_may_not_be_negated_if_it_reads_the_outer_one() -> None:
    edges = edges_of()
    with pytest.raises(StratificationError, match=r"'outer' depends on its own negation"):
        fixpoint(
            lambda outer: edges.difference(fixpoint(lambda inner: outer.union(step(inner, edges))))
        )


def test_an_inner_recursion_that_keeps_the_best_of_the_outer_one_is_refused() -> None:
    """`keep` is an aggregate: a new row may replace the best one."""
    edges = edges_of()
    with pytest.raises(PlanError):
        fixpoint(
            lambda outer: edges.union(
                fixpoint(
                    lambda inner: outer.union(step(inner, edges)),
                    keep=Min(lambda e: e.dst),
                    by=lambda e: e.src,
                ).select(lambda e: Edge(e.dst, e.src))
            )
        )


def test_a_helper_that_makes_the_step_is_refused_as_a_lambda_is() -> None:
    edges = edges_of()

    def unreached(reach: Rel) -> Rel:
        return edges.anti_join(reach, on=lambda a, b: a.dst == b.src)

    with pytest.raises(StratificationError, match="fixpoint 'reach'"):
        fixpoint(unreached)


def test_an_iteration_in_a_recursion_must_be_monotone() -> None:
    edges = edges_of()
    with pytest.raises(StratificationError, match="'reach' depends on its own negation"):
        fixpoint(lambda reach: edges.union(iterate(lambda r: edges.difference(r), reach, times=2)))


def test_errors_are_of_their_classes() -> None:
    assert issubclass(StratificationError, PlanError)
    assert issubclass(FixpointError, ReactiveError | RuntimeError)
    assert issubclass(FixpointError, RuntimeError)


def test_an_inner_recursion_may_read_what_turns_out_to_be_a_lower_stratum() -> None:
    """Two of the outer three depend on each other, and the third only on its own recursion."""
    edges = edges_of()
    first, _, third = fixpoint(
        lambda first, second, third: (
            edges.union(second.where(lambda e: e.src < e.dst)),
            step(first, edges),
            fixpoint(lambda inner: first.union(step(inner, inner))),
        )
    )
    views = [first.materialize(), third.materialize()]
    for edge in (*chain(1, 2, 3, 1), *chain(3, 4, 5)):
        edges.add(edge)
        assert set(views[1]) == closure(edges)
    edges.remove(Edge(2, 3))
    assert set(views[1]) == closure(edges)
    for view in views:
        view.verify()
