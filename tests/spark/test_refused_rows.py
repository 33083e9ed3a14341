"""Rows that `spark_stream` refuses: the column of the table in the docs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.budget import share_of
from tests.errors.refused_rows import FAILURES, cell, of_stream

PAGE = Path(__file__).parents[2] / "docs" / "guide.md"


@pytest.mark.parametrize("failure", share_of(list(FAILURES), "refused rows", 12))
def test_a_row_that_a_stream_refuses_is_left_out_or_stops_it(
    session: Any, offload: Any, failure: str
) -> None:
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| {failure} |"))
    assert row.endswith(f"| {cell(of_stream(offload), failure)} |")
