"""The benchmarks for asv: classes parameterised by workload, table size and delta size.

Nothing here asserts seconds. `ASV_LARGE=1` adds tables of a million rows, the product of two
tables of ten thousand, the recursive cases over the standard library, which take seconds to read,
and the large history of class files.
"""

from __future__ import annotations

import os
from random import Random
from statistics import median

from asv_benchmarks.cliffs.cliff import measured as cliff_figures
from asv_benchmarks.cliffs.rows import WATCHED as CLIFFS
from asv_benchmarks.cliffs.rows import cliff_of
from asv_benchmarks.findbugs.bases import CLASS, HEADER, METHOD, base_figures
from asv_benchmarks.findbugs.bases import SIZES as CLASSES
from asv_benchmarks.findbugs.replays import HISTORIES, PASSING, STORED, changes_of, replay_figures
from asv_benchmarks.gain import index_figures, product_figures
from asv_benchmarks.grid.cells import WATCHED, all_cells
from asv_benchmarks.grid.measure import measured
from asv_benchmarks.making import made
from asv_benchmarks.measure import (
    AS_WRITTEN,
    ENGINE,
    SEED,
    TWIN,
    Ear,
    latencies,
    script,
    side_of,
    sides,
)
from asv_benchmarks.nested import SIZES as BAGS
from asv_benchmarks.nested import measured as nested_figures
from asv_benchmarks.nexmark import workloads as nexmark
from asv_benchmarks.recursion.cases import CASES, OF_LIBRARY, recursive
from asv_benchmarks.recursion.measure import edit_figures
from asv_benchmarks.recursion.sides import SCRATCH
from asv_benchmarks.row_checks import CASES as CASES_OF_ROWS
from asv_benchmarks.row_checks import ratio as row_check_ratio
from asv_benchmarks.run import in_process
from asv_benchmarks.shapes import measured as shape_figures
from asv_benchmarks.tpch import workloads as tpch
from asv_benchmarks.verified import QUERIES, verified
from asv_benchmarks.verifying import seconds
from asv_benchmarks.workload import TableDelta, batch_of, load
from asv_benchmarks.workloads import WORKLOADS, workload
from asv_benchmarks.workloads.ten_operators import query

NAMES = [w.name for w in WORKLOADS]
SIDES = [ENGINE, AS_WRITTEN, TWIN]
IS_LARGE = os.environ.get("ASV_LARGE") == "1"
SIZES = [10_000, 100_000] + [1_000_000] * IS_LARGE
PRODUCTS = [1_000] + [10_000] * IS_LARGE
LARGEST = [SIZES[-1]]
DELTAS = [1, 1_000]
SMALL_SHOP = 7_500
"""Orders: scale 0.005."""
HISTORY_NAMES = [name for name in HISTORIES if IS_LARGE or name != "hibernate"]
SHAPES = {
    **{f"tpch {each.name}": (each, SMALL_SHOP) for each in tpch.WORKLOADS},
    **{f"nexmark {each.name}": (each, SIZES[0]) for each in nexmark.WORKLOADS},
}
RECURSIVE = [case.name for case in CASES if IS_LARGE or case not in OF_LIBRARY]


class Change:
    """Nanoseconds of one change until a subscriber has it; the sides in turns."""

    params = (NAMES, SIZES)
    param_names = ("workload", "size")
    timeout = 600

    def setup(self, name: str, size: int) -> None:
        chosen = workload(name)
        todo = script(chosen, size, changes=1_000, batches=0, delta=1)
        self._engine, self._written, self._twin = latencies(sides(chosen, todo, SIDES))

    def track_engine(self, name: str, size: int) -> float:
        return self._engine.typical

    def track_ratio(self, name: str, size: int) -> float:
        return self._engine.typical / self._twin.typical

    def track_gain(self, name: str, size: int) -> float:
        return self._written.typical / self._engine.typical


class Batch:
    """A batch of ordinary changes and then the one that takes it back, in one transaction each."""

    params = (NAMES, SIZES, DELTAS, SIDES)
    param_names = ("workload", "size", "delta", "side")
    timeout = 600

    def setup(self, name: str, size: int, delta: int, side: str) -> None:
        chosen = workload(name)
        random = Random(SEED)
        rows = chosen.rows(size, random)
        self._there = batch_of(chosen.stream(rows, random), delta, len(rows))
        self._back = [TableDelta(there.removed, there.added) for there in self._there]
        self._side = side_of(chosen, side, Ear())
        load(self._side, rows)

    def time_there_and_back(self, name: str, size: int, delta: int, side: str) -> None:
        self._side.batch(*self._there)
        self._side.batch(*self._back)


