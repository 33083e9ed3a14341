"""TPC-H and NEXMark as live views equal DuckDB, after every commit."""

from __future__ import annotations

from random import Random

import pytest

from tests.languages.sql import nexmark, tpch
from tests.languages.sql.player import play


@pytest.mark.long
@pytest.mark.parametrize(("made", "queries"), [(tpch, 22), (nexmark, 21)])
def test_the_queries_of_benchmarks_are_live(made: object, queries: int) -> None:
    report = play(made.script(Random(14)), "duckdb", Random(4), commits=18)  # type: ignore[attr-defined]
    assert report.queries == queries
    assert not report.wrong and not report.refused and not report.empty, report
