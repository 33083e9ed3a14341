"""Figures of a replay: the time and memory of each change over its size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from examples.findbugs.replay.steps import Step
from examples.findbugs.replay.summary import Fit
from examples.watching import MissingExtra

FACTS = "facts that differ and that analyses read"


def draw(
    folder: Path, name: str, steps: Sequence[Step], fit: Fit | None, peaks: Sequence[int] | None
) -> list[Path]:
    """Write the figures; gives their files.

    Parameters
    ----------
    steps: the changes, without the first revision.
    fit: the line to draw through their times.
    peaks: the bytes that each of them allocates; None, and no figure of them, if not traced.

    Raises
    ------
    MissingExtra: the package `matplotlib` is not installed.
    """
    facts = [step.facts_read for step in steps]
    subplots = _subplots(max(facts))
    figure, axes = subplots(f"{name}: time of a change", "milliseconds")
    axes.scatter(facts, [step.updating * 1e3 for step in steps], s=14, label="a change")
    if fit is not None:
        sizes = _sizes(max(facts))
        times = [(fit.constant + fit.per_fact * size) * 1e3 for size in sizes]
        axes.plot(sizes, times, color="tab:red", label=formula(fit))
    axes.legend()
    time = folder / f"findbugs-{name}-time.png"
    figure.savefig(time)
    if peaks is None:
        return [time]
    figure, axes = subplots(f"{name}: memory that a change takes", "KiB at its height")
    axes.scatter(facts, [peak / 1024 for peak in peaks], s=14)
    memory = folder / f"findbugs-{name}-memory.png"
    figure.savefig(memory)
    return [time, memory]


def formula(fit: Fit) -> str:
    """Return the line as a formula.

    >>> formula(Fit(0.0001, 0.000002, 0.98))
    '100.0 µs + 2.00 µs per fact (R² = 0.980)'
    """
    each = f"{fit.constant * 1e6:,.1f} µs + {fit.per_fact * 1e6:,.2f} µs per fact"
    return f"{each} (R² = {fit.r_squared:.3f})"


def _sizes(largest: int) -> list[float]:
    """Numbers of facts to draw a line through: it bends where the scales are logarithmic."""
    return [0.0, *(largest ** (step / 100) for step in range(101))]


def _subplots(largest: int) -> Any:
    """Return the function from a title and a y label to an empty figure and its axes.

    Sizes and times of changes differ by powers of ten, so both scales are logarithmic; changes of
    no facts are drawn at the left end.

    Raises
    ------
    MissingExtra: the package `matplotlib` is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "drawing figures") from error

    def subplots(title: str, upwards: str) -> tuple[Any, Any]:
        figure = Figure(figsize=(7, 4.5), dpi=120, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot(title=title, xlabel=FACTS, ylabel=upwards)
        axes.set_xscale("symlog", linthresh=1)
        axes.set_yscale("log")
        axes.set_xlim(-0.1, 2 * max(largest, 1))
        axes.grid(which="both", alpha=0.2)
        return figure, axes

    return subplots
