"""State tables that this process writes: at whatever write it stops, a flush counts or does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TypeVar
from unittest.mock import patch

import pytest

pytest.importorskip("pyspark")

from reactive import OffloadError
from spark_backend.bucketed.remote import _entry_table
from spark_backend.state import tables
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import StateTables
from tests.budget import TIMES, drawing
from tests.faults.files import Fault, Stopped, failing
from tests.faults.in_process import Here, Tables, in_process, table_of

Made = TypeVar("Made")
FLUSHES = 9
MOMENTS = 4
"""Number of moments of the history that a sample tries."""
SPECS = {name: _entry_table(name) for name in ("rows", "output", "idle")}


@pytest.fixture(autouse=True, params=[0, 100_000])
def _here(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compact files by a job, and in this process."""
    with in_process(per_bucket=1000), patch.object(tables, "MOST_HERE", request.param):
        yield


def opened(folder: Path) -> StateTables:
    return Tables(Here(), str(folder), "plan", SPECS)


def contents(state: StateTables, spec: TableSpec) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    for one in state.all_rows(spec).to_pylist():
        found[one["row"]] += one["weight"]
    return Counter({row: n for row, n in found.items() if n})


class Play:
    """Flushes that add to two tables, and the rows of these after each."""

    def __init__(self) -> None:
        draw, net = Random(1), Counter[bytes]()
        self.entries: list[list[tuple[int, int, bytes, int]]] = []
        self.wanted: list[Counter[bytes]] = []
        for _ in range(FLUSHES):
            some = [(0, 0, b"%d" % draw.randrange(5), draw.choice([1, 1, -1])) for _ in range(4)]
            for _, _, row, weight in some:
                net[row] += weight
            self.entries.append(some)
            self.wanted.append(Counter({row: n for row, n in net.items() if n}))

    def put(self, state: StateTables, number: int) -> None:
        rows = table_of(self.entries[number])
        added = {"rows": rows, "output": rows, "idle": rows.slice(0, 0)}
        state.put(number, added, tokens={"source": number})
        state.compact()

    def check(self, state: StateTables) -> None:
        wanted = Counter() if state.number is None else self.wanted[state.number]
        assert contents(state, SPECS["rows"]) == contents(state, SPECS["output"]) == wanted
        assert "idle" not in state.manifest.tables
        assert state.manifest.tokens == ({} if state.number is None else {"source": state.number})


def moments(play: Play, folder: Path) -> list[int]:
    """The changes of files that the history makes, or some of them."""
    with failing(Fault()) as fault:
        state = opened(folder)
        for number in range(FLUSHES):
            play.put(state, number)
            play.check(state)
    assert (folder / "base").exists() and (folder / "merged").exists()
    every = range(1, fault.count + 1)
    return list(every) if TIMES else sorted(drawing().sample(every, MOMENTS))


def files_in(state: StateTables) -> set[str]:
    return {str(path.relative_to(state._root)) for path in Path(state._root).rglob("*.parquet")}


def named(state: StateTables) -> set[str]:
    segments = [s for found in state.manifest.tables.values() for s in found]
    return {f"{s.folder}/{name}" for s in segments for name in s.files}


def test_a_process_that_stops_at_any_write_is_gone_on_with(tmp_path: Path) -> None:
    play = Play()
    for moment in moments(play, tmp_path / "counted"):
        number, folder = -1, tmp_path / str(moment)
        with failing(Fault(moment, stops=True)), pytest.raises(Stopped):
            first = opened(folder)
            for number in range(FLUSHES):
                play.put(first, number)
        later = opened(folder)
        done = -1 if later.number is None else later.number
        assert done in (number - 1, number)
        play.check(later)
        assert files_in(later) == named(later)
        for number in range(done + 1, FLUSHES):
            play.put(later, number)
            play.check(later)


@pytest.mark.long
def test_a_write_that_fails_adds_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    play = Play()
    for moment in moments(play, tmp_path / "counted"):
        folder = tmp_path / str(moment)
        with failing(Fault(moment)) as fault:
            state = until_it_works(lambda: opened(folder))
            for number in range(FLUSHES):
                until_it_works(lambda: play.put(state, number), lambda: play.check(state))
                play.check(state)
            assert fault.happened
        again = opened(folder)
        play.check(again)
        assert files_in(again) == named(again)


def until_it_works(act: Callable[[], Made], between: Callable[[], None] | None = None) -> Made:
    while True:
        try:
            return act()
        except (OSError, OffloadError):
            if between is not None:
                between()


def test_a_table_that_cannot_be_written_leaves_no_file_of_another(tmp_path: Path) -> None:
    state, play = opened(tmp_path), Play()
    play.put(state, 0)
    rows = table_of(play.entries[1])
    with pytest.raises(KeyError, match="bucket"):
        state.put(1, {"rows": rows, "output": rows.drop_columns("bucket")})
    play.check(state)
    assert files_in(state) == named(state)


def test_a_number_counts_once_however_it_is_added(tmp_path: Path) -> None:
    state, play = opened(tmp_path), Play()
    for _ in range(2):
        play.put(state, 0)
    play.check(state)
    before = files_in(state)
    state.flush(0, {})
    state.put(0, {"rows": table_of(play.entries[1])})
    play.check(state)
    assert files_in(state) == before
