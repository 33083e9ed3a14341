"""Lines, progress and durations on a terminal, or as plain lines where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from types import MappingProxyType
from typing import TypeAlias

from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

Tick: TypeAlias = Callable[[str], object]

COLOURS: Mapping[str, str] = MappingProxyType(
    {"+": "red", "-": "green", "!": "yellow", "=": "yellow"}
)
"""The colours of lines by their sign: a new finding is red, a removed one green."""
UNLIMITED = 10**6
"""Columns of an output that is no terminal, so that each line can be searched whole."""


def console(*, to_errors: bool = False) -> Console:
    """Return a console that folds and cuts nothing where the output is no terminal."""
    found = Console(stderr=to_errors, highlight=False)
    if found.is_terminal:
        return found
    return Console(stderr=to_errors, highlight=False, width=UNLIMITED)


@contextmanager
def progress(on: Console, title: str, total: int, item: str) -> Iterator[Tick]:
    """Show a progress bar; yield the function to call before each item, with what it is.

    Where the output is no terminal, it is one line at the start.
    """
    if not on.is_terminal:
        on.print(f"{title}: {number(total, item)}")
    done = count()
    columns = (TextColumn("{task.fields[title]}"), BarColumn(), MofNCompleteColumn())
    rest = (TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, *rest, console=on, transient=True, disable=not on.is_terminal) as bar:
        task = bar.add_task("", total=total, title=title)
        yield lambda what: bar.update(task, completed=next(done), description=what[-40:])


def line(text: str, style: str = "") -> Text:
    """Text that takes one line, cut where the console ends."""
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def signed(sign: str, text: object) -> Text:
    """Return a line about a new finding, `+`, a removed one, `-`, a problem, `!`, or its end, `=`.

    >>> str(signed("+", "a.py:1: os is imported, not used"))
    '+ a.py:1: os is imported, not used'
    """
    return line(f"{sign} {text}", COLOURS[sign])


def say(on: Console, *lines: Text) -> None:
    """Print lines; each takes one, as printing a text by itself would not leave it."""
    on.print(Group(*lines))


def unnoticed(*what: str) -> None:
    """For those whom progress or problems do not concern."""


def number(of: int, one: str, many: str = "") -> str:
    """Write a number of things.

    >>> number(1, "finding"), number(1200, "finding"), number(2, "class", "classes")
    ('1 finding', '1,200 findings', '2 classes')
    """
    return f"{of:,} {one if of == 1 else many or one + 's'}"


def duration(seconds: float) -> str:
    """Seconds from one on, milliseconds below.

    >>> duration(12.34), duration(0.0056)
    ('12.3 s', '5.6 ms')
    """
    return f"{seconds:,.1f} s" if seconds >= 1 else f"{seconds * 1000:,.1f} ms"


def printable(text: str) -> str:
    r"""Return a text with escapes for the characters that control a terminal.

    >>> print(printable("Zoë\x1b[2J"))
    Zoë\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
