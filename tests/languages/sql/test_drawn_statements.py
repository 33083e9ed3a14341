"""Drawn statements have the effect of DuckDB and SQLite; Postgres: `test_postgres_scripts`."""

from __future__ import annotations

from random import Random

import pytest

from tests.budget import seeds
from tests.languages.sql.drawn_statements import Report, play
from tests.languages.sql.oracles import DuckDB, SQLite


@pytest.mark.long
@pytest.mark.parametrize("engine", [DuckDB, SQLite])
def test_statements_change_what_the_engine_changes(engine: type[DuckDB | SQLite]) -> None:
    report = Report()
    for seed in seeds(500, share=125):
        play(engine(), Random(seed), 30, report)
        assert not report.wrong, f"seed {seed}\n" + "\n".join(report.wrong)
    assert min(report.run[kind] for kind in ("insert", "update", "delete")) > 3
    assert not report.unexpected()
