"""Joins whose sides both get rows in one commit, as batches: against a comprehension."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive import Database
from reactive.engine.operators.loops.join_loops import JoinLoops
from tests.thresholds import thresholds

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=8)
COMMITS = st.lists(st.tuples(ROWS, ROWS, ROWS, st.integers(0, 3)), max_size=6)
ONCE = {"reactive.engine.codegen.probes.MOST_REPEATED": 1}


@pytest.mark.long
@pytest.mark.parametrize("repeats", [{}, ONCE], ids=["as shipped", "once"])
@settings(max_examples=60, deadline=None)
@given(history=COMMITS)
def test_what_comes_on_both_sides_meets_once(
    repeats: dict[str, int], history: list[tuple[Any, Any, Any, int]]
) -> None:
    with thresholds(repeats), Database() as db:
        left, right, last = (db.table(tuple, name=name) for name in ("left", "right", "last"))
        pairs = left.join(right, on=lambda a, b: a[0] == b[0]).select(lambda a, b: (a[1], b[1]))
        view = pairs.join(last, on=lambda p, c: p[1] == c[0]).materialize()
        held: list[list[Any]] = [[], [], []]
        for *come, taken in history:
            with db.transaction():
                for table, rows, now in zip((left, right, last), come, held, strict=True):
                    for row in now[:taken] if taken < 3 else ():
                        table.remove(row)
                        now.remove(row)
                    table.add_all(rows)
                    now += rows
            ours, theirs, others = held
            expected = [(a[1], b[1]) for a in ours for b in theirs if a[0] == b[0]]
            joined = [(p, c) for p in expected for c in others if p[1] == c[0]]
            assert Counter(view) == Counter(joined)


def test_rows_that_come_on_both_sides_make_no_pairs_with_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Test also with several copies of the present rows."""
    batches: list[int] = []
    batched = JoinLoops._run_batch

    def counted(self: Any, sides: Any) -> Any:
        rows = batched(self, sides)
        batches.append(-1 if rows is None else len(rows))
        return rows

    monkeypatch.setattr(JoinLoops, "_run_batch", counted)
    with Database() as db:
        left, right = db.table(tuple, name="left"), db.table(tuple, name="right")
        view = left.join(right, on=lambda a, b: a[0] == b[0]).materialize()
        for first in (0, 10):
            with db.transaction():
                left.add_all([(n // 2, first) for n in range(40)] * 2)
                right.add_all([(n, first) for n in range(20)])
        assert len(view) == 320 and batches == [80, 240]
