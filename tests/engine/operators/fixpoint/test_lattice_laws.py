"""Laws of lattices, checked in strict mode on the values that flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from reactive import Database, FixpointError, fixpoint
from reactive.lattices import TOP, Lattice, flat, largest
from tests.errors.golden import refused


class Level(NamedTuple):
    n: int
    v: Any


class Edge(NamedTuple):
    a: int
    b: int


def _view(keep: Lattice[Any], made: Callable[[Any], Any], *, strict: bool) -> tuple[Any, Any, Any]:
    """Return the facts, the edges, and the view of a recursion that makes values of values."""
    db = Database(strict=strict)
    facts, edges = db.table(Level, name="facts"), db.table(Edge, name="edges")
    view = fixpoint(
        lambda s: facts.union_all(
            s.join(edges, on=lambda s, e: s.n == e.a).select(lambda s, e: Level(e.b, made(s.v)))
        ),
        keep=keep,
        by=lambda s: s.n,
    ).materialize()
    return facts, edges, view


def _of(row: Any) -> Any:
    return row.v


WRONG: tuple[tuple[Lattice[Any], str], ...] = (
    (Lattice(lambda a, b: a + b, _of), "not idempotent: join(1, 1) is 2"),
    (Lattice(lambda a, b: a, _of), "not commutative for 1, 2: 1 and 2"),
    (Lattice(lambda a, b: (a + b) / 2, _of), "not as large as 1: join(1, 2) is 1.5"),
    (Lattice(max, _of, leq=lambda a, b: a >= b), "not that of its leq for 1, 2: it is 2"),
    (Lattice(max, _of, bottom=5), "not neutral for its bottom: join(5, 1) is 5"),
)


@pytest.mark.parametrize(("keep", "problem"), WRONG)
def test_a_join_that_breaks_a_law_is_an_error_only_if_strict(
    keep: Lattice[Any], problem: str
) -> None:
    facts, _, view = _view(keep, lambda v: v, strict=True)
    facts.add(Level(0, 1))
    with pytest.raises(FixpointError) as refusal:
        facts.add(Level(0, 2))
    assert str(refusal.value) == (
        f"fixpoint 's': the join of a lattice is {problem}\n"
        "  transaction rolled back: no table or view changed"
    )
    assert (list(facts), list(view)) == ([Level(0, 1)], [Level(0, 1)])
    facts, _, view = _view(keep, lambda v: v, strict=False)
    facts.add(Level(0, 1))
    facts.add(Level(0, 2))
    assert len(view) == 1


def test_a_join_is_checked_to_be_associative_on_what_came_before() -> None:
    """Stones, papers and scissors: the winner of two."""
    beats = {("paper", "stone"), ("scissors", "paper"), ("stone", "scissors")}
    facts, _, _ = _view(
        Lattice(lambda a, b: a if a == b or (a, b) in beats else b, _of), lambda v: v, strict=True
    )
    facts.add_all([Level(0, "stone"), Level(0, "paper")])
    with pytest.raises(FixpointError, match="join of a lattice is not associative for 'paper'"):
        facts.add(Level(0, "scissors"))


def test_a_widening_that_is_no_closure_is_an_error() -> None:
    facts, _, _ = _view(Lattice(max, _of, widen=lambda v: v + v % 3), lambda v: v, strict=True)
    with pytest.raises(FixpointError, match=r"widen is not idempotent: it makes 2 of 1"):
        facts.add_all([Level(0, 1), Level(0, 3)])


def test_the_error_of_a_step_that_makes_less_of_more_shows_both() -> None:
    facts, edges, view = _view(flat(_of), lambda v: 0 if v is TOP else v + 1, strict=True)
    edges.add_all([Edge(1, 2), Edge(2, 3)])
    facts.add(Level(1, 1))
    with refused(
        """
        FixpointError: fixpoint 's' is not monotone: of Level(n=1, v=1) it makes Level(n=2, v=2)
          of Level(n=1, v=TOP) it makes nothing as large
          transaction rolled back: no table or view changed
          a larger value must lead to as large or larger values, never to fewer rows
        """
    ):
        facts.add(Level(1, 5))
    assert sorted(view) == [Level(1, 1), Level(2, 2), Level(3, 3)]


def test_a_wrong_step_is_found_though_its_result_hides_it() -> None:
    """A larger fact at the same node: without `strict`, the right result and no error."""
    for strict in (True, False):
        facts, edges, view = _view(largest(_of), lambda v: 10 - v, strict=strict)
        edges.add(Edge(1, 2))
        facts.add_all([Level(1, 3), Level(2, 8)])
        facts.add(Level(2, 3))
        if strict:
            edges.remove(Edge(1, 2))
            facts.add(Level(3, 1))
            edges.add(Edge(3, 4))
            with pytest.raises(FixpointError, match="is not monotone"):
                facts.add(Level(3, 2))
        view.verify()
