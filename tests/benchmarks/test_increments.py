"""The benchmark of increments: views and plain programs have equal results."""

from __future__ import annotations

import pytest

from asv_benchmarks.increments import INCREMENTS, Increment, measure


@pytest.mark.parametrize("case", INCREMENTS, ids=lambda case: case.name)
def test_increments_are_measured_on_equal_results(case: Increment) -> None:
    times = measure(case, size=400, runs=3)
    assert len(times.live) == len(times.again) == 3
    assert times.gain > 0 < times.growth
