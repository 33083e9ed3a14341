"""The queries of the thesis show the same live, evaluated again, and by hand, after every batch."""

from __future__ import annotations

from collections import Counter
from random import Random
from re import findall
from xml.etree.ElementTree import fromstring

import pytest

from asv_benchmarks.nested_queries import plots
from asv_benchmarks.nested_queries.__main__ import table
from asv_benchmarks.nested_queries.by_hand import QUERIES, READ
from asv_benchmarks.nested_queries.measure import Figures, measured, run
from asv_benchmarks.nested_queries.queries import Live
from asv_benchmarks.nested_queries.rows import batches, tables, unsettled
from tests.counted_calls import calls_of

SCALE = 0.0001


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_all_sides_are_equal_after_every_batch(name: str) -> None:
    come = batches(tables(SCALE, Random(3)), 6, READ[name])
    run(name, list(unsettled(come, Random(4))), checked=True)


def test_batches_have_each_row_once() -> None:
    rows = tables(SCALE, Random(3))
    found: dict[object, list[object]] = {each: [] for each in rows}
    for batch in batches(rows, 7, rows):
        for each, come, _ in batch:
            found[each] += come
    assert found == rows


def test_unsettled_batches_delete_only_what_is_there() -> None:
    rows = tables(SCALE, Random(3))
    there: Counter[object] = Counter()
    for batch in unsettled(batches(rows, 7, rows), Random(1)):
        for _, come, gone in batch:
            assert all(there[row] > 0 for row in gone)
            there.update(come)
            there.subtract(gone)
    assert min(there.values()) >= 0
    assert there.total() < sum(map(len, rows.values()))


def test_a_gain_is_how_many_times_longer_all_batches_take() -> None:
    figures = Figures(2_000, live=[0.1, 0.1], again=[0.2, 0.6], by_hand=[0.05, 0.05])
    assert (round(figures.gain, 9), round(figures.share, 9)) == (4, 0.5)
    assert "| q2    | 2,000 |   0.200 |" in table({"q2": figures}, "")


def test_pictures_have_a_bar_for_each_gain_and_a_point_for_each_batch() -> None:
    figures = Figures(2_000, live=[0.1, 0.1], again=[0.2, 0.6], by_hand=[0.05, 0.05])
    for text in (plots.gains({"q2": figures}), plots.batches("q2", figures)):
        assert fromstring(text).tag.endswith("svg")
    assert {">4.0<", ">8.0<"} <= set(findall(r">[\d.]+<", plots.gains({"q2": figures})))
    assert [
        line.count(",") for line in findall(r'points="(.*)"', plots.batches("q2", figures))
    ] == [2, 2, 2]


def test_figures_are_those_of_all_batches() -> None:
    figures = measured("q2", SCALE, 5, 1)
    assert len(figures.live) == len(figures.again) == len(figures.by_hand) == 5
    assert figures.rows > 500


CALLS = {"q1": 22, "q2": 19, "q3": 20, "q4": 25, "q5": 32, "q6": 38, "q7": 32}
"""Bounds of the calls per row of a batch, of functions of Python and C."""


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_a_batch(name: str) -> None:
    live = Live(name)
    *first, last = batches(tables(0.002, Random(3)), 12, READ[name])
    for batch in first:
        live.batch(batch)
    rows = sum(len(come) for _, come, _ in last)
    assert calls_of(lambda: live.batch(last)) <= CALLS[name] * rows


@pytest.mark.parametrize(
    ("name", "part"),
    [("q2", "probe join"), ("q3", "semi_join"), ("q5", "distinct"), ("q6", "semi_join")],
)
def test_plans_have_no_needless_parts(name: str, part: str) -> None:
    _, _, text = Live(name).view.explain().partition("runs as")
    assert part not in text and "multiway join" in text
