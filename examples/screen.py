"""The screen of watching: drawn repeatedly, or lines without a terminal.

    title
    the number of findings of each kind
    the effects of the last effective changes, the newest first
    findings

Each part is cut to the lines left for it, and then names the number of hidden ones.
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
    """The current state."""

    title: str
    counts: Sequence[tuple[str, int]]
    """The number of findings of each kind, by its name."""
    findings: Sequence[object]


Changes: TypeAlias = Sequence[Change[Any]]
"""The newest first."""
Look: TypeAlias = Callable[[Changes], State]
"""Return the current state, after some changes."""


@contextmanager
def screen(out: Console, beginning: str, look: Look) -> Iterator[Callable[[Change[Any]], object]]:
    """Yield a function to show a change with, for as long as the block runs."""
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
    """Return the lines of a screen of this height."""
    news = [text for change in changes for text in _news(change)]
    counts = [line(f"{count:>7,}  {name}", "cyan") for name, count in state.counts if count]
    counts = _fitting(counts, height - 1 - min(len(news), NEWS) - FINDINGS)
    left = height - 1 - len(counts)
    news = _fitting(news, max(min(NEWS, left), left // 2))
    listed = [line(str(finding)) for finding in state.findings]
    return [line(state.title, "reverse"), *counts, *news, *_fitting(listed, left - len(news))]


def _fitting(lines: list[Text], room: int) -> list[Text]:
    """Return as many lines as fit; the last one may name the number of others."""
    if len(lines) <= room:
        return lines
    kept = lines[: max(room - 1, 0)]
    return [*kept, line(f"... {len(lines) - len(kept):,} more")][: max(room, 0)]


def _news(change: Change[Any]) -> list[Text]:
    """Return the changed findings, under a headline; problems name their files themselves."""
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
