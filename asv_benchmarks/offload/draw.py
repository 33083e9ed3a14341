"""The figure of the increments: seconds of each, one line per size, for each query."""

from __future__ import annotations

from pathlib import Path

from asv_benchmarks.offload.cases import CASES
from asv_benchmarks.offload.figures import Found
from examples.watching import MissingExtra


def draw(file: Path, found: Found, size: int) -> None:
    """Write the figure as a PNG file.

    Raises
    ------
    MissingExtra: the package `matplotlib` is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "drawing figures") from error
    figure = Figure(figsize=(9, 4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    parts = figure.subplots(1, len(found), squeeze=False)[0]
    for axes, (name, figures) in zip(parts, found.items(), strict=True):
        axes.set_title(f"{CASES[name].title}, {size:,} rows at first")
        axes.set_xlabel("increment; then the same rows are deleted")
        axes.set_ylabel("seconds")
        for changed, times in figures.items():
            places = range(1, len(times["spark"]) + 1)
            axes.plot(places, times["spark"], marker=".", label=f"{int(changed):,} rows")
        count = max(len(times["spark"]) for times in figures.values())
        axes.axvline(count / 2 + 0.5, color="grey", linewidth=0.8)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.2)
        axes.legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
