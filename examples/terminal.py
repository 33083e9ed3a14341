"""Lines, progress and durations on a terminal, or as plain lines where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

Tick: TypeAlias = Callable[[str], object]


def console(*, to_errors: bool = False) -> Console:
    """A console; wide enough for a finding where the output is no terminal."""
    found = Console(stderr=to_errors, highlight=False)
    return found if found.is_terminal else Console(stderr=to_errors, highlight=False, width=140)


@contextmanager
def progress(on: Console, title: str, total: int, items: str) -> Iterator[Tick]:
    """A progress bar; gives the function to call before each item, with what it is.

    Where the output is no terminal, it is one line at the start.
    """
    if not on.is_terminal:
        on.print(f"{title}: {total:,} {items}")
    done = count()
    columns = (TextColumn("{task.fields[title]}"), BarColumn(), MofNCompleteColumn())
    rest = (TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, *rest, console=on, transient=True, disable=not on.is_terminal) as bar:
        task = bar.add_task("", total=total, title=title)
        yield lambda what: bar.update(task, completed=next(done), description=what[-40:])


def line(text: str, style: str = "") -> Text:
    """Text that takes one line, cut where the console ends."""
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def duration(seconds: float) -> str:
    """Seconds from one on, milliseconds below.

    >>> duration(12.34), duration(0.0056)
    ('12.3 s', '5.6 ms')
    """
    return f"{seconds:,.1f} s" if seconds >= 1 else f"{seconds * 1000:,.1f} ms"


def printable(text: str) -> str:
    r"""A text, with escapes for what would do something to the terminal.

    >>> print(printable("Zoë\x1b[2J"))
    Zoë\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
