"""Recursions that programs make: named relations in a list, and as many rounds as it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from reactive import Database, PlanError, StratificationError, Table, fixpoint
from tests.errors.golden import refused

Rel = Any


class Edge(NamedTuple):
    src: int
    dst: int


def ring(numbers: Rel, size: int) -> Any:
    """Define each relation as the previous one plus one; the first one reads the last one."""

    def step(*relations: Rel) -> Sequence[Rel]:
        following = [r.select(lambda n: n + 1).where(lambda n: n < 100) for r in relations]
        return [numbers.union(following[-1]), *following[:-1]]

    return fixpoint(step, names=[f"ring{index}" for index in range(size)])


@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_step_may_take_any_number_of_named_relations(size: int) -> None:
    numbers: Table[int] = Database().table(int, name="numbers")
    made = ring(numbers, size)
    assert len(made) == size
    views = [relation.materialize() for relation in made]
    numbers.add_all([3, 50])
    for index, view in enumerate(views):
        expected = {n for start in (3, 50) for n in range(start + index, 100, size)}
        assert sorted(view) == sorted(expected)
        view.verify()
    numbers.remove(3)
    assert sorted(views[0]) == list(range(50, 100, size))


def test_names_are_in_messages() -> None:
    numbers: Table[int] = Database().table(int, name="numbers")
    with pytest.raises(StratificationError, match="fixpoint 'even' depends on its own negation"):
        fixpoint(lambda *r: [numbers.difference(r[0])], names=["even"])
    with refused(
        """
        PlanError: the step must return a tuple of 1 relations, not Table
          one for each of its parameters 'even'
        """
    ):
        fixpoint(lambda *r: numbers, names=["even"])  # type: ignore[arg-type]


@pytest.mark.parametrize("names", [[], ["a", "a"], "ab", [1]])
def test_names_that_are_no_names_are_refused(names: Any) -> None:
    numbers: Table[int] = Database().table(int, name="numbers")
    with pytest.raises(PlanError, match="names= is a list of a different name for each relation"):
        fixpoint(lambda *r: [numbers] * len(r), names=names)


def test_a_recursion_may_have_any_number_of_rounds() -> None:
    starts: Table[int] = Database().table(int, name="starts")

    def made(**options: Any) -> Rel:
        return fixpoint(
            lambda n: starts.union(n.where(lambda x: x < 20_000).select(lambda x: x + 1)),
            **options,
        ).materialize()

    view = made(max_rounds=None)
    starts.add(0)
    assert len(view) == 20_001
    view.verify()
    starts.remove(0)
    assert len(view) == 0


def test_a_closure_is_kept_as_bits_without_a_bound_too() -> None:
    edges: Table[Edge] = Database().table(Edge, name="edges")

    def reach(**options: Any) -> Rel:
        return fixpoint(
            lambda reach: edges.union(
                reach.join(edges, on=lambda p, e: p.dst == e.src).select(
                    lambda p, e: Edge(p.src, e.dst)
                )
            ),
            **options,
        )

    assert "closure" in str(reach(max_rounds=None).explain())
    assert "closure" not in str(reach(max_rounds=9).explain())
    view = reach(max_rounds=None).materialize()
    edges.add_all([Edge(1, 2), Edge(2, 3)])
    assert sorted(view) == [(1, 2), (1, 3), (2, 3)]
