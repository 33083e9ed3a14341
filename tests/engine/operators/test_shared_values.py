"""Aggregates over the distinct values of one expression hold these values once."""

from __future__ import annotations

import pytest

from reactive import Collect, CountDistinct, Database, Max, Min, Sum

Row = tuple[str, int]


def test_min_and_max_of_one_value_take_no_more_than_one_of_them() -> None:
    db = Database()
    table = db.table(tuple, name="t")
    one = table.group_by(lambda r: r[0]).aggregate(Min(lambda r: r[1])).materialize()
    both = (
        table.group_by(lambda r: r[0])
        .aggregate(Min(lambda r: r[1]), Max(lambda r: r[1]), CountDistinct(lambda r: r[1]))
        .materialize()
    )
    table.add_all([("a", n) for n in range(1000)])
    assert both.stats().bytes < 1.1 * one.stats().bytes
    assert both["a"] == (0, 999, 1000)


@pytest.mark.parametrize("optimize", [True, False])
def test_what_shares_its_values_is_right_after_every_commit_and_failure(optimize: bool) -> None:
    db = Database(optimize=optimize)
    table = db.table(tuple, name="t")
    view = (
        table.group_by(lambda r: r[0])
        .aggregate(
            Min(lambda r: r[1]),
            Sum(lambda r: r[1]),
            Max(lambda r: r[1]),
            Collect(lambda r: r[1]),
            Min(lambda r: -r[1]),
        )
        .materialize()
    )
    for change in ([("a", 1), ("a", 3)], [("a", 2), ("b", 5)], [("a", 3)]):
        table.add_all(change)
        view.verify()
    before = dict(view)
    with pytest.raises(TypeError):
        table.add_all([("a", 9), ("b", None)])
    assert dict(view) == before
    table.remove_all([("a", 1), ("a", 3), ("b", 5)])
    view.verify()
    table.clear()
    assert len(view) == 0
