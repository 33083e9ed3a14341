"""Sides made of a workload: the engine and the twin load, change, and change in batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from random import Random
from typing import Any

from asv_benchmarks.cliffs.cliff import Sides, Timed
from asv_benchmarks.shapes import SEED, made
from asv_benchmarks.workload import Change, Rows, Side, Stream, Workload, batch_of, load

CHANGES = 200
BATCH = 500


def loads(workload: Workload) -> Callable[[int], Sides]:
    """Both fill their tables."""

    def sides(size: int) -> Sides:
        rows = workload.rows(size, Random(SEED))
        count = sum(map(len, rows))
        one, other = (
            Timed(partial(_load, rows), count, partial(_empty, workload, number), _result)
            for number in range(2)
        )
        return one, other

    return sides


def changes(workload: Workload) -> Callable[[int], Sides]:
    """Both follow the same changes, one by one."""

    def sides(size: int) -> Sides:
        rows = workload.rows(size, Random(SEED))
        one, other = (
            Timed(_follow, CHANGES, partial(_next, side, _stream(workload, rows)), _first_result)
            for side in _filled(workload, rows)
        )
        return one, other

    return sides


def batches(workload: Workload, batch: int = BATCH) -> Callable[[int], Sides]:
    """Both follow the same batches; per row."""

    def sides(size: int) -> Sides:
        rows = workload.rows(size, Random(SEED))
        one, other = (
            Timed(
                lambda state: state[0].batch(*state[1]),
                batch,
                partial(_batch, side, _stream(workload, rows), batch, len(rows)),
                _first_result,
            )
            for side in _filled(workload, rows)
        )
        return one, other

    return sides


def _empty(workload: Workload, number: int) -> Side:
    return made(workload)[number]


def _filled(workload: Workload, rows: Rows) -> list[Side]:
    sides = made(workload)
    for side in sides:
        load(side, rows)
    return sides


def _stream(workload: Workload, rows: Rows) -> Stream:
    return workload.stream(rows, Random(SEED))


def _load(rows: Rows, side: Side) -> None:
    load(side, rows)


def _result(side: Side) -> object:
    return side.result()


def _first_result(state: tuple[Side, Any]) -> object:
    return state[0].result()


def _next(side: Side, stream: Stream) -> tuple[Side, list[Change]]:
    return side, list(islice(iter(stream.visible, None), CHANGES))


def _follow(state: tuple[Side, list[Change]]) -> None:
    side, some = state
    verbs = side.verbs()
    for table, row, weight in some:
        verbs[table][weight < 0](row)


def _batch(side: Side, stream: Stream, size: int, tables: int) -> tuple[Side, Any]:
    return side, batch_of(stream, size, tables)
