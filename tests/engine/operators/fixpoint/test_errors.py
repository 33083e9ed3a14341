"""Steps that are no definition, and recursive relations outside their own, are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reactive import Database, Max, Min, PlanError, Sum, Table
from reactive import fixpoint as typed_fixpoint
from reactive import iterate as typed_iterate
from tests.engine.operators.fixpoint.graphs import Edge
from tests.engine.operators.fixpoint.test_shapes import left_linear, step
from tests.errors.golden import refused

Rel = Any
fixpoint: Any = typed_fixpoint
iterate: Any = typed_iterate


def edges_of() -> Table[Edge]:
    return Database().table(Edge, name="edges")


def stolen(edges: Rel) -> Rel:
    """Return a recursive relation that is used outside its step."""
    kept: list[Rel] = []

    def steal(reach: Rel) -> Rel:
        kept.append(reach)
        return edges.union(reach)

    fixpoint(steal)
    return kept[0]


OUTSIDE: dict[str, Callable[[Rel, Rel], object]] = {
    "union": lambda edges, reach: reach.union(edges),
    "union_right": lambda edges, reach: edges.union(reach),
    "join": lambda edges, reach: edges.join(reach),
    "another_fixpoint": lambda edges, reach: fixpoint(lambda other: other.union(reach)),
    "a_step": lambda edges, reach: fixpoint(lambda other: edges.union(other).union(reach)),
    "result_of_a_step": lambda edges, reach: fixpoint(lambda other: reach),
    "start_of_rounds": lambda edges, reach: iterate(lambda r: r, reach, times=2),
}


@pytest.mark.parametrize("use", OUTSIDE)
def test_a_recursive_relation_has_no_meaning_outside_its_step(use: str) -> None:
    edges = edges_of()
    with refused(
        """
        PlanError: relation 'reach' has no rows but in the query that its step makes
          use the relation that fixpoint(), iterate() or each() returns
        """
    ):
        OUTSIDE[use](edges, stolen(edges))
    edges.add(Edge(1, 2))


READING: dict[str, Callable[[Rel], object]] = {
    "materialize": lambda reach: reach.materialize(),
    "materialize_above": lambda reach: reach.where(bool).distinct().materialize("above"),
    "subscribe": lambda reach: reach.subscribe(print),
    "changes": lambda reach: reach.changes(),
}


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("use", READING)
def test_a_recursive_relation_has_no_rows_to_read(use: str, inside: bool) -> None:
    edges = edges_of()

    def early(reach: Rel) -> Rel:
        READING[use](reach)
        return edges.union(reach)

    with refused(
        """
        PlanError: relation 'reach' has no rows but in the query that its step makes
          use the relation that fixpoint(), iterate() or each() returns
        """
    ):
        if inside:
            fixpoint(early)
        else:
            READING[use](stolen(edges))
    assert edges._engine.live_views() == []
    edges.add(Edge(1, 2))
    assert set(left_linear(edges).materialize()) == {Edge(1, 2)}


def test_a_recursive_relation_can_be_looked_at_inside_its_step() -> None:
    """A debugger or a notebook that displays it gets no other exception than a `PlanError`."""
    edges = edges_of()
    seen: list[str] = []

    def shown(reach: Rel) -> Rel:
        seen.append(repr(reach.union(edges)))
        seen.append(repr(reach))
        return edges.union(reach)

    fixpoint(shown)
    assert all("reach" in text for text in seen)


# Steps that make something else.

WRONG: dict[str, tuple[Callable[[Rel], Any], str]] = {
    "none": (
        lambda edges: fixpoint(lambda reach: None),
        "the step must return a relation for 'reach', not None (does it have a return?)",
    ),
    "a_list": (
        lambda edges: fixpoint(lambda reach: [edges]),
        "the step must return a relation for 'reach', not list",
    ),
    "one_for_two": (
        lambda edges: fixpoint(lambda odd, even: edges.union(odd)),
        "the step must return a tuple of 2 relations",
    ),
    "three_for_two": (
        lambda edges: fixpoint(lambda odd, even: (odd.union(edges), even, even)),
        "the step must return a tuple of 2 relations",
    ),
    "two_for_one": (
        lambda edges: fixpoint(lambda reach: (edges, edges)),
        "the step must return a relation for 'reach', not tuple",
    ),
    "two_bindings": (
        lambda edges: fixpoint(lambda reach: reach.join(edges)),
        "the step returns 2 bindings for 'reach', which has 1",
    ),
    "two_bindings_of_one_of_two": (
        lambda edges: fixpoint(lambda odd, even: (edges.union(odd), even.join(edges))),
        "the step returns 2 bindings for 'even', which has 1",
    ),
    "nothing_to_begin_with": (
        lambda edges: fixpoint(lambda reach: reach.where(bool)),
        "the step reads nothing but 'reach': there is no row to begin with",
    ),
    "no_parameter": (
        lambda edges: fixpoint(lambda: edges),
        "the step of fixpoint needs one parameter for each relation that it defines",
    ),
    "any_number_of_parameters": (
        lambda edges: fixpoint(lambda *all_of_them: all_of_them),
        "the step of fixpoint needs one parameter for each relation that it defines",
    ),
    "no_callable": (
        lambda edges: fixpoint(edges),
        "fixpoint takes a callable, relation -> relation, not",
    ),
    "no_rounds": (
        lambda edges: fixpoint(lambda reach: edges.union(reach), max_rounds=0),
        "max_rounds is a number of rounds, not 0",
    ),
    "rounds_in_halves": (
        lambda edges: fixpoint(lambda reach: edges.union(reach), max_rounds=2.5),
        "max_rounds is a number of rounds, not 2.5",
    ),
    "keep_without_by": (
        lambda edges: fixpoint(lambda reach: edges.union(reach), keep=Min(lambda e: e.src)),
        "fixpoint has keep= but no by=",
    ),
    "by_without_keep": (
        lambda edges: fixpoint(lambda reach: edges.union(reach), by=lambda e: e.src),
        "fixpoint has by= but no keep=",
    ),
    "keep_of_another_aggregate": (
        lambda edges: fixpoint(
            lambda reach: edges.union(reach), keep=Sum(lambda e: e.src), by=lambda e: e.src
        ),
        "only Min(...) and Max(...) say which row is best",
    ),
    "keep_that_was_not_called": (
        lambda edges: fixpoint(lambda reach: edges.union(reach), keep=Min, by=lambda e: e.src),
        "only Min(...) and Max(...) say which row is best",
    ),
    "by_of_two_parameters": (
        lambda edges: fixpoint(
            lambda reach: edges.union(reach), keep=Min(lambda e: e.src), by=lambda a, b: a
        ),
        "by of fixpoint calls its callable with 1 argument",
    ),
    "one_keep_for_two": (
        lambda edges: fixpoint(
            lambda odd, even: (edges.union(odd), edges.union(even)),
            keep=Max(lambda e: e.src),
            by=lambda e: e.src,
        ),
        "keep= must have one entry for each of odd, even",
    ),
    "keep_of_three_for_two": (
        lambda edges: fixpoint(
            lambda odd, even: (edges.union(odd), edges.union(even)),
            keep=(None, None, None),
            by=(None, None),
        ),
        "keep= must have one entry for each of odd, even",
    ),
    "keep_without_by_of_one": (
        lambda edges: fixpoint(
            lambda odd, even: (edges.union(odd), edges.union(even)),
            keep=(None, Max(lambda e: e.src)),
            by=(None, None),
        ),
        "fixpoint of 'even' has keep= but no by=",
    ),
    "iterate_without_a_start": (
        lambda edges: iterate(lambda r: r, [1], times=2),
        "iterate starts from a relation, not list",
    ),
    "iterate_of_two": (
        lambda edges: iterate(lambda a, b: a, edges, times=2),
        "the step of iterate takes 2 relations, so it starts from a tuple of as many, not Table",
    ),
    "iterate_less_than_never": (
        lambda edges: iterate(lambda r: r, edges, times=-1),
        "times is a number of rounds, not -1",
    ),
    "iterate_to_more_bindings": (
        lambda edges: iterate(lambda r: r.join(edges), edges, times=2),
        "the step returns 2 bindings for 'r', which has 1",
    ),
    "iterate_to_none": (
        lambda edges: iterate(lambda r: None, edges, times=2),
        "the step must return a relation for 'r', not None",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_step_that_makes_something_else_is_refused(name: str) -> None:
    make, message = WRONG[name]
    edges = edges_of()
    with pytest.raises(PlanError) as caught:
        make(edges)
    assert message in str(caught.value)
    edges.add(Edge(1, 2))


def test_relations_of_two_databases_do_not_meet_in_a_recursion() -> None:
    mine, theirs = edges_of(), edges_of()
    makers: tuple[Callable[[], object], ...] = (
        lambda: fixpoint(lambda reach: mine.union(theirs)),
        lambda: fixpoint(lambda reach: mine.union(reach).union(theirs)),
        lambda: fixpoint(lambda reach: mine.union(step(reach, theirs))),
        lambda: fixpoint(lambda odd, even: (mine.union(odd), theirs.union(even))),
        lambda: fixpoint(lambda odd, even: (mine.union(even), theirs.union(odd))),
        lambda: fixpoint(lambda a: mine.union(a)).union(fixpoint(lambda b: theirs.union(b))),
        lambda: fixpoint(lambda a: mine.union(fixpoint(lambda b: a.union(theirs)))),
        lambda: iterate(lambda r: theirs.union(r), mine, times=2),
        lambda: iterate(lambda r: theirs, mine, times=2),
    )
    for make in makers:
        with pytest.raises(PlanError, match="two databases"):
            make()


def test_an_exception_of_the_step_is_itself() -> None:
    edges = edges_of()

    def fails(reach: Rel) -> Rel:
        reach.union(edges)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fixpoint(fails)
    with pytest.raises(AttributeError, match="has no 'filter'"):
        fixpoint(lambda reach: edges.union(reach.filter(bool)))
    edges.add(Edge(1, 2))
