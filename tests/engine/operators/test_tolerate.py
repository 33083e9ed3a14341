"""Tolerate: shown values are near the true values, for any history."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive.engine.operators.rowwise import Tolerate
from reactive.errors import FixpointError
from tests.budget import examples

LEAST = 1.0
EDITS = st.lists(
    st.dictionaries(st.integers(0, 3), st.none() | st.floats(0, 4), max_size=4), max_size=12
)


def tolerate() -> Tolerate:
    return Tolerate(lambda row: row[0], lambda row: row[1], LEAST)


def delta(before: dict[int, float], after: dict[int, float]) -> list[tuple[Any, int]]:
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    gone = [((key, before[key]), -1) for key in changed if key in before]
    return gone + [((key, after[key]), 1) for key in changed if key in after]


@examples(60)
@given(edits=EDITS, undone=st.sets(st.integers(0, 11)))
def test_each_key_is_shown_by_a_row_that_is_near_it(
    edits: list[dict[int, float | None]], undone: set[int]
) -> None:
    operator, shown, there = tolerate(), Counter[Any](), dict[int, float]()
    for number, edit in enumerate(edits):
        after = {key: value for key, value in {**there, **edit}.items() if value is not None}
        out = operator.step(delta(there, after))
        if number in undone:
            operator.undo()
            continue
        operator.commit()
        for row, weight in out:
            shown[row] += weight
        there = after
        shown = +shown
        assert shown == Counter(dict(operator.contents()))
        assert sorted(key for key, _ in shown) == sorted(there)
        assert all(abs(value - there[key]) < LEAST for key, value in shown)
    operator.step(delta(there, {}))
    assert operator.footprint()[0] == 0


def test_many_small_steps_are_passed_on_once_they_add_up() -> None:
    operator = tolerate()
    operator.step([(("a", 0.0), 1)])
    passed = [bool(operator.step([(("a", n / 4), -1), (("a", (n + 1) / 4), 1)])) for n in range(8)]
    assert passed == [False, False, False, True] * 2


@pytest.mark.parametrize("rows", [[("a", 1.0), ("a", 2.0)], [("a", 1.0), ("a", 1.0)]])
def test_two_rows_of_a_key_are_refused(rows: list[Any]) -> None:
    operator = tolerate()
    operator.step([(("b", 0.0), 1)])
    operator.commit()
    with pytest.raises(FixpointError, match="key 'a' has several"):
        operator.step([(row, 1) for row in rows])
    operator.undo()
    assert list(operator.contents()) == [(("b", 0.0), 1)]
