"""Commas beside joins in FROM, and GROUPING beside a window, against DuckDB."""

from __future__ import annotations

import duckdb
import pytest

from reactive import Database


@pytest.mark.parametrize("side", ["right", "full", "left", "inner"])
def test_a_comma_binds_less_than_join(side: str) -> None:
    connection, db = duckdb.connect(), Database()
    text = f"select a.x, b.y, c.z from a, b {side} join c on b.y = c.z"
    for made in (
        "create table a (x int)",
        "create table b (y int)",
        "create table c (z int)",
        "insert into a values (1), (2)",
        "insert into b values (7)",
        "insert into c values (7), (8)",
    ):
        connection.execute(made)
        db.execute(made)
    wanted = connection.execute(text).fetchall()
    assert sorted(map(repr, map(tuple, db.sql(text).materialize()))) == sorted(map(repr, wanted))


def test_grouping_without_aggregates_beside_a_window() -> None:
    db = Database()
    db.execute("create table t (x int)")
    text = "select x, grouping(x) as g, count(*) over () as n from t group by rollup (x)"
    view = db.sql(text).materialize()
    db.execute("insert into t values (1), (2)")
    assert sorted(map(tuple, view), key=repr) == [(1, 0, 3), (2, 0, 3), (None, 1, 3)]
    assert not view.errors
