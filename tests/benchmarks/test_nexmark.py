"""The views of NEXMark shapes and their twins have equal rows, and report equal changes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from asv_benchmarks.engine import Engine
from asv_benchmarks.nexmark.__main__ import HEADER, main
from asv_benchmarks.nexmark.workloads import WORKLOADS
from asv_benchmarks.shapes import check, made
from asv_benchmarks.workload import Side, Workload, batch_of, load

SIZE = 600
each_query = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)


def loaded(workload: Workload, seed: int) -> tuple[list[Side], Any, Any]:
    rows = workload.rows(SIZE, Random(seed))
    sides = made(workload)
    for side in sides:
        load(side, rows)
    check(sides)
    return sides, rows, workload.stream(rows, Random(seed))


@each_query
@pytest.mark.parametrize("seed", range(3))
def test_views_and_twins_are_equal_after_every_change(workload: Workload, seed: int) -> None:
    sides, _, stream = loaded(workload, seed)
    for _ in range(150):
        table, row, weight = stream.visible()
        for side in sides:
            side.verbs()[table][weight < 0](row)
        check(sides)
    assert sides[0].result()


@each_query
def test_views_and_twins_are_equal_after_every_batch_until_all_is_gone(workload: Workload) -> None:
    sides, rows, stream = loaded(workload, 7)
    left = set(rows[0])
    for size in (1, 10, 100, 300):
        batch = batch_of(stream, size, len(rows))
        left = (left - set(batch[0].removed)) | set(batch[0].added)
        for side in sides:
            side.batch(*batch)
        check(sides)
    assert isinstance(sides[0], Engine)
    sides[0].view.verify()
    for side in sides:
        [(_, remove), *_] = side.verbs()
        for row in left:
            remove(row)
    check(sides)
    assert not sides[1].result()


@each_query
def test_the_removal_of_an_absent_row_is_an_error(workload: Workload) -> None:
    sides, rows, _ = loaded(workload, 1)
    for side in sides:
        [(_, remove), *_] = side.verbs()
        remove(rows[0][0])
        with pytest.raises(LookupError):
            remove(rows[0][0])


def test_queries_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--size", "3000", "--only", "q2", "q8"])
    *_, q2, q8 = capsys.readouterr().out.splitlines()
    assert q2.startswith("| q2 ")
    assert len(q8.split("|")) == len(HEADER) + 2
