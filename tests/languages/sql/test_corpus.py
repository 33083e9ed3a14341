"""Drawn queries, maintained as views, equal SQLite and DuckDB.

`python -m tests.languages.sql` plays all of them.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.languages.sql.generate import scripts
from tests.languages.sql.player import play
from tests.languages.sql.script import ENGINES, parsed

FEW, SEED = 20, 23
COMMITS = 8


@pytest.mark.long
@pytest.mark.parametrize("number", range(3))
def test_drawn_queries_are_what_databases_say(number: int) -> None:
    name, text = list(scripts(3 * FEW, SEED, of_a_script=FEW))[number]
    for engine in ENGINES:
        report = play(parsed(name, text), engine, Random(SEED), COMMITS)
        assert not report.wrong and not report.refused, report


def test_the_same_seed_draws_the_same_queries() -> None:
    assert list(scripts(4, 1)) == list(scripts(4, 1)) != list(scripts(4, 2))
