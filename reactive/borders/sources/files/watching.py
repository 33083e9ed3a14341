"""When to look at files again: as the system tells, after some time, or as somebody asks.

    watchfiles --changes--> bell --wakes--> the source, which compares stamps
    catch_up() --asks-----> bell <--says that it is done--

What the system tells is a hint only: links, drives of other machines, and folders that come later
are looked at every few seconds, at most a fiftieth of the time.

State:  which looks were asked for, and which are done.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reactive.borders.sources.files.pattern import Pattern

EVERY = 2.0
"""Seconds between two looks that nobody has asked for; without watchfiles, half of it."""
SHARE = 50
"""How many times as long as a look takes there is none."""
STEP, LONGEST, PAUSE = 20, 200, 500
"""Milliseconds: without a change that end a round; until a round ends; until it is looked whether
the folders are still there."""


class Bell:
    """Wakes a source that waits for changes of files."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._rung = False
        self._asked = self._done = 0
        self._is_over = False

    def ring(self) -> None:
        """Files may have changed."""
        with self._changed:
            self._rung = True
            self._changed.notify_all()

    def ask(self) -> int:
        """Ask for a look; its number."""
        with self._changed:
            self._asked += 1
            self._rung = True
            self._changed.notify_all()
            return self._asked

    def begin(self) -> int:
        """A look begins; the number of the last one that was asked for."""
        with self._changed:
            self._rung = False
            return self._asked

    def end(self, number: int) -> None:
        """A look that began with a number is done, and what it found is committed."""
        with self._changed:
            self._done = number
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until it rings."""
        with self._changed:
            self._changed.wait_for(lambda: self._rung, seconds)

    def wait_for(self, number: int, timeout: float | None) -> bool | None:
        """Whether a look is done, or will never be; None if neither is so in time."""
        with self._changed:
            told = self._changed.wait_for(lambda: self._done >= number or self._is_over, timeout)
            return self._done >= number if told else None

    @contextmanager
    def watching(
        self, patterns: Sequence[Pattern], stop: threading.Event, *, told: bool
    ) -> Iterator[None]:
        """While a source looks at files: ring as the system tells."""
        over = threading.Event()
        self._is_over = False
        threading.Thread(target=self._pass_on, args=(stop, over), daemon=True).start()
        try:
            for pattern in patterns if told else ():
                name = f"reactive files {pattern}"
                args = (self, pattern, over)
                threading.Thread(target=_listen, args=args, daemon=True, name=name).start()
            yield
        finally:
            over.set()
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def _pass_on(self, stop: threading.Event, over: threading.Event) -> None:
        """Wake who waits here once it is to stop."""
        while not over.is_set():
            if stop.wait(EVERY):
                self.ring()
                return


def has_watchfiles() -> bool:
    """Whether the system's word on changes can be had."""
    return find_spec("watchfiles") is not None


def pause(took: float, *, told: bool) -> float:
    """Seconds until the next look that nobody asks for, after one that took some."""
    return max(EVERY if told else EVERY / 2, SHARE * took)


def _listen(bell: Bell, pattern: Pattern, over: threading.Event) -> None:
    """Ring as files of a pattern change, also in folders that come later; once more after that, as
    nothing is told of files that came before a new folder was watched."""
    base = pattern.base
    while not over.is_set():
        before = _identity(base)
        if before is None:
            over.wait(PAUSE / 1000)
            continue
        is_new = True
        try:
            for changes in _changes(base, over, recursive=pattern.is_deep):
                if changes or is_new:
                    bell.ring()
                is_new = bool(changes)
                if _identity(base) != before:
                    break
        except Exception:  # no more folders can be watched: those are looked at every now and then
            return


def _changes(base: Path, over: threading.Event, *, recursive: bool) -> Iterator[set[Any]]:
    import watchfiles

    found: Iterator[set[Any]] = watchfiles.watch(
        base,
        watch_filter=None,
        step=STEP,
        debounce=LONGEST,
        rust_timeout=PAUSE,
        yield_on_timeout=True,
        stop_event=over,
        raise_interrupt=False,
        recursive=recursive,
    )
    return found


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        found = folder.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino)
