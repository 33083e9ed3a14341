"""An offload that keeps all in this process, and can be told to fail or to wait."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from reactive import OffloadError
from reactive.parts import Part
from reactive.remote import Entry, InMemory, Remote
from reactive.zset import Pairs


def _open() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


@dataclass
class Elsewhere:
    """Moves whatever can be moved into `InMemory` remotes."""

    threshold_rows: int | None = None
    threshold_bytes: int | None = None
    flush_interval: float | None = None
    max_waiting: int = 1_000_000
    failures: int = 0
    """How many of the next flushes fail."""
    gone: bool = False
    """Whether all do, as when nobody can be reached."""
    let: threading.Event = field(default_factory=_open)
    """Nothing is applied while this is cleared."""
    applying: threading.Event = field(default_factory=threading.Event)
    """Set when something is about to be applied."""
    begun: list[Remote] = field(default_factory=list)
    closed: int = 0
    users: int = 0

    def refuse(self, part: Part) -> str | None:
        return None

    def progress(self, name: str, rows: int) -> AbstractContextManager[None]:
        return nullcontext()

    def begin(self, part: Part, name: str) -> Remote:
        remote = Failing(part, self)
        self.begun.append(remote)
        return remote

    def open(self) -> None:
        self.users += 1

    def close(self) -> None:
        self.users -= 1


class Failing(InMemory):
    """Raises or waits before applying, when it is told to."""

    def __init__(self, part: Part, of: Elsewhere) -> None:
        super().__init__(part)
        self._offload = of
        self.numbers: list[int] = []

    def apply(self, number: int, entries: Sequence[Entry], *, quiet: bool = False) -> Pairs:
        of = self._offload
        of.applying.set()
        assert of.let.wait(30)
        if of.gone:
            raise OffloadError("elsewhere is gone for good")
        if of.failures:
            of.failures -= 1
            raise ConnectionError("elsewhere is gone")
        self.numbers.append(number)
        return super().apply(number, entries, quiet=quiet)

    def close(self) -> None:
        self._offload.closed += 1
        super().close()
