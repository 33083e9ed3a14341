"""Progress of a long evaluation: a bar on a terminal, nothing elsewhere.

The bar appears after a second, so that short evaluations show nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from optimizer import plan
from optimizer.plans.explain import headline

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

# `rich` is imported only to show a bar: it would take a third of the import time.

T = TypeVar("T")
PATIENCE = 1.0
"""Seconds until the bar is shown."""
EVERY = 256
"""Rows between two looks at the clock."""
LONGEST = 50
"""Maximum number of characters shown of a node."""


class Progress(Protocol):
    """Receiver of the progress of an evaluation."""

    def at(self, node: plan.Node) -> None:
        """Report that the evaluation of a node begins."""
        ...

    def over(self, rows: Sequence[T]) -> Iterable[T]:
        """Yield the same rows, and report how many were consumed."""
        ...

    def round(self, name: str, number: int) -> None:
        """Report that a recursion begins a round."""
        ...

    def count(self, done: int, total: int | None) -> None:
        """Report that `done` rows were processed, of `total` if known."""
        ...


class _Silent:
    """Ignores all reports."""

    def at(self, node: plan.Node) -> None:
        pass

    def over(self, rows: Sequence[T]) -> Iterable[T]:
        return rows

    def round(self, name: str, number: int) -> None:
        pass

    def count(self, done: int, total: int | None) -> None:
        pass


SILENT: Progress = _Silent()


@contextmanager
def watch_progress(title: str) -> Iterator[Progress]:
    """Return the context that shows the progress of an evaluation.

    >>> with watch_progress("verifying") as progress:
    ...     list(progress.over([1, 2]))
    [1, 2]
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield SILENT
        return
    shown = OnTerminal(title)
    try:
        yield shown
    finally:
        shown.close()


class OnTerminal:
    """A bar on the terminal, after one second."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._since = monotonic()
        self._bar: Bar | None = None
        self._node: plan.Node | None = None
        self._task: Any = None

    def at(self, node: plan.Node) -> None:
        """Show the node whose evaluation begins."""
        self._node = node
        self._show("", total=None, done=0)

    def over(self, rows: Sequence[T]) -> Iterator[T]:
        """Yield the same rows, and show how many were consumed."""
        for number, row in enumerate(rows):
            if number % EVERY == 0:
                self._show("", total=len(rows), done=number)
            yield row

    def round(self, name: str, number: int) -> None:
        """Show that a recursion begins a round."""
        self._show(f", round {number:,}", total=None, done=0)

    def count(self, done: int, total: int | None) -> None:
        """Show that `done` rows were processed."""
        self._show(f"{done:,} rows", total=total, done=done)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()

    def _show(self, more: str, *, total: int | None, done: int) -> None:
        """Show progress; the bar appears only after `PATIENCE` seconds."""
        if self._bar is None:
            if monotonic() - self._since < PATIENCE:
                return
            self._bar = _bar(self._title)
            self._task = self._bar.add_task("")
        what = "" if self._node is None else headline(self._node)[:LONGEST]
        self._bar.update(self._task, description=what + more, total=total, completed=done)


def _bar(title: str) -> Bar:
    """Return a started bar on stderr, which disappears at its end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    of = TextColumn(title, markup=False)
    what = TextColumn("{task.description}", markup=False)
    bar = Progress(
        of, BarColumn(), TimeElapsedColumn(), what, console=Console(stderr=True), transient=True
    )
    bar.start()
    return bar
