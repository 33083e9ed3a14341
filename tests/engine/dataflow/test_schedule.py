"""The commits of a schedule become generated code when they repeat; work in numbers of commits."""

from __future__ import annotations

from typing import Any

import pytest

from reactive import Database, Sum
from reactive.engine.dataflow.schedule import LATEST, OFTEN


def commits_until_generated(views: int) -> int:
    """Return the number of the commit after which the commits of a table are generated code."""
    db = Database()
    table: Any = db.table(tuple, name="rows")
    kept = [
        table.where(lambda row, n=number: row[0] % 40 != n)  # not found by a field
        .group_by(lambda row: row[0])
        .aggregate(Sum(lambda row: row[1]))
        .materialize()
        for number in range(views)
    ]
    for commit in range(1, LATEST + 3):
        table.add((commit % 3, commit))
        if table._node.compiled_step is not None:
            assert all(view.verify() is None for view in kept)
            return commit
    raise AssertionError("the commits are walks still")


def test_the_commits_of_a_view_are_generated_from_the_ninth_on() -> None:
    assert commits_until_generated(1) == OFTEN + 1 == 9


@pytest.mark.parametrize("views", [8, 40])
def test_more_nodes_wait_for_a_commit_each_and_at_most_64(views: int) -> None:
    assert OFTEN + 1 < commits_until_generated(views) <= LATEST + 1
