"""What a long evaluation is at: a bar on a terminal, and nothing elsewhere.

The bar is there after a second, so that short evaluations leave the terminal alone.
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

# `rich` is imported where something is shown: it would take a third of all.

T = TypeVar("T")
PATIENCE = 1.0
"""Seconds until something is shown."""
EVERY = 256
"""Rows after which it is looked at the clock."""
LONGEST = 50
"""Characters of a node that are shown."""


class Progress(Protocol):
    """What is notified of how far an evaluation has come."""

    def at(self, node: plan.Node) -> None:
        """It is the turn of a node."""
        ...

    def over(self, rows: Sequence[T]) -> Iterable[T]:
        """The same rows, while somebody watches how far they have been gone through."""
        ...

    def round(self, name: str, number: int) -> None:
        """A recursion begins a round."""
        ...

    def count(self, done: int, total: int | None) -> None:
        """`done` rows have been gone through, of `total` if that is known."""
        ...


class _Silent:
    """Tells nobody."""

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
def watched(title: str) -> Iterator[Progress]:
    """Where an evaluation tells what it is at.

    >>> with watched("verifying") as progress:
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
    """A bar on the terminal, from a second on."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._since = monotonic()
        self._bar: Bar | None = None
        self._node: plan.Node | None = None
        self._task: Any = None

    def at(self, node: plan.Node) -> None:
        """It is the turn of a node."""
        self._node = node
        self._show("", total=None, done=0)

    def over(self, rows: Sequence[T]) -> Iterator[T]:
        """The same rows."""
        for number, row in enumerate(rows):
            if number % EVERY == 0:
                self._show("", total=len(rows), done=number)
            yield row

    def round(self, name: str, number: int) -> None:
        """A recursion begins a round."""
        self._show(f", round {number:,}", total=None, done=0)

    def count(self, done: int, total: int | None) -> None:
        """`done` rows have been gone through."""
        self._show(f"{done:,} rows", total=total, done=done)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.stop()

    def _show(self, more: str, *, total: int | None, done: int) -> None:
        if self._bar is None:
            if monotonic() - self._since < PATIENCE:
                return
            self._bar = _bar(self._title)
            self._task = self._bar.add_task("")
        what = "" if self._node is None else headline(self._node)[:LONGEST]
        self._bar.update(self._task, description=what + more, total=total, completed=done)


def _bar(title: str) -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    of = TextColumn(title, markup=False)
    what = TextColumn("{task.description}", markup=False)
    bar = Progress(
        of, BarColumn(), TimeElapsedColumn(), what, console=Console(stderr=True), transient=True
    )
    bar.start()
    return bar