class Load:
    """Fill the tables, under a view that has a subscriber."""

    params = (NAMES, SIZES, SIDES)
    param_names = ("workload", "size", "side")
    number = 1
    warmup_time = 0.0
    timeout = 600

    def setup(self, name: str, size: int, side: str) -> None:
        chosen = workload(name)
        self._rows = chosen.rows(size, Random(SEED))
        self._side = side_of(chosen, side, Ear())

    def time_load(self, name: str, size: int, side: str) -> None:
        load(self._side, self._rows)


class Verify:
    """Verify a view, and how many times as long as the load of its rows that takes."""

    params = ([query.name for query in QUERIES], [1_000, 10_000] + [100_000] * IS_LARGE)
    param_names = ("query", "size")
    timeout = 600

    def setup(self, name: str, size: int) -> None:
        self._load, self._verify = seconds(verified(name), size, runs=1)

    def track_seconds(self, name: str, size: int) -> float:
        return self._verify

    def track_times(self, name: str, size: int) -> float:
        return self._verify / self._load


class Memory:
    """Bytes per row, without the rows themselves; only of tables large enough to tell."""

    params = (NAMES, LARGEST, SIDES)
    param_names = ("workload", "size", "side")
    timeout = 600

    def track_held(self, name: str, size: int, side: str) -> float:
        return float(in_process("load", name, size, side)["held"])


class Grid:
    """Cells of the grid: times the twin of a change, and of a loaded row."""

    params = (WATCHED,)
    param_names = ("cell",)
    timeout = 600

    def setup(self, name: str) -> None:
        self._figures = measured(all_cells()[name])

    def track_change_ratio(self, name: str) -> float:
        return self._figures.change.ratio

    def track_load_ratio(self, name: str) -> float:
        return self._figures.load.ratio


class Cliff:
    """Queries that once fell off a cliff: times their neighbour or twin."""

    params = (CLIFFS,)
    param_names = ("cliff",)
    timeout = 600

    def setup(self, name: str) -> None:
        self._figures = cliff_figures(cliff_of(name))

    def track_ratio(self, name: str) -> float:
        return self._figures.ratio


class Shape:
    """Queries of the shapes of TPC-H and NEXMark: times the twin of a change, a batch, a load."""

    params = ([*SHAPES],)
    param_names = ("query",)
    timeout = 600

    def setup(self, name: str) -> None:
        chosen, size = SHAPES[name]
        self._figures = shape_figures(chosen, chosen.rows(size, Random(SEED)))

    def track_change_ratio(self, name: str) -> float:
        return self._figures.change.ratio

    def track_batch_ratio(self, name: str) -> float:
        return self._figures.batch.ratio

    def track_load_ratio(self, name: str) -> float:
        return self._figures.load.ratio


class Product:
    """The cost of a join written as product and where without the optimizer, over that with it."""

    params = (PRODUCTS,)
    param_names = ("size",)
    timeout = 600

    def setup(self, size: int) -> None:
        self._figures = product_figures(size)

    def track_load_gain(self, size: int) -> float:
        return self._gain("load")

    def track_change_gain(self, size: int) -> float:
        return self._gain("typical")

    def _gain(self, figure: str) -> float:
        return self._figures[AS_WRITTEN][figure] / self._figures[ENGINE][figure]


class Index:
    """Bytes of state under a selective where above a join."""

    params = (SIZES, [ENGINE, AS_WRITTEN])
    param_names = ("size", "side")
    timeout = 600

    def track_state(self, size: int, side: str) -> float:
        return index_figures(size, side)["state"]


class Nested:
    """A change of one value in a group of `Collect`, beside dictionaries by hand."""

    params = (list(BAGS),)
    param_names = ("size",)
    timeout = 600

    def track_ratio(self, size: int) -> float:
        found = nested_figures(size)
        return found[ENGINE] / found[TWIN]


class Recursion:
    """The first evaluation of a recursive query, beside the same from scratch."""

    params = (RECURSIVE,)
    param_names = ("case",)
    timeout = 600

    def track_first_ratio(self, name: str) -> float:
        seconds = [in_process("recursion", name, s)["seconds"] for s in (ENGINE, SCRATCH)]
        return float(seconds[0] / seconds[1])

    def track_held(self, name: str) -> float:
        figures = in_process("recursion", name, ENGINE)
        return float(figures["held"] / figures["rows"])


