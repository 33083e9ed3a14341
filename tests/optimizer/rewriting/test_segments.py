"""Long queries are optimized in segments: their borders, and equal results."""

from __future__ import annotations

import gc
import logging
import warnings
from typing import Any

import pytest

from optimizer import plan
from optimizer.plans.properties import nodes
from optimizer.rewriting.optimize import HIGHEST, Segment
from reactive import Count, Database, StaleCaptureWarning, Sum, fixpoint


def segment_of(relation: Any) -> Segment:
    found: Segment = relation._engine.queries._segment(relation.plan)
    return found


def rising(query: Any, levels: int) -> Any:
    for n in range(levels):
        query = query.where(lambda row, n=n: row != -1 - n)
    return query


def test_a_query_that_is_not_high_is_one_segment() -> None:
    table = Database().table(int)
    assert len(segment_of(rising(table, HIGHEST - 1)).every()) == 1


def test_a_high_query_is_cut_every_so_many_levels() -> None:
    table = Database().table(int)
    every = segment_of(rising(table, 3 * HIGHEST + 5)).every()
    assert [len(segment.own()) for segment in every] == [HIGHEST, HIGHEST, HIGHEST, 6]


def test_what_a_longer_query_shares_with_another_is_optimized_once() -> None:
    table = Database().table(int)
    short = rising(table, 2 * HIGHEST)
    first = segment_of(short).every()
    longer = segment_of(short.select(lambda n: n + 1)).every()
    assert longer[: len(first) - 1] == first[:-1]


def test_in_a_high_query_what_is_read_several_times_is_computed_once() -> None:
    db = Database()
    table, calls = db.table(int), []

    def costly(number: int) -> int:
        calls.append(number)
        return number

    base = table.select(costly)
    view = rising(base.union_all(rising(base, HIGHEST)), HIGHEST).materialize()
    table.add(7)
    assert sorted(view) == [7, 7]
    assert calls == [7]


def test_a_recursion_is_not_cut_inside() -> None:
    edges = Database().table(tuple)
    reach = fixpoint(lambda reach: edges.union(rising(reach, 2 * HIGHEST)))
    for segment in segment_of(rising(reach, HIGHEST)).every():
        defined = {n.level for n in nodes(segment.run) if isinstance(n, plan.Fixpoint)}
        assert all(n.level in defined for n in nodes(segment.run) if isinstance(n, plan.Recursive))
    view = rising(reach, HIGHEST).materialize()
    edges.add((1, 2))
    view.verify()


def test_explain_shows_the_query_as_one() -> None:
    table = Database().table(int, name="t")
    query = rising(table.distinct(), HIGHEST).select(lambda n: n + 1)
    text = str(query.explain())
    assert "settled" not in text.lower()
    optimized = text[text.index("\noptimized") : text.index("\nruns as")]
    assert optimized.count("table t") == 1
    assert "select" in optimized and "distinct" in optimized and "fuse_wheres" in text
    runs = text[text.index("\nruns as") :]
    assert runs.count("table t") == 1 and "distinct" in runs
    analyzed = query.materialize().explain(analyze=True)
    assert "[0 rows]" in analyzed and analyzed.count("table t") == 1


def test_all_its_rules_are_named() -> None:
    table = Database().table(int, name="t")
    query = rising(table.distinct().where(lambda n: n > 3), HIGHEST + 2)
    assert "push_where_below_distinct" in str(query.explain())


def test_a_view_over_a_view_finds_its_operators() -> None:
    db = Database()
    table = db.table(int)
    first = table.where(lambda n: n > 3).materialize()
    made = len(db._engine.graph.nodes())
    again = first.where(lambda n: n < 9).materialize()
    assert len(db._engine.graph.nodes()) == made + 1
    table.add_all([2, 5, 12])
    assert (sorted(first), list(again)) == ([5, 12], [5])


def test_a_dropped_view_is_computed_again_for_the_query_over_it() -> None:
    db = Database()
    table = db.table(int)
    query = rising(table, HIGHEST + 3)
    view = query.materialize()
    table.add(1)
    view.close()
    del view
    gc.collect()
    db.views()
    assert not db._engine.graph.nodes()
    assert list(query.materialize()) == [1]


def test_what_a_lower_segment_captured_is_watched() -> None:
    db = Database()
    table = db.table(int)
    limit = 3

    def low(number: int) -> bool:
        return number > limit or limit > 0

    query = rising(table.where(low), 2 * HIGHEST)
    view = query.materialize()
    limit = 4
    with pytest.warns(StaleCaptureWarning, match="limit"):
        table.add(9)
    assert list(view) == [9]


def test_a_view_that_goes_hands_over_what_it_watched() -> None:
    db = Database()
    table = db.table(int)
    on = True
    first = table.where(lambda number: on or number > 3).materialize()
    second = first.where(lambda number: number < 100).materialize()
    first.close()
    on = False
    with pytest.warns(StaleCaptureWarning, match="on"):
        table.add(9)
    assert list(second) == [9]


def test_so_does_a_view_that_shares_segments_with_another() -> None:
    db = Database()
    table = db.table(int)
    on = True
    shared = rising(table.where(lambda number: on or number > 3), HIGHEST)
    first = shared.where(lambda number: number < 100).materialize()
    second = shared.where(lambda number: number < 200).materialize()
    first.close()
    on = False
    with pytest.warns(StaleCaptureWarning, match="on"):
        table.add(9)
    assert list(second) == [9]


def test_each_change_is_reported_once() -> None:
    db = Database()
    table = db.table(int)
    on = True
    low = table.where(lambda number: on or number > 3)
    views = [rising(low, HIGHEST * k).materialize() for k in (1, 2, 3)]
    on = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table.add(9)
    assert len(caught) == 1
    assert [list(view) for view in views] == [[9]] * 3


def test_a_segment_that_sums_cannot_serve_is_run_as_rows_with_all_above_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A value that cannot be added has no partner, so that only the sums of one side meet it."""
    db = Database()
    orders, lines = db.table(tuple, name="orders"), db.table(tuple, name="lines")
    joined = orders.join(lines, on=lambda o, line: o[0] == line[0])
    totals = joined.group_by(lambda o, line: o[1]).aggregate(Sum(lambda o, line: line[1]), Count())
    low = totals.select(lambda town, total, count: (town, total)).materialize()
    views: list[Any] = [low]
    for _ in range(3):
        views.append(rising(views[-1], HIGHEST + 1).materialize())
    orders.add_all([(1, "a"), (2, "b")])
    lines.add_all([(1, 5), (2, 7)])
    with caplog.at_level(logging.INFO, "reactive"):
        lines.add((3, None))
    assert "as rows from now on" in caplog.text
    lines.add((2, 1))
    for view in views:
        view.verify()
    assert sorted(views[-1]) == [("a", 5), ("b", 8)]


def test_a_segment_that_comes_to_the_one_below_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """`distinct` of a set is removed, so that nothing remains of the segment."""
    monkeypatch.setattr("optimizer.rewriting.optimize.HIGHEST", 2)
    table: Any = Database().table(tuple, key=lambda row: row[0])
    same = table.distinct().distinct().distinct().distinct()
    view = same.full_join(same, left_key=lambda x: x[1], right_key=lambda y: y[0]).materialize()
    table.add_all([(1, 2), (2, 3)])
    assert set(view) == {((1, 2), (2, 3)), ((2, 3), None), (None, (1, 2))}
    view.verify()
