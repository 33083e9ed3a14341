"""The conclusions of the grid: the worst cells and the worst pairs of neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from asv_benchmarks.grid.cell import Cell
from asv_benchmarks.grid.cells import neighbours
from asv_benchmarks.grid.measure import Figures
from asv_benchmarks.table import markdown, verdict
from asv_benchmarks.turns import Beside

MOST = 3.0
"""The most quotient of the ratios of neighbours."""
KINDS: dict[str, Callable[[Figures], Beside]] = {
    "a change": lambda figures: figures.change,
    "a loaded row": lambda figures: figures.load,
}


class Pair(NamedTuple):
    """Two neighbours: the one with the greater ratio to its twin is the worse."""

    worse: str
    better: str
    times: float


def report(cells: Mapping[str, Cell], figures: Mapping[str, Figures], worst: int) -> str:
    """Return the claim for changes and for loads, and the worst of both."""
    lines: list[str] = []
    for title, of in KINDS.items():
        times = {name: of(each) for name, each in figures.items()}
        ratios = {name: each.ratio for name, each in times.items()}
        pairs = list(pairs_of(cells, ratios))
        beyond = sum(pair.times > MOST for pair in pairs)
        level = sum(ratios[pair.worse] > MOST * max(1.0, ratios[pair.better]) for pair in pairs)
        lines += [f"### {title[0].upper()}{title[1:]}", ""]
        lines += [
            f"{len(pairs)} pairs of {len(figures)} cells; {beyond} differ by more than {MOST:g} "
            f"times: {verdict(not beyond)}. {level} where faster than the twin "
            "counts as level with it.",
            "",
            *_worst_cells(title, times, worst),
            "",
            *_worst_pairs(pairs, ratios, worst),
            "",
        ]
    return "\n".join(lines)


def pairs_of(cells: Mapping[str, Cell], ratios: Mapping[str, float]) -> Iterator[Pair]:
    """Neighbours that were measured, with the factor between their ratios."""
    chosen = {name: cell for name, cell in cells.items() if name in ratios}
    for one, other in neighbours(chosen):
        if ratios[one] < ratios[other]:
            one, other = other, one
        yield Pair(one, other, ratios[one] / ratios[other])


def _worst_cells(title: str, times: Mapping[str, Beside], worst: int) -> list[str]:
    rows = [
        [name, f"{each.engine:.2f}", f"{each.twin:.2f}", f"{each.ratio:.2f}"]
        for name, each in sorted(times.items(), key=lambda item: -item[1].ratio)[:worst]
    ]
    return markdown([f"{title}, µs", "engine", "twin", "times the twin"], rows)


def _worst_pairs(pairs: list[Pair], ratios: Mapping[str, float], worst: int) -> list[str]:
    rows = [
        [
            *(pair.worse, f"{ratios[pair.worse]:.2f}", pair.better, f"{ratios[pair.better]:.2f}"),
            f"{pair.times:.2f}",
        ]
        for pair in sorted(pairs, key=lambda pair: -pair.times)[:worst]
    ]
    return markdown(
        ["the worse", "times the twin", "its neighbour", "times the twin", "cliff"], rows
    )