class RecursionEdit:
    """The cost of an edit from scratch over that of the view, for a few edits of each kind."""

    params = (RECURSIVE,)
    param_names = ("case",)
    timeout = 600

    def setup(self, name: str) -> None:
        figures = edit_figures(recursive(name), names=(ENGINE, SCRATCH), most=3)
        self._gains = [
            again / once
            for ways in figures.values()
            for times in ways.values()
            for again, once in zip(times[SCRATCH], times[ENGINE], strict=True)
        ]

    def track_gain(self, name: str) -> float:
        return median(self._gains)

    def track_least_gain(self, name: str) -> float:
        return min(self._gains)


class FindBugs:
    """The cost of a revision from scratch over that of the view: the median, and all revisions."""

    params = (HISTORY_NAMES, [PASSING, STORED])
    param_names = ("history", "tables")
    timeout = 600

    def setup(self, name: str, mode: str) -> None:
        self._times = replay_figures(changes_of(name), mode)

    def track_gain(self, name: str, mode: str) -> float:
        return median(self._times["scratch"][1:]) / median(self._times["engine"][1:])

    def track_whole_gain(self, name: str, mode: str) -> float:
        return sum(self._times["scratch"]) / sum(self._times["engine"])


class FindBugsBase:
    """The cost of a change of one class among many classes, over that among few."""

    params = ([METHOD, HEADER, CLASS],)
    param_names = ("change",)
    timeout = 600

    def setup_cache(self) -> dict[str, dict[str, list[float]]]:
        return base_figures()

    def track_growth(self, times: dict[str, dict[str, list[float]]], change: str) -> float:
        few, many = (median(times[change][str(size)]) for size in CLASSES)
        return many / few


class Making:
    """Make a relation of ten operators, and compile it, on empty tables."""

    def setup(self) -> None:
        made(query)

    def time_again(self) -> None:
        made(query)

    def track_first(self) -> float:
        return float(in_process("making")["cold"])


class RowCheck:
    """Add rows whose fields may not be None, beside rows without a check."""

    params = (CASES_OF_ROWS, [10_000])
    param_names = ("case", "rows")
    timeout = 600

    def track_ratio(self, case: str, rows: int) -> float:
        return row_check_ratio(case, rows)


class Start:
    """Import the library, in a new process."""

    timeout = 600

    def track_import(self) -> float:
        return float(in_process("import")["import"])


Change.track_engine.unit = "ns"  # type: ignore[attr-defined]
Change.track_ratio.unit = "times the twin"  # type: ignore[attr-defined]
Change.track_gain.unit = "times as written"  # type: ignore[attr-defined]
Product.track_load_gain.unit = "times as written"  # type: ignore[attr-defined]
Product.track_change_gain.unit = "times as written"  # type: ignore[attr-defined]
Index.track_state.unit = "bytes"  # type: ignore[attr-defined]
Recursion.track_first_ratio.unit = "times from scratch"  # type: ignore[attr-defined]
Recursion.track_held.unit = "bytes per row"  # type: ignore[attr-defined]
RecursionEdit.track_gain.unit = "times from scratch"  # type: ignore[attr-defined]
RecursionEdit.track_least_gain.unit = "times from scratch"  # type: ignore[attr-defined]
FindBugs.track_gain.unit = "times from scratch"  # type: ignore[attr-defined]
FindBugs.track_whole_gain.unit = "times from scratch"  # type: ignore[attr-defined]
FindBugsBase.track_growth.unit = "times among few"  # type: ignore[attr-defined]
Making.track_first.unit = "ms"  # type: ignore[attr-defined]
Start.track_import.unit = "ms"  # type: ignore[attr-defined]
Memory.track_held.unit = "bytes per row"  # type: ignore[attr-defined]
Grid.track_change_ratio.unit = "times the twin"  # type: ignore[attr-defined]
Grid.track_load_ratio.unit = "times the twin"  # type: ignore[attr-defined]
RowCheck.track_ratio.unit = "times the twin"  # type: ignore[attr-defined]
Cliff.track_ratio.unit = "times the neighbour"  # type: ignore[attr-defined]
Shape.track_change_ratio.unit = "times the twin"  # type: ignore[attr-defined]
Shape.track_batch_ratio.unit = "times the twin"  # type: ignore[attr-defined]
Shape.track_load_ratio.unit = "times the twin"  # type: ignore[attr-defined]
