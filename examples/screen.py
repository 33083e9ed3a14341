"""What watching shows: a screen that is drawn again, or lines where there is no terminal.

    title
    how many findings of each sort there are
    what the last changes did that did something, the newest first
    findings

Each part is cut to the lines that are left for it, and then says how many more there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from examples.terminal import line, signed
from examples.watching import Change

NEWS, FINDINGS = 3, 3
"""Lines that a part has at least, where the screen is high enough."""
KEPT = 3
"""Changes that stay on the screen: one build may be several."""


@dataclass(frozen=True, slots=True)
class State:
    """What there is now."""

    title: str
    counts: Sequence[tuple[str, int]]
    """How many findings of each sort there are, by its name."""
    findings: Sequence[object]


Changes: TypeAlias = Sequence[Change[Any]]
"""The newest first."""
Look: TypeAlias = Callable[[Changes], State]
"""Looks at what there is now, after some changes."""


@contextmanager
def screen(out: Console, beginning: str, look: Look) -> Iterator[Callable[[Change[Any]], object]]:
    """A function to show a change with, for as long as the block runs."""
    if not out.is_terminal:
        _say(beginning)
        for finding in look(()).findings:
            _say(signed("+", finding))
        yield _lines
        return
    changes: deque[Change[Any]] = deque(maxlen=KEPT)
    with Live(console=out, screen=True, auto_refresh=False) as live:

        def draw() -> None:
            live.update(Group(*drawing(look(changes), changes, out.height)), refresh=True)

        def show(change: Change[Any]) -> None:
            if change.is_news:
                changes.appendleft(change)
            draw()

        draw()
        yield show


def drawing(state: State, changes: Changes, height: int) -> list[Text]:
    """The lines of a screen of this height."""
    news = [text for change in changes for text in _news(change)]
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
    """What changed in the findings, under a headline; problems name their files themselves."""
    headline = [line(change.headline, "bold")] if change.added or change.removed else []
    return [*headline, *_signed(change)]


def _lines(change: Change[Any]) -> None:
    for text in _signed(change):
        _say(text)
    _say(change.headline)


def _signed(change: Change[Any]) -> Iterator[Text]:
    """Lines about a change."""
    yield from (signed("!", problem) for problem in change.problems)
    yield from (signed("=", solved) for solved in change.solved)
    yield from (signed("-", finding) for finding in change.removed)
    yield from (signed("+", finding) for finding in change.added)


def _say(text: object) -> None:
    print(text, flush=True)
