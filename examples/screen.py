"""What watching shows: a screen that is drawn again, or lines where there is no terminal.

    title
    how many findings of each sort there are
    what the last change did
    findings

Each part is cut to the lines that are left for it, and then says how many more there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from examples.terminal import line
from examples.watching import Change

NEWS, FINDINGS = 3, 3
"""Lines that a part has at least, where the screen is high enough."""


@dataclass(frozen=True, slots=True)
class State:
    """What there is now."""

    title: str
    counts: Sequence[tuple[str, int]]
    """How many findings of each sort there are, by its name."""
    findings: Sequence[object]


Look: TypeAlias = Callable[[Change[Any] | None], State]
"""Looks at what there is now, after a change."""


@contextmanager
def screen(out: Console, beginning: str, look: Look) -> Iterator[Callable[[Change[Any]], object]]:
    """A function to show a change with, for as long as the block runs."""
    if not out.is_terminal:
        _say(beginning)
        yield _lines
        return
    with Live(console=out, screen=True, auto_refresh=False) as live:

        def draw(change: Change[Any] | None) -> None:
            live.update(Group(*drawing(look(change), change, out.height)), refresh=True)

        draw(None)
        yield draw


def drawing(state: State, change: Change[Any] | None, height: int) -> list[Text]:
    """The lines of a screen of this height."""
    news = [] if change is None else _news(change)
    counts = [line(f"{count:>7,}  {name}", "cyan") for name, count in state.counts if count]
    counts = _fitting(counts, height - 1 - min(len(news), NEWS) - FINDINGS)
    left = height - 1 - len(counts)
    news = _fitting(news, max(min(NEWS, left), left // 2))
    listed = [line(str(finding)) for finding in state.findings]
    return [line(state.title, "reverse"), *counts, *news, *_fitting(listed, left - len(news))]


def _fitting(lines: list[Text], room: int) -> list[Text]:
    """As many lines as there is room for; the last one may be that there are more."""
    if len(lines) <= room:
        return lines
    kept = lines[: max(room - 1, 0)]
    return [*kept, line(f"... {len(lines) - len(kept):,} more")][: max(room, 0)]


def _news(change: Change[Any]) -> list[Text]:
    return [line(change.headline, "bold"), *(line(*news) for news in _signed(change))]


def _lines(change: Change[Any]) -> None:
    for text, _ in _signed(change):
        _say(text)
    _say(change.headline)


def _signed(change: Change[Any]) -> Iterator[tuple[str, str]]:
    """Lines about a change, each with its style."""
    yield from ((f"! {problem}", "yellow") for problem in change.problems)
    yield from ((f"- {finding}", "green") for finding in change.removed)
    yield from ((f"+ {finding}", "red") for finding in change.added)


def _say(text: str) -> None:
    print(text, flush=True)
