"""Random recursive programs over random histories equal their naive evaluation at every commit."""

from __future__ import annotations

from hypothesis import given

from tests.budget import examples
from tests.engine.operators.fixpoint.play import play
from tests.random_queries.programs import Case, cases


@examples(80)
@given(case=cases())
def test_programs_equal_their_naive_evaluation_after_every_commit(case: Case) -> None:
    play(case)


@examples(40)
@given(case=cases(2, raising=True))
def test_programs_that_raise_in_a_round_are_rolled_back(case: Case) -> None:
    play(case)


@examples(40)
@given(case=cases(2, kind="iteration"))
def test_iterations_equal_their_naive_evaluation_after_every_commit(case: Case) -> None:
    play(case)
