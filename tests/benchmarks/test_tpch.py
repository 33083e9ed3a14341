"""The views of TPC-H shapes, their twins and DuckDB have the same rows."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from asv_benchmarks.engine import Engine
from asv_benchmarks.shapes import check, made, measured
from asv_benchmarks.tpch.__main__ import HEADER, cells, main
from asv_benchmarks.tpch.duck import Duck, same
from asv_benchmarks.tpch.workloads import ORDERS_AT_1, WORKLOADS
from asv_benchmarks.workload import Side, Workload, batch_of, load

SIZE = 2_000
ORDERED = ("q3", "q18")
each_query = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)


def loaded(workload: Workload, seed: int) -> tuple[list[Side], Any, Any]:
    rows = workload.rows(SIZE, Random(seed))
    sides = made(workload)
    for side in sides:
        load(side, rows)
    return sides, rows, workload.stream(rows, Random(seed))


@pytest.mark.long
@each_query
@pytest.mark.parametrize("seed", range(3))
def test_views_and_twins_are_equal_after_every_change(workload: Workload, seed: int) -> None:
    sides, _, stream = loaded(workload, seed)
    check(sides)
    for number in range(150):
        table, row, weight = stream.visible()
        for side in sides:
            side.verbs()[table][weight < 0](row)
        if number % 5 == 0:
            check(sides)
    check(sides)


@pytest.mark.long
@each_query
def test_views_and_twins_are_equal_after_every_batch(workload: Workload) -> None:
    sides, rows, stream = loaded(workload, 7)
    for size in (1, 10, 300, 1_000):
        batch = batch_of(stream, size, len(rows))
        for side in sides:
            side.batch(*batch)
        check(sides)
    assert isinstance(sides[0], Engine)
    sides[0].view.verify()


@pytest.mark.long
@each_query
def test_a_view_has_the_rows_that_duckdb_has(workload: Workload) -> None:
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    pytest.importorskip("pyarrow", reason="DuckDB is filled by pyarrow, which is not installed")
    rows = workload.rows(4 * SIZE, Random(5))
    [view, _] = made(workload)
    load(view, rows)
    assert isinstance(view, Engine)
    found = Duck(workload.name, rows).rows()
    assert found
    assert same(list(view.view), found, ordered=workload.name in ORDERED)
    assert not same(list(view.view)[1:], found, ordered=workload.name in ORDERED)


@each_query
def test_the_removal_of_an_absent_row_is_an_error(workload: Workload) -> None:
    sides, rows, _ = loaded(workload, 1)
    for side in sides:
        [(_, remove), *_] = side.verbs()
        remove(rows[0][0])
        with pytest.raises(LookupError):
            remove(rows[0][0])


def test_a_query_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--scale", str(SIZE / ORDERS_AT_1), "--only", "q6"])
    table = capsys.readouterr().out.splitlines()
    assert table[-1].startswith("| q6 ")
    assert len(table[-1].split("|")) == len(HEADER) + 2


def test_without_duckdb_its_columns_are_empty() -> None:
    [workload, *_] = WORKLOADS
    figures = measured(workload, workload.rows(30, Random(1)), batch=4, single=20)
    assert cells("q1", figures, None)[-3:] == ["", "", ""]
    assert figures.p99.engine > 0 < figures.load.ratio
