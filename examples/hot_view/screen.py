"""The output: a screen that is drawn repeatedly, or lines without a terminal.

phase, and its time               current figures
questions, with latencies         best ten
events so far
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from math import inf
from statistics import median
from time import perf_counter
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from examples.hot_view import processes
from examples.hot_view.feeder import Feeder
from examples.hot_view.figures import Figures, figures
from examples.hot_view.shop import Shop
from examples.hot_view.story import Board
from examples.terminal import duration, line

EVERY = 5.0
"""Seconds between lines of figures, where there is no terminal."""
PER_SECOND = 4
"""Frames of the screen per second."""
Look = Callable[[], Figures]


@contextmanager
def board(out: Console, shop: Shop, feeder: Feeder) -> Iterator[Board]:
    """Show the output while the block runs."""
    most = 0

    def look() -> Figures:
        nonlocal most
        most = max(most, processes.this_one().memory)
        return figures(shop, feeder, most)

    if not out.is_terminal:
        yield Lines(out, look)
        return
    screen = Screen(shop, look)
    with redirect_stderr(StringIO()), _live(out, screen):  # others would write into the screen
        yield screen
    out.print(screen.draw())


def _live(out: Console, screen: Screen) -> Live:
    to: dict[str, Any] = {"console": out, "transient": True, "redirect_stderr": False}
    return Live(get_renderable=screen.draw, refresh_per_second=PER_SECOND, **to)


class Lines:
    """One line after the other, with the seconds since the start; figures once a phase at least."""

    def __init__(self, out: Console, look: Look) -> None:
        self._out = out
        self._look = look
        self._began = self._shown = perf_counter()

    def phase(self, name: str) -> None:
        self._say(f"== {name}")
        self._shown = -inf

    def note(self, text: str) -> None:
        self._say(text)

    def answer(self, question: str, seconds: float, found: str) -> None:
        self._say(f"{question}: {found} ({duration(seconds)})")

    def look(self) -> None:
        if perf_counter() - self._shown >= EVERY:
            self._shown = perf_counter()
            self._say("; ".join(f"{name}: {figure}" for name, figure in self._look()))

    def _say(self, text: str) -> None:
        self._out.print(line(f"{perf_counter() - self._began:6.1f} s  {text}"))


class Screen:
    """The whole screen, drawn repeatedly by a thread of `rich`."""

    def __init__(self, shop: Shop, look: Look) -> None:
        self._shop = shop
        self._look = look
        self._began = perf_counter()
        self._phase = ""
        self._told: list[str] = []
        self._answers: dict[str, str] = {}
        self._seconds: dict[str, list[float]] = {}

    def phase(self, name: str) -> None:
        self._phase = name
        self.note(f"[{name}]")

    def note(self, text: str) -> None:
        self._told.append(f"{perf_counter() - self._began:6.1f} s  {text}")

    def answer(self, question: str, seconds: float, found: str) -> None:
        self._answers[question] = found
        self._seconds.setdefault(question, []).append(seconds)

    def look(self) -> None:
        """Nothing is to be done: it is drawn all the time."""

    def draw(self) -> RenderableType:
        """Return the whole screen."""
        head = line(f"{self._phase}, {perf_counter() - self._began:.0f} s", "reverse")
        now = Table.grid(padding=(0, 2))
        for name, figure in self._look():
            now.add_row(Text(name, "cyan"), Text(figure))
        told = [line(text) for text in self._told]
        return Group(head, now, self._asked(), self._best(), *told)

    def _asked(self) -> Table:
        table = Table("question", "last", "median", "answer", box=None)
        for question, found in list(self._answers.items()):
            seconds = self._seconds[question]
            last, usual = duration(seconds[-1]), duration(median(seconds))
            table.add_row(question, last, usual, Text(found))
        return table

    def _best(self) -> Table:
        """Return the table of the best customers as of the last flush, without causing a flush."""
        table = Table("customer", "region", "spent", box=None)
        table.columns[2].justify = "right"
        for customer in self._shop.best.read(stale_ok=True):
            table.add_row(
                f"{customer.name} ({customer.number})", customer.region, f"{customer.total:,.2f}"
            )
        return table
