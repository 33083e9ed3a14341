"""A picture of the time of each batch: live and Spark from scratch, over the number of orders."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from examples.pipeline.worker import Told

WIDTH, HEIGHT = 720, 360
LEFT, TOP, RIGHT, BOTTOM = 60, 44, 150, 46
"""The margins, with the labels in them."""
LIVE, AGAIN, GRID, INK = "#1f77b4", "#d62728", "#dddddd", "#333333"
STEPS = (1, 2, 5)
"""The steps of scales, times powers of ten."""
MOST_LINES = 6


def write(file: Path, told: Sequence[Told], orders: Sequence[int]) -> None:
    """Draw batches, each with the orders that there were by then, to an SVG file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(drawn(told, orders)) + "\n")


def drawn(told: Sequence[Told], orders: Sequence[int]) -> Iterator[str]:
    """Yield the lines of the SVG."""
    most = max(max(each.seconds, each.again) for each in told)
    across = _Scale(max(orders), LEFT, WIDTH - RIGHT)
    up = _Scale(most, HEIGHT - BOTTOM, TOP)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12" fill="{INK}">'
    )
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    yield _text(LEFT, 22, f"Seconds per batch, {len(told)} batches", size=14)
    yield from _axes(across, up)
    for name, color, seconds in (
        ("live", LIVE, [each.seconds for each in told]),
        ("from scratch", AGAIN, [each.again for each in told]),
    ):
        points = [(across.at(n), up.at(s)) for n, s in zip(orders, seconds, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        yield f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points)
        x, y = points[-1]
        yield _text(x + 10, y + 4, f"{name}: {seconds[-1]:.1f} s", color=color)
    yield "</svg>"


class _Scale:
    """From 0 to at least `most`, between two places."""

    def __init__(self, most: float, begin: float, end: float) -> None:
        power: float = 10 ** math.floor(math.log10(most / MOST_LINES))
        steps = (step * power for step in (*STEPS, 10))
        self.step = next(step for step in steps if most / step <= MOST_LINES)
        self.most = self.step * math.ceil(most / self.step)
        self._begin, self._end = begin, end

    def at(self, value: float) -> float:
        """Return the place of a value."""
        return self._begin + (self._end - self._begin) * value / self.most

    def lines(self) -> Iterator[float]:
        """Return the marked values."""
        return (self.step * n for n in range(round(self.most / self.step) + 1))


def _axes(across: _Scale, up: _Scale) -> Iterator[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for value in up.lines():
        y = up.at(value)
        yield f'<path d="M{LEFT} {y:.1f}H{right}" stroke="{GRID}"/>'
        yield _text(LEFT - 8, y + 4, f"{value:g}", anchor="end")
    for value in across.lines():
        yield _text(across.at(value), bottom + 18, f"{value:,.0f}", anchor="middle")
    yield _text((LEFT + right) / 2, HEIGHT - 8, "orders so far", anchor="middle")


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", color: str = INK, size: int = 12
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size}" fill="{color}">{escape(text)}</text>'
