"""The measurement of `verify()`, at its smallest: every query runs with the expected result."""

from __future__ import annotations

import pytest

from asv_benchmarks import verifying
from asv_benchmarks.verified import QUERIES, Query


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_a_query_is_loaded_and_verified(query: Query) -> None:
    load, verify = verifying.seconds(query, 60, runs=1)
    assert load > 0
    assert verify > 0


def test_the_table_has_a_line_per_query() -> None:
    assert len(verifying.table(list(QUERIES[:2]), [20, 40], runs=1)) == 4
