"""Segments stay few over many flushes, and each row is rewritten about log(rows) times."""

from __future__ import annotations

from math import log2
from random import Random

import pytest

from spark_backend.state.tables import find_merge_start
from tests.budget import TIMES

MOST, LEAST, SHARE = 16, 100_000, 0.3
FLUSHES = 100_000 if TIMES else 20_000


@pytest.mark.parametrize("base", [0, 5_000_000])
@pytest.mark.parametrize("largest", [1, 2_000], ids=["a row each", "many rows each"])
def test_segments_stay_few_and_rows_are_seldom_written_anew(base: int, largest: int) -> None:
    draw = Random(base + largest)
    rows, has_base, written, given = [base] * bool(base), bool(base), 0, 0
    for _ in range(FLUSHES):
        given += (size := draw.randint(1, largest))
        rows.append(size)
        first = find_merge_start(rows, has_base=has_base, most=MOST, share=SHARE, least=LEAST)
        if first is not None:
            has_base = has_base or first == 0
            rows[first:] = [sum(rows[first:])]
            written += rows[-1]
        assert len(rows) <= MOST + 1
        assert sum(rows[1:]) <= SHARE * max(rows[0], LEAST) + largest
    assert sum(rows) == base + given
    assert written - base <= given * (2 * log2(given) + 2 / SHARE) + base


@pytest.mark.parametrize("rows", [[1, 1], [8, 4, 2], [4**9, 4**8, 4**7, 4**6, 4**5]])
def test_a_run_has_two_segments_at_least(rows: list[int]) -> None:
    first = find_merge_start(rows, has_base=False, most=1, share=10.0, least=4**9)
    assert first is not None
    assert len(rows) - first >= 2


def test_a_new_base_is_made_of_all() -> None:
    assert find_merge_start([100, 20, 20], has_base=True, most=MOST, share=SHARE, least=10) == 0
    assert find_merge_start([100, 20, 10], has_base=True, most=MOST, share=SHARE, least=10) is None
