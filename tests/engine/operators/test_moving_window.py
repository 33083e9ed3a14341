"""Windows whose limit moves: rows and edits as of a sorted list, also after an undo."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive.engine.operators.moving_window import MovingWindow
from tests.budget import examples

STEPS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 9), max_size=3),
        st.lists(st.integers(0, 9), max_size=3),
        st.none() | st.integers(0, 7),
        st.booleans(),
    ),
    max_size=12,
)


@examples(200)
@given(steps=STEPS, offset=st.integers(0, 2), descending=st.booleans())
def test_the_window_is_that_of_a_sorted_list(
    steps: list[Any], offset: int, descending: bool
) -> None:
    window = MovingWindow(lambda row: row, offset=offset, descending=descending)
    rows: Counter[int] = Counter()
    limit: int | None = None
    shown: list[int] = []
    for come, gone, moved, is_undone in steps:
        change = Counter(come)
        change.subtract(Counter(gone) & rows)
        limits = [] if moved is None else [(moved, 1)]
        if limits and limit is not None:
            limits.insert(0, (limit, -1))
        window.step([(row, n) for row, n in change.items() if n], limits)
        edited = list(shown)
        for place, row, weight in window.edits:
            if weight > 0:
                edited.insert(place, row)
            else:
                assert edited.pop(place) == row
        assert edited == window.sequence()
        if is_undone:
            window.undo()
        else:
            window.commit()
            rows.update(change)
            limit = limit if moved is None else moved
        every = sorted(rows.elements(), reverse=descending)
        shown = every[offset : offset + (limit or 0)]
        assert window.sequence() == shown


def test_a_limit_that_is_no_count_is_refused_and_undone() -> None:
    window = MovingWindow(lambda row: row)
    window.step([(1, 1), (2, 1)], [(1, 1)])
    window.commit()
    for wrong in (-1, 2.0, "x"):
        with pytest.raises(ValueError, match="a limit counts rows"):
            window.step([(0, 1)], [(1, -1), (wrong, 1)])
        window.undo()
        assert window.sequence() == [1]
