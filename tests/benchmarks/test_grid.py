"""Every cell of the grid: the engine and its twin are equal after every change and every batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, repeat
from pathlib import Path
from random import Random

import pytest

from asv_benchmarks.engine import Engine
from asv_benchmarks.grid.__main__ import main, run
from asv_benchmarks.grid.cell import Cell, differences
from asv_benchmarks.grid.cells import BASES, WATCHED, all_cells, neighbours
from asv_benchmarks.grid.cliffs import pairs_of, report
from asv_benchmarks.grid.measure import Figures, check, made, measured
from asv_benchmarks.grid.query import query_text
from asv_benchmarks.grid.rows import Data
from asv_benchmarks.turns import TURN, Beside, Times, beside, time_batches
from asv_benchmarks.workload import Result, Side, TableDelta, Verb, load
from tests.budget import share_of

CELLS = all_cells()
SIZE, CHANGES, BATCHES = 60, 30, 4
WORKS = Figures(change=Beside.of(3.0, 1.0), load=Beside.of(4.0, 2.0))


def verified(sides: list[Side]) -> None:
    check(sides)
    assert isinstance(sides[0], Engine)
    sides[0].view.verify()


@pytest.mark.long
@pytest.mark.parametrize("name", share_of([*CELLS], "grid", 3))
def test_engine_and_twin_are_equal(name: str) -> None:
    if CELLS[name].rows == "Struct":
        pytest.importorskip("msgspec")
    cell = replace(CELLS[name], batch=min(CELLS[name].batch, 20))
    data = Data(cell, SIZE, Random(1))
    sides = made(cell, data)
    load_all(sides, data)
    for table, row, weight in islice(data.changes(), CHANGES):
        for side in sides:
            side.verbs()[table][weight < 0](row)
        check(sides)
    verified(sides)


@pytest.mark.long
@pytest.mark.parametrize("name", share_of([*CELLS], "batches", 3))
def test_batches_leave_engine_and_twin_equal_until_all_rows_are_gone(name: str) -> None:
    if CELLS[name].rows == "Struct":
        pytest.importorskip("msgspec")
    cell = replace(CELLS[name], batch=20)
    data = Data(cell, SIZE, Random(2))
    sides = made(cell, data)
    load_all(sides, data)
    left = set(data.rows[0])
    for deltas in islice(data.batches(), BATCHES):
        for side in sides:
            side.batch(*deltas)
        check(sides)
        left = (left - set(deltas[0].removed)) | set(deltas[0].added)
    for side in sides:
        side.batch(TableDelta(removed=list(left)), *[TableDelta()] * cell.joins)
    verified(sides)


def load_all(sides: list[Side], data: Data) -> None:
    for side in sides:
        load(side, data.rows)
    check(sides)


def test_there_are_some_two_hundred_cells_and_no_two_are_one() -> None:
    assert len(CELLS) >= 200
    assert len({*CELLS.values()}) == len(CELLS)


def test_every_cell_has_a_neighbour_and_neighbours_differ_by_one_thing() -> None:
    pairs = list(neighbours(CELLS))
    assert {name for pair in pairs for name in pair} == {*CELLS}
    assert all(len(differences(CELLS[one], CELLS[other])) == 1 for one, other in pairs)


def test_what_is_watched_is_in_the_grid() -> None:
    assert {*WATCHED} <= {*CELLS}


class Counting:
    """A side that keeps of each batch how many rows it changes."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return ()

    def batch(self, *deltas: TableDelta) -> None:
        self.batches.append(sum(len(delta.added) + len(delta.removed) for delta in deltas))

    def result(self) -> Result:
        return []


@pytest.mark.long
@pytest.mark.parametrize(("rows", "of_a_turn"), [(10, TURN // 10), (300, 4), (3 * TURN, 1)])
def test_batches_are_timed_in_turns_of_many_rows(rows: int, of_a_turn: int) -> None:
    sides = [Counting(), Counting()]
    times: Times = ([], [])
    batch = TableDelta([1] * (rows // 2), [1] * (rows // 2))
    time_batches(sides, repeat((batch,)), times, turns=2)
    assert [len(seconds) for seconds in times] == [2, 2]
    assert [side.batches for side in sides] == [[rows] * 3 * of_a_turn] * 2


def test_the_ratio_is_that_of_the_turns() -> None:
    busy_at_times = ([4.0, 40.0, 4.0, 40.0, 6.0], [2.0, 20.0, 2.0, 20.0, 2.0])
    assert beside(busy_at_times) == Beside(6e6, 2e6, 2.0)


def test_a_side_that_differs_is_an_error() -> None:
    data = Data(BASES["group_sum"], SIZE, Random(1))
    sides = made(BASES["group_sum"], data)
    load(sides[0], data.rows)
    with pytest.raises(AssertionError, match="the sides differ"):
        check(sides)


def test_twins_of_floats_are_equal_up_to_rounding_and_no_further() -> None:
    data = Data(replace(BASES["group_sum"], value="float"), SIZE, Random(1))
    sides = made(data.cell, data)
    load_all(sides, data)
    row = data.rows[0][0]
    near = data.classes[0](
        row.id, row.key, row.group, row.value + 1e-3, row.quantity + 1, row.status
    )
    sides[0].verbs()[0][0](near)
    sides[1].verbs()[0][0](row)
    with pytest.raises(AssertionError, match="the sides differ"):
        check(sides)


@pytest.mark.parametrize("batch", [1, 10])
def test_measuring_gives_times_of_all_sides(batch: int) -> None:
    figures = measured(replace(BASES["join_sum"], batch=batch), 100)
    times = (figures.change, figures.load)
    assert all(min(each.engine, each.twin, each.ratio) > 0 for each in times)


def test_a_pair_beyond_three_times_is_a_cliff() -> None:
    cells = {"plain": Cell("sum"), "ties": Cell("sum", ties=2), "other": Cell("top", ties=2)}
    figures = {
        "plain": WORKS,
        "ties": replace(WORKS, change=Beside.of(12.0, 1.0)),
        "other": replace(WORKS, load=Beside.of(40.0, 2.0)),
    }
    ratios = {name: each.change.ratio for name, each in figures.items()}
    assert list(pairs_of(cells, ratios)) == [("ties", "plain", 4.0), ("ties", "other", 4.0)]
    text = report(cells, figures, worst=1)
    of_changes, of_loads = text.split("### A loaded row")
    assert "2 pairs of 3 cells; 2 differ by more than 3 times: **missed**." in of_changes
    assert "| ties " in of_changes
    assert "2 pairs of 3 cells; 1 differ by more than 3 times: **missed**." in of_loads
    assert "| other" in of_loads
    level = report(cells, dict.fromkeys(cells, WORKS), worst=1)
    assert level.count("0 differ by more than 3 times: met.") == 2


def test_the_command_measures_what_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    main(["--only", "order ties", "--size", "80", "--worst", "2", "--json", str(file)])
    assert file.read_text().count('"ratio"') == 2 * 3
    assert "3 pairs of 3 cells" in capsys.readouterr().out


def test_the_texts_of_a_cell_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--show", "join_sum joins=2"])
    shown = capsys.readouterr().out
    assert query_text(CELLS["join_sum joins=2"]) in shown
    assert "def twin(heard, heard_all):" in shown


def test_cells_run_one_after_the_other() -> None:
    names = ["group_sum", "order"]
    assert [*run({name: BASES[name] for name in names}, size=50)] == names
