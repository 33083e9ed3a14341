"""Views of SQL equal SQLite and DuckDB for the same text, after every commit."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.languages.sql.player import play
from tests.languages.sql.script import ENGINES, read

SCRIPTS = Path(__file__).parent / "scripts"
PLAYED = ("queries", "queries_duckdb", "subqueries", "subqueries_duckdb", "over_time")


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PLAYED)
def test_views_are_what_a_database_gives(name: str, engine: str) -> None:
    script = read(SCRIPTS / f"{name}.test")
    if not list(script.groups(engine)):
        pytest.skip("nothing in it is for that database")
    report = play(script, engine, Random(7), commits=14)
    assert report.queries > 10
    assert not report.wrong, report
    assert not report.refused, report
