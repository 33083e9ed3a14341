"""Weights of two inputs, undone if a step fails."""

from __future__ import annotations

import pytest

from reactive.engine.operators.set_operators import Pointwise


def difference(left: int, right: int) -> int:
    return max(left - right, 0)


def test_a_step_that_fails_before_its_first_row_is_undone() -> None:
    of_two = Pointwise(difference, usual=0)
    of_two.step([("a", 1)], [])
    of_two.commit()
    with pytest.raises(TypeError, match="unhashable"):
        of_two.step([("b", 1), ([], 1)], [])
    of_two.undo()
    assert of_two.contents() == [("a", 1)]


def test_a_step_that_is_done_is_undone() -> None:
    of_two = Pointwise(difference, usual=0)
    of_two.step([("a", 1), ("b", 2)], [("b", 1)])
    of_two.commit()
    of_two.step([("a", -1)], [("b", 1)])
    assert of_two.contents() == []
    of_two.undo()
    assert sorted(of_two.contents()) == [("a", 1), ("b", 1)]
