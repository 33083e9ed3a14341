"""The measurement of the check of rows, at its smallest: every case runs."""

from __future__ import annotations

import pytest

from asv_benchmarks import row_checks


@pytest.mark.parametrize("case", row_checks.CASES)
def test_rows_are_added_to_both_sides(case: str) -> None:
    assert row_checks.ratio(case, 100, turns=1) > 0
